//! How soon changes of pages are noticed if a run has no time to check all pages: webfill's order
//! ([`webfill_scheduler::revisit`]) compared with oldest first, and with the intervals of Nutch and StormCrawler.
//!
//! The pages are simulated: 1,500 at one site. Of these, 5 % change daily, 25 % fortnightly and 70 % yearly, as Poisson
//! processes; one run a night. The kind of a page (listing, other, document) determines its rate, except for a tenth of
//! the pages. The orders learn for 60 nights; then the changes of 60 nights are judged. The figures are the share of
//! changes noticed in the next night, and the mean and the 90th percentile of the delay in days.
//!
//!     revisit [--seeds N = 5]

mod orders;
mod pages;

use std::process::ExitCode;

use webfill_bench::{Limit, Size, Verdict, report};

use orders::{ORDERS, Order};
use pages::{ChangeDelays, PAGES, World};

type Failure = Box<dyn std::error::Error>;

/// The budgets: the number of pages that can be checked in a night. Each is measured separately.
const BUDGETS: [usize; 3] = [300, 146, 40];

/// webfill's limits for each budget: the least share noticed in the next night (in percent), and the largest mean and
/// 90th percentile of the delay (in days).
const WANTED: [(f64, f64, f64); 3] = [(75.0, 1.2, 3.0), (65.0, 2.7, 9.0), (10.0, 17.0, 38.0)];

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let seeds = parse_seeds(std::env::args().skip(1), size)?;
    println!("{seeds} seeds; share noticed in the next night, mean and 90th percentile in days");
    let mut verdicts = Vec::new();
    for (budget, wanted) in BUDGETS.into_iter().zip(WANTED) {
        println!("\n{budget} pages a night, of 1,500");
        for order in ORDERS {
            let judged = simulate_order(order, budget, seeds);
            println!(
                "  {:<14} {:>5.1} % {:>7.2} {:>7.2}   longest gap between checks {:>4}",
                order.name(),
                judged.next_run_share() * 100.0,
                judged.mean(),
                judged.percentile(0.9),
                judged.longest_gap,
            );
            if order == Order::Webfill {
                verdicts.extend(verdicts_of(&judged, budget, wanted));
            }
        }
    }
    Ok(report(&verdicts, size))
}

fn parse_seeds(mut args: impl Iterator<Item = String>, size: Size) -> Result<u64, Failure> {
    match (args.next().as_deref(), args.next()) {
        (None, _) => Ok(size.pick(5, 2)),
        (Some("--seeds"), Some(seeds)) => Ok(seeds.parse()?),
        (Some(other), _) => Err(format!("unknown or unfinished argument `{other}`").into()),
    }
}

fn simulate_order(order: Order, budget: usize, seeds: u64) -> ChangeDelays {
    let mut judged = ChangeDelays::default();
    for seed in 0..seeds {
        World::new(seed).run(order, budget, &mut judged);
    }
    judged.delays.sort_by(f64::total_cmp);
    judged
}

fn verdicts_of(judged: &ChangeDelays, budget: usize, wanted: (f64, f64, f64)) -> [Verdict; 4] {
    let (share, mean, tail) = wanted;
    // Half of the budget is for pages that change rarely. If it is small, it does not reach all of them in 90 nights.
    let longest = match budget * 45 >= PAGES {
        true => Limit::AtMost(90.0),
        false => Limit::None,
    };
    let of = |what: &str, figure, limit| Verdict {
        what: format!("{what}, {budget} pages a night"),
        figure,
        limit,
    };
    [
        of(
            "noticed in the next night, %",
            judged.next_run_share() * 100.0,
            Limit::AtLeast(share),
        ),
        of("mean delay in days", judged.mean(), Limit::AtMost(mean)),
        of(
            "90th percentile of the delay in days",
            judged.percentile(0.9),
            Limit::AtMost(tail),
        ),
        of(
            "nights between two checks of a page",
            f64::from(judged.longest_gap),
            longest,
        ),
    ]
}
