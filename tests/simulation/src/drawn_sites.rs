//! Draws the sites of a world: their pages and robots.txt, and how these fail.

use crate::dice::Dice;
use crate::plan::Plan;
use crate::robots::{RobotsPlan, draw_retry_after_ms};
use crate::settings::REST_S;
use crate::sites::{FAILS_FOR_GOOD, PageFailure, PagePlan, SitePlan};

pub(crate) fn draw_sites(dice: &mut Dice, longest_request_ms: u64) -> Vec<SitePlan> {
    let count = dice.between(1, 7) as usize;
    let sizes: Vec<usize> = (0..count)
        .map(|_| dice.log_uniform(1, 20) as usize)
        .collect();
    let crawl_delays = dice.one_of(&[500, 20_000, 600_000, 3_600_000, 20_000_000]);
    let killers = dice.one_of(&[0, 0, 40]);
    let completing = dice.one_of(&[0, 4, 20]);
    let site = |pages: &usize| SitePlan {
        robots: RobotsPlan::steady_robots(
            (!dice.once_in(3)).then(|| round_to_exact_ms(dice.log_uniform(20, crawl_delays))),
        ),
        answers_within_ms: dice.log_uniform(5, longest_request_ms),
        pages: (0..*pages)
            .map(|_| draw_page(dice, &sizes, killers, completing))
            .collect(),
        blocks: None,
    };
    sizes.iter().map(site).collect()
}

fn draw_page(dice: &mut Dice, sizes: &[usize], killers: u64, completing: u64) -> PagePlan {
    let links = dice.between(0, 5);
    let mut link = |_| {
        let site = dice.between(0, sizes.len() as u64 - 1) as usize;
        (site, dice.between(0, sizes[site] as u64 - 1) as usize)
    };
    PagePlan {
        links: (0..links).map(&mut link).collect(),
        kills_its_worker: dice.once_in(killers),
        fails: 0,
        failure: PageFailure::NoAnswer,
        completes: dice.once_in(completing),
    }
}

/// In some worlds, lets robots.txt files change, fail, move and forbid pages.
pub(crate) fn add_robots(dice: &mut Dice, sites: &mut [SitePlan]) {
    if dice.once_in(2) {
        return;
    }
    for site in sites {
        if dice.once_in(3) {
            continue;
        }
        let crawl_delay_ms = site.robots.state(0).crawl_delay_ms();
        site.robots = RobotsPlan::draw(dice, crawl_delay_ms, site.pages.len());
    }
}

/// In some worlds, lets pages fail, temporarily or permanently.
pub(crate) fn add_failures(dice: &mut Dice, sites: &mut [SitePlan]) {
    let failing = dice.one_of(&[0, 0, 5]);
    for page in sites.iter_mut().flat_map(|site| &mut site.pages) {
        if dice.once_in(failing) {
            page.fails = dice.one_of(&[1, 2, FAILS_FOR_GOOD]);
            page.failure = draw_failure(dice);
        }
    }
}

fn draw_failure(dice: &mut Dice) -> PageFailure {
    match dice.between(0, 2) {
        0 => PageFailure::NoAnswer,
        _ => PageFailure::Overloaded {
            status: dice.one_of(&[429, 503]),
            retry_after_ms: draw_retry_after_ms(dice),
        },
    }
}

/// The most backoffs that a site needs during a block. Each failed request takes at least one backoff. The backoff
/// table is longer, so a site never becomes unreachable because of a block.
const MOST_BACKOFFS_OF_A_BLOCK: u64 = 10;

/// Adds sites that always answer soon. Each takes about a minute to crawl.
pub(crate) fn add_healthy_sites(plan: &mut Plan, dice: &mut Dice, count: usize) {
    let first = plan.sites.len();
    for number in first..first + count {
        let pages = dice.between(4, 12) as usize;
        let crawl_delay_ms = dice.log_uniform(300, 5_000);
        // Each page links to the two pages after it.
        let page = |page: usize| PagePlan {
            links: (page + 1..pages)
                .take(2)
                .map(|next| (number, next))
                .collect(),
            kills_its_worker: false,
            fails: 0,
            failure: PageFailure::NoAnswer,
            completes: false,
        };
        plan.sites.push(SitePlan {
            robots: RobotsPlan::steady_robots(Some(crawl_delay_ms)),
            answers_within_ms: dice.log_uniform(5, 500),
            pages: (0..pages).map(page).collect(),
            blocks: None,
        });
    }
}

/// In some worlds, lets sites block the crawler for a while. Sites with other trouble are left out, because that
/// trouble and the block would together use up the site's backoffs.
pub(crate) fn add_blocks(plan: &mut Plan, dice: &mut Dice) {
    let blocking = dice.one_of(&[0, 1, 3]);
    for site in &mut plan.sites {
        if !dice.once_in(blocking) || site.ever_fails() {
            continue;
        }
        let backoffs_ms =
            |delay_ms: u64| MOST_BACKOFFS_OF_A_BLOCK * delay_ms.max((REST_S * 1e3) as u64);
        let longest_ms = backoffs_ms(site.longest_delay_ms(plan.default_delay_ms));
        // If robots.txt sets a delay shorter than the default, requests follow each other sooner, and so do failures.
        // So the block must be shorter.
        let bearable_ms = backoffs_ms(site.shortest_delay_ms(plan.default_delay_ms));
        let from_ms = dice.between(0, plan.estimate_ms / 2);
        let lasts_ms = dice.log_uniform(1_000, longest_ms).min(bearable_ms);
        site.blocks = Some(from_ms..from_ms + lasts_ms);
    }
}

/// Rounds a delay down to one that robots.txt can express exactly. The value there is read as seconds in single
/// precision.
fn round_to_exact_ms(delay_ms: u64) -> u64 {
    match delay_ms {
        0..1_000_000 => delay_ms,
        _ => delay_ms / 1_000 * 1_000,
    }
}
