//! Machines that lose their connection to the web and get it back. Meanwhile their requests reach no site, but their
//! messages still reach the dispatcher. The reactions of the dispatcher are judged in [`machines`](crate::machines).

use crate::event::Event;
use crate::faults::EgressFailure;
use crate::names::page_of_crawl;
use crate::request::Response;
use crate::workers;
use crate::world::World;

/// Name look-ups that take longer than this are reported to the supervisor.
const MOMENT_MS: u64 = 500;

/// Cuts a machine off from the web. Requests in progress are lost, too.
pub(crate) fn lose_egress(world: &mut World, machine: usize, loss: EgressFailure, for_ms: u64) {
    let until_ms = world.now_ms + for_ms;
    world.machines[machine].lost_way = Some((loss, until_ms));
    for worker in &mut world.machines[machine].workers {
        let tasks = worker.drop_answers();
        world.lost_ways.tried.extend(tasks);
    }
}

/// The duration of a request that is sent now. Also its result, if the machine has no connection to the web.
pub(crate) fn outcome_of_sending(
    world: &mut World,
    machine: usize,
    slot: u16,
    site: usize,
) -> (u64, Option<Response>) {
    let Some(loss) = world.machines[machine].loss(world.now_ms) else {
        let within_ms = world.plan.sites[site].answers_within_ms;
        return (world.dice.between(1, within_ms), None);
    };
    if let Some(task) = world.machines[machine].workers[usize::from(slot)].task(site) {
        world.lost_ways.tried.insert(page_of_crawl(task));
    }
    let takes_ms = loss.takes_ms(world.plan.longest_request_ms);
    (takes_ms, Some(loss.response()))
}

/// Sometimes reports to the supervisor that a task waits long for a name server.
pub(crate) fn schedule_name_wait_sometimes(
    world: &mut World,
    (machine, slot, incarnation): (usize, u16, u32),
    site: usize,
    takes_ms: u64,
) {
    let is_lost = world.machines[machine].loss(world.now_ms) == Some(EgressFailure::NoNames);
    if is_lost || world.lost_ways.dice.once_in(world.plan.slow_names) {
        let waits = Event::WorkerWaits {
            machine,
            slot,
            incarnation,
            site,
        };
        if takes_ms > MOMENT_MS {
            world.schedule_in(MOMENT_MS, waits);
        }
    }
}

pub(crate) fn report_waiting(
    world: &mut World,
    machine: usize,
    slot: u16,
    incarnation: u32,
    site: usize,
) {
    if !workers::is_alive(world, machine, slot, incarnation) {
        return;
    }
    let worker = &world.machines[machine].workers[usize::from(slot)];
    let Some(task) = worker.task(site) else {
        return;
    };
    let mut message = worker.build_message(Vec::new(), Vec::new(), false);
    message.waiting.push((task.task, task.delivery));
    workers::schedule_from_worker(world, machine, message);
}
