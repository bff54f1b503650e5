//! Parses the parts of a document that tests check: sections, tables, code blocks, code spans, links.

use std::ops::Range;
use std::path::Path;

use crate::program::ROOT;

/// A Markdown file of the repository.
pub struct Document {
    /// The path relative to the top of the repository.
    pub path: String,
    pub text: String,
}

/// A piece of a document, with the number of the line where it begins.
pub struct Piece<'d> {
    pub line: usize,
    pub text: &'d str,
    /// The byte range of the piece in the prose, including its marks.
    pub place: Range<usize>,
}

impl Document {
    pub fn read(path: &str) -> Document {
        let text = std::fs::read_to_string(Path::new(ROOT).join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        Document {
            path: path.to_owned(),
            text,
        }
    }

    /// The text below a heading, up to the next heading of any level.
    fn section(&self, heading: &str) -> &str {
        let start = self
            .text
            .find(&format!("\n{heading}\n"))
            .unwrap_or_else(|| panic!("{} has no heading `{heading}`", self.path));
        let body = &self.text[start + 1 + heading.len()..];
        &body[..body.find("\n#").unwrap_or(body.len())]
    }

    /// The rows of the tables in a section, without the headings. Backticks are removed from cells.
    pub fn rows(&self, heading: &str) -> Vec<Vec<String>> {
        let lines = self.section(heading).lines();
        let mut rows: Vec<Vec<String>> = lines
            .filter(|line| line.starts_with('|'))
            .map(cells)
            .collect();
        rows.retain(|row| !row[0].starts_with("---"));
        rows.remove(0);
        rows
    }

    /// The first cells of the tables in a section.
    pub fn first_cells(&self, heading: &str) -> Vec<String> {
        let rows = self.rows(heading).into_iter();
        rows.map(|mut row| row.swap_remove(0)).collect()
    }

    /// The contents of the fenced code blocks in a language.
    pub fn code_blocks(&self, language: &str) -> Vec<&str> {
        let opening = format!("```{language}\n");
        let begun = self.text.split(opening.as_str()).skip(1);
        begun
            .map(|rest| rest.split("\n```").next().unwrap_or(rest))
            .collect()
    }

    /// The text with code blocks blanked out byte for byte, so that positions stay the same.
    pub fn prose(&self) -> String {
        let mut prose = String::with_capacity(self.text.len());
        let mut fenced = false;
        let mut indented = false;
        let mut last_blank = true;
        for line in self.text.split_inclusive('\n') {
            let is_fence = line.trim_start().starts_with("```");
            let is_blank = line.trim().is_empty();
            indented = line.starts_with("    ") && (last_blank || indented);
            let is_code = fenced || is_fence || indented;
            fenced ^= is_fence;
            last_blank = is_blank;
            match is_code {
                true => prose.extend(blank_out(line)),
                false => prose.push_str(line),
            }
        }
        prose
    }

    /// The anchors of the headings, in the form that GitHub generates.
    pub fn anchors(&self) -> Vec<String> {
        let prose = self.prose();
        let headings = prose.lines().filter(|line| line.starts_with('#'));
        headings.map(anchor).collect()
    }
}

fn cells(line: &str) -> Vec<String> {
    let line = line.trim_matches('|').replace("\\|", "\u{1}");
    let cells = line.split('|');
    cells
        .map(|cell| cell.trim().replace('\u{1}', "|").replace('`', ""))
        .collect()
}

fn blank_out(text: &str) -> impl Iterator<Item = char> {
    let bytes = text.bytes();
    bytes.map(|byte| if byte == b'\n' { '\n' } else { ' ' })
}

fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The code spans of a document's prose.
pub fn code_spans(prose: &str) -> Vec<Piece<'_>> {
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(start) = prose[from..].find('`').map(|at| from + at) {
        let rest = &prose[start..];
        let ticks = &rest[..rest.len() - rest.trim_start_matches('`').len()];
        let inner = start + ticks.len();
        // A span does not extend beyond its paragraph.
        let paragraph = &prose[inner..];
        let paragraph = &paragraph[..paragraph.find("\n\n").unwrap_or(paragraph.len())];
        let Some(length) = paragraph.find(ticks) else {
            from = inner;
            continue;
        };
        let end = inner + length + ticks.len();
        spans.push(Piece {
            line: line_of(prose, start),
            text: &prose[inner..inner + length],
            place: start..end,
        });
        from = end;
    }
    spans
}

/// The targets of the links in a document's prose. Link-like text in code is skipped.
pub fn links<'p>(prose: &'p str, spans: &[Piece<'_>]) -> Vec<Piece<'p>> {
    let mut links = Vec::new();
    for (at, _) in prose.match_indices("](") {
        let target = &prose[at + 2..];
        let end = target.find(')').unwrap_or(0);
        if spans.iter().any(|span| span.place.contains(&at)) {
            continue;
        }
        links.push(Piece {
            line: line_of(prose, at),
            text: &target[..end],
            place: at..at + 2 + end,
        });
    }
    links
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}
