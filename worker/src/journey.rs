//! The journey of one task through a worker:
//! robots -> politeness -> fetch -> extraction (decode, parse, mapping) -> save -> acknowledge.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore, mpsc};
use webfill_store::Cache;
use webfill_urls::{Url, origin};
use webfill_wire::{CrawlKey, CrawlSettings, Outcome, ReturnCause, Task, TaskReturned};

use crate::ending::{Ending, now_ms};
use crate::extract::{FetchedPage, Work};
use crate::fetch::Fetched;
use crate::gate::{Gate, Leave};
use crate::politeness::PolitenessConfig;
use crate::resolve::Resolver;
use crate::robots::{self, RobotsFiles, Rules};
use crate::sites::{Pace, Sites, Turn};

/// What the runners of all sites share. Everything here lives on the worker's main thread.
pub struct Journey {
    pub politeness: PolitenessConfig,
    pub gate: Gate,
    pub resolver: Resolver,
    pub cache: Arc<dyn Cache>,
    pub sites: RefCell<Sites>,
    pub robots: RefCell<RobotsFiles>,
    pub crawls: RefCell<HashMap<CrawlKey, Arc<CrawlSettings>>>,
    /// Fetches in flight.
    pub slots: Semaphore,
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
    /// The task is to be given back: robots.txt was not asked for to its end.
    NotAsked,
}

impl Journey {
    /// Takes the tasks of one site, one after another, until there are none.
    pub async fn run_site(self: Rc<Self>, site: String) {
        loop {
            let task = self.sites.borrow_mut().next_task(&site);
            let Some(task) = task else { return };
            let leave = self.gate.leave();
            if self.draining.get() {
                self.return_task(&site, &task);
                continue;
            }
            self.travel(&site, task, leave).await;
        }
    }

    /// Whether a task that has not asked for its page yet must be given back.
    fn is_called_back(&self, leave: Leave) -> bool {
        self.draining.get() || self.gate.is_recalled(leave)
    }

    async fn travel(&self, site: &str, task: Task, leave: Leave) {
        let crawl = self.crawls.borrow().get(&task.crawl).cloned();
        let (Some(crawl), Ok(url)) = (crawl, Url::parse(&task.url)) else {
            // Neither can happen with a dispatcher of our version; the lease must not stay away.
            return self.return_task(site, &task);
        };
        let (delay, asked) = match self.permission(site, &url, leave).await {
            Permission::Allowed { delay, asked } => (delay, asked),
            Permission::Refused(outcome) => {
                return self.end_refused(site, task, crawl, outcome).await;
            }
            Permission::NotAsked => return self.return_task(site, &task),
        };
        let turn = if asked {
            Turn::PageAfterRobots(delay)
        } else {
            Turn::Page(delay)
        };
        self.wait_for(turn, site, leave).await;
        let Ok(slot) = self.slots.acquire().await else {
            return self.return_task(site, &task);
        };
        if self.is_called_back(leave) {
            return self.return_task(site, &task);
        }
        let started = Started::now();
        let user_agent = crawl.useragent.clone();
        let Ok(fetched) = self.gate.page(leave, &url, user_agent.as_deref()).await else {
            return self.return_task(site, &task);
        };
        let fetched_page = self.fetched(site, task, crawl, &url, delay, started, fetched);
        // The slot is held until the body is with the extraction, which bounds bodies in memory.
        self.hand_on(fetched_page).await;
        drop(slot);
    }

    async fn permission(&self, site: &str, url: &Url, leave: Leave) -> Permission {
        self.take_shared_clock(site).await;
        let default_delay = self.politeness.delay();
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
        let Some((rules, asked)) = self.rules(site, &origin(url), leave).await else {
            return Permission::NotAsked;
        };
        let rules = match rules {
            Rules::Known(rules) => rules,
            Rules::Unreachable(outcome) => return Permission::Refused(outcome),
        };
        if !rules.allows(url) {
            return Permission::Refused(Outcome::Disallowed);
        }
        let delay = match rules.crawl_delay_ms() {
            Some(asked_for) => Duration::from_millis(asked_for).min(self.politeness.longest_wait()),
            None => default_delay,
        };
        Permission::Allowed { delay, asked }
    }

    /// From memory, from the shared cache, from the web; with whether the web was asked just now.
    async fn rules(&self, site: &str, origin: &str, leave: Leave) -> Option<(Rules, bool)> {
        if let Some(rules) = self.robots.borrow().remembered(origin) {
            return Some((rules, false));
        }
        match self.cache.robots(origin, now_ms()).await {
            Ok(Some(entry)) => {
                let mut robots = self.robots.borrow_mut();
                return Some((robots.remember(&entry, Outcome::RobotsUnreachable), false));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(event = "cache_failed", %error, "cannot read the cache of robots.txt files");
            }
        }
        self.wait_for(Turn::Robots, site, leave).await;
        let Ok(_slot) = self.slots.acquire().await else {
            return None;
        };
        if self.is_called_back(leave) {
            return None;
        }
        let started_ms = now_ms();
        let had = robots::fetch(&self.gate, leave, origin).await?;
        let pace = self.pace(self.politeness.delay());
        self.sites
            .borrow_mut()
            .answered(site, started_ms, had.answered_at, had.answer, pace);
        // Without an entry the gate was shut in the middle, between two redirects.
        let entry = had.entry?;
        let rules = self.robots.borrow_mut().remember(&entry, had.unreachable);
        // A host that could not be asked at all says nothing that others should know.
        let worth_sharing = entry.status.is_some() || had.unreachable == Outcome::RobotsUnreachable;
        if !worth_sharing {
            return Some((rules, true));
        }
        if let Err(error) = self.cache.put_robots(vec![entry], now_ms()).await {
            tracing::warn!(event = "cache_failed", %error, "cannot keep a robots.txt in the cache");
        }
        Some((rules, true))
    }

    /// Another worker, or this one before a restart, may have left the site's clock in the cache.
    async fn take_shared_clock(&self, site: &str) {
        if !self.sites.borrow_mut().wants_shared_clock(site) {
            return;
        }
        match self.cache.sites(vec![site.to_owned()], now_ms()).await {
            Ok(entries) => {
                for entry in entries.iter().flatten() {
                    self.sites.borrow_mut().take_shared_clock(entry);
                }
            }
            Err(error) => {
                tracing::warn!(event = "cache_failed", %error, "cannot read a site's clock");
            }
        }
    }

    /// Waits until the site's clock allows the next request; holds no slot meanwhile.
    async fn wait_for(&self, turn: Turn, site: &str, leave: Leave) {
        loop {
            let next = self.sites.borrow().next_start(site, turn);
            match next {
                Some(next) if next > Instant::now() && !self.is_called_back(leave) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(next.into()) => {}
                        () = self.called_back.notified() => {}
                    }
                }
                _ => return,
            }
        }
    }

    fn fetched(
        &self,
        site: &str,
        task: Task,
        crawl: Arc<CrawlSettings>,
        url: &Url,
        delay: Duration,
        started: Started,
        mut fetched: Fetched,
    ) -> FetchedPage {
        let mut ending = Ending::unfetched(task, crawl, Outcome::NetworkError);
        ending.started_at_ms = started.at_ms;
        // An address that must not be asked was not asked: its site's clock does not move.
        let asked = fetched.outcome != Outcome::UnsafeAddress;
        if asked {
            let mut sites = self.sites.borrow_mut();
            let at = fetched.answered_at;
            sites.answered(site, started.at_ms, at, fetched.answer, self.pace(delay));
            sites.page_answered(site, at);
        }
        ending.elapsed = started.at.elapsed();
        ending.next_start = self.sites.borrow().next_start(site, Turn::Page(delay));
        ending.delay = delay;
        let mut ending = ending.fetched(&mut fetched);
        if let Some(target) = &ending.redirect {
            ending.redirect = Some(absolute(url, target));
        }
        FetchedPage {
            ending,
            body: fetched.body,
            large_body: fetched.large_body,
        }
    }

    async fn hand_on(&self, page: FetchedPage) {
        if page.ending.outcome != Outcome::Ok || page.body.is_empty() {
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
        ending.delay = self
            .sites
            .borrow()
            .delay(site)
            .unwrap_or(self.politeness.delay());
        if outcome == Outcome::RobotsUnreachable {
            ending.next_start = self.sites.borrow().next_start(site, Turn::Robots);
        }
        self.end(ending).await;
    }

    async fn end(&self, ending: Ending) {
        let _ = self.endings.send(ending).await;
    }

    fn return_task(&self, site: &str, task: &Task) {
        (self.give_back)(vec![TaskReturned {
            task: task.task,
            attempt: task.attempt,
            cause: ReturnCause::Unstarted,
            clock: self.sites.borrow().clock(site),
        }]);
    }

    fn pace(&self, delay: Duration) -> Pace {
        Pace {
            delay,
            longest_wait: self.politeness.longest_wait(),
        }
    }
}

/// When a request was started, by the monotonic clock and by the wall clock.
#[derive(Debug, Clone, Copy)]
struct Started {
    at: Instant,
    at_ms: i64,
}

impl Started {
    fn now() -> Started {
        Started {
            at: Instant::now(),
            at_ms: now_ms(),
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
