//! The queued, leased and done tasks, in one SQLite file. This is step 3 of a URL's journey; the outcome of its last
//! step is committed here, too.
//!
//! A task is *queued* until it is handed out, then *leased* until its outcome is known, then *done*. A task that is
//! done may be queued again ([`requeue`](Reopening::requeue)); its row stays until its crawl is pruned ([`pruning`]).
//! At every commit the counters of each crawl that is not being pruned satisfy `discovered = queued + leased + done +
//! skipped`. Any program can check this against the tables of the same file.
//!
//! All calls up to a [`commit`](Frontier::commit) are one transaction (group commit): an outcome with the links that it
//! brought, the site's clock, the counters. No message may be sent before the state that it reports is committed. After
//! a crash the file is as the last commit left it: leased tasks are still leased, and the supervisors that may hold
//! them are stored by name.
//!
//! Memory is bounded, whatever the number of tasks and sites. The dispatcher has a *window* of sites in memory, which
//! it fills with [`admit_due`](Sites::admit_due) and empties with [`evict`](Sites::evict); all other sites wait on
//! disk.
//!
//! One thread owns a frontier. Other programs may read the file at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use webfill_wire::{Outcome, SiteScripts};

use self::app_tallies::AppTallies;
use self::application_limits::LimitedApplications;
use self::backoff::Backoffs;
use self::changes::Recorder;
use self::context::Context;
use self::crawls_in_memory::CrawlsInMemory;
use self::database::Database;
use self::doubts::Doubts;
use self::holding::Holding;
use self::lanes::Lanes;
use self::names::Names;
use self::retries::Retries;
use self::scripts::UnfitMappings;
use self::transactions::Transactions;
use self::trickles::SlowedBranches;
use crate::backoff_table::BackoffTable;
use crate::excluded_sites::ExcludedSites;
use crate::retry_table::RetryTable;
use crate::seen::SeenUrls;

mod app_tallies;
mod attempts;
mod awaited;
mod backfill;
mod backing_off;
mod backoff;
mod browser_handover;
mod changes;
mod closing;
mod completion;
mod config;
mod context;
mod counts;
mod crawl;
mod crawl_rows;
mod crawl_status;
mod crawls;
mod crawls_in_memory;
mod database;
mod doubts;
mod epochs;
mod error;
mod failures;
mod feed;
mod file_alone;
#[cfg(feature = "former-faults")]
mod former_faults;
mod give_back;
mod holding;
mod journey_lines;
mod known_links;
mod lanes;
mod lease;
mod model;
mod names;
mod new_tasks;
mod on_demand;
pub mod outbox;
mod page_checks;
mod parts;
mod pruning;
mod queue_order;
mod queued_sites;
mod rechecking;
mod records;
mod recovery;
mod releasing;
mod reopen;
mod resolved;
mod restore;
mod retries;
mod retrying;
mod reversal;
mod rules;
mod schema;
mod scripts;
mod site_queue;
mod site_states;
mod snapshots;
mod state_changes;
mod stored_urls;
mod suspected_pages;
mod task_reports;
mod task_rows;
mod transactions;
mod trickles;
mod tries;
mod turns;
mod unlinked;
mod unreachable;

mod application_limits;
mod local_patience;
mod retraction;
mod sites;
mod supervisors;
mod unsaved_crawls;
mod unsaved_states;
mod waiting;
mod watches;

pub use self::application_limits::ApplicationUse;
pub use self::awaited::{HeldBy, HeldSites, HeldSitesScope};
pub use self::changes::{
    Applied, apply_changes, apply_commits, is_unused, note_applied_position, read_applied_position,
    shared_rows,
};
pub use self::config::{Backups, FILE_NAME, FrontierConfig, Restoring, page_cache_bytes};
pub use self::counts::{FrontierTally, MOST_WAITING_COUNTED, PendingCrawl};
pub use self::crawl_status::CrawlStatus;
pub use self::error::FrontierError;
pub use self::error::ignore_pruned;
pub use self::failures::{DeadRecord, FailedUrls};
pub use self::file_alone::{applications_in_file, tasks_in_file};
pub use self::lanes::SiteLane;
pub(crate) use self::model::CLOCK_SLACK_MS;
pub use self::model::{
    AppTally, AttrsId, Backfill, BackoffBegun, Candidate, CappedCount, Clock, Completion,
    CompletionTally, FeedTally, HeldLease, LeaseBatch, Leased, NothingHandedOut, QueuedCounts,
    Refused, ReturnResult, SiteDue, SiteId, SiteRule, TaskId, TaskSketch, Turn, WokenSite,
};
pub use self::parts::{
    Counts, Crawls, Pruning, Records, Releases, Reopening, Reports, Runs, SiteStates, Sites,
    Supervisors, Tasks, UnsavedCrawls, Watches,
};
pub use self::pruning::{Detached, PruneWalk};
pub use self::queued_sites::QueuedSite;
pub use self::recovery::committed_at_ms;
pub use self::reopen::{EndedTasks, ReopenWalk};
pub(crate) use self::restore::Origin;
pub use self::restore::unmark_copy;
pub use self::retraction::PendingRetraction;
pub use self::site_states::SiteHealth;
pub use self::site_states::{SiteReport, Trouble};
pub use self::snapshots::{
    extend_seen_index, install_snapshot, is_continued_by, last_task_id, make_snapshot,
    read_snapshot_position,
};
pub use self::supervisors::SavedSupervisor;
pub use self::task_reports::{CrawlsAtSite, MOST_COUNTED, TaskReport, TaskStage, TasksAhead};
pub use self::unsaved_states::UnsavedState;
pub use self::waiting::WaitingSites;
pub use self::watches::{RunContinuation, StoredWatch};

/// The dispatcher's durable state: tasks, crawls, sites and watches, in one SQLite file.
#[derive(Debug)]
pub struct Frontier(Transactions);

/// Opens the frontier's file in a state folder as a plain database, while no frontier has it open, to apply a journal.
/// Its commits are not synced, because they are in the journal, too.
pub fn open_file(dir: &Path) -> Result<Connection, FrontierError> {
    schema::open_unsynced(&dir.join(FILE_NAME))
}

impl Frontier {
    /// Opens the frontier in a state folder, or creates it there. No site becomes due earlier than
    /// before, even if the wall clock was set meanwhile.
    pub fn open(dir: &Path, config: FrontierConfig, now_ms: i64) -> Result<Self, FrontierError> {
        let path = dir.join(FILE_NAME);
        let mut db = schema::open(&path, &config)?;
        let fault = |source| FrontierError::database("open the frontier", &path, source);
        let recorder = config.journalled.then(|| Recorder::begin(&mut db));
        let recorder = recorder.transpose().map_err(fault)?;
        db.execute_batch("BEGIN IMMEDIATE").map_err(fault)?;
        recovery::reset_window_and_clocks(&db, now_ms).map_err(fault)?;
        let origin = restore::check_or_adopt_copy(&db, &path, config.restoring, now_ms)?;
        unsaved_states::mark_all_unsaved(&db).map_err(fault)?;
        let mut seen = SeenUrls::open(
            &db,
            dir,
            config.seen_memory_bytes,
            config.dropped_parameters,
        )
        .map_err(fault)?;
        let retries = Retries::load(&db, config.retries, config.patience).map_err(fault)?;
        let backoff = Backoffs::load(&db, config.backoff, config.patience).map_err(fault)?;
        let doubts = Doubts::load(&db).map_err(fault)?;
        let holding = Holding::load(&db).map_err(fault)?;
        let scripted = scripts::load(&db).map_err(fault)?;
        let lanes_set = rules::load_lanes(&db).map_err(fault)?;
        let limited_applications =
            LimitedApplications::load(&db, config.applications, now_ms).map_err(fault)?;
        let last_turn = recovery::last_turn(&db).map_err(fault)?;
        let next_task = pruning::next_task_id(&db).map_err(fault)?;
        let epoch = epochs::begin(&db, origin.begins_anew, now_ms).map_err(fault)?;
        if recorder.is_none() {
            db.execute_batch("COMMIT").map_err(fault)?;
            seen.delete_merged_files();
        }
        let notes = recorder.as_ref().map(Recorder::code_notes);
        let cx = Context {
            db: Database::new(db, notes),
            seen,
            sites: Names::for_sites(),
            records: Names::for_records(),
            crawls: CrawlsInMemory::default(),
            touched: BTreeSet::new(),
            excluded: config.excluded,
            retries,
            backoff,
            wall_ahead_ms: 0,
            doubts,
            false_pages: Vec::new(),
            trickles: SlowedBranches::default(),
            holding,
            limited_applications,
            app_tallies: AppTallies::default(),
            lanes: Lanes::from_findings(&scripted, lanes_set),
            scripted,
            unfit_mappings: UnfitMappings::new(),
            last_turn,
            next_task,
            ended: BTreeMap::new(),
            epoch,
            origin,
            now_ms,
            recorder,
        };
        Ok(Frontier(Transactions::new(path, cx)))
    }

    pub fn watches(&mut self) -> Watches<'_> {
        Watches(&mut self.0)
    }

    pub fn supervisors(&mut self) -> Supervisors<'_> {
        Supervisors(&mut self.0)
    }

    pub fn unsaved_crawls(&mut self) -> UnsavedCrawls<'_> {
        UnsavedCrawls(&mut self.0)
    }

    pub fn pruning(&mut self) -> Pruning<'_> {
        Pruning(&mut self.0)
    }

    pub fn records(&mut self) -> Records<'_> {
        Records(&mut self.0)
    }

    pub fn reopening(&mut self) -> Reopening<'_> {
        Reopening(&mut self.0)
    }

    pub fn runs(&mut self) -> Runs<'_> {
        Runs(&mut self.0)
    }

    pub fn sites(&mut self) -> Sites<'_> {
        Sites(&mut self.0)
    }

    pub fn site_states(&mut self) -> SiteStates<'_> {
        SiteStates(&mut self.0)
    }

    pub fn reports(&mut self) -> Reports<'_> {
        Reports(&mut self.0)
    }

    pub fn counts(&mut self) -> Counts<'_> {
        Counts(&mut self.0)
    }

    pub fn releases(&mut self) -> Releases<'_> {
        Releases(&mut self.0)
    }

    pub fn crawls(&mut self) -> Crawls<'_> {
        Crawls(&mut self.0)
    }

    pub fn tasks(&mut self) -> Tasks<'_> {
        Tasks(&mut self.0)
    }

    pub(crate) fn origin(&self) -> Origin {
        self.0.cx.origin
    }

    /// Applies changed settings from now on.
    pub(crate) fn change_settings(
        &mut self,
        retries: RetryTable,
        backoff: BackoffTable,
        excluded: ExcludedSites,
    ) {
        self.0.cx.retries.set_table(retries);
        self.0.cx.backoff.set_table(backoff);
        self.0.cx.excluded = excluded;
    }

    /// The number of tasks that have ended since the file was opened, by outcome.
    pub(crate) fn ended_tasks_by_outcome(&self) -> &BTreeMap<Outcome, u64> {
        &self.0.cx.ended
    }

    /// When the next retry is due.
    pub fn next_retry_ms(&self) -> Option<i64> {
        self.0.cx.retries.next_ms()
    }

    /// When a limit of pages per second next lets a waiting crawl continue.
    pub fn next_allowance_ms(&self) -> Option<i64> {
        self.0.cx.limited_applications.next_allowance_ms()
    }

    /// Whether crawls that were held back are to continue, so that [`release_next`](Releases::release_next) has work.
    pub fn has_crawls_to_release(&self) -> bool {
        self.0.cx.holding.has_crawls_to_release()
    }

    /// The use of an application's limits; `None`: it has none.
    pub fn application_use(&self, app_id: &str) -> Option<ApplicationUse> {
        self.0.cx.limited_applications.application_use(app_id)
    }

    /// The applications whose crawls wait at limits: first those whose page limit is used up, then those that wait for
    /// their pace or for one of their sites.
    pub fn apps_waiting_at_limits(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        self.0.cx.limited_applications.apps_waiting_at_limits()
    }

    /// Whether a supervisor with browsers is connected.
    pub fn has_browsers(&self) -> bool {
        self.0.cx.lanes.has_browsers()
    }

    /// Which pages of a site need a browser, as far as it is known, for the worker that gets its tasks.
    pub fn scripts_for_worker(&self, site: SiteId, name: &str) -> Option<SiteScripts> {
        browser_handover::findings_for_worker(&self.0.cx, site, name)
    }

    /// Whether a site could not be reached for as long as a crawl is willing to wait (its *patience*). Its tasks then
    /// end without requests.
    pub fn ends_without_requests(&self, site: SiteId) -> bool {
        self.0.cx.backoff.ends_without_requests(site)
    }

    /// Sets how far the wall clock is ahead of the clock that `now_ms` comes from.
    pub(crate) fn set_wall_ahead(&mut self, ahead_ms: i64) {
        self.0.cx.wall_ahead_ms = ahead_ms;
    }

    /// Sets the time that the next commit stores.
    pub fn set_now(&mut self, now_ms: i64) {
        self.0.cx.now_ms = now_ms;
    }

    /// Stores the time even if nothing else has changed, so that after a crash the time that sites have waited until
    /// now counts.
    pub fn note_time(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        self.set_now(now_ms);
        self.0.run("note the time", |cx| {
            recovery::note_commit(&cx.db, now_ms, cx.last_turn)
        })
    }

    /// Runs work of the caller on the file, for tables besides the frontier's. It belongs to the transaction that the
    /// next [`commit`](Frontier::commit) ends.
    pub fn run_in_transaction<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, FrontierError> {
        self.0
            .run("keep what stands beside the tasks", |cx| work(&cx.db))
    }

    /// Copies the frontier of a state folder into another folder, as of one commit. A dispatcher may use the frontier
    /// meanwhile. The copy is on disk when this returns. It is marked, so that no dispatcher mistakes it for its own
    /// file.
    pub fn back_up(state: &Path, into: &Path, now_ms: i64) -> Result<PathBuf, FrontierError> {
        restore::back_up(state, into, now_ms)
    }

    /// Stores how long this dispatcher still has to wait, because workers of a former fleet may still make requests.
    pub(crate) fn save_remaining_wait(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        let until_ms = self.0.cx.origin.quiet_until_ms;
        if until_ms == 0 {
            return Ok(());
        }
        let left_ms = Some(until_ms - now_ms).filter(|left_ms| *left_ms > 0);
        if left_ms.is_none() {
            self.0.cx.origin.quiet_until_ms = 0;
        }
        self.set_now(now_ms);
        self.0.run("note the wait that is left", |cx| {
            restore::store_meta(&cx.db, restore::QUIET, left_ms).map(|_| ())
        })
    }

    /// The changes since the last call. They must be in the journal before any of their effects takes place. Empty if
    /// there are none, or without a journal.
    pub fn take_changes(&mut self) -> Result<Vec<u8>, FrontierError> {
        self.0.take_changes()
    }

    /// Makes all commits durable in the file, once the journal has all changes up to the record `applied`. With a
    /// journal, [`commit`](Frontier::commit) does not sync the file, so that the file is never ahead of the journal.
    pub fn make_durable(&mut self, applied: Applied) -> Result<(), FrontierError> {
        self.0.make_durable(applied)
    }

    /// Makes all calls since the last commit durable, together. With a journal, they become durable in the file only
    /// with [`make_durable`](Frontier::make_durable).
    pub fn commit(&mut self) -> Result<(), FrontierError> {
        self.0.commit()
    }
}

/// Checks in tests that no executed statement has scanned a whole table.
#[cfg(test)]
impl Drop for Frontier {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(
                schema::plans::take_scanning_statements(&self.0.cx.db),
                Vec::<String>::new()
            );
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
