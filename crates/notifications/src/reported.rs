//! The news of a watch: the difference between what was reported and what is known now. This code has no side effects.
//! The caller stores what was reported together with the resulting notifications, so everything is reported once.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use webfill_api::{About, RunEnd, Watch, WatchRun};

use crate::digest::{MOST_CHANGES, MOST_CHANGES_BYTES};
use crate::silence::{self, LATE_MS, SilenceFacts, SiteTrouble};

/// The name of a watch's silence if its run is due but has not started.
const NOT_STARTED: &str = "not_started";

/// The most lines of one change in the text for people, and the most characters of such a line.
const MOST_CHANGED: usize = 12;
const MOST_CHANGED_CHARS: usize = 300;
const MOST_VALUE_BYTES: usize = 120;

/// Everything that was reported about a watch so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reported {
    /// The number of the last reported run.
    pub run: u64,
    /// The number of the last reported change of a page. `None` if no target wants changes, or if the starting number
    /// is not known yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes_to: Option<u64>,
    /// The time since which changes are wanted; `None` once the starting number is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes_since_ms: Option<i64>,
    /// The alerts in force, by mapping.
    pub alerts: BTreeMap<String, ReportedAlert>,
    /// The time since which an alternative chain of extraction steps yields a field's values, by mapping and field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub served: BTreeMap<String, BTreeMap<String, String>>,
    /// Standing silences (missing results or runs), by name.
    pub silent: BTreeMap<String, ReportedSilence>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportedAlert {
    pub raised_at: String,
    pub fields: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportedSilence {
    pub since_ms: i64,
    pub why: String,
}

/// Standing alerts and warnings about extractions, as rows like those of `status`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    pub alerts: Vec<Value>,
    /// Warnings about fields whose first chain of extraction steps yields nothing any more, while an alternative chain
    /// does.
    pub warnings: Vec<Value>,
}

/// The current facts about a watch. Its news is derived from them.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub watch: &'a Watch,
    /// The runs that have ended, latest first.
    pub runs: &'a [WatchRun],
    /// The state of the extractions of the watch's pages; `None` if it was not read.
    pub standing: Option<&'a Standing>,
    pub sites: &'a [SiteTrouble],
    pub changes: Option<&'a ReadChanges>,
    /// If a run is due but does not start: the time when it was due, and the reason.
    pub held: Option<(i64, &'a str)>,
    pub now_ms: i64,
}

/// Changes that were read after the last reported one, up to the size of one notification.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadChanges {
    changes: Vec<Value>,
    bytes: usize,
    /// The number of the last reported change. Reading began after it.
    pub after: u64,
    /// The number of the last change read, or `after` if there were none.
    pub last: u64,
    /// Whether there are more changes. Later notifications report them.
    pub is_full: bool,
}

impl ReadChanges {
    pub fn starting_after(position: u64) -> ReadChanges {
        ReadChanges {
            changes: Vec::new(),
            bytes: 0,
            after: position,
            last: position,
            is_full: false,
        }
    }

    /// Adds the next change, if it fits. The first change is always added; otherwise it would never be reported.
    pub fn add(&mut self, number: u64, change: Value) {
        let bytes = self.bytes + change_event(&change).bytes();
        let has_room = self.changes.len() < MOST_CHANGES && bytes <= MOST_CHANGES_BYTES;
        self.is_full |= !has_room && !self.changes.is_empty();
        if !self.is_full {
            (self.bytes, self.last) = (bytes, number);
            self.changes.push(change);
        }
    }

    /// Whether any change was read after the last reported one.
    pub fn has_news(&self) -> bool {
        self.last > self.after
    }
}

/// One event to report, such as a changed page.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub about: About,
    /// The name of the kind of event, from the list in `docs/how-to/notifications.md`.
    pub name: &'static str,
    /// The event in words, on one line.
    pub line: String,
    pub detail: Value,
}

impl Event {
    /// The size of the event in a notification, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.detail.to_string().len() + self.line.len()
    }
}

impl Reported {
    /// Whether it was reported that a due run has not started.
    pub fn has_reported_missed_start(&self) -> bool {
        self.silent.contains_key(NOT_STARTED)
    }

    /// Returns the reported state with this state of extractions marked as reported.
    pub fn with_standing(mut self, standing: &Standing) -> Reported {
        self.alerts = standing.alerts.iter().map(to_reported_alert).collect();
        self.served = served::alternatives_by_field(&standing.warnings);
        self
    }

    /// Whether exactly this state was reported.
    pub fn matches(&self, standing: &Standing) -> bool {
        let known = Reported::default().with_standing(standing);
        (&known.alerts, &known.served) == (&self.alerts, &self.served)
    }

    /// Returns the news of a watch, and the state to store together with the notifications of this news.
    pub fn find_news(&self, facts: &Facts<'_>) -> (Vec<Event>, Reported) {
        let mut reported = self.clone();
        let mut events = reported.take_run_events(facts);
        let has_new_run = reported.run != self.run;
        events.extend(reported.take_health_events(facts));
        events.extend(reported.take_silence_events(facts, has_new_run));
        // Changes come last, because there may be many.
        events.extend(reported.take_change_events(facts));
        (events, reported)
    }

    fn take_run_events(&mut self, facts: &Facts<'_>) -> Vec<Event> {
        let new = facts.runs.iter().rev().filter(|run| run.number > self.run);
        let events = new.map(run_event).collect();
        let last = facts.runs.iter().map(|run| run.number).max();
        self.run = self.run.max(last.unwrap_or(0));
        events
    }

    fn take_change_events(&mut self, facts: &Facts<'_>) -> Vec<Event> {
        let Some(read) = facts.changes else {
            return Vec::new();
        };
        if self.changes_to != Some(read.after) {
            // Other changes were reported since these were read, so the changes are read again.
            return Vec::new();
        }
        self.changes_to = Some(read.last);
        read.changes.iter().map(change_event).collect()
    }

    fn take_health_events(&mut self, facts: &Facts<'_>) -> Vec<Event> {
        let Some(now) = facts.standing else {
            return Vec::new();
        };
        let mut events = Vec::new();
        let mut standing = BTreeMap::new();
        for alert in &now.alerts {
            let (mapping, now) = to_reported_alert(alert);
            let before = self.alerts.get(&mapping);
            let name = match before {
                Some(before) if before.raised_at != now.raised_at => Some("layout_changed"),
                Some(before) if before.fields != now.fields => Some("layout_alert_extended"),
                Some(_) => None,
                None => Some("layout_changed"),
            };
            events.extend(name.map(|name| alert_event(name, alert)));
            standing.insert(mapping, now);
        }
        for (mapping, alert) in &self.alerts {
            if !standing.contains_key(mapping) {
                events.push(Event {
                    about: About::Health,
                    name: "layout_alert_cleared",
                    line: format!("mapping {mapping}: its alert is cleared"),
                    detail: json!({"mapping": mapping, "raised_at": alert.raised_at}),
                });
            }
        }
        self.alerts = standing;
        events.extend(self.take_alternative_events(&now.warnings));
        events
    }

    fn take_silence_events(&mut self, facts: &Facts<'_>, has_new_run: bool) -> Vec<Event> {
        let mut now = match has_new_run {
            true => silence::find_silences(&SilenceFacts {
                runs: facts.runs,
                silent_after: facts.watch.silent_after,
                sites: facts.sites,
                alerts: facts.standing.map_or(&[], |now| now.alerts.as_slice()),
                standing: &self.silence_reasons(),
            }),
            // Without a new run there is no new evidence, so the standing silences stay.
            false => self.silence_reasons(),
        };
        now.remove(NOT_STARTED);
        let was_held = self.silent.contains_key(NOT_STARTED);
        if let Some((due_ms, why)) = facts.held {
            let due = crate::iso_time(due_ms);
            let sentence = format!("a run has been due since {due} and does not start: {why}");
            now.insert(NOT_STARTED.into(), sentence);
        }
        let mut events = Vec::new();
        if has_new_run && !was_held {
            events.extend(facts.runs.first().and_then(late_event));
        }
        for (name, why) in &now {
            if !self.silent.contains_key(name) {
                events.push(silent_event("silent", name, why, facts.now_ms));
            }
        }
        for (name, reported) in &self.silent {
            if !now.contains_key(name) {
                events.push(silent_event(
                    "sees_again",
                    name,
                    &reported.why,
                    reported.since_ms,
                ));
            }
        }
        let kept = now.into_iter().map(|(name, why)| {
            let since_ms = self.silent.get(&name).map(|reported| reported.since_ms);
            let since_ms = since_ms.unwrap_or(facts.now_ms);
            (name, ReportedSilence { since_ms, why })
        });
        self.silent = kept.collect();
        events
    }

    fn silence_reasons(&self) -> BTreeMap<String, String> {
        let standing = self.silent.iter();
        standing
            .map(|(name, reported)| (name.clone(), reported.why.clone()))
            .collect()
    }
}

fn to_reported_alert(alert: &Value) -> (String, ReportedAlert) {
    let word = |key: &str| alert[key].as_str().unwrap_or_default().to_owned();
    let reported = ReportedAlert {
        raised_at: word("layout_changed"),
        fields: word("fields"),
    };
    (word("mapping"), reported)
}

fn run_event(run: &WatchRun) -> Event {
    let how = run.how.map_or("under way", RunEnd::as_str);
    let count = |key: &str| run.counts.get(key).and_then(Value::as_u64).unwrap_or(0);
    let (name, why) = match (run.how, &run.why) {
        (Some(RunEnd::Failed), Some(why)) => ("run_failed", format!(": {why}")),
        (Some(RunEnd::Failed), None) => ("run_failed", String::new()),
        _ => ("run_ended", String::new()),
    };
    let (pages, fields) = (count("pages"), count("fields"));
    let mut line = format!(
        "run {}: {how}{why}; {pages} pages, {fields} fields",
        run.number
    );
    if let Some(changes) = run.counts.get("changes").and_then(Value::as_object) {
        let changes: u64 = changes.values().filter_map(Value::as_u64).sum();
        let documents = count("documents");
        line.push_str(&format!(", {changes} changes, {documents} new documents"));
    }
    Event {
        about: About::Runs,
        name,
        line,
        detail: run.json(),
    }
}

/// A change of a page with a mapping is reported with its fields. Any other change is reported with the added and
/// removed text.
fn change_event(change: &Value) -> Event {
    let word = |key: &str| change[key].as_str().unwrap_or_default();
    let (kind, url) = (word("kind"), word("url"));
    let fields = match change["mapping"].is_string() {
        true => field_lines(&change["old"], &change["new"]),
        false => None,
    };
    let difference = || word("difference").lines().map(str::to_owned).collect();
    let lines: Vec<String> = fields.unwrap_or_else(difference);
    let mut line = format!("{kind}: {url}");
    for text in lines.iter().take(MOST_CHANGED) {
        line.push_str(&format!("\n{}", shorten(text)));
    }
    if lines.len() > MOST_CHANGED {
        let more = lines.len() - MOST_CHANGED;
        line.push_str(&format!("\n... and {more} more"));
    }
    Event {
        about: About::Changes,
        name: "change",
        line,
        detail: change.clone(),
    }
}

/// Returns `field: old -> new` for each field. `None` if a value is too long, so that the changed words are shown
/// instead.
fn field_lines(old: &Value, new: &Value) -> Option<Vec<String>> {
    let (old, new) = (old.as_object(), new.as_object());
    let names = old.into_iter().chain(new).flat_map(|fields| fields.keys());
    let names: BTreeSet<&String> = names.collect();
    let reported = |fields: Option<&Map<String, Value>>, name: &String| {
        let text = match fields.and_then(|fields| fields.get(name)) {
            None | Some(Value::Null) => String::from("nothing"),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        (text.len() <= MOST_VALUE_BYTES).then_some(text)
    };
    let line = |name: &String| {
        let new = reported(new, name)?;
        Some(match old {
            Some(_) => format!("{name}: {} -> {new}", reported(old, name)?),
            None => format!("{name}: {new}"),
        })
    };
    names.into_iter().map(line).collect()
}

/// The beginning of a text, on one line.
fn shorten(text: &str) -> String {
    let line = text.replace(['\n', '\r'], " ");
    match line.char_indices().nth(MOST_CHANGED_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

fn alert_event(name: &'static str, alert: &Value) -> Event {
    let word = |key: &str| alert[key].as_str().unwrap_or_default();
    let (mapping, fields) = (word("mapping"), word("fields"));
    Event {
        about: About::Health,
        name,
        line: format!("mapping {mapping}: the layout changed, less is found of {fields}"),
        detail: without_crawls(alert),
    }
}

/// Removes the crawls from a row, because they may belong to other applications.
fn without_crawls(row: &Value) -> Value {
    let mut reported = row.clone();
    if let Value::Object(reported) = &mut reported {
        reported.remove("crawls");
    }
    reported
}

/// The event for a run that began long after its due time, or after further due times were missed.
fn late_event(run: &WatchRun) -> Option<Event> {
    let late_ms = run.started_ms - run.due_ms;
    if run.missed == 0 && late_ms <= LATE_MS {
        return None;
    }
    let (due, began) = (crate::iso_time(run.due_ms), crate::iso_time(run.started_ms));
    let more = match run.missed {
        0 => String::new(),
        missed => format!(", {missed} further due times were missed"),
    };
    let line = format!(
        "run {} was due at {due} and began at {began}{more}; likely because the dispatcher or the machine was down, or the watch paused",
        run.number
    );
    Some(Event {
        about: About::Silence,
        name: "began_late",
        line,
        detail: run.json(),
    })
}

fn silent_event(name: &'static str, silence: &str, why: &str, since_ms: i64) -> Event {
    let line = match name {
        "sees_again" => format!("over ({silence}): {why}"),
        _ => format!("silent ({silence}): {why}"),
    };
    Event {
        about: About::Silence,
        name,
        line,
        detail: json!({"silence": silence, "why": why, "since": since_ms as f64 / 1_000.0}),
    }
}

mod served;
#[cfg(test)]
mod tests;
