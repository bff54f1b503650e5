//! The faults of dispatchers and of the journal.

/// A fault of a dispatcher or of the journal. `for_ms` and `down_ms` are its duration. `node` is the number of the
/// dispatcher; `None` means the serving one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NodeFault {
    Dies {
        node: Option<usize>,
        down_ms: u64,
    },
    /// The process is suspended. When it continues, another dispatcher may have taken over.
    Stops {
        node: Option<usize>,
        for_ms: u64,
    },
    CutOffFromJournal {
        node: Option<usize>,
        for_ms: u64,
    },
    /// The dispatcher is cut off from supervisors and clients.
    CutOffFromFleet {
        node: Option<usize>,
        for_ms: u64,
    },
    /// The dispatcher is cut off from supervisors, clients and the journal.
    CutOff {
        node: Option<usize>,
        for_ms: u64,
    },
    JournalIsAway {
        for_ms: u64,
    },
    /// The serving dispatcher is asked to hand over.
    HandsOver,
    /// A snapshot of a dispatcher's file is made, and the journal records that the file contains are removed.
    SnapshotIsMade {
        node: usize,
    },
    /// The wall clock is set. This takes effect at the next start of the process.
    ClockIsSet {
        node: Option<usize>,
        ahead_ms: i64,
    },
}
