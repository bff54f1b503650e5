//! The reports that supervisors send about themselves.

use serde::{Deserialize, Serialize};

/// A supervisor's report about itself, sent every few seconds, for people who watch the fleet. No decision depends on
/// it, so a lost report does no harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorReport {
    pub session: u64,
    /// The version of webfill that the supervisor runs.
    pub webfill: String,
    /// How many of the supervisor's worker processes take tasks.
    pub workers_ready: u16,
    /// How many worker processes have died since the supervisor was started.
    pub worker_deaths: u32,
    /// The resident memory of the supervisor process, in bytes.
    pub memory_bytes: u64,
    /// The resident memory of the supervisor's worker processes together, in bytes.
    pub workers_memory_bytes: u64,
    /// The machine's load average of the last minute, in hundredths.
    pub load_hundredths: u32,
    /// How many processors the supervisor may use.
    pub cores: u16,
    /// How many tasks the supervisor has leased from the dispatcher.
    pub held: u32,
    /// How many of these leased tasks wait in the supervisor for their worker.
    pub waiting: u32,
    /// Why the supervisor starts no tasks, in words; `None` if it does.
    pub holds: Option<String>,
}
