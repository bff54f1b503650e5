//! The settings of a frontier, and the name of its file.

use std::collections::BTreeMap;

use webfill_urls::DroppedParameters;

use crate::application_limits::ApplicationLimits;
use crate::backoff_table::BackoffTable;
use crate::excluded_sites::ExcludedSites;
use crate::patience::Patience;
use crate::retry_table::RetryTable;

/// The name of the frontier's file in the state folder.
pub const FILE_NAME: &str = "dispatcher.db";

/// The frontier's memory limit, and settings that apply to all crawls.
#[derive(Debug, Clone)]
pub struct FrontierConfig {
    /// The memory of the seen index, allocated as needed. With 128 MiB, look-ups among ten million URLs mostly need
    /// no disk access.
    pub seen_memory_bytes: usize,
    /// The memory for cached pages of the database; see [`page_cache_bytes`].
    pub page_cache_bytes: usize,
    /// Sites that are never crawled.
    pub excluded: ExcludedSites,
    /// Query parameters that do not distinguish URLs.
    pub dropped_parameters: DroppedParameters,
    /// Which failures are retried, and when.
    pub retries: RetryTable,
    /// How long sites in trouble back off.
    pub backoff: BackoffTable,
    /// How long to wait for failing sites; `None`: as long as the tables say.
    pub patience: Option<Patience>,
    /// The limits of applications, by name.
    pub applications: BTreeMap<String, ApplicationLimits>,
    /// How to start if the file is a backup, or another copy that may be older than the state of the fleet. `None`:
    /// the file is opened without a dispatcher, and a backup is refused.
    pub restoring: Option<Restoring>,
    /// Whether commits go to a journal, and to the file only with [`make_durable`](super::Frontier::make_durable).
    pub journalled: bool,
}

/// The memory for cached pages of the database, given the memory of the seen index: enough for the inner pages of the
/// trees of a hundred million tasks.
pub fn page_cache_bytes(seen_memory_bytes: usize) -> usize {
    (seen_memory_bytes / 4).max(16 << 20)
}

impl Default for FrontierConfig {
    fn default() -> Self {
        FrontierConfig {
            seen_memory_bytes: 128 << 20,
            page_cache_bytes: page_cache_bytes(128 << 20),
            excluded: ExcludedSites::default(),
            dropped_parameters: DroppedParameters::with_defaults(),
            retries: RetryTable::default(),
            backoff: BackoffTable::default(),
            patience: None,
            applications: BTreeMap::new(),
            restoring: None,
            journalled: false,
        }
    }
}

/// How to start from a file that may be older than the state of its fleet.
#[derive(Debug, Clone, Copy)]
pub struct Restoring {
    /// How long a supervisor may start requests after it has last heard from its dispatcher.
    pub lease_ms: u64,
    /// The assumed longest request of supervisors that the file does not know.
    pub longest_request_ms: u64,
    /// The delay of sites whose own delay is not known.
    pub default_delay_ms: u32,
    pub backups: Backups,
}

/// How to open a file that is marked as a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backups {
    /// The file is refused: the dispatcher of a fleet needs `--restored` for a backup.
    Refused,
    /// The file is treated as a backup. Used by a crawl on one machine, whose dispatcher nobody starts by hand, and
    /// by a service whose settings allow starts from backups.
    Taken,
    /// The file is declared to be a backup, whether it is marked or not.
    Declared,
}
