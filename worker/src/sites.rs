//! Holds the queued tasks of every site that this worker owns, and the site's clock: the time of its next request.
//!
//! One runner per site takes its tasks one after another, so two requests to a site are never in flight at once. A site
//! is forgotten once it has no task, its next request may start, and its failures no longer count. With many idle
//! sites, failures count for a shorter time. All state is lost with the process: tasks go back to the dispatcher, and
//! the shared cache and the dispatcher have copies of the clocks.
//!
//! Nothing here reads a clock: every moment comes from the caller.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use webfill_store::SiteClockEntry;
use webfill_wire::{CrawlKey, RecallScope, SiteClock, Task};

use crate::now::{Now, millis_rounded_up};
use crate::politeness::{Answered, Clock, Pace};

/// The tasks and the clock of one site.
#[derive(Debug, Default)]
pub struct Site {
    queue: VecDeque<Task>,
    clock: Clock,
    /// The delay between two requests to the site that applied last.
    delay: Duration,
    /// Whether the site has had tasks here, which makes this worker its owner. Other sites are only visited: one
    /// request is sent to them.
    is_owned: bool,
    /// Whether a runner (a loop that processes the site's tasks) is at work.
    running: bool,
    /// Whether the process before this one may have sent a request to the site, and this one has requested no page yet.
    /// Until it does, the site's delay is unknown, so the clock is kept.
    inherited: bool,
    /// When this worker last looked up the site's clock in the shared cache, where another worker may have left it.
    clock_looked_up: Option<Instant>,
    /// When the last request of this worker to the site started.
    last_start: Option<Instant>,
    /// Whether the clock has changed since it was written to the shared cache.
    is_unsaved: bool,
    /// Whether the site is in the list [`Sites::idle`].
    is_watched: bool,
    alone: SitePermit,
}

/// A semaphore that allows one request to a site at a time. A runner holds it from before its wait for the site until
/// its request has ended. This may be the runner of another site, whose robots.txt redirects here.
#[derive(Debug)]
struct SitePermit(Arc<Semaphore>);

impl Default for SitePermit {
    fn default() -> SitePermit {
        SitePermit(Arc::new(Semaphore::new(1)))
    }
}

/// If a site got no request for this long, its clock is looked up again in the shared cache before the next one.
pub const RECHECK_AFTER: Duration = Duration::from_secs(30);

/// Once this many sites are idle, earlier failures of further sites count only until the site's next request is
/// allowed, because there may be hundreds of thousands of dead sites.
const MOST_IDLE: usize = 4_096;

/// When the clock of an idle site may be forgotten; `None` if it need not be kept. `idle` is the number of idle sites.
fn kept_until(site: &Site, idle: usize) -> Option<Instant> {
    match idle < MOST_IDLE {
        true => site.clock.expires_at(site.delay),
        false => site.clock.next_start(site.delay),
    }
}

/// All sites of this worker.
#[derive(Debug, Default)]
pub struct Sites {
    sites: HashMap<String, Site>,
    /// Sites whose clocks have changed since they were last written to the shared cache.
    moved: Vec<String>,
    /// Idle sites, each once, ordered by when they can be forgotten.
    idle: BinaryHeap<Reverse<(Instant, String)>>,
}

impl Sites {
    /// Queues a task. Returns whether the site needs a runner now.
    pub fn add(&mut self, task: Task, default_delay: Duration, now: Now) -> bool {
        let wait = Duration::from_millis(task.wait_ms.into());
        let site = self.sites.entry(task.site.clone()).or_insert_with(|| Site {
            delay: default_delay,
            ..Site::default()
        });
        site.is_owned = true;
        if !wait.is_zero() {
            site.clock.hold_until(now.instant + wait);
        }
        let ago = task.last_request_ago_ms.map(u64::from);
        let last = ago.and_then(|ago| now.instant.checked_sub(Duration::from_millis(ago)));
        if let Some(last) = last {
            site.clock.note_foreign_request(last);
        }
        // The task goes after tasks of the same priority, and before tasks of a lower one.
        let higher = |queued: &Task| queued.priority >= task.priority;
        let place = site.queue.partition_point(higher);
        site.queue.insert(place, task);
        !std::mem::replace(&mut site.running, true)
    }

    /// Takes the next task of the site; `None` ends the site's runner.
    pub fn next_task(&mut self, name: &str) -> Option<Task> {
        let site = self.sites.get_mut(name)?;
        let task = site.queue.pop_front();
        site.running = task.is_some();
        if task.is_none() {
            self.watch_idle(name);
        }
        task
    }

    /// Begins a visit (one request to a site that this worker may not own), because the robots.txt of another site
    /// redirects to this one.
    pub fn begin_visit(&mut self, name: &str, default_delay: Duration) {
        self.sites.entry(name.to_owned()).or_insert_with(|| Site {
            delay: default_delay,
            ..Site::default()
        });
    }

    pub fn end_visit(&mut self, name: &str) {
        self.watch_idle(name);
    }

    /// Whether the tasks of the site come to this worker.
    pub fn is_owned(&self, name: &str) -> bool {
        self.sites.get(name).is_some_and(|site| site.is_owned)
    }

    /// The semaphore that a runner must hold while it requests the site.
    pub fn request_semaphore(&self, name: &str) -> Option<Arc<Semaphore>> {
        self.sites.get(name).map(|site| Arc::clone(&site.alone.0))
    }

    /// Adds a site without runner and tasks to the idle sites, which are forgotten as soon as their clocks are no
    /// longer needed.
    fn watch_idle(&mut self, name: &str) {
        let Some(site) = self.sites.get_mut(name) else {
            return;
        };
        if site.is_watched || site.is_kept() {
            return;
        }
        match kept_until(site, self.idle.len()) {
            Some(at) => {
                site.is_watched = true;
                // Free the memory of the empty queue, because thousands of sites may be idle.
                site.queue = VecDeque::new();
                self.idle.push(Reverse((at, name.to_owned())));
            }
            None => {
                self.sites.remove(name);
            }
        }
    }

    /// The crawls that the queued tasks belong to.
    pub fn queued_crawls(&self) -> HashSet<CrawlKey> {
        let queued = self.sites.values().flat_map(|site| &site.queue);
        queued.map(|task| task.crawl).collect()
    }

    /// Takes the tasks in the scope out of the queues; running ones stay.
    pub fn take_queued(&mut self, scope: &RecallScope) -> Vec<Task> {
        let mut taken = Vec::new();
        for site in self.sites.values_mut() {
            let (in_scope, others) = std::mem::take(&mut site.queue)
                .into_iter()
                .partition(|task| scope.contains_task(task.crawl, &task.site, task.priority));
            site.queue = others;
            taken.extend::<VecDeque<Task>>(in_scope);
        }
        // Sites are unordered; sorting makes the order of returned tasks stable.
        taken.sort_unstable_by_key(|task| task.task);
        taken
    }

    /// Forgets the site's backoff and `Retry-After`, but not the time of its last request.
    pub fn forget_back_off(&mut self, name: &str) {
        if let Some(site) = self.sites.get_mut(name) {
            site.clock.forget_back_off();
        }
    }

    /// Notes sites that the process before this one may have been requesting when it died. They count as requested
    /// until now.
    pub fn inherit(&mut self, names: Vec<String>, default_delay: Duration, now: Now) {
        for name in names {
            let site = self.sites.entry(name).or_insert_with(|| Site {
                delay: default_delay,
                ..Site::default()
            });
            site.clock.note_foreign_request(now.instant);
            site.inherited = true;
        }
    }

    /// When the next request to the site may start.
    pub fn next_start(&self, name: &str, turn: Turn) -> Option<Instant> {
        let site = self.sites.get(name)?;
        match turn {
            Turn::Robots => site.clock.next_start(site.delay),
            Turn::Page(delay) => site.clock.next_start(delay),
            Turn::PageAfterRobots(delay) => site.clock.next_start_after_robots(delay),
        }
    }

    /// The site's clock as it is reported to the dispatcher, with `delay` between two requests.
    pub fn clock(&self, name: &str, delay: Duration, now: Now) -> SiteClock {
        let next = self.next_start(name, Turn::Page(delay));
        site_clock(next, Some(self.spacing(name, delay)), now)
    }

    /// The time between two requests to a site: `delay`, or more if the site accepts only fewer requests.
    pub fn spacing(&self, name: &str, delay: Duration) -> Duration {
        let site = self.sites.get(name);
        site.map_or(delay, |site| site.clock.spacing(delay))
    }

    /// The delay between two requests to the site that applied last.
    pub fn delay(&self, name: &str) -> Option<Duration> {
        self.sites.get(name).map(|site| site.delay)
    }

    /// Whether the caller must look up the site's clock in the shared cache now. It must before the first request, and
    /// again after [`RECHECK_AFTER`] without a request, because other workers may have requested the site meanwhile.
    /// The lookup counts as done unless [`Sites::note_failed_lookup`] is called.
    pub fn begin_clock_lookup(&mut self, name: &str, now: Now) -> bool {
        let Some(site) = self.sites.get_mut(name) else {
            return false;
        };
        let known = site.clock_looked_up.max(site.last_start);
        let is_known = site.clock_looked_up.is_some()
            && known.is_some_and(|known| now.instant < known + RECHECK_AFTER);
        if !is_known {
            site.clock_looked_up = Some(now.instant);
        }
        !is_known
    }

    /// Notes that the shared cache could not be reached. The next task tries the lookup again.
    pub fn note_failed_lookup(&mut self, name: &str) {
        if let Some(site) = self.sites.get_mut(name) {
            site.clock_looked_up = None;
        }
    }

    /// Takes over a site's clock (the time of its next request) from the shared cache.
    pub fn take_shared_clock(&mut self, entry: &SiteClockEntry, now: Now) {
        let Some(site) = self.sites.get_mut(&entry.site) else {
            return;
        };
        if let Some(accepted_ms) = entry.accepted_ms {
            site.clock
                .set_accepted_pace(Duration::from_millis(accepted_ms));
        }
        let delay_ms = entry.delay_ms.max(entry.accepted_ms.unwrap_or(0));
        let paced = entry.last_start_ms.saturating_add_unsigned(delay_ms);
        let until_ms = entry.blocked_until_ms.unwrap_or(paced).max(paced);
        // If the wall clock was set back, the last request seems to lie in the future. It counts as made now.
        let wait_ms = until_ms.saturating_sub(now.wall_ms.max(entry.last_start_ms));
        if wait_ms > 0 {
            let wait = Duration::from_millis(wait_ms as u64);
            site.clock.hold_until(now.instant + wait);
        }
    }

    /// Notes the answer to a request for a robots.txt. The delay for pages does not change.
    pub fn note_robots_answer(&mut self, name: &str, request: Answered, pace: Pace) {
        self.note_answer(name, request, pace);
    }

    /// Notes the answer to a request for a page.
    pub fn note_page_answer(&mut self, name: &str, request: Answered, pace: Pace) {
        if let Some(site) = self.note_answer(name, request, pace) {
            site.delay = pace.delay;
            site.clock.note_page_answer(request.at);
            site.inherited = false;
        }
    }

    fn note_answer(&mut self, name: &str, request: Answered, pace: Pace) -> Option<&mut Site> {
        let site = self.sites.get_mut(name)?;
        site.clock.note_answer(request, pace);
        site.last_start = Some(request.started.instant);
        if !std::mem::replace(&mut site.is_unsaved, true) {
            self.moved.push(name.to_owned());
        }
        Some(site)
    }

    /// Notes that a request was aborted, and may have been under way until now. Returns the site's clock as it is
    /// reported to the dispatcher, with `delay` between two requests.
    pub fn note_cut_short(&mut self, name: &str, delay: Duration, now: Now) -> SiteClock {
        if let Some(site) = self.sites.get_mut(name) {
            site.clock.note_foreign_request(now.instant);
        }
        self.clock(name, delay, now)
    }

    /// When the next task of a site may start, after a task whose page may not be fetched. If robots.txt was requested
    /// for it (`was_requested`), the next task waits for the site's delay. Otherwise it starts immediately.
    pub fn next_start_after_refusal(&self, name: &str, was_requested: bool) -> Option<Instant> {
        match was_requested {
            true => self.next_start(name, Turn::Robots),
            false => None,
        }
    }

    /// Returns the clocks that have changed since the last call, to be written to the shared cache. Also forgets idle
    /// sites that are no longer needed.
    pub fn take_moved_clocks(&mut self, owner: &str, now: Now) -> Vec<SiteClockEntry> {
        let mut moved = Vec::new();
        for name in std::mem::take(&mut self.moved) {
            if let Some(site) = self.sites.get_mut(&name)
                && std::mem::take(&mut site.is_unsaved)
                && let Some(last_start) = site.last_start
            {
                let next = site.clock.next_start(site.delay);
                let next = next.filter(|next| *next > now.instant);
                let wait_ms = next.map(|next| now.time_until(next).as_millis() as i64);
                // Both times are computed from the current wall clock, which may have been set since the request.
                let ago_ms = now
                    .instant
                    .saturating_duration_since(last_start)
                    .as_millis() as i64;
                let accepted = site.clock.accepted_pace();
                let accepted_ms = accepted.spacing().as_millis() as u64;
                moved.push(SiteClockEntry {
                    site: name,
                    last_start_ms: now.wall_ms - ago_ms,
                    delay_ms: site.delay.as_millis() as u64,
                    blocked_until_ms: wait_ms.map(|wait_ms| now.wall_ms + wait_ms),
                    owner: site.is_owned.then(|| owner.to_owned()),
                    reserved_until_ms: None,
                    accepted_ms: accepted.is_known().then_some(accepted_ms),
                });
            }
        }
        self.forget_idle(now);
        moved
    }

    /// Forgets the idle sites that are no longer needed. It looks only at those, however many others there are.
    fn forget_idle(&mut self, now: Now) {
        while let Some(Reverse((at, _))) = self.idle.peek()
            && *at <= now.instant
        {
            let Some(Reverse((_, name))) = self.idle.pop() else {
                return;
            };
            let Some(site) = self.sites.get_mut(&name) else {
                continue;
            };
            site.is_watched = false;
            let until = kept_until(site, self.idle.len());
            if until.is_some_and(|at| at > now.instant) {
                self.watch_idle(&name);
            } else if !site.is_kept() {
                self.sites.remove(&name);
            }
        }
    }

    /// Notes that these clocks did not reach the shared cache. The next call of [`Sites::take_moved_clocks`] lists them
    /// again. A site that was forgotten meanwhile needs no entry there.
    pub fn mark_clocks_unsaved(&mut self, moved: Vec<SiteClockEntry>) {
        for entry in moved {
            if let Some(site) = self.sites.get_mut(&entry.site)
                && !std::mem::replace(&mut site.is_unsaved, true)
            {
                self.moved.push(entry.site);
            }
        }
    }
}

impl Site {
    /// Whether a site must be kept regardless of its clock: it has a runner, a visitor or a task, or it was taken over
    /// from the process before this one.
    fn is_kept(&self) -> bool {
        let is_visited = Arc::strong_count(&self.alone.0) > 1;
        self.running || self.inherited || is_visited || !self.queue.is_empty()
    }
}

/// A site's clock as it is reported to the dispatcher: the time until its next request may start, and the delay between
/// two requests, if known.
pub fn site_clock(next: Option<Instant>, delay: Option<Duration>, now: Now) -> SiteClock {
    SiteClock {
        next_in_ms: millis_rounded_up(next.map_or(Duration::ZERO, |next| now.time_until(next))),
        delay_ms: delay.map(millis_rounded_up),
    }
}

/// The purpose of a request, which decides what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// A request for robots.txt. The delay of the site applies as far as it is known.
    Robots,
    /// A request for a page, with this delay between two requests.
    Page(Duration),
    /// A request for a page right after its robots.txt. The delay counts from the page before.
    PageAfterRobots(Duration),
}

#[cfg(test)]
mod tests;
