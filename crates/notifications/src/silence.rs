//! Decides whether a watch is silent: its usual results are missing, its run did not finish, or its sites do not answer
//! any more. The verdict depends only on the records of runs and the state of sites.
//!
//! A kind of result (pages, documents, changes, fields) is *usual* if at least [`USUAL_RUNS`] of the [`RUNS_BEFORE`]
//! earlier runs had it. The watch is silent if `silent_after` consecutive runs have found none. If some earlier runs
//! found none either, these runs must be so many that their probability by chance is below [`CHANCE`]. For pages, fewer
//! empty runs suffice, usually one.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use webfill_api::{RunEnd, WatchRun};
use webfill_wire::{Outcome, TaskEnd};

/// A result is usual if at least this many earlier runs had it.
const USUAL_RUNS: usize = 3;

/// The number of earlier runs, before the runs without results, that are examined.
const RUNS_BEFORE: usize = 20;

/// The number of past runs that the caller must read for a verdict.
pub const RUNS_JUDGED: u64 = 60;

/// Chance is ruled out if its probability is below this.
const CHANCE: f64 = 0.02;

/// A run begins late if it begins more than this many milliseconds after its due time.
pub const LATE_MS: i64 = 600_000;

/// The most sites named in a sentence.
const NAMED_SITES: usize = 3;

/// A site of the watch that is backing off or unreachable.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteTrouble {
    pub site: String,
    /// The reason for the backoff, as one word of a closed list.
    pub reason: String,
    pub since_ms: i64,
    pub unreachable: bool,
    /// The sign of the trouble, and the URL where it was seen.
    pub sign: String,
    pub url: String,
}

/// The facts that determine silences when a run has ended.
#[derive(Debug, Clone, Copy)]
pub struct SilenceFacts<'a> {
    /// The runs, latest first.
    pub runs: &'a [WatchRun],
    pub silent_after: u64,
    pub sites: &'a [SiteTrouble],
    /// Standing alerts of the watch's mappings.
    pub alerts: &'a [Value],
    /// Standing silences by name, with their sentences.
    pub standing: &'a BTreeMap<String, String>,
}

/// The kinds of results by their names in the counts of a run, each with the name of its silence.
const FINDS: [(&str, &str); 4] = [
    ("pages", "no_pages"),
    ("documents", "no_documents"),
    ("changes", "no_changes"),
    ("fields", "no_fields"),
];

/// All standing silences, by name, each with a sentence that includes the likely reason. The silence of a result stands
/// until a run has that result again, however long ago the last such run was.
pub fn find_silences(known: &SilenceFacts<'_>) -> BTreeMap<String, String> {
    let mut silent = BTreeMap::new();
    let stands = |name: &str| known.standing.get(name).cloned();
    for (what, name) in FINDS {
        let sentence = match stands(name) {
            Some(sentence) => (!last_run_found(known, what)).then_some(sentence),
            // A run without pages has no other results either, so only the missing pages are reported.
            None if silent.contains_key("no_pages") => None,
            None => missing_result_sentence(known, what),
        };
        silent.extend(sentence.map(|sentence| (name.to_owned(), sentence)));
    }
    let last = known.runs.iter().find(|run| run.ended_ms.is_some());
    let not_finished = match last {
        Some(run) if has_completed(run) => not_finished_sentence(run),
        // An aborted run gives no evidence, so the silence stays as it was.
        _ => stands("not_finished"),
    };
    silent.extend(not_finished.map(|sentence| ("not_finished".to_owned(), sentence)));
    silent.extend(backing_off_sentences(known.sites));
    silent
}

/// How many results of this kind the runs found, latest run first. Only runs that give evidence are included.
fn result_counts(known: &SilenceFacts<'_>, what: &str) -> Vec<u64> {
    let runs = known.runs.iter();
    let evidence = runs.filter(|run| has_completed(run) && gives_evidence_of(run, what));
    evidence.map(|run| count_of(&run.counts, what)).collect()
}

/// Whether the last run that gives evidence found results of this kind.
fn last_run_found(known: &SilenceFacts<'_>, what: &str) -> bool {
    result_counts(known, what).first().is_some_and(|n| *n > 0)
}

/// The sentence about a kind of result that is usual but missing; `None` if it is not missing.
fn missing_result_sentence(known: &SilenceFacts<'_>, what: &str) -> Option<String> {
    let judged = result_counts(known, what);
    let empty = judged.iter().take_while(|found| **found == 0).count();
    let before: Vec<u64> = judged
        .iter()
        .skip(empty)
        .take(RUNS_BEFORE)
        .copied()
        .collect();
    let with = before.iter().filter(|found| **found > 0).count();
    if empty == 0 || with < USUAL_RUNS {
        return None;
    }
    let none_by_chance = 1.0 - with as f64 / (before.len() + 1) as f64;
    let is_silent = match what {
        "pages" => none_by_chance <= 0.25,
        _ => {
            let is_no_chance = with == before.len() || none_by_chance.powi(empty as i32) < CHANCE;
            empty as u64 >= known.silent_after && is_no_chance
        }
    };
    let runs = match empty {
        1 => "the last run has".to_owned(),
        more => format!("the last {more} runs have"),
    };
    let reason = likely_reason(known, what);
    is_silent.then(|| {
        format!(
            "{runs} found no {what}, {with} of the {} before did; likely because {reason}",
            before.len()
        )
    })
}

/// Whether the run has ended and was not aborted. Other runs give no evidence.
fn has_completed(run: &WatchRun) -> bool {
    run.ended_ms.is_some() && !matches!(run.how, Some(RunEnd::Interrupted | RunEnd::Stopped) | None)
}

/// Whether the run gives evidence about this kind of result. Unchanged pages are not read again, so a run without
/// fields gives no evidence about fields. A missing count gives none either: the store was unavailable, or the count
/// was not wanted.
fn gives_evidence_of(run: &WatchRun, what: &str) -> bool {
    if ["documents", "changes"].contains(&what) {
        return run.counts.get(what).is_some_and(|count| !count.is_null());
    }
    let outcomes = run.counts.get("outcomes").and_then(Value::as_object);
    let is_unchanged = outcomes.is_some_and(|outcomes| count_of(outcomes, "not_modified") > 0);
    !(is_unchanged && what == "fields" && count_of(&run.counts, what) == 0)
}

/// The number of results of this kind in the counts of a run.
fn count_of(counts: &Map<String, Value>, what: &str) -> u64 {
    match counts.get(what) {
        Some(Value::Object(kinds)) => kinds.values().filter_map(Value::as_u64).sum(),
        Some(number) => number.as_u64().unwrap_or(0),
        None => 0,
    }
}

/// The sentence about a run that failed, or ended before it had checked everything; `None` if the run finished.
fn not_finished_sentence(run: &WatchRun) -> Option<String> {
    let queued = count_of(&run.counts, "queued");
    match run.how? {
        RunEnd::Failed => {
            let why = run.why.as_deref().unwrap_or("see its log");
            Some(format!("run {} has failed: {why}", run.number))
        }
        RunEnd::Window => Some(format!(
            "run {} was ended by its window with {queued} pages left: it is too short for what there is, or the sites answer slowly",
            run.number
        )),
        RunEnd::Offline => Some(format!(
            "run {} ended because its machine is offline",
            run.number
        )),
        _ => None,
    }
}

/// Sites that are backing off or unreachable: one sentence for each reason.
fn backing_off_sentences(sites: &[SiteTrouble]) -> BTreeMap<String, String> {
    let mut by_reason: BTreeMap<&str, Vec<&SiteTrouble>> = BTreeMap::new();
    for site in sites {
        by_reason.entry(&site.reason).or_default().push(site);
    }
    let reported = by_reason.into_iter().map(|(reason, sites)| {
        let named = sites
            .iter()
            .take(NAMED_SITES)
            .map(|site| trouble_sentence(site));
        let mut sentence = named.collect::<Vec<_>>().join("; ");
        if sites.len() > NAMED_SITES {
            let more = sites.len() - NAMED_SITES;
            sentence.push_str(&format!("; and {more} more"));
        }
        (format!("site_{reason}"), sentence)
    });
    reported.collect()
}

fn trouble_sentence(site: &SiteTrouble) -> String {
    let does = match site.unreachable {
        true => "has been unreachable",
        false => "has been backing off",
    };
    let why = match site.reason.as_str() {
        "robots" => "its robots.txt cannot be read",
        "unreachable" => "it does not answer",
        "tls" => "its certificate is not valid for it",
        "dns" => "its name is not found (DNS)",
        "busy" => "it refuses the rate of requests",
        "blocked" => "it blocks",
        other => other,
    };
    let since = crate::iso_time(site.since_ms);
    let sign = match site.sign.is_empty() {
        true => String::new(),
        false => format!(" ({})", site.sign),
    };
    format!("{} {does} since {since}: {why}{sign}", site.site)
}

/// The likely reason for missing results, as a clause of a sentence.
fn likely_reason(known: &SilenceFacts<'_>, what: &str) -> String {
    let Some(last) = known.runs.iter().find(|run| has_completed(run)) else {
        return String::from("nothing is known");
    };
    if let (Some(RunEnd::Failed), Some(why)) = (last.how, &last.why) {
        return format!("the run has failed: {why}");
    }
    if let Some(site) = known.sites.first() {
        return trouble_sentence(site);
    }
    if last.how == Some(RunEnd::Offline) {
        return String::from("the machine is offline");
    }
    if let Some(reason) = main_outcome(last) {
        return reason;
    }
    let pages = count_of(&last.counts, "pages");
    if pages == 0 {
        return String::from("there was nothing to fetch: the seeds are empty, or out of scope");
    }
    if let Some(alert) = known.alerts.first() {
        let (mapping, at) = (&alert["mapping"], &alert["layout_changed"]);
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        return format!(
            "the layout changed for the mapping {} at {}",
            word(mapping),
            word(at)
        );
    }
    fewer_pages_sentence(known.runs, pages)
        .unwrap_or_else(|| format!("unknown: {pages} pages were fetched as usual, without {what}"))
}

/// The outcome of more than half of a run's requests, if it is a failure; otherwise `None`.
fn main_outcome(run: &WatchRun) -> Option<String> {
    let outcomes = run.counts.get("outcomes")?.as_object()?;
    let all: u64 = outcomes.values().filter_map(Value::as_u64).sum();
    let most = |(_, n): &(&String, &Value)| n.as_u64().unwrap_or(0);
    let (name, n) = outcomes.iter().max_by_key(most)?;
    let n = n.as_u64().unwrap_or(0);
    let why = match name.parse::<Outcome>() {
        Ok(outcome) if matches!(outcome.end(), TaskEnd::Page | TaskEnd::Elsewhere) => return None,
        Ok(outcome) => outcome.meaning(),
        Err(_) => name,
    };
    (n * 2 > all).then(|| format!("{why} ({n} of {all} requests)"))
}

fn fewer_pages_sentence(runs: &[WatchRun], pages: u64) -> Option<String> {
    let mut earlier: Vec<u64> = runs
        .iter()
        .filter(|run| has_completed(run))
        .skip(1)
        .take(RUNS_BEFORE)
        .map(|run| count_of(&run.counts, "pages"))
        .collect();
    earlier.sort_unstable();
    let usual = *earlier.get(earlier.len() / 2)?;
    (pages * 2 < usual).then(|| {
        format!("it fetches {pages} pages, usually {usual}: the lists or sitemaps that led to them are gone")
    })
}

#[cfg(test)]
mod tests;
