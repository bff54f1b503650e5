//! Takes one task through all steps of a worker: robots.txt -> politeness -> fetch -> extraction (decode, parse,
//! mapping) -> save -> acknowledge.
//!
//! Each site has one runner, which takes the site's tasks one after another. This module waits, sends queries and
//! requests pages. Others make the decisions, without I/O and without reading a clock:
//! [`permission`](crate::permission) decides whether a page may be fetched, and [`sites`](crate::sites) when.
//!
//! A task whose page was not requested is given back when the worker drains or the task is recalled. After a crash all
//! tasks that were not acknowledged come back through the supervisor.

use std::rc::Rc;
use std::sync::Arc;

use tracing::Instrument;
use webfill_urls::Url;
use webfill_wire::{CrawlSettings, Lane, Task};

use crate::extract::FetchedPage;
use crate::permission::Permission;
use crate::permits::{Denied, Permit};
use crate::scripts::Rendering;
use crate::sites::Turn;

use self::address::look_up_changed_address;
use self::conditional::Condition;
use self::giving_back::GivenBack;
use self::plan::{CheckKind, FetchPlan};
use self::rendering::is_rendered_in_browser;
use self::steps::{log_step, span_of};
use self::visit::{HeldPermits, Reading, Request, Visit};

pub use self::address::address_to_count;
pub use self::interrupt::Interrupt;
pub use self::state::Journey;
pub use self::turns::Turns;

mod address;
mod conditional;
mod document;
mod ending;
mod giving_back;
mod interrupt;
mod permission;
mod plan;
mod rechecks;
mod redirects;
mod rendering;
mod request;
mod robots_fetch;
mod scripted;
mod second_fetch;
mod sitemaps;
mod state;
mod steps;
mod turns;
mod visit;

impl Journey {
    /// Takes the tasks of one site, one after another, until there are none.
    pub async fn run_site(self: Rc<Self>, site: String) {
        loop {
            let task = self.sites.borrow_mut().next_task(&site);
            let Some(task) = task else { return };
            let id = task.task;
            let permit = self.gate.issue_permit(&task);
            if self.interrupt.is_draining() {
                self.return_task(&site, &task, None);
                self.counts.note_task_left(id);
                continue;
            }
            let span = span_of(&task, &self.crawls.borrow());
            self.run_task(&site, task, &permit).instrument(span).await;
            self.counts.note_task_left(id);
            self.turns.end(&site).await;
        }
    }

    async fn run_task(&self, site: &str, task: Task, permit: &Permit) {
        let crawl = self.crawls.borrow().get(&task.crawl).cloned();
        let (Some(crawl), Ok(url)) = (crawl, Url::parse(&task.url)) else {
            // A dispatcher of this version never sends a task with an unknown crawl or an invalid URL. If another
            // version does, the task is given back, so that its lease ends.
            return self.return_task(site, &task, None);
        };
        if let Some(outcome) = task.unreachable {
            return self.end_refused(site, task, crawl, outcome, None).await;
        }
        let plan = FetchPlan::load(self, &task, &crawl).await;
        if plan.browser.is_none() && crawl.lane == Lane::Browser {
            // A dispatcher of this version sends tasks of the lane `browser` only to supervisors with browsers.
            return self.return_task(site, &task, None);
        }
        // Hold the lookup of the name, so that the requests for robots.txt and for the page share it.
        let _name = self.resolver.hold_lookup(&url);
        let names = &self.names_given_back;
        if let Some(address) =
            look_up_changed_address(&self.turns, names, (&task, &url), permit).await
        {
            return self.return_counted_elsewhere(&task, address);
        }
        log_step(&task, "begun", "its turn at the site has come");
        let (permission, rules) = self.check_permission(&task, &url, permit).await;
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
            let named = sitemaps::list_sitemaps(&url, rules.as_deref());
            return self.end_with_sitemaps(site, task, crawl, named).await;
        }
        let visit = Visit {
            site,
            url: &url,
            permit,
            delay,
            plan,
        };
        self.fetch(&visit, task, crawl, turn).await;
    }

    /// Requests the page as soon as its site may be requested.
    async fn fetch(&self, visit: &Visit<'_>, task: Task, crawl: Arc<CrawlSettings>, turn: Turn) {
        let Visit {
            site,
            url,
            permit,
            delay,
            ref plan,
        } = *visit;
        // A page without a stored version must be fetched in full, or it would never get one.
        let condition = match plan.check == CheckKind::First || plan.is_rendered {
            true => Condition::default(),
            false => Condition::load(self, &task, &crawl).await,
        };
        let tabs = plan.browser.filter(|_| plan.takes_tab);
        let tab = match tabs {
            Some(browser) => rendering::take_tab(&self.turns, browser, turn, visit).await,
            None => None,
        };
        if tabs.is_some() && tab.is_none() {
            return self.return_task(site, &task, Some(delay));
        }
        let Some(mut turn) = self.turns.take(turn, site, url, permit).await else {
            return self.return_task(site, &task, Some(delay));
        };
        let request = Request::begin(url, delay);
        log_step(&task, "requested", "the page is requested");
        let of = (&task, &*crawl);
        let asking = self.request_page(visit, request, of, &condition.headers, &mut turn);
        let fetched = match asking.await {
            Ok(fetched) => fetched,
            Err(Denied::NotStarted) => return self.return_task(site, &task, Some(delay)),
            Err(Denied::CutShort) => return self.return_cut_short(site, &task, delay),
        };
        let answer = self.take_answer(url, request, (task, crawl), fetched, &mut turn);
        let page = answer.await;
        let held = HeldPermits {
            turn: Some(turn),
            tab,
        };
        let reading = Reading {
            journey: self,
            visit,
            request,
        };
        match condition.restore_if_unchanged(self, page).await {
            Ok(page) => reading.read_and_extract(page, held).await,
            Err(GivenBack(task)) => self.return_cut_short(site, &task, delay),
        }
    }
}

impl Reading<'_> {
    /// Reads a page, if necessary in a browser or as a document, and passes it on to the extraction.
    async fn read_and_extract(&self, page: FetchedPage, mut held: HeldPermits<'_>) {
        let Reading { journey, visit, .. } = *self;
        let plan = &visit.plan;
        let rendered_by = plan.browser.filter(|_| plan.is_rendered);
        let read = if sitemaps::is_sitemap(&page) {
            // A sitemap is not a document, and is not rendered.
            Ok(page)
        } else if let Some(documents) = document::reader_for(journey, &page) {
            held.turn = None;
            document::read(journey, documents, page, visit.permit).await
        } else if let Some(browser) = rendered_by.filter(|_| is_rendered_in_browser(&page)) {
            held.turn = None;
            self.render(browser, page).await
        } else {
            Ok(page)
        };
        let mut page = match read {
            Ok(page) => page,
            Err(GivenBack(task)) => {
                return journey.return_cut_short(visit.site, &task, visit.delay);
            }
        };
        if plan.rendering == Rendering::Always && plan.browser.is_none() {
            scripted::note_no_browser(&mut page);
        }
        page.is_candidate = scripted::is_candidate(&page, plan.rendering);
        if plan.check != CheckKind::Only {
            self.check_twice(page, held).await;
        } else if page.is_candidate {
            self.read_and_render(page, held).await;
        } else {
            journey.send_to_extraction(page).await;
            drop(held);
        }
    }
}
