//! The faults of dispatchers and of the journal.

/// A fault. The time in it is its duration. `node`: the dispatcher; `None`: the one that serves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NodeFault {
    Dies {
        node: Option<usize>,
        down_ms: u64,
    },
    /// The process is stopped; when it continues, others may have taken over.
    Stops {
        node: Option<usize>,
        for_ms: u64,
    },
    CutOffFromJournal {
        node: Option<usize>,
        for_ms: u64,
    },
    /// Cut off from supervisors and clients.
    CutOffFromFleet {
        node: Option<usize>,
        for_ms: u64,
    },
    /// Cut off from everything.
    CutOff {
        node: Option<usize>,
        for_ms: u64,
    },
    JournalIsAway {
        for_ms: u64,
    },
    /// The one that serves is asked to hand over.
    HandsOver,
    /// Counts from the next start of the process.
    ClockIsSet {
        node: Option<usize>,
        ahead_ms: i64,
    },
}
