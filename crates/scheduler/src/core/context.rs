//! State that nearly every part of the core shares: the frontier, the dispatch, the effects of the next commit, and
//! observations of the process. Everything else belongs to one part.

use serde_json::Value;
use webfill_wire::{DispatcherToSupervisor, RefusalLog};

use super::backends::BackendsReport;
use super::counters::Counters;
use super::paces::CrawlPaces;
use super::recalls::Recalls;
use super::turn::TurnDeadline;
use super::window::Window;
use crate::caller::Caller;
use crate::crawl_registry::CrawlRegistry;
use crate::dispatch::{Dispatch, GroupBounds};
use crate::effects::{
    ActionEnd, Audited, AuditedAction, OutgoingMessage, StandingExtractions, StoreWrite,
};
use crate::frontier::Frontier;
use crate::journal::StandbysReport;
use crate::mappings::Mappings;
use crate::requester::SenderInfo;

/// The part of the configuration that the state machine needs.
#[derive(Debug, Clone)]
pub struct CoreSettings {
    /// The delay between two requests to a site whose own delay is not known yet.
    pub default_delay_ms: u32,
    /// How long after its last acknowledged heartbeat a supervisor may start fetches.
    pub lease_ms: u64,
    /// The maximum number of sites in the window, that is, in memory.
    pub window_sites: usize,
    /// The limits of sites that share an address or a provider; `None`: no limits.
    pub group_bounds: Option<GroupBounds>,
}

/// The process's observations, and its time limit for one turn of the loop.
#[derive(Default)]
pub struct Environment {
    /// When a step must stop and leave the rest to the next turn of the loop.
    pub turn_end: TurnDeadline,
    /// Why nothing is handed out or fed, in words: a disk has too little room.
    pub low_disk: Option<String>,
    /// Whether the store cannot keep up, so that the states of crawls are written later.
    pub store_is_behind: bool,
    /// Whether the store and the cache answer, for reports to people.
    pub backends: BackendsReport,
    /// The dispatchers that stand by, for people; `None`: there is no journal.
    pub standbys: Option<StandbysReport>,
    /// Alerts of mappings whose pages have changed, for people.
    pub standing: Option<StandingExtractions>,
    /// Recently refused peers, so that each is logged at most once a minute.
    pub refusals: RefusalLog,
}

/// The shared state that the parts of the core are given.
pub(super) struct Context {
    pub(super) settings: CoreSettings,
    pub(super) frontier: Frontier,
    pub(super) dispatch: Dispatch,
    pub(super) crawls: CrawlRegistry,
    pub(super) mappings: Mappings,
    pub(super) outgoing: Vec<OutgoingMessage>,
    pub(super) store_writes: Vec<StoreWrite>,
    pub(super) audited: Vec<Audited>,
    pub(super) recalls: Recalls,
    pub(super) window: Window,
    /// Whether nothing more is handed out, because the dispatcher is to end.
    pub(super) draining: bool,
    /// How far the wall clock is ahead of the clock that `now_ms` comes from. Watches, and times in requests, use the
    /// wall clock.
    pub(super) wall_ahead_ms: i64,
    /// How fast crawls proceed, for people.
    pub(super) paces: CrawlPaces,
    pub(super) counters: Counters,
    pub(super) surroundings: Environment,
}

impl Context {
    pub(super) fn new(
        frontier: Frontier,
        settings: CoreSettings,
        mappings: Mappings,
        now_ms: i64,
    ) -> Context {
        Context {
            dispatch: Dispatch::new(
                settings.default_delay_ms,
                settings.lease_ms,
                settings.group_bounds,
            ),
            settings,
            frontier,
            crawls: CrawlRegistry::default(),
            mappings,
            outgoing: Vec::new(),
            store_writes: Vec::new(),
            audited: Vec::new(),
            recalls: Recalls::new(now_ms),
            window: Window::new(now_ms),
            draining: false,
            wall_ahead_ms: 0,
            paces: CrawlPaces::default(),
            counters: Counters::default(),
            surroundings: Environment::default(),
        }
    }

    /// Converts a time of the process's clock to the wall clock.
    pub(super) fn wall_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_add(self.wall_ahead_ms)
    }

    /// Queues a message for a supervisor.
    pub(super) fn send_to_supervisor(&mut self, peer: &Caller, message: DispatcherToSupervisor) {
        self.counters.messages.sent += 1;
        let message = OutgoingMessage::ToSupervisor(peer.clone(), message);
        self.outgoing.push(message);
    }

    /// For how many seconds no supervisor is admitted yet, because requests of a former fleet may still be in flight.
    pub(super) fn seconds_until_admission(&self, now_ms: i64) -> i64 {
        let wait_ms = self.frontier.origin().quiet_until_ms - now_ms;
        (wait_ms.max(0) + 999) / 1_000
    }

    /// Why no requests are accepted or no tasks are handed out; `None` if nothing holds them up.
    pub(super) fn hold_reason(&self, now_ms: i64) -> Option<String> {
        if self.draining {
            return Some(String::from("it drains"));
        }
        let wait_s = self.seconds_until_admission(now_ms);
        if wait_s > 0 {
            return Some(format!(
                "no supervisor is admitted for {wait_s} s: requests of the former fleet may be in flight"
            ));
        }
        self.surroundings.low_disk.clone()
    }

    pub(super) fn audit(
        &mut self,
        who: SenderInfo,
        audited: Option<AuditedAction>,
        end: ActionEnd,
        now_ms: i64,
    ) {
        let at_ms = self.wall_ms(now_ms);
        self.audited.extend(audited.map(|audited| Audited {
            at_ms,
            who,
            audited,
            end,
        }));
    }

    /// Publishes a notification to the subscribers of the application.
    pub(super) fn publish_notification(&mut self, app_id: &str, notification: &Value) {
        self.outgoing.push(OutgoingMessage::Notification {
            app_id: app_id.to_owned(),
            notification: notification.clone(),
        });
    }
}

/// Starts the drain: supervisors finish the fetches in flight and return their other tasks.
pub(super) fn start_drain(cx: &mut Context) {
    if std::mem::replace(&mut cx.draining, true) {
        return;
    }
    tracing::info!(
        event = "draining",
        leased = cx.dispatch.leases.count(),
        "draining"
    );
    cx.dispatch.fleet.drain_all_supervisors();
    let peers: Vec<Caller> = cx.dispatch.fleet.peers().cloned().collect();
    for peer in peers {
        cx.send_to_supervisor(&peer, DispatcherToSupervisor::Drain);
    }
}
