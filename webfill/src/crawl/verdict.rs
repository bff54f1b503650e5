//! Decides whether a crawl that ran to its end still counts as failed (`--fail-on`), so that cron notices.

use clap::ValueEnum;
use webfill_service::ExitStatus;
use webfill_wire::{Outcome, TaskEnd};

use super::watch::End;
use crate::summary::{Counters, Summary};

/// A condition that makes a finished crawl exit with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A mapping found no rows, or never found a field
    EmptyField,
    /// A fetched page matches no mapping
    NoMapping,
    /// No URL could be fetched
    NothingFetched,
    /// All seeds are broken
    AllBroken,
    /// No condition, so a finished crawl exits with 0
    Never,
}

/// The exit status of a crawl, and the reason if it failed although it ran to its end.
pub fn exit_status(
    end: End,
    summary: &Summary,
    fail_on: &[FailOn],
) -> (ExitStatus, Option<String>) {
    let reason = match end {
        End::Finished => fail_on.iter().find_map(|which| which.reason(summary)),
        // An interrupted crawl may be resumed, so missing results may still come.
        End::Interrupted | End::Limit(_) => None,
    };
    match reason {
        Some(reason) => (ExitStatus::Error, Some(reason)),
        None => (end.status(), None),
    }
}

impl FailOn {
    /// Why the crawl has failed by this condition; `None` if it has not.
    fn reason(self, summary: &Summary) -> Option<String> {
        let findings = summary.findings.as_ref();
        match self {
            FailOn::Never => None,
            FailOn::EmptyField => findings?.empty_field(),
            FailOn::NoMapping => {
                let unmatched = findings?.counts.unmatched;
                (unmatched > 0).then(|| format!("{unmatched} fetched pages match no mapping"))
            }
            FailOn::NothingFetched => nothing_fetched_reason(&summary.counters),
            FailOn::AllBroken => {
                let broken = summary.broken_seeds.count;
                let is_all = broken > 0 && summary.good_seeds == 0;
                // Only the first run counts, because a later run skips the seeds that an earlier one has read.
                let is_first = summary.counters.outcomes.is_empty();
                (is_all && is_first).then(|| format!("all {broken} seeds are broken"))
            }
        }
    }
}

fn nothing_fetched_reason(counters: &Counters) -> Option<String> {
    // A redirect is not a fetched page. Its target is fetched as another task with its own outcome.
    let is_fetched = |outcome: &String| {
        let known = outcome.parse::<Outcome>();
        known.is_ok_and(|outcome| matches!(outcome.end(), TaskEnd::Page | TaskEnd::Dropped))
    };
    let tried: u64 = counters.outcomes.values().sum();
    if tried == 0 || counters.outcomes.keys().any(is_fetched) {
        return None;
    }
    let redirected = counters.outcomes.get("redirected").copied().unwrap_or(0);
    Some(match redirected == tried {
        true => format!(
            "nothing fetched: all {tried} URLs only redirect; see the reasons of the skipped links above"
        ),
        false => {
            let counts = counters.outcomes.iter();
            let counts: Vec<String> = counts
                .map(|(name, count)| format!("{count} {name}"))
                .collect();
            let advice = match counters.outcomes.contains_key("unsafe_address") {
                true => "; private addresses need --allow-private-networks",
                false => "",
            };
            format!(
                "nothing fetched of {}: {}{advice}",
                match tried {
                    1 => String::from("1 URL"),
                    _ => format!("{tried} URLs"),
                },
                counts.join(", ")
            )
        }
    })
}
