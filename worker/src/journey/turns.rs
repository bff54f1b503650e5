//! Gives out turns: a turn is the right to send one request to a site.
//!
//! A task gets a turn when this worker has no other request at the site, and the site's clock (the time of its next
//! request) allows one. The name of the host must be resolved, and a fetch permit and memory for a body must be free. A
//! task that is recalled before gets no turn. If the clocks of sites are shared, the request is also reserved in the
//! shared cache.
//!
//! A *visit* is a request to a site that this worker does not own. It is always reserved. While another worker owns the
//! site, there are no visits, because the owner keeps the site's clock and would not know of the request.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;
use webfill_store::Cache;
use webfill_urls::Url;
use webfill_wire::{Delivery, SiteClock};

use super::interrupt::Interrupt;
use crate::fetch_permits::{FetchPermit, FetchPermits};
use crate::memory::{Memory, MemoryPermit};
use crate::now::{Now, now_ms};
use crate::permits::Permit;
use crate::politeness::{ClockOwner, PolitenessConfig};
use crate::resolve::{HeldName, MOMENT, Resolver};
use crate::shared_clock::SharedClock;
use crate::sites::{RECHECK_AFTER, Sites, Turn};

/// The right to send a request to a site. It ends when this is dropped.
pub(super) struct TakenTurn<'a> {
    /// The memory for the body of the answer.
    pub memory: MemoryPermit,
    _fetch: FetchPermit<'a>,
    _alone: OwnedSemaphorePermit,
    /// The host's addresses, held for the request that uses them.
    _name: Option<HeldName>,
}

/// A worker owns a site until this time has passed since the site could be requested again. If the worker has sent no
/// request for half of this time, it checks the cache before the next one. The difference covers the time until the
/// cache knows of a request, and differences between the clocks of machines.
const OWNED_FOR_MS: i64 = 2 * RECHECK_AFTER.as_millis() as i64;

/// The reason why a task gets no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoTurn {
    /// The task is recalled, or the worker drains.
    CalledBack,
    /// The request would be a visit, but another worker owns the site.
    Anothers,
}

/// Gives out turns: the right to send one request to a site.
pub struct Turns {
    /// This worker's name in the shared cache.
    pub worker: String,
    pub politeness: Rc<PolitenessConfig>,
    pub sites: Rc<RefCell<Sites>>,
    pub cache: Arc<dyn Cache>,
    /// The turns that this worker has reserved in the shared cache.
    pub reservations: SharedClock,
    pub resolver: Resolver,
    /// Bounds the fetches in flight.
    pub fetches: FetchPermits,
    /// Memory for the bodies of answers.
    pub bodies: Memory,
    pub interrupt: Rc<Interrupt>,
    /// Reports to the supervisor that a task, given by its id and delivery, waits for a name server.
    pub report_waiting: Box<dyn Fn((u64, Delivery))>,
}

impl Turns {
    /// Waits until the site's clock allows a request for this URL and the name of its host is resolved, then takes a
    /// fetch permit. `None` if the task is recalled or the worker drains.
    pub(super) async fn take(
        &self,
        turn: Turn,
        site: &str,
        url: &Url,
        permit: &Permit,
    ) -> Option<TakenTurn<'_>> {
        self.wait_for_turn(turn, site, url, permit, false)
            .await
            .ok()
    }

    /// Like [`Turns::take`], for a request to a site that this worker does not own.
    pub(super) async fn take_visit(
        &self,
        turn: Turn,
        site: &str,
        url: &Url,
        permit: &Permit,
    ) -> Result<TakenTurn<'_>, NoTurn> {
        self.wait_for_turn(turn, site, url, permit, true).await
    }

    async fn wait_for_turn(
        &self,
        turn: Turn,
        site: &str,
        url: &Url,
        permit: &Permit,
        is_visit: bool,
    ) -> Result<TakenTurn<'_>, NoTurn> {
        let is_shared = self.politeness.clock == ClockOwner::Shared;
        let alone = self.take_site_permit(site, permit).await;
        let alone = alone.ok_or(NoTurn::CalledBack)?;
        loop {
            self.wait_for_clock(turn, site, permit).await;
            let name = self.look_up_host(url, permit).await;
            let fetch = self.fetches.take(permit.priority());
            let fetch = self.interrupt.wait_unless_called_back(permit, fetch).await;
            let fetch = fetch.ok_or(NoTurn::CalledBack)?;
            let memory = self.bodies.take_for_body();
            let memory = self.interrupt.wait_unless_called_back(permit, memory).await;
            let memory = memory.ok_or(NoTurn::CalledBack)?;
            if is_visit && !is_shared && self.belongs_to_another_worker(site).await {
                return Err(NoTurn::Anothers);
            }
            let reserved = match is_visit || is_shared {
                true => self.reserve(turn, site).await,
                false => Ok(()),
            };
            let Err(wait) = reserved else {
                return Ok(TakenTurn {
                    memory,
                    _fetch: fetch,
                    _alone: alone,
                    _name: name,
                });
            };
            drop((fetch, memory));
            let until = Instant::now() + wait;
            self.interrupt.sleep_until(until, permit).await;
        }
    }

    /// Looks up the time of the site's next request in the cache, where another worker, or this one before a restart,
    /// may have left it. If another worker is just requesting the site, waits until that request has ended.
    pub(super) async fn look_up_clock(&self, site: &str, permit: &Permit) {
        // If the clock is shared, each request makes a reservation in the cache, so no lookup is needed.
        let is_shared = self.politeness.clock == ClockOwner::Shared;
        let begins = |now| self.sites.borrow_mut().begin_clock_lookup(site, now);
        if is_shared || !begins(Now::read()) {
            return;
        }
        while !self.interrupt.is_called_back(permit) {
            // The cache itself logs that it is unreachable.
            let Ok(entry) = self.cache.site(site, now_ms()).await else {
                break;
            };
            let Some(entry) = entry else { return };
            let now = Now::read();
            self.sites.borrow_mut().take_shared_clock(&entry, now);
            let Some(wait) = entry.recheck_after(now.wall_ms) else {
                return;
            };
            let until = now.instant + wait;
            self.interrupt.sleep_until(until, permit).await;
        }
        self.sites.borrow_mut().note_failed_lookup(site);
    }

    /// Writes the changed clocks of sites (the times of their next requests) to the shared cache. If that fails, they
    /// are written the next time.
    pub async fn write_clocks(&self) {
        let now = Now::read();
        let moved = self.sites.borrow_mut().take_moved_clocks(&self.worker, now);
        if moved.is_empty() {
            return;
        }
        if self.cache.put_sites(moved.clone()).await.is_err() {
            self.sites.borrow_mut().mark_clocks_unsaved(moved);
        }
    }

    /// Whether another worker owns the site, according to the cache: its last request there was so recent that it may
    /// be sending the next one. False if the cache is unreachable: then the site cannot be reserved anyway.
    async fn belongs_to_another_worker(&self, site: &str) -> bool {
        if self.sites.borrow().is_owned(site) {
            return false;
        }
        let now_ms = now_ms();
        let entry = self.cache.site(site, now_ms).await;
        entry.ok().flatten().is_some_and(|entry| {
            let next_ms = entry.blocked_until_ms.max(Some(entry.last_start_ms));
            let is_recent = next_ms.is_some_and(|next_ms| next_ms + OWNED_FOR_MS > now_ms);
            is_recent && entry.owner.is_some_and(|owner| owner != self.worker)
        })
    }

    /// Waits until this worker has no other request at the site. `None` if the task is recalled or the worker drains.
    async fn take_site_permit(&self, site: &str, permit: &Permit) -> Option<OwnedSemaphorePermit> {
        let alone = self.sites.borrow().request_semaphore(site)?;
        let alone = alone.acquire_owned();
        let alone = self.interrupt.wait_unless_called_back(permit, alone).await;
        alone?.ok()
    }

    /// Waits until the host's name is resolved, or until the task must be given back. A name without an address is not
    /// an error here; the request will report it. A long wait is reported to the supervisor.
    pub(super) async fn look_up_host(&self, url: &Url, permit: &Permit) -> Option<HeldName> {
        let name = self.resolver.hold_lookup(url)?;
        {
            let mut looked_up = pin!(
                self.interrupt
                    .wait_unless_called_back(permit, name.look_up())
            );
            let mut moment = pin!(sleep(MOMENT));
            tokio::select! {
                _ = &mut looked_up => {}
                () = &mut moment => {
                    (self.report_waiting)(permit.task());
                    looked_up.await;
                }
            }
        }
        Some(name)
    }

    /// Reserves a turn (the next request to the site) in the shared cache. If the turn is not granted now, the error is
    /// the time to wait.
    async fn reserve(&self, turn: Turn, site: &str) -> Result<(), Duration> {
        let delay = match turn {
            Turn::Page(delay) | Turn::PageAfterRobots(delay) => delay,
            Turn::Robots => {
                let delay = self.sites.borrow().delay(site);
                delay.unwrap_or(self.politeness.delay())
            }
        };
        self.reservations.reserve(site, delay).await
    }

    /// Notes that the request of a turn was sent. If the turn was reserved, the site's delay counts from the end of the
    /// request.
    pub(super) fn note_use(&self, site: &str) {
        self.reservations.note_use(site);
    }

    /// Notes that a request was aborted, and returns the site's clock, which the dispatcher gets.
    pub(super) fn note_cut_short(&self, site: &str, delay: Duration) -> SiteClock {
        self.note_use(site);
        let mut sites = self.sites.borrow_mut();
        sites.note_cut_short(site, delay, Now::read())
    }

    /// Ends a turn. If the clocks of sites are shared, releases the reservation, so that another worker may take the
    /// next turn.
    pub(super) async fn end(&self, site: &str) {
        if self.politeness.clock == ClockOwner::Shared {
            self.end_visit(site).await;
        }
    }

    /// Ends the turn of a visit, that is, of a request to a site that this worker does not own.
    pub(super) async fn end_visit(&self, site: &str) {
        let next = self.sites.borrow().next_start(site, Turn::Robots);
        let now = Instant::now();
        let wait = next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now));
        self.reservations.release(site, wait).await;
    }

    /// Waits until the next request to the site may start, as far as this worker knows, or until the task is called
    /// back.
    pub(super) async fn wait_for_clock(&self, turn: Turn, site: &str, permit: &Permit) {
        loop {
            let next = self.sites.borrow().next_start(site, turn);
            match next {
                Some(next) if next > Instant::now() && !self.interrupt.is_called_back(permit) => {
                    self.interrupt.sleep_until(next, permit).await;
                }
                _ => return,
            }
        }
    }
}
