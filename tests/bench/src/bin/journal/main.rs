//! What a dispatcher's journal costs, and how soon a new standby can continue.
//!
//! A dispatcher without and one with `dispatcher.journal` do the same work in turns: eight clients feed URLs in lists
//! of 1,000, each sending its next list when the last one was answered; then four supervisors that answer at once close
//! tasks, whose pages have no links. The store is a MongoDB server with one member. It shares the cores with everything
//! else, so its work for the journal counts, too. The best round of each is compared. On a busy machine only the CPU
//! time of the dispatcher means something: the small size judges by that alone.
//!
//! Then the last dispatcher is fed until it has more URLs, and a standby with an empty folder is started beside it. It
//! is ready when it has applied the record that was the last one at its start.
//!
//!     journal [--urls THOUSANDS = 2000] [--rounds N = 3]

mod clients;
mod dispatcher;
mod supervisors;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use webfill_bench::{Limit, Size, Verdict, report};
use webfill_test_mongod::Mongod;

use clients::Clients;
use dispatcher::Dispatcher;

type Failure = Box<dyn std::error::Error>;

/// The rate with a journal as a fraction of the rate without.
const WANTED_SHARE: f64 = 0.8;
/// The longest time in seconds until a new standby is ready, if the dispatcher has two million URLs.
const WANTED_S: f64 = 60.0;

struct Plan {
    /// The number of URLs that the dispatcher has when the standby is started.
    urls: u64,
    rounds: u64,
    /// The number of URLs that are fed in a round, and the number of tasks that are closed.
    fed: u64,
    closed: u64,
}

/// The numbers of URLs fed and of tasks closed: in a second, and in a second of the dispatcher's CPU time.
#[derive(Debug, Default, Clone, Copy)]
struct Rates {
    fed: f64,
    closed: f64,
    fed_by_cpu: f64,
    closed_by_cpu: f64,
}

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let plan = Plan::from_args(std::env::args().skip(1), size)?;
    let mongod = Mongod::start();
    let (mut with, mut without) = (Rates::default(), Rates::default());
    let mut last = None;
    for round in 0..plan.rounds {
        drop(last.take());
        let plain = mongod.uri(&format!("plain-{round}"));
        let plain = Dispatcher::start(&plain, false)?;
        without.keep_best(measure(&plain, &plan, "without a journal")?);
        drop(plain);
        let journalled = Dispatcher::start(&mongod.uri(&format!("journal-{round}")), true)?;
        with.keep_best(measure(&journalled, &plan, "with a journal")?);
        last = Some(journalled);
    }
    let serving = last.ok_or("no round was asked for")?;
    let ready = measure_standby(&serving, &plan)?;
    let verdict = |what: &str, figure: f64, limit: Limit| Verdict {
        what: what.into(),
        figure,
        limit,
    };
    let by_cpu = Limit::AtLeast(WANTED_SHARE);
    let by_clock = size.pick(by_cpu, Limit::None);
    let of_cpu = "the same for each second of the dispatcher's CPU time";
    let verdicts = [
        verdict(
            "URLs accepted a second without a journal",
            without.fed,
            Limit::None,
        ),
        verdict(
            "with one, as a part of that",
            with.fed / without.fed,
            by_clock,
        ),
        verdict(of_cpu, with.fed_by_cpu / without.fed_by_cpu, by_cpu),
        verdict(
            "tasks closed a second without a journal",
            without.closed,
            Limit::None,
        ),
        verdict(
            "with one, as a part of that",
            with.closed / without.closed,
            by_clock,
        ),
        verdict(of_cpu, with.closed_by_cpu / without.closed_by_cpu, by_cpu),
        verdict(
            &format!(
                "seconds until a new standby is ready, {} thousand URLs",
                plan.urls / 1_000
            ),
            ready.as_secs_f64(),
            // The small size has fewer URLs, but the rest of the start takes as long. So the limit is only four times
            // smaller.
            Limit::AtMost(size.pick(WANTED_S, WANTED_S / 4.0)),
        ),
    ];
    Ok(report(&verdicts, size))
}

/// Measures a dispatcher without URLs: feeds URLs to it, and closes some of the tasks.
fn measure(dispatcher: &Dispatcher, plan: &Plan, what: &str) -> Result<Rates, Failure> {
    let (begun, cpu) = (Instant::now(), dispatcher.cpu_time()?);
    Clients::connect()?.feed(0, plan.fed)?;
    let (fed_in, fed_cpu) = (begun.elapsed(), dispatcher.cpu_time()? - cpu);
    let (begun, cpu) = (Instant::now(), dispatcher.cpu_time()?);
    supervisors::close_tasks(plan.closed)?;
    let (closed_in, closed_cpu) = (begun.elapsed(), dispatcher.cpu_time()? - cpu);
    let rate = |count: u64, time: Duration| count as f64 / time.as_secs_f64();
    let rates = Rates {
        fed: rate(plan.fed, fed_in),
        closed: rate(plan.closed, closed_in),
        fed_by_cpu: rate(plan.fed, fed_cpu),
        closed_by_cpu: rate(plan.closed, closed_cpu),
    };
    let micros = |cpu: Duration, count: u64| cpu.as_secs_f64() * 1e6 / count as f64;
    println!(
        "{what}: {:.0} URLs/s accepted, {:.0} us of CPU in the dispatcher for each; {:.0} tasks/s closed, {:.0} us",
        rates.fed,
        micros(fed_cpu, plan.fed),
        rates.closed,
        micros(closed_cpu, plan.closed),
    );
    Ok(rates)
}

/// Measures the time until a new standby is ready.
fn measure_standby(serving: &Dispatcher, plan: &Plan) -> Result<Duration, Failure> {
    Clients::connect()?.feed(plan.fed, plan.urls)?;
    let record = serving.last_record()?;
    let begun = Instant::now();
    let standby = serving.start_standby()?;
    standby.wait_for_record(record)?;
    let ready = begun.elapsed();
    println!(
        "a new standby has applied record {record} after {:.1} s, {:.1} s of CPU, {:.0} MiB at most",
        ready.as_secs_f64(),
        standby.cpu_time()?.as_secs_f64(),
        standby.peak_mib()?
    );
    Ok(ready)
}

impl Rates {
    fn keep_best(&mut self, other: Rates) {
        self.fed = self.fed.max(other.fed);
        self.closed = self.closed.max(other.closed);
        self.fed_by_cpu = self.fed_by_cpu.max(other.fed_by_cpu);
        self.closed_by_cpu = self.closed_by_cpu.max(other.closed_by_cpu);
    }
}

impl Plan {
    fn from_args(mut args: impl Iterator<Item = String>, size: Size) -> Result<Plan, Failure> {
        let (mut urls, mut rounds) = (size.pick(2_000_000, 100_000), size.pick(3, 1));
        while let Some(arg) = args.next() {
            let number = args.next().ok_or("a number is missing at the end")?;
            match arg.as_str() {
                "--urls" => urls = number.parse::<u64>()? * 1_000,
                "--rounds" => rounds = number.parse()?,
                _ => return Err(format!("unknown argument `{arg}`").into()),
            }
        }
        Ok(Plan {
            urls,
            rounds,
            fed: size.pick(200_000, 40_000).min(urls),
            closed: size.pick(100_000, 20_000).min(urls),
        })
    }
}
