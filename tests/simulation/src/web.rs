//! The simulated web: it sees every request with its times, and nothing of what webfill thinks.

use std::collections::BTreeMap;

use webfill_wire::CrawlKey;

use crate::plan::SitePlan;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Robots,
    /// Of a crawl.
    Page(CrawlKey, usize),
}

/// What the sites saw.
#[derive(Debug)]
pub(crate) struct Web {
    default_delay_ms: u64,
    sites: Vec<Site>,
    pub(crate) faults: Vec<String>,
    /// Crawls, sites and pages by how often each was asked for.
    pub(crate) asked: BTreeMap<(CrawlKey, usize, usize), u32>,
}

#[derive(Debug)]
struct Site {
    /// In its robots.txt.
    crawl_delay_ms: Option<u64>,
    /// The shortest that an operator has wanted.
    wanted_ms: Option<u64>,
    /// The last request ends, or ended, then.
    ends_ms: Option<u64>,
    page_ends_ms: Option<u64>,
    last: Request,
    robots_asked: u32,
}

impl Web {
    pub(crate) fn new(plans: &[SitePlan], default_delay_ms: u64) -> Web {
        let site = |plan: &SitePlan| Site {
            crawl_delay_ms: plan.crawl_delay_ms,
            wanted_ms: None,
            ends_ms: None,
            page_ends_ms: None,
            last: Request::Robots,
            robots_asked: 0,
        };
        Web {
            default_delay_ms,
            sites: plans.iter().map(site).collect(),
            faults: Vec::new(),
            asked: BTreeMap::new(),
        }
    }

    /// The delay that a site asks for, or else the one that is wanted.
    pub(crate) fn delay_ms(&self, site: usize, wanted_ms: Option<u32>) -> u64 {
        let wanted_ms = wanted_ms.map(u64::from);
        match self.sites[site].crawl_delay_ms {
            Some(asked_for) => asked_for.max(wanted_ms.unwrap_or(0)),
            None => wanted_ms.unwrap_or(self.default_delay_ms),
        }
    }

    /// An operator may want this delay from now on.
    pub(crate) fn may_want(&mut self, site: usize, delay_ms: u64) {
        let wanted = &mut self.sites[site].wanted_ms;
        *wanted = Some(wanted.map_or(delay_ms, |before| before.min(delay_ms)));
    }

    pub(crate) fn robots_asked(&self, site: usize) -> u32 {
        self.sites[site].robots_asked
    }

    /// A request arrives, whose answer will be complete at `ends_ms`.
    pub(crate) fn begins(
        &mut self,
        site: usize,
        request: Request,
        now_ms: u64,
        ends_ms: u64,
        who: &str,
    ) {
        let default_delay_ms = self.default_delay_ms;
        let seen = &mut self.sites[site];
        let wanted_ms = seen.wanted_ms.unwrap_or(default_delay_ms);
        let least_ms = wanted_ms.min(default_delay_ms);
        let mut fault = |what: &str, before_ms: u64| {
            let since_ms = now_ms as i64 - before_ms as i64;
            self.faults.push(format!(
                "{what}: site {site}, {request:?} by {who} at {now_ms}, {since_ms} ms after the \
                 end of {:?}",
                seen.last
            ));
        };
        if let Some(before_ms) = seen.ends_ms.filter(|ends_ms| *ends_ms > now_ms) {
            fault("overlap", before_ms);
        }
        // Before its robots.txt is read, nobody knows the delay that it asks for.
        let delay_ms = match request {
            Request::Robots => seen.crawl_delay_ms.unwrap_or(least_ms).min(least_ms),
            Request::Page(..) => seen.crawl_delay_ms.unwrap_or(least_ms),
        };
        let page_ends_ms = seen.page_ends_ms;
        if let Some(before_ms) = page_ends_ms.filter(|ends_ms| ends_ms + delay_ms > now_ms) {
            fault("too close", before_ms);
        }
        seen.ends_ms = Some(ends_ms);
        seen.last = request;
        match request {
            Request::Robots => seen.robots_asked += 1,
            Request::Page(crawl, page) => {
                seen.page_ends_ms = Some(ends_ms);
                *self.asked.entry((crawl, site, page)).or_default() += 1;
            }
        }
    }

    /// Whoever asked is gone, and the connection with it.
    pub(crate) fn cut(&mut self, site: usize, now_ms: u64) {
        let seen = &mut self.sites[site];
        seen.ends_ms = seen.ends_ms.map(|ends_ms| ends_ms.min(now_ms));
        seen.page_ends_ms = seen.page_ends_ms.map(|ends_ms| ends_ms.min(now_ms));
    }
}
