//! Which of the fleet's machines reach the web, and how many tasks the offline ones may get.

use webfill_wire::Lane;

use super::Fleet;
use crate::dispatch::egress::{
    Egress, EgressChange, Offline, PROBES_IN_A_ROUND, ReachAttempt, ReachResult, Tally,
};
use crate::dispatch::session::AvailableCredit;

impl Fleet {
    /// How many tasks may be sent to a supervisor now: none once its lease is over, and only a few, as a test, if it is
    /// offline.
    pub(in crate::dispatch) fn available_credit(&self, name: &str, now_ms: i64) -> AvailableCredit {
        let Some(supervisor) = self.supervisors.get(name) else {
            return AvailableCredit::default();
        };
        let most = match supervisor.egress.offline_state() {
            None => u64::MAX,
            Some(_) => self.free_probes(name, now_ms) as u64,
        };
        supervisor.available_credit(most, now_ms, self.lease_ms)
    }

    fn free_probes(&self, name: &str, now_ms: i64) -> usize {
        let in_a_round = match self.has_online_peer(name) {
            true => 1,
            false => PROBES_IN_A_ROUND,
        };
        let supervisor = self.supervisors.get(name);
        let room = supervisor.and_then(|one| one.egress.free_probes(in_a_round, now_ms));
        room.unwrap_or(0)
    }

    /// Whether another machine with the same lane (`http` or `browser`) reaches the web.
    pub(in crate::dispatch) fn has_online_peer(&self, name: &str) -> bool {
        let lane = self.lane_of(name);
        lane.is_some_and(|lane| self.online_in(lane).next().is_some())
    }

    /// Whether machines are connected but none of them reaches the web.
    pub(in crate::dispatch) fn is_offline(&self) -> bool {
        let mut connected = self.supervisors.values().filter(|one| one.lane().is_some());
        connected
            .next()
            .is_some_and(|one| one.egress.offline_state().is_some())
            && connected.all(|one| one.egress.offline_state().is_some())
    }

    /// Notes an attempt of a supervisor.
    pub(in crate::dispatch) fn record_attempt(
        &mut self,
        name: &str,
        attempt: &ReachAttempt<'_>,
    ) -> Option<EgressChange> {
        let mut others = Tally::default();
        if attempt.reach != ReachResult::Answered {
            let rest = self.supervisors.iter().filter(|(other, _)| *other != name);
            rest.for_each(|(_, other)| others.add(other.egress.tally(attempt.at_ms)));
        }
        self.supervisors
            .get_mut(name)?
            .egress
            .record_attempt(attempt, others)
    }

    pub(in crate::dispatch) fn egress_of(&mut self, name: &str) -> Option<&mut Egress> {
        self.supervisors
            .get_mut(name)
            .map(|found| &mut found.egress)
    }

    /// Since when and why a supervisor is offline.
    pub(crate) fn offline_state(&self, name: &str) -> Option<&Offline> {
        self.supervisors.get(name)?.egress.offline_state()
    }

    /// The connected supervisors of a lane (`http` or `browser`) that are offline.
    pub(in crate::dispatch) fn offline_in(&self, lane: Lane) -> impl Iterator<Item = &String> {
        let all = self.supervisors.iter();
        all.filter(move |(_, one)| one.lane() == Some(lane) && one.egress.offline_state().is_some())
            .map(|(name, _)| name)
    }

    /// When the next round of probes (test tasks) of an offline supervisor is due.
    pub(crate) fn next_probe_ms(&self) -> Option<i64> {
        let connected = self.supervisors.values().filter(|one| one.lane().is_some());
        connected.filter_map(|one| one.egress.probe_at_ms()).min()
    }

    /// The connected supervisors of a lane (`http` or `browser`) that reach the web.
    pub(in crate::dispatch) fn online_in(&self, lane: Lane) -> impl Iterator<Item = &String> {
        let all = self.supervisors.iter();
        all.filter(move |(_, one)| one.lane() == Some(lane) && one.egress.offline_state().is_none())
            .map(|(name, _)| name)
    }

    /// If all connected supervisors are offline: the state of the one that has been offline longest.
    pub(crate) fn longest_outage_if_all_offline(&self) -> Option<&Offline> {
        let mut longest: Option<&Offline> = None;
        for (name, _) in self.connected_lanes() {
            let offline = self.offline_state(name)?;
            if longest.is_none_or(|found| offline.since_ms < found.since_ms) {
                longest = Some(offline);
            }
        }
        longest
    }
}
