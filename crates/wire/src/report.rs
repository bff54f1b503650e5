//! The reports of supervisors about themselves.

use serde::{Deserialize, Serialize};

/// A supervisor's report about itself, sent every few seconds, for people who check the state of the fleet. No
/// decision depends on it, so a lost one does no harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorReport {
    pub session: u64,
    /// The version of its webfill.
    pub webfill: String,
    /// Its worker processes that take tasks.
    pub workers_ready: u16,
    /// How many of its worker processes have died since it was started.
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
    /// The held leases that wait here for their worker.
    pub waiting: u32,
    /// Why it starts no tasks, in words.
    pub holds: Option<String>,
}
