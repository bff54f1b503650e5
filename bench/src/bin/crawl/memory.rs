//! (e) Memory of a dispatcher, a supervisor and 8 workers with 8 times 64 fetches in flight: a
//! slow web, more sites than fetches, real pages.

use std::time::Duration;

use crate::manual::Manual;
use crate::processes::Memory;
use crate::web::{Answer, Pages, Web};
use crate::webfill::{Crawl, bench_file};
use crate::{Failure, Verdict};

const WORKERS: usize = 8;
const CONCURRENCY: usize = 64;

/// Twice as many sites as fetches: which worker a site falls to is chance, and none may idle.
const SITES: usize = 2 * WORKERS * CONCURRENCY;
const PAGES_PER_SITE: usize = 6;

/// How long the server thinks about each page: all fetches are then in flight most of the time.
const HOLD: Duration = Duration::from_secs(3);

const LIMIT_MIB: f64 = 400.0;

/// The manual, slowly.
struct Slow(Manual);

impl Pages for Slow {
    fn answer(&self, host: &str, path: &str) -> Option<Answer> {
        self.0.answer(host, path)
    }

    fn hold(&self) -> Duration {
        HOLD
    }
}

pub fn run() -> Result<Vec<Verdict>, Failure> {
    let manual = Manual::load(1)?;
    let mean = manual.mean_bytes();
    let paths = manual.paths();
    let web = Web::serve(Slow(manual), 1)?;
    let crawl = crawl(web.port, &paths);
    println!(
        "(e) {WORKERS} workers of {CONCURRENCY} fetches, pages of {} KB after {} s",
        mean / 1000,
        HOLD.as_secs()
    );
    let mut full = Memory::default();
    let mut most_in_flight = 0;
    let crawled = crawl.run(|memory| {
        let in_flight = web.in_flight();
        most_in_flight = most_in_flight.max(in_flight);
        // Some fetches are always between two requests.
        if in_flight * 10 >= WORKERS * CONCURRENCY * 9 && memory.pss_kib > full.pss_kib {
            full = memory;
        }
    })?;
    println!(
        "  {} pages in {:.0} s, at most {most_in_flight} requests in flight at the server",
        crawled.pages(),
        crawled.cost.elapsed.as_secs_f64()
    );
    for (role, (count, memory)) in &crawled.cost.peak_roles {
        println!(
            "    {count} {role:<11} {:.0} MiB PSS, {:.0} MiB RSS",
            mib(memory.pss_kib),
            mib(memory.rss_kib)
        );
    }
    if full == Memory::default() {
        return Err(format!(
            "never were nine tenths of {} fetches in flight",
            WORKERS * CONCURRENCY
        )
        .into());
    }
    println!(
        "  at nine tenths of all fetches in flight or more: {:.0} MiB PSS, {:.0} MiB RSS; at any time: {:.0} and {:.0}",
        mib(full.pss_kib),
        mib(full.rss_kib),
        mib(crawled.cost.peak.pss_kib),
        mib(crawled.cost.peak.rss_kib)
    );
    let verdict = |kind: &str, kib: u64| Verdict {
        what: format!(
            "(e) MiB {kind}, all processes, at {} fetches in flight",
            WORKERS * CONCURRENCY
        ),
        figure: mib(kib),
        at_most: Some(LIMIT_MIB),
        at_least: None,
    };
    Ok(vec![
        verdict("PSS", crawled.cost.peak.pss_kib),
        verdict("RSS", crawled.cost.peak.rss_kib),
    ])
}

fn crawl(port: u16, paths: &[String]) -> Crawl {
    let pages = (0..PAGES_PER_SITE).flat_map(|turn| (0..SITES).map(move |site| (turn, site)));
    let seeds = pages.map(|(turn, site)| {
        let path = &paths[(turn * SITES + site) % paths.len()];
        format!("http://site-{site}.example:{port}{path}")
    });
    let flags = format!(
        "--resolve *:{port}:127.0.0.1:{port} --ignore-robots --delay 0 --depth 0 --workers {WORKERS} --concurrency {CONCURRENCY}"
    );
    Crawl {
        seeds: seeds.collect(),
        mapping: bench_file("manual/mapping.json"),
        flags: flags.split(' ').map(str::to_owned).collect(),
    }
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
