//! What supervisors tell of themselves.

use serde::{Deserialize, Serialize};

/// What a supervisor tells of itself every few seconds, for people who ask how the fleet is doing. Nothing is
/// decided by it, so one that is lost does no harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorReport {
    pub session: u64,
    /// The version of its webfill.
    pub webfill: String,
    /// Its worker processes that take tasks.
    pub workers_ready: u16,
    /// How often a worker process of it has died since it was started.
    pub worker_deaths: u32,
    /// Resident memory of its own process.
    pub memory_bytes: u64,
    /// Resident memory of its worker processes together.
    pub workers_memory_bytes: u64,
    /// The machine's load average of the last minute, in hundredths.
    pub load_hundredths: u32,
    /// The processors that it may use.
    pub cores: u16,
    /// Leases that it holds.
    pub held: u32,
    /// Those of them that wait here for their worker.
    pub waiting: u32,
    /// Why it begins nothing, in words.
    pub holds: Option<String>,
}
