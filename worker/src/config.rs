//! The settings of a worker, and the addresses of the sockets between a worker and its supervisor.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use webfill_store::{BodiesConfig, StoreUri};

use crate::archive::ArchiveConfig;
use crate::browser::BrowserConfig;
use crate::documents::DocumentsConfig;
use crate::fetch::FetchConfig;
use crate::politeness::PolitenessConfig;

/// How much a worker does concurrently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// Fetches in flight per worker.
    pub concurrency: usize,
    /// Memory for the bodies, trees and results of pages in flight, in MiB.
    pub memory_mib: usize,
    /// Seconds that the extraction of one page may take.
    pub page_deadline: f64,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        WorkerConfig {
            concurrency: 64,
            memory_mib: 96,
            page_deadline: 10.0,
        }
    }
}

/// The pages that a worker has a browser for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrowserUse {
    /// The worker has no browser.
    None,
    /// The browser is for pages of crawls in the lane `http` that show nothing without their scripts. If it does not
    /// start, the pages are kept as they came.
    AtHand,
    /// The worker is of the lane `browser`, so its browser renders all pages that need one. Without a browser that
    /// starts, the worker is of no use.
    Lane,
}

/// Everything that a worker process needs.
#[derive(Debug, Clone)]
pub struct WorkerSetup {
    /// Tells the workers of one supervisor apart; counts from 0.
    pub worker_index: u16,
    /// The number of times that this worker's process was started.
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
    pub archive: ArchiveConfig,
    pub documents: DocumentsConfig,
    /// Whether the texts of a few pages are kept, for repairing mappings.
    pub keeps_samples: bool,
    /// The bytes of each body that are kept, in crawls that keep bodies.
    pub bodies: BodiesConfig,
    pub browser: BrowserConfig,
    pub browser_use: BrowserUse,
    /// Returns freed memory to the system.
    pub release_memory: fn(),
}

/// The endpoint where a supervisor binds the socket for a worker's tasks. It differs for each incarnation, so that no
/// message for a dead worker reaches its successor.
pub fn tasks_endpoint(sockets: &std::path::Path, worker_index: u16, incarnation: u32) -> String {
    format!("ipc://{}/w{worker_index}.{incarnation}", sockets.display())
}

/// The endpoint where a supervisor receives the outcomes of all its workers.
pub fn outcomes_endpoint(sockets: &std::path::Path) -> String {
    format!("ipc://{}/outcomes", sockets.display())
}
