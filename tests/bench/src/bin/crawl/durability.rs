//! (j) The cost of durability. Everything is on disk before it is confirmed. The rates of pages and of accepted URLs
//! are compared with those of the same program if syncing to the disk does nothing.
//!
//! The two variants are measured alternately, in several rounds on the disk of the folder for temporary files, and the
//! best round of each counts. On a disk in memory, the rates are equal.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use webfill_bench::{Limit, Size, Verdict};

use crate::cost;
use crate::demand::Fleet;
use crate::failure::Failure;
use crate::webfill::{Crawl, bench_file};

const ROUNDS: [usize; 2] = [3, 1];

/// The number of lists in the full and in the small size, and the number of requests in each list. A single client
/// sends the lists one after another.
const LISTS: [usize; 2] = [100, 20];
const LIST: usize = 1_000;
const SITES: usize = 500;

pub fn run(size: Size) -> Result<Vec<Verdict>, Failure> {
    println!("(j) with syncs, and with syncs that do nothing");
    let folder = tempfile::tempdir()?;
    let no_sync = build_no_sync(folder.path())?;
    let (web, crawl) = cost::small_crawl(size)?;
    let pages = measure_sync_share("pages/s", size, &no_sync, |preload| {
        web.take_arrivals();
        measure_pages_per_second(&crawl, preload)
    })?;
    let [full, small] = LISTS;
    let lists = size.pick(full, small);
    let urls = measure_sync_share("accepted URLs/s", size, &no_sync, |preload| {
        measure_accepted_per_second(lists, preload)
    })?;
    Ok(vec![
        verdict_at_least("pages/s", pages, 0.7),
        verdict_at_least("accepted URLs/s", urls, 0.6),
    ])
}

fn verdict_at_least(what: &str, figure: f64, least: f64) -> Verdict {
    Verdict {
        what: format!("(j) {what}, as a share of those without syncs"),
        figure,
        limit: Limit::AtLeast(least),
    }
}

fn build_no_sync(folder: &Path) -> Result<PathBuf, Failure> {
    let library = folder.join("no_sync.so");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(&library);
    match compiler.arg(bench_file("no_sync.c")).status()?.success() {
        true => Ok(library),
        false => Err("cc cannot build tests/bench/crawl/no_sync.c".into()),
    }
}

/// The rate with syncing, as a share of the rate without. The best round of each counts.
fn measure_sync_share(
    what: &str,
    size: Size,
    no_sync: &Path,
    rate: impl Fn(Option<&Path>) -> Result<f64, Failure>,
) -> Result<f64, Failure> {
    let [full, small] = ROUNDS;
    let (mut with, mut without) = (0.0_f64, 0.0_f64);
    for _ in 0..size.pick(full, small) {
        without = without.max(rate(Some(no_sync))?);
        with = with.max(rate(None)?);
    }
    println!("  {with:.0} {what}, {without:.0} without syncs");
    Ok(with / without)
}

fn measure_pages_per_second(crawl: &Crawl, preload: Option<&Path>) -> Result<f64, Failure> {
    let crawled = crawl.run_with(|command| preload_library(command, preload), |_| {})?;
    Ok(crawled.pages() as f64 / crawled.cost.elapsed.as_secs_f64())
}

fn preload_library(command: &mut Command, library: Option<&Path>) {
    if let Some(library) = library {
        command.env("LD_PRELOAD", library);
    }
}

fn measure_accepted_per_second(lists: usize, preload: Option<&Path>) -> Result<f64, Failure> {
    let fleet = Fleet::start_dispatcher_only(|command| preload_library(command, preload))?;
    let started = Instant::now();
    for number in 0..lists {
        let answer = fleet.ask(&request_list(number))?;
        if answer["accepted"] != LIST {
            return Err(format!("a list was not accepted: {answer}").into());
        }
    }
    Ok((lists * LIST) as f64 / started.elapsed().as_secs_f64())
}

fn request_list(number: usize) -> Value {
    let request = |n: usize| {
        let url = format!("http://site-{}.example/{number}/{n}", n % SITES);
        json!({"url": url, "appid": "bench", "crawlid": "durability"})
    };
    (0..LIST).map(request).collect()
}
