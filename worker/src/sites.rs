//! The tasks and the clock of every site that this worker owns.
//!
//! One runner per site takes its tasks one after another, so that two requests to a site are
//! never in flight at once. A site is forgotten once it has no task and its clock holds nothing
//! back; until then its clock stays, however long that is. All of it is lost with the process:
//! tasks go back to the dispatcher, and clocks are in the shared cache and at the dispatcher.
//!
//! Nothing here reads a clock: every moment comes from the caller.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use webfill_store::SiteEntry;
use webfill_wire::{CrawlKey, Outcome, RecallScope, SiteClock, Task};

use crate::now::{Now, millis_rounded_up};
use crate::politeness::{Answer, Clock, Pace};

/// A site as its runner sees it.
#[derive(Debug, Default)]
pub struct Site {
    queue: VecDeque<Task>,
    clock: Clock,
    /// The delay last in force.
    delay: Duration,
    /// A runner is at work.
    running: bool,
    /// The worker before this one may have requested something of the site, and this worker has
    /// requested no page yet. Until then the site's delay is unknown, so the clock is kept.
    inherited: bool,
    /// The shared cache was asked for the clock that another worker may have left there.
    clock_looked_up: bool,
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
    pub fn add(&mut self, task: Task, default_delay: Duration, now: Now) -> bool {
        let wait = Duration::from_millis(task.wait_ms.into());
        let site = self.sites.entry(task.site.clone()).or_insert_with(|| Site {
            delay: default_delay,
            ..Site::default()
        });
        if !wait.is_zero() {
            site.clock.hold_until(now.instant + wait);
        }
        let ago = task.last_request_ago_ms.map(u64::from);
        let last = ago.and_then(|ago| now.instant.checked_sub(Duration::from_millis(ago)));
        if let Some(last) = last {
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

    /// The crawls of tasks that no runner has taken up.
    pub fn queued_crawls(&self) -> HashSet<CrawlKey> {
        let queued = self.sites.values().flat_map(|site| &site.queue);
        queued.map(|task| task.crawl).collect()
    }

    /// Takes the tasks in the scope out of the queues; those that a runner has taken up stay.
    pub fn take_queued(&mut self, scope: &RecallScope) -> Vec<Task> {
        let mut taken = Vec::new();
        for site in self.sites.values_mut() {
            let (in_scope, others) = std::mem::take(&mut site.queue)
                .into_iter()
                .partition(|task| scope.holds(task.crawl, &task.site, task.priority));
            site.queue = others;
            taken.extend::<VecDeque<Task>>(in_scope);
        }
        taken
    }

    /// Forgets the site's back-off and `Retry-After`, but not the time of its last request.
    pub fn forget_back_off(&mut self, name: &str) {
        if let Some(site) = self.sites.get_mut(name) {
            site.clock.forget_back_off();
        }
    }

    /// Sites of which the worker before this one may have requested something when it died: they
    /// count as requested until now.
    pub fn inherit(&mut self, names: Vec<String>, default_delay: Duration, now: Now) {
        for name in names {
            let site = self.sites.entry(name).or_insert_with(|| Site {
                delay: default_delay,
                ..Site::default()
            });
            site.clock.another_asked(now.instant);
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
    pub fn clock(&self, name: &str, delay: Duration, now: Now) -> SiteClock {
        let next = self.next_start(name, Turn::Page(delay));
        site_clock(next, Some(delay), now)
    }

    /// The delay last in force.
    pub fn delay(&self, name: &str) -> Option<Duration> {
        self.sites.get(name).map(|site| site.delay)
    }

    /// Whether the caller is to look the site's clock up in the shared cache now. True once: the
    /// look-up counts as made unless [`Sites::clock_lookup_failed`] is called.
    pub fn begin_clock_lookup(&mut self, name: &str) -> bool {
        match self.sites.get_mut(name) {
            Some(site) => !std::mem::replace(&mut site.clock_looked_up, true),
            None => false,
        }
    }

    /// The shared cache could not be reached; the next task's look-up tries again.
    pub fn clock_lookup_failed(&mut self, name: &str) {
        if let Some(site) = self.sites.get_mut(name) {
            site.clock_looked_up = false;
        }
    }

    /// Takes over a clock from the shared cache.
    pub fn take_shared_clock(&mut self, entry: &SiteEntry, now: Now) {
        let Some(site) = self.sites.get_mut(&entry.site) else {
            return;
        };
        let paced = entry.last_start_ms.saturating_add_unsigned(entry.delay_ms);
        let until_ms = entry.blocked_until_ms.unwrap_or(paced).max(paced);
        // If the wall clock was set back, the last request seems to lie in the future; it was made
        // by now.
        let wait_ms = until_ms.saturating_sub(now.wall_ms.max(entry.last_start_ms));
        if wait_ms > 0 {
            let wait = Duration::from_millis(wait_ms as u64);
            site.clock.hold_until(now.instant + wait);
        }
    }

    /// A request for the site's robots.txt that started at `started_ms` was answered at `at`.
    pub fn robots_answered(
        &mut self,
        name: &str,
        started_ms: i64,
        at: Instant,
        answer: Answer,
        pace: Pace,
    ) {
        if let Some(site) = self.sites.get_mut(name) {
            site.answered(started_ms, at, answer, pace);
        }
    }

    /// A request for a page that started at `started_ms` was answered at `at`.
    pub fn page_answered(
        &mut self,
        name: &str,
        started_ms: i64,
        at: Instant,
        answer: Answer,
        pace: Pace,
    ) {
        if let Some(site) = self.sites.get_mut(name) {
            site.answered(started_ms, at, answer, pace);
            site.clock.page_answered(at);
            site.inherited = false;
        }
    }

    /// A request was broken off, and may have been under way until now. Returns the site's clock
    /// under this delay, as the dispatcher is told of it.
    pub fn request_cut_short(&mut self, name: &str, delay: Duration, now: Now) -> SiteClock {
        if let Some(site) = self.sites.get_mut(name) {
            site.clock.another_asked(now.instant);
        }
        self.clock(name, delay, now)
    }

    /// When the next task may follow one that was refused without a request. A refusal costs the
    /// site nothing, so it holds the next task back only if robots.txt is unreachable: until
    /// robots.txt may be requested again.
    pub fn next_start_after_refusal(&self, name: &str, outcome: Outcome) -> Option<Instant> {
        match outcome {
            Outcome::RobotsUnreachable => self.next_start(name, Turn::Robots),
            _ => None,
        }
    }

    /// The clocks that moved since the last call, for the shared cache; forgets idle sites.
    pub fn moved_clocks(&mut self, owner: &str, now: Now) -> Vec<SiteEntry> {
        let mut moved = Vec::new();
        for (name, site) in &mut self.sites {
            if let Some(last_start_ms) = site.unsaved_start_ms.take()
                && let Some(next) = site
                    .clock
                    .next(site.delay)
                    .filter(|next| *next > now.instant)
            {
                let wait_ms = now.until(next).as_millis() as i64;
                moved.push(SiteEntry {
                    site: name.clone(),
                    last_start_ms,
                    delay_ms: site.delay.as_millis() as u64,
                    blocked_until_ms: Some(now.wall_ms + wait_ms),
                    owner: Some(owner.to_owned()),
                });
            }
        }
        self.sites.retain(|_, site| {
            site.running
                || site.inherited
                || !site.queue.is_empty()
                || !site.clock.has_passed(now.instant, site.delay)
        });
        moved
    }

    /// These clocks did not reach the shared cache, so the next call of [`Sites::moved_clocks`] lists
    /// them again. A site that was forgotten meanwhile needs no entry there.
    pub fn write_again(&mut self, moved: Vec<SiteEntry>) {
        for entry in moved {
            if let Some(site) = self.sites.get_mut(&entry.site) {
                site.unsaved_start_ms = site.unsaved_start_ms.max(Some(entry.last_start_ms));
            }
        }
    }
}

impl Site {
    fn answered(&mut self, started_ms: i64, at: Instant, answer: Answer, pace: Pace) {
        self.clock.answered(at, answer, pace);
        self.delay = pace.delay;
        self.unsaved_start_ms = Some(started_ms);
    }
}

/// What the dispatcher is told of a site's clock: when its next request may start, and the delay in
/// force, if that is known.
pub fn site_clock(next: Option<Instant>, delay: Option<Duration>, now: Now) -> SiteClock {
    SiteClock {
        next_in_ms: millis_rounded_up(next.map_or(Duration::ZERO, |next| now.until(next))),
        delay_ms: delay.map(millis_rounded_up),
    }
}

/// What a request is for, which decides what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// robots.txt, under the delay that is known so far.
    Robots,
    /// A page, under this delay.
    Page(Duration),
    /// A page right after its robots.txt: the delay counts from the page before.
    PageAfterRobots(Duration),
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
            given_up: None,
        }
    }

    #[test]
    fn the_highest_priority_of_a_site_goes_first_and_then_the_oldest() {
        let mut sites = Sites::default();
        for (id, priority) in [(1, 50), (2, 90), (3, 50), (4, 90)] {
            sites.add(task(id, "a.org", priority), Duration::ZERO, Now::read());
        }
        let order: Vec<u64> = std::iter::from_fn(|| sites.next_task("a.org"))
            .map(|task| task.task)
            .collect();
        assert_eq!(order, [2, 4, 1, 3]);
    }

    #[test]
    fn the_crawls_of_queued_tasks_are_known() {
        let mut sites = Sites::default();
        for (id, crawl) in [(1, 7), (2, 8), (3, 7)] {
            let task = Task {
                crawl,
                ..task(id, "a.org", 50)
            };
            sites.add(task, Duration::ZERO, Now::read());
        }
        assert_eq!(sites.queued_crawls(), HashSet::from([7, 8]));
        sites.next_task("a.org");
        sites.next_task("a.org");
        assert_eq!(sites.queued_crawls(), HashSet::from([7]));
    }

    #[test]
    fn only_tasks_in_the_scope_are_taken_out_of_the_queues() {
        let mut sites = Sites::default();
        for (id, site, priority) in [(1, "a.org", 50), (2, "a.org", 90), (3, "b.org", 50)] {
            sites.add(task(id, site, priority), Duration::ZERO, Now::read());
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
    fn only_an_unreachable_robots_txt_makes_a_refusal_hold_the_next_task_back() {
        let (mut sites, now) = (Sites::default(), Now::read());
        let delay = Duration::from_secs(5);
        sites.add(task(1, "a.org", 50), delay, now);
        let pace = Pace {
            delay,
            longest_wait: Duration::from_secs(1_000),
        };
        sites.robots_answered("a.org", 0, now.instant, Answer::Silent, pace);
        let next = |outcome| sites.next_start_after_refusal("a.org", outcome);
        assert_eq!(next(Outcome::Disallowed), None);
        assert_eq!(next(Outcome::RobotsUnreachable), Some(now.instant + delay));
    }

    #[test]
    fn a_forgotten_back_off_leaves_the_delay() {
        let (mut sites, now) = (Sites::default(), Now::read());
        let delay = Duration::from_secs(5);
        sites.add(task(1, "a.org", 50), delay, now);
        let pace = Pace {
            delay,
            longest_wait: Duration::from_secs(1_000),
        };
        let retry_after = Some(Duration::from_secs(500));
        let now = now.instant;
        sites.page_answered("a.org", 0, now, Answer::Overloaded { retry_after }, pace);
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
