//! What a worker is told at its start.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use webfill_store::StoreUri;

use crate::browser::BrowserConfig;
use crate::fetch::FetchConfig;
use crate::politeness::PolitenessConfig;

/// How much a worker does at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// Fetches in flight per worker.
    pub concurrency: usize,
    /// Seconds that the extraction of one page may take.
    pub page_deadline: f64,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        WorkerConfig {
            concurrency: 64,
            page_deadline: 10.0,
        }
    }
}

/// Everything that one worker process needs.
#[derive(Debug, Clone)]
pub struct WorkerSetup {
    /// Its place at its supervisor.
    pub slot: u16,
    /// Counts the restarts of the slot.
    pub incarnation: u32,
    /// The supervisor's name.
    pub supervisor: String,
    /// How many workers the supervisor has.
    pub workers: u16,
    /// The folder of the supervisor's sockets.
    pub sockets: PathBuf,
    pub store: StoreUri,
    pub cache: Option<StoreUri>,
    pub worker: WorkerConfig,
    pub politeness: PolitenessConfig,
    pub fetch: FetchConfig,
    /// In the lane `browser`.
    pub browser: Option<BrowserConfig>,
}

/// Where a supervisor listens for a worker's tasks: a new place for each incarnation, so that
/// nothing meant for a dead worker reaches its successor.
pub fn tasks_endpoint(sockets: &std::path::Path, slot: u16, incarnation: u32) -> String {
    format!("ipc://{}/w{slot}.{incarnation}", sockets.display())
}

/// Where a supervisor listens for the outcomes of all its workers.
pub fn outcomes_endpoint(sockets: &std::path::Path) -> String {
    format!("ipc://{}/outcomes", sockets.display())
}
