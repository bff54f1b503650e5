//! The tasks and the clock of every site that this worker owns.
//!
//! One runner per site takes its tasks one after another, so that two requests to a site are
//! never in flight at once. A site is forgotten once it has no task and its clock holds nothing
//! back; until then its clock stays, however long that is.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use webfill_store::SiteEntry;
use webfill_wire::{CrawlKey, RecallScope, SiteClock, Task};

use crate::ending::{millis, now_ms};
use crate::politeness::{Answer, Clock};

/// A site as its runner sees it.
#[derive(Debug, Default)]
pub struct Site {
    queue: VecDeque<Task>,
    clock: Clock,
    /// The delay last in force.
    delay: Duration,
    /// A runner is at work.
    running: bool,
    /// The worker before us may have asked it, and we have not yet: how long its delay is, and thus
    /// when that is of no more interest, we do not know.
    inherited: bool,
    /// The shared cache was asked for the clock that another worker may have left there.
    clock_known: bool,
    /// Start of the last request, for the shared cache; `None` once it was written there.
    unsaved_start_ms: Option<i64>,
}

/// All sites of this worker.
#[derive(Debug, Default)]
pub struct Sites {
    sites: HashMap<String, Site>,
}

impl Sites {
    /// Queues a task. Returns whether the site needs a runner now.
    pub fn add(&mut self, task: Task, default_delay: Duration) -> bool {
        let wait = Duration::from_millis(task.wait_ms.into());
        let site = self.sites.entry(task.site.clone()).or_insert_with(|| Site {
            delay: default_delay,
            ..Site::default()
        });
        let now = Instant::now();
        if !wait.is_zero() {
            site.clock.hold_until(now + wait);
        }
        let ago = task.last_request_ago_ms.map(u64::from);
        if let Some(last) = ago.and_then(|ago| now.checked_sub(Duration::from_millis(ago))) {
            site.clock.another_asked(last);
        }
        // Behind those of the same priority, before those of a lower one.
        let higher = |queued: &Task| queued.priority >= task.priority;
        let place = site.queue.partition_point(higher);
        site.queue.insert(place, task);
        !std::mem::replace(&mut site.running, true)
    }

    /// The site's next task; `None` ends its runner.
    pub fn next_task(&mut self, name: &str) -> Option<Task> {
        let site = self.sites.get_mut(name)?;
        let task = site.queue.pop_front();
        site.running = task.is_some();
        task
    }

    /// The crawls of tasks that no runner has begun.
    pub fn queued_crawls(&self) -> HashSet<CrawlKey> {
        let queued = self.sites.values().flat_map(|site| &site.queue);
        queued.map(|task| task.crawl).collect()
    }

    /// Takes away these tasks, as far as no runner has begun them.
    pub fn take_queued(&mut self, scope: &RecallScope) -> Vec<Task> {
        let mut taken = Vec::new();
        for site in self.sites.values_mut() {
            let (meant, others) = std::mem::take(&mut site.queue)
                .into_iter()
                .partition(|task| scope.holds(task.crawl, &task.site, task.priority));
            site.queue = others;
            taken.extend::<VecDeque<Task>>(meant);
        }
        taken
    }

    /// Forgets for how long the site wanted to be left alone, but not when it was asked last.
    pub fn forget_back_off(&mut self, name: &str) {
        if let Some(site) = self.sites.get_mut(name) {
            site.clock.forget_back_off();
        }
    }

    /// Sites that the worker before us may have been asking when it died: as if it had until now.
    pub fn inherit(&mut self, names: Vec<String>, default_delay: Duration) {
        let now = Instant::now();
        for name in names {
            let site = self.sites.entry(name).or_insert_with(|| Site {
                delay: default_delay,
                ..Site::default()
            });
            site.clock.another_asked(now);
            site.inherited = true;
        }
    }

    /// When the site's next request may start.
    pub fn next_start(&self, name: &str, turn: Turn) -> Option<Instant> {
        let site = self.sites.get(name)?;
        match turn {
            Turn::Robots => site.clock.next(site.delay),
            Turn::Page(delay) => site.clock.next(delay),
            Turn::PageAfterRobots(delay) => site.clock.next_after_robots(delay),
        }
    }

    /// The site's clock under a delay, as the dispatcher is told of it.
    pub fn clock(&self, name: &str, delay: Duration) -> SiteClock {
        let next = self.next_start(name, Turn::Page(delay));
        let wait = next.map_or(Duration::ZERO, |next| {
            next.saturating_duration_since(Instant::now())
        });
        SiteClock {
            next_in_ms: millis(wait),
            delay_ms: Some(millis(delay)),
        }
    }

    /// The delay last in force.
    pub fn delay(&self, name: &str) -> Option<Duration> {
        self.sites.get(name).map(|site| site.delay)
    }

    /// Whether the shared cache should be asked for this site's clock, once.
    pub fn wants_shared_clock(&mut self, name: &str) -> bool {
        match self.sites.get_mut(name) {
            Some(site) => !std::mem::replace(&mut site.clock_known, true),
            None => false,
        }
    }

    /// The shared cache could not be asked.
    pub fn ask_shared_clock_again(&mut self, name: &str) {
        if let Some(site) = self.sites.get_mut(name) {
            site.clock_known = false;
        }
    }

    /// Takes over a clock that the shared cache knows.
    pub fn take_shared_clock(&mut self, entry: &SiteEntry) {
        let Some(site) = self.sites.get_mut(&entry.site) else {
            return;
        };
        let paced = entry.last_start_ms.saturating_add_unsigned(entry.delay_ms);
        let until_ms = entry.blocked_until_ms.unwrap_or(paced).max(paced);
        // By a clock that was set back, the last request lies ahead of us: it was made by now.
        let wait_ms = until_ms.saturating_sub(now_ms().max(entry.last_start_ms));
        if wait_ms > 0 {
            site.clock
                .hold_until(Instant::now() + Duration::from_millis(wait_ms as u64));
        }
    }

    /// A request that started at `started_ms` was answered at `at`.
    pub fn answered(
        &mut self,
        name: &str,
        started_ms: i64,
        at: Instant,
        answer: Answer,
        pace: Pace,
    ) {
        if let Some(site) = self.sites.get_mut(name) {
            site.clock
                .answered(at, answer, pace.delay, pace.longest_wait);
            site.delay = pace.delay;
            site.unsaved_start_ms = Some(started_ms);
        }
    }

    /// A request of ours may have been under way until now.
    pub fn may_be_asked_until_now(&mut self, name: &str) {
        if let Some(site) = self.sites.get_mut(name) {
            site.clock.another_asked(Instant::now());
        }
    }

    /// The request that was answered at `at` was for a page.
    pub fn page_answered(&mut self, name: &str, at: Instant) {
        if let Some(site) = self.sites.get_mut(name) {
            site.clock.page_answered(at);
            site.inherited = false;
        }
    }

    /// The clocks that moved since the last call, for the shared cache; forgets idle sites.
    pub fn moved_clocks(&mut self, owner: &str) -> Vec<SiteEntry> {
        let now = Instant::now();
        let mut moved = Vec::new();
        for (name, site) in &mut self.sites {
            if let Some(last_start_ms) = site.unsaved_start_ms.take()
                && let Some(next) = site.clock.next(site.delay).filter(|next| *next > now)
            {
                let wait_ms = next.duration_since(now).as_millis() as i64;
                moved.push(SiteEntry {
                    site: name.clone(),
                    last_start_ms,
                    delay_ms: site.delay.as_millis() as u64,
                    blocked_until_ms: Some(now_ms() + wait_ms),
                    owner: Some(owner.to_owned()),
                });
            }
        }
        self.sites.retain(|_, site| {
            site.running
                || site.inherited
                || !site.queue.is_empty()
                || !site.clock.has_passed(now, site.delay)
        });
        moved
    }

    /// These clocks did not reach the shared cache; a site that was forgotten needs none there.
    pub fn write_again(&mut self, moved: Vec<SiteEntry>) {
        for entry in moved {
            if let Some(site) = self.sites.get_mut(&entry.site) {
                site.unsaved_start_ms = site.unsaved_start_ms.max(Some(entry.last_start_ms));
            }
        }
    }
}

/// What a request is for, which decides what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// robots.txt, under the delay that is known so far.
    Robots,
    /// A page, under this delay.
    Page(Duration),
    /// A page right after its robots.txt, which it need not keep a distance from.
    PageAfterRobots(Duration),
}

/// The delay in force and the longest wait that a server can ask for.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub delay: Duration,
    pub longest_wait: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u64, site: &str, priority: u8) -> Task {
        Task {
            task: id,
            delivery: 1,
            crawl: 1,
            url: format!("http://{site}/{id}"),
            site: site.into(),
            depth: 0,
            wait_ms: 0,
            last_request_ago_ms: None,
            parent: None,
            attrs: None,
            records: Vec::new(),
            priority,
            delay_ms: None,
            failed_attempts: Vec::new(),
        }
    }

    #[test]
    fn the_highest_priority_of_a_site_goes_first_and_then_the_oldest() {
        let mut sites = Sites::default();
        for (id, priority) in [(1, 50), (2, 90), (3, 50), (4, 90)] {
            sites.add(task(id, "a.org", priority), Duration::ZERO);
        }
        let order: Vec<u64> = std::iter::from_fn(|| sites.next_task("a.org"))
            .map(|task| task.task)
            .collect();
        assert_eq!(order, [2, 4, 1, 3]);
    }

    #[test]
    fn the_crawls_of_tasks_that_wait_are_known() {
        let mut sites = Sites::default();
        for (id, crawl) in [(1, 7), (2, 8), (3, 7)] {
            let task = Task {
                crawl,
                ..task(id, "a.org", 50)
            };
            sites.add(task, Duration::ZERO);
        }
        assert_eq!(sites.queued_crawls(), HashSet::from([7, 8]));
        sites.next_task("a.org");
        sites.next_task("a.org");
        assert_eq!(sites.queued_crawls(), HashSet::from([7]));
    }

    #[test]
    fn only_what_is_meant_is_taken_from_the_queues() {
        let mut sites = Sites::default();
        for (id, site, priority) in [(1, "a.org", 50), (2, "a.org", 90), (3, "b.org", 50)] {
            sites.add(task(id, site, priority), Duration::ZERO);
        }
        let scope = RecallScope {
            site: Some("a.org".into()),
            below: Some(90),
            ..RecallScope::default()
        };
        let taken: Vec<u64> = sites
            .take_queued(&scope)
            .iter()
            .map(|task| task.task)
            .collect();
        assert_eq!(taken, [1]);
        assert_eq!(sites.next_task("a.org").map(|task| task.task), Some(2));
        assert_eq!(sites.next_task("b.org").map(|task| task.task), Some(3));
    }

    #[test]
    fn a_forgotten_back_off_leaves_the_delay() {
        let (mut sites, now) = (Sites::default(), Instant::now());
        let delay = Duration::from_secs(5);
        sites.add(task(1, "a.org", 50), delay);
        let pace = Pace {
            delay,
            longest_wait: Duration::from_secs(1_000),
        };
        let retry_after = Some(Duration::from_secs(500));
        sites.answered("a.org", 0, now, Answer::Overloaded { retry_after }, pace);
        assert!(
            sites.next_start("a.org", Turn::Page(delay)) >= Some(now + Duration::from_secs(500))
        );
        sites.forget_back_off("a.org");
        assert_eq!(
            sites.next_start("a.org", Turn::Page(delay)),
            Some(now + delay)
        );
    }
}
