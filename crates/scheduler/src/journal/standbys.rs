//! How far the dispatchers that stand by are behind the one that serves.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::Survey;

/// A dispatcher that has reported within this time stands by.
const PRESENT_MS: u64 = 10_000;

/// The maximum number of entries in [`AppendTimes`].
const MOST_TIMES: usize = 1_200;

/// Times, by the clock of the serving dispatcher, each with the number of the last record at that time.
#[derive(Debug, Default)]
pub struct AppendTimes(VecDeque<(u64, u64)>);

/// A dispatcher that stands by, as of its last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandbyReport {
    pub name: String,
    /// The last record that the standby has applied.
    pub record: u64,
    /// The number of records that the standby had not applied, and how long the oldest of them had been in the journal.
    pub behind_records: u64,
    pub behind_ms: u64,
    pub seen_ago_ms: u64,
}

/// The dispatchers of a fleet, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandbysReport {
    /// The last record of the journal.
    pub record: u64,
    pub epoch: u64,
    pub standbys: Vec<StandbyReport>,
}

impl AppendTimes {
    /// Notes the last number that is in the journal now.
    pub fn note_last_number(&mut self, number: u64, now_ms: u64) {
        self.0.push_back((now_ms, number));
        if self.0.len() > MOST_TIMES {
            self.0.pop_front();
        }
    }

    /// How many records a dispatcher was behind if this record was the last that it had applied at that time, and for
    /// how long.
    fn lag_of(&self, record: u64, at_ms: u64) -> (u64, u64) {
        let known = self.0.iter().take_while(|(time_ms, _)| *time_ms <= at_ms);
        let missed: Vec<&(u64, u64)> = known.filter(|(_, last)| *last > record).collect();
        match (missed.first(), missed.last()) {
            (Some((since_ms, _)), Some((_, last))) => (last - record, at_ms - since_ms),
            _ => (0, 0),
        }
    }

    /// The dispatchers that stand by, as a survey has just shown them. `own`: the instance that serves.
    pub fn standbys(&self, survey: &Survey, own: u64, now_ms: u64) -> Vec<StandbyReport> {
        let others = survey
            .dispatchers
            .iter()
            .filter(|one| one.report.instance != own);
        let report = others.map(|one| {
            let record = one.report.record;
            let at_ms = now_ms.saturating_sub(one.seen_ago_ms);
            let (behind_records, behind_ms) = self.lag_of(record, at_ms);
            StandbyReport {
                name: one.report.name.clone(),
                record,
                behind_records,
                behind_ms,
                seen_ago_ms: one.seen_ago_ms,
            }
        });
        report.collect()
    }
}

impl StandbysReport {
    /// The dispatchers that have reported recently.
    pub fn present_dispatchers(&self) -> impl Iterator<Item = &StandbyReport> {
        let standbys = self.standbys.iter();
        standbys.filter(|standby| standby.seen_ago_ms < PRESENT_MS)
    }

    /// The standby that is least behind, so that it could take over first.
    pub fn least_behind_standby(&self) -> Option<&StandbyReport> {
        self.present_dispatchers()
            .min_by_key(|standby| standby.behind_records)
    }

    /// The report as `status` shows it.
    pub fn status_json(&self) -> Value {
        let standbys = self.standbys.iter().map(|standby| {
            json!({
                "name": standby.name,
                "record": standby.record,
                "behind_records": standby.behind_records,
                "behind_s": standby.behind_ms as f64 / 1_000.0,
                "seen_ago_s": standby.seen_ago_ms as f64 / 1_000.0,
            })
        });
        json!({
            "record": self.record,
            "epoch": self.epoch,
            "standbys": standbys.collect::<Vec<Value>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_is_behind_since_the_first_record_that_it_had_not_applied() {
        let mut times = AppendTimes::default();
        for (now_ms, number) in [(1_000, 10), (2_000, 20), (3_000, 20), (4_000, 30)] {
            times.note_last_number(number, now_ms);
        }
        assert_eq!(times.lag_of(30, 4_500), (0, 0));
        assert_eq!(times.lag_of(31, 4_500), (0, 0));
        assert_eq!(times.lag_of(20, 4_500), (10, 500));
        assert_eq!(times.lag_of(20, 3_999), (0, 0));
        assert_eq!(times.lag_of(12, 3_500), (8, 1_500));
        assert_eq!(times.lag_of(0, 500), (0, 0));
    }
}
