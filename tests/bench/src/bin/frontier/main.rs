//! How many links a second the frontier judges on one core, while the number of seen URLs grows.
//!
//! A page brings a hundred links, twenty of them new, as on real pages. The steps are those of the dispatcher: due
//! sites, leases, outcomes with links, clocks, and one commit for every forty pages. For comparison, the same run also
//! measures the simplest method: a table of hashes with `INSERT OR IGNORE`.
//!
//!     frontier [--seen MILLIONS = 10] [--uniform] [--skip MILLIONS = 0] [--memory MIB] [--state DIR]
//!
//! Seven in ten of the repeated links lead to recent pages, and the others to any page. With `--uniform`, all of them
//! lead to any page. No real site is like this, but then no cache helps. With `--skip`, this many millions of URLs are
//! first fed as seeds, without measurement. `--memory` limits the dedupe memory: a lower limit shows the cost of more
//! URLs. With `--state`, the frontier is kept in DIR, and the next run continues with it.

mod failure;
mod judging;
mod laps;
mod peer;
mod plan;
mod web;

use std::process::ExitCode;

use webfill_bench::{Limit, Size, Verdict, report};

use failure::Failure;
use judging::measure_frontier;
use peer::measure_peer;
use plan::{MILLION, Plan};
use web::{LINKS, NEW_LINKS};

/// The same allocator as in webfill itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WANTED_RATE: f64 = 300_000.0;
const WANTED_RSS_MIB: f64 = 512.0;
const WANTED_BYTES: f64 = 122.0;
const WANTED_SLOWDOWN: f64 = 1.5;

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let plan = Plan::from_args(std::env::args().skip(1), size)?;
    let dir = tempfile::tempdir()?;
    let state = plan.state.as_deref().unwrap_or(dir.path());
    println!(
        "judged links a second on one core, {NEW_LINKS} in {LINKS} new, the others {}",
        if plan.local {
            "mostly from nearby"
        } else {
            "from anywhere"
        }
    );
    let ours = measure_frontier(state, &plan)?;
    let theirs = measure_peer(dir.path(), &plan)?;
    println!(
        "INSERT OR IGNORE of hashes, at {} M seen: {theirs:.0}/s on the core; \
         the frontier in its slowest lap: {:.0}/s, {:.1} times as many",
        plan.seen / MILLION,
        ours.rate,
        ours.rate / theirs
    );
    let verdicts = [
        Verdict {
            what: format!(
                "links judged a second on one core, {} M seen",
                plan.seen / MILLION
            ),
            figure: ours.rate,
            limit: Limit::AtLeast(WANTED_RATE),
        },
        Verdict {
            what: "MiB resident at most".into(),
            figure: ours.peak_mib,
            limit: Limit::AtMost(WANTED_RSS_MIB),
        },
        Verdict {
            what: "bytes on disk a URL at the end".into(),
            figure: ours.bytes_a_url,
            limit: Limit::AtMost(WANTED_BYTES),
        },
        Verdict {
            what: "how many times as long the slowest million takes as the first".into(),
            figure: ours.first_rate / ours.rate,
            limit: Limit::AtMost(WANTED_SLOWDOWN),
        },
    ];
    Ok(report(&verdicts, size))
}
