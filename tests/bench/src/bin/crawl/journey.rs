//! (k) The cost of logging each step of each task, as `webfill trace` needs it: the CPU time for each page, compared
//! with a crawl without these logs. The two variants are measured alternately, and the best round of each counts.

use webfill_bench::{Limit, Size, Verdict};

use crate::cost;
use crate::failure::Failure;
use crate::webfill::Crawl;

const ROUNDS: [usize; 2] = [3, 1];

pub fn run(size: Size) -> Result<Verdict, Failure> {
    println!("(k) with each step logged, and without");
    let (web, crawl) = cost::small_crawl(size)?;
    let (mut with, mut without) = (f64::INFINITY, f64::INFINITY);
    let [full, small] = ROUNDS;
    for _ in 0..size.pick(full, small) {
        web.take_arrivals();
        without = without.min(measure_cost(&crawl, "info")?);
        web.take_arrivals();
        with = with.min(measure_cost(&crawl, "info,journey=debug")?);
    }
    println!("  {with:.3} ms a page, {without:.3} without");
    Ok(Verdict {
        what: "(k) CPU a page with each step logged, as a share of that without".into(),
        figure: with / without,
        limit: Limit::AtMost(1.5),
    })
}

/// The CPU time for each page, in milliseconds, if the log has this level.
fn measure_cost(crawl: &Crawl, level: &str) -> Result<f64, Failure> {
    let crawled = crawl.run_with(
        |command| {
            command.env("WEBFILL_LOG_LEVEL", level);
        },
        |_| {},
    )?;
    Ok(cost::millis_per_page(crawled.cost.cpu, crawled.pages()))
}
