//! The journeys of sitemaps, in crawls that ask for them.
//!
//! The dispatcher queues the robots.txt of each seed's origin as a task. Its permission has the rules of that
//! robots.txt already, and with them the sitemaps that it names: nothing more is requested for it. The
//! sitemaps are tasks like all others; they are recognised when they are there.

use std::sync::Arc;

use webfill_urls::{Url, canonical, origin};
use webfill_wire::{Feature, LinkKind, Outcome, Task};

use super::Journey;
use crate::crawl::Crawl;
use crate::extract::FetchedPage;
use crate::now::Now;
use crate::robots::is_robots_txt;
use crate::sitemaps;
use crate::task_result::TaskResult;

/// Where a sitemap is looked for if robots.txt names none.
const USUAL_PLACE: &str = "/sitemap.xml";

/// Whether a URL stands for the sitemaps of its origin.
pub(super) fn is_list_of_sitemaps(crawl: &Crawl, url: &Url) -> bool {
    crawl.has(Feature::Sitemaps) && is_robots_txt(url)
}

/// Whether a page is a sitemap that is to be read as one.
pub(super) fn is_sitemap(page: &FetchedPage) -> bool {
    page.result.crawl.has(Feature::Sitemaps)
        && page.result.outcome == Outcome::Ok
        && sitemaps::is_sitemap(&page.body)
}

impl Journey {
    /// Ends the task that stands for the sitemaps of an origin.
    pub(super) async fn end_with_sitemaps(
        &self,
        site: &str,
        task: Task,
        crawl: Arc<Crawl>,
        url: &Url,
    ) {
        let mut result = TaskResult::unfetched(task, crawl, Outcome::Ok);
        let sitemaps = self.sitemaps_of(url);
        result.listed = sitemaps.map(|url| (LinkKind::Sitemap, url)).collect();
        result.next_start = self.sites.borrow().next_start_after_refusal(site, false);
        self.report(result).await;
    }

    /// The sitemaps of an origin, at this or at other hosts.
    fn sitemaps_of(&self, robots_txt: &Url) -> std::vec::IntoIter<String> {
        let robots = self.robots.borrow();
        let rules = robots.in_force(&origin(robots_txt), Now::read());
        let named = rules.iter().flat_map(|rules| rules.sitemaps());
        let mut urls: Vec<String> = named
            .filter_map(|named| canonical(named.trim(), Some(robots_txt)).ok())
            .map(String::from)
            .collect();
        if urls.is_empty() {
            urls.extend(canonical(USUAL_PLACE, Some(robots_txt)).map(String::from));
        }
        urls.into_iter()
    }
}
