//! Checks that nothing stands still: if a site is due and the supervisors have credit, something is handed out within
//! a bounded number of the dispatcher's turns.
//!
//! Judged by the database, as another program reads it, and by which supervisors are connected and have credit.
//! Nothing is judged while it is unclear who may get a task, because a supervisor is silent, leaves or has not come
//! back, or a machine has lost its way out.

use webfill_wire::Lane;

use crate::world::World;

/// The database is checked whenever this many consecutive turns have handed out nothing.
const TURNS_PER_CHECK: u32 = 8;

/// The maximum number of consecutive checks that may find a site due.
const MOST_CHECKS: u32 = 6;

/// How long the limits of groups may delay due tasks.
const GROUPS_TAKE_MS: u64 = 20_000;

#[derive(Debug, Default)]
pub(crate) struct Standstill {
    /// The number of turns since something was handed out, in the dispatcher's present life.
    quiet_turns: u32,
    /// The number of the latest consecutive checks that found a site due, and the time of the first of them.
    due_checks: u32,
    due_since_ms: u64,
}

impl World {
    /// Judges a turn of the dispatcher. `on_handed_out`: something was handed out in it.
    pub(crate) fn check_standstill(&mut self, handed_out: bool) {
        if handed_out || !self.plan.judges_standstill || self.plan.loses_egress() {
            self.standstill = Standstill::default();
            return;
        }
        self.standstill.quiet_turns += 1;
        if !self.standstill.quiet_turns.is_multiple_of(TURNS_PER_CHECK) {
            return;
        }
        let due = self.find_neglected_site();
        let now_ms = self.now_ms;
        let takes_ms = match self.plan.group_bounds {
            Some(_) => GROUPS_TAKE_MS,
            None => 0,
        };
        let seen = &mut self.standstill;
        let Some(site) = due else {
            seen.due_checks = 0;
            return;
        };
        if seen.due_checks == 0 {
            seen.due_since_ms = now_ms;
        }
        seen.due_checks += 1;
        let for_ms = now_ms - seen.due_since_ms;
        if seen.due_checks > MOST_CHECKS && for_ms >= takes_ms {
            let turns = MOST_CHECKS * TURNS_PER_CHECK;
            let fault = format!(
                "stands still: {site} is due, and for {turns} turns and more nothing was handed out"
            );
            self.faults.push(fault);
        }
    }

    /// A due site whose tasks any supervisor with credit could get.
    fn find_neglected_site(&mut self) -> Option<String> {
        let now_ms = self.coordinator.ahead_ms() + self.now_ms as i64;
        let lanes = self.coordinator.lanes_with_credit(now_ms);
        if lanes.is_empty() {
            return None;
        }
        let has_browsers = lanes.contains(&Lane::Browser);
        let shares_bounds = self.plan.group_bounds.is_some();
        let limited = self.plan.dead_hosts.as_ref();
        let limited = limited.is_some_and(|dead| dead.limits != Default::default());
        let unlimited_app = if limited { Some("app") } else { None };
        let witness = self.coordinator.open_witness();
        witness.find_due_site(now_ms, has_browsers, shares_bounds, unlimited_app)
    }
}
