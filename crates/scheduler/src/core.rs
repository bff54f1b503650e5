//! The dispatcher's state machine: its state, and what each message does to it. It has no sockets,
//! no threads and no clock. The caller passes messages in together with the time; what is to leave
//! is collected as outgoing messages and store writes, which a successful [`commit`](Core::commit)
//! returns for the caller to send.
//!
//! A URL arrives by [`requests`] or among the links of an outcome ([`outcomes`]), waits in the
//! frontier, and leaves by [`handing_out`] to one of the [`supervisors`].
//!
//! After a crash [`Core::open`] restores everything from the frontier's last commit: unfinished
//! crawls, leases, crawls that are being closed. Recalls and requests that waited for an answer are
//! lost; the client asks again.

use webfill_api::Refusal;
use webfill_wire::{CrawlKey, DispatcherToSupervisor, Lane, RefusalLog};

use crate::caller::Caller;
use crate::crawl_registry::CrawlRegistry;
use crate::dispatch::{Dispatch, GroupBounds, LOOKAHEAD_MS};
use crate::effects::{
    Audited, Client, Committed, CrawlWrite, OutgoingMessage, StandingExtractions, StoreWrite,
};
use crate::frontier::{Frontier, FrontierError, PruneWalk, if_pruned};
use crate::mappings::Mappings;
use crate::reload::ReloadAsked;

mod backends;
mod figures;
mod handing_out;
mod machines;
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

pub use self::backends::{BackendReport, BackendsReport};
use self::figures::Counters;
pub use self::figures::{Conditions, CoreFigures, Deliveries};
use self::handing_out::UnderservedCrawls;
use self::notifications::Notifications;
pub use self::notifications::{ChangesAnswer, ChangesAsked, ChangesFound, ChangesQuestion};
use self::paces::Paces;
use self::recalls::Recalls;
use self::requests::{
    BackoffReport, ClosingCrawls, Drains, FeedsUnderWay, ReopeningCrawls, ToldAgain, WaitingAnswer,
};
use self::site_states::SiteStateWrites;
pub use self::turn::TurnEnd;
pub use self::watches::FeederOrder;
use self::watches::Watches;

/// How often the states of changed crawls are written to the store.
const CRAWLS_EVERY_MS: i64 = 5_000;

/// At most this many crawls are written at once, and the rest [`MORE_CRAWLS_AFTER_MS`] later, so
/// that the store keeps up.
const CRAWLS_AT_ONCE: usize = 200;
const MORE_CRAWLS_AFTER_MS: i64 = 500;

/// The part of the configuration that the state machine needs.
#[derive(Debug, Clone)]
pub struct CoreSettings {
    /// The delay between two requests to a site whose own delay is not known yet.
    pub default_delay_ms: u32,
    /// How long after its last heartbeat a supervisor may start fetches.
    pub lease_ms: u64,
    /// At most this many sites are in the window, that is, in memory.
    pub window_sites: usize,
    /// The bounds of sites that share an address or a provider; `None`: there are none.
    pub group_bounds: Option<GroupBounds>,
}

/// How many messages have come from supervisors and gone to them since the start.
#[derive(Debug, Clone, Copy, Default)]
struct Messages {
    received: u64,
    sent: u64,
}

pub struct Core {
    settings: CoreSettings,
    frontier: Frontier,
    dispatch: Dispatch,
    crawls: CrawlRegistry,
    mappings: Mappings,
    /// Reloads that are to begin.
    reloads_asked: Vec<ReloadAsked>,
    outgoing: Vec<OutgoingMessage>,
    messages: Messages,
    store_writes: Vec<StoreWrite>,
    audited: Vec<Audited>,
    /// When a step that may go on in the next turn is to stop.
    pub turn_end: TurnEnd,
    /// When [`on_tick`](Core::on_tick) last ran.
    last_tick_ms: i64,
    /// When to check next for supervisors that have left or are lost.
    next_check_ms: i64,
    crawls_at_ms: i64,
    site_state_writes: SiteStateWrites,
    /// When the first site outside the window is due.
    next_site_ms: Option<i64>,
    /// Crawls with few sites in a full window, which are admitted first.
    underserved: UnderservedCrawls,
    /// When to try again to fill a window that was full.
    fill_again_ms: i64,
    /// The last call of `hand_out` stopped before it had tried all ready sites.
    has_more: bool,
    recalls: Recalls,
    draining: bool,
    /// The client that waits for the end, and the crawls whose counters it asked for.
    end_asked: Option<(Client, Vec<CrawlKey>)>,
    /// Drains of supervisors that clients wait for.
    drains: Drains,
    /// The store does not keep up; the states of crawls are written later.
    pub store_is_behind: bool,
    /// Whether the store and the cache answer, for people.
    pub backends: BackendsReport,
    /// How fast crawls get on, for people.
    paces: Paces,
    /// The crawls that go on as `status` has told them last, and when: a full look costs too much for each
    /// who asks.
    unfinished_told: Option<(i64, Vec<serde_json::Value>)>,
    /// What else costs too much for each who asks.
    told_again: ToldAgain,
    /// Mappings whose pages have changed, for people.
    pub standing: Option<StandingExtractions>,
    /// A disk has too little room, in words: nothing is handed out or fed.
    pub low_disk: Option<String>,
    /// When the next crawl expires.
    next_expiry_ms: Option<i64>,
    /// Stopped and expired crawls whose queues are being emptied.
    closing_crawls: ClosingCrawls,
    /// Crawls whose ended tasks are being queued again.
    reopening_crawls: ReopeningCrawls,
    /// Crawls whose rows are being deleted.
    pruning: Option<PruneWalk>,
    /// Answers that wait until recalled tasks have come back.
    waiting_answers: Vec<WaitingAnswer>,
    /// Long lists that are taken in pieces.
    feeds: FeedsUnderWay,
    /// What `webfill crawl` was told last of sites that back off.
    backoff_report: BackoffReport,
    watches: Watches,
    /// By how much the wall clock is ahead of the caller's: watches and what applications say go by that one.
    wall_ahead_ms: i64,
    notifications: Notifications,
    /// Peers that were refused lately, so that each is logged once a minute.
    pub refusals: RefusalLog,
    counters: Counters,
    /// Since when sites outside the window are due, as far as was noticed.
    outside_due_since_ms: Option<i64>,
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
            dispatch: Dispatch::new(
                settings.default_delay_ms,
                settings.lease_ms,
                settings.group_bounds,
            ),
            settings,
            frontier,
            crawls: CrawlRegistry::default(),
            mappings,
            reloads_asked: Vec::new(),
            outgoing: Vec::new(),
            messages: Messages::default(),
            store_writes: Vec::new(),
            audited: Vec::new(),
            turn_end: TurnEnd::default(),
            last_tick_ms: now_ms,
            next_check_ms: now_ms,
            crawls_at_ms: now_ms,
            site_state_writes: SiteStateWrites::default(),
            next_site_ms: Some(now_ms),
            underserved: UnderservedCrawls::default(),
            fill_again_ms: i64::MIN,
            has_more: false,
            recalls: Recalls::new(now_ms),
            draining: false,
            end_asked: None,
            drains: Drains::default(),
            store_is_behind: false,
            backends: BackendsReport::default(),
            paces: Paces::default(),
            unfinished_told: None,
            told_again: ToldAgain::default(),
            standing: None,
            low_disk: None,
            next_expiry_ms: None,
            closing_crawls: ClosingCrawls::default(),
            reopening_crawls: ReopeningCrawls::default(),
            pruning: None,
            waiting_answers: Vec::new(),
            feeds: FeedsUnderWay::default(),
            backoff_report: BackoffReport::default(),
            watches: Watches::default(),
            wall_ahead_ms: 0,
            notifications: Notifications::default(),
            refusals: RefusalLog::default(),
            counters: Counters::default(),
            outside_due_since_ms: None,
        };
        for crawl in core.frontier.unfinished_crawls()? {
            core.register_crawl(crawl, now_ms)?;
        }
        for crawl in core.frontier.unsaved_crawls()? {
            core.frontier.touch(crawl);
        }
        core.store_recent_crashed_pages(now_ms)?;
        core.take_back_again(now_ms)?;
        core.restore_leases(now_ms)?;
        core.restore_closing_crawls()?;
        core.pruning = core.frontier.begin_pruning()?;
        Ok(core)
    }

    /// For what the simulation of several dispatchers keeps in the same commits.
    pub fn frontier(&mut self) -> &mut Frontier {
        &mut self.frontier
    }

    /// See [`Dispatch::lanes_with_room`]; none while nothing may be handed out.
    pub fn lanes_with_room(&self, now_ms: i64) -> Vec<Lane> {
        match self.draining || self.low_disk.is_some() {
            true => Vec::new(),
            false => self.dispatch.lanes_with_room(now_ms),
        }
    }

    /// When the next task can be handed out if no message arrives before.
    pub fn next_ready_ms(&self) -> Option<i64> {
        if self.draining || self.low_disk.is_some() || self.dispatch.supervisor_count() == 0 {
            return None;
        }
        let outside = self.next_site_ms;
        let outside = outside.map(|due_ms| (due_ms - LOOKAHEAD_MS).max(self.fill_again_ms));
        let inside = self.dispatch.next_ready_ms();
        match (inside, outside) {
            (Some(inside), Some(outside)) => Some(inside.min(outside)),
            (one, other) => one.or(other),
        }
    }

    /// By how much the wall clock is ahead of the caller's from now on: it was set, or the machine has slept.
    pub fn set_wall_ahead(&mut self, ahead_ms: i64) {
        self.wall_ahead_ms = ahead_ms;
        self.frontier.set_wall_ahead(ahead_ms);
    }

    /// What the wall clock shows.
    fn wall_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_add(self.wall_ahead_ms)
    }

    /// When [`on_tick`](Core::on_tick) has something to do if no message arrives before.
    pub fn next_tick_ms(&self) -> i64 {
        let is_busy = self.pruning.is_some() || self.is_feeding();
        if is_busy || self.closing_crawls.have_work() || self.reopening_crawls.have_work() {
            return self.last_tick_ms;
        }
        let waits = [
            self.recalls.next_deadline_ms(),
            self.next_expiry_ms
                .map(|at_ms| at_ms.saturating_sub(self.wall_ahead_ms)),
            self.next_frontier_event_ms(),
            self.next_watch_ms(),
            // One that is due waits for a site, whatever the time.
            self.dispatch
                .next_probe_ms()
                .filter(|at_ms| *at_ms > self.last_tick_ms),
        ];
        let waits = waits.into_iter().flatten();
        waits.fold(self.next_check_ms, i64::min)
    }

    /// Commits everything since the last commit, and returns what may leave now: a message must not
    /// leave before the state that it tells of is durable. After an error every further commit fails
    /// as well.
    pub fn commit(&mut self, now_ms: i64) -> Result<Committed, FrontierError> {
        self.frontier.set_now(now_ms);
        self.frontier.commit()?;
        Ok(Committed {
            outgoing: std::mem::take(&mut self.outgoing),
            store_writes: std::mem::take(&mut self.store_writes),
            audited: std::mem::take(&mut self.audited),
            deliveries: std::mem::take(&mut self.notifications.deliveries),
            changes_asked: std::mem::take(&mut self.notifications.asked),
            feeder_orders: std::mem::take(&mut self.watches.feeders),
            reloads_asked: std::mem::take(&mut self.reloads_asked),
        })
    }

    /// Does what is due by time alone: removes lost supervisors, ends overdue recalls, closes
    /// expired crawls, queues ended tasks again, prunes, begins and ends runs of watches, sends waiting answers, writes the states of crawls and
    /// sites.
    pub fn on_tick(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        let lease_ms = self.settings.lease_ms as i64;
        if now_ms - self.last_tick_ms > lease_ms / 2 {
            // This process was stopped or starved itself. Heartbeats that have arrived meanwhile
            // are still to be read, so nobody is declared lost yet.
            self.next_check_ms = now_ms + lease_ms / 10;
        }
        self.last_tick_ms = now_ms;
        if now_ms >= self.next_check_ms {
            self.next_check_ms = now_ms + lease_ms / 10;
            self.remove_gone_supervisors(now_ms)?;
            self.tell_silent_supervisors(now_ms);
            self.note_silences(now_ms)?;
            self.frontier.note_quiet(now_ms)?;
            if self.next_site_ms.is_some() || self.dispatch.sites_in_window() > 0 {
                self.frontier.note_time(now_ms)?;
            }
        }
        self.recalls.expire(now_ms);
        // A crawl may be pruned while something of it is under way, which each step drops for itself. None
        // of them may end the fleet's dispatcher for it.
        if_pruned(self.advance_closing(now_ms), ())?;
        if_pruned(self.advance_reopening(now_ms), ())?;
        self.advance_feeds(now_ms)?;
        self.advance_pruning()?;
        if_pruned(self.advance_watches(now_ms), ())?;
        if_pruned(self.advance_notifications(now_ms), ())?;
        if_pruned(self.answer_waiting(now_ms), ())?;
        self.write_due_site_states(now_ms)?;
        if now_ms >= self.crawls_at_ms && !self.store_is_behind {
            self.crawls
                .open_crawls()
                .for_each(|crawl| self.frontier.touch(crawl));
            let wait_ms = match self.write_crawls(CRAWLS_AT_ONCE, now_ms)? {
                true => MORE_CRAWLS_AFTER_MS,
                false => CRAWLS_EVERY_MS,
            };
            self.crawls_at_ms = now_ms + wait_ms;
        }
        Ok(())
    }

    fn write_crawl(&mut self, crawl: CrawlKey, now_ms: i64) -> Result<(), FrontierError> {
        let going_on = !self.draining;
        let mut row = self
            .crawls
            .row(&mut self.frontier, crawl, going_on, now_ms)?;
        let unsaved = self.frontier.unsaved_end(crawl)?;
        if let (Some(end), Some(finished_at_ms)) = (unsaved, &mut row.finished_at_ms) {
            *finished_at_ms = end.at_ms.min(now_ms);
            row.started_at_ms = row.started_at_ms.min(*finished_at_ms);
        }
        let done = self.frontier.crawl_status(crawl)?.done;
        self.paces.note(crawl, done, now_ms);
        self.store_writes.push(StoreWrite::Crawl(CrawlWrite {
            crawl: Box::new(row),
            note: unsaved.map(|end| end.number),
        }));
        Ok(())
    }

    /// The store has a crawl that had this note, and its lists are judged.
    pub fn crawl_saved(&mut self, note: i64) -> Result<(), FrontierError> {
        self.frontier.crawl_saved(note)
    }

    /// Queues store writes for up to `most` changed crawls; returns whether there are more.
    fn write_crawls(&mut self, most: usize, now_ms: i64) -> Result<bool, FrontierError> {
        let touched = self.frontier.take_touched(most);
        for crawl in &touched {
            if_pruned(self.write_crawl(*crawl, now_ms), ())?;
        }
        Ok(touched.len() == most)
    }

    /// Queues a message for a supervisor.
    fn send_to_supervisor(&mut self, peer: &Caller, message: DispatcherToSupervisor) {
        self.messages.sent += 1;
        let message = OutgoingMessage::ToSupervisor(peer.clone(), message);
        self.outgoing.push(message);
    }

    /// Begins the drain: supervisors finish the fetches under way and give back the other tasks.
    pub fn drain(&mut self) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        tracing::info!(
            event = "draining",
            leased = self.dispatch.leases_out(),
            "draining"
        );
        self.dispatch.drain();
        let peers: Vec<Caller> = self.dispatch.peers().cloned().collect();
        for peer in peers {
            self.send_to_supervisor(&peer, DispatcherToSupervisor::Drain);
        }
    }

    /// For how long nobody is let in, because requests of a former fleet may be under way.
    pub fn quiet_s(&self, now_ms: i64) -> i64 {
        let wait_ms = self.frontier.origin().quiet_until_ms - now_ms;
        (wait_ms.max(0) + 999) / 1_000
    }

    /// The file is a copy, of which nobody has said anything.
    pub fn is_copy(&self) -> bool {
        self.frontier.origin().is_copy
    }

    /// Why nothing is taken or handed out, if that is so.
    pub fn holds(&self, now_ms: i64) -> Option<String> {
        if self.draining {
            return Some(String::from("it drains"));
        }
        let wait_s = self.quiet_s(now_ms);
        if wait_s > 0 {
            return Some(format!(
                "no supervisor is let in for {wait_s} s: requests of the former fleet may be under way"
            ));
        }
        self.low_disk.clone()
    }

    pub fn supervisor_count(&self) -> usize {
        self.dispatch.supervisor_count()
    }

    /// Whether all connected supervisors have left. Supervisors that are not connected keep their
    /// leases.
    pub fn is_drained(&self) -> bool {
        self.draining && self.dispatch.supervisor_count() == 0
    }

    /// Commits for the last time: with the final states of the crawls, and the answer to the client
    /// that waits for the end.
    pub fn close(&mut self, now_ms: i64) -> Result<Committed, FrontierError> {
        if let Some((peer, crawls)) = self.end_asked.take() {
            let answer = self.crawl_status(&crawls, None, now_ms);
            let pruned = Refusal::new("$.crawls", "one of them was pruned").answer();
            let answer = if_pruned(answer, pruned)?;
            self.outgoing.push(OutgoingMessage::ToClient(peer, answer));
        }
        // Open crawls change their state to `interrupted` now, though no counter has changed.
        self.crawls
            .open_crawls()
            .for_each(|crawl| self.frontier.touch(crawl));
        // A crawl that has changed is written with its counters as they are committed.
        let mut last = self.commit(now_ms)?;
        // Further states of sites are written after the next start.
        self.write_site_states(now_ms)?;
        self.write_crawls(usize::MAX, now_ms)?;
        let states = self.commit(now_ms)?;
        last.store_writes.extend(states.store_writes);
        Ok(last)
    }
}
