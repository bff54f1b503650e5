//! The planned sites: their pages, and how requests for them fail.

use std::ops::Range;

use webfill_wire::Outcome;

use crate::dice::Dice;
use crate::plan::{LONGEST_WAIT_MS, Plan, REST_S, RETRY_AFTER_S};
use crate::robots::{RobotsPlan, draw_retry_after_ms};
use crate::web::Response;

/// The maximum number of retries of a page that answers 429 while its site answers others.
const MOST_RETRIES_OF_429: u32 = 20;

/// All attempts fail.
pub(crate) const FAILS_FOR_GOOD: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct SitePlan {
    pub(crate) robots: RobotsPlan,
    pub(crate) answers_within_ms: u64,
    pub(crate) pages: Vec<PagePlan>,
    /// When the site blocks everyone who requests a page.
    pub(crate) blocks: Option<Range<u64>>,
}

#[derive(Debug)]
pub(crate) struct PagePlan {
    /// The links, each as a site and a page.
    pub(crate) links: Vec<(usize, usize)>,
    pub(crate) kills_its_worker: bool,
    /// How many requests for the page fail in each crawl before one succeeds.
    pub(crate) fails: u32,
    pub(crate) failure: PageFailure,
    /// Whether the page completes the records that it serves.
    pub(crate) completes: bool,
}

/// How requests for a page fail before one may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageFailure {
    /// A status 503 or 429.
    Overloaded {
        status: u16,
        retry_after_ms: Option<u64>,
    },
    NoAnswer,
}

impl PageFailure {
    pub(crate) fn response(self) -> Response {
        match self {
            PageFailure::Overloaded {
                status,
                retry_after_ms,
            } => Response::overloaded(status, retry_after_ms),
            PageFailure::NoAnswer => Response::without_answer(Outcome::Timeout),
        }
    }

    fn draw(dice: &mut Dice) -> PageFailure {
        match dice.between(0, 2) {
            0 => PageFailure::NoAnswer,
            _ => PageFailure::Overloaded {
                status: dice.one_of(&[429, 503]),
                retry_after_ms: draw_retry_after_ms(dice),
            },
        }
    }
}

impl PagePlan {
    /// How often each crawl requests the page if nothing goes wrong.
    pub(crate) fn attempts(&self) -> u32 {
        let most = match self.failure {
            PageFailure::Overloaded { status: 429, .. } => MOST_RETRIES_OF_429,
            _ => RETRY_AFTER_S.len() as u32,
        };
        1 + self.fails.min(most)
    }

    /// How long the refusals of the page hold its site back in one crawl.
    fn refusals_ms(&self) -> u64 {
        match self.failure {
            PageFailure::Overloaded {
                retry_after_ms: Some(wait_ms),
                ..
            } if self.fails > 0 => u64::from(self.attempts()) * wait_ms.min(LONGEST_WAIT_MS),
            _ => 0,
        }
    }
}

impl SitePlan {
    pub(crate) fn has_killers(&self) -> bool {
        self.pages.iter().any(|page| page.kills_its_worker)
    }

    /// Whether anything at the site fails, temporarily or permanently.
    pub(crate) fn fails(&self) -> bool {
        self.robots.ever_fails() || self.pages.iter().any(|page| page.fails > 0)
    }

    pub(crate) fn is_ever_in_trouble(&self) -> bool {
        self.fails() || self.blocks.is_some()
    }

    /// The maximum time that refusals of the site's pages hold it back in one crawl.
    pub(crate) fn refusals_ms(&self) -> u64 {
        self.pages.iter().map(PagePlan::refusals_ms).sum()
    }

    /// The longest delay that ever applies at the site.
    fn longest_delay_ms(&self, default_delay_ms: u64) -> u64 {
        let delays = self.robots.states();
        let delays = delays.map(|state| state.crawl_delay_ms().unwrap_or(default_delay_ms));
        delays.fold(default_delay_ms, u64::max)
    }

    /// The shortest delay that ever applies at the site.
    fn shortest_delay_ms(&self, default_delay_ms: u64) -> u64 {
        let delays = self.robots.states();
        let delays = delays.map(|state| state.crawl_delay_ms().unwrap_or(default_delay_ms));
        delays.min().unwrap_or(default_delay_ms)
    }
}

pub(crate) fn draw_sites(dice: &mut Dice, longest_request_ms: u64) -> Vec<SitePlan> {
    let count = dice.between(1, 7) as usize;
    let sizes: Vec<usize> = (0..count)
        .map(|_| dice.log_uniform(1, 20) as usize)
        .collect();
    let crawl_delays = dice.one_of(&[500, 20_000, 600_000, 3_600_000, 20_000_000]);
    let killers = dice.one_of(&[0, 0, 40]);
    let completing = dice.one_of(&[0, 4, 20]);
    let site = |pages: &usize| SitePlan {
        robots: RobotsPlan::steady(
            (!dice.once_in(3)).then(|| exact_ms(dice.log_uniform(20, crawl_delays))),
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

impl Plan {
    /// Adds sites that always answer soon, and take about a minute to crawl.
    pub(crate) fn add_healthy_sites(&mut self, dice: &mut Dice, count: usize) {
        let first = self.sites.len();
        for number in first..first + count {
            let pages = dice.between(4, 12) as usize;
            let crawl_delay_ms = dice.log_uniform(300, 5_000);
            // Each page links to the next two.
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
            self.sites.push(SitePlan {
                robots: RobotsPlan::steady(Some(crawl_delay_ms)),
                answers_within_ms: dice.log_uniform(5, 500),
                pages: (0..pages).map(page).collect(),
                blocks: None,
            });
        }
    }
}

/// In some worlds, lets pages fail temporarily or permanently.
pub(crate) fn add_failures(dice: &mut Dice, sites: &mut [SitePlan]) {
    let failing = dice.one_of(&[0, 0, 5]);
    for page in sites.iter_mut().flat_map(|site| &mut site.pages) {
        if dice.once_in(failing) {
            page.fails = dice.one_of(&[1, 2, FAILS_FOR_GOOD]);
            page.failure = PageFailure::draw(dice);
        }
    }
}

/// The maximum number of backoffs during a block. Each failed request takes at least one backoff, so the last one of
/// the table is never reached.
const MOST_BACKOFFS_OF_A_BLOCK: u64 = 10;

impl Plan {
    /// In some worlds, lets sites block for a while. Only sites without other trouble do, because other trouble would
    /// use up the same backoffs.
    pub(crate) fn add_blocks(&mut self, dice: &mut Dice) {
        let blocking = dice.one_of(&[0, 1, 3]);
        for site in &mut self.sites {
            if !dice.once_in(blocking) || site.fails() {
                continue;
            }
            let backoffs_ms =
                |delay_ms: u64| MOST_BACKOFFS_OF_A_BLOCK * delay_ms.max((REST_S * 1e3) as u64);
            let longest_ms = backoffs_ms(site.longest_delay_ms(self.default_delay_ms));
            // If robots.txt sets a shorter delay than the default, requests fail sooner.
            let bearable_ms = backoffs_ms(site.shortest_delay_ms(self.default_delay_ms));
            let from_ms = dice.between(0, self.estimate_ms / 2);
            let lasts_ms = dice.log_uniform(1_000, longest_ms).min(bearable_ms);
            site.blocks = Some(from_ms..from_ms + lasts_ms);
        }
    }
}

/// A delay that robots.txt can express exactly. It is read as a number of seconds in single precision.
fn exact_ms(delay_ms: u64) -> u64 {
    match delay_ms {
        0..1_000_000 => delay_ms,
        _ => delay_ms / 1_000 * 1_000,
    }
}

pub(crate) fn estimate_ms(sites: &[SitePlan], default_delay_ms: u64) -> u64 {
    let longest = sites.iter().map(|site| {
        let delay_ms = site.longest_delay_ms(default_delay_ms);
        // Each page may have to wait until robots.txt is answered.
        let back_off_ms = match site.robots.ever_fails() {
            true => (8 * default_delay_ms).clamp(60_000, LONGEST_WAIT_MS),
            false => 0,
        };
        let pages = site.pages.len() as u64;
        let failing = site.pages.iter().filter(|page| page.fails > 0).count() as u64;
        let failures_ms = failing * (8 * delay_ms.max(1_000)).min(LONGEST_WAIT_MS);
        pages * (delay_ms + back_off_ms + site.answers_within_ms) + failures_ms
    });
    longest.max().unwrap_or(0) + 10_000
}
