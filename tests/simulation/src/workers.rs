//! The events of workers, and their messages.

use webfill_wire::{CrawlKey, Lane, Outcome, SupervisorToWorker, WorkerToSupervisor};

use crate::event::{Event, Place};
use crate::names::{CRAWLS, page_of, site_name, site_number, url};
use crate::request::{Process, Request};
use crate::sites::PagePlan;
use crate::worker::{FinishedTask, Pending, RunnerAction, Worker, WorkerEnvironment};
use crate::world::World;
use crate::{backoff, lost_ways, sabotaged, supervisors};

/// How often a real supervisor checks its workers, and after how long it restarts them and considers them hanging, in
/// milliseconds.
const CHECK_MS: u64 = 100;
const BACKOFF_MS: u64 = 300;
const WORKER_SILENT_MS: u64 = 15_000;

// The functions from here on are what a supervisor does with a worker: it starts one, and notices its death.

pub(crate) fn start_worker(
    world: &mut World,
    machine: usize,
    life: u32,
    slot: u16,
    blamed: Option<u64>,
) {
    if world.machines[machine].life != life || world.machines[machine].core.is_none() {
        return;
    }
    world.resume(Place::Worker(machine, slot));
    let (politeness, now_ms) = (world.plan.politeness(), world.now_ms);
    let worker = &mut world.machines[machine].workers[usize::from(slot)];
    worker.start(slot, politeness, now_ms);
    let incarnation = worker.incarnation;
    supervisors::run_supervisor(world, machine, |core, _| {
        core.note_worker_start(slot, incarnation, blamed);
    });
    let ready = Event::WorkerReady {
        machine,
        slot,
        incarnation,
    };
    world.schedule_in(50, ready);
}

/// Ends a worker that has died, possibly because of a page.
pub(crate) fn kill_worker(world: &mut World, machine: usize, slot: u16, blamed: Option<u64>) {
    if !world.machines[machine].workers[usize::from(slot)].is_alive {
        return;
    }
    end_worker(world, machine, slot);
    let life = world.machines[machine].life;
    let noticed = Event::WorkerMissed {
        machine,
        life,
        slot,
        blamed,
    };
    world.schedule_in(CHECK_MS, noticed);
}

pub(crate) fn end_worker(world: &mut World, machine: usize, slot: u16) {
    let worker = &mut world.machines[machine].workers[usize::from(slot)];
    if std::mem::replace(&mut worker.is_alive, false) {
        for site in worker.sites_with_requests() {
            world.web.judge.on_worker_gone(site, world.now_ms);
            world.web.shared_servers.on_worker_gone(site);
        }
    }
}

pub(crate) fn report_worker_death(
    world: &mut World,
    machine: usize,
    life: u32,
    slot: u16,
    blamed: Option<u64>,
) {
    if world.machines[machine].life != life {
        return;
    }
    let mut is_draining = false;
    supervisors::run_supervisor(world, machine, |core, _| {
        core.note_worker_death(slot);
        is_draining = core.is_draining();
        if is_draining {
            core.give_back_tasks_of_dead_worker(slot, blamed);
        }
    });
    if !is_draining {
        let starts = Event::WorkerStarts {
            machine,
            life,
            slot,
            blamed,
        };
        world.schedule_in(BACKOFF_MS, starts);
    }
}

/// Suspends a worker. The supervisor kills it if this lasts too long.
pub(crate) fn stop_worker(world: &mut World, machine: usize, slot: u16, for_ms: u64) {
    world.suspend(Place::Worker(machine, slot), for_ms);
    let incarnation = world.machines[machine].workers[usize::from(slot)].incarnation;
    if for_ms > WORKER_SILENT_MS {
        let hangs = Event::WorkerHangs {
            machine,
            slot,
            incarnation,
        };
        world.schedule_in(WORKER_SILENT_MS, hangs);
    }
}

pub(crate) fn kill_if_still_hanging(
    world: &mut World,
    machine: usize,
    slot: u16,
    incarnation: u32,
) {
    let worker = &world.machines[machine].workers[usize::from(slot)];
    let hangs = world.is_suspended(Place::Worker(machine, slot));
    if worker.incarnation == incarnation && hangs && world.machines[machine].core.is_some() {
        kill_worker(world, machine, slot, None);
    }
}

pub(crate) fn send_to_worker(
    world: &mut World,
    machine: usize,
    slot: u16,
    message: SupervisorToWorker,
) {
    let incarnation = world.machines[machine].workers[usize::from(slot)].incarnation;
    let event = Event::ToWorker {
        machine,
        slot,
        incarnation,
        message,
    };
    world.schedule_in(1, event);
}

// The functions from here on are what happens in a worker process itself.

pub(crate) fn is_alive(world: &World, machine: usize, slot: u16, incarnation: u32) -> bool {
    let worker = &world.machines[machine].workers[usize::from(slot)];
    worker.is_alive && worker.incarnation == incarnation
}

pub(crate) fn schedule_from_worker(world: &mut World, machine: usize, message: WorkerToSupervisor) {
    let life = world.machines[machine].life;
    let event = Event::FromWorker {
        machine,
        life,
        message,
    };
    world.schedule_in(1, event);
}

pub(crate) fn report_worker_ready(world: &mut World, machine: usize, slot: u16, incarnation: u32) {
    if is_alive(world, machine, slot, incarnation) {
        let worker = &world.machines[machine].workers[usize::from(slot)];
        let message = worker.build_message(Vec::new(), Vec::new(), true);
        schedule_from_worker(world, machine, message);
    }
}

pub(crate) fn deliver_to_worker(
    world: &mut World,
    machine: usize,
    slot: u16,
    incarnation: u32,
    message: SupervisorToWorker,
) {
    let Some(message) = sabotaged::sabotage_message(world, machine, message) else {
        return;
    };
    if !is_alive(world, machine, slot, incarnation) {
        return;
    }
    write_clocks(world, machine, slot);
    let now = world.now();
    let worker = &mut world.machines[machine].workers[usize::from(slot)];
    let (sites, says) = worker.handle(message, now);
    if says.returned.len() + says.recalled.len() > 0 {
        schedule_from_worker(world, machine, says);
    }
    for site in sites {
        advance_runner(world, machine, slot, incarnation, site);
    }
    end_if_drained(world, machine, slot);
}

/// A worker, and its present environment.
fn worker_and_environment(
    world: &mut World,
    machine: usize,
    slot: u16,
) -> (&mut Worker, WorkerEnvironment<'_>) {
    let (now, boot_ms) = (world.now(), world.machines[machine].boot_ms(world.now_ms));
    let worker = &mut world.machines[machine].workers[usize::from(slot)];
    let around = WorkerEnvironment {
        cache: &mut world.cache,
        judge: &mut world.web.judge,
        sabotage: world.sabotage,
        process: (machine, slot, worker.incarnation),
        now,
        now_ms: world.now_ms,
        boot_ms,
        longest_request_ms: world.plan.longest_request_ms,
    };
    (worker, around)
}

/// Writes the times of a worker's last requests to the shared cache, when something happens to the worker and some
/// time after each answer. The real worker does it every two seconds.
pub(crate) fn write_clocks(world: &mut World, machine: usize, slot: u16) {
    let owner = world.machines[machine].name().to_owned();
    let (worker, mut around) = worker_and_environment(world, machine, slot);
    if worker.is_alive {
        worker.write_clocks(&owner, &mut around);
    }
}

fn end_if_drained(world: &mut World, machine: usize, slot: u16) {
    let worker = &world.machines[machine].workers[usize::from(slot)];
    if worker.is_alive && worker.has_drained() {
        write_clocks(world, machine, slot);
        let worker = &mut world.machines[machine].workers[usize::from(slot)];
        worker.is_alive = false;
        let message = worker.build_message(Vec::new(), Vec::new(), false);
        schedule_from_worker(world, machine, message);
    }
}

/// Advances the runner of a site.
pub(crate) fn advance_runner(
    world: &mut World,
    machine: usize,
    slot: u16,
    incarnation: u32,
    site: usize,
) {
    while is_alive(world, machine, slot, incarnation) {
        let (worker, mut around) = worker_and_environment(world, machine, slot);
        match worker.advance(site, &mut around) {
            RunnerAction::Nothing => break,
            RunnerAction::WakeAt(instant) => {
                let again = Event::Turn {
                    machine,
                    slot,
                    incarnation,
                    site,
                };
                return world.schedule_at(world.ms_of(instant), again);
            }
            RunnerAction::Ask(request) => {
                return send_request(world, machine, slot, incarnation, site, request);
            }
            over => end_task(world, machine, slot, over),
        }
    }
    end_if_drained(world, machine, slot);
}

/// Handles the end of a runner's task: the task is given back, or its page (or the refusal to fetch it) is stored.
fn end_task(world: &mut World, machine: usize, slot: u16, over: RunnerAction) {
    let worker = &mut world.machines[machine].workers[usize::from(slot)];
    match over {
        RunnerAction::GiveBack(returned) => {
            let message = worker.build_message(Vec::new(), vec![returned], false);
            schedule_from_worker(world, machine, message);
        }
        RunnerAction::Finish(finished) => {
            worker.saving += 1;
            let incarnation = worker.incarnation;
            let saves_ms = world.dice.between(1, 40);
            let saved = Event::Saved {
                machine,
                slot,
                incarnation,
                finished,
            };
            world.schedule_in(saves_ms, saved);
        }
        RunnerAction::Nothing | RunnerAction::WakeAt(_) | RunnerAction::Ask(_) => {}
    }
}

fn send_request(
    world: &mut World,
    machine: usize,
    slot: u16,
    incarnation: u32,
    site: usize,
    request: Request,
) {
    let (takes_ms, lost) = lost_ways::outcome_of_sending(world, machine, slot, site);
    let ends_ms = world.now_ms + takes_ms;
    let name = world.machines[machine].name();
    let who = format!("{name}/{slot}.{incarnation} of machine {machine}");
    world.trace(|_| format!("site {site}: {request:?} by {who} until {ends_ms}"));
    backoff::check_backoff(world, machine, slot, site, request, &who);
    let mut failure = None;
    if let Request::Page { crawl, page, .. } = request {
        check_orders(world, crawl, site, &who);
        check_lane(world, machine, crawl, &who);
        let page = &world.plan.sites[site].pages[page];
        failure = Some((page.fails, page.failure));
    } else {
        check_cache_use(world, site, request, &who);
    }
    let process: Process = (machine, slot, incarnation);
    lost_ways::schedule_name_wait_sometimes(world, process, site, takes_ms);
    let times = (world.now_ms, ends_ms);
    let response = lost.unwrap_or_else(|| {
        world
            .web
            .answer_request(site, request, times, (process, &who), failure)
    });
    let pending = Pending {
        request,
        started: world.now(),
        started_ms: world.now_ms,
        response,
    };
    world.machines[machine].workers[usize::from(slot)].on_request_sent(site, pending);
    let answered = Event::Answered {
        machine,
        slot,
        incarnation,
        site,
    };
    world.schedule_at(ends_ms, answered);
}

/// Checks that the orders in force permit this request for a page.
fn check_orders(world: &mut World, crawl: CrawlKey, site: usize, who: &str) {
    if !world.operator.permits(crawl, site, world.now_ms) {
        let fault = format!("against orders: site {site} for crawl {crawl} by {who}");
        world.faults.push(fault);
    }
}

/// Checks that no page of a crawl in the lane `browser` is given to a supervisor without browsers.
fn check_lane(world: &mut World, machine: usize, crawl: CrawlKey, who: &str) {
    // The client opens the crawls in order, so the key is the index plus one.
    let needed = world.plan.crawl_lanes[crawl as usize - 1];
    if needed == Lane::Browser && world.machines[machine].lane() == Lane::Http {
        let fault = format!("without a browser: a page of crawl {crawl} by {who}");
        world.faults.push(fault);
    }
}

/// Checks that robots.txt is requested only if the cache has no fresh copy. This is checked only in worlds where
/// nothing goes wrong.
fn check_cache_use(world: &mut World, site: usize, request: Request, who: &str) {
    let origin = format!("http://{}", site_name(site));
    let wall_ms = world.now().wall_ms;
    let cached = world.cache.robots(&origin, wall_ms).ok().flatten();
    let is_first = request == Request::Robots { hop: 0 };
    let is_known = cached.is_some_and(|entry| entry.is_fresh(wall_ms));
    if is_first && world.plan.is_peaceful() && is_known {
        let fault = format!("robots.txt of site {site} is in the cache, and requested by {who}");
        world.faults.push(fault);
    }
}

pub(crate) fn deliver_answer(
    world: &mut World,
    machine: usize,
    slot: u16,
    incarnation: u32,
    site: usize,
) {
    if !is_alive(world, machine, slot, incarnation) {
        return;
    }
    let (worker, mut around) = worker_and_environment(world, machine, slot);
    let is_reached = worker.has_reached_site(site);
    if let Some(over) = worker.apply_answer(site, &mut around) {
        if let RunnerAction::Finish(finished) = &over
            && is_reached
            && finished.outcome != Outcome::Blocked
            && page_plan_of(world, finished).kills_its_worker
        {
            let blamed = finished.task.task;
            return kill_worker(world, machine, slot, Some(blamed));
        }
        end_task(world, machine, slot, over);
    }
    let clocks = Event::ClocksKept {
        machine,
        slot,
        incarnation,
    };
    world.schedule_in(2_000, clocks);
    advance_runner(world, machine, slot, incarnation, site);
}

fn page_plan_of<'w>(world: &'w World, finished: &FinishedTask) -> &'w PagePlan {
    let task = &finished.task;
    &world.plan.sites[site_number(&task.site)].pages[page_of(&task.url)]
}

pub(crate) fn save_page(
    world: &mut World,
    machine: usize,
    slot: u16,
    incarnation: u32,
    finished: &FinishedTask,
) {
    if !is_alive(world, machine, slot, incarnation) {
        return;
    }
    let task = &finished.task;
    let is_ok = finished.outcome == Outcome::Ok;
    let page = page_plan_of(world, finished);
    let links = page.links.iter().filter(|_| is_ok);
    let links = links.map(|(site, page)| url(*site, *page)).collect();
    let (crawl, completes) = (CRAWLS[task.crawl as usize - 1], page.completes);
    let resolved = world
        .store
        .save(crawl, &task.url, is_ok, completes, &task.records);
    let done = finished.to_message(links, resolved, world.now());
    let worker = &mut world.machines[machine].workers[usize::from(slot)];
    worker.saving -= 1;
    let message = worker.build_message(vec![done], Vec::new(), false);
    schedule_from_worker(world, machine, message);
    end_if_drained(world, machine, slot);
}

pub(crate) fn write_clocks_if_alive(
    world: &mut World,
    machine: usize,
    slot: u16,
    incarnation: u32,
) {
    if is_alive(world, machine, slot, incarnation) {
        write_clocks(world, machine, slot);
    }
}
