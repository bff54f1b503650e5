//! The journey of one task through a worker:
//! robots.txt -> politeness -> fetch -> extraction (decode, parse, mapping) -> save -> acknowledge.
//!
//! Each site has one runner, which takes the site's tasks one after another. Decisions are made elsewhere, without
//! I/O and without a clock: [`permission`](crate::permission) decides whether a page may be fetched,
//! [`sites`](crate::sites) when. This module waits, queries and requests.
//!
//! A task whose page was not requested is given back when the worker drains or the task is recalled.
//! After a crash all tasks that were not acknowledged come back through the supervisor.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;
use webfill_urls::Url;
use webfill_wire::{CrawlSettings, Feature, Lane, Task};

use crate::browser::Browser;
use crate::extract::FetchedPage;
use crate::fetch_permits::FetchPermit;
use crate::sites::Turn;

use crate::fetch::PageRequest;
use crate::permission::Permission;
use crate::permits::{Denied, Permit};
use crate::scripts::Rendering;

use self::answered::Request;
use self::conditional::Condition;
use self::rendering::{GivenBack, is_rendered_in_browser};
use self::second_fetch::CheckKind;
use self::steps::log_step;
use self::turns::TakenTurn;

pub use self::address::address_to_count;
pub use self::state::Journey;

mod address;
mod answered;
mod conditional;
mod document;
mod ending;
mod giving_back;
mod permission;
mod rechecks;
mod redirects;
mod rendering;
mod robots_fetch;
mod scripted;
mod second_fetch;
mod sitemaps;
mod state;
mod steps;
mod turns;

impl Journey {
    /// Takes the tasks of one site, one after another, until there are none.
    pub async fn run_site(self: Rc<Self>, site: String) {
        loop {
            let task = self.sites.borrow_mut().next_task(&site);
            let Some(task) = task else { return };
            let id = task.task;
            let permit = self.gate.permit(&task);
            if self.draining.get() {
                self.return_task(&site, &task, None);
                self.counts.note_task_left(id);
                continue;
            }
            let span = self.span_of(&task);
            self.run_task(&site, task, &permit).instrument(span).await;
            self.counts.note_task_left(id);
            self.end_turn(&site).await;
        }
    }

    async fn run_task(&self, site: &str, task: Task, permit: &Permit) {
        let crawl = self.crawls.borrow().get(&task.crawl).cloned();
        let (Some(crawl), Ok(url)) = (crawl, Url::parse(&task.url)) else {
            // A dispatcher of this version never sends such a task. Its lease must not be lost nevertheless.
            return self.return_task(site, &task, None);
        };
        if let Some(outcome) = task.unreachable {
            return self.end_refused(site, task, crawl, outcome, None).await;
        }
        let way = self.plan_fetch(&task, &crawl, site).await;
        if way.browser.is_none() && crawl.lane == Lane::Browser {
            // A dispatcher of this version never sends such a task, either.
            return self.return_task(site, &task, None);
        }
        // The requests for robots.txt and the page share one name lookup.
        let _name = self.resolver.hold(&url);
        if let Some(address) = self.counted_elsewhere(&task, &url, permit).await {
            return self.return_counted_elsewhere(&task, address);
        }
        log_step(&task, "begun", "its turn at the site has come");
        let (permission, rules) = self.permission(&task, &url, permit).await;
        let (delay, turn) = match permission {
            Permission::Allowed { delay, turn } => (delay, turn),
            Permission::Refused { outcome, evidence } => {
                return self.end_refused(site, task, crawl, outcome, evidence).await;
            }
            Permission::NotAsked => return self.return_task(site, &task, None),
            Permission::CutShort => {
                return self.return_cut_short(site, &task, self.politeness.delay());
            }
        };
        log_step(&task, "permitted", "robots.txt permits it");
        if sitemaps::is_list_of_sitemaps(&task, &crawl, &url) {
            let named = sitemaps::sitemaps_of(&url, rules.as_deref());
            return self.end_with_sitemaps(site, task, crawl, named).await;
        }
        let visit = Visit {
            site,
            url: &url,
            permit,
            delay,
            way,
        };
        self.fetch(&visit, task, crawl, turn).await;
    }

    /// How a page is fetched and read, as far as it is known before its request.
    async fn plan_fetch(&self, task: &Task, crawl: &CrawlSettings, site: &str) -> FetchPlan<'_> {
        let (rendering, browser) = self.rendering_of(crawl, &task.url, site);
        let is_rendered = rendering == Rendering::Always && browser.is_some();
        let may_render =
            rendering == Rendering::IfUnread && self.scripted_pages.borrow().may_fill_site(site);
        let is_waiting = browser.is_none() && crawl.lane == Lane::Browser;
        FetchPlan {
            rendering,
            browser,
            is_rendered,
            takes_tab: is_rendered || may_render,
            check: match is_rendered || is_waiting {
                true => CheckKind::Only,
                false => self.load_check_kind(task, crawl).await,
            },
        }
    }

    /// Requests the page when its site's turn comes.
    async fn fetch(&self, visit: &Visit<'_>, task: Task, crawl: Arc<CrawlSettings>, turn: Turn) {
        let Visit {
            site,
            url,
            permit,
            delay,
            ..
        } = *visit;
        let way = &visit.way;
        // A page without a stored version must be fetched in full, or it would never get one.
        let condition = match way.check == CheckKind::First || way.is_rendered {
            true => Condition::default(),
            false => self.load_condition(&task, &crawl).await,
        };
        let tabs = way.browser.filter(|_| way.takes_tab);
        let tab = match tabs {
            Some(browser) => self.take_tab(browser, turn, site, url, permit).await,
            None => None,
        };
        if tabs.is_some() && tab.is_none() {
            return self.return_task(site, &task, Some(delay));
        }
        let Some(mut slot) = self.take_turn(turn, site, url, permit).await else {
            return self.return_task(site, &task, Some(delay));
        };
        let request = Request::now(url, delay);
        log_step(&task, "requested", "the page is requested");
        let user_agent = self.user_agent_of(&crawl);
        let headers = self.headers_of(url, &condition.headers);
        let asked = PageRequest {
            url,
            user_agent: user_agent.as_deref(),
            headers: &headers,
            sitemaps: crawl.has(Feature::Sitemaps),
            is_named_sitemap: crate::sitemaps::is_named(&task, &crawl),
            next_after: delay,
        };
        let mut fetched = match self.gate.page(permit, asked, &mut slot.memory).await {
            Ok(fetched) => fetched,
            Err(Denied::NotStarted) => return self.return_task(site, &task, Some(delay)),
            Err(Denied::CutShort) => return self.return_cut_short(site, &task, delay),
        };
        let memory = slot.memory.take();
        let exchange = fetched.exchange.take();
        let mut page = self.build_page(task, crawl, url, request, fetched, memory);
        self.end_turn(site).await;
        if self.archive(exchange).await {
            page.memory.set(page.body.capacity());
        }
        match self.keep_unchanged(page, condition).await {
            Ok(page) => self.read_fetched(visit, request, page, (slot, tab)).await,
            Err(GivenBack(task)) => self.return_cut_short(site, &task, delay),
        }
    }

    /// Reads a page, in a browser or as a document if it is one, and passes it on to the extraction.
    async fn read_fetched(
        &self,
        visit: &Visit<'_>,
        request: Request,
        page: FetchedPage,
        (slot, tab): (TakenTurn<'_>, Option<FetchPermit<'_>>),
    ) {
        let Visit { url, permit, .. } = *visit;
        let way = &visit.way;
        let rendered_by = way.browser.filter(|_| way.is_rendered);
        // The slot or permit is held until the extraction has the body. This bounds the bodies in memory.
        let mut slot = Some(slot);
        let read = if sitemaps::is_sitemap(&page) {
            // A sitemap is not a document, and is not rendered.
            Ok(page)
        } else if let Some(documents) = self.documents_for(&page) {
            slot = None;
            self.read_document(documents, page, permit).await
        } else if let Some(browser) = rendered_by.filter(|_| is_rendered_in_browser(&page)) {
            slot = None;
            self.render(browser, page, url, request, permit).await
        } else {
            Ok(page)
        };
        let mut page = match read {
            Ok(page) => page,
            Err(GivenBack(task)) => return self.return_cut_short(visit.site, &task, visit.delay),
        };
        if way.rendering == Rendering::Always && way.browser.is_none() {
            self.note_no_browser(&mut page);
        }
        page.is_candidate = self.is_candidate(&page, way.rendering);
        let waiting = (slot, tab);
        if way.check != CheckKind::Only {
            self.check_twice(way.check, page, waiting, url, request, permit)
                .await;
        } else if page.is_candidate {
            self.read_and_render(page, waiting, url, request, permit)
                .await;
        } else {
            self.send_to_extraction(page).await;
            drop(waiting);
        }
    }
}

/// A visit of a page, after robots.txt has permitted it.
struct Visit<'v> {
    site: &'v str,
    url: &'v Url,
    permit: &'v Permit,
    delay: Duration,
    way: FetchPlan<'v>,
}

/// How a page is fetched and read.
struct FetchPlan<'b> {
    rendering: Rendering,
    browser: Option<&'b Browser>,
    /// The page is rendered, whatever it holds.
    is_rendered: bool,
    /// The page needs a tab of the browser besides its turn at the site.
    takes_tab: bool,
    check: CheckKind,
}
