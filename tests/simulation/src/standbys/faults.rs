//! The faults of dispatchers and of the journal.

use crate::world::{Place, World};

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

impl World {
    pub(super) fn inject_node_fault(&mut self, fault: NodeFault) {
        let now_ms = self.now_ms;
        match fault {
            NodeFault::Dies { node, down_ms } => {
                if let Some(node) = self.resolve_node(node) {
                    self.kill_node(node, down_ms);
                }
            }
            NodeFault::Stops { node, for_ms } => {
                if let Some(node) = self.resolve_node(node) {
                    self.suspend(Place::Node(node), for_ms);
                }
            }
            NodeFault::CutOffFromJournal { node, for_ms } => {
                self.cut_off(node, (now_ms + for_ms, 0));
            }
            NodeFault::CutOffFromFleet { node, for_ms } => {
                self.cut_off(node, (0, now_ms + for_ms));
            }
            NodeFault::CutOff { node, for_ms } => {
                self.cut_off(node, (now_ms + for_ms, now_ms + for_ms));
            }
            NodeFault::JournalIsAway { for_ms } => {
                self.standbys_mut().journal.away_until_ms = now_ms + for_ms;
            }
            NodeFault::HandsOver => {
                if let Some(node) = self.resolve_node(None) {
                    self.begin_hand_over(node);
                }
            }
            NodeFault::ClockIsSet { node, ahead_ms } => {
                if let Some(node) = self.resolve_node(node) {
                    self.standbys_mut().nodes[node].clock_ahead_ms = ahead_ms;
                }
            }
        }
    }

    /// The dispatcher that a fault means.
    fn resolve_node(&mut self, node: Option<usize>) -> Option<usize> {
        let nodes = &self.standbys_mut().nodes;
        node.or_else(|| nodes.iter().position(|node| node.serves()))
    }

    fn cut_off(&mut self, node: Option<usize>, (journal_ms, fleet_ms): (u64, u64)) {
        let Some(node) = self.resolve_node(node) else {
            return;
        };
        let node = &mut self.standbys_mut().nodes[node];
        node.no_journal_until_ms = node.no_journal_until_ms.max(journal_ms);
        node.no_fleet_until_ms = node.no_fleet_until_ms.max(fleet_ms);
    }
}
