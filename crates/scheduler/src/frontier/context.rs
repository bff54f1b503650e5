//! The data that the frontier's operations share: the file, and the parts of the frontier that are in memory.

use std::collections::{BTreeMap, BTreeSet};

use webfill_wire::{CrawlKey, Outcome};

use super::app_tallies::AppTallies;
use super::application_limits::LimitedApplications;
use super::backoff::Backoffs;
use super::changes::Recorder;
use super::crawls_in_memory::CrawlsInMemory;
use super::database::Database;
use super::doubts::Doubts;
use super::epochs::Epoch;
use super::holding::Holding;
use super::lanes::Lanes;
use super::model::TaskId;
use super::names::Names;
use super::restore::Origin;
use super::retries::Retries;
use super::scripts::{ScriptedSites, UnfitMappings};
use super::trickles::SlowedBranches;
use crate::excluded_sites::ExcludedSites;
use crate::seen::SeenUrls;

/// The parts of the frontier, which all of its operations share.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) db: Database,
    pub(super) seen: SeenUrls,
    pub(super) sites: Names,
    pub(super) records: Names,
    /// The crawls in memory: recently used ones.
    pub(super) crawls: CrawlsInMemory,
    /// Crawls that have changed since the last call of [`take_changed`](super::Crawls::take_changed).
    pub(super) touched: BTreeSet<CrawlKey>,
    pub(super) excluded: ExcludedSites,
    pub(super) retries: Retries,
    pub(super) backoff: Backoffs,
    /// How far the wall clock, which decides the expiry of crawls, is ahead of the clock that `now_ms` comes from.
    pub(super) wall_ahead_ms: i64,
    pub(super) doubts: Doubts,
    /// Pages that were found to be blocks since the last call of
    /// [`take_new_retractions`](super::Records::take_new_retractions).
    pub(super) false_pages: Vec<TaskId>,
    pub(super) trickles: SlowedBranches,
    pub(super) holding: Holding,
    pub(super) limited_applications: LimitedApplications,
    pub(super) app_tallies: AppTallies,
    pub(super) lanes: Lanes,
    pub(super) scripted: ScriptedSites,
    pub(super) unfit_mappings: UnfitMappings,
    /// The number of the last turn. At each site crawls take turns, and the turns of all sites are numbered in
    /// ascending order.
    pub(super) last_turn: i64,
    /// The number of the next task; see [`pruning`](super::pruning).
    pub(super) next_task: i64,
    /// The number of tasks that have ended since the file was opened. A task that was queued again and ended again
    /// counts twice.
    pub(super) ended: BTreeMap<Outcome, u64>,
    pub(super) epoch: Epoch,
    pub(super) origin: Origin,
    /// The time that the next commit stores.
    pub(super) now_ms: i64,
    /// Notes changed rows for the journal, if there is one.
    pub(super) recorder: Option<Recorder>,
}

impl Context {
    /// Converts a time of the process's clock to the wall clock.
    pub(super) fn wall_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_add(self.wall_ahead_ms)
    }
}
