//! What came of a table, in eight lines.

use std::collections::BTreeMap;

use webfill_truth::wilson;

use super::judging::{Cell, State, Verdict};
use super::pages::Pages;
use super::project::Project;
use super::table::Table;
use crate::demand::table::visible;

/// Sites and fields that are named.
const SHOWN: usize = 12;

pub struct Summary<'s> {
    pub table: &'s Table,
    pub project: &'s Project,
    pub pages: &'s Pages<'s>,
    pub verdict: &'s Verdict,
    pub doubts: usize,
    /// Answers to values that the table does not have.
    pub idle_answers: usize,
}

/// Filled cells, gaps, and the sum of the confidences of the filled ones.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    filled: usize,
    gaps: usize,
    sure: f64,
}

impl Tally {
    fn add(&mut self, cell: &Cell) {
        self.gaps += 1;
        if cell.state == State::Filled {
            self.filled += 1;
            self.sure += cell.confidence;
        }
    }

    fn text(&self) -> String {
        match self.filled {
            0 => format!("0 of {}", self.gaps),
            filled => format!(
                "{filled} of {} ({:.3})",
                self.gaps,
                self.sure / filled as f64
            ),
        }
    }
}

impl Summary<'_> {
    pub fn text(&self) -> String {
        let is_gap = |cell: &&Cell| !matches!(cell.state, State::Known | State::Contradicted);
        let cells = || self.verdict.cells.iter().filter(is_gap);
        let mut all = Tally::default();
        let mut by_field: BTreeMap<usize, Tally> = BTreeMap::new();
        let mut by_site: BTreeMap<String, Tally> = BTreeMap::new();
        let mut why_not: BTreeMap<State, usize> = BTreeMap::new();
        for cell in cells() {
            all.add(cell);
            by_field.entry(cell.field).or_default().add(cell);
            by_site.entry(self.site_of(cell)).or_default().add(cell);
            if cell.state != State::Filled {
                *why_not.entry(cell.state).or_default() += 1;
            }
        }
        let gaps = self.table.gaps();
        let without_link = gaps.saturating_sub(all.gaps);
        let fields = by_field
            .iter()
            .map(|(field, tally)| (self.table.fields[*field].title.clone(), tally));
        let fields = listed(
            fields
                .map(|(name, tally)| format!("{name} {}", tally.text()))
                .collect(),
        );
        let mut sites: Vec<(String, Tally)> = by_site.into_iter().collect();
        sites.sort_by(|a, b| b.1.gaps.cmp(&a.1.gaps).then(a.0.cmp(&b.0)));
        let sites = listed(
            sites
                .iter()
                .map(|(name, tally)| format!("{name} {}", tally.text()))
                .collect(),
        );
        let mut reasons: Vec<String> = why_not
            .iter()
            .map(|(state, count)| format!("{count} {}", state.name()))
            .collect();
        if without_link > 0 {
            reasons.push(format!("{without_link} in rows without a link"));
        }
        if reasons.is_empty() {
            reasons.push(String::from("nothing"));
        }
        let lines = [
            format!(
                "gaps: {gaps}, filled: {} ({:.1} %)",
                all.filled,
                share(all.filled, gaps) * 100.0
            ),
            self.precision(&all),
            format!("by field: {fields}"),
            format!("by site: {sites}"),
            format!("not filled: {}", reasons.join(", ")),
            format!(
                "doubts: {} {} from their pages, listed in {}{}",
                counted(self.doubts, "known value"),
                if self.doubts == 1 {
                    "differs"
                } else {
                    "differ"
                },
                self.project.doubts().display(),
                match self.idle_answers {
                    0 => String::new(),
                    1 => String::from(
                        "; 1 of your answers is to a value that the table does not have now",
                    ),
                    idle => format!(
                        "; {idle} of your answers are to values that the table does not have now"
                    ),
                }
            ),
            format!(
                "written: {}, {}",
                self.project.filled().display(),
                self.project.evidence("parquet").display()
            ),
            format!("next: {}", self.next(&why_not)),
        ];
        visible_lines(&lines)
    }

    fn site_of(&self, cell: &Cell) -> String {
        let url = cell
            .url
            .as_deref()
            .and_then(|url| webfill_urls::Url::parse(url).ok());
        url.map_or_else(|| String::from("no site"), |url| webfill_urls::site(&url))
    }

    /// The mean confidence of filled values, with the interval of what was measured by known values.
    fn precision(&self, all: &Tally) -> String {
        let precisions = &self.verdict.judgement.precisions;
        let measured: f64 = precisions.iter().map(|one| one.measured).sum();
        let right: f64 = precisions.iter().map(|one| one.right).sum();
        if all.filled == 0 {
            return String::from("precision: nothing was filled");
        }
        let interval = wilson(right, measured);
        format!(
            "precision: {:.3} expected of the filled values; known values that were held out: {:.3} right, {:.3} to {:.3}",
            all.sure / all.filled as f64,
            interval.estimate,
            interval.low,
            interval.high
        )
    }

    fn next(&self, why_not: &BTreeMap<State, usize>) -> String {
        if self.pages.cut_short.is_some() {
            return String::from(
                "the fetching was cut short; run the same command again to resume",
            );
        }
        let failing = self.pages.failing();
        if failing > 0 {
            return format!(
                "{} failed for reasons that may pass; run the same command again to ask again",
                counted(failing, "page")
            );
        }
        if self.doubts > 0 {
            let file = self.project.doubts();
            return format!(
                "write accept or reject into {}, then run the same command with --doubts {}",
                file.display(),
                file.display()
            );
        }
        match why_not.contains_key(&State::BelowPrecision)
            || why_not.contains_key(&State::NotOnPage)
        {
            true => format!(
                "correct the mappings in {}, or give more known values, and run the same command again",
                self.project.mappings().display()
            ),
            false => String::from("nothing"),
        }
    }
}

/// A count with its noun, such as `1 site` and `2 sites`.
pub fn counted(count: usize, one: &str) -> String {
    format!("{count} {}", noun(count, one))
}

pub fn noun(count: usize, one: &str) -> String {
    match count {
        1 => one.to_owned(),
        _ => format!("{one}s"),
    }
}

fn share(part: usize, all: usize) -> f64 {
    match all {
        0 => 1.0,
        all => part as f64 / all as f64,
    }
}

fn listed(mut parts: Vec<String>) -> String {
    let more = parts.len().saturating_sub(SHOWN);
    parts.truncate(SHOWN);
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    match parts.is_empty() {
        true => String::from("nothing"),
        false => parts.join(", "),
    }
}

fn visible_lines(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| visible(line)).collect();
    lines.join("\n")
}
