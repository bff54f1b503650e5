//! The checks that every site makes on its requests:
//!
//! - no two requests overlap, none starts closer to the page before than the current delay, and no redirect of
//!   robots.txt starts closer than that to the answer that led to it;
//! - a page is fetched only under a robots.txt that its worker knew when it decided, that was valid then, and that
//!   allows the page. A file is valid for an hour. If a new one cannot be fetched after that, it stays valid for some
//!   minutes after each attempt, until it is a day old;
//! - robots.txt is not requested by a worker that knows a valid one;
//! - after an overload, a silence or a robots.txt that cannot be fetched, the same worker leaves the site alone as
//!   long as `Retry-After` and the back-off require; after a slow answer, for as long as that took.
//!
//! A worker's knowledge is derived from outside: from the answers of the web, and the entries from the shared cache.

use std::collections::BTreeMap;

use webfill_store::RobotsEntry;
use webfill_worker::Answer;

use crate::request::{Process, Request, Response};
use crate::robots::{MOST_REDIRECTS, RobotsPlan, RobotsState};
use crate::settings::LONGEST_WAIT_MS;
use crate::sites::SitePlan;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// If robots.txt cannot be fetched, a worker may use its older copy for this long before it tries again.
const TRY_AGAIN_MS: u64 = 300_000;
/// A worker counts consecutive failures. It forgets them when this time has passed since the end of the wait that they
/// required.
const FAILURES_COUNT_MS: u64 = 60_000;

#[derive(Debug)]
pub(crate) struct Judge {
    default_delay_ms: u64,
    sites: Vec<Site>,
    known: BTreeMap<(Process, usize), KnownRobots>,
    pub(crate) faults: Vec<String>,
    /// The number of pages whose robots.txt expired between the decision to fetch them and the request.
    pub(crate) stale_pages: u64,
}

/// The robots.txt of a site that a worker has received.
#[derive(Debug)]
struct KnownRobots {
    fetched_ms: u64,
    /// The worker may use this content until this time.
    until_ms: u64,
    state: RobotsState,
}

#[derive(Debug)]
struct Site {
    robots: RobotsPlan,
    /// The shortest delay that an operator has requested.
    wanted_ms: Option<u64>,
    /// When the last request ends.
    ends_ms: Option<u64>,
    page_ends_ms: Option<u64>,
    /// The worker that sent the last request for a page, and the delay at that time.
    page_by: Option<(Process, u64)>,
    last: Request,
    /// The worker that was last required to leave the site alone, and the end of this wait.
    back_off: Option<BackOff>,
    /// Whether an operator has ordered to forget the site's back-off (its wait after failures), so that it is not
    /// judged any more.
    back_off_is_void: bool,
}

#[derive(Debug)]
struct BackOff {
    process: Process,
    until_ms: u64,
    /// The number of consecutive requests that were not served.
    failures: u32,
}

impl Judge {
    pub(crate) fn new(plans: &[SitePlan], default_delay_ms: u64) -> Judge {
        let site = |plan: &SitePlan| Site {
            robots: plan.robots.clone(),
            wanted_ms: None,
            ends_ms: None,
            page_ends_ms: None,
            page_by: None,
            last: Request::Robots { hop: 0 },
            back_off: None,
            back_off_is_void: false,
        };
        Judge {
            default_delay_ms,
            sites: plans.iter().map(site).collect(),
            known: BTreeMap::new(),
            faults: Vec::new(),
            stale_pages: 0,
        }
    }

    /// Notes that an operator has set this delay, so that it is allowed from now on.
    pub(crate) fn allow_delay(&mut self, site: usize, delay_ms: u64) {
        let wanted = &mut self.sites[site].wanted_ms;
        *wanted = Some(wanted.map_or(delay_ms, |before| before.min(delay_ms)));
    }

    /// Notes that an operator has ordered to forget the site's back-off (its wait after failures).
    pub(crate) fn void_back_off(&mut self, site: usize) {
        self.sites[site].back_off_is_void = true;
    }

    /// Judges a request that arrives at a site. Its answer will be complete at `ends_ms`.
    pub(crate) fn on_request_begun(
        &mut self,
        site: usize,
        request: Request,
        (now_ms, ends_ms): (u64, u64),
        (process, who): (Process, &str),
    ) {
        let mut found = Vec::new();
        let delay_ms = match request {
            Request::Robots { hop } => {
                if hop == 0 && self.robots_known_by(process, site, now_ms).is_some() {
                    found.push(String::from("robots.txt is known"));
                }
                let delay_ms = self.least_delay_ms(site);
                let before_ms = self.sites[site].ends_ms.filter(|_| hop > 0);
                if before_ms.is_some_and(|ends_ms| ends_ms + delay_ms > now_ms) {
                    found.push(String::from("a redirect that takes no turn"));
                }
                delay_ms
            }
            Request::Page {
                page, decided_ms, ..
            } => match self.robots_known_by(process, site, decided_ms) {
                None => {
                    found.push(String::from("robots.txt is not known"));
                    0
                }
                Some(state) if state.is_unreachable() => {
                    found.push(String::from("robots.txt is unreachable"));
                    0
                }
                Some(state) if state.disallows(page) => {
                    found.push(String::from("disallowed"));
                    0
                }
                Some(state) => self.delay_ms(site, state),
            },
        };
        if let Request::Page { .. } = request
            && self.robots_known_by(process, site, now_ms).is_none()
        {
            self.stale_pages += 1;
        }
        let seen = &mut self.sites[site];
        if seen.ends_ms.is_some_and(|before_ms| before_ms > now_ms) {
            found.push(String::from("overlap"));
        }
        let page_ends_ms = seen.page_ends_ms;
        // If robots.txt has changed to a longer delay, only the worker that requested the last page must keep the
        // longer delay from then on. For other workers, the shorter of the two delays counts.
        let by_another = seen.page_by.filter(|(by, _)| *by != process);
        let known_ms = by_another.map_or(delay_ms, |(_, before_ms)| delay_ms.min(before_ms));
        if let Some(before_ms) = page_ends_ms.filter(|ends_ms| ends_ms + known_ms > now_ms) {
            let since_ms = now_ms as i64 - before_ms as i64;
            found.push(format!(
                "{since_ms} ms after a page, under a delay of {delay_ms} ms"
            ));
        }
        if let Some(back_off) = &seen.back_off
            && back_off.process == process
            && back_off.until_ms > now_ms
            && !seen.back_off_is_void
        {
            found.push(format!(
                "it was to be left alone until {}",
                back_off.until_ms
            ));
        }
        for fault in found {
            self.faults.push(format!(
                "{fault}: site {site}, {request:?} by {who} at {now_ms}, after {:?}",
                seen.last
            ));
        }
        seen.ends_ms = Some(ends_ms);
        seen.last = request;
        if let Request::Page { .. } = request {
            seen.page_ends_ms = Some(ends_ms);
            seen.page_by = Some((process, delay_ms));
        }
    }

    /// Notes that an answer has reached the worker that sent the request. It determines what the worker knows about
    /// robots.txt.
    pub(crate) fn on_answer(
        &mut self,
        site: usize,
        request: Request,
        process: Process,
        response: &Response,
        (started_ms, now_ms): (u64, u64),
    ) {
        let delay_ms = match request {
            Request::Robots { .. } => self.default_delay_ms,
            Request::Page { decided_ms, .. } => {
                match self.robots_known_by(process, site, decided_ms) {
                    Some(state) => self.delay_ms(site, state),
                    None => 0,
                }
            }
        };
        let answer = answer_meaning(request, response);
        self.record_back_off(site, process, answer, delay_ms, (started_ms, now_ms));
        if !matches!(request, Request::Robots { .. }) || answer == Answer::Redirect {
            return;
        }
        let meaning = self.sites[site]
            .robots
            .state_meant_by(response.status, &response.body);
        if meaning.is_unreachable() {
            return self.prolong_last_robots(site, process, now_ms);
        }
        let known = KnownRobots {
            fetched_ms: now_ms,
            until_ms: now_ms + HOUR_MS,
            state: meaning,
        };
        self.known.insert((process, site), known);
    }

    /// Lets the worker use its old robots.txt for longer, because a new one could not be fetched. Does nothing if the
    /// worker knows none.
    fn prolong_last_robots(&mut self, site: usize, process: Process, now_ms: u64) {
        if let Some(known) = self.known.get_mut(&(process, site)) {
            known.until_ms = (known.fetched_ms + DAY_MS).min(now_ms + TRY_AGAIN_MS);
        }
    }

    /// Notes that a worker has got a robots.txt from the shared cache.
    pub(crate) fn on_cache_hit(
        &mut self,
        site: usize,
        process: Process,
        entry: &RobotsEntry,
        now_ms: u64,
        wall_ms: i64,
    ) {
        let body = std::str::from_utf8(&entry.body).expect("a file of ours");
        let lasts_ms = (entry.expires_at_ms - wall_ms).max(0) as u64;
        let known = KnownRobots {
            fetched_ms: now_ms.saturating_sub((wall_ms - entry.fetched_at_ms) as u64),
            until_ms: now_ms + lasts_ms.min(HOUR_MS),
            state: self.sites[site].robots.state_meant_by(entry.status, body),
        };
        let before = self.known.get(&(process, site));
        if before.is_none_or(|before| before.fetched_ms <= known.fetched_ms || lasts_ms > 0) {
            self.known.insert((process, site), known);
        }
    }

    /// Notes the death of the worker that sent the last request. Its connection is closed, so the request ends now.
    pub(crate) fn on_worker_gone(&mut self, site: usize, now_ms: u64) {
        let seen = &mut self.sites[site];
        seen.ends_ms = seen.ends_ms.map(|ends_ms| ends_ms.min(now_ms));
        seen.page_ends_ms = seen.page_ends_ms.map(|ends_ms| ends_ms.min(now_ms));
    }

    fn robots_known_by(&self, process: Process, site: usize, at_ms: u64) -> Option<&RobotsState> {
        let known = self.known.get(&(process, site))?;
        (known.until_ms > at_ms).then_some(&known.state)
    }

    /// The shortest delay that is possible under this robots.txt.
    fn delay_ms(&self, site: usize, state: &RobotsState) -> u64 {
        state
            .crawl_delay_ms()
            .unwrap_or_else(|| self.wanted_delay_ms(site))
    }

    fn wanted_delay_ms(&self, site: usize) -> u64 {
        let wanted_ms = self.sites[site].wanted_ms;
        wanted_ms.map_or(self.default_delay_ms, |ms| ms.min(self.default_delay_ms))
    }

    /// The shortest delay that is possible before a worker has read robots.txt.
    fn least_delay_ms(&self, site: usize) -> u64 {
        let delays = self.sites[site].robots.states();
        let delays = delays.filter_map(RobotsState::crawl_delay_ms);
        delays.fold(self.wanted_delay_ms(site), u64::min)
    }

    fn record_back_off(
        &mut self,
        site: usize,
        process: Process,
        answer: Answer,
        delay_ms: u64,
        (started_ms, now_ms): (u64, u64),
    ) {
        let back_off = &mut self.sites[site].back_off;
        let before = back_off.take().filter(|before| before.process == process);
        let (before_ms, failures) = match before {
            Some(before) if started_ms >= before.until_ms + FAILURES_COUNT_MS => {
                (before.until_ms, 0)
            }
            Some(before) => (before.until_ms, before.failures),
            None => (0, 0),
        };
        let took_ms = now_ms - started_ms;
        let wait_ms = match answer {
            Answer::Served | Answer::Redirect => took_ms,
            Answer::Silent => delay_ms << failures.min(3),
            Answer::NoRules => delay_ms.max(1_000) << failures.min(3),
            Answer::Overloaded { retry_after } | Answer::TooMany { retry_after } => {
                let asked_ms = retry_after.map_or(0, |wait| wait.as_millis() as u64);
                let own_ms = delay_ms.max(1_000) << failures.min(6);
                own_ms.max(asked_ms).max(took_ms)
            }
            Answer::Refused { .. } => unreachable!("no simulated site answers so"),
        };
        *back_off = Some(BackOff {
            process,
            until_ms: before_ms.max(now_ms + wait_ms.min(LONGEST_WAIT_MS)),
            failures: match answer {
                Answer::Served => 0,
                Answer::Redirect => failures,
                _ => failures + 1,
            },
        });
    }
}

/// Whether an answer means that the site is overloaded, silent or slow, or nothing of the kind.
fn answer_meaning(request: Request, response: &Response) -> Answer {
    let Request::Robots { hop } = request else {
        return response.answer;
    };
    let leads_on = response.redirect.is_some() && hop < MOST_REDIRECTS;
    match (response.answer, response.status) {
        (answer, _) if answer.asks_to_wait() => answer,
        (_, None | Some(500..)) => Answer::NoRules,
        _ if leads_on => Answer::Redirect,
        (answer, _) => answer,
    }
}
