//! (h) The effect of dead names on healthy sites: 1,000 healthy sites are crawled together with 1,000 sites whose name
//! servers never answer. The crawl is that of (d), but its names are resolved by the system. The pace is measured by
//! the log of the healthy sites' server. The dead sites are fed first, so that the crawl begins like one on an offline
//! machine.
//!
//! tests/bench/run.sh starts it in a separate system, where this program is the name server.

use std::time::{Duration, Instant};

use webfill_bench::{Limit, Size, Verdict};

use crate::failure::Failure;
use crate::name_server::{self, DEAD};
use crate::pace::{self, DELAY, Plan, Sites};
use crate::web::Web;
use crate::webfill::{Crawl, bench_file};

/// The number of URLs of each dead site.
const DEAD_PAGES: usize = 5;

pub fn run(size: Size) -> Result<Vec<Verdict>, Failure> {
    let plan = Plan {
        // The look-up of a dead name fails after ten seconds, so the crawl must take longer.
        duration: Duration::from_secs(size.pick(60, 30)),
        ..Plan::from_size(size)
    };
    println!(
        "(h) {} sites, a delay of {} s, beside as many whose name servers never answer",
        plan.sites,
        DELAY.as_secs()
    );
    name_server::serve()?;
    let web = Web::serve(Sites::build(2 * plan.duration.as_secs() as usize), 1)?;
    let flags = format!(
        "--delay 1 --follow all --depth 1000 --max-time {}s",
        plan.duration.as_secs()
    );
    let crawl = Crawl {
        seeds: seed_urls(web.port, plan.sites),
        mapping: bench_file("catalogue/mapping.json"),
        flags: flags.split(' ').map(str::to_owned).collect(),
    };
    let begun = Instant::now();
    let crawled = crawl.run(|_| {})?;
    let seen = pace::evaluate_arrivals(&web, plan, Some(begun + plan.duration))?;
    seen.print("webfill", &crawled.cost);
    println!("  outcomes: {}", crawled.summary["outcomes"]);
    Ok(vec![Verdict {
        what: "(h) pages/s beside dead names, as a share of what the delay allows".into(),
        figure: seen.rate * DELAY.as_secs_f64() / plan.sites as f64,
        limit: Limit::AtLeast(0.95),
    }])
}

/// The seeds, beginning with those of the dead sites.
fn seed_urls(port: u16, sites: usize) -> Vec<String> {
    let dead = (0..DEAD_PAGES).flat_map(|page| {
        (0..sites).map(move |site| format!("http://{DEAD}{site}.example:{port}/item/{page}"))
    });
    let healthy = (0..sites).map(|site| format!("http://{}:{port}/item/0", pace::site_host(site)));
    dead.chain(healthy).collect()
}
