//! Plans how a page is fetched and read, as far as that is known before its request.

use webfill_store::page_id;
use webfill_wire::{CrawlSettings, Feature, Lane, Task};

use super::state::Journey;
use crate::browser::Browser;
use crate::scripts::Rendering;
use crate::stored_pages::StoredPages;

/// How a page is fetched and read.
pub(super) struct FetchPlan<'b> {
    pub(super) rendering: Rendering,
    pub(super) browser: Option<&'b Browser>,
    /// Whether the page is rendered in any case, whatever it contains.
    pub(super) is_rendered: bool,
    /// Whether the page needs a tab of the browser in addition to the permission to request the site.
    pub(super) takes_tab: bool,
    pub(super) check: CheckKind,
}

/// How a page is compared with its earlier versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckKind {
    /// The page is fetched once: it is not compared, or only in its rendered form.
    Only,
    /// The page has no earlier version to compare with, so it is fetched twice.
    First,
    Later,
}

impl<'b> FetchPlan<'b> {
    pub(super) async fn load(
        journey: &'b Journey,
        task: &Task,
        crawl: &CrawlSettings,
    ) -> FetchPlan<'b> {
        let (rendering, browser) = choose_rendering(journey, task, crawl);
        let is_rendered = rendering == Rendering::Always && browser.is_some();
        let may_fill = || journey.scripted_pages.borrow().may_fill_site(&task.site);
        let may_render = rendering == Rendering::IfUnread && may_fill();
        let is_waiting = browser.is_none() && crawl.lane == Lane::Browser;
        FetchPlan {
            rendering,
            browser,
            is_rendered,
            takes_tab: is_rendered || may_render,
            check: match is_rendered || is_waiting {
                true => CheckKind::Only,
                false => CheckKind::load(&journey.stored_pages, task, crawl).await,
            },
        }
    }
}

/// Whether a page is rendered, and the browser for it, if there is one.
fn choose_rendering<'b>(
    journey: &'b Journey,
    task: &Task,
    crawl: &CrawlSettings,
) -> (Rendering, Option<&'b Browser>) {
    let mappings = journey.mappings.borrow();
    let lane = mappings.as_ref().and_then(|set| set.find_lane(&task.url));
    let pages = journey.scripted_pages.borrow();
    let rendering = pages.rendering(crawl.lane, lane, &task.site);
    let browser = journey.browser.as_ref().filter(|_| !pages.is_broken());
    (rendering, browser)
}

impl CheckKind {
    /// Finds out how a page is compared with its earlier versions: not at all if the crawl does not compare pages or
    /// renders them, otherwise depending on whether the store has versions of it.
    async fn load(stored_pages: &StoredPages, task: &Task, crawl: &CrawlSettings) -> CheckKind {
        if !crawl.needs_feature(Feature::Changes)
            || crawl.lane != Lane::Http
            || task.unreachable.is_some()
        {
            return CheckKind::Only;
        }
        let id = page_id(&crawl.app_id, &crawl.crawl_id, &task.url);
        match stored_pages.has_versions(id).await {
            Some(false) => CheckKind::First,
            Some(true) => CheckKind::Later,
            None => CheckKind::Only,
        }
    }
}
