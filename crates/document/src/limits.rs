//! The limits on the cost of one page. Each limit stops a hostile page that could be written in a few
//! kilobytes.

use std::cell::Cell;
use std::fmt;
use std::time::{Duration, Instant};

/// Limits on parsing a page, and on evaluating expressions on it.
///
/// Several hundred real pages were measured: they have at most 88,000 nodes and 53 levels, and take at most 25 ms to
/// parse. With the default limits, the worst hostile page in the tests takes less than 200 MB and 5 seconds.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The limit on the bytes of text that are read. The rest of a longer page is left out. Default 16 MiB.
    pub input_bytes: usize,
    /// The limit on the nodes of the tree, not counting attributes. Default 400,000.
    pub nodes: usize,
    /// The limit on the attributes of all elements together. Default 1,000,000.
    pub attributes: usize,
    /// The limit on the attributes that are kept of one element. Default 256.
    pub attributes_per_element: usize,
    /// The limit on the levels of the tree. Deeper elements are moved up to the last level, with
    /// their text. Default 512.
    pub depth: usize,
    /// The number of open elements beyond which reading stops. It exceeds `depth`, so that a page without end tags is
    /// still read. Default 2,000.
    pub open_elements: usize,
    /// The limit on the memory of a page's tree in bytes, including the copy that some expressions need. The memory is
    /// estimated, and never too low. Default 1 GiB; a page within the other limits never needs as much.
    pub memory_bytes: usize,
    /// The time for parsing one page. Default 2 s.
    pub parse_time: Duration,
    /// The time for all evaluations on one page together. Default 2 s.
    pub evaluation_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            input_bytes: 16 << 20,
            nodes: 400_000,
            attributes: 1_000_000,
            attributes_per_element: 256,
            depth: 512,
            open_elements: 2_000,
            memory_bytes: 1 << 30,
            parse_time: Duration::from_secs(2),
            evaluation_time: Duration::from_secs(2),
        }
    }
}

/// Why a part of a page, usually its end, is missing from its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncation {
    InputBytes,
    Nodes,
    Attributes,
    OpenElements,
    Memory,
    ParseTime,
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Truncation::InputBytes => "the page exceeds the size limit",
            Truncation::Nodes => "the page exceeds the limit of nodes",
            Truncation::Attributes => "the page exceeds the limit of attributes",
            Truncation::OpenElements => "the page exceeds the limit of nested elements",
            Truncation::Memory => "the page's tree exceeds its memory limit",
            Truncation::ParseTime => "the page takes too long to parse",
        })
    }
}

/// The time budget for evaluation on a page is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfTime;

/// The time budget of one evaluation. Reading the clock takes longer than visiting a node. So work is counted in units
/// of about one node, and the clock is read only every few thousand units.
pub(crate) struct Budget {
    deadline: Instant,
    units: Cell<usize>,
}

const UNITS_BETWEEN_CHECKS: usize = 4_096;

impl Budget {
    pub(crate) fn with_deadline(deadline: Instant) -> Self {
        Budget {
            deadline,
            units: Cell::new(UNITS_BETWEEN_CHECKS),
        }
    }

    /// Counts `units` of work. Fails if the time is used up.
    pub(crate) fn spend(&self, units: usize) -> Result<(), OutOfTime> {
        let left = self.units.get();
        if units < left {
            self.units.set(left - units);
            return Ok(());
        }
        self.units.set(UNITS_BETWEEN_CHECKS);
        if Instant::now() < self.deadline {
            Ok(())
        } else {
            Err(OutOfTime)
        }
    }
}
