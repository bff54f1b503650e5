//! Finds the columns of links, and the links in a cell.

use std::collections::HashSet;

use crate::cell::{Cell, begins_as_link};
use crate::sample::Sample;
use crate::shape::Shape;

/// A column of links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlColumn {
    /// The index of the column.
    pub column: usize,
    /// The separator of several links in a cell; `None` if each cell holds one link. A space stands for any white
    /// space.
    pub separator: Option<String>,
}

/// Characters that may separate two links.
const SEPARATORS: [char; 3] = [';', '|', ','];

/// Endings of links to pictures and downloads. Nothing can be extracted from these.
const NOT_PAGES: [&str; 12] = [
    ".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".avif", ".ico", ".mp4", ".mp3", ".zip",
    ".css",
];

impl UrlColumn {
    /// The links of a cell of this column, in order. A link without a scheme gets `https://`. In a cell that begins
    /// with something else, such as `[Emma](https://a.example/1)`, only links with a scheme are found.
    pub fn links(&self, cell: &Cell) -> Vec<String> {
        match cell {
            Cell::List(cells) => cells.iter().flat_map(|cell| self.links(cell)).collect(),
            Cell::Text(text) if add_scheme(text.trim().to_owned()).is_none() => links_within(text),
            Cell::Text(text) => match &self.separator {
                Some(separator) => split(text, separator),
                None => vec![text.trim().to_owned()],
            }
            .into_iter()
            .filter_map(add_scheme)
            .collect(),
            _ => Vec::new(),
        }
    }
}

/// The text as a link, with a scheme; `None` if it cannot be one.
fn add_scheme(text: String) -> Option<String> {
    if begins_as_link(&text) {
        return Some(text);
    }
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    let is_host = host.contains('.')
        && !host.starts_with('.')
        && !host.ends_with('.')
        && host
            .chars()
            .all(|c| c.is_alphanumeric() || "-.:".contains(c))
        && host.chars().any(char::is_alphabetic);
    is_host.then(|| format!("https://{text}"))
}

/// The links with a scheme in a text, each once. A link ends at white space, at a quote, or at the end of a bracket
/// that was opened before it. Punctuation at its end is not a part of it.
fn links_within(text: &str) -> Vec<String> {
    let mut links: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let link = &rest[scheme_start(rest, at)..];
        let is_end = |c: char| c.is_whitespace() || "<>\"'`|\\^{}".contains(c);
        let link = &link[..link.find(is_end).unwrap_or(link.len())];
        let link =
            truncate_at_closing_bracket(link).trim_end_matches(['.', ',', ';', ':', '!', '?']);
        if begins_as_link(link) && !links.iter().any(|other| other == link) {
            links.push(link.to_owned());
        }
        rest = &rest[at + "://".len()..];
    }
    links
}

/// The link up to the first closing bracket that was not opened within it.
fn truncate_at_closing_bracket(link: &str) -> &str {
    let mut open = 0;
    for (at, c) in link.char_indices() {
        match c {
            '(' | '[' => open += 1,
            ')' | ']' if open == 0 => return &link[..at],
            ')' | ']' => open -= 1,
            _ => {}
        }
    }
    link
}

/// Splits a cell into its links. A separator splits only if a link follows it; otherwise it is a part of a link. If white
/// space separates links, words between them are no part of a link.
fn split(text: &str, separator: &str) -> Vec<String> {
    let sign = separator.trim();
    let without_words = |link: &str| match sign.is_empty() {
        true => link
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned(),
        false => link.trim_end_matches(sign).trim().to_owned(),
    };
    let mut links: Vec<String> = Vec::new();
    let mut start = 0;
    for at in text
        .match_indices("://")
        .map(|(at, _)| scheme_start(text, at))
    {
        let before = text[start..at].trim_end();
        let ends = match sign.is_empty() {
            true => before.len() < at - start,
            false => before.ends_with(sign),
        };
        if at > start && ends {
            links.push(without_words(before));
            start = at;
        }
    }
    links.push(without_words(text[start..].trim()));
    links.retain(|link| !link.is_empty());
    links
}

/// The index where the scheme of a link begins; `colon` is the index of its `://`.
fn scheme_start(text: &str, colon: usize) -> usize {
    let scheme = text[..colon].chars().rev();
    let letters: usize = scheme
        .take_while(|c| c.is_ascii_alphanumeric())
        .map(char::len_utf8)
        .sum();
    colon - letters
}

/// Finds the columns of links to pages. A column whose rows all link to the same few pages is used only if there is no
/// better one.
pub(super) fn find_url_columns(
    sample: &Sample,
    shapes: &[Shape],
    id: Option<usize>,
) -> Vec<UrlColumn> {
    let holding = |links: fn(&str) -> Vec<String>| -> Vec<usize> {
        let columns = (0..sample.columns.len()).filter(|column| Some(*column) != id);
        let holds_links = |column: &usize| holds_links(sample, &shapes[*column], *column, links);
        columns.filter(holds_links).collect()
    };
    let mut found = holding(link_at_start);
    for links in [links_within, link_without_scheme] {
        if found.is_empty() {
            found = holding(links);
        }
    }
    let distinctive = found
        .iter()
        .filter(|column| distinguishes_rows(sample, **column));
    let distinctive: Vec<usize> = distinctive.copied().collect();
    let chosen = if distinctive.is_empty() {
        found
    } else {
        distinctive
    };
    let chosen = remove_website_columns(sample, shapes, chosen);
    let column = |column: usize| infer_url_column(sample, column);
    chosen.into_iter().map(column).collect()
}

/// Drops columns that hold websites, such as homepages: these are values to fill, not pages to crawl. In a column of
/// websites, some rows have no link, and the links are on many sites. It is dropped only if another column links each
/// row to a page of few sites.
fn remove_website_columns(sample: &Sample, shapes: &[Shape], columns: Vec<usize>) -> Vec<usize> {
    /// Columns with fewer links than this are not judged.
    const LEAST: usize = 5;
    let counts = |column: usize| {
        let cells = sample
            .values(column)
            .filter(|cell| !shapes[column].is_gap(cell));
        let links: Vec<&str> = cells.flat_map(texts_of_cell).collect();
        let sites: HashSet<&str> = links.iter().map(|link| host_of(link)).collect();
        (links.len(), sites.len())
    };
    let has_gaps = |column: usize| {
        let cells = sample
            .values(column)
            .filter(|cell| !shapes[column].is_gap(cell));
        cells.count() < sample.rows.len()
    };
    let is_of_pages = |column: &usize| {
        let (links, sites) = counts(*column);
        !has_gaps(*column) && links >= LEAST && sites * 5 <= links
    };
    if !columns.iter().any(is_of_pages) {
        return columns;
    }
    let is_of_websites = |column: &usize| {
        let (links, sites) = counts(*column);
        has_gaps(*column) && links >= LEAST && sites * 2 >= links
    };
    columns
        .into_iter()
        .filter(|column| !is_of_websites(column))
        .collect()
}

/// The host of a link, as it is written.
fn host_of(link: &str) -> &str {
    let rest = link.split_once("://").map_or(link, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

fn texts_of_cell(cell: &Cell) -> Vec<&str> {
    match cell {
        Cell::Text(text) => vec![text.trim()],
        Cell::List(cells) => cells.iter().flat_map(texts_of_cell).collect(),
        _ => Vec::new(),
    }
}

fn link_at_start(text: &str) -> Vec<String> {
    let is_link = begins_as_link(text);
    is_link.then(|| text.to_owned()).into_iter().collect()
}

/// The whole text as the only link if it is a host and a path without a scheme: `shelf.example/book/1`. Otherwise
/// empty.
fn link_without_scheme(text: &str) -> Vec<String> {
    let (host, path) = text.split_once('/').unwrap_or((text, ""));
    let name = host.rsplit('.').next().unwrap_or_default();
    let is_name = name.len() >= 2 && name.chars().all(char::is_alphabetic);
    let is_page = is_name && !path.is_empty() && !text.contains(char::is_whitespace);
    let link = is_page.then(|| add_scheme(text.to_owned())).flatten();
    link.into_iter().collect()
}

/// Whether a column holds links to pages. `links_of` finds the links of a text.
fn holds_links(
    sample: &Sample,
    shape: &Shape,
    column: usize,
    links_of: fn(&str) -> Vec<String>,
) -> bool {
    let (mut cells, mut links, mut pages) = (0, 0, 0);
    for cell in sample.values(column).filter(|cell| !shape.is_gap(cell)) {
        let texts = texts_of_cell(cell);
        cells += 1;
        let of_texts: Vec<Vec<String>> = texts.iter().map(|text| links_of(text)).collect();
        if !of_texts.is_empty() && of_texts.iter().all(|links| !links.is_empty()) {
            links += 1;
            pages += usize::from(of_texts.iter().flatten().any(|link| is_page(link)));
        }
    }
    // Four fifths of the cells suffice, because some links may be broken. Half of the links may lead to other files
    // than pages.
    links > 0 && links * 5 >= cells * 4 && pages * 2 >= links
}

fn is_page(link: &str) -> bool {
    let path = link.split(['?', '#']).next().unwrap_or_default();
    let path = path.to_ascii_lowercase();
    !NOT_PAGES.iter().any(|end| path.ends_with(end))
}

fn distinguishes_rows(sample: &Sample, column: usize) -> bool {
    const FEW: usize = 10;
    let links: Vec<&str> = sample.values(column).flat_map(texts_of_cell).collect();
    let distinct: HashSet<&str> = links.iter().copied().collect();
    links.len() < FEW || distinct.len() * 5 >= links.len()
}

/// Describes a column of links, with the separator that its cells show.
pub(super) fn infer_url_column(sample: &Sample, column: usize) -> UrlColumn {
    let mut counts = [0_usize; 4];
    let mut cells = 0;
    let texts = sample.values(column).flat_map(texts_of_cell);
    for text in texts.filter(|text| add_scheme((*text).to_owned()).is_some()) {
        cells += 1;
        for at in text
            .match_indices("://")
            .map(|(at, _)| scheme_start(text, at))
        {
            let before = text[..at].trim_end();
            if at == 0 || before.is_empty() {
                continue;
            }
            let sign = SEPARATORS.iter().position(|sign| before.ends_with(*sign));
            match sign {
                Some(sign) => counts[sign] += 1,
                None if before.len() < at => counts[SEPARATORS.len()] += 1,
                None => {}
            }
        }
    }
    let most = counts
        .iter()
        .copied()
        .enumerate()
        .max_by_key(|(_, count)| *count);
    let separator = most.filter(|(_, count)| *count > 0 && count * 200 >= cells);
    UrlColumn {
        column,
        separator: separator.map(|(sign, _)| match SEPARATORS.get(sign) {
            Some(sign) => sign.to_string(),
            None => String::from(" "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_within_other_text() {
        let table: [(&str, &[&str]); 9] = [
            ("[Emma (1815)](http://a.example/1)", &["http://a.example/1"]),
            (
                "[http://a.example/1](http://a.example/1)",
                &["http://a.example/1"],
            ),
            (
                "<a href='http://a.example/1'>Emma</a>",
                &["http://a.example/1"],
            ),
            (
                "=HYPERLINK(\"http://a.example/1\";\"Emma\")",
                &["http://a.example/1"],
            ),
            (
                "See http://a.example/1 (or https://b.example/2).",
                &["http://a.example/1", "https://b.example/2"],
            ),
            (
                "In http://a.example/Emma_(novel), and",
                &["http://a.example/Emma_(novel)"],
            ),
            ("<http://a.example/1>", &["http://a.example/1"]),
            ("ftp://a.example/1, mailto:a@b.example", &[]),
            ("Emma: http://", &[]),
        ];
        let column = UrlColumn {
            column: 0,
            separator: None,
        };
        for (text, links) in table {
            let found = column.links(&Cell::Text(text.to_owned()));
            assert_eq!(found, links, "{text}");
        }
    }

    #[test]
    fn cells_hold_one_link_or_several() {
        let table: [(Option<&str>, &str, &[&str]); 14] = [
            (
                None,
                "a.example/x?to=http://b.example",
                &["https://a.example/x?to=http://b.example"],
            ),
            (None, " http://a.example/x ", &["http://a.example/x"]),
            (None, "http://a.example/x y", &["http://a.example/x y"]),
            (None, "a.example/x", &["https://a.example/x"]),
            (None, "no link", &[]),
            (None, "", &[]),
            (
                Some(" "),
                "http://a/1  https://b/2\nhttp://c/3",
                &["http://a/1", "https://b/2", "http://c/3"],
            ),
            (
                Some(" "),
                "http://a/1 and http://b/2 (old)",
                &["http://a/1", "http://b/2"],
            ),
            (
                Some(";"),
                "http://a/1; http://b/2;",
                &["http://a/1", "http://b/2"],
            ),
            (
                Some(";"),
                "http://a/1;x=2;http://b/2",
                &["http://a/1;x=2", "http://b/2"],
            ),
            (
                Some("|"),
                "http://a/1|http://b/2",
                &["http://a/1", "http://b/2"],
            ),
            (
                Some(","),
                "http://a/1,2,http://b/2",
                &["http://a/1,2", "http://b/2"],
            ),
            (
                Some(","),
                "http://web.example/http://b/2",
                &["http://web.example/http://b/2"],
            ),
            (Some(";"), ";;http://a/1", &["http://a/1"]),
        ];
        for (separator, text, links) in table {
            let column = UrlColumn {
                column: 0,
                separator: separator.map(str::to_owned),
            };
            assert_eq!(
                column.links(&Cell::Text(text.to_owned())),
                links,
                "{text:?}"
            );
        }
    }
}
