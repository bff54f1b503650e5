//! (i) Whether dead sites stay in a worker's memory. The servers of these sites refuse every connection, and one worker
//! visits the sites one after another. Its memory may grow until it holds the sites of one backoff's duration. In the
//! second half of the crawl it must not grow.

use std::net::TcpListener;

use webfill_bench::{Limit, Size, Verdict};

use crate::failure::Failure;
use crate::webfill::{Crawl, bench_file};

/// The delay of sites in seconds. After a failure, a site backs off for twice as long.
const DELAY: &str = "0.5";

const LIMIT_MIB: f64 = 8.0;

pub fn run(size: Size) -> Result<Vec<Verdict>, Failure> {
    let sites = size.pick(200_000, 60_000);
    println!("(i) {sites} sites that refuse every connection, one worker");
    let settings = bench_file("dead.toml").display().to_string();
    let flags = [
        "--config",
        &settings,
        "--workers",
        "1",
        "--depth",
        "0",
        "--delay",
        DELAY,
    ];
    let crawl = Crawl {
        seeds: seed_urls(unused_port()?, sites),
        mapping: bench_file("catalogue/mapping.json"),
        flags: flags.map(str::to_owned).to_vec(),
    };
    let mut samples = Vec::new();
    let crawled = crawl.run(|roles| {
        if let Some((_, memory)) = roles.get("worker") {
            samples.push(memory.pss_kib as f64 / 1024.0);
        }
    })?;
    let ended = crawled.summary["outcomes"]["robots_unreachable"].as_u64();
    if ended != Some(sites as u64) {
        return Err(format!("{} of {sites} sites were met", crawled.summary["outcomes"]).into());
    }
    // The largest samples of the two halves are compared, because a process that is ending uses less memory.
    let middle = samples.len() / 2;
    let (first, second) = samples.split_at(middle);
    let (first, second) = (largest(first), largest(second));
    println!(
        "  {:.0} s; the worker's peak: {first:.1} MiB PSS in the first half, {second:.1} in the second",
        crawled.cost.elapsed.as_secs_f64()
    );
    Ok(vec![Verdict {
        what: "(i) MiB that the worker's peak grows by over the second half of the dead sites"
            .into(),
        figure: (second - first).max(0.0),
        limit: Limit::AtMost(LIMIT_MIB),
    }])
}

/// A port without a listener: connections to it are refused on all of loopback.
fn unused_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The seeds: one URL for each loopback address, which is a separate site.
fn seed_urls(port: u16, sites: usize) -> Vec<String> {
    let address = |site: usize| {
        let [.., a, b, c] = (site as u32 + 0x10_0000).to_be_bytes();
        format!("127.{a}.{b}.{c}")
    };
    (0..sites)
        .map(|site| format!("http://{}:{port}/", address(site)))
        .collect()
}

fn largest(samples: &[f64]) -> f64 {
    samples.iter().copied().fold(0.0, f64::max)
}
