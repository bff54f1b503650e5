//! The access log of the test site: every request with its times, in order of arrival. It uses no code of webfill, and
//! records exactly the bytes that were received.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A request as the server has received it.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The host header in lower case, without its port.
    pub host: String,
    /// The host header exactly as it was received.
    pub host_header: String,
    pub method: String,
    /// The path, including the query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// The protocol: `HTTP/1.1` or `HTTP/2`.
    pub version: &'static str,
    pub tls: bool,
    /// Whether the request target was a whole URL, as in requests to proxies.
    pub proxied: bool,
    pub connection: u64,
    pub accepted_at: Instant,
    /// When the first byte of the request was read.
    pub started_at: Instant,
    /// When the whole head was read.
    pub head_read_at: Instant,
    /// When the last byte was passed to the socket, or when the server noticed that the client had closed the
    /// connection.
    pub ended_at: Option<Instant>,
    /// The status of the answer; `None` if no status was sent.
    pub status: Option<u16>,
    /// The number of bytes of the answer that the socket accepted.
    pub sent_bytes: u64,
    /// Whether the client closed the connection before the answer was complete.
    pub cut_short: bool,
}

impl Visit {
    pub fn is_robots(&self) -> bool {
        self.path == "/robots.txt"
    }

    /// The value of a header, whose name is compared without regard to case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The log that requests are added to. All clones share it.
#[derive(Debug, Clone, Default)]
pub struct AccessLog {
    inner: Arc<(Mutex<Vec<Visit>>, Condvar)>,
}

impl AccessLog {
    fn lock(&self) -> MutexGuard<'_, Vec<Visit>> {
        self.inner
            .0
            .lock()
            .expect("nobody panics while holding the log")
    }

    /// Adds a request whose head has just been read. Returns its number for [`Self::end_visit`].
    pub(super) fn begin_visit(&self, visit: Visit) -> usize {
        let mut visits = self.lock();
        visits.push(visit);
        self.inner.1.notify_all();
        visits.len() - 1
    }

    /// Records how the request ended.
    pub(super) fn end_visit(&self, number: usize, sent_bytes: u64, cut_short: bool) {
        let mut visits = self.lock();
        let visit = &mut visits[number];
        visit.ended_at = Some(Instant::now());
        visit.sent_bytes = sent_bytes;
        visit.cut_short = cut_short;
        self.inner.1.notify_all();
    }

    /// All requests that the server has received so far.
    pub fn visits(&self) -> Visits {
        Visits(self.lock().clone())
    }

    /// Waits until a condition on the log is true, and returns the log. Panics after a minute. The condition is checked
    /// only when the log changes, so it must not depend on anything else.
    pub fn wait_until(&self, what: &str, condition: impl Fn(&Visits) -> bool) -> Visits {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut visits = self.lock();
        loop {
            let now = Visits(visits.clone());
            if condition(&now) {
                return now;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "waited a minute in vain until {what}; seen: {:#?}",
                now.paths()
            );
            visits = self
                .inner
                .1
                .wait_timeout(visits, left)
                .expect("nobody panics while holding the log")
                .0;
        }
    }
}

/// Some requests from the log, in order of arrival.
#[derive(Debug, Clone, Default)]
pub struct Visits(pub Vec<Visit>);

impl Visits {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn filter(&self, keep: impl Fn(&Visit) -> bool) -> Visits {
        Visits(self.0.iter().filter(|visit| keep(visit)).cloned().collect())
    }

    pub fn for_host(&self, host: &str) -> Visits {
        self.filter(|visit| visit.host == host)
    }

    /// The requests for one path, including its query, on any host.
    pub fn for_path(&self, path: &str) -> Visits {
        self.filter(|visit| visit.path == path)
    }

    /// All requests except for those of robots.txt.
    pub fn pages(&self) -> Visits {
        self.filter(|visit| !visit.is_robots())
    }

    pub fn robots(&self) -> Visits {
        self.filter(Visit::is_robots)
    }

    /// The `host/path` of each request, in order of arrival.
    pub fn paths(&self) -> Vec<String> {
        self.0
            .iter()
            .map(|visit| format!("{}{}", visit.host, visit.path))
            .collect()
    }

    pub fn hosts(&self) -> BTreeSet<String> {
        self.0.iter().map(|visit| visit.host.clone()).collect()
    }

    /// For each `host/path`, the number of its requests.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for path in self.paths() {
            *counts.entry(path).or_default() += 1;
        }
        counts
    }

    /// All requests except for lost ones. A lost request got no answer on a kept-alive connection, and was repeated on
    /// another connection. A client may repeat it immediately (RFC 9112, 9.3.1), so it does not count for the delay
    /// between requests.
    pub fn without_lost_requests(&self) -> Visits {
        let is_swallowed = |index: usize, visit: &Visit| {
            let is_reused = self.0[..index]
                .iter()
                .any(|earlier| earlier.connection == visit.connection);
            let again = self.0[index + 1..]
                .iter()
                .find(|later| later.host == visit.host && later.path == visit.path);
            visit.status.is_none()
                && is_reused
                && again.is_some_and(|again| again.connection != visit.connection)
        };
        let visits = self.0.iter().enumerate();
        let kept = visits.filter(|(index, visit)| !is_swallowed(*index, visit));
        Visits(kept.map(|(_, visit)| visit.clone()).collect())
    }

    /// The times between the starts of consecutive requests.
    pub fn gaps(&self) -> Vec<Duration> {
        let starts = self.0.windows(2);
        starts
            .map(|pair| {
                pair[1]
                    .started_at
                    .saturating_duration_since(pair[0].started_at)
            })
            .collect()
    }

    /// The pairs of requests that overlap, as `path / path`: the second request started before the first one had ended.
    pub fn overlaps(&self) -> Vec<String> {
        let mut overlaps = Vec::new();
        for (index, later) in self.0.iter().enumerate() {
            for earlier in &self.0[..index] {
                let over = earlier.ended_at.is_some_and(|end| end <= later.started_at);
                if !over {
                    overlaps.push(format!("{} / {}", earlier.path, later.path));
                }
            }
        }
        overlaps
    }

    /// Panics if two requests to a host were in flight at the same time, or if two pages of a host were requested with
    /// less than `delay` between them. A page may directly follow the request for robots.txt, but not overlap it.
    pub fn assert_polite(&self, delay: Duration) {
        let mut faults = Vec::new();
        for host in self.hosts() {
            let visits = self.for_host(&host);
            faults.extend(
                visits
                    .overlaps()
                    .iter()
                    .map(|pair| format!("{host}: overlap of {pair}")),
            );
            let pages = visits.without_lost_requests().pages();
            for (gap, pair) in pages.gaps().iter().zip(pages.0.windows(2)) {
                if *gap < delay {
                    faults.push(format!(
                        "{host}: {gap:?} between {} and {}",
                        pair[0].path, pair[1].path
                    ));
                }
            }
        }
        assert!(
            faults.is_empty(),
            "not polite (delay {delay:?}):\n{}",
            faults.join("\n")
        );
    }
}
