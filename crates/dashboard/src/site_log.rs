//! A log of sites' changes of state, as the dashboard has seen them. It keeps some thousand changes in a file of JSON
//! lines in the state folder, or without one in memory. The fleet knows only the current states.
//!
//! A change that lasts for less than the time between two readings is missed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::line_file::{LineFile, Writing};

/// How many changes are kept.
const MOST: usize = 5_000;

const FILE: &str = "dashboard-sites.jsonl";

/// A change of a site's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) site: String,
    pub(crate) at_ms: i64,
    pub(crate) state: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// Why the site has the new state, as the fleet reports it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) evidence: Value,
}

impl Change {
    pub(crate) fn new_open(site: &str, at_ms: i64) -> Change {
        Change {
            site: site.to_owned(),
            at_ms,
            state: OPEN.to_owned(),
            reason: String::new(),
            evidence: Value::Null,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct SiteLog {
    changes: VecDeque<Change>,
    /// The sites that are in trouble now, each with its state and the reason.
    troubled: BTreeMap<String, (String, String)>,
    file: LineFile,
}

const OPEN: &str = "open";

impl SiteLog {
    /// Reads the changes that are stored in the state folder.
    pub(crate) fn open(state: Option<&Path>) -> SiteLog {
        let (file, changes) = LineFile::open(state, FILE, MOST);
        let mut log = SiteLog {
            file,
            ..SiteLog::default()
        };
        for change in changes {
            log.add(change);
        }
        log
    }

    fn add(&mut self, change: Change) {
        match change.state == OPEN {
            true => self.troubled.remove(&change.site),
            false => {
                let now = (change.state.clone(), change.reason.clone());
                self.troubled.insert(change.site.clone(), now)
            }
        };
        self.changes.push_back(change);
        if self.changes.len() > MOST {
            self.changes.pop_front();
        }
    }

    /// Compares the fleet's list of sites in trouble with the known states, and records the changes. If `is_whole`, the
    /// list is complete, so a site that is missing from it has recovered.
    pub(crate) fn record_sites(
        &mut self,
        listed: &[Value],
        is_whole: bool,
        now_ms: i64,
    ) -> Writing {
        let mut changes = Vec::new();
        let mut seen = BTreeSet::new();
        for site in listed {
            let text = |key: &str| site[key].as_str().unwrap_or_default().to_owned();
            let (name, now) = (text("site"), (text("state"), text("reason")));
            if now.0 == OPEN {
                continue;
            }
            if self.troubled.get(&name) != Some(&now) {
                let since = site["since"].as_f64().map(|since| (since * 1_000.0) as i64);
                changes.push(Change {
                    site: name.clone(),
                    at_ms: since.unwrap_or(now_ms).min(now_ms),
                    state: now.0,
                    reason: now.1,
                    evidence: site["evidence"].clone(),
                });
            }
            seen.insert(name);
        }
        if is_whole {
            let recovered = self.troubled.keys().filter(|name| !seen.contains(*name));
            changes.extend(recovered.map(|name| Change::new_open(name, now_ms)));
        }
        for change in &changes {
            self.add(change.clone());
        }
        self.file.prepare_write(&changes, self.changes.iter())
    }

    /// The changes of a site, the latest first.
    pub(crate) fn changes_of_site(&self, site: &str, most: usize) -> Vec<Change> {
        let own = self.changes.iter().rev();
        own.filter(|change| change.site == site)
            .take(most)
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Records a list of sites. Returns whether the state of any site has changed.
    fn record_and_detect_change(
        log: &mut SiteLog,
        listed: &[Value],
        is_whole: bool,
        now_ms: i64,
    ) -> bool {
        let last = |log: &SiteLog| log.changes.back().cloned();
        let (before, count) = (last(log), log.changes.len());
        log.record_sites(listed, is_whole, now_ms).write();
        log.changes.len() > count || last(log) != before
    }

    fn site(name: &str, state: &str, reason: &str) -> Value {
        json!({"site": name, "state": state, "reason": reason, "since": 2.0,
            "evidence": {"sign": "403", "url": "http://a.org/"}})
    }

    #[test]
    fn a_sites_states_are_kept_as_they_change_and_outlive_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = SiteLog::open(Some(folder.path()));
        let blocked = [site("a.org", "backing_off", "blocked")];
        assert!(record_and_detect_change(&mut log, &blocked, true, 5_000));
        assert!(
            !record_and_detect_change(&mut log, &blocked, true, 6_000),
            "nothing has changed"
        );
        let mut log = SiteLog::open(Some(folder.path()));
        assert!(
            !record_and_detect_change(&mut log, &blocked, true, 7_000),
            "it is known"
        );
        assert!(record_and_detect_change(
            &mut log,
            &[site("a.org", "unreachable", "dns")],
            true,
            8_000
        ));
        assert!(
            !record_and_detect_change(&mut log, &[], false, 9_000),
            "a part of the list says nothing"
        );
        assert!(record_and_detect_change(&mut log, &[], true, 10_000));
        let own = SiteLog::open(Some(folder.path())).changes_of_site("a.org", 10);
        let reported: Vec<(i64, &str, &str)> = own
            .iter()
            .map(|one| (one.at_ms, one.state.as_str(), one.reason.as_str()))
            .collect();
        assert_eq!(
            reported,
            [
                (10_000, "open", ""),
                (2_000, "unreachable", "dns"),
                (2_000, "backing_off", "blocked"),
            ]
        );
        assert_eq!(own[2].evidence["sign"], "403");
        assert!(SiteLog::default().changes_of_site("a.org", 10).is_empty());
    }

    #[test]
    fn the_log_is_bounded_in_memory_and_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = SiteLog::open(Some(folder.path()));
        let all = |state: &str| -> Vec<Value> {
            (0..1_000)
                .map(|n| site(&format!("s{n}.org"), state, "dns"))
                .collect()
        };
        for n in 0..24 {
            let state = ["backing_off", "unreachable"][n % 2];
            assert!(record_and_detect_change(&mut log, &all(state), true, 5_000));
        }
        assert_eq!(log.changes.len(), MOST);
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(text.lines().count() <= 2 * MOST);
    }
}
