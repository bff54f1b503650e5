//! Applies the faults of dispatchers and of the journal.

use crate::event::Place;
use crate::world::World;

use super::{faults::NodeFault, journalling, serving, snapshots};

pub(super) fn inject_node_fault(world: &mut World, fault: NodeFault) {
    let now_ms = world.now_ms;
    match fault {
        NodeFault::Dies { node, down_ms } => {
            if let Some(node) = resolve_node(world, node) {
                journalling::kill_node(world, node, down_ms);
            }
        }
        NodeFault::Stops { node, for_ms } => {
            if let Some(node) = resolve_node(world, node) {
                world.suspend(Place::Node(node), for_ms);
            }
        }
        NodeFault::CutOffFromJournal { node, for_ms } => {
            cut_off(world, node, (now_ms + for_ms, 0));
        }
        NodeFault::CutOffFromFleet { node, for_ms } => {
            cut_off(world, node, (0, now_ms + for_ms));
        }
        NodeFault::CutOff { node, for_ms } => {
            cut_off(world, node, (now_ms + for_ms, now_ms + for_ms));
        }
        NodeFault::JournalIsAway { for_ms } => {
            world.standbys_mut().journal.away_until_ms = now_ms + for_ms;
        }
        NodeFault::HandsOver => {
            if let Some(node) = resolve_node(world, None) {
                serving::begin_hand_over(world, node);
            }
        }
        NodeFault::SnapshotIsMade { node } => snapshots::make_snapshot(world, node),
        NodeFault::ClockIsSet { node, ahead_ms } => {
            if let Some(node) = resolve_node(world, node) {
                world.standbys_mut().nodes[node].clock_ahead_ms = ahead_ms;
            }
        }
    }
}

/// The number of the dispatcher that a fault affects; `None` if it is meant for the serving one and none serves.
fn resolve_node(world: &mut World, node: Option<usize>) -> Option<usize> {
    let nodes = &world.standbys_mut().nodes;
    node.or_else(|| nodes.iter().position(|node| node.serves()))
}

fn cut_off(world: &mut World, node: Option<usize>, (journal_ms, fleet_ms): (u64, u64)) {
    let Some(node) = resolve_node(world, node) else {
        return;
    };
    let node = &mut world.standbys_mut().nodes[node];
    node.no_journal_until_ms = node.no_journal_until_ms.max(journal_ms);
    node.no_fleet_until_ms = node.no_fleet_until_ms.max(fleet_ms);
}
