//! Snapshots (copies of dispatchers' files), and the removal of the journal records that a snapshot contains.

use std::path::Path;

use webfill_scheduler::frontier::{self, Applied};
use webfill_scheduler::journal::Member;

use crate::dice::Dice;
use crate::plan::Plan;
use crate::world::World;

use super::Standbys;
use super::faults::NodeFault;
use super::journal::Snapshot;
use super::node::Process;
use super::plan::StandbyPlan;

impl StandbyPlan {
    /// Adds snapshots to some plans, at random times and from random dispatchers, even from those that are far behind.
    pub(super) fn add_snapshots(&mut self, dice: &mut Dice, plan: &Plan) {
        let most = dice.one_of(&[0, 0, 4, 40]);
        for _ in 0..most {
            let at_ms = dice.between(0, plan.estimate_ms + 60_000);
            let node = dice.between(0, self.nodes as u64 - 1) as usize;
            self.snapshots.push((at_ms, node));
        }
    }
}

/// Makes a snapshot of a dispatcher's file, unless the last snapshot is as new. Then removes the journal records
/// before the last one that the snapshot contains.
pub(super) fn make_snapshot(world: &mut World, node: usize) {
    let path = world.coordinator.folder().join("snapshot");
    let standbys = world.standbys_mut();
    let folder = standbys.nodes[node].folder.path();
    if !folder.join(frontier::FILE_NAME).exists() {
        return;
    }
    let made = folder.join("made");
    let applied = frontier::make_snapshot(folder, &made).expect("the file can be copied");
    let newest = standbys.journal.snapshot.as_ref();
    if applied.number <= newest.map_or(0, |newest| newest.applied.number) {
        return;
    }
    std::fs::copy(&made, &path).expect("it can be copied");
    standbys.journal.snapshot = Some(Snapshot { path, applied });
    standbys.journal.cut_before(applied.number);
    standbys.report.snapshots += 1;
}

/// Lets a dispatcher begin again from the snapshot, if the journal records that it needs were removed.
pub(super) fn begin_with_snapshot(world: &mut World, node: usize) {
    let Standbys {
        nodes,
        journal,
        plan,
        report,
        ..
    } = world.standbys_mut();
    let node = &mut nodes[node];
    if let (Some(process), Some(snapshot)) = (&mut node.process, &journal.snapshot) {
        let instance = node.number as u64;
        process.replace_file(snapshot, node.folder.path(), (instance, &*plan));
        report.begun_again += 1;
    }
}

impl Process {
    /// Replaces the dispatcher's file by a snapshot, unless the file already contains as many records.
    pub(super) fn replace_file(
        &mut self,
        snapshot: &Snapshot,
        folder: &Path,
        (instance, plan): (u64, &StandbyPlan),
    ) {
        let Applied { number, epoch } = snapshot.applied;
        if self.core.is_some() || self.member.last_read_number() >= number {
            return;
        }
        self.file = None;
        let received = folder.join("received");
        std::fs::copy(&snapshot.path, &received).expect("it can be copied");
        frontier::install_snapshot(folder, &received).expect("it can be renamed");
        self.file = Some(frontier::open_file(folder).expect("its file opens"));
        self.member = Member::new(instance, (number, epoch), plan.member_terms());
    }
}

/// The snapshots of a plan as events that happen at their times.
pub(super) fn snapshot_faults(plan: &StandbyPlan) -> impl Iterator<Item = (u64, NodeFault)> {
    let snapshots = plan.snapshots.iter();
    snapshots.map(|(at_ms, node)| (*at_ms, NodeFault::SnapshotIsMade { node: *node }))
}
