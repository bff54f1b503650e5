//! What pages lead to that only repeat others of their site, as their worker says ([`is_repetition`](webfill_wire::is_repetition)): session
//! ids in URLs and links relative to the wrong folder lead from such pages to further ones without an end. Of
//! their new links one is queued now and then, behind everything else; the others are refused.
//!
//! When the last one was queued is in memory, and bounded: a restart queues one more.

use std::collections::HashMap;

use webfill_wire::CrawlKey;

use super::answers::SiteId;

/// At most one new link in so long, of one crawl and site.
const EVERY_MS: i64 = 60_000;

/// The priority of such a link.
pub(super) const PRIORITY: u8 = 1;

/// How many crawls' sites are remembered.
const MOST_SITES: usize = 4_096;

/// When a link of such a page was queued last.
#[derive(Debug, Default)]
pub(super) struct Trickles(HashMap<(CrawlKey, SiteId), i64>);

impl Trickles {
    /// Whether a link may be queued now, which is noted.
    pub(super) fn lets_through(&mut self, crawl: CrawlKey, site: SiteId, now_ms: i64) -> bool {
        let last_ms = self.0.get(&(crawl, site));
        if last_ms.is_some_and(|last_ms| now_ms - last_ms < EVERY_MS) {
            return false;
        }
        if self.0.len() >= MOST_SITES {
            self.0.retain(|_, last_ms| now_ms - *last_ms < EVERY_MS);
        }
        if self.0.len() >= MOST_SITES {
            return false;
        }
        self.0.insert((crawl, site), now_ms);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_site_of_a_crawl_lets_one_link_through_now_and_then() {
        let mut trickles = Trickles::default();
        let (one, other) = (SiteId(1), SiteId(2));
        let asked = [
            (7, one, 0),
            (7, one, EVERY_MS - 1),
            (7, other, 5),
            (8, one, 5),
        ];
        let asked = asked.map(|(crawl, site, now_ms)| trickles.lets_through(crawl, site, now_ms));
        assert_eq!(asked, [true, false, true, true]);
        assert!(trickles.lets_through(7, one, EVERY_MS));
        for site in 0..3 * MOST_SITES as i64 {
            trickles.lets_through(7, SiteId(site), EVERY_MS);
        }
        assert!(trickles.0.len() <= MOST_SITES);
    }
}
