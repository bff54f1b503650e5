//! The backoffs of sites, which the judge reads from the dispatcher's database when they begin. During a backoff, a
//! site gets no requests, even if the dispatcher restarts. Only tasks that were handed out before may still request it.

use crate::names::site_number;
use crate::observations::ObservedBackoff;
use crate::request::Request;
use crate::world::World;

/// Reads the backoffs that the dispatcher has committed. This is called after the outcomes of tasks, which may begin
/// backoffs.
pub(crate) fn read_backoffs(world: &mut World) {
    if !world.plan.backoff {
        return;
    }
    let ahead_ms = world.coordinator.ahead_ms();
    let witness = world.coordinator.open_witness();
    let backoff = witness.backing_off_sites(ahead_ms + world.now_ms as i64);
    if std::mem::take(&mut world.backoff.may_be_over) {
        let in_force = |site: i64| backoff.iter().any(|(backing_off, ..)| *backing_off == site);
        world.backoff.of_sites.retain(|_, rest| in_force(rest.site));
    }
    for (site, name, until_ms) in backoff {
        let until_ms = (until_ms - ahead_ms) as u64;
        match world.backoff.of_sites.get_mut(&site_number(&name)) {
            Some(rest) if rest.until_ms > world.now_ms => {
                rest.until_ms = rest.until_ms.max(until_ms);
            }
            _ => {
                let handed_out_before = witness.leases(site);
                let rest = ObservedBackoff {
                    site,
                    until_ms,
                    handed_out_before,
                };
                world.backoff.of_sites.insert(site_number(&name), rest);
            }
        }
    }
}

/// Prolongs the backoffs when the dispatcher restarts, because the clock of backoffs stands still while the dispatcher
/// is down. A probe (a single task that tests whether the site answers again) that was handed out shortly before the
/// end of a backoff is still sent at its original time.
pub(crate) fn extend_backoffs_after_restart(world: &mut World) {
    let committed_ms = world.backoff.committed_ms;
    let down_ms = world.now_ms - committed_ms;
    for rest in world.backoff.of_sites.values_mut() {
        if rest.until_ms > committed_ms {
            rest.until_ms += down_ms;
            let handed_out = world.coordinator.open_witness().leases(rest.site);
            rest.handed_out_before.extend(handed_out);
        }
    }
}

/// Checks that a request does not break a backoff of its site. Tasks that were handed out before the backoff are
/// permitted. Nothing is checked if clocks are set, or if an operator ends the backoff.
pub(crate) fn check_backoff(
    world: &mut World,
    machine: usize,
    slot: u16,
    site: usize,
    request: Request,
    who: &str,
) {
    let Some(rest) = world.backoff.of_sites.get(&site) else {
        return;
    };
    let lease = world.machines[machine].workers[usize::from(slot)].lease(site);
    let was_before = lease.is_none_or(|lease| rest.handed_out_before.contains(&lease));
    if world.now_ms >= rest.until_ms
        || was_before
        || world.plan.has_clock_fault()
        || world.plan.has_forget_of(site)
    {
        return;
    }
    let (now_ms, until_ms) = (world.now_ms, rest.until_ms);
    let fault = format!(
        "during its backoff until {until_ms}: site {site}, {request:?} by {who} at {now_ms}"
    );
    world.faults.push(fault);
}
