//! Benchmarks of whole crawls: what a page costs (c), how close the pace comes to what politeness
//! allows (d), and how much memory a full house takes (e). See bench/README.md.
//!
//!     crawl [small | real | pace | memory]...
//!
//! Without a name, all of them: `small` and `real` pages are (c).

mod articles;
mod catalogue;
mod cost;
mod memory;
mod pace;
mod processes;
mod scrapy;
mod web;
mod webfill;

use std::process::ExitCode;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What can be asked for.
const NAMES: [&str; 4] = ["small", "real", "pace", "memory"];

/// A figure beside its limit.
pub(crate) struct Verdict {
    pub what: String,
    pub figure: f64,
    pub at_most: Option<f64>,
    pub at_least: Option<f64>,
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
    Ok(verdicts)
}

/// Prints every figure beside its limit; fails if one is missed.
fn tell(verdicts: &[Verdict]) -> ExitCode {
    println!("\n{:<72} {:>9} {:>10}", "figure", "measured", "limit");
    let mut all_met = true;
    for verdict in verdicts {
        let met = verdict.is_met();
        all_met &= met;
        println!(
            "{:<72} {:>9.3} {:>10} {}",
            verdict.what,
            verdict.figure,
            verdict.limit(),
            if met { "met" } else { "MISSED" }
        );
    }
    if all_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Verdict {
    fn is_met(&self) -> bool {
        self.at_most.is_none_or(|most| self.figure <= most)
            && self.at_least.is_none_or(|least| self.figure >= least)
    }

    fn limit(&self) -> String {
        match (self.at_most, self.at_least) {
            (Some(most), _) => format!("<= {most:.3}"),
            (None, Some(least)) => format!(">= {least:.3}"),
            (None, None) => String::new(),
        }
    }
}
