//! Checks that nothing stands still: if a site is due and the supervisors have credit, something is handed out within
//! a bounded number of the dispatcher's turns.
//!
//! The judgement is based on the database, as another program reads it, and on the connected supervisors and their
//! credit. Nothing is judged while it is unclear who may get a task, because a supervisor is silent, leaves or has not
//! come back; nor in worlds where machines lose their ways out.

use webfill_wire::Lane;

use crate::observations::Standstill;
use crate::world::World;

/// The database is checked whenever this many consecutive turns have handed out nothing.
const TURNS_PER_CHECK: u32 = 8;

/// The maximum number of consecutive checks that may find a site due.
const MOST_CHECKS: u32 = 6;

/// How long the limits on groups of sites may delay due tasks, in milliseconds.
const GROUPS_TAKE_MS: u64 = 20_000;

/// Checks a turn of the dispatcher. `handed_out` is whether it handed out tasks.
pub(crate) fn check_standstill(world: &mut World, handed_out: bool) {
    if handed_out || !world.plan.judges_standstill || world.plan.loses_egress() {
        world.standstill = Standstill::default();
        return;
    }
    world.standstill.quiet_turns += 1;
    if !world.standstill.quiet_turns.is_multiple_of(TURNS_PER_CHECK) {
        return;
    }
    let due = find_neglected_site(world);
    let now_ms = world.now_ms;
    let takes_ms = match world.plan.group_bounds {
        Some(_) => GROUPS_TAKE_MS,
        None => 0,
    };
    let seen = &mut world.standstill;
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
        world.faults.push(fault);
    }
}

/// Finds a site that is due although some supervisor with credit could get its tasks. Returns the site's name.
fn find_neglected_site(world: &mut World) -> Option<String> {
    let now_ms = world.coordinator.ahead_ms() + world.now_ms as i64;
    let lanes = world.coordinator.lanes_with_credit(now_ms);
    if lanes.is_empty() {
        return None;
    }
    let has_browsers = lanes.contains(&Lane::Browser);
    let shares_bounds = world.plan.group_bounds.is_some();
    let limited = world.plan.dead_hosts.as_ref();
    let limited = limited.is_some_and(|dead| dead.limits != Default::default());
    let unlimited_app = if limited { Some("app") } else { None };
    let witness = world.coordinator.open_witness();
    witness.find_due_site(now_ms, has_browsers, shares_bounds, unlimited_app)
}
