//! The retry table: for each kind of failure, the waits before the retries.

use serde::{Deserialize, Serialize};
use webfill_wire::{Outcome, TaskDone, is_rate_limited};

/// For each kind of failure, the seconds to wait before each retry; an empty list: no retry. The failed attempts of a
/// task are counted over all kinds together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryTable {
    pub timeout: Vec<f64>,
    pub network_error: Vec<f64>,
    pub dns_error: Vec<f64>,
    pub tls_error: Vec<f64>,
    pub robots_unreachable: Vec<f64>,
    /// The waits after responses with this HTTP status, or with another status of the same meaning.
    pub http_429: Vec<f64>,
    pub http_500: Vec<f64>,
    pub http_502: Vec<f64>,
    pub http_503: Vec<f64>,
    pub http_504: Vec<f64>,
}

impl Default for RetryTable {
    /// Time-outs and network errors mostly pass within minutes, DNS errors and overload later. A bad certificate, or
    /// a page with an internal server error, mostly stays so and is not retried.
    fn default() -> Self {
        RetryTable {
            timeout: vec![60.0, 600.0, 3_600.0],
            network_error: vec![60.0, 600.0, 3_600.0],
            dns_error: vec![300.0, 3_600.0],
            tls_error: Vec::new(),
            robots_unreachable: Vec::new(),
            http_429: vec![300.0, 3_600.0],
            http_500: Vec::new(),
            http_502: vec![60.0, 600.0],
            http_503: vec![60.0, 600.0, 3_600.0],
            http_504: vec![60.0, 600.0],
        }
    }
}

/// The longest wait: thirty days, in seconds.
const LONGEST_WAIT: f64 = 2_592_000.0;

/// The maximum number of retries for one kind.
const MOST_RETRIES: usize = 20;

impl RetryTable {
    /// The waits before the retries of a failure, in seconds; empty if it is not retried. A status that is otherwise
    /// final is retried if the server says when to come again.
    pub fn waits_after(&self, done: &TaskDone) -> &[f64] {
        match (self.waits(done.outcome, done.status_code), done.status_code) {
            ([], Some(500..=599)) if is_rate_limited(done) => &self.http_503,
            ([], Some(_)) if is_rate_limited(done) => &self.http_429,
            (waits, _) => waits,
        }
    }

    fn waits(&self, outcome: Outcome, status: Option<u16>) -> &[f64] {
        if let (Outcome::HttpError, Some(status)) = (outcome, status) {
            return self.waits_of_status(status);
        }
        let kinds = self.waits_by_kind();
        let own = kinds
            .into_iter()
            .find(|(kind, _)| *kind == outcome.as_str());
        own.map_or(&[], |(_, waits)| waits)
    }

    /// The waits for a status. A status that means the same as one in the table is treated like it. These are
    /// Cloudflare's statuses for an unreachable server (520 to 525, 527, 530), and statuses of proxies that timed out
    /// (598, 599). Servers report with 421 a request on a connection for another server, with 408 a slow request, and
    /// with 460 or 499 a cancelled one. They report with 425 a request that came too early, and with 509 or 529 too
    /// many requests.
    fn waits_of_status(&self, status: u16) -> &[f64] {
        match status {
            408 | 460 | 499 => &self.timeout,
            429 => &self.http_429,
            500 => &self.http_500,
            421 | 502 | 520 | 521 | 523 | 525 | 527 | 530 => &self.http_502,
            425 | 503 | 509 | 529 => &self.http_503,
            504 | 522 | 524 | 598 | 599 => &self.http_504,
            _ => &[],
        }
    }

    /// Checks the table. The error is a message for people.
    pub fn check(&self) -> Result<(), String> {
        for (kind, waits) in self.waits_by_kind() {
            let fits = |wait: &f64| (0.0..=LONGEST_WAIT).contains(wait);
            if waits.len() > MOST_RETRIES || !waits.iter().all(fits) {
                return Err(format!(
                    "retries.{kind}: at most {MOST_RETRIES} waits, each from 0 to {LONGEST_WAIT} seconds"
                ));
            }
        }
        Ok(())
    }

    fn waits_by_kind(&self) -> [(&'static str, &[f64]); 10] {
        [
            ("timeout", &self.timeout),
            ("network_error", &self.network_error),
            ("dns_error", &self.dns_error),
            ("tls_error", &self.tls_error),
            ("robots_unreachable", &self.robots_unreachable),
            ("http_429", &self.http_429),
            ("http_500", &self.http_500),
            ("http_502", &self.http_502),
            ("http_503", &self.http_503),
            ("http_504", &self.http_504),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_waits() {
        let table = RetryTable {
            timeout: vec![1.5, 20.0],
            ..RetryTable::default()
        };
        assert_eq!(table.waits(Outcome::Timeout, None), [1.5, 20.0]);
        let busy = table.waits(Outcome::HttpError, Some(503));
        assert_eq!(busy, [60.0, 600.0, 3_600.0]);
        for (status, like) in [
            (421, 502),
            (509, 503),
            (520, 502),
            (521, 502),
            (522, 504),
            (524, 504),
            (525, 502),
            (529, 503),
            (530, 502),
            (598, 504),
            (599, 504),
        ] {
            let waits = table.waits(Outcome::HttpError, Some(status));
            assert_eq!(
                waits,
                table.waits(Outcome::HttpError, Some(like)),
                "{status}"
            );
        }
        for late in [408, 460, 499] {
            let waits = table.waits(Outcome::HttpError, Some(late));
            assert_eq!(waits, [1.5, 20.0], "{late}");
        }
        for final_one in [404, 403, 500, 501, 505, 526] {
            let waits = table.waits(Outcome::HttpError, Some(final_one));
            assert!(waits.is_empty(), "{final_one}");
        }
        assert!(table.waits(Outcome::Ok, Some(200)).is_empty());
    }

    #[test]
    fn an_invalid_table_is_refused() {
        assert_eq!(RetryTable::default().check(), Ok(()));
        for wrong in [vec![-1.0], vec![f64::NAN], vec![1e10], vec![1.0; 21]] {
            let table = RetryTable {
                dns_error: wrong,
                ..RetryTable::default()
            };
            assert!(table.check().unwrap_err().contains("retries.dns_error"));
        }
    }
}
