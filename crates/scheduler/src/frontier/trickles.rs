//! Slows down the links of pages that only repeat others of their site, according to their worker
//! ([`is_repetition`](webfill_wire::is_repetition)). Session ids in URLs and links relative to the wrong folder lead
//! from such pages to further ones without an end. Of the new links of such pages, one is queued from time to time,
//! behind everything else; the others are refused.
//!
//! The time of the last queued link and the number of refused ones are kept in memory, for a limited number of sites.
//! So a restart queues one more.

use std::collections::HashMap;

use webfill_wire::CrawlKey;

use super::model::SiteId;

/// For each crawl and site, at most one new link is queued in this time.
const EVERY_MS: i64 = 60_000;

/// The priority of a link from a page that only repeats others.
pub(super) const PRIORITY: u8 = 1;

/// The maximum number of pairs of crawl and site that are remembered.
const MOST_SITES: usize = 4_096;

/// A site of a crawl where pages only repeat others.
#[derive(Debug)]
pub(super) struct SlowedBranch {
    /// The last queued link from a page that only repeats others; `last_ms`: when it was queued.
    pub(super) url: String,
    last_ms: i64,
    pub(super) refused: u64,
}

/// The sites of crawls whose links are slowed down.
#[derive(Debug, Default)]
pub(super) struct SlowedBranches(HashMap<(CrawlKey, SiteId), SlowedBranch>);

impl SlowedBranches {
    /// Whether a link from a page that only repeats others may be queued now. If so, it counts as queued.
    pub(super) fn try_pass(
        &mut self,
        (crawl, site): (CrawlKey, SiteId),
        url: &str,
        now_ms: i64,
    ) -> bool {
        if let Some(branch) = self.0.get_mut(&(crawl, site)) {
            let is_early = now_ms - branch.last_ms < EVERY_MS;
            match is_early {
                true => branch.refused += 1,
                false => (branch.last_ms, branch.url) = (now_ms, url.to_owned()),
            }
            return !is_early;
        }
        if self.0.len() >= MOST_SITES {
            self.0
                .retain(|_, branch| now_ms - branch.last_ms < EVERY_MS);
        }
        if self.0.len() >= MOST_SITES {
            return false;
        }
        let branch = SlowedBranch {
            url: url.to_owned(),
            last_ms: now_ms,
            refused: 0,
        };
        self.0.insert((crawl, site), branch);
        true
    }

    /// The sites of these crawls with refused links, those with the most first.
    pub(super) fn branches_of(
        &self,
        crawls: &[CrawlKey],
    ) -> Vec<(&(CrawlKey, SiteId), &SlowedBranch)> {
        let is_asked = |(crawl, _): &(CrawlKey, SiteId)| crawls.contains(crawl);
        let mut found: Vec<_> = self
            .0
            .iter()
            .filter(|(key, branch)| branch.refused > 0 && is_asked(key))
            .collect();
        found.sort_unstable_by_key(|(key, branch)| (std::cmp::Reverse(branch.refused), **key));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_site_of_a_crawl_lets_one_link_through_now_and_then() {
        let mut trickles = SlowedBranches::default();
        let (one, other) = (SiteId(1), SiteId(2));
        let asked = [
            (7, one, 0),
            (7, one, EVERY_MS - 1),
            (7, other, 5),
            (8, one, 5),
        ];
        let asked = asked.map(|(crawl, site, now_ms)| {
            trickles.try_pass((crawl, site), "http://a.example/", now_ms)
        });
        assert_eq!(asked, [true, false, true, true]);
        assert!(trickles.try_pass((7, one), "http://a.example/", EVERY_MS));
        for site in 0..3 * MOST_SITES as i64 {
            trickles.try_pass((7, SiteId(site)), "http://a.example/", EVERY_MS);
        }
        assert!(trickles.0.len() <= MOST_SITES);
    }
}
