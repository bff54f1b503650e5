//! The dispatcher's state machine: its state, and the effect of each message. It has no sockets, no threads and no
//! clock: the caller passes in messages together with the time ([`inputs`]). Outgoing messages and store writes are
//! collected; a successful [`commit`](Core::commit) returns them for the caller to send.
//!
//! [`Core`] is made of parts that own their states: watches, notifications, drains, crawls that are being closed or
//! reopened. They share the [`Context`] that they are given.
//!
//! A URL arrives by [`requests`] or among the links of an outcome ([`outcomes`]), waits in the frontier, and leaves
//! by [`handing_out`] to one of the [`supervisors`].
//!
//! After a crash [`Core::open`] restores everything from the frontier's last commit: unfinished crawls, leases,
//! crawls that are being closed. Recalls and requests that waited for an answer are lost; the client has to ask
//! again.

use webfill_api::Refusal;
use webfill_wire::{CrawlKey, Lane};

use crate::dispatch::LOOKAHEAD_MS;
use crate::effects::{Client, Committed, OutgoingMessage};
use crate::frontier::{Frontier, FrontierError, PruneWalk, ignore_pruned};
use crate::mappings::Mappings;
use crate::reload::ReloadRequest;

mod auditing;
mod backends;
mod context;
mod counters;
mod crawl_writes;
mod crawls;
mod handing_out;
mod inputs;
mod machines;
mod metrics;
mod notifications;
mod outcomes;
mod paces;
mod recalls;
mod reloading;
mod requests;
mod site_states;
mod supervisors;
mod turn;
mod watches;
mod window;

pub use self::backends::{BackendReport, BackendsReport};
use self::context::Context;
pub use self::context::{CoreSettings, Environment};
pub use self::counters::Deliveries;
use self::crawl_writes::CrawlWrites;
pub use self::metrics::{CoreMetrics, HoldConditions};
use self::notifications::Notifications;
use self::requests::closing::ClosingCrawls;
use self::requests::drain::Drains;
use self::requests::feeds::FeedsUnderWay;
use self::requests::local_crawl::BackoffReport;
use self::requests::reports::ReportCache;
use self::requests::retry::ReopeningCrawls;
use self::requests::waiting::WaitingAnswers;
use self::site_states::SiteStateWrites;
pub use self::turn::TurnDeadline;
use self::watches::Watches;

pub struct Core {
    cx: Context,
    /// When [`on_tick`](Core::on_tick) last ran.
    last_tick_ms: i64,
    /// When to check next whether supervisors have left or are lost.
    next_check_ms: i64,
    crawl_writes: CrawlWrites,
    site_state_writes: SiteStateWrites,
    /// Requests to reload mappings and settings that the dispatcher's process has not begun yet.
    reloads_asked: Vec<ReloadRequest>,
    /// The client that waits for the end of the dispatcher, and the crawls whose final counters it wants.
    end_asked: Option<(Client, Vec<CrawlKey>)>,
    /// Drains of supervisors (they get no more tasks, and leave), with the clients that wait for the end of a drain.
    drains: Drains,
    /// Reports that are kept for a moment, because making one for each request would cost too much.
    reports: ReportCache,
    /// Stopped and expired crawls whose queues are being emptied.
    closing: ClosingCrawls,
    /// Crawls whose ended tasks are being queued again.
    reopening: ReopeningCrawls,
    /// Crawls whose rows are being deleted.
    pruning: Option<PruneWalk>,
    /// Answers to clients that are sent once the tasks recalled from supervisors have come back.
    waiting: WaitingAnswers,
    /// Long lists of crawl requests, which are accepted piece by piece.
    feeds: FeedsUnderWay,
    /// The sites that back off, as last reported to `webfill crawl`.
    backoffs: BackoffReport,
    watches: Watches,
    notifications: Notifications,
}

impl Core {
    /// Restores the state of the frontier's last commit.
    pub fn open(
        frontier: Frontier,
        settings: CoreSettings,
        mappings: Mappings,
        now_ms: i64,
    ) -> Result<Core, FrontierError> {
        let mut core = Core {
            cx: Context::new(frontier, settings, mappings, now_ms),
            last_tick_ms: now_ms,
            next_check_ms: now_ms,
            crawl_writes: CrawlWrites::new(now_ms),
            site_state_writes: SiteStateWrites::default(),
            reloads_asked: Vec::new(),
            end_asked: None,
            drains: Drains::default(),
            reports: ReportCache::default(),
            closing: ClosingCrawls::default(),
            reopening: ReopeningCrawls::default(),
            pruning: None,
            waiting: WaitingAnswers::default(),
            feeds: FeedsUnderWay::default(),
            backoffs: BackoffReport::default(),
            watches: Watches::default(),
            notifications: Notifications::default(),
        };
        for crawl in core.cx.frontier.crawls().unfinished_crawls()? {
            crawls::register_and_backfill_crawl(&mut core.cx, crawl, now_ms)?;
        }
        for crawl in core.cx.frontier.unsaved_crawls().unsaved_crawls()? {
            core.cx.frontier.crawls().mark_changed(crawl);
        }
        outcomes::store_recent_crashed_pages(&mut core.cx, now_ms)?;
        outcomes::retraction::resume_retractions(&mut core.cx, now_ms)?;
        supervisors::restore_leases(&mut core.cx, now_ms)?;
        core.closing.restore_closing_crawls(&mut core.cx)?;
        core.pruning = core.cx.frontier.pruning().begin_walk()?;
        Ok(core)
    }

    /// The frontier, for the simulation of several dispatchers: it makes extra writes in the same commits.
    pub fn frontier(&mut self) -> &mut Frontier {
        &mut self.cx.frontier
    }

    /// The observations that the process records for the core, such as a full disk.
    pub fn environment(&mut self) -> &mut Environment {
        &mut self.cx.surroundings
    }

    /// The lanes where a due task is certain to be handed out (see
    /// [`lanes_with_credit`](crate::dispatch::Dispatch::lanes_with_credit)). Empty while nothing may be handed out.
    pub fn lanes_with_credit(&self, now_ms: i64) -> Vec<Lane> {
        match self.cx.draining || self.cx.surroundings.low_disk.is_some() {
            true => Vec::new(),
            false => self.cx.dispatch.lanes_with_credit(now_ms),
        }
    }

    /// When the next task can be handed out, unless a message arrives earlier.
    pub fn next_ready_ms(&self) -> Option<i64> {
        if self.cx.draining
            || self.cx.surroundings.low_disk.is_some()
            || self.cx.dispatch.fleet.connected_count() == 0
        {
            return None;
        }
        let outside = self.cx.window.next_site_ms;
        let outside =
            outside.map(|due_ms| (due_ms - LOOKAHEAD_MS).max(self.cx.window.fill_again_ms));
        let inside = self.cx.dispatch.schedule.next_ready_ms();
        match (inside, outside) {
            (Some(inside), Some(outside)) => Some(inside.min(outside)),
            (one, other) => one.or(other),
        }
    }

    /// Sets how far the wall clock is ahead of the clock that `now_ms` comes from. They differ once the wall clock was
    /// set or the machine has slept.
    pub fn set_wall_ahead(&mut self, ahead_ms: i64) {
        self.cx.wall_ahead_ms = ahead_ms;
        self.cx.frontier.set_wall_ahead(ahead_ms);
    }

    /// When [`on_tick`](Core::on_tick) has something to do, unless a message arrives earlier.
    pub fn next_tick_ms(&self) -> i64 {
        let is_busy = self.pruning.is_some() || self.feeds.is_feeding();
        if is_busy || self.closing.can_advance() || self.reopening.can_advance() {
            return self.last_tick_ms;
        }
        let waits = [
            self.cx.recalls.next_deadline_ms(),
            self.closing
                .next_expiry_ms
                .map(|at_ms| at_ms.saturating_sub(self.cx.wall_ahead_ms)),
            handing_out::next_frontier_event_ms(&self.cx, self.last_tick_ms),
            self.watches.next_watch_check_ms(),
            // Only probes in the future count: a probe that is due already waits for a site, not for a time.
            self.cx
                .dispatch
                .fleet
                .next_probe_ms()
                .filter(|at_ms| *at_ms > self.last_tick_ms),
        ];
        let waits = waits.into_iter().flatten();
        waits.fold(self.next_check_ms, i64::min)
    }

    /// Commits everything since the last commit, and returns the messages that may leave now: a message must not
    /// leave before the state that it reports is durable. After an error every further commit fails, too.
    pub fn commit(&mut self, now_ms: i64) -> Result<Committed, FrontierError> {
        self.cx.frontier.set_now(now_ms);
        self.cx.frontier.commit()?;
        Ok(Committed {
            changes: vec![self.cx.frontier.take_changes()?],
            outgoing: std::mem::take(&mut self.cx.outgoing),
            store_writes: std::mem::take(&mut self.cx.store_writes),
            audited: std::mem::take(&mut self.cx.audited),
            deliveries: std::mem::take(&mut self.notifications.deliveries),
            changes_asked: std::mem::take(&mut self.notifications.asked),
            feeder_orders: std::mem::take(&mut self.watches.feeders),
            reloads_asked: std::mem::take(&mut self.reloads_asked),
        })
    }

    /// Does everything that time alone makes due: removes lost supervisors, ends overdue recalls, closes expired
    /// crawls, re-queues finished tasks, and prunes. Starts and ends runs of watches, sends waiting answers, writes the
    /// states of crawls and sites.
    pub fn on_tick(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        let lease_ms = self.cx.settings.lease_ms as i64;
        if now_ms - self.last_tick_ms > lease_ms / 2 {
            // This process was suspended or short of CPU time. Heartbeats that have arrived meanwhile are still
            // unread, so no supervisor is declared lost yet.
            self.next_check_ms = now_ms + lease_ms / 10;
        }
        self.last_tick_ms = now_ms;
        if now_ms >= self.next_check_ms {
            self.next_check_ms = now_ms + lease_ms / 10;
            supervisors::remove_gone_supervisors(&mut self.cx, &mut self.drains, now_ms)?;
            supervisors::report_silent_supervisors(&mut self.cx, now_ms);
            supervisors::save_silences(&mut self.cx, now_ms)?;
            self.cx.frontier.save_remaining_wait(now_ms)?;
            if self.cx.window.next_site_ms.is_some()
                || self.cx.dispatch.schedule.count_sites_in_window() > 0
            {
                self.cx.frontier.note_time(now_ms)?;
            }
        }
        self.cx.recalls.expire(now_ms);
        // A crawl may be pruned while a step still concerns it. Each step skips it; a pruned crawl must not end the
        // dispatcher.
        ignore_pruned(self.closing.advance_closing(&mut self.cx, now_ms), ())?;
        ignore_pruned(self.reopening.advance_reopening(&mut self.cx, now_ms), ())?;
        self.feeds
            .advance_feeds(&mut self.cx, &mut self.closing, now_ms)?;
        self.advance_pruning()?;
        ignore_pruned(
            self.watches.advance_watches(
                &mut self.cx,
                &mut self.notifications,
                &self.closing,
                now_ms,
            ),
            (),
        )?;
        ignore_pruned(
            self.notifications
                .advance_notifications(&mut self.cx, &self.watches, now_ms),
            (),
        )?;
        ignore_pruned(self.waiting.send_ready_answers(&mut self.cx, now_ms), ())?;
        self.site_state_writes
            .write_due_site_states(&mut self.cx, now_ms)?;
        self.crawl_writes.queue_due_writes(&mut self.cx, now_ms)
    }

    /// Notes that the store has saved the end of a crawl. `note`: the frontier remembers this end under this number
    /// until it is saved.
    pub fn on_crawl_saved(&mut self, note: i64) -> Result<(), FrontierError> {
        self.cx.frontier.unsaved_crawls().delete_note(note)
    }

    /// Whether the frontier's file is a backup copy, and `--restored` was not given to use it.
    pub fn is_copy(&self) -> bool {
        self.cx.frontier.origin().is_copy
    }

    pub fn supervisor_count(&self) -> usize {
        self.cx.dispatch.fleet.connected_count()
    }

    /// Whether the drain is over: no supervisor is connected any more. Supervisors that are not connected keep their
    /// leases.
    pub fn is_drained(&self) -> bool {
        self.cx.draining && self.cx.dispatch.fleet.connected_count() == 0
    }

    /// Commits for the last time, with the final states of the crawls and the answer to the client that waits for the
    /// end.
    pub fn close(&mut self, now_ms: i64) -> Result<Committed, FrontierError> {
        if let Some((peer, crawls)) = self.end_asked.take() {
            let answer = requests::local_crawl::crawl_status(
                &mut self.cx,
                &mut self.backoffs,
                &crawls,
                None,
                now_ms,
            );
            let pruned = Refusal::new("$.crawls", "one of them was pruned").to_answer();
            let answer = ignore_pruned(answer, pruned)?;
            self.cx
                .outgoing
                .push(OutgoingMessage::ToClient(peer, answer));
        }
        // The stored state of open crawls becomes `interrupted` now, though no counter has changed.
        crawl_writes::mark_open_crawls_changed(&mut self.cx);
        // Committed first, because crawls are written with their committed counters.
        let mut last = self.commit(now_ms)?;
        // States of sites beyond this batch are written after the next start.
        self.site_state_writes
            .write_site_states(&mut self.cx, now_ms)?;
        crawl_writes::queue_crawl_writes(&mut self.cx, usize::MAX, now_ms)?;
        let states = self.commit(now_ms)?;
        last.changes.extend(states.changes);
        last.store_writes.extend(states.store_writes);
        Ok(last)
    }
}
