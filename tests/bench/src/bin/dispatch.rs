//! How many tasks a second one dispatcher hands out and closes on one core.
//!
//! It is measured with four supervisors, then with five hundred, then with four supervisors and tasks of ten thousand
//! crawls; see [`webfill_bench::dispatcher_turns`]. The pages have no links, because the benchmark `frontier` measures
//! links. Sockets, the encoding of messages and the firehose are not counted.
//!
//!     dispatch [--tasks THOUSANDS = 500]

use std::process::ExitCode;
use std::time::Duration;

use webfill_bench::dispatcher_turns::{SITES, WORKERS, close_tasks, open_core};
use webfill_bench::{Limit, Size, Verdict, report};

const FEW_SUPERVISORS: usize = 4;
const MANY_SUPERVISORS: usize = 500;
const MANY_CRAWLS: u64 = 10_000;
const WANTED_RATE: f64 = 15_000.0;
/// The least rate with many supervisors, as a fraction of the rate with few.
const WANTED_OF_MANY_SUPERVISORS: f64 = 0.5;
/// The least rate with many crawls, as a fraction of the rate with one. With many crawls, each task changes the
/// counters of another crawl. With one crawl, all tasks change the same row.
const WANTED_OF_MANY_CRAWLS: f64 = 0.4;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let tasks = parse_tasks(std::env::args().skip(1), size)?;
    let few = measure_rate(tasks, 1, FEW_SUPERVISORS)?;
    let many = measure_rate(tasks, 1, MANY_SUPERVISORS)?;
    let many_crawls = measure_rate(tasks, MANY_CRAWLS, FEW_SUPERVISORS)?;
    let verdicts = [
        Verdict {
            what: "tasks handed out and closed a second on one core".into(),
            figure: few,
            limit: Limit::AtLeast(WANTED_RATE),
        },
        Verdict {
            what: format!(
                "with {MANY_SUPERVISORS} supervisors of {WORKERS} workers, as a part of that"
            ),
            figure: many / few,
            limit: Limit::AtLeast(WANTED_OF_MANY_SUPERVISORS),
        },
        Verdict {
            what: format!("with {MANY_CRAWLS} crawls at work, as a part of that"),
            figure: many_crawls / few,
            limit: Limit::AtLeast(WANTED_OF_MANY_CRAWLS),
        },
    ];
    Ok(report(&verdicts, size))
}

/// Measures how many tasks a second the dispatcher closes on one core.
fn measure_rate(tasks: u64, crawls: u64, supervisors: usize) -> Result<f64, Failure> {
    let dir = tempfile::tempdir()?;
    let mut core = open_core(dir.path(), tasks, crawls, false)?;
    let measured = close_tasks(&mut core, tasks, supervisors)?;
    let of = |time: Duration| tasks as f64 / time.as_secs_f64();
    println!(
        "{tasks} tasks of {crawls} crawls at {SITES} sites, {supervisors} supervisors, {} turns: {:.0}/s on the core, {:.0}/s by the clock",
        measured.turns,
        of(measured.core),
        of(measured.clock),
    );
    Ok(of(measured.core))
}

fn parse_tasks(mut args: impl Iterator<Item = String>, size: Size) -> Result<u64, Failure> {
    match (args.next().as_deref(), args.next()) {
        (None, _) => Ok(size.pick(500, 50) * 1_000),
        (Some("--tasks"), Some(thousands)) => Ok(thousands.parse::<u64>()? * 1_000),
        (Some(other), _) => Err(format!("unknown or unfinished argument `{other}`").into()),
    }
}
