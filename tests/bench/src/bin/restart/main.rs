//! How long a dispatcher takes from the start of its process until it hands out tasks again. It has the state of a
//! large crawl, and a fleet waits for it.
//!
//!     restart [--urls MILLIONS = 20] [--supervisors N = 500]
//!
//! The dispatcher's own frontier creates the state: ten URLs for each site, of a hundred crawls. Some are done, some
//! sites have delays, back off or have failed, and every supervisor holds leases. Then `webfill dispatcher` is
//! started, from the folder of this program or from WEBFILL, and one socket for each supervisor repeats its hello
//! until it is welcomed. Finally the views of its dashboard are requested, to measure how long a person waits with
//! this much data. Disk: 160 bytes a URL, in the folder for temporary files, removed at the end. `--urls 100` is the
//! long form: 16 GB and a quarter of an hour.

mod dashboard;
mod fleet;
mod state;

use std::process::ExitCode;
use std::time::Instant;

use webfill_bench::program::binary;
use webfill_bench::{Limit, Size, Verdict, report};

type Failure = Box<dyn std::error::Error>;

const WANTED_S: f64 = 10.0;
const WANTED_MIB: f64 = 512.0;
const WANTED_MS_OF_DASHBOARD: f64 = 200.0;

struct Plan {
    urls: u64,
    supervisors: u64,
}

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let plan = Plan::from_args(std::env::args().skip(1), size)?;
    let dir = tempfile::tempdir()?;
    let begun = Instant::now();
    let made = state::make_state(dir.path(), &plan)?;
    println!(
        "made in {:.0} s: {} URLs, {} sites, {} leased, {} done, {:.0} bytes a URL on disk",
        begun.elapsed().as_secs_f64(),
        plan.urls,
        plan.urls / state::URLS_OF_SITE,
        made.leased_tasks(),
        made.done,
        state::disk_bytes(dir.path())? as f64 / plan.urls as f64,
    );
    let served = fleet::restart(&binary()?, dir.path(), &made)?;
    println!(
        "{} of {} supervisors were welcomed {:.1} s after the start, which took {:.1} s on the cores",
        served.begun.welcomed,
        plan.supervisors,
        served.begun.welcomed_within.as_secs_f64(),
        served.cpu.as_secs_f64()
    );
    let waits = dashboard::time_views(fleet::DASHBOARD, &plan, &made)?;
    let mut verdicts = vec![
        Verdict {
            what: format!(
                "seconds from the start to the first tasks, {} M URLs, {} supervisors",
                plan.urls / 1_000_000,
                plan.supervisors
            ),
            figure: served.begun.tasks_after.as_secs_f64(),
            limit: Limit::AtMost(WANTED_S),
        },
        Verdict {
            what: format!("seconds until all {} are welcome", plan.supervisors),
            figure: served.begun.welcomed_within.as_secs_f64(),
            limit: Limit::AtMost(WANTED_S),
        },
        Verdict {
            what: "MiB resident at most".into(),
            figure: served.dispatcher.peak_mib()?,
            limit: Limit::AtMost(WANTED_MIB),
        },
    ];
    verdicts.extend(waits.into_iter().map(|(place, waited)| Verdict {
        what: format!("ms until the dashboard shows {place}"),
        figure: waited.as_secs_f64() * 1_000.0,
        limit: Limit::AtMost(WANTED_MS_OF_DASHBOARD),
    }));
    Ok(report(&verdicts, size))
}

impl Plan {
    fn from_args(mut args: impl Iterator<Item = String>, size: Size) -> Result<Plan, Failure> {
        let mut plan = Plan {
            urls: size.pick(20, 1) * 1_000_000,
            supervisors: 500,
        };
        while let Some(arg) = args.next() {
            let number: u64 = args
                .next()
                .ok_or("a number is missing at the end")?
                .parse()?;
            match arg.as_str() {
                "--urls" => plan.urls = number * 1_000_000,
                "--supervisors" => plan.supervisors = number,
                _ => return Err(format!("unknown argument `{arg}`").into()),
            }
        }
        Ok(plan)
    }
}
