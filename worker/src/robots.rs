//! The robots.txt files that a worker knows, and the course of fetching one (RFC 9309).
//!
//! An origin's file is remembered for an hour, a failure to get it for a minute. Neither
//! [`RobotsFiles`] nor [`RobotsFetch`] performs I/O or reads a clock: the caller hands in the
//! moment and the answers, and makes the requests that [`RobotsFetch`] names. Nothing here
//! survives the process; the shared cache does.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use webfill_store::RobotsEntry;
use webfill_urls::Url;
use webfill_wire::Outcome;

use crate::fetch::Fetched;
use crate::now::Now;
use crate::permits::Denied;
use crate::politeness::Answer;
use crate::robots_rules::RobotsRules;

/// A robots.txt is fetched again after this long.
const LIFETIME: Duration = Duration::from_secs(3_600);

/// After a failure, robots.txt is fetched again after this long.
const UNREACHABLE_LIFETIME: Duration = Duration::from_secs(60);

/// Only the beginning of a file counts (RFC 9309 2.5 requires at least this much).
pub const MOST_BYTES: usize = 500 << 10;

/// RFC 9309 2.3.1.2: at least five redirects are followed.
const MOST_REDIRECTS: usize = 5;

/// Requests that one robots.txt may take.
pub const MOST_REQUESTS: u32 = MOST_REDIRECTS as u32 + 1;

/// Origins remembered by one worker, and the memory that their rules may take together.
const MOST_REMEMBERED: usize = 4_096;
const MOST_REMEMBERED_BYTES: usize = 8 << 20;

/// The name that group lines select us by: the part of the user agent before the slash.
const AGENT_TOKEN: &str = "webfill";

/// The rules of one origin.
#[derive(Debug, Clone)]
pub enum Rules {
    Known(Rc<RobotsRules>),
    /// 5xx or no answer: nothing is allowed for now. Carries the outcome of the origin's pages.
    Unreachable(Outcome),
}

struct Remembered {
    rules: Rules,
    until: Instant,
}

/// The robots.txt files in this worker's memory.
#[derive(Default)]
pub struct RobotsFiles {
    remembered: HashMap<String, Remembered>,
    bytes: usize,
}

impl RobotsFiles {
    /// The rules of an origin, if they are in memory and have not expired.
    pub fn remembered(&self, origin: &str, now: Now) -> Option<Rules> {
        let known = self.remembered.get(origin)?;
        (known.until > now.instant).then(|| known.rules.clone())
    }

    /// Keeps an entry in memory and returns its rules. `unreachable`: how the origin's pages end
    /// if the entry holds no rules.
    pub fn remember(&mut self, entry: &RobotsEntry, unreachable: Outcome, now: Now) -> Rules {
        let lifetime = entry.expires_at_ms.saturating_sub(now.wall_ms).max(0) as u64;
        let rules = rules_of(entry, unreachable);
        let remembered = Remembered {
            rules: rules.clone(),
            until: now.instant + Duration::from_millis(lifetime).min(LIFETIME),
        };
        self.forget(&entry.origin);
        self.bytes += remembered.bytes();
        self.remembered.insert(entry.origin.clone(), remembered);
        self.make_room(now.instant);
        rules
    }

    /// Forgets expired entries first, then any: the shared cache still has them.
    fn make_room(&mut self, now: Instant) {
        if !self.is_full() {
            return;
        }
        let (expired, live): (Vec<_>, Vec<_>) = self
            .remembered
            .iter()
            .partition(|(_, known)| known.until <= now);
        let victims: Vec<String> = expired
            .into_iter()
            .chain(live)
            .map(|(origin, _)| origin.clone())
            .collect();
        for origin in victims {
            if !self.is_full() {
                return;
            }
            self.forget(&origin);
        }
    }

    fn is_full(&self) -> bool {
        self.remembered.len() > MOST_REMEMBERED || self.bytes > MOST_REMEMBERED_BYTES
    }

    fn forget(&mut self, origin: &str) {
        if let Some(known) = self.remembered.remove(origin) {
            self.bytes -= known.bytes();
        }
    }
}

impl Remembered {
    fn bytes(&self) -> usize {
        match &self.rules {
            Rules::Known(rules) => rules.memory_bytes(),
            Rules::Unreachable(_) => 0,
        }
    }
}

/// The answer to one request of a robots.txt fetch, as far as the fetch needs it.
#[derive(Debug, Clone)]
pub struct RobotsResponse {
    pub outcome: Outcome,
    /// The HTTP status, if the answer came in full.
    pub status: Option<u16>,
    pub body: Vec<u8>,
    /// Where a redirect leads, absolute or relative.
    pub redirect: Option<String>,
    /// When the answer began, or the attempt ended without one.
    pub answered_at: Instant,
    pub answer: Answer,
}

impl From<Fetched> for RobotsResponse {
    fn from(fetched: Fetched) -> RobotsResponse {
        RobotsResponse {
            outcome: fetched.outcome,
            status: fetched.status_code.filter(|_| fetched.error.is_none()),
            body: fetched.body,
            redirect: fetched.redirect,
            answered_at: fetched.answered_at,
            answer: fetched.answer,
        }
    }
}

/// One robots.txt being fetched: up to five redirects are followed, each a request of its own that
/// passes the gate.
#[derive(Debug)]
pub struct RobotsFetch {
    origin: String,
    /// The next request; `None` at the end.
    next: Option<Url>,
    redirects_left: usize,
    last: Option<RobotsResponse>,
    denied: Option<Denied>,
}

/// What a robots.txt fetch has found out.
#[derive(Debug)]
pub struct RobotsAnswer {
    /// `None` if the gate denied a request after a redirect.
    pub entry: Option<RobotsEntry>,
    /// Of the last answer.
    pub answered_at: Instant,
    pub answer: Answer,
    /// How the pages of the origin end if there are no rules.
    pub unreachable: Outcome,
}

impl RobotsFetch {
    pub fn new(origin: &str) -> RobotsFetch {
        RobotsFetch {
            origin: origin.to_owned(),
            next: Url::parse(&format!("{origin}/robots.txt")).ok(),
            redirects_left: MOST_REDIRECTS,
            last: None,
            denied: None,
        }
    }

    /// The request to make now; `None` when the fetch is over.
    pub fn next_request(&self) -> Option<&Url> {
        self.next.as_ref()
    }

    /// The answer to the request that [`RobotsFetch::next_request`] named.
    pub fn answered(&mut self, response: Result<RobotsResponse, Denied>) {
        let Some(url) = self.next.take() else { return };
        match response {
            Ok(response) => {
                if self.redirects_left > 0 {
                    self.redirects_left -= 1;
                    self.next = redirect_target(&url, &response);
                }
                self.last = Some(response);
            }
            Err(denied) => self.denied = Some(denied),
        }
    }

    /// What was found out. An error if not even one request was answered.
    pub fn finish(self, now: Now) -> Result<RobotsAnswer, Denied> {
        let response = match (self.last, self.denied) {
            (Some(response), _) => response,
            (None, Some(denied)) => return Err(denied),
            (None, None) => not_an_origin(now),
        };
        Ok(RobotsAnswer {
            answered_at: response.answered_at,
            answer: response.answer,
            unreachable: unreachable_outcome(response.outcome),
            entry: match self.denied {
                None => Some(entry_of(self.origin, response, now)),
                Some(_) => None,
            },
        })
    }
}

/// The origin does not parse as a URL, so no request could be made.
fn not_an_origin(now: Now) -> RobotsResponse {
    RobotsResponse {
        outcome: Outcome::NetworkError,
        status: None,
        body: Vec::new(),
        redirect: None,
        answered_at: now.instant,
        answer: Answer::Silent,
    }
}

fn redirect_target(url: &Url, response: &RobotsResponse) -> Option<Url> {
    let target = response.redirect.as_deref()?;
    webfill_urls::canonical(target, Some(url)).ok()
}

fn entry_of(origin: String, response: RobotsResponse, now: Now) -> RobotsEntry {
    let lifetime = match response.status {
        None | Some(500..) => UNREACHABLE_LIFETIME,
        Some(_) => LIFETIME,
    };
    RobotsEntry {
        origin,
        status: response.status,
        body: response.body,
        fetched_at_ms: now.wall_ms,
        expires_at_ms: now.wall_ms + lifetime.as_millis() as i64,
    }
}

/// If the host itself cannot be reached, its pages end as they would without a robots.txt.
fn unreachable_outcome(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::DnsError | Outcome::TlsError | Outcome::UnsafeAddress => outcome,
        _ => Outcome::RobotsUnreachable,
    }
}

/// RFC 9309 2.3.1: a file is parsed, 4xx (and an endless redirect) allows everything, anything else
/// allows nothing.
fn rules_of(entry: &RobotsEntry, unreachable: Outcome) -> Rules {
    match entry.status {
        Some(200..=299) => Rules::Known(Rc::new(RobotsRules::parse(&entry.body, AGENT_TOKEN))),
        Some(300..=499) => Rules::Known(Rc::new(RobotsRules::parse(b"", AGENT_TOKEN))),
        _ => Rules::Unreachable(unreachable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "http://a.org";

    fn response(status: u16, redirect: Option<&str>) -> RobotsResponse {
        RobotsResponse {
            outcome: Outcome::Ok,
            status: Some(status),
            body: Vec::new(),
            redirect: redirect.map(str::to_owned),
            answered_at: Instant::now(),
            answer: Answer::Served,
        }
    }

    #[test]
    fn five_redirects_are_followed_and_the_sixth_allows_everything() {
        let mut fetch = RobotsFetch::new(ORIGIN);
        let mut requests = 0;
        while let Some(url) = fetch.next_request() {
            requests += 1;
            let target = format!("{url}x");
            fetch.answered(Ok(response(302, Some(&target))));
        }
        assert_eq!(requests, MOST_REQUESTS);
        let entry = fetch.finish(Now::read()).unwrap().entry.unwrap();
        let rules = rules_of(&entry, Outcome::RobotsUnreachable);
        assert!(matches!(rules, Rules::Known(_)));
    }

    #[test]
    fn a_fetch_that_is_denied_after_a_redirect_has_no_entry() {
        let mut fetch = RobotsFetch::new(ORIGIN);
        fetch.answered(Ok(response(301, Some("/elsewhere"))));
        fetch.answered(Err(Denied::NotStarted));
        assert_eq!(fetch.next_request(), None);
        assert!(fetch.finish(Now::read()).unwrap().entry.is_none());
        let mut denied = RobotsFetch::new(ORIGIN);
        denied.answered(Err(Denied::NotStarted));
        assert!(denied.finish(Now::read()).is_err());
    }

    #[test]
    fn a_failure_is_remembered_for_a_minute_and_a_file_for_an_hour() {
        let now = Now::read();
        for (status, lifetime) in [(500, UNREACHABLE_LIFETIME), (404, LIFETIME)] {
            let mut fetch = RobotsFetch::new(ORIGIN);
            fetch.answered(Ok(response(status, None)));
            let entry = fetch.finish(now).unwrap().entry.unwrap();
            let mut files = RobotsFiles::default();
            files.remember(&entry, Outcome::RobotsUnreachable, now);
            let last = Now {
                instant: now.instant + lifetime - Duration::from_millis(1),
                ..now
            };
            assert!(files.remembered(ORIGIN, last).is_some());
            let expired = Now {
                instant: now.instant + lifetime,
                ..now
            };
            assert!(files.remembered(ORIGIN, expired).is_none());
        }
    }
}
