//! Benchmarks of whole crawls: the cost of a page (c), how close the pace comes to the limit of politeness (d), the
//! memory at full load (e), the rate of MongoDB requests (f), the reaction time of an idle fleet (g), the effect of
//! dead names on other sites (h), whether dead sites stay in a worker's memory (i), and the costs of durability (j),
//! of logging each step (k), and of open dashboards (l). See tests/bench/README.md.
//!
//!     crawl [small | real | pace | memory | mongodb | demand | dead | durability | journey | dashboard]...
//!     crawl names
//!
//! Without a name, all benchmarks of the first line run: `small` and `real` pages are (c).

mod articles;
mod catalogue;
mod cores;
mod cost;
mod dashboard;
mod dead;
mod demand;
mod durability;
mod failure;
mod journey;
mod memory;
mod mongodb;
mod name_server;
mod names;
mod pace;
mod peer;
mod processes;
mod scrapy;
mod spider_rs;
mod web;
mod webfill;

use std::process::ExitCode;

use webfill_bench::{Size, Verdict, report};

use failure::Failure;

/// The names of the benchmarks.
const NAMES: [&str; 11] = [
    "small",
    "real",
    "pace",
    "memory",
    "mongodb",
    "demand",
    "dead",
    "durability",
    "journey",
    "dashboard",
    "names",
];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    match Size::from_env()
        .map_err(Failure::from)
        .and_then(|size| Ok((run(&wanted, size)?, size)))
    {
        Ok((verdicts, size)) => report(&verdicts, size),
        Err(failure) => {
            eprintln!("crawl: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: &[String], size: Size) -> Result<Vec<Verdict>, Failure> {
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if let Some(unknown) = wanted.iter().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(format!("`{unknown}` is none of {}", NAMES.join(", ")).into());
    }
    let cores = std::thread::available_parallelism()?;
    println!(
        "{cores} cores; Scrapy {}; spider-rs {}; {}",
        scrapy::version()?,
        spider_rs::version(),
        webfill_bench::program::binary()?.display()
    );
    let mut verdicts = Vec::new();
    if wants("small") {
        verdicts.extend(cost::measure_small_pages(size)?);
    }
    if wants("real") {
        verdicts.extend(cost::measure_real_pages(size)?);
    }
    if wants("pace") {
        verdicts.extend(pace::run(size)?);
    }
    if wants("memory") {
        verdicts.extend(memory::run(size)?);
    }
    if wants("mongodb") {
        verdicts.extend(mongodb::run(size)?);
    }
    if wants("demand") {
        verdicts.extend(demand::run(size)?);
    }
    if wants("dead") {
        verdicts.extend(dead::run(size)?);
    }
    if wants("durability") {
        verdicts.extend(durability::run(size)?);
    }
    if wants("journey") {
        verdicts.push(journey::run(size)?);
    }
    if wants("dashboard") {
        verdicts.extend(dashboard::run(size)?);
    }
    // `names` does not run by default, because it needs a separate system.
    if wanted.iter().any(|wanted| wanted == "names") {
        verdicts.extend(names::run(size)?);
    }
    Ok(verdicts)
}
