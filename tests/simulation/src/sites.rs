//! The planned sites: their pages, and how requests for them fail.

use std::ops::Range;

use webfill_wire::Outcome;

use crate::request::Response;
use crate::robots::RobotsPlan;
use crate::settings::{LONGEST_WAIT_MS, RETRY_AFTER_S};

/// The most retries of a page that answers 429 while its site answers other pages.
const MOST_RETRIES_OF_429: u32 = 20;

/// The number of failures of a page that always fails.
pub(crate) const FAILS_FOR_GOOD: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct SitePlan {
    pub(crate) robots: RobotsPlan,
    pub(crate) answers_within_ms: u64,
    pub(crate) pages: Vec<PagePlan>,
    /// The period when the site blocks everyone who requests a page.
    pub(crate) blocks: Option<Range<u64>>,
}

#[derive(Debug)]
pub(crate) struct PagePlan {
    /// The pages that this page links to, by site number and page number.
    pub(crate) links: Vec<(usize, usize)>,
    pub(crate) kills_its_worker: bool,
    /// The number of requests for the page that fail in each crawl before one succeeds.
    pub(crate) fails: u32,
    pub(crate) failure: PageFailure,
    /// Whether the page has all values that its records still need, so that it completes them.
    pub(crate) completes: bool,
}

/// How requests for a page fail before one may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageFailure {
    /// The answer has the status 503 or 429.
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
}

impl PagePlan {
    /// The number of requests for the page in each crawl if nothing else goes wrong.
    pub(crate) fn attempts(&self) -> u32 {
        let most = match self.failure {
            PageFailure::Overloaded { status: 429, .. } => MOST_RETRIES_OF_429,
            _ => RETRY_AFTER_S.len() as u32,
        };
        1 + self.fails.min(most)
    }

    /// How long refusals of this page delay its site in one crawl. Before a page that is always refused is given up,
    /// its site backs off `backoffs` times.
    fn refusals_ms(&self, backoffs: usize) -> u64 {
        let backoffs = match self.fails {
            FAILS_FOR_GOOD => backoffs as u64,
            _ => 0,
        };
        match self.failure {
            PageFailure::Overloaded {
                retry_after_ms: Some(wait_ms),
                ..
            } if self.fails > 0 => {
                (u64::from(self.attempts()) + backoffs) * wait_ms.min(LONGEST_WAIT_MS)
            }
            _ => 0,
        }
    }
}

impl SitePlan {
    pub(crate) fn has_killers(&self) -> bool {
        self.pages.iter().any(|page| page.kills_its_worker)
    }

    /// Whether anything on the site fails, temporarily or permanently.
    pub(crate) fn ever_fails(&self) -> bool {
        self.robots.ever_fails() || self.pages.iter().any(|page| page.fails > 0)
    }

    pub(crate) fn is_ever_in_trouble(&self) -> bool {
        self.ever_fails() || self.blocks.is_some()
    }

    /// The longest time that refusals of the site's pages delay the site in one crawl, if each page that is always
    /// refused causes this many backoffs.
    pub(crate) fn refusals_ms(&self, backoffs: usize) -> u64 {
        let pages = self.pages.iter();
        pages.map(|page| page.refusals_ms(backoffs)).sum()
    }

    /// The longest delay that applies to the site at any time.
    pub(crate) fn longest_delay_ms(&self, default_delay_ms: u64) -> u64 {
        let delays = self.robots.states();
        let delays = delays.map(|state| state.crawl_delay_ms().unwrap_or(default_delay_ms));
        delays.fold(default_delay_ms, u64::max)
    }

    /// The shortest delay that applies to the site at any time.
    pub(crate) fn shortest_delay_ms(&self, default_delay_ms: u64) -> u64 {
        let delays = self.robots.states();
        let delays = delays.map(|state| state.crawl_delay_ms().unwrap_or(default_delay_ms));
        delays.min().unwrap_or(default_delay_ms)
    }
}

pub(crate) fn estimate_ms(sites: &[SitePlan], default_delay_ms: u64) -> u64 {
    let longest = sites.iter().map(|site| {
        let delay_ms = site.longest_delay_ms(default_delay_ms);
        // Each page may have to wait until robots.txt gets an answer.
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
