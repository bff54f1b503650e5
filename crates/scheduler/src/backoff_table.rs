//! The backoff table: for each reason, how long a site backs off before it is tried again.

use serde::{Deserialize, Serialize};
use webfill_wire::BackoffReason;

/// For each reason, the durations in seconds of a site's successive backoffs. After each of them one attempt is made;
/// if it fails, the next one begins. With an empty list sites never back off for this reason, and the failure ends the
/// task. After the whole list the site's queued tasks end without a request. Only a `blocked` site keeps backing off,
/// until a person resumes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackoffTable {
    pub robots: Vec<f64>,
    pub unreachable: Vec<f64>,
    pub dns: Vec<f64>,
    pub busy: Vec<f64>,
    pub blocked: Vec<f64>,
}

impl Default for BackoffTable {
    /// The default durations: server trouble mostly passes within minutes, or takes hours. A name that does not resolve
    /// after an hour rarely comes back. A site that blocks is left alone for long.
    fn default() -> Self {
        BackoffTable {
            robots: vec![60.0, 600.0, 3_600.0, 21_600.0],
            unreachable: vec![60.0, 600.0, 3_600.0, 21_600.0],
            dns: vec![600.0, 3_600.0],
            busy: vec![60.0, 600.0, 3_600.0, 21_600.0],
            blocked: vec![3_600.0, 14_400.0, 86_400.0],
        }
    }
}

/// The longest backoff: thirty days, in seconds.
const LONGEST_BACKOFF: f64 = 2_592_000.0;

/// The maximum number of backoffs for one reason.
const MOST_BACKOFFS: usize = 20;

impl BackoffTable {
    /// The backoffs for a reason, in seconds.
    pub fn backoff_seconds(&self, reason: BackoffReason) -> &[f64] {
        match reason {
            BackoffReason::Robots => &self.robots,
            // In both cases the site gives no answer, so they share a list.
            BackoffReason::Unreachable | BackoffReason::Tls => &self.unreachable,
            BackoffReason::Dns => &self.dns,
            BackoffReason::Busy => &self.busy,
            BackoffReason::Blocked => &self.blocked,
        }
    }

    /// The duration of the backoff with this index; `None` beyond the end of the list.
    pub fn backoff_ms(&self, reason: BackoffReason, index: usize) -> Option<i64> {
        let seconds = self.backoff_seconds(reason).get(index)?;
        Some((seconds * 1_000.0).ceil() as i64)
    }

    /// Checks the table. The error is a message for people.
    pub fn check(&self) -> Result<(), String> {
        for reason in BackoffReason::ALL {
            let backoff = self.backoff_seconds(*reason);
            let fits = |rest: &f64| (0.0..=LONGEST_BACKOFF).contains(rest);
            if backoff.len() > MOST_BACKOFFS || !backoff.iter().all(fits) {
                return Err(format!(
                    "backoff.{reason}: at most {MOST_BACKOFFS} waits, each from 0 to {LONGEST_BACKOFF} seconds"
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
    fn each_reason_has_its_backoffs() {
        let table = BackoffTable {
            dns: vec![1.5, 20.0],
            ..BackoffTable::default()
        };
        let backoff = [0, 1, 2].map(|index| table.backoff_ms(BackoffReason::Dns, index));
        assert_eq!(backoff, [Some(1_500), Some(20_000), None]);
        assert_eq!(table.backoff_ms(BackoffReason::Blocked, 0), Some(3_600_000));
    }

    #[test]
    fn an_invalid_table_is_refused() {
        assert_eq!(BackoffTable::default().check(), Ok(()));
        for wrong in [vec![-1.0], vec![f64::NAN], vec![1e10], vec![1.0; 21]] {
            let table = BackoffTable {
                busy: wrong,
                ..BackoffTable::default()
            };
            assert!(table.check().unwrap_err().contains("backoff.busy"));
        }
    }
}
