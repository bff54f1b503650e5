//! What the fleet knows of its machines' egress, and how many tasks cut-off machines may get.

use webfill_wire::Lane;

use super::Fleet;
use crate::dispatch::egress::{Attempt, Change, CutOff, Egress, PROBES_IN_A_ROUND, Reach, Tally};
use crate::dispatch::session::AvailableCredit;

impl Fleet {
    /// How many tasks may be sent to a supervisor now; none once its lease is over, and only probes if it is cut off.
    pub(in crate::dispatch) fn available_credit(&self, name: &str, now_ms: i64) -> AvailableCredit {
        let Some(supervisor) = self.supervisors.get(name) else {
            return AvailableCredit::default();
        };
        let most = match supervisor.egress.cut_off() {
            None => u64::MAX,
            Some(_) => self.room_for_probes(name, now_ms) as u64,
        };
        supervisor.available_credit(most, now_ms, self.lease_ms)
    }

    fn room_for_probes(&self, name: &str, now_ms: i64) -> usize {
        let in_a_round = match self.has_open_peer(name) {
            true => 1,
            false => PROBES_IN_A_ROUND,
        };
        let supervisor = self.supervisors.get(name);
        let room = supervisor.and_then(|one| one.egress.room_for_probes(in_a_round, now_ms));
        room.unwrap_or(0)
    }

    /// Whether another machine of the same lane has a way out.
    pub(in crate::dispatch) fn has_open_peer(&self, name: &str) -> bool {
        let lane = self.lane_of(name);
        lane.is_some_and(|lane| self.open_in(lane).next().is_some())
    }

    /// Whether machines are connected but none of them has a way out.
    pub(in crate::dispatch) fn is_cut_off(&self) -> bool {
        let mut connected = self.supervisors.values().filter(|one| one.lane().is_some());
        connected
            .next()
            .is_some_and(|one| one.egress.cut_off().is_some())
            && connected.all(|one| one.egress.cut_off().is_some())
    }

    /// Notes an attempt of a supervisor.
    pub(in crate::dispatch) fn note_attempt(
        &mut self,
        name: &str,
        attempt: &Attempt<'_>,
    ) -> Option<Change> {
        let mut others = Tally::default();
        if attempt.reach != Reach::Answered {
            let rest = self.supervisors.iter().filter(|(other, _)| *other != name);
            rest.for_each(|(_, other)| others.add(other.egress.tally(attempt.at_ms)));
        }
        self.supervisors.get_mut(name)?.egress.note(attempt, others)
    }

    pub(in crate::dispatch) fn egress_of(&mut self, name: &str) -> Option<&mut Egress> {
        self.supervisors
            .get_mut(name)
            .map(|found| &mut found.egress)
    }

    /// Since when and why a supervisor is cut off.
    pub(crate) fn cut_off(&self, name: &str) -> Option<&CutOff> {
        self.supervisors.get(name)?.egress.cut_off()
    }

    /// The connected supervisors of a lane that are cut off.
    pub(in crate::dispatch) fn cut_off_in(&self, lane: Lane) -> impl Iterator<Item = &String> {
        let all = self.supervisors.iter();
        all.filter(move |(_, one)| one.lane() == Some(lane) && one.egress.cut_off().is_some())
            .map(|(name, _)| name)
    }

    /// When the next round of probes of a supervisor that is cut off is due.
    pub(crate) fn next_probe_ms(&self) -> Option<i64> {
        let connected = self.supervisors.values().filter(|one| one.lane().is_some());
        connected.filter_map(|one| one.egress.probe_at_ms()).min()
    }

    /// The connected supervisors of a lane that have a way out.
    pub(in crate::dispatch) fn open_in(&self, lane: Lane) -> impl Iterator<Item = &String> {
        let all = self.supervisors.iter();
        all.filter(move |(_, one)| one.lane() == Some(lane) && one.egress.cut_off().is_none())
            .map(|(name, _)| name)
    }

    /// If all connected supervisors are cut off: the cut-off that has lasted longest.
    pub(crate) fn all_cut_off(&self) -> Option<&CutOff> {
        let mut longest: Option<&CutOff> = None;
        for (name, _) in self.present_lanes() {
            let cut_off = self.cut_off(name)?;
            if longest.is_none_or(|found| cut_off.since_ms < found.since_ms) {
                longest = Some(cut_off);
            }
        }
        longest
    }
}
