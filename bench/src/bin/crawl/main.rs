//! Benchmarks of whole crawls: what a page costs (c), how close the pace comes to what politeness
//! allows (d), how much memory a full house takes (e), how often MongoDB is asked (f), and how
//! quickly a fleet at rest answers a request (g). See bench/README.md.
//!
//!     crawl [small | real | pace | memory | mongodb | demand]...
//!
//! Without a name, all of them: `small` and `real` pages are (c).

mod articles;
mod catalogue;
mod cost;
mod demand;
mod memory;
mod mongodb;
mod pace;
mod processes;
mod scrapy;
mod web;
mod webfill;

use std::process::ExitCode;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What can be asked for.
const NAMES: [&str; 6] = ["small", "real", "pace", "memory", "mongodb", "demand"];

/// What a figure may be.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    AtMost(f64),
    AtLeast(f64),
    /// Told for comparison only.
    None,
}

/// A figure beside its limit.
pub(crate) struct Verdict {
    pub what: String,
    pub figure: f64,
    pub limit: Limit,
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    match run(&wanted) {
        Ok(verdicts) => tell(&verdicts),
        Err(failure) => {
            eprintln!("crawl: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: &[String]) -> Result<Vec<Verdict>, Failure> {
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if let Some(unknown) = wanted.iter().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(format!("`{unknown}` is none of {}", NAMES.join(", ")).into());
    }
    let cores = std::thread::available_parallelism()?;
    println!(
        "{cores} cores; Scrapy {}; {}",
        scrapy::version()?,
        webfill::binary()?.display()
    );
    let mut verdicts = Vec::new();
    if wants("small") {
        verdicts.push(cost::small()?);
    }
    if wants("real") {
        verdicts.push(cost::real()?);
    }
    if wants("pace") {
        verdicts.extend(pace::run()?);
    }
    if wants("memory") {
        verdicts.extend(memory::run()?);
    }
    if wants("mongodb") {
        verdicts.extend(mongodb::run()?);
    }
    if wants("demand") {
        verdicts.extend(demand::run()?);
    }
    Ok(verdicts)
}

/// Prints every figure beside its limit; fails if one is missed.
fn tell(verdicts: &[Verdict]) -> ExitCode {
    println!("\n{:<72} {:>9} {:>10}", "figure", "measured", "limit");
    for verdict in verdicts {
        let (limit, judged) = match (verdict.limit, verdict.is_met()) {
            (Limit::None, _) => (String::new(), ""),
            (limit, true) => (limit.to_string(), "met"),
            (limit, false) => (limit.to_string(), "MISSED"),
        };
        println!(
            "{:<72} {:>9.3} {limit:>10} {judged}",
            verdict.what, verdict.figure
        );
    }
    if verdicts.iter().all(Verdict::is_met) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Verdict {
    fn is_met(&self) -> bool {
        match self.limit {
            Limit::AtMost(most) => self.figure <= most,
            Limit::AtLeast(least) => self.figure >= least,
            Limit::None => true,
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Limit::AtMost(most) => write!(out, "<= {most:.3}"),
            Limit::AtLeast(least) => write!(out, ">= {least:.3}"),
            Limit::None => Ok(()),
        }
    }
}
