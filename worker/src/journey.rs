//! The journey of one task through a worker:
//! robots -> politeness -> fetch -> extraction (decode, parse, mapping) -> save -> acknowledge.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};
use webfill_startup::Fault;
use webfill_store::Cache;
use webfill_urls::{Url, origin};
use webfill_wire::{
    CrawlKey, CrawlSettings, Lane, Outcome, ReturnCause, SiteClock, Task, TaskReturned,
};

use crate::browser::Browser;
use crate::ending::{Ending, now_ms};
use crate::extract::{FetchedPage, Work};
use crate::fetch::Fetched;
use crate::gate::{Barred, Gate, Leave};
use crate::kept::{self, KeptRoom};
use crate::politeness::PolitenessConfig;
use crate::resolve::Resolver;
use crate::robots::{self, RobotsFiles, Rules};
use crate::shared_clock::SharedClock;
use crate::sites::{Pace, Sites, Turn};
use crate::slots::Slots;

use self::showing::{GivenBack, is_shown};

mod showing;
mod turns;

/// What the runners of all sites share. Everything here lives on the worker's main thread.
pub struct Journey {
    pub politeness: PolitenessConfig,
    pub gate: Gate,
    pub resolver: Resolver,
    pub cache: Arc<dyn Cache>,
    pub sites: RefCell<Sites>,
    /// If the sites' clocks are not ours alone.
    pub shared_clock: Option<SharedClock>,
    pub robots: RefCell<RobotsFiles>,
    pub crawls: RefCell<HashMap<CrawlKey, Arc<CrawlSettings>>>,
    /// Fetches in flight.
    pub slots: Slots,
    /// In the lane `browser`.
    pub browser: Option<Browser>,
    /// Told what this process cannot go on with.
    pub broken: mpsc::Sender<Fault>,
    /// Bodies that applications want.
    pub kept_room: KeptRoom,
    pub extraction: mpsc::Sender<Work>,
    pub endings: mpsc::Sender<Ending>,
    pub draining: Cell<bool>,
    /// Wakes those who wait for a site's clock when tasks are to be given back.
    pub called_back: Notify,
    /// Gives leases back unfinished.
    pub give_back: Box<dyn Fn(Vec<TaskReturned>)>,
}

/// What robots.txt says about a URL.
enum Permission {
    /// Allowed, with this delay between requests. `asked`: robots.txt was fetched just now, and
    /// the page may follow it without a wait.
    Allowed {
        delay: Duration,
        asked: bool,
    },
    Refused(Outcome),
    /// The task is to be given back: robots.txt was not asked for.
    NotAsked,
    /// The task is to be given back: robots.txt was not asked for to its end.
    CutShort,
}

impl Journey {
    /// Takes the tasks of one site, one after another, until there are none.
    pub async fn run_site(self: Rc<Self>, site: String) {
        loop {
            let task = self.sites.borrow_mut().next_task(&site);
            let Some(task) = task else { return };
            let leave = self.gate.leave(&task);
            if self.draining.get() {
                self.return_task(&site, &task, None);
                continue;
            }
            self.travel(&site, task, &leave).await;
            self.end_turn(&site).await;
        }
    }

    /// Whether a task that has not asked for its page yet must be given back.
    fn is_called_back(&self, leave: &Leave) -> bool {
        self.draining.get() || leave.is_recalled()
    }

    async fn travel(&self, site: &str, task: Task, leave: &Leave) {
        let crawl = self.crawls.borrow().get(&task.crawl).cloned();
        let (Some(crawl), Ok(url)) = (crawl, Url::parse(&task.url)) else {
            // Neither can happen with a dispatcher of our version; the lease must not stay away.
            return self.return_task(site, &task, None);
        };
        let browser = self.browser_for(&crawl);
        if browser.is_none() && crawl.lane == Lane::Browser {
            // Nor can this.
            return self.return_task(site, &task, None);
        }
        let (delay, asked) = match self.permission(&task, &url, leave).await {
            Permission::Allowed { delay, asked } => (delay, asked),
            Permission::Refused(outcome) => {
                return self.end_refused(site, task, crawl, outcome).await;
            }
            Permission::NotAsked => return self.return_task(site, &task, None),
            Permission::CutShort => {
                return self.return_cut_short(site, &task, self.politeness.delay());
            }
        };
        let turn = if asked {
            Turn::PageAfterRobots(delay)
        } else {
            Turn::Page(delay)
        };
        let place = match browser {
            Some(browser) => self.take_place(browser, turn, site, leave).await,
            None => None,
        };
        if browser.is_some() && place.is_none() {
            return self.return_task(site, &task, Some(delay));
        }
        let Some(slot) = self.take_turn(turn, site, leave).await else {
            return self.return_task(site, &task, Some(delay));
        };
        let request = Request::now(delay);
        let user_agent = crawl.useragent.clone();
        let fetched = match self.gate.page(leave, &url, user_agent.as_deref()).await {
            Ok(fetched) => fetched,
            Err(Barred::Shut) => return self.return_task(site, &task, Some(delay)),
            Err(Barred::CutShort) => return self.return_cut_short(site, &task, delay),
        };
        let mut page = self.fetched(site, task, crawl, &url, request, fetched);
        self.end_turn(site).await;
        // Slot or place is held until the body is with the extraction, which bounds bodies in memory.
        let mut slot = Some(slot);
        if let Some(browser) = browser.filter(|_| is_shown(&page)) {
            slot = None;
            page = match self.show(browser, page, &url, request, leave).await {
                Ok(page) => page,
                Err(GivenBack(task)) => return self.return_cut_short(site, &task, delay),
            };
        }
        self.hand_on(page).await;
        drop((slot, place));
    }

    async fn permission(&self, task: &Task, url: &Url, leave: &Leave) -> Permission {
        let site = &task.site;
        self.take_shared_clock(site).await;
        let default_delay = self.default_delay(task);
        if self.politeness.ignore_robots && self.resolver.is_private_host(url).await {
            return Permission::Allowed {
                delay: default_delay,
                asked: false,
            };
        }
        if let Err(refusal) = self.resolver.judge_literal(url) {
            tracing::debug!(event = "refused", url = url.as_str(), reason = %refusal, "unsafe address");
            return Permission::Refused(Outcome::UnsafeAddress);
        }
        let (rules, asked) = match self.rules(site, &origin(url), leave).await {
            Ok((Rules::Known(rules), asked)) => (rules, asked),
            Ok((Rules::Unreachable(outcome), _)) => return Permission::Refused(outcome),
            Err(not_permitted) => return not_permitted,
        };
        if !rules.allows(url) {
            return Permission::Refused(Outcome::Disallowed);
        }
        let delay = match rules.crawl_delay_ms() {
            Some(asked_for) => self.delay_asked_for(task, asked_for),
            None => default_delay,
        };
        Permission::Allowed { delay, asked }
    }

    /// Where robots.txt names no delay.
    fn default_delay(&self, task: &Task) -> Duration {
        let wanted = task.delay_ms.map(u64::from).map(Duration::from_millis);
        wanted.unwrap_or(self.politeness.delay())
    }

    /// What robots.txt asks for; the operator may want more, but never less.
    fn delay_asked_for(&self, task: &Task, millis: u64) -> Duration {
        let asked_for = Duration::from_millis(millis).min(self.politeness.longest_wait());
        let wanted = task.delay_ms.map(u64::from).map(Duration::from_millis);
        wanted.map_or(asked_for, |wanted| wanted.max(asked_for))
    }

    /// From memory, from the shared cache, from the web; with whether the web was asked just now.
    async fn rules(
        &self,
        site: &str,
        origin: &str,
        leave: &Leave,
    ) -> Result<(Rules, bool), Permission> {
        if let Some(rules) = self.robots.borrow().remembered(origin) {
            return Ok((rules, false));
        }
        if let Some(rules) = self.cached_rules(origin).await {
            return Ok((rules, false));
        }
        let turn = self.take_turn(Turn::Robots, site, leave).await;
        let _slot = turn.ok_or(Permission::NotAsked)?;
        // Whoever shares the site's clock may have asked while we waited. The page then needs a
        // turn of its own, under the delay that the rules name.
        if self.shared_clock.is_some()
            && let Some(rules) = self.cached_rules(origin).await
        {
            self.end_turn(site).await;
            return Ok((rules, false));
        }
        let started_ms = now_ms();
        let had = match robots::fetch(&self.gate, leave, origin).await {
            Ok(had) => had,
            Err(Barred::Shut) => return Err(Permission::NotAsked),
            Err(Barred::CutShort) => return Err(Permission::CutShort),
        };
        let pace = self.pace(self.politeness.delay());
        self.sites
            .borrow_mut()
            .answered(site, started_ms, had.answered_at, had.answer, pace);
        self.note_use(site);
        // Without an entry the gate was shut in the middle, between two redirects.
        let entry = had.entry.ok_or(Permission::CutShort)?;
        let rules = self.robots.borrow_mut().remember(&entry, had.unreachable);
        // A host that could not be asked at all says nothing that others should know.
        let worth_sharing = entry.status.is_some() || had.unreachable == Outcome::RobotsUnreachable;
        if !worth_sharing {
            return Ok((rules, true));
        }
        // If the cache is away, which it says itself, we are the only ones who know it.
        let _ = self.cache.put_robots(vec![entry], now_ms()).await;
        Ok((rules, true))
    }

    async fn cached_rules(&self, origin: &str) -> Option<Rules> {
        // If the cache is away, which it says itself, the web is asked.
        let entry = self.cache.robots(origin, now_ms()).await.ok().flatten()?;
        let mut robots = self.robots.borrow_mut();
        Some(robots.remember(&entry, Outcome::RobotsUnreachable))
    }

    /// Another worker, or this one before a restart, may have left the site's clock in the cache.
    async fn take_shared_clock(&self, site: &str) {
        // With reservations, the cache decides at each request.
        if self.shared_clock.is_some() || !self.sites.borrow_mut().wants_shared_clock(site) {
            return;
        }
        match self.cache.sites(vec![site.to_owned()], now_ms()).await {
            Ok(entries) => {
                for entry in entries.iter().flatten() {
                    self.sites.borrow_mut().take_shared_clock(entry);
                }
            }
            // It says itself that it is away.
            Err(_) => self.sites.borrow_mut().ask_shared_clock_again(site),
        }
    }

    fn fetched(
        &self,
        site: &str,
        task: Task,
        crawl: Arc<CrawlSettings>,
        url: &Url,
        request: Request,
        mut fetched: Fetched,
    ) -> FetchedPage {
        let mut ending = Ending::unfetched(task, crawl, Outcome::NetworkError);
        ending.started_at_ms = request.started_at_ms;
        self.note_answer(site, request, &fetched);
        ending.elapsed = request.started_at.elapsed();
        ending.next_start = self
            .sites
            .borrow()
            .next_start(site, Turn::Page(request.delay));
        ending.delay = Some(request.delay);
        let mut ending = ending.fetched(&mut fetched);
        if let Some(target) = &ending.redirect {
            ending.redirect = Some(absolute(url, target));
        }
        FetchedPage {
            ending,
            body: fetched.body,
            is_rendered: false,
            large_body: fetched.large_body,
            kept_room: None,
        }
    }

    /// Moves the site's clock.
    fn note_answer(&self, site: &str, request: Request, fetched: &Fetched) {
        // An address that must not be asked was not asked.
        if fetched.outcome == Outcome::UnsafeAddress {
            return;
        }
        self.note_use(site);
        let mut sites = self.sites.borrow_mut();
        let (started_ms, at) = (request.started_at_ms, fetched.answered_at);
        let pace = self.pace(request.delay);
        sites.answered(site, started_ms, at, fetched.answer, pace);
        sites.page_answered(site, at);
    }

    async fn hand_on(&self, mut page: FetchedPage) {
        if page.ending.crawl.body && page.ending.outcome == Outcome::Ok {
            page.kept_room = Some(self.kept_room.take(page.body.len()).await);
        }
        if page.ending.outcome != Outcome::Ok || page.body.is_empty() {
            let room = page.kept_room.take();
            page.ending.body = room.and_then(|room| kept::body("", room));
            return self.end(page.ending).await;
        }
        // The channel closes only after the last runner is done.
        let _ = self.extraction.send(Work::Page(Box::new(page))).await;
    }

    /// A refusal costs the site no request, so its clock holds the next task back only where the
    /// site is in trouble: until it answers for its robots.txt again.
    async fn end_refused(
        &self,
        site: &str,
        task: Task,
        crawl: Arc<CrawlSettings>,
        outcome: Outcome,
    ) {
        let mut ending = Ending::unfetched(task, crawl, outcome);
        if outcome == Outcome::RobotsUnreachable {
            ending.next_start = self.sites.borrow().next_start(site, Turn::Robots);
        }
        self.end(ending).await;
    }

    async fn end(&self, ending: Ending) {
        let _ = self.endings.send(ending).await;
    }

    /// Gives a task back whose page was not asked for. `delay` is what the site asks for, if that
    /// is known.
    fn return_task(&self, site: &str, task: &Task, delay: Option<Duration>) {
        let clock = delay.map(|delay| self.sites.borrow().clock(site, delay));
        self.return_as(ReturnCause::Unstarted, task, clock);
    }

    /// Gives a task back that was under way while we were stopped, or was not permitted any more in
    /// the middle: the page is not to blame.
    fn return_cut_short(&self, site: &str, task: &Task, delay: Duration) {
        self.note_use(site);
        let mut sites = self.sites.borrow_mut();
        sites.may_be_asked_until_now(site);
        let clock = sites.clock(site, delay);
        drop(sites);
        self.return_as(ReturnCause::CutShort, task, Some(clock));
    }

    fn return_as(&self, cause: ReturnCause, task: &Task, clock: Option<SiteClock>) {
        (self.give_back)(vec![TaskReturned {
            task: task.task,
            delivery: task.delivery,
            cause,
            clock,
        }]);
    }

    fn pace(&self, delay: Duration) -> Pace {
        Pace {
            delay,
            longest_wait: self.politeness.longest_wait(),
        }
    }
}

/// A request to be made: when it was started, by the monotonic clock and by the wall clock, and the
/// delay that it keeps.
#[derive(Debug, Clone, Copy)]
struct Request {
    started_at: Instant,
    started_at_ms: i64,
    delay: Duration,
}

impl Request {
    fn now(delay: Duration) -> Request {
        Request {
            started_at: Instant::now(),
            started_at_ms: now_ms(),
            delay,
        }
    }
}

/// A redirect's target against the URL that answered; what does not join is left for the intake
/// to refuse under its own name.
fn absolute(url: &Url, target: &str) -> String {
    match url.join(target) {
        Ok(joined) => joined.into(),
        Err(_) => target.to_owned(),
    }
}
