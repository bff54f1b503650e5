//! The summary of a crawl, as text for people and as JSON for programs.

mod failures;
mod findings;
mod lists;
mod printing;
mod repeating;
mod scripts;
mod seeds;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use webfill_store::{DatasetName, RecordCounts};
use webfill_wire::{Outcome, TaskEnd};

use self::printing::format_counts;
use crate::shell;

pub use failures::{Failure, Failures};
pub use findings::{FieldsByMapping, Findings};
pub use lists::ListCounts;
pub use printing::escape_and_shorten;
pub use repeating::Repeating;
pub use scripts::Scripts;
pub use seeds::{BrokenSeed, BrokenSeeds, RepeatedSeed, RepeatedSeeds};

/// The dispatcher's counters of a crawl.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Counters {
    pub finished: bool,
    pub limit_reached: bool,
    /// When the first backoff ends, in milliseconds since the epoch. Set if all remaining sites back off for longer
    /// than the patience allows.
    pub backoff_until_ms: Option<i64>,
    /// How many sites with queued tasks are backing off, and the first few of them.
    pub backing_off: u64,
    pub backing_off_first: Vec<BackingOffSite>,
    /// The shortest time that the slowest site needs to finish its queue. Only sites in memory are considered.
    pub least_time_left_ms: u64,
    /// The sites with queued tasks that may not be requested yet.
    pub waiting: WaitingSites,
    /// The evidence that this machine cannot reach the web; `None` if it can.
    pub offline: Option<OfflineState>,
    /// Why no tasks are leased: a disk is nearly full. `None` if tasks are leased.
    pub paused: Option<String>,
    /// No tasks are leased for this many seconds, because the state folder is a copy of another one.
    pub quiet_s: u64,
    pub queued: u64,
    pub leased: u64,
    pub pages: u64,
    pub fields: u64,
    pub rows: u64,
    pub rows_stored: u64,
    pub links: u64,
    pub bytes: u64,
    pub sites: u64,
    pub outcomes: BTreeMap<String, u64>,
    pub skipped: BTreeMap<String, u64>,
    #[serde(default)]
    pub scripts: Scripts,
    #[serde(default)]
    pub repeating: Repeating,
}

impl Counters {
    /// The number of failed tasks. Tasks with an unknown outcome count as failed.
    pub fn errors(&self) -> u64 {
        let is_error = |outcome: &str| {
            let known = outcome.parse::<Outcome>();
            known.map_or(true, |outcome| outcome.end() == TaskEnd::Failed)
        };
        let errors = self
            .outcomes
            .iter()
            .filter(|(outcome, _)| is_error(outcome));
        errors.map(|(_, count)| count).sum()
    }
}

/// Since when the machine has been offline, with the evidence.
#[derive(Debug, Clone, Deserialize)]
pub struct OfflineState {
    pub since_ms: i64,
    pub sign: String,
}

impl OfflineState {
    /// Describes in a sentence for people that the machine is offline.
    pub fn text(&self) -> String {
        format!(
            "paused since {}: this machine is offline ({})",
            format_utc(self.since_ms as f64 / 1_000.0),
            escape_and_shorten(&self.sign)
        )
    }
}

/// The number of sites with queued tasks that may not be requested yet.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct WaitingSites {
    /// The number of waiting sites, by reason.
    pub by: BTreeMap<String, u64>,
    /// When the first of these sites is due, in milliseconds since the epoch.
    pub first_ms: Option<i64>,
}

impl WaitingSites {
    /// A line for people about the waiting sites; `None` if no site waits.
    pub fn text(&self) -> Option<String> {
        const UNTIL_WOKEN_MS: i64 = 253_402_300_799_999;
        let sites: u64 = self.by.values().sum();
        let until = match self.first_ms.filter(|_| sites > 0)? {
            UNTIL_WOKEN_MS.. => String::from("until resumed manually"),
            first_ms => format!("until {}", format_utc(first_ms as f64 / 1_000.0)),
        };
        let verb = if sites == 1 {
            "site waits"
        } else {
            "sites wait"
        };
        Some(format!(
            "{sites} {verb} {until} ({})",
            format_counts(&self.by)
        ))
    }
}

/// A site that backs off.
#[derive(Debug, Clone, Deserialize)]
pub struct BackingOffSite {
    pub site: String,
    pub reason: String,
    /// The end of the backoff, in seconds since the epoch; `None` if the site backs off until it is resumed manually.
    pub until: Option<f64>,
    pub queued: u64,
    pub evidence: Option<SeenEvidence>,
}

/// The evidence that a site is in trouble.
#[derive(Debug, Clone, Deserialize)]
pub struct SeenEvidence {
    pub url: String,
    pub sign: String,
}

impl BackingOffSite {
    /// Describes for people until when the site backs off, and why.
    pub fn text(&self) -> String {
        let until = match self.until {
            Some(until) => format!("until {}", format_utc(until)),
            None => String::from("until resumed manually (`webfill site --wake`)"),
        };
        let BackingOffSite {
            site,
            reason,
            queued,
            ..
        } = self;
        let mut text = format!("{site} backs off {until}: {reason}, {queued} queued");
        if let Some(seen) = &self.evidence {
            text += &format!("; {} ({})", escape_and_shorten(&seen.sign), seen.url);
        }
        text
    }
}

/// Formats seconds since the epoch for people, in UTC.
fn format_utc(seconds: f64) -> String {
    let time = webfill_store::iso_time((seconds * 1_000.0) as i64);
    // Omit the fraction of a second.
    format!("{}Z", &time[..19])
}

/// The number of records that this run has written back to the dataset. Each writing of a record counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteBackCounts {
    pub records: u64,
    /// How many records the dataset's server refused.
    pub refused: u64,
}

/// Everything that the summary of a crawl shows.
#[derive(Debug)]
pub struct Summary {
    pub crawl_id: String,
    pub counters: Counters,
    /// The number of pages that earlier runs of the crawl have fetched.
    pub pages_before: u64,
    /// The number of ended tasks that this run has queued again; `None` if that was not requested.
    pub retried: Option<u64>,
    pub records: RecordCounts,
    /// The dataset that the run's records belong to.
    pub dataset: DatasetName,
    /// The number of valid seeds, including those that were already complete.
    pub good_seeds: u64,
    pub broken_seeds: BrokenSeeds,
    pub repeated_seeds: RepeatedSeeds,
    /// The counts of records written back; `None` if the crawl writes nothing back.
    pub written_back: Option<WriteBackCounts>,
    /// The fields that records want but no mapping extracts.
    pub unfillable: BTreeSet<String>,
    /// The findings; `None` if they were not counted.
    pub findings: Option<Findings>,
    /// The final failures; `None` if they were not counted.
    pub failures: Option<Failures>,
    pub elapsed: Duration,
    /// Why the crawl ended before it was finished; `None` if it was finished.
    pub ended_early: Option<&'static str>,
    /// The store, and the state folder: parts of the command that resumes the crawl.
    pub store: String,
    pub state: PathBuf,
}

impl Summary {
    pub fn json(&self) -> Value {
        let counters = &self.counters;
        json!({
            "crawl_id": self.crawl_id,
            "pages": counters.pages,
            "outcomes": counters.outcomes,
            "skipped": counters.skipped,
            "records": {
                "total": self.records.total,
                "resolved": self.records.resolved,
                "unreachable": self.failures.as_ref().map(|failures| failures.dead_records),
                "dataset": self.dataset.as_str(),
            },
            "fields": counters.fields,
            "rows": counters.rows,
            "rows_stored": counters.rows_stored,
            "links": counters.links,
            "bytes": counters.bytes,
            "elapsed_s": (self.elapsed.as_secs_f64() * 1_000.0).round() / 1_000.0,
            "failed": self.failures.as_ref().map(Failures::json),
            "queued": counters.queued + counters.leased,
            "sites": counters.sites,
            "backing_off": counters.backing_off,
            "offline_since": counters.offline.as_ref().map(|found| found.since_ms as f64 / 1_000.0),
            "scripts": counters.scripts.json(),
            "repeating": counters.repeating.json(),
            "broken_seeds": self.broken_seeds.json(),
            "repeated_seeds": self.repeated_seeds.json(),
            "written_back": self.written_back.as_ref().map(|written| {
                json!({"records": written.records, "refused": written.refused})
            }),
            "unfillable": self.unfillable,
            "retried": self.retried,
            "found": self.findings.as_ref().map(Findings::json),
        })
    }

    pub fn text(&self) -> String {
        let counters = &self.counters;
        let mut text = String::new();
        self.write_head(&mut text);
        self.write_records(&mut text);
        let _ = writeln!(text, "  fields    {} values stored", counters.fields);
        match &self.findings {
            Some(findings) => findings.write(&mut text),
            None => text.push_str(
                "  mapping   not counted: the crawl was interrupted, or the store failed\n",
            ),
        }
        let _ = writeln!(text, "  outcomes  {}", format_counts(&counters.outcomes));
        if let Some(failures) = &self.failures {
            failures.write(&mut text);
        }
        let _ = writeln!(
            text,
            "  links     {} found; skipped: {}",
            counters.links,
            format_counts(&counters.skipped)
        );
        counters.repeating.write(&mut text);
        self.write_queue(&mut text);
        counters.scripts.write(&mut text);
        if let Some(retried) = self.retried {
            let _ = writeln!(text, "  retried   {retried} finished URLs re-queued");
        }
        self.write_written_back(&mut text);
        self.broken_seeds.write(&mut text);
        self.repeated_seeds.write(&mut text);
        let _ = writeln!(text, "  kept in   {}", self.store);
        self.write_next_commands(&mut text);
        text
    }

    // Writes the first lines of the summary. Results of `writeln!` are ignored, because writing to a string cannot
    // fail.
    fn write_head(&self, text: &mut String) {
        let counters = &self.counters;
        let how = self.ended_early.unwrap_or("finished");
        let _ = writeln!(
            text,
            "crawl {} {how} after {}",
            self.crawl_id,
            format_duration(self.elapsed)
        );
        let pages = counters.pages.saturating_sub(self.pages_before);
        let rate = pages as f64 / self.elapsed.as_secs_f64().max(0.001);
        let _ = writeln!(
            text,
            "  pages     {} from {} {}, {:.1}/s, {}",
            counters.pages,
            counters.sites,
            if counters.sites == 1 { "site" } else { "sites" },
            rate,
            format_bytes(counters.bytes)
        );
    }

    fn write_records(&self, text: &mut String) {
        if self.records.total > 0 {
            let dead = self
                .failures
                .as_ref()
                .map_or(0, |failures| failures.dead_records);
            let unreachable = match dead {
                0 => String::new(),
                dead => format!(", {dead} unreachable"),
            };
            let _ = writeln!(
                text,
                "  records   {} of {} resolved{unreachable}; dataset {}",
                self.records.resolved, self.records.total, self.dataset
            );
        }
        if !self.unfillable.is_empty() {
            let names: Vec<_> = self
                .unfillable
                .iter()
                .map(|name| escape_and_shorten(name))
                .collect();
            let _ = writeln!(
                text,
                "            wanted, but extracted by no mapping: {}",
                names.join(", ")
            );
        }
    }

    /// Writes the number of queued tasks, and why they wait.
    fn write_queue(&self, text: &mut String) {
        let counters = &self.counters;
        let queued = counters.queued + counters.leased;
        if queued > 0 {
            let _ = writeln!(text, "  queued    {queued} left");
        }
        if let Some(offline) = &counters.offline {
            let _ = writeln!(text, "  {}", offline.text());
        }
        if counters.backing_off > 0 {
            let sites = if counters.backing_off == 1 {
                "site"
            } else {
                "sites"
            };
            let _ = writeln!(text, "  backoff   {} {sites}", counters.backing_off);
            for site in &counters.backing_off_first {
                let _ = writeln!(text, "            {}", site.text());
            }
            let _ = writeln!(
                text,
                "            to resume one earlier: webfill site SITE --wake --state {}, then resume the crawl",
                self.quoted_state()
            );
        }
    }

    fn write_written_back(&self, text: &mut String) {
        let Some(written) = &self.written_back else {
            return;
        };
        let _ = write!(
            text,
            "  written   {} records into the dataset",
            written.records
        );
        let _ = match written.refused {
            0 => writeln!(text),
            refused => writeln!(text, ", {refused} rejected by it: see the log"),
        };
    }

    /// Writes the commands that resume the crawl or retry failed URLs.
    fn write_next_commands(&self, text: &mut String) {
        let same_crawl = format!(
            "the same command and --state {} --crawl {}",
            self.quoted_state(),
            shell::quote(&self.crawl_id)
        );
        if self.ended_early.is_some() {
            let _ = writeln!(text, "resume with {same_crawl}");
        }
        let retry = self.failures.as_ref().map(Failures::retry_values);
        if let Some(retry) = retry.filter(|retry| !retry.is_empty()) {
            let _ = writeln!(
                text,
                "retry URLs that may recover with {same_crawl} --retry {}",
                retry.join(",")
            );
        }
    }

    fn quoted_state(&self) -> String {
        shell::quote(&self.state.display().to_string())
    }
}

/// Formats a duration in its two largest units.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

fn format_bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_that_sites_request_do_not_count_as_errors() {
        let outcomes = [
            ("ok", 5),
            ("disallowed", 2),
            ("timeout", 3),
            ("http_error", 1),
        ];
        let counters = Counters {
            outcomes: outcomes
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
            ..Counters::default()
        };
        assert_eq!(counters.errors(), 4);
        assert_eq!(
            format_counts(&counters.outcomes),
            "5 ok, 3 timeout, 2 disallowed, 1 http_error"
        );
    }

    #[test]
    fn durations_are_shown_in_two_units() {
        assert_eq!(format_duration(Duration::from_millis(4_240)), "4.2 s");
        assert_eq!(format_duration(Duration::from_secs(3_725)), "1 h 2 min");
    }
}
