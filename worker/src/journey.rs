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

use tracing::Instrument;
use webfill_urls::Url;
use webfill_wire::{Feature, Lane, Task};

use crate::fetch::PageRequest;
use crate::permission::Permission;
use crate::permits::{Denied, Permit};
use crate::scripts::Rendering;

use self::answered::Request;
use self::rendering::{GivenBack, is_rendered_in_browser};
use self::second_fetch::LookKind;
use self::steps::log_step;

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
                self.counts.task_left(id);
                continue;
            }
            let span = self.span_of(&task);
            self.travel(&site, task, &permit).instrument(span).await;
            self.counts.task_left(id);
            self.end_turn(&site).await;
        }
    }

    async fn travel(&self, site: &str, task: Task, permit: &Permit) {
        let crawl = self.crawls.borrow().get(&task.crawl).cloned();
        let (Some(crawl), Ok(url)) = (crawl, Url::parse(&task.url)) else {
            // A dispatcher of our version never sends these, but the lease must not be lost.
            return self.return_task(site, &task, None);
        };
        if let Some(outcome) = task.unreachable {
            return self.end_refused(site, task, crawl, outcome, None).await;
        }
        let (rendering, browser) = self.rendering_of(&crawl, &task.url, site);
        if browser.is_none() && crawl.lane == Lane::Browser {
            // The same applies here.
            return self.return_task(site, &task, None);
        }
        let is_rendered = rendering == Rendering::Always && browser.is_some();
        let takes_tab = is_rendered
            || (rendering == Rendering::IfUnread && self.scripted_pages.borrow().has_filled(site));
        let look = match is_rendered {
            true => LookKind::Only,
            false => self.check_kind(&task, &crawl).await,
        };
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
        // A page without a stored version must be fetched in full, or it would never get one.
        let condition = match look == LookKind::First || is_rendered {
            true => conditional::Condition::default(),
            false => self.condition(&task, &crawl).await,
        };
        let tabs = browser.filter(|_| takes_tab);
        let place = match tabs {
            Some(browser) => self.take_tab(browser, turn, site, &url, permit).await,
            None => None,
        };
        if tabs.is_some() && place.is_none() {
            return self.return_task(site, &task, Some(delay));
        }
        let Some(mut slot) = self.take_turn(turn, site, &url, permit).await else {
            return self.return_task(site, &task, Some(delay));
        };
        let request = Request::now(&url, delay);
        log_step(&task, "requested", "the page is requested");
        let user_agent = self.user_agent_of(&crawl);
        let headers = self.headers_of(&url, &condition.headers);
        let asked = PageRequest {
            url: &url,
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
        let mut page = self.fetched(task, crawl, &url, request, fetched, memory);
        self.end_turn(site).await;
        if self.archive(exchange).await {
            page.memory.set(page.body.capacity());
        }
        page = match self.keep_unchanged(page, condition).await {
            Ok(page) => page,
            Err(GivenBack(task)) => return self.return_cut_short(site, &task, delay),
        };
        // The slot or permit is held until the extraction has the body. This bounds the bodies in memory.
        let mut slot = Some(slot);
        if sitemaps::is_sitemap(&page) {
            // It is neither a document nor to be rendered.
        } else if let Some(documents) = self.documents_for(&page) {
            slot = None;
            page = match self.read_document(documents, page, permit).await {
                Ok(page) => page,
                Err(GivenBack(task)) => return self.return_cut_short(site, &task, delay),
            };
        } else if let Some(browser) =
            browser.filter(|_| is_rendered && is_rendered_in_browser(&page))
        {
            slot = None;
            page = match self.render(browser, page, &url, request, permit).await {
                Ok(page) => page,
                Err(GivenBack(task)) => return self.return_cut_short(site, &task, delay),
            };
        }
        if rendering == Rendering::Always && browser.is_none() {
            self.note_no_browser(&mut page);
        }
        page.is_candidate = self.is_candidate(&page, rendering);
        if look != LookKind::Only {
            return self
                .check_twice(look, page, (slot, place), &url, request, permit)
                .await;
        }
        if page.is_candidate {
            let waiting = (slot, place);
            return self
                .read_and_render(page, waiting, &url, request, permit)
                .await;
        }
        self.hand_on(page).await;
        drop((slot, place));
    }
}
