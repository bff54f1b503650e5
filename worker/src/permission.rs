//! May a URL be fetched, and under which delay? The steps to the answer, as decisions alone.
//!
//! A [`PermissionCheck`] names the next step; its caller takes the step (asks the shared cache,
//! waits for the site's turn, sends a request) and tells the check what came of it. The check does
//! no I/O and reads no clock. Workers drive it in [`journey`](crate::journey); the simulation drives
//! the same code in simulated time.
//!
//! The steps: the rules of the URL's origin are taken from memory; else from the shared cache; else
//! the site's turn is awaited and robots.txt is fetched. What was fetched moves the site's clock and
//! is to be put into the shared cache.

use std::cell::RefCell;
use std::time::Duration;

use webfill_store::RobotsEntry;
use webfill_urls::{Url, origin};
use webfill_wire::{Outcome, Task};

use crate::now::Now;
use crate::permits::Denied;
use crate::politeness::PolitenessConfig;
use crate::robots::{RobotsFetch, RobotsFiles, RobotsResponse, Rules};
use crate::sites::{Sites, Turn};

/// Whether a page may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// The page may be fetched when its turn comes.
    Allowed { delay: Duration, turn: Turn },
    /// The task ends with this outcome, without a request for its page.
    Refused(Outcome),
    /// The task is to be given back: robots.txt was not requested.
    NotAsked,
    /// The task is to be given back: the fetch of robots.txt was broken off.
    CutShort,
}

/// What a worker knows of its sites, and how polite it is.
#[derive(Clone, Copy)]
pub struct Knowledge<'a> {
    pub politeness: &'a PolitenessConfig,
    pub sites: &'a RefCell<Sites>,
    pub robots: &'a RefCell<RobotsFiles>,
}

/// What the caller of a [`PermissionCheck`] does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Look the origin's robots.txt up in the shared cache; then [`PermissionCheck::looked_up`].
    LookUp,
    /// Wait for [`Turn::Robots`] of the site; then [`PermissionCheck::turn_came`].
    AwaitTurn,
    /// Request this URL of robots.txt; then [`PermissionCheck::answered`].
    Request(Url),
    /// Nothing: this is the answer.
    Decided(Permission),
}

/// The check of one URL.
#[derive(Debug)]
pub struct PermissionCheck {
    url: Url,
    origin: String,
    site: String,
    /// The delay that the operator wants.
    wanted_ms: Option<u32>,
    /// Other workers may request robots.txt while this one waits for its turn, because the site's
    /// clock is shared. So the cache is looked at once more when the turn has come.
    looks_up_twice: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    LookingUp { has_turn: bool },
    AwaitingTurn,
    Fetching { fetch: RobotsFetch, started_ms: i64 },
    Decided(Permission, Option<RobotsEntry>),
}

impl PermissionCheck {
    /// Begins the check of a URL that is fetched for a task; it is decided at once if the origin's
    /// rules are in memory.
    pub fn begin(
        task: &Task,
        url: &Url,
        looks_up_twice: bool,
        known: Knowledge<'_>,
        now: Now,
    ) -> PermissionCheck {
        let mut check = PermissionCheck {
            url: url.clone(),
            origin: origin(url),
            site: task.site.clone(),
            wanted_ms: task.delay_ms,
            looks_up_twice,
            state: State::LookingUp { has_turn: false },
        };
        let remembered = known.robots.borrow().remembered(&check.origin, now);
        if let Some(rules) = remembered {
            check.decide(&rules, false, known);
        }
        check
    }

    /// The origin whose robots.txt is in question.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// What to do next.
    pub fn step(&self) -> Step {
        match &self.state {
            State::LookingUp { .. } => Step::LookUp,
            State::AwaitingTurn => Step::AwaitTurn,
            State::Fetching { fetch, .. } => match fetch.next_request() {
                Some(url) => Step::Request(url.clone()),
                None => Step::Decided(Permission::NotAsked),
            },
            State::Decided(permission, _) => Step::Decided(*permission),
        }
    }

    /// The shared cache has answered; `None` if it has no entry, or is out of reach.
    pub fn looked_up(&mut self, entry: Option<&RobotsEntry>, known: Knowledge<'_>, now: Now) {
        let State::LookingUp { has_turn } = self.state else {
            return;
        };
        match entry {
            Some(entry) => {
                let unreachable = Outcome::RobotsUnreachable;
                let rules = known.robots.borrow_mut().remember(entry, unreachable, now);
                self.decide(&rules, false, known);
            }
            None if has_turn => self.begin_fetch(known, now),
            None => self.state = State::AwaitingTurn,
        }
    }

    /// Robots.txt may be requested now.
    pub fn turn_came(&mut self, known: Knowledge<'_>, now: Now) {
        match self.looks_up_twice {
            true => self.state = State::LookingUp { has_turn: true },
            false => self.begin_fetch(known, now),
        }
    }

    /// A request of the fetch was answered, or denied by the gate.
    pub fn answered(
        &mut self,
        response: Result<RobotsResponse, Denied>,
        known: Knowledge<'_>,
        now: Now,
    ) {
        let State::Fetching { fetch, .. } = &mut self.state else {
            return;
        };
        fetch.answered(response);
        if fetch.next_request().is_none() {
            self.end_fetch(known, now);
        }
    }

    /// The robots.txt to put into the shared cache, if it was fetched by this check.
    pub fn take_fetched(&mut self) -> Option<RobotsEntry> {
        match &mut self.state {
            State::Decided(_, fetched) => fetched.take(),
            _ => None,
        }
    }

    fn begin_fetch(&mut self, known: Knowledge<'_>, now: Now) {
        let fetch = RobotsFetch::new(&self.origin);
        let is_over = fetch.next_request().is_none();
        let started_ms = now.wall_ms;
        self.state = State::Fetching { fetch, started_ms };
        if is_over {
            self.end_fetch(known, now);
        }
    }

    fn end_fetch(&mut self, known: Knowledge<'_>, now: Now) {
        let decided = State::Decided(Permission::CutShort, None);
        let State::Fetching { fetch, started_ms } = std::mem::replace(&mut self.state, decided)
        else {
            return;
        };
        let found = match fetch.finish(now) {
            Ok(found) => found,
            Err(Denied::NotStarted) => {
                self.state = State::Decided(Permission::NotAsked, None);
                return;
            }
            Err(Denied::CutShort) => return,
        };
        let pace = known.politeness.pace(known.politeness.delay());
        known.sites.borrow_mut().robots_answered(
            &self.site,
            started_ms,
            found.answered_at,
            found.answer,
            pace,
        );
        // Without an entry the gate denied a request between two redirects.
        let Some(entry) = found.entry else { return };
        let mut robots = known.robots.borrow_mut();
        let rules = robots.remember(&entry, found.unreachable, now);
        drop(robots);
        self.decide(&rules, true, known);
        // That this worker cannot reach a host at all says nothing that others should know.
        let is_worth_sharing =
            entry.status.is_some() || found.unreachable == Outcome::RobotsUnreachable;
        if let State::Decided(_, to_share) = &mut self.state {
            *to_share = is_worth_sharing.then_some(entry);
        }
    }

    /// `fetched`: the rules were fetched just now, and the page may follow them without a wait.
    fn decide(&mut self, rules: &Rules, fetched: bool, known: Knowledge<'_>) {
        let permission = match rules {
            Rules::Unreachable(outcome) => Permission::Refused(*outcome),
            Rules::Known(rules) if !rules.allows(&self.url) => {
                Permission::Refused(Outcome::Disallowed)
            }
            Rules::Known(rules) => {
                let crawl_delay_ms = rules.crawl_delay_ms();
                let delay = known
                    .politeness
                    .delay_in_force(crawl_delay_ms, self.wanted_ms);
                let turn = match fetched {
                    true => Turn::PageAfterRobots(delay),
                    false => Turn::Page(delay),
                };
                Permission::Allowed { delay, turn }
            }
        };
        self.state = State::Decided(permission, None);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::politeness::Answer;

    #[derive(Default)]
    struct Bench {
        politeness: PolitenessConfig,
        sites: RefCell<Sites>,
        robots: RefCell<RobotsFiles>,
    }

    impl Bench {
        fn known(&self) -> Knowledge<'_> {
            Knowledge {
                politeness: &self.politeness,
                sites: &self.sites,
                robots: &self.robots,
            }
        }

        fn begin(&self, looks_up_twice: bool, now: Now) -> PermissionCheck {
            let task = task();
            let url = Url::parse(&task.url).unwrap();
            let mut sites = self.sites.borrow_mut();
            sites.add(task.clone(), Duration::ZERO, now);
            drop(sites);
            PermissionCheck::begin(&task, &url, looks_up_twice, self.known(), now)
        }
    }

    fn task() -> Task {
        Task {
            task: 1,
            delivery: 1,
            crawl: 1,
            url: String::from("http://a.org/page"),
            site: String::from("a.org"),
            depth: 0,
            wait_ms: 0,
            last_request_ago_ms: None,
            parent: None,
            attrs: None,
            records: Vec::new(),
            priority: 50,
            delay_ms: None,
            failed_attempts: Vec::new(),
            given_up: None,
        }
    }

    fn response(status: u16, body: &str, now: Now) -> RobotsResponse {
        RobotsResponse {
            outcome: Outcome::Ok,
            status: Some(status),
            body: body.as_bytes().to_vec(),
            redirect: None,
            answered_at: now.instant,
            answer: Answer::Served,
        }
    }

    #[test]
    fn robots_txt_is_looked_up_then_fetched_and_then_remembered() {
        let (bench, now) = (Bench::default(), Now::read());
        let mut check = bench.begin(false, now);
        assert_eq!(check.step(), Step::LookUp);
        check.looked_up(None, bench.known(), now);
        assert_eq!(check.step(), Step::AwaitTurn);
        check.turn_came(bench.known(), now);
        let url = Url::parse("http://a.org/robots.txt").unwrap();
        assert_eq!(check.step(), Step::Request(url));
        let file = "User-agent: *\nCrawl-delay: 3\n";
        check.answered(Ok(response(200, file, now)), bench.known(), now);
        let delay = Duration::from_secs(3);
        let turn = Turn::PageAfterRobots(delay);
        let allowed = Permission::Allowed { delay, turn };
        assert_eq!(check.step(), Step::Decided(allowed));
        assert!(check.take_fetched().is_some());
        let turn = Turn::Page(delay);
        let again = Step::Decided(Permission::Allowed { delay, turn });
        assert_eq!(bench.begin(false, now).step(), again);
    }

    #[test]
    fn with_a_shared_clock_the_cache_is_looked_at_again_when_the_turn_has_come() {
        let (bench, now) = (Bench::default(), Now::read());
        let mut check = bench.begin(true, now);
        check.looked_up(None, bench.known(), now);
        check.turn_came(bench.known(), now);
        assert_eq!(check.step(), Step::LookUp);
        let entry = RobotsEntry {
            origin: String::from("http://a.org"),
            status: Some(200),
            body: b"User-agent: *\nDisallow: /\n".to_vec(),
            fetched_at_ms: now.wall_ms,
            expires_at_ms: now.wall_ms + 1_000,
        };
        check.looked_up(Some(&entry), bench.known(), now);
        let refused = Permission::Refused(Outcome::Disallowed);
        assert_eq!(check.step(), Step::Decided(refused));
        assert!(check.take_fetched().is_none());
    }

    #[test]
    fn a_failed_fetch_refuses_the_page_and_a_denied_one_gives_the_task_back() {
        let (bench, now) = (Bench::default(), Now::read());
        let mut denied = bench.begin(false, now);
        denied.looked_up(None, bench.known(), now);
        denied.turn_came(bench.known(), now);
        denied.answered(Err(Denied::NotStarted), bench.known(), now);
        assert_eq!(denied.step(), Step::Decided(Permission::NotAsked));
        let mut failed = bench.begin(false, now);
        failed.looked_up(None, bench.known(), now);
        failed.turn_came(bench.known(), now);
        failed.answered(Ok(response(500, "", now)), bench.known(), now);
        let refused = Permission::Refused(Outcome::RobotsUnreachable);
        assert_eq!(failed.step(), Step::Decided(refused));
    }
}
