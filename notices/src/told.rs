//! What is to be told of a watch: the difference between what has been told and what is known now. Pure; what
//! has been told is kept by the caller, together with the notices that come of it, so that each thing is told
//! once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use webfill_api::{About, RunEnd, Watch, WatchRun};

use crate::blindness::{self, Known, LATE_MS, SiteTrouble};

/// The name of the blindness of a watch whose run is due and does not begin.
const NOT_STARTED: &str = "not_started";

/// The event that says how many more changes there are.
pub(crate) const MORE_CHANGES: &str = "more_changes";

/// What has been told of a watch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    /// The last run.
    pub run: u64,
    /// The number of the last change in the store.
    pub changes: u64,
    /// Alarms that stand, by mapping.
    pub alarms: BTreeMap<String, ToldAlarm>,
    /// Blindness that stands, by name.
    pub blind: BTreeMap<String, ToldBlindness>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToldAlarm {
    pub raised_at: String,
    pub fields: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToldBlindness {
    pub since_ms: i64,
    pub why: String,
}

/// What is known of a watch now.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub watch: &'a Watch,
    /// Those that have ended, the latest first.
    pub runs: &'a [WatchRun],
    /// Standing alarms of its mappings, as `status` tells them; `None`: they were not looked at.
    pub alarms: Option<&'a [Value]>,
    pub sites: &'a [SiteTrouble],
    pub changes: Option<&'a ReadChanges>,
    /// A run is due, since then, and does not begin: why.
    pub held: Option<(i64, &'a str)>,
    pub now_ms: i64,
}

/// Changes that were read after the told position.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadChanges {
    pub changes: Vec<Value>,
    /// There are so many more, which are counted only.
    pub more: u64,
    /// The number of the last one.
    pub last: u64,
}

/// One thing that is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub about: About,
    /// One word of the list in `docs/notices.md`.
    pub name: &'static str,
    /// For people.
    pub line: String,
    pub detail: Value,
}

impl Event {
    /// How many things it stands for.
    pub(crate) fn things(&self) -> usize {
        match self.is_listed() {
            true => 1,
            false => self.detail["more"].as_u64().unwrap_or(0) as usize,
        }
    }

    /// Whether it is one thing, and no count of others.
    pub(crate) fn is_listed(&self) -> bool {
        self.name != MORE_CHANGES
    }
}

impl Told {
    /// Whether a run that does not begin has been told.
    pub fn is_held(&self) -> bool {
        self.blind.contains_key(NOT_STARTED)
    }

    /// These alarms are known already.
    pub fn with_alarms(mut self, alarms: &[Value]) -> Told {
        self.alarms = alarms.iter().map(known_alarm).collect();
        self
    }

    /// Whether these alarms, and no others, have been told.
    pub fn knows_alarms(&self, alarms: &[Value]) -> bool {
        let now: BTreeMap<String, ToldAlarm> = alarms.iter().map(known_alarm).collect();
        now == self.alarms
    }

    /// What is new, and what has been told then.
    pub fn news(&self, facts: &Facts<'_>) -> (Vec<Event>, Told) {
        let mut told = self.clone();
        let mut events = told.runs(facts);
        let has_new_run = told.run != self.run;
        events.extend(told.changes(facts));
        events.extend(told.health(facts));
        events.extend(told.blindness(facts, has_new_run));
        (events, told)
    }

    fn runs(&mut self, facts: &Facts<'_>) -> Vec<Event> {
        let new = facts.runs.iter().rev().filter(|run| run.number > self.run);
        let events = new.map(run_event).collect();
        let last = facts.runs.iter().map(|run| run.number).max();
        self.run = self.run.max(last.unwrap_or(0));
        events
    }

    fn changes(&mut self, facts: &Facts<'_>) -> Vec<Event> {
        let Some(read) = facts.changes else {
            return Vec::new();
        };
        self.changes = self.changes.max(read.last);
        let mut events: Vec<Event> = read.changes.iter().map(change_event).collect();
        if read.more > 0 {
            events.push(Event {
                about: About::Changes,
                name: MORE_CHANGES,
                line: format!("and {} more", read.more),
                detail: json!({"more": read.more}),
            });
        }
        events
    }

    fn health(&mut self, facts: &Facts<'_>) -> Vec<Event> {
        let Some(alarms) = facts.alarms else {
            return Vec::new();
        };
        let mut events = Vec::new();
        let mut standing = BTreeMap::new();
        for alarm in alarms {
            let (mapping, now) = known_alarm(alarm);
            let before = self.alarms.get(&mapping);
            let name = match before {
                Some(before) if before.raised_at != now.raised_at => Some("layout_changed"),
                Some(before) if before.fields != now.fields => Some("layout_alarm_extended"),
                Some(_) => None,
                None => Some("layout_changed"),
            };
            events.extend(name.map(|name| alarm_event(name, alarm)));
            standing.insert(mapping, now);
        }
        for (mapping, alarm) in &self.alarms {
            if !standing.contains_key(mapping) {
                events.push(Event {
                    about: About::Health,
                    name: "layout_alarm_cleared",
                    line: format!("mapping {mapping}: its alarm is cleared"),
                    detail: json!({"mapping": mapping, "raised_at": alarm.raised_at}),
                });
            }
        }
        self.alarms = standing;
        events
    }

    fn blindness(&mut self, facts: &Facts<'_>, has_new_run: bool) -> Vec<Event> {
        let mut now = match has_new_run {
            true => blindness::judge(&Known {
                runs: facts.runs,
                blind_after: facts.watch.blind_after,
                sites: facts.sites,
                alarms: facts.alarms.unwrap_or_default(),
                standing: &self.standing(),
            }),
            // Only a further run can tell more.
            false => self.standing(),
        };
        now.remove(NOT_STARTED);
        let was_held = self.blind.contains_key(NOT_STARTED);
        if let Some((due_ms, why)) = facts.held {
            let due = crate::iso_time(due_ms);
            let sentence = format!("a run is due since {due} and does not begin: {why}");
            now.insert(NOT_STARTED.into(), sentence);
        }
        let mut events = Vec::new();
        if has_new_run && !was_held {
            events.extend(facts.runs.first().and_then(late_event));
        }
        for (name, why) in &now {
            if !self.blind.contains_key(name) {
                events.push(blind_event("blind", name, why, facts.now_ms));
            }
        }
        for (name, told) in &self.blind {
            if !now.contains_key(name) {
                events.push(blind_event("sees_again", name, &told.why, told.since_ms));
            }
        }
        let kept = now.into_iter().map(|(name, why)| {
            let since_ms = self.blind.get(&name).map(|told| told.since_ms);
            let since_ms = since_ms.unwrap_or(facts.now_ms);
            (name, ToldBlindness { since_ms, why })
        });
        self.blind = kept.collect();
        events
    }

    fn standing(&self) -> BTreeMap<String, String> {
        let standing = self.blind.iter();
        standing
            .map(|(name, told)| (name.clone(), told.why.clone()))
            .collect()
    }
}

fn known_alarm(alarm: &Value) -> (String, ToldAlarm) {
    let word = |key: &str| alarm[key].as_str().unwrap_or_default().to_owned();
    let told = ToldAlarm {
        raised_at: word("layout_changed"),
        fields: word("fields"),
    };
    (word("mapping"), told)
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
    Event {
        about: About::Runs,
        name,
        line: format!(
            "run {}: {how}{why}; {pages} pages, {fields} fields",
            run.number
        ),
        detail: run.told(),
    }
}

fn change_event(change: &Value) -> Event {
    let word = |key: &str| change[key].as_str().unwrap_or_default();
    let (kind, url) = (word("kind"), word("url"));
    let difference = match word("difference") {
        "" => String::new(),
        text => format!("\n{text}"),
    };
    Event {
        about: About::Changes,
        name: "change",
        line: format!("{kind}: {url}{difference}"),
        detail: change.clone(),
    }
}

fn alarm_event(name: &'static str, alarm: &Value) -> Event {
    let word = |key: &str| alarm[key].as_str().unwrap_or_default();
    let (mapping, fields) = (word("mapping"), word("fields"));
    let mut detail = alarm.clone();
    if let Value::Object(detail) = &mut detail {
        // They may be of other applications.
        detail.remove("crawls");
    }
    Event {
        about: About::Health,
        name,
        line: format!("mapping {mapping}: the layout changed, less is found of {fields}"),
        detail,
    }
}

/// A run that has begun long after its time, or for several times that were missed.
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
        about: About::Blindness,
        name: "began_late",
        line,
        detail: run.told(),
    })
}

fn blind_event(name: &'static str, blindness: &str, why: &str, since_ms: i64) -> Event {
    let line = match name {
        "sees_again" => format!("over ({blindness}): {why}"),
        _ => format!("blind ({blindness}): {why}"),
    };
    Event {
        about: About::Blindness,
        name,
        line,
        detail: json!({"blindness": blindness, "why": why, "since": since_ms as f64 / 1_000.0}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        let watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "every 1h"});
        Watch::parse(watch).unwrap()
    }

    fn run(number: u64, pages: u64) -> WatchRun {
        let mut run = WatchRun::begun(number, 0, 0);
        run.ended_ms = Some(1);
        run.how = Some(RunEnd::Finished);
        run.counts.insert("pages".into(), json!(pages));
        run
    }

    fn names(events: &[Event]) -> Vec<&'static str> {
        events.iter().map(|event| event.name).collect()
    }

    #[test]
    fn each_thing_is_told_once_until_it_is_over() {
        let watch = watch();
        let facts = |runs, alarms, held| Facts {
            watch: &watch,
            runs,
            alarms: Some(alarms),
            sites: &[],
            changes: None,
            held,
            now_ms: 5_000,
        };
        let four = [run(4, 0), run(3, 5), run(2, 5), run(1, 5)];
        let alarms = [json!({"mapping": "m", "layout_changed": "t", "fields": "name"})];
        let (events, told) = Told::default().news(&facts(&four, &alarms, None));
        let expected = [
            "run_ended",
            "run_ended",
            "run_ended",
            "run_ended",
            "layout_changed",
            "blind",
        ];
        assert_eq!(names(&events), expected);
        assert_eq!(told.run, 4);
        let (events, same) = told.news(&facts(&four, &alarms, None));
        assert_eq!((names(&events), &same), (vec![], &told));
        let (events, told) = told.news(&facts(&four, &[], Some((1_000, "the disk is full"))));
        assert_eq!(names(&events), ["layout_alarm_cleared", "blind"]);
        assert!(
            events[1].line.contains("the disk is full"),
            "{}",
            events[1].line
        );
        assert_eq!(told.blind.len(), 2);
        let five = [run(5, 5), four[0].clone(), four[1].clone()];
        let (events, told) = told.news(&facts(&five, &[], None));
        assert_eq!(names(&events), ["run_ended", "sees_again", "sees_again"]);
        assert!(told.blind.is_empty());
    }

    #[test]
    fn a_run_that_makes_up_for_others_is_told_as_late() {
        let watch = watch();
        let mut late = run(1, 5);
        late.missed = 3;
        let facts = Facts {
            watch: &watch,
            runs: &[late],
            alarms: None,
            sites: &[],
            changes: None,
            held: None,
            now_ms: 0,
        };
        let (events, _) = Told::default().news(&facts);
        assert_eq!(names(&events), ["run_ended", "began_late"]);
        assert!(
            events[1].line.contains("3 further due times"),
            "{}",
            events[1].line
        );
    }
}
