//! Remembers the robots.txt files of origins, and fetches them (RFC 9309).
//!
//! An origin's file is fresh for an hour and is then fetched again. While the fetch fails, the old file applies until
//! it is a day old. RFC 9309 2.3.1.4 forbids everything while a robots.txt is unreachable, and lets a crawler "continue
//! to use a cached copy"; 2.4 bounds the age of a copy to 24 hours. So the last good file applies for a day after its
//! fetch, and then everything is forbidden.
//!
//! Failures are not remembered. If no older file applies, the task ends. The next task of the site, after the site's
//! delay, requests the file again.
//!
//! Neither [`RobotsFiles`] nor [`RobotsFetch`] performs I/O or reads a clock: the caller passes in the moment and the
//! answers, and makes the requests that [`RobotsFetch`] names. Nothing in this module survives the process; files in
//! the shared cache do.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use webfill_store::{ROBOTS_KEPT_MS, RobotsEntry};
use webfill_urls::{Url, origin};
use webfill_wire::{Evidence, Outcome};

use crate::fetch::Fetched;
use crate::now::Now;
use crate::permits::Denied;
use crate::politeness::Answer;
use crate::robots_rules::{self, RobotsRules};

/// A robots.txt is fetched again when it is older than this.
const LIFETIME: Duration = Duration::from_secs(3_600);

/// While an older file applies because a new one could not be fetched, the fetch is retried after this long.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(300);

/// Only the beginning of a file counts (RFC 9309 2.5 requires at least this much).
pub const MOST_BYTES: usize = 500 << 10;

/// How many redirects are followed. RFC 9309 2.3.1.2 demands at least five.
const MOST_REDIRECTS: usize = 5;

/// How many origins a worker remembers, and the memory for the rules of all of them.
const MOST_REMEMBERED: usize = 4_096;
const MOST_REMEMBERED_BYTES: usize = 8 << 20;

/// The name of this crawler in the `User-agent` lines of robots.txt: the part of the user agent before the slash.
const AGENT_TOKEN: &str = "webfill";

/// The robots.txt rules of one origin.
pub type Rules = Rc<RobotsRules>;

struct CachedRules {
    rules: Rules,
    /// When robots.txt may be requested again.
    until: Instant,
    /// When the rules stop applying if a new file cannot be fetched.
    kept_until: Instant,
}

/// The robots.txt files in the worker's memory.
#[derive(Default)]
pub struct RobotsFiles {
    remembered: HashMap<String, CachedRules>,
    bytes: usize,
}

impl RobotsFiles {
    /// The rules of an origin whose robots.txt need not be requested now.
    pub fn rules_in_force(&self, origin: &str, now: Now) -> Option<Rules> {
        let known = self.remembered.get(origin)?;
        (known.until > now.instant).then(|| Rc::clone(&known.rules))
    }

    /// Remembers an entry of the cache, unless a later one is known. Returns its rules if it is fresh.
    pub fn remember(&mut self, entry: &RobotsEntry, now: Now) -> Option<Rules> {
        let rules = rules_from_entry(entry)?;
        let after = |at_ms: i64, most: Duration| {
            let wait_ms = at_ms.saturating_sub(now.wall_ms).max(0) as u64;
            now.instant + Duration::from_millis(wait_ms).min(most)
        };
        let kept_ms = entry.fetched_at_ms.saturating_add(ROBOTS_KEPT_MS);
        let kept_until = after(kept_ms, Duration::from_millis(ROBOTS_KEPT_MS as u64));
        let is_fresh = entry.is_fresh(now.wall_ms);
        let before = self.remembered.get(&entry.origin);
        if !is_fresh && before.is_some_and(|before| before.kept_until > kept_until) {
            return None;
        }
        let remembered = CachedRules {
            rules: Rc::clone(&rules),
            until: after(entry.expires_at_ms, LIFETIME),
            kept_until,
        };
        self.insert(&entry.origin, remembered, now);
        is_fresh.then_some(rules)
    }

    /// Returns the rules of the last good file of an origin whose robots.txt could not be fetched, if that file is not
    /// too old. The rules apply until the next attempt.
    pub fn fall_back(&mut self, origin: &str, now: Now) -> Option<Rules> {
        let known = self.remembered.get_mut(origin)?;
        if known.kept_until <= now.instant {
            return None;
        }
        known.until = known.kept_until.min(now.instant + TRY_AGAIN_AFTER);
        Some(Rc::clone(&known.rules))
    }

    /// Notes that the robots.txt of an origin redirects to that of another origin. The target's rules, if known, apply
    /// to both.
    pub fn follow_redirect(&mut self, origin: &str, target: &str, now: Now) -> Option<Rules> {
        let rules = self.rules_in_force(target, now)?;
        let known = self.remembered.get(target)?;
        let remembered = CachedRules {
            rules: Rc::clone(&rules),
            ..*known
        };
        self.insert(origin, remembered, now);
        Some(rules)
    }

    fn insert(&mut self, origin: &str, remembered: CachedRules, now: Now) {
        self.forget(origin);
        self.bytes += remembered.rules.memory_bytes();
        self.remembered.insert(origin.to_owned(), remembered);
        self.make_room(now.instant);
    }

    /// Makes room for a further entry. Forgets expired entries first, then any others; the shared cache still has
    /// those.
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
            self.bytes -= known.rules.memory_bytes();
        }
    }
}

/// The answer to one request of a robots.txt fetch, reduced to what the fetch needs.
#[derive(Debug, Clone)]
pub struct RobotsResponse {
    pub outcome: Outcome,
    /// The HTTP status; `None` if there was no complete answer.
    pub status: Option<u16>,
    pub body: Vec<u8>,
    /// The target of a redirect, absolute or relative.
    pub redirect: Option<String>,
    /// The error in words, for logs and users.
    pub error: Option<String>,
    /// Whether this machine has no route to the host; see [`Evidence`].
    pub no_route: bool,
    /// When the answer began, or when the attempt ended without one.
    pub answered_at: Instant,
    pub answer: Answer,
}

impl RobotsResponse {
    /// Whether the answer has rules. An answer of a rate limiter has none, whatever its status.
    fn is_usable(&self) -> bool {
        !self.answer.asks_to_wait() && has_rules(self.status, &self.body)
    }
}

impl From<Fetched> for RobotsResponse {
    fn from(fetched: Fetched) -> RobotsResponse {
        RobotsResponse {
            outcome: fetched.outcome,
            status: fetched.status_code.filter(|_| fetched.error.is_none()),
            body: fetched.body,
            redirect: fetched.redirect,
            error: fetched.error,
            no_route: fetched.no_route,
            answered_at: fetched.answered_at,
            answer: fetched.answer,
        }
    }
}

/// A robots.txt being fetched. Up to five redirects are followed, each with a request of its own.
#[derive(Debug)]
pub struct RobotsFetch {
    origin: String,
    /// The URL of the next request; `None` when the fetch has ended.
    next: Option<Url>,
    redirects_left: usize,
    /// The URL that was requested last, with the answer.
    last: Option<(Url, RobotsResponse)>,
    denied: Option<Denied>,
    /// The target of a redirect that was not requested because another worker owns its site.
    anothers: Option<Url>,
}

/// The result of a robots.txt fetch.
#[derive(Debug)]
pub enum RobotsAnswer {
    /// The file, as an entry for the origin; if redirects led to the robots.txt of another origin, also for that one.
    Files(Vec<RobotsEntry>),
    /// The file was unavailable: the outcome for pages of the origin, and the evidence.
    Unreachable(Outcome, Evidence),
    /// The gate denied a request.
    Denied(Denied),
}

impl RobotsFetch {
    pub fn new(origin: &str) -> RobotsFetch {
        RobotsFetch {
            origin: origin.to_owned(),
            next: Url::parse(&format!("{origin}/robots.txt")).ok(),
            redirects_left: MOST_REDIRECTS,
            last: None,
            denied: None,
            anothers: None,
        }
    }

    /// A fetch that is over before it begins, because the rules are known.
    pub fn needless() -> RobotsFetch {
        RobotsFetch {
            origin: String::new(),
            next: None,
            redirects_left: 0,
            last: None,
            denied: None,
            anothers: None,
        }
    }

    /// The request to make now; `None` when the fetch is over.
    pub fn next_request(&self) -> Option<&Url> {
        self.next.as_ref()
    }

    /// Whether a redirect has been followed.
    pub fn has_followed_redirect(&self) -> bool {
        self.last.is_some()
    }

    /// Whether the fetch has ended without a file.
    pub fn has_failed(&self) -> bool {
        let last = self.last.as_ref();
        self.next.is_none() && !last.is_some_and(|(url, response)| is_final(url, response))
    }

    /// The origin whose robots.txt the next request is for; `None` if it is for another URL, or there is none.
    pub fn origin_of_next_robots_txt(&self) -> Option<String> {
        let url = self.next.as_ref()?;
        is_robots_txt(url).then(|| origin(url))
    }

    /// Takes the answer to the request that [`RobotsFetch::next_request`] named.
    pub fn note_response(&mut self, response: Result<RobotsResponse, Denied>) {
        let Some(url) = self.next.take() else { return };
        match response {
            Ok(response) => {
                if self.redirects_left > 0 {
                    self.redirects_left -= 1;
                    self.next = redirect_target(&url, &response);
                }
                self.last = Some((url, response));
            }
            Err(denied) => self.denied = Some(denied),
        }
    }

    /// Notes that the request that [`RobotsFetch::next_request`] named is not made: another worker owns the site of the
    /// redirect's target, and would not know of the request.
    pub fn skip_foreign_request(&mut self) {
        self.anothers = self.next.take();
    }

    /// Returns the result of the fetch, once there is no next request.
    pub fn finish(&mut self, now: Now) -> RobotsAnswer {
        if let Some(url) = &self.anothers {
            // The origin answered with a redirect, so neither the origin nor this machine is in trouble.
            let status_code = self.last.as_ref().and_then(|(_, response)| response.status);
            let evidence = Evidence {
                url: url.to_string(),
                status_code,
                sign: String::from("robots.txt is at a site that another worker is crawling"),
                no_route: false,
            };
            return RobotsAnswer::Unreachable(Outcome::RobotsUnreachable, evidence);
        }
        match (self.last.take(), self.denied) {
            (Some(_), Some(_)) => RobotsAnswer::Denied(Denied::CutShort),
            (None, Some(denied)) => RobotsAnswer::Denied(denied),
            (Some((url, response)), None) if is_final(&url, &response) => {
                RobotsAnswer::Files(self.make_entries(&url, response, now))
            }
            (Some((url, response)), None) => {
                let outcome = unreachable_outcome(response.outcome);
                RobotsAnswer::Unreachable(outcome, make_evidence(&url, response))
            }
            // The origin is not a valid URL, so nothing was requested.
            (None, None) => RobotsAnswer::Unreachable(
                Outcome::RobotsUnreachable,
                Evidence {
                    url: self.origin.clone(),
                    status_code: None,
                    sign: String::from("not a web address"),
                    no_route: false,
                },
            ),
        }
    }

    fn make_entries(&self, url: &Url, response: RobotsResponse, now: Now) -> Vec<RobotsEntry> {
        let target = origin(url);
        let is_targets_own = is_robots_txt(url) && !matches!(response.status, Some(300..=399));
        let entry = RobotsEntry {
            origin: self.origin.clone(),
            status: response.status,
            body: response.body,
            fetched_at_ms: now.wall_ms,
            expires_at_ms: now.wall_ms + LIFETIME.as_millis() as i64,
        };
        let of_target = (is_targets_own && target != self.origin).then(|| RobotsEntry {
            origin: target,
            ..entry.clone()
        });
        std::iter::once(entry).chain(of_target).collect()
    }
}

/// Whether a URL is its origin's robots.txt.
pub fn is_robots_txt(url: &Url) -> bool {
    url.path() == "/robots.txt" && url.query().is_none()
}

/// Whether the last answer of a fetch gives rules. A redirect beyond the limit gives rules (everything is allowed). A
/// redirect without a valid target gives none, because the file may be anywhere.
fn is_final(url: &Url, response: &RobotsResponse) -> bool {
    let leads_nowhere =
        is_redirect_status(response.status) && redirect_target(url, response).is_none();
    response.is_usable() && !leads_nowhere
}

fn is_redirect_status(status: Option<u16>) -> bool {
    matches!(status, Some(301 | 302 | 303 | 307 | 308))
}

fn redirect_target(url: &Url, response: &RobotsResponse) -> Option<Url> {
    let target = response.redirect.as_deref()?;
    webfill_urls::canonical_url(target, Some(url)).ok()
}

/// The outcome of pages whose robots.txt is unreachable. If the host itself cannot be reached, its pages end as they
/// would without a robots.txt.
fn unreachable_outcome(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::DnsError | Outcome::TlsError | Outcome::UnsafeAddress => outcome,
        _ => Outcome::RobotsUnreachable,
    }
}

fn make_evidence(url: &Url, response: RobotsResponse) -> Evidence {
    let sign = match (response.error, response.status) {
        (Some(error), _) => error,
        (None, Some(200 | 201 | 203 | 204)) => String::from("robots.txt is not readable text"),
        (None, Some(status)) => format!("robots.txt returned {status}"),
        (None, None) => String::from("no answer for robots.txt"),
    };
    Evidence {
        url: url.to_string(),
        status_code: response.status,
        sign,
        no_route: response.no_route,
    }
}

/// The rules of an entry of the cache. By RFC 9309 2.3.1, a file is parsed, a status 4xx (or an endless redirect)
/// allows everything, and anything else allows nothing.
fn rules_from_entry(entry: &RobotsEntry) -> Option<Rules> {
    if !has_rules(entry.status, &entry.body) {
        return None;
    }
    let file = match entry.status {
        Some(200..=299) => entry.body.as_slice(),
        _ => b"",
    };
    Some(Rc::new(RobotsRules::parse(file, AGENT_TOKEN)))
}

/// Whether an answer has rules. The statuses 408, 425 and 429 come from a busy server and give none. A file that cannot
/// be decoded gives none, either: it would seem to allow everything.
fn has_rules(status: Option<u16>, body: &[u8]) -> bool {
    match status {
        // With these statuses, the body is not the file. 202 means that the file may come later. The others belong to
        // requests that were not made: for a part of the file (206), its changes (226), a reset form (205), a list of
        // files (207, 208).
        Some(202 | 205..=208 | 226) => false,
        Some(200..=299) => robots_rules::is_text(body),
        Some(408 | 425 | 429) => false,
        // Of all other statuses, only 4xx and redirects give rules. 304 does not, because no condition was sent, nor
        // does 300, which offers a choice.
        Some(400..=499) => true,
        status => is_redirect_status(status),
    }
}

#[cfg(test)]
mod tests;
