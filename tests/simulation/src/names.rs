//! The names of simulated crawls, sites and pages.

use webfill_wire::{CrawlKey, Task};

/// The ids of the crawls.
pub(crate) const CRAWLS: [&str; 4] = ["crawl", "other", "third", "fourth"];

/// The names of the two servers that sites may share: that of a hosting provider, and that at one address (see
/// [`shared_servers`](crate::shared_servers)).
pub(crate) const SERVERS: [&str; 2] = ["provider", "address"];

pub(crate) fn site_name(number: usize) -> String {
    match number % SERVERS.len() {
        0 => format!("s{number}.github.io"),
        _ => format!("s{number}.example"),
    }
}

pub(crate) fn url(site: usize, page: usize) -> String {
    format!("http://{}/{page}", site_name(site))
}

pub(crate) fn site_number(name: &str) -> usize {
    let number = name
        .strip_prefix('s')
        .and_then(|rest| rest.split('.').next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a site of ours")
}

/// The number of the page, which is at the end of a simulated URL.
pub(crate) fn page_of(url: &str) -> usize {
    let page = url.rsplit('/').next();
    page.and_then(|page| page.parse().ok())
        .expect("a page of ours")
}

/// The number of the site and the number of the page in a simulated URL.
pub(crate) fn site_and_page_of(url: &str) -> (usize, usize) {
    let host = url.split('/').nth(2).expect("a URL of ours");
    (site_number(host), page_of(url))
}

/// A page of a crawl: the key of the crawl, the number of the site, and the number of the page.
pub(crate) type PageOfCrawl = (CrawlKey, usize, usize);

pub(crate) fn page_of_crawl(task: &Task) -> PageOfCrawl {
    let (site, page) = site_and_page_of(&task.url);
    (task.crawl, site, page)
}
