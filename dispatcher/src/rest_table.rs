//! The rest table: for each reason, how long a site rests before it is tried again.

use serde::{Deserialize, Serialize};
use webfill_wire::RestReason;

/// For each reason, the seconds of the first rest, of the next one if the attempt after it fails, and
/// so on. An empty list: sites never rest for this reason, and the failure ends the task. After the
/// whole list the site's queued tasks are given up; only a `blocked` site goes on resting, until a
/// person wakes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RestTable {
    pub robots: Vec<f64>,
    pub unreachable: Vec<f64>,
    pub dns: Vec<f64>,
    pub busy: Vec<f64>,
    pub blocked: Vec<f64>,
}

impl Default for RestTable {
    /// Trouble of servers mostly passes within minutes, or takes hours. A name that does not resolve
    /// after an hour rarely comes back. A site that blocks is left alone for long.
    fn default() -> Self {
        RestTable {
            robots: vec![60.0, 600.0, 3_600.0, 21_600.0],
            unreachable: vec![60.0, 600.0, 3_600.0, 21_600.0],
            dns: vec![600.0, 3_600.0],
            busy: vec![60.0, 600.0, 3_600.0, 21_600.0],
            blocked: vec![3_600.0, 14_400.0, 86_400.0],
        }
    }
}

/// The longest rest: thirty days, in seconds.
const LONGEST_REST: f64 = 2_592_000.0;

/// The most rests that a reason may have.
const MOST_RESTS: usize = 20;

impl RestTable {
    /// The rests for a reason, in seconds.
    pub fn rests(&self, reason: RestReason) -> &[f64] {
        match reason {
            RestReason::Robots => &self.robots,
            // Neither gets an answer.
            RestReason::Unreachable | RestReason::Tls => &self.unreachable,
            RestReason::Dns => &self.dns,
            RestReason::Busy => &self.busy,
            RestReason::Blocked => &self.blocked,
        }
    }

    /// How long the rest of this index takes; `None` behind the end of the list.
    pub fn rest_ms(&self, reason: RestReason, index: usize) -> Option<i64> {
        let seconds = self.rests(reason).get(index)?;
        Some((seconds * 1_000.0).ceil() as i64)
    }

    /// What is wrong with it, for people.
    pub fn check(&self) -> Result<(), String> {
        for reason in RestReason::ALL {
            let rests = self.rests(*reason);
            let fits = |rest: &f64| (0.0..=LONGEST_REST).contains(rest);
            if rests.len() > MOST_RESTS || !rests.iter().all(fits) {
                return Err(format!(
                    "rests.{reason}: at most {MOST_RESTS} rests, each from 0 to {LONGEST_REST} seconds"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_rests() {
        let table = RestTable {
            dns: vec![1.5, 20.0],
            ..RestTable::default()
        };
        let rests = [0, 1, 2].map(|index| table.rest_ms(RestReason::Dns, index));
        assert_eq!(rests, [Some(1_500), Some(20_000), None]);
        assert_eq!(table.rest_ms(RestReason::Blocked, 0), Some(3_600_000));
    }

    #[test]
    fn an_invalid_table_is_refused() {
        assert_eq!(RestTable::default().check(), Ok(()));
        for wrong in [vec![-1.0], vec![f64::NAN], vec![1e10], vec![1.0; 21]] {
            let table = RestTable {
                busy: wrong,
                ..RestTable::default()
            };
            assert!(table.check().unwrap_err().contains("rests.busy"));
        }
    }
}
