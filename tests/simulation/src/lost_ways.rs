//! Machines that lose their way out to the web, and get it back. Meanwhile their requests reach no site, but the
//! machines still reach the dispatcher. [`machines`](crate::machines) judges how the dispatcher reacts.

use std::collections::BTreeSet;

use webfill_wire::{CrawlKey, Outcome, Task};

use crate::dice::Dice;
use crate::faults::Fault;
use crate::plan::Plan;
use crate::web::Response;
use crate::worker::site_and_page_of;
use crate::world::{Event, World};

/// How requests fail on such a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EgressFailure {
    /// The operating system knows no route.
    NoRoute,
    /// The name servers do not answer.
    NoNames,
    /// Nothing is answered.
    Silence,
}

/// How long name look-ups wait for an answer.
const NAMES_ARE_AWAITED_MS: u64 = 5_000;

/// Look-ups that take longer than this are reported to the supervisor.
const MOMENT_MS: u64 = 500;

impl EgressFailure {
    /// The result of a request, as a worker sees it.
    pub(crate) fn response(self) -> Response {
        let (outcome, error, no_route) = match self {
            EgressFailure::NoRoute => (Outcome::NetworkError, "Network is unreachable", true),
            EgressFailure::NoNames => (Outcome::DnsError, "no answer within 5 s", true),
            EgressFailure::Silence => (Outcome::Timeout, "no answer in time", false),
        };
        Response {
            error: Some(error.to_owned()),
            no_route,
            is_lost: true,
            ..Response::without_answer(outcome)
        }
    }

    /// How long a request takes to fail.
    fn takes_ms(self, longest_request_ms: u64) -> u64 {
        match self {
            EgressFailure::NoRoute => 1,
            EgressFailure::NoNames => NAMES_ARE_AWAITED_MS.min(longest_request_ms),
            EgressFailure::Silence => longest_request_ms,
        }
    }
}

/// A page of a crawl, with its site.
pub(crate) type PageOfCrawl = (CrawlKey, usize, usize);

pub(crate) fn page_of_crawl(task: &Task) -> PageOfCrawl {
    let (site, page) = site_and_page_of(&task.url);
    (task.crawl, site, page)
}

/// The effects of lost ways out.
#[derive(Debug)]
pub(crate) struct EgressLoss {
    dice: Dice,
    /// The pages of tasks that were tried without a way out.
    tried: BTreeSet<PageOfCrawl>,
}

impl EgressLoss {
    pub(crate) fn new(seed: u64) -> EgressLoss {
        EgressLoss {
            dice: Dice::new(seed ^ 0x7057),
            tried: BTreeSet::new(),
        }
    }

    /// Whether a task of this page was tried without a way out.
    pub(crate) fn was_tried_offline(&self, page: PageOfCrawl) -> bool {
        self.tried.contains(&page)
    }
}

/// Whether a task that was tried without a way out may have this outcome.
pub(crate) fn is_failure(outcome: &str) -> bool {
    [
        "network_error",
        "dns_error",
        "timeout",
        "robots_unreachable",
    ]
    .contains(&outcome)
}

/// The longest loss of a way out. A site that backs off for all of this time does not become unreachable.
const LONGEST_LOSS_MS: u64 = 150_000;

impl Plan {
    /// In some worlds, lets one or all machines lose their way out while they have many healthy sites.
    pub(crate) fn add_egress_losses(&mut self, dice: &mut Dice) {
        if !dice.once_in(8) {
            return;
        }
        // More sites are added, because a machine with few sites cannot be judged.
        self.add_healthy_sites(dice, 7 * self.supervisors);
        self.window_sites = self.window_sites.max(30);
        self.queue = self.queue.max(20);
        let affected = match dice.once_in(3) {
            true => 0..self.supervisors,
            false => {
                let one = dice.between(0, self.supervisors as u64 - 1) as usize;
                one..one + 1
            }
        };
        let mut at_ms = dice.between(500, 8_000);
        for _ in 0..dice.between(1, 2) {
            let loss = dice.one_of(&[
                EgressFailure::NoRoute,
                EgressFailure::NoNames,
                EgressFailure::Silence,
            ]);
            let for_ms = dice.log_uniform(8_000, LONGEST_LOSS_MS);
            for supervisor in affected.clone() {
                let fault = Fault::LosesWay {
                    supervisor,
                    loss,
                    for_ms,
                };
                self.faults.push((at_ms, fault));
            }
            at_ms += for_ms + dice.between(1_000, 60_000);
        }
    }

    pub(crate) fn loses_egress_twice(&self) -> bool {
        let loses = |(_, fault): &&(u64, Fault)| matches!(fault, Fault::LosesWay { .. });
        let at_ms: BTreeSet<u64> = self
            .faults
            .iter()
            .filter(loses)
            .map(|(at_ms, _)| *at_ms)
            .collect();
        at_ms.len() > 1
    }

    /// Whether any machine loses its way out at any time.
    pub(crate) fn loses_egress(&self) -> bool {
        let loses = |(_, fault): &(u64, Fault)| matches!(fault, Fault::LosesWay { .. });
        self.faults.iter().any(loses)
    }
}

impl World {
    /// Takes the way out from a machine. Requests in progress are lost, too.
    pub(crate) fn lose_egress(&mut self, machine: usize, loss: EgressFailure, for_ms: u64) {
        let until_ms = self.now_ms + for_ms;
        self.machines[machine].lost_way = Some((loss, until_ms));
        for worker in &mut self.machines[machine].workers {
            let tasks = worker.drop_answers();
            self.lost_ways.tried.extend(tasks);
        }
    }

    /// The duration of a request that is sent now, and its result if it does not leave the machine.
    pub(crate) fn outcome_of_sending(
        &mut self,
        machine: usize,
        slot: u16,
        site: usize,
    ) -> (u64, Option<Response>) {
        let Some(loss) = self.machines[machine].loss(self.now_ms) else {
            let within_ms = self.plan.sites[site].answers_within_ms;
            return (self.dice.between(1, within_ms), None);
        };
        if let Some(task) = self.machines[machine].workers[usize::from(slot)].task(site) {
            self.lost_ways.tried.insert(page_of_crawl(task));
        }
        let takes_ms = loss.takes_ms(self.plan.longest_request_ms);
        (takes_ms, Some(loss.response()))
    }

    /// Reports to the supervisor, in some cases, that a task waits long for a name server.
    pub(crate) fn schedule_name_wait_sometimes(
        &mut self,
        (machine, slot, incarnation): (usize, u16, u32),
        site: usize,
        takes_ms: u64,
    ) {
        let is_lost = self.machines[machine].loss(self.now_ms) == Some(EgressFailure::NoNames);
        if is_lost || self.lost_ways.dice.once_in(self.plan.slow_names) {
            let waits = Event::WorkerWaits {
                machine,
                slot,
                incarnation,
                site,
            };
            if takes_ms > MOMENT_MS {
                self.schedule_in(MOMENT_MS, waits);
            }
        }
    }

    pub(crate) fn report_waiting(
        &mut self,
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
    ) {
        if !self.is_alive(machine, slot, incarnation) {
            return;
        }
        let worker = &self.machines[machine].workers[usize::from(slot)];
        let Some(task) = worker.task(site) else {
            return;
        };
        let mut message = worker.message(Vec::new(), Vec::new(), false);
        message.waiting.push((task.task, task.delivery));
        self.schedule_from_worker(machine, message);
    }
}
