//! Decides whether a URL may be fetched, and with what delay. This module only makes the decisions.
//!
//! A [`PermissionCheck`] names the next step: query the shared cache, wait until the site may be requested (its
//! *turn*), or send a request. The caller takes the step and passes the result to the check, which does no I/O and
//! reads no clock. Workers run it in [`journey`](crate::journey); the simulation runs the same code in simulated time.
//!
//! The rules of the URL's origin are taken from memory, or else from the shared cache. If neither has them, the check
//! waits for the site's turn and fetches robots.txt. Each redirect is a separate request, with its own turn at its
//! target's site, unless it leads to the robots.txt of an origin whose rules are known. Every answer sets the time of
//! the next request to the site that sent it, and fetched files go into the shared cache. If the fetch fails, the last
//! good file applies for a day; if there is none, the task ends.

use std::cell::RefCell;
use std::time::Duration;

use webfill_store::RobotsEntry;
use webfill_urls::{Url, origin, site};
use webfill_wire::{Evidence, Outcome, Task};

use crate::now::Now;
use crate::permits::Denied;
use crate::politeness::{Answer, Answered, PolitenessConfig};
use crate::robots::{RobotsAnswer, RobotsFetch, RobotsFiles, RobotsResponse, Rules};
use crate::sites::{Sites, Turn};

/// Whether a page may be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// The page may be fetched as soon as its site may be requested.
    Allowed { delay: Duration, turn: Turn },
    /// The task ends with this outcome, without a request for its page. If the reason is a failed request for
    /// robots.txt, that failure is the evidence.
    Refused {
        outcome: Outcome,
        evidence: Option<Evidence>,
    },
    /// The task must be given back: robots.txt was not requested.
    NotAsked,
    /// The task must be given back: the fetch of robots.txt was aborted, or the task was recalled between two
    /// redirects.
    CutShort,
}

impl Permission {
    /// If the page may be fetched, the turn at its site that it must wait for.
    pub fn turn(&self) -> Option<Turn> {
        match self {
            Permission::Allowed { turn, .. } => Some(*turn),
            _ => None,
        }
    }
}

/// A worker's knowledge of its sites, and its politeness settings.
#[derive(Clone, Copy)]
pub struct Knowledge<'a> {
    pub politeness: &'a PolitenessConfig,
    pub sites: &'a RefCell<Sites>,
    pub robots: &'a RefCell<RobotsFiles>,
}

/// The next step that the caller of a [`PermissionCheck`] must take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Look up the robots.txt of this origin in the shared cache; then call [`PermissionCheck::note_cache_entry`].
    LookUp(String),
    /// Wait for [`Turn::Robots`] of this site, which may be the target of a redirect. Then call
    /// [`PermissionCheck::note_turn`], or [`PermissionCheck::note_no_turn`] if another worker owns the site.
    AwaitTurn(String),
    /// Request this URL of robots.txt; then call [`PermissionCheck::note_response`].
    Request(Url),
    /// The check has ended with this result.
    Decided(Permission),
}

/// Checks whether one URL may be fetched.
#[derive(Debug)]
pub struct PermissionCheck {
    url: Url,
    site: String,
    /// The delay between two requests that the operator demands, in milliseconds.
    wanted_ms: Option<u32>,
    /// Whether the cache is checked once more just before the request. If the clocks of sites are shared, other workers
    /// may request robots.txt while this one waits for its turn.
    looks_up_twice: bool,
    origin: String,
    fetch: RobotsFetch,
    /// The rules of robots.txt that decided.
    rules: Option<Rules>,
    state: State,
}

#[derive(Debug)]
enum State {
    LookingUp { origin: String, has_turn: bool },
    AwaitingTurn { of: String },
    Requesting { started: Now },
    Decided(Permission, Vec<RobotsEntry>),
}

impl PermissionCheck {
    /// Begins the check of a URL to be fetched for a task. If the rules of the origin's robots.txt are in memory, it is
    /// decided immediately.
    pub fn begin(
        task: &Task,
        url: &Url,
        looks_up_twice: bool,
        known: Knowledge<'_>,
        now: Now,
    ) -> PermissionCheck {
        let origin = origin(url);
        let in_force = known.robots.borrow().rules_in_force(&origin, now);
        let fetch = match in_force {
            Some(_) => RobotsFetch::needless(),
            None => RobotsFetch::new(&origin),
        };
        let mut check = PermissionCheck {
            url: url.clone(),
            site: task.site.clone(),
            wanted_ms: task.delay_ms,
            looks_up_twice,
            fetch,
            rules: None,
            state: State::LookingUp {
                origin: origin.clone(),
                has_turn: false,
            },
            origin,
        };
        if let Some(rules) = in_force {
            check.decide(&rules, false, known);
        }
        check
    }

    /// The next step that the caller must take.
    pub fn next_step(&self) -> Step {
        match &self.state {
            State::LookingUp { origin, .. } => Step::LookUp(origin.clone()),
            State::AwaitingTurn { of } => Step::AwaitTurn(of.clone()),
            State::Requesting { .. } => match self.fetch.next_request() {
                Some(url) => Step::Request(url.clone()),
                None => Step::Decided(Permission::NotAsked),
            },
            State::Decided(permission, _) => Step::Decided(permission.clone()),
        }
    }

    /// The URL of the robots.txt that is requested after the wait for a turn.
    pub fn awaited_url(&self) -> &Url {
        self.fetch.next_request().unwrap_or(&self.url)
    }

    /// Takes the answer of the shared cache; `None` if the cache has no entry or is unreachable.
    pub fn note_cache_entry(
        &mut self,
        entry: Option<&RobotsEntry>,
        known: Knowledge<'_>,
        now: Now,
    ) {
        let State::LookingUp { has_turn, .. } = self.state else {
            return;
        };
        let rules = entry.and_then(|entry| {
            let mut robots = known.robots.borrow_mut();
            let rules = robots.remember(entry, now)?;
            if entry.origin != self.origin {
                robots.follow_redirect(&self.origin, &entry.origin, now);
            }
            Some(rules)
        });
        match rules {
            Some(rules) => self.decide(&rules, false, known),
            None if has_turn => self.begin_request(known, now),
            None => self.await_turn(),
        }
    }

    /// Notes that robots.txt may be requested now.
    pub fn note_turn(&mut self, known: Knowledge<'_>, now: Now) {
        if self.fetch.has_followed_redirect() {
            // Another task may have fetched the target of the redirect while this one waited.
            return match self.follow_known_redirect(known, now) {
                Some(rules) => self.decide(&rules, false, known),
                None => self.begin_request(known, now),
            };
        }
        match self.looks_up_twice {
            true => {
                self.state = State::LookingUp {
                    origin: self.origin.clone(),
                    has_turn: true,
                }
            }
            false => self.begin_request(known, now),
        }
    }

    /// Notes that another worker owns the site to be requested. So there is no request, and the site's robots.txt
    /// counts as unreachable.
    pub fn note_no_turn(&mut self, known: Knowledge<'_>, now: Now) {
        self.fetch.skip_foreign_request();
        self.end_fetch(known, now);
    }

    /// Takes the answer to a request for robots.txt, or the gate's denial of the request.
    pub fn note_response(
        &mut self,
        response: Result<RobotsResponse, Denied>,
        known: Knowledge<'_>,
        now: Now,
    ) {
        let State::Requesting { started } = self.state else {
            return;
        };
        let Some(url) = self.fetch.next_request().cloned() else {
            return;
        };
        // A request to an unsafe address is refused before it is sent.
        let is_sent = |response: &&RobotsResponse| {
            response.outcome != Outcome::UnsafeAddress || self.fetch.has_followed_redirect()
        };
        let sent = response.as_ref().ok().filter(is_sent);
        let answered = sent.map(|response| Answered {
            started,
            at: response.answered_at,
            answer: response.answer,
            page: None,
        });
        self.fetch.note_response(response);
        if let Some(answered) = answered {
            self.move_clocks(&site(&url), answered, known);
        }
        match self.fetch.next_request() {
            None => self.end_fetch(known, now),
            Some(_) => self.follow_redirect(known, now),
        }
    }

    /// The robots.txt files to put into the shared cache, if any were fetched by this check.
    pub fn take_fetched(&mut self) -> Vec<RobotsEntry> {
        match &mut self.state {
            State::Decided(_, fetched) => std::mem::take(fetched),
            _ => Vec::new(),
        }
    }

    /// Returns the rules of robots.txt that decided, if there were any.
    pub fn take_rules(&mut self) -> Option<Rules> {
        self.rules.take()
    }

    fn begin_request(&mut self, known: Knowledge<'_>, now: Now) {
        self.state = State::Requesting { started: now };
        if self.fetch.next_request().is_none() {
            self.end_fetch(known, now);
        }
    }

    /// Sets the time of the next request to the requested site. After a failed fetch of robots.txt, the task's own site
    /// backs off as well, even if redirects led to other sites.
    fn move_clocks(&self, asked: &str, answered: Answered, known: Knowledge<'_>) {
        let has_failed = self.fetch.has_failed();
        let of_fetch = match answered.answer {
            answer if answer.asks_to_wait() => answer,
            _ if has_failed => Answer::NoRules,
            _ if self.fetch.next_request().is_some() => Answer::Redirect,
            answer => answer,
        };
        let pace = known.politeness.pace(known.politeness.delay());
        let mut sites = known.sites.borrow_mut();
        if asked == self.site || has_failed {
            let answer = of_fetch;
            sites.note_robots_answer(&self.site, Answered { answer, ..answered }, pace);
        }
        if asked != self.site {
            sites.note_robots_answer(asked, answered, pace);
        }
    }

    /// Follows a redirect of robots.txt. If the redirect leads to the robots.txt of another origin, the rules of that
    /// origin may already be in memory.
    fn follow_redirect(&mut self, known: Knowledge<'_>, now: Now) {
        if let Some(rules) = self.follow_known_redirect(known, now) {
            return self.decide(&rules, false, known);
        }
        match self.redirect_origin() {
            Some(origin) => {
                self.state = State::LookingUp {
                    origin,
                    has_turn: false,
                }
            }
            None => self.await_turn(),
        }
    }

    /// The origin whose robots.txt a redirect has led to.
    fn redirect_origin(&self) -> Option<String> {
        let target = self.fetch.origin_of_next_robots_txt();
        target.filter(|target| *target != self.origin)
    }

    fn follow_known_redirect(&self, known: Knowledge<'_>, now: Now) -> Option<Rules> {
        let target = self.redirect_origin()?;
        let mut robots = known.robots.borrow_mut();
        robots.follow_redirect(&self.origin, &target, now)
    }

    /// Starts to wait for a turn. Each request needs a turn at the site that it goes to.
    fn await_turn(&mut self) {
        let url = self.fetch.next_request();
        let of = url.map_or_else(|| self.site.clone(), site);
        self.state = State::AwaitingTurn { of };
    }

    fn end_fetch(&mut self, known: Knowledge<'_>, now: Now) {
        let permission = match self.fetch.finish(now) {
            RobotsAnswer::Files(files) => return self.use_files(files, known, now),
            RobotsAnswer::Denied(Denied::NotStarted) => Permission::NotAsked,
            RobotsAnswer::Denied(Denied::CutShort) => Permission::CutShort,
            RobotsAnswer::Unreachable(outcome, evidence) => {
                let last_good = known.robots.borrow_mut().fall_back(&self.origin, now);
                if let Some(rules) = last_good {
                    return self.decide(&rules, false, known);
                }
                let evidence = Some(evidence);
                Permission::Refused { outcome, evidence }
            }
        };
        self.state = State::Decided(permission, Vec::new());
    }

    fn use_files(&mut self, files: Vec<RobotsEntry>, known: Knowledge<'_>, now: Now) {
        let mut robots = known.robots.borrow_mut();
        for file in &files {
            let rules = robots.remember(file, now);
            if let Some(rules) = rules.filter(|_| file.origin == self.origin) {
                self.decide(&rules, true, known);
            }
        }
        if let State::Decided(_, fetched) = &mut self.state {
            *fetched = files;
        }
    }

    /// Decides by the rules of robots.txt. `fetched` means that they were fetched just now, so the page may follow
    /// without a wait.
    fn decide(&mut self, rules: &Rules, fetched: bool, known: Knowledge<'_>) {
        self.rules = Some(Rules::clone(rules));
        let permission = if rules.allows(&self.url) {
            let crawl_delay_ms = rules.crawl_delay_ms();
            let delay = known
                .politeness
                .delay_in_force(crawl_delay_ms, self.wanted_ms);
            let turn = match fetched {
                true => Turn::PageAfterRobots(delay),
                false => Turn::Page(delay),
            };
            Permission::Allowed { delay, turn }
        } else {
            Permission::Refused {
                outcome: Outcome::Disallowed,
                evidence: None,
            }
        };
        self.state = State::Decided(permission, Vec::new());
    }
}

#[cfg(test)]
mod tests;
