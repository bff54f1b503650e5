//! The network between supervisors and the dispatcher. It loses, delays, repeats and reorders messages.

use crate::world::World;

/// The arrival times of a message sent now. There are none if it is lost, and two if it is repeated.
pub(crate) fn draw_arrivals(
    world: &mut World,
    machine: usize,
    way: usize,
    cut_until_ms: u64,
) -> Vec<u64> {
    let network = world.plan.network.clone();
    if cut_until_ms > world.now_ms || world.dice.once_in(network.loss_once_in) {
        return Vec::new();
    }
    let times = 1 + usize::from(world.dice.once_in(network.twice_once_in));
    let mut arrivals = Vec::with_capacity(times);
    for _ in 0..times {
        let latest_ms = match world.dice.once_in(network.late_once_in) {
            true => network.latest_ms.max(5),
            false => 5,
        };
        let mut at_ms = world.now_ms + world.dice.between(1, latest_ms);
        let last_ms = &mut world.machines[machine].last_arrival_ms[way];
        if !network.reorders {
            at_ms = at_ms.max(*last_ms);
            *last_ms = at_ms;
        }
        arrivals.push(at_ms);
    }
    arrivals
}
