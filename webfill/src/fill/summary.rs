//! The result for a table, in eight lines.

use std::path::Path;

use super::deciding::State;
use super::nouns::count_with_noun;
use super::pages::Pages;
use super::project::Project;
use super::table::Table;
use super::tally::{Tallies, Tally};
use crate::demand::table::without_control_characters;

/// The most sites and the most fields that are named.
const SHOWN: usize = 12;

pub struct Summary<'s> {
    pub table: &'s Table,
    pub project: &'s Project,
    pub pages: &'s Pages<'s>,
    pub tallies: &'s Tallies,
    pub report: Option<&'s Path>,
    /// The path of the filled table, or a description of what was written to a collection.
    pub written: String,
    pub doubts: usize,
    /// The number of proposed values that a person should judge.
    pub questions: usize,
    /// The number of values that a person has accepted, which are written.
    pub accepted: usize,
    /// The number of answers about values that the table does not have at present.
    pub idle_answers: usize,
}

impl Summary<'_> {
    pub fn text(&self) -> String {
        let tallies = self.tallies;
        let (all, gaps) = (&tallies.all, tallies.gaps);
        let fields = tallies
            .by_field
            .iter()
            .map(|(field, tally)| (self.table.fields[*field].title.clone(), tally));
        let fields = join_first(
            fields
                .map(|(name, tally)| format!("{name} {}", tally.text()))
                .collect(),
        );
        let sites = tallies.by_site.iter();
        let sites = join_first(
            sites
                .map(|(name, tally)| format!("{name} {}", tally.text()))
                .collect(),
        );
        let mut reasons: Vec<String> = tallies
            .why_not
            .iter()
            .map(|(state, count)| format!("{count} {}", state.name()))
            .collect();
        if tallies.gaps_without_link() > 0 {
            reasons.push(format!(
                "{} in rows without a link",
                tallies.gaps_without_link()
            ));
        }
        if reasons.is_empty() {
            reasons.push(String::from("nothing"));
        }
        let lines = [
            format!(
                "gaps: {gaps}, filled: {} ({:.1} %)",
                all.filled,
                tallies.filled_share() * 100.0
            ),
            precision_line(all),
            format!("by field: {fields}"),
            format!("by site: {sites}"),
            format!("not filled: {}", reasons.join(", ")),
            format!(
                "doubts: {} {} from their pages{}, listed in {}{}{}",
                count_with_noun(self.doubts, "known value"),
                if self.doubts == 1 {
                    "differs"
                } else {
                    "differ"
                },
                match self.questions {
                    0 => String::new(),
                    1 => String::from(", 1 proposed value is to be judged"),
                    many => format!(", {many} proposed values are to be judged"),
                },
                self.project.doubts_file().display(),
                match self.accepted {
                    0 => String::new(),
                    accepted =>
                        format!("; {} written", count_with_noun(accepted, "accepted value")),
                },
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
                "written: {}, {}, {}{}",
                self.written,
                self.project.evidence_file("jsonl").display(),
                self.project.evidence_file("parquet").display(),
                self.report
                    .map(|file| format!(", {}", file.display()))
                    .unwrap_or_default()
            ),
            format!("next: {}", self.next()),
        ];
        visible_lines(&lines)
    }

    fn next(&self) -> String {
        let why_not = &self.tallies.why_not;
        if self.pages.cut_short.is_some() {
            return String::from(
                "the fetching was cut short; run the same command again to resume",
            );
        }
        let (private, how_to_allow) = self.pages.at_private_addresses();
        let failing = self.pages.count_failing().saturating_sub(private);
        if failing > 0 {
            return format!(
                "{} failed for reasons that may be temporary; run the same command again to retry",
                count_with_noun(failing, "page")
            );
        }
        if self.doubts + self.questions > 0 {
            let file = self.project.doubts_file();
            return format!(
                "write accept or reject into {}, then run the same command with --doubts {}",
                file.display(),
                file.display()
            );
        }
        if private > 0 {
            return format!(
                "{} not requested, at private addresses; if the sites are yours, {how_to_allow}",
                count_with_noun(private, "page")
            );
        }
        match why_not.contains_key(&State::BelowPrecision)
            || why_not.contains_key(&State::NotOnPage)
        {
            true => format!(
                "correct the mappings in {}, or give more known values, and run the same command again",
                self.project.mappings_folder().display()
            ),
            false => String::from("nothing"),
        }
    }
}

/// The mean confidence of the filled values, with the precision measured on held-out known values.
fn precision_line(all: &Tally) -> String {
    let Some(expected) = all.mean_confidence() else {
        return String::from("precision: nothing was filled");
    };
    let measured = all.held_out_precision().map_or_else(
        || String::from("no known value was held out"),
        |interval| {
            format!(
                "known values that were held out: {:.3} right, {:.3} to {:.3}",
                interval.estimate, interval.low, interval.high
            )
        },
    );
    format!("precision: {expected:.3} expected of the filled values; {measured}")
}

fn join_first(mut parts: Vec<String>) -> String {
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
    let lines: Vec<String> = lines
        .iter()
        .map(|line| without_control_characters(line))
        .collect();
    lines.join("\n")
}
