//! (e) The memory of a dispatcher, a supervisor and 8 workers, each with 64 fetches in flight. The web is slow, and has
//! real pages and more sites than fetches.

use std::time::Duration;

use webfill_bench::{Limit, Size, Verdict};

use crate::articles::Articles;
use crate::failure::Failure;
use crate::web::{Answer, Pages, Web};
use crate::webfill::{Crawl, bench_file};

const WORKERS: usize = 8;
const CONCURRENCY: usize = 64;
const FETCHES: usize = WORKERS * CONCURRENCY;

/// The number of sites. It is twice the number of fetches, because sites are assigned to workers at random and each
/// worker must have enough of them.
const SITES: usize = 2 * FETCHES;

/// How long the server holds each page, so that all fetches are in flight most of the time.
const HOLD: Duration = Duration::from_secs(3);

const LIMIT_MIB: f64 = 340.0;

/// The real pages, each with a delay before the answer.
struct Slow(Articles);

impl Pages for Slow {
    fn answer(&self, host: &str, path: &str) -> Option<Answer> {
        self.0.answer(host, path)
    }

    fn hold_time(&self) -> Duration {
        HOLD
    }
}

pub fn run(size: Size) -> Result<Vec<Verdict>, Failure> {
    let articles = Articles::load()?;
    println!(
        "(e) {WORKERS} workers of {CONCURRENCY} fetches; {}, each after {} s",
        articles.describe(),
        HOLD.as_secs()
    );
    let pages_per_site = size.pick(6, 2);
    let paths: Vec<String> = articles.paths(SITES * pages_per_site).collect();
    let web = Web::serve(Slow(articles), 1)?;
    let mut most_in_flight = 0;
    let crawled = build_crawl(web.port, &paths)
        .run(|_| most_in_flight = most_in_flight.max(web.in_flight()))?;
    println!(
        "  {} pages in {:.0} s, at most {most_in_flight} requests in flight at the server; at the peak:",
        crawled.pages(),
        crawled.cost.elapsed.as_secs_f64()
    );
    for (role, (count, memory)) in &crawled.cost.peak_roles {
        let (pss, rss) = (kib_to_mib(memory.pss_kib), kib_to_mib(memory.rss_kib));
        println!("    {count} {role:<11} {pss:.0} MiB PSS, {rss:.0} MiB RSS");
    }
    if most_in_flight * 10 < FETCHES * 9 {
        return Err(format!("only {most_in_flight} of {FETCHES} fetches were in flight").into());
    }
    let verdict = |kind: &str, kib: u64, limit: Limit| Verdict {
        what: format!("(e) MiB {kind}, all processes, at {FETCHES} fetches in flight"),
        figure: kib_to_mib(kib),
        limit,
    };
    let peak = crawled.cost.peak;
    Ok(vec![
        verdict("PSS", peak.pss_kib, Limit::AtMost(LIMIT_MIB)),
        verdict("RSS", peak.rss_kib, Limit::None),
    ])
}

/// Prepares a crawl. Its seeds are first one page of each site, then a second page of each, and so on.
fn build_crawl(port: u16, paths: &[String]) -> Crawl {
    let spread = paths.iter().zip((0..SITES).cycle());
    let flags = format!(
        "--resolve *:{port}:127.0.0.1:{port} --ignore-robots --delay 0 --depth 0 --workers {WORKERS} --concurrency {CONCURRENCY}"
    );
    Crawl {
        seeds: spread
            .map(|(path, site)| format!("http://site-{site}.example:{port}{path}"))
            .collect(),
        mapping: bench_file("articles/mapping.json"),
        flags: flags.split(' ').map(str::to_owned).collect(),
    }
}

fn kib_to_mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
