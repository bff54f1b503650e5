//! The dispatcher's state, and what each message does to it. No sockets, no threads, no clock: what
//! arrives is handed in with the time, and what is to leave is collected as letters and entries,
//! to be taken when the frontier has been committed.
//!
//! A URL comes in by [`requests`] or by the links of [`outcomes`], waits in the frontier, and
//! leaves by [`handing_out`] to one of the [`supervisors`].

use webfill_wire::socket::Peer;
use webfill_wire::{CrawlKey, DispatcherToSupervisor, MappingSource};

use crate::crawl_registry::CrawlRegistry;
use crate::dispatch::{Dispatch, LOOKAHEAD_MS};
use crate::frontier::{Frontier, FrontierError};
use crate::outgoing::{Client, OutgoingMessage};
use crate::store_writer::StoreWrite;

mod handing_out;
mod outcomes;
mod recalls;
mod requests;
mod supervisors;

use self::handing_out::UnderservedCrawls;
use self::recalls::Recalls;
use self::requests::{ClosingCrawls, WaitingAnswer};

/// How often the state of the crawls is written to the store.
const CRAWLS_EVERY_MS: i64 = 5_000;

/// So many of them at once, and the next ones so much later: the store is to keep up.
const CRAWLS_AT_ONCE: usize = 200;
const MORE_CRAWLS_AFTER_MS: i64 = 500;

/// What a dispatcher goes by.
#[derive(Debug, Clone)]
pub struct CoreSettings {
    /// The delay where none is known yet.
    pub default_delay_ms: u32,
    /// How long a supervisor may start fetches after it was last heard.
    pub lease_ms: u64,
    /// Sites in memory at once.
    pub window_sites: usize,
}

pub struct Core {
    settings: CoreSettings,
    frontier: Frontier,
    dispatch: Dispatch,
    crawls: CrawlRegistry,
    mappings: Vec<MappingSource>,
    outgoing: Vec<OutgoingMessage>,
    store_writes: Vec<StoreWrite>,
    /// When this was last called for what time brings.
    last_tick_ms: i64,
    /// When to look for supervisors that are gone.
    next_check_ms: i64,
    crawls_at_ms: i64,
    /// When the first site outside the window is due.
    next_site_ms: Option<i64>,
    /// Crawls that may need help to get their sites into a full window.
    underserved: UnderservedCrawls,
    /// A window that was full is looked at again then.
    fill_again_ms: i64,
    /// The last turn has not come to the end of what is ready.
    has_more: bool,
    recalls: Recalls,
    draining: bool,
    /// Who waits for the drain to end, and for the counters of which crawls.
    drain_asked: Option<(Client, Vec<CrawlKey>)>,
    /// The store does not keep up: the state of crawls can wait.
    pub(crate) store_is_behind: bool,
    /// When the next crawl expires.
    next_expiry_ms: Option<i64>,
    /// Crawls that are being ended.
    closing_crawls: ClosingCrawls,
    /// Answers that wait for the fleet.
    waiting_answers: Vec<WaitingAnswer>,
}

impl Core {
    /// Goes on from where the frontier's last commit left it.
    pub fn open(
        frontier: Frontier,
        settings: CoreSettings,
        mappings: Vec<MappingSource>,
        now_ms: i64,
    ) -> Result<Core, FrontierError> {
        let mut core = Core {
            dispatch: Dispatch::new(settings.default_delay_ms, settings.lease_ms),
            settings,
            frontier,
            crawls: CrawlRegistry::default(),
            mappings,
            outgoing: Vec::new(),
            store_writes: Vec::new(),
            last_tick_ms: now_ms,
            next_check_ms: now_ms,
            crawls_at_ms: now_ms,
            next_site_ms: Some(now_ms),
            underserved: UnderservedCrawls::default(),
            fill_again_ms: i64::MIN,
            has_more: false,
            recalls: Recalls::new(now_ms),
            draining: false,
            drain_asked: None,
            store_is_behind: false,
            next_expiry_ms: None,
            closing_crawls: ClosingCrawls::default(),
            waiting_answers: Vec::new(),
        };
        for crawl in core.frontier.unfinished_crawls()? {
            core.register_crawl(crawl, now_ms)?;
        }
        core.store_recent_crashed_pages(now_ms)?;
        core.restore_leases(now_ms)?;
        core.restore_closing_crawls()?;
        Ok(core)
    }

    /// When tasks can be handed out without a message before.
    pub fn next_ready_ms(&self) -> Option<i64> {
        if self.draining || self.dispatch.supervisor_count() == 0 {
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

    /// When to look for what time alone brings.
    pub fn next_tick_ms(&self) -> i64 {
        if self.closing_crawls.have_work() {
            return self.last_tick_ms;
        }
        let waits = [
            self.recalls.next_deadline_ms(),
            self.next_expiry_ms,
            self.next_frontier_event_ms(),
        ];
        let waits = waits.into_iter().flatten();
        waits.fold(self.next_check_ms, i64::min)
    }

    /// Makes durable all that has happened; what it led to may leave now.
    pub fn commit(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        self.frontier.set_now(now_ms);
        self.frontier.commit()
    }

    /// Messages that rest on what is committed.
    pub fn take_outgoing(&mut self) -> Vec<OutgoingMessage> {
        std::mem::take(&mut self.outgoing)
    }

    /// Entries for the store that rest on what is committed.
    pub fn take_store_writes(&mut self) -> Vec<StoreWrite> {
        std::mem::take(&mut self.store_writes)
    }

    /// What time alone brings: lost supervisors, the state of crawls.
    pub fn on_tick(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        let lease_ms = self.settings.lease_ms as i64;
        if now_ms - self.last_tick_ms > lease_ms / 2 {
            // It was we who were away. What has arrived meanwhile is still to be read.
            self.next_check_ms = now_ms + lease_ms / 10;
        }
        self.last_tick_ms = now_ms;
        if now_ms >= self.next_check_ms {
            self.next_check_ms = now_ms + lease_ms / 10;
            self.remove_gone_supervisors(now_ms)?;
            self.note_silences(now_ms)?;
            if self.next_site_ms.is_some() || self.dispatch.sites_in_window() > 0 {
                self.frontier.note_time(now_ms)?;
            }
        }
        self.recalls.expire(now_ms);
        self.advance_closing(now_ms)?;
        self.answer_waiting(now_ms)?;
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
        let row = self
            .crawls
            .row(&mut self.frontier, crawl, going_on, now_ms)?;
        self.store_writes.push(StoreWrite::Crawl(Box::new(row)));
        Ok(())
    }

    /// Tells the store of the crawls that have changed; returns whether there are more of them.
    fn write_crawls(&mut self, most: usize, now_ms: i64) -> Result<bool, FrontierError> {
        let touched = self.frontier.take_touched(most);
        for crawl in &touched {
            self.write_crawl(*crawl, now_ms)?;
        }
        Ok(touched.len() == most)
    }

    fn send_to_supervisor(&mut self, peer: &Peer, message: DispatcherToSupervisor) {
        let message = OutgoingMessage::ToSupervisor(peer.clone(), message);
        self.outgoing.push(message);
    }

    /// Supervisors finish what they have begun and give back the rest.
    pub(crate) fn drain(&mut self) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        tracing::info!(
            event = "draining",
            leased = self.dispatch.leases_out(),
            "draining"
        );
        self.dispatch.drain();
        let peers: Vec<Peer> = self.dispatch.peers().cloned().collect();
        for peer in peers {
            self.send_to_supervisor(&peer, DispatcherToSupervisor::Drain);
        }
    }

    /// Nobody is left. Leases of supervisors that are away stay theirs.
    pub(crate) fn is_drained(&self) -> bool {
        self.draining && self.dispatch.supervisor_count() == 0
    }

    /// Notes the last state of the crawls, and answers who waits for the end.
    pub(crate) fn close(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        if let Some((peer, crawls)) = self.drain_asked.take() {
            let answer = self.crawl_status(&crawls, now_ms)?;
            self.outgoing.push(OutgoingMessage::ToClient(peer, answer));
        }
        // Those that wait for `webfill crawl` were perhaps not touched lately, and stand now.
        self.crawls
            .open_crawls()
            .for_each(|crawl| self.frontier.touch(crawl));
        self.commit(now_ms)?;
        self.write_crawls(usize::MAX, now_ms).map(drop)
    }
}
