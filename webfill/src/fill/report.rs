//! `--report FILE`: one page with charts for people. It needs no other file and no network, and everything from pages
//! and from the table is escaped.

mod charts;
mod html;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use webfill_service::Fault;

use self::charts::{Bars, reason_bars};
use self::html::{escape, excerpt, link, shorten};
use super::deciding::{Cell, State};
use super::evidence::Sources;
use super::judgement::Verdict;
use super::nouns::count_with_noun;
use super::project::Project;
use super::tally::Tallies;
use crate::mapping_command::writing::write_atomically;

const STYLE: &str = include_str!("report/style.css");

/// The most entries in each list, so that a browser can show the report of a large table.
const DOUBTS: usize = 300;
const OPEN_DOUBTS: usize = 10;
const SITES: usize = 40;
const EXAMPLES_OF_FIELD: usize = 6;
const FIELDS_WITH_EXAMPLES: usize = 40;
const EXAMPLES_OF_REASON: usize = 5;

pub struct Report<'r> {
    pub sources: &'r Sources<'r>,
    pub project: &'r Project,
    pub verdict: &'r Verdict,
    pub tallies: &'r Tallies,
    /// The doubts, with the most certain one first.
    pub doubtful: &'r [&'r Cell],
    /// The required precision.
    pub precision: f64,
}

impl Report<'_> {
    pub fn write(&self, file: &Path) -> Result<(), Fault> {
        write_atomically(file, self.page().as_bytes())
    }

    fn page(&self) -> String {
        let table = &self.sources.table;
        let name = table.path.file_name().unwrap_or_default();
        let name = escape(&name.to_string_lossy());
        let parts = [
            self.tiles(),
            self.doubts(),
            self.column_section(),
            self.site_section(),
            self.reasons_section(),
            self.examples(),
        ];
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{name}, filled</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>{name}, filled</h1>\n{}</main>\n</body>\n</html>\n",
            parts.concat()
        )
    }

    /// The most important numbers, which are shown at the top.
    fn tiles(&self) -> String {
        let (tallies, rows) = (self.tallies, self.sources.table.rows.len());
        let all = &tallies.all;
        let percent = format!("{:.1} %", tallies.filled_share() * 100.0);
        let filled = format!("{} of {}", all.filled, count_with_noun(tallies.gaps, "gap"));
        let expected = all.mean_confidence();
        let expected = expected.map_or_else(|| String::from("-"), |share| format!("{share:.3}"));
        let held_out = all.held_out_precision().map_or_else(
            || String::from("no known value was held out"),
            |share| {
                format!(
                    "held-out values: {:.3} right ({:.3} to {:.3})",
                    share.estimate, share.low, share.high
                )
            },
        );
        let tiles = [
            ("Filled", percent, filled),
            ("Expected precision", expected, held_out),
            (
                "Doubts",
                self.doubtful.len().to_string(),
                String::from("known values that their pages contradict"),
            ),
            (
                "Table",
                count_with_noun(rows, "row"),
                format!(
                    "{}, {}",
                    count_with_noun(self.sources.table.fields.len(), "column"),
                    count_with_noun(tallies.by_site.len(), "site")
                ),
            ),
        ];
        let mut text = String::from("<div class=\"tiles\">\n");
        for (label, figure, more) in tiles {
            let _ = writeln!(
                text,
                "<div class=\"tile\"><div class=\"label\">{label}</div><div class=\"figure\">{figure}</div>\
                 <div class=\"more\">{more}</div></div>"
            );
        }
        text + "</div>\n"
    }

    fn doubts(&self) -> String {
        let mut text = String::from("<section>\n<h2>Doubts</h2>\n");
        if self.doubtful.is_empty() {
            return text + "<p>No known value is contradicted by its page.</p>\n</section>\n";
        }
        let file = self.project.doubts_file();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(
            text,
            "<p>Pages show other values than the table, the surest first. Your values were kept. To decide, write \
             <code>accept</code> or <code>reject</code> into <code>{}</code>.</p>",
            escape(&name)
        );
        let shown = &self.doubtful[..self.doubtful.len().min(DOUBTS)];
        let (open, folded) = shown.split_at(shown.len().min(OPEN_DOUBTS));
        text += &self.doubt_list(open);
        if !folded.is_empty() {
            let _ = write!(
                text,
                "<details><summary>{}</summary>\n{}</details>\n",
                count_with_noun(folded.len(), "more doubt"),
                self.doubt_list(folded)
            );
        }
        let left_out = self.doubtful.len() - shown.len();
        if left_out > 0 {
            let _ = writeln!(
                text,
                "<p class=\"left-out\">{} left out here; all are in <code>{}</code>.</p>",
                match left_out {
                    1 => String::from("1 doubt is"),
                    many => format!("{many} doubts are"),
                },
                escape(&name)
            );
        }
        text + "</section>\n"
    }

    fn doubt_list(&self, doubts: &[&Cell]) -> String {
        let mut text = String::from("<ol class=\"cards\">\n");
        for cell in doubts {
            let table = self.sources.table;
            let field = &table.fields[cell.field];
            let known = field.join_values(&table.rows[cell.row as usize].known_values(cell.field));
            let sure = format!(
                "<span class=\"sure\">{:.1} % sure that the page is right</span>",
                cell.confidence * 100.0
            );
            let _ = write!(
                text,
                "<li>\n{}<dl class=\"two\"><div><dt>your table</dt><dd>{}</dd></div>\
                 <div><dt>the page</dt><dd class=\"value\">{}</dd></div></dl>\n{}</li>\n",
                self.row_and_column(cell, &sure),
                shorten(&known),
                shorten(&field.join_values(&cell.values)),
                self.proof(cell)
            );
        }
        text + "</ol>\n"
    }

    /// Formats the name of a cell's row and column.
    fn row_and_column(&self, cell: &Cell, more: &str) -> String {
        let table = self.sources.table;
        format!(
            "<div class=\"place\"><span><b>{}</b> of {}</span>{more}</div>\n",
            shorten(&table.fields[cell.field].title),
            shorten(&table.rows[cell.row as usize].name()),
        )
    }

    /// Formats the evidence for a value: the text around it, and its page.
    fn proof(&self, cell: &Cell) -> String {
        let line = self.sources.lines(cell).into_iter().next();
        let around = line.as_ref().and_then(|line| line["excerpt"].as_str());
        let value = cell.values.first().map_or("", String::as_str);
        let mut text = String::new();
        if let Some(around) = around {
            let _ = writeln!(text, "<blockquote>{}</blockquote>", excerpt(around, value));
        }
        if let Some(url) = &cell.url {
            let _ = writeln!(text, "<div class=\"url\">{}</div>", link(url));
        }
        text
    }

    fn column_section(&self) -> String {
        let fields = self.tallies.by_field.iter();
        let rows = fields.map(|(field, tally)| {
            let title = self.sources.table.fields[*field].title.as_str();
            (title, tally)
        });
        Bars {
            heading: "By column",
            rows: rows.collect(),
            precision: self.precision,
        }
        .html("")
    }

    fn site_section(&self) -> String {
        let sites = self.tallies.by_site.iter();
        let rows = sites.map(|(name, tally)| (name.as_str(), tally));
        let left_out = self.tallies.by_site.len().saturating_sub(SITES);
        let note = match left_out {
            0 => String::new(),
            1 => String::from("<p class=\"left-out\">1 site with fewer gaps is left out.</p>\n"),
            many => {
                format!("<p class=\"left-out\">{many} sites with fewer gaps are left out.</p>\n")
            }
        };
        Bars {
            heading: "By site",
            rows: rows.take(SITES).collect(),
            precision: self.precision,
        }
        .html(&note)
    }

    fn reasons_section(&self) -> String {
        let mut reasons: Vec<(&str, &str, usize, String)> = Vec::new();
        for (state, count) in &self.tallies.why_not {
            reasons.push((
                state.name(),
                meaning_of_state(*state),
                *count,
                self.gaps_by_reason(*state),
            ));
        }
        let without_link = self.tallies.gaps_without_link();
        if without_link > 0 {
            let why = "there is no page to read";
            reasons.push(("no link", why, without_link, String::new()));
        }
        reasons.sort_by_key(|reason| usize::MAX - reason.2);
        let list = match reasons.is_empty() {
            true => String::from("<p>Every gap is filled.</p>\n"),
            false => reason_bars(&reasons),
        };
        format!("<section>\n<h2>Not filled, and why</h2>\n{list}</section>\n")
    }

    /// Formats examples of gaps that stay for one reason, and the number of such gaps in each column.
    fn gaps_by_reason(&self, state: State) -> String {
        let table = self.sources.table;
        let mut by_field: BTreeMap<usize, usize> = BTreeMap::new();
        let mut some = Vec::new();
        for cell in self.verdict.cells.iter().filter(|cell| cell.state == state) {
            *by_field.entry(cell.field).or_default() += 1;
            if some.len() < EXAMPLES_OF_REASON {
                some.push(cell);
            }
        }
        let mut fields: Vec<(usize, usize)> = by_field.into_iter().collect();
        fields.sort_by_key(|(field, count)| (usize::MAX - count, *field));
        let fields = fields.iter().take(FIELDS_WITH_EXAMPLES);
        let fields: Vec<String> = fields
            .map(|(field, count)| format!("{} {count}", shorten(&table.fields[*field].title)))
            .collect();
        let mut text = format!("<details><summary>{}</summary>\n<ul>\n", fields.join(", "));
        for cell in some {
            let read = match cell.values.is_empty() {
                true => String::new(),
                false => {
                    let values = table.fields[cell.field].join_values(&cell.values);
                    format!(": <span class=\"value\">{}</span>", shorten(&values))
                }
            };
            let refusal = cell.refusal.as_deref().map(shorten).unwrap_or_default();
            let _ = writeln!(
                text,
                "<li><b>{}</b> of {}{read} {refusal} {}</li>",
                shorten(&table.fields[cell.field].title),
                shorten(&table.rows[cell.row as usize].name()),
                cell.url.as_deref().map(link).unwrap_or_default()
            );
        }
        text + "</ul></details>"
    }

    fn examples(&self) -> String {
        let mut text = String::from("<section>\n<h2>Examples of filled values</h2>\n");
        if self.tallies.all.filled == 0 {
            return text + "<p>Nothing was filled.</p>\n</section>\n";
        }
        let file = self.project.evidence_file("parquet");
        let _ = writeln!(
            text,
            "<p>The least sure of each column, and some others. All are in <code>{}</code>.</p>",
            escape(&file.file_name().unwrap_or_default().to_string_lossy())
        );
        let fields = self.tallies.by_field.iter();
        let fields = fields.filter(|(_, tally)| tally.filled > 0);
        for (field, tally) in fields.take(FIELDS_WITH_EXAMPLES) {
            let cells = self.verdict.cells.iter();
            let mut filled: Vec<&Cell> = cells
                .filter(|cell| cell.field == *field && cell.state == State::Filled)
                .collect();
            filled.sort_by(|a, b| {
                a.confidence
                    .total_cmp(&b.confidence)
                    .then(a.row.cmp(&b.row))
            });
            let _ = writeln!(
                text,
                "<h3>{} <small>{}</small></h3>\n<ul class=\"cards\">",
                shorten(&self.sources.table.fields[*field].title),
                count_with_noun(tally.filled, "value")
            );
            for cell in choose_examples(&filled) {
                let sure = format!(
                    "<span class=\"sure\">{:.1} %</span>",
                    cell.confidence * 100.0
                );
                let values = self.sources.table.fields[*field].join_values(&cell.values);
                let _ = write!(
                    text,
                    "<li>\n{}<div class=\"value\">{}</div>\n{}</li>\n",
                    self.row_and_column(cell, &sure),
                    shorten(&values),
                    self.proof(cell)
                );
            }
            text += "</ul>\n";
        }
        text + "</section>\n"
    }
}

/// Chooses examples: one half are the least certain cells, the other half are spread over the rest.
fn choose_examples<'c>(cells: &[&'c Cell]) -> Vec<&'c Cell> {
    let least = EXAMPLES_OF_FIELD / 2;
    if cells.len() <= EXAMPLES_OF_FIELD {
        return cells.to_vec();
    }
    let rest = &cells[least..];
    let others = EXAMPLES_OF_FIELD - least;
    let spread = (0..others).map(|at| rest[(at + 1) * rest.len() / others - 1]);
    cells[..least].iter().copied().chain(spread).collect()
}

/// The meaning of the reason why a gap stays.
fn meaning_of_state(state: State) -> &'static str {
    match state {
        State::Conflicting => "several values were read, and none is certain enough",
        State::NotOnPage => "nothing was read on the pages of the row",
        State::Unreachable => "no page of the row could be fetched",
        State::Robots => "robots.txt of the site disallows the pages of the row",
        State::BelowPrecision => {
            "the value is not certain enough, or its page was not fetched because none was expected"
        }
        State::Refused => "the value does not fit its column, or several rows have its page",
        State::Filled | State::Known | State::Contradicted => "",
    }
}
