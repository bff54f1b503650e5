//! The phases of the test of a large fleet. They run one after another, all of them under load.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::load::Load;
use crate::machines::{Client, Machines, wait_for};
use crate::metrics::{Counters, memory_rows};
use crate::witness::{Expected, evaluate};

/// The longest time until all supervisors must be connected again after a restart of the dispatcher.
const WELCOME_WITHIN: Duration = Duration::from_secs(30);

/// The number of times that the dispatcher is restarted.
const RESTARTS: usize = 5;

/// The longest time after the replacement of all supervisors until the sites must be distributed evenly.
const EVEN_WITHIN: Duration = Duration::from_secs(120);

/// The time that a service manager waits before it restarts a process (`RestartSec`).
const STARTED_AGAIN_AFTER: Duration = Duration::from_secs(5);

const BATCHES: usize = 4;

pub(crate) struct Plan {
    pub(crate) machines: u16,
    /// The delay between two requests to each generated site.
    pub(crate) delay: Duration,
    /// How long the costs are measured while nothing else happens.
    pub(crate) measured_for: Duration,
    pub(crate) killed_for: Duration,
    /// In each period of this length, one supervisor in ten is killed.
    pub(crate) killed_every: Duration,
    /// The longest median time that a restarted dispatcher may be silent.
    pub(crate) longest_pause: Duration,
}

struct Run {
    machines: Machines,
    client: Client,
    table: Vec<(&'static str, String)>,
    broken: Vec<String>,
    deaths: Vec<Instant>,
}

/// Runs a fleet as described by a plan. Prints the broken promises, and panics if there are any.
pub(crate) fn run_phases(plan: &Plan) {
    let machines = Machines::new(plan.machines, plan.delay);
    let mut run = Run {
        client: machines.client(),
        machines,
        table: Vec::new(),
        broken: Vec::new(),
        deaths: Vec::new(),
    };
    run.note_figure("machines", plan.machines.to_string());
    run.start();
    let load = Load::spawn(&run.machines);
    run.note_figure("sites", load.sites.to_string());
    run.wait_for_tasks(load.sites as u64);
    run.wait_until_even("even after the start");
    run.measure_load(plan.measured_for);
    run.measure_restarts(plan.longest_pause);
    run.roll_supervisors();
    run.kill_some(plan);
    let sites = load.sites;
    let pages = load.stop_and_wait();
    run.check_results(sites, pages);
    println!("\n| what | figure |\n|---|---|");
    for (what, figure) in &run.table {
        println!("| {what} | {figure} |");
    }
    for broken in &run.broken {
        println!("BROKEN: {broken}");
    }
    assert!(
        run.broken.is_empty(),
        "{} promises broken",
        run.broken.len()
    );
}

impl Run {
    fn note_figure(&mut self, what: &'static str, figure: String) {
        println!("{what:<42} {figure}");
        self.table.push((what, figure));
    }

    fn note_seconds(&mut self, what: &'static str, since: Instant) {
        self.note_figure(what, format!("{:.1} s", since.elapsed().as_secs_f64()));
    }

    /// Waits until the supervisors of all machines are connected and not draining.
    fn wait_for_all(&self, most: Duration) {
        let all = self.machines.names.len();
        wait_for("all are welcome", most, || {
            (self.client.sites_by_supervisor().len() == all).then_some(())
        });
    }

    fn start(&mut self) {
        let began = Instant::now();
        self.machines.units.start("dispatcher");
        self.machines.start_supervisors();
        self.wait_for_all(Duration::from_secs(300));
        self.note_seconds("all welcome after the first start", began);
    }

    fn done_tasks(&self) -> u64 {
        let status = self.client.status();
        status
            .and_then(|status| status["done"].as_u64())
            .unwrap_or(0)
    }

    fn wait_for_tasks(&self, more: u64) {
        let enough = self.done_tasks() + more;
        wait_for("tasks are done", Duration::from_secs(300), || {
            (self.done_tasks() >= enough).then_some(())
        });
    }

    /// Waits until the number of sites of each machine differs from the mean by at most a fifth.
    fn wait_until_even(&mut self, what: &'static str) {
        let began = Instant::now();
        let mut shares = BTreeMap::new();
        while began.elapsed() < EVEN_WITHIN {
            shares = self.client.sites_by_supervisor();
            if is_even(&shares, self.machines.names.len()) {
                let range = format_range(&shares);
                let took = began.elapsed().as_secs_f64();
                return self.note_figure(what, format!("after {took:.1} s: {range} sites each"));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        self.broken.push(format!(
            "{what}: not within {EVEN_WITHIN:?}: {}: {shares:?}",
            format_range(&shares)
        ));
    }

    fn measure_load(&mut self, time: Duration) {
        let before = Counters::read(&self.machines.units, &self.client);
        std::thread::sleep(time);
        let after = Counters::read(&self.machines.units, &self.client);
        let costs = after.rows_since(&before);
        let memory = memory_rows(&self.machines.units);
        costs
            .into_iter()
            .chain(memory)
            .for_each(|(what, figure)| self.note_figure(what, figure));
    }

    /// Restarts the dispatcher several times, because a single measurement on a busy machine means little.
    fn measure_restarts(&mut self, longest_pause: Duration) {
        let [mut silent, mut welcome] = [Vec::new(), Vec::new()];
        for _ in 0..RESTARTS {
            let began = Instant::now();
            self.machines.units.stop("dispatcher");
            self.machines.units.start("dispatcher");
            wait_for("the dispatcher answers", Duration::from_secs(60), || {
                self.client.status()
            });
            silent.push(began.elapsed());
            self.wait_for_all(Duration::from_secs(120));
            welcome.push(began.elapsed());
            // The next restart begins when all machines are working again.
            self.wait_for_tasks(self.machines.names.len() as u64);
        }
        let silent = self.report_times("the dispatcher's restart until it answers", silent);
        if silent[RESTARTS / 2] > longest_pause {
            self.broken
                .push(format!("a dispatcher was away for longer: {silent:?}"));
        }
        let welcome = self.report_times("all welcome after the dispatcher's restart", welcome);
        if welcome[RESTARTS - 1] > WELCOME_WITHIN {
            self.broken
                .push(format!("not all were welcome in time: {welcome:?}"));
        }
    }

    /// Reports the median and the longest of some times. Returns the times in ascending order.
    fn report_times(&mut self, what: &'static str, mut times: Vec<Duration>) -> Vec<Duration> {
        times.sort();
        let [median, longest] = [times[times.len() / 2], times[times.len() - 1]];
        let reported = format!(
            "{:.1} s, {:.1} s at most",
            median.as_secs_f64(),
            longest.as_secs_f64()
        );
        self.note_figure(what, reported);
        times
    }

    fn roll_supervisors(&mut self) {
        let program = self.machines.create_new_program();
        let began = Instant::now();
        let rolled = self.machines.roll_program(&program, BATCHES);
        let said = [&rolled.stdout, &rolled.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        print!("{}", said.concat());
        if !rolled.status.success() {
            self.broken
                .push(format!("the roll has failed: {}", said.concat()));
        }
        self.note_seconds("all replaced, in four batches", began);
        let names = self.machines.names.iter();
        let others = names
            .filter(|name| self.machines.units.program(name).as_deref() != Some(program.as_path()));
        let others: Vec<&String> = others.collect();
        if !others.is_empty() {
            self.broken
                .push(format!("these run another program: {others:?}"));
        }
        self.wait_until_even("even after the roll");
    }

    /// In each period, kills one supervisor in ten at random moments. Each is restarted some seconds later.
    fn kill_some(&mut self, plan: &Plan) {
        let began = Instant::now();
        let names = self.machines.names.clone();
        let each = names.len().div_ceil(10) as u64;
        let mut down: Vec<(Instant, String)> = Vec::new();
        let pause = || plan.killed_every.mul_f64(2.0 * fastrand::f64()) / each as u32;
        let mut next = Instant::now() + pause();
        while began.elapsed() < plan.killed_for || !down.is_empty() {
            let is_due = |(at, _): &(Instant, String)| at.elapsed() >= STARTED_AGAIN_AFTER;
            let due = down.extract_if(.., |one| is_due(one)).collect::<Vec<_>>();
            due.iter()
                .for_each(|(_, name)| self.machines.units.start(name));
            if began.elapsed() < plan.killed_for && Instant::now() >= next {
                next = Instant::now() + pause();
                let name = names[fastrand::usize(..names.len())].clone();
                if !down.iter().any(|(_, other)| *other == name) {
                    self.machines.units.kill(&name);
                    self.deaths.push(Instant::now());
                    down.push((Instant::now(), name));
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let ended = Instant::now();
        self.note_figure("killed", self.deaths.len().to_string());
        self.wait_for_all(Duration::from_secs(120));
        self.note_seconds("all welcome after the last start", ended);
        self.wait_until_even("even after the deaths");
    }

    fn check_results(&mut self, sites: usize, pages: usize) {
        let visits = self.machines.web.visits();
        let store = self.machines.store_uri();
        let expected = Expected {
            sites,
            pages,
            delay: self.machines.delay,
            deaths: std::mem::take(&mut self.deaths),
        };
        let found = evaluate(&visits, &store, &expected);
        self.note_figure("pages fed", found.fed.to_string());
        self.note_figure("pages stored", found.stored.to_string());
        self.note_figure("requests, robots.txt included", found.requests.to_string());
        self.note_figure("pages fetched again", found.fetched_again.to_string());
        let gap = found.shortest_gap.as_secs_f64();
        self.note_figure(
            "shortest time between pages of a site",
            format!("{gap:.2} s"),
        );
        self.broken.extend(found.broken);
    }
}

fn is_even(shares: &BTreeMap<String, u64>, machines: usize) -> bool {
    let mean = shares.values().sum::<u64>() as f64 / machines as f64;
    let off = |share: &u64| (*share as f64 - mean).abs();
    shares.len() == machines && mean > 0.0 && shares.values().all(|share| off(share) <= mean / 5.0)
}

fn format_range(shares: &BTreeMap<String, u64>) -> String {
    let least = shares.values().min().copied().unwrap_or(0);
    let most = shares.values().max().copied().unwrap_or(0);
    format!("{least} to {most}")
}
