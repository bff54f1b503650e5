//! Serves a web of so many sites that a crawl can be interrupted in the middle, and checks the results of such a crawl.

use std::collections::BTreeMap;
use std::time::Duration;

use webfill_tests::site::{Web, page};
use webfill_tests::stored::StoredPage;
use webfill_tests::workplace::Workplace;

pub(crate) const SITES: usize = 6;
pub(crate) const PAGES_PER_SITE: usize = 9;

/// Serves sites that each have a root page with links to eight leaf pages. Returns the URLs of the roots.
pub(crate) fn serve_wide_web(web: &Web) -> Vec<String> {
    let roots = (0..SITES).map(|number| {
        let site = web.site(&format!("w{number}.example"));
        site.serve_otherwise(|request| page(&request.path).field("name", &request.path).into());
        let leaves = 1..PAGES_PER_SITE;
        site.serve(
            "/",
            leaves.fold(page("/"), |page, leaf| {
                page.mapped_link(&format!("/{leaf}"))
            }),
        );
        site.set_latency(Duration::from_millis(20));
        site.url("/")
    });
    roots.collect()
}

/// Checks that the store has the results of an undisturbed crawl of [`serve_wide_web`].
pub(crate) fn assert_complete(work: &Workplace) {
    assert_pages_complete(&work.stored().pages());
    assert_eq!(work.stored().integrity(), "ok");
}

pub(crate) fn assert_pages_complete(pages: &BTreeMap<String, StoredPage>) {
    assert_eq!(pages.len(), SITES * PAGES_PER_SITE, "{:#?}", pages.keys());
    for page in pages.values() {
        assert_eq!(page.outcome, "ok", "{}", page.url);
        let path = page.url.split_once(".example").expect("our host").1;
        assert_eq!(page.fields["title"], path, "{}", page.url);
    }
}

/// The pages that were requested more than once, each with its number of requests.
pub(crate) fn repeated_pages(web: &Web) -> BTreeMap<String, usize> {
    let mut counts = web.visits().pages().counts();
    counts.retain(|_, count| *count > 1);
    counts
}
