//! The number of supervisors by state.

use super::Fleet;
use crate::dispatch::session::Session;

/// The number of supervisors in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FleetMetrics {
    /// Connected supervisors that take tasks.
    pub connected: usize,
    /// Supervisors that have a session but were silent for most of their lease.
    pub silent: usize,
    pub draining: usize,
    /// Supervisors that may hold tasks from before the dispatcher's start and have not come back yet.
    pub awaited: usize,
    /// The largest difference between a supervisor's wall clock and the dispatcher's clock.
    pub clock_skew_ms: u64,
}

impl Fleet {
    pub(crate) fn metrics(&self) -> FleetMetrics {
        let mut metrics = FleetMetrics::default();
        for supervisor in self.supervisors.values() {
            let session = supervisor.session.as_ref();
            *match session {
                None => &mut metrics.awaited,
                Some(_) if supervisor.is_silent => &mut metrics.silent,
                Some(session) if Session::is_ending(session) => &mut metrics.draining,
                Some(_) => &mut metrics.connected,
            } += 1;
            let skew_ms = supervisor.clock_ahead_ms.unsigned_abs();
            metrics.clock_skew_ms = metrics.clock_skew_ms.max(skew_ms);
        }
        metrics
    }
}
