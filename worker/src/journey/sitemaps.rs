//! Finds the sitemaps of an origin, in crawls that read sitemaps.
//!
//! The dispatcher queues the robots.txt of each seed's origin as a task. Its permission check has already read that
//! robots.txt and thus the sitemaps it lists, so nothing more is requested for it. The sitemaps become ordinary tasks;
//! they are recognised by their content.

use std::sync::Arc;

use serde_json::Map;
use webfill_urls::{Url, canonical_url};
use webfill_wire::{CrawlSettings, Feature, LinkKind, Outcome, Task};

use crate::extract::FetchedPage;
use crate::robots::is_robots_txt;
use crate::robots_rules::RobotsRules;
use crate::sitemaps;
use crate::task_result::TaskResult;

/// Where a sitemap is expected if robots.txt lists none.
const USUAL_PLACE: &str = "/sitemap.xml";

/// Whether a task is the robots.txt of a seed's origin, which stands for the origin's sitemaps. A robots.txt that a
/// page links to is an ordinary page.
pub(super) fn is_list_of_sitemaps(task: &Task, crawl: &CrawlSettings, url: &Url) -> bool {
    crawl.needs_feature(Feature::Sitemaps) && task.parent.is_none() && is_robots_txt(url)
}

/// The URLs of an origin's sitemaps, which may be at other hosts. `rules` is `None` if robots.txt is ignored.
pub(super) fn list_sitemaps(robots_txt: &Url, rules: Option<&RobotsRules>) -> Vec<String> {
    let named = rules.into_iter().flat_map(RobotsRules::sitemaps);
    let mut urls: Vec<String> = named
        .filter_map(|named| canonical_url(named.trim(), Some(robots_txt)).ok())
        .map(String::from)
        .collect();
    if urls.is_empty() {
        urls.extend(canonical_url(USUAL_PLACE, Some(robots_txt)).map(String::from));
    }
    urls
}

/// Whether a page is a sitemap and is to be read as one.
pub(super) fn is_sitemap(page: &FetchedPage) -> bool {
    page.result.crawl.needs_feature(Feature::Sitemaps)
        && page.result.outcome == Outcome::Ok
        && sitemaps::is_sitemap(
            &page.body,
            sitemaps::is_named(&page.result.task, &page.result.crawl),
        )
}

/// Makes the result of a robots.txt task: the sitemaps of the origin.
pub(super) fn result_with_sitemaps(
    task: Task,
    crawl: Arc<CrawlSettings>,
    named: Vec<String>,
) -> TaskResult {
    let mut result = TaskResult::of_unfetched(task, crawl, Outcome::Ok);
    result.document = Some(Map::from_iter([
        ("type".to_owned(), "sitemap".into()),
        ("entries".to_owned(), named.len().into()),
    ]));
    let named = named.into_iter();
    result.listed = named.map(|url| (LinkKind::Sitemap, url)).collect();
    result
}
