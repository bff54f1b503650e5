//! The journey of one task through a worker:
//! robots.txt -> politeness -> fetch -> extraction (decode, parse, mapping) -> save -> acknowledge.
//!
//! Each site has one runner, which takes the site's tasks one after another. What is decided on the
//! way is elsewhere, without I/O and without a clock: [`permission`](crate::permission) says whether
//! a page may be fetched, [`sites`](crate::sites) when. This module waits, asks and requests.
//!
//! A task whose page was not requested is given back when the worker drains or the task is recalled.
//! After a crash all tasks that were not acknowledged come back through the supervisor.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tracing::Instrument;
use webfill_mapping::MappingSet;
use webfill_startup::Fault;
use webfill_store::{Cache, Store};
use webfill_urls::Url;
use webfill_wire::{CrawlKey, Delivery, Evidence, Feature, Lane, Outcome, Task, TaskReturned};

use crate::archive::{Archive, Exchange};
use crate::block_outcome::{self, Before};
use crate::blocks::{RepeatedPages, Sign};
use crate::browser::Browser;
use crate::conditions;
use crate::crawl::Crawl;
use crate::documents::Documents;
use crate::extract::{FetchedPage, Work, end_if_sent_on};
use crate::fetch::{Fetched, PageRequest};
use crate::fetch_slots::FetchSlots;
use crate::figures::Figures;
use crate::gate::Gate;
use crate::look;
use crate::memory::{Memory, Share};
use crate::now::Now;
use crate::permission::{Knowledge, Permission, PermissionCheck};
use crate::permits::{Denied, Permit};
use crate::politeness::{Answered, ClockOwner, PolitenessConfig};
use crate::resolve::Resolver;
use crate::robots::{RobotsFiles, Rules};
use crate::scripts::{Rendering, ScriptedPages};
use crate::shared_clock::SharedClock;
use crate::site_headers::SiteHeaders;
use crate::sites::{Sites, Turn};
use crate::stored_pages::StoredPages;
use crate::task_result::TaskResult;

use self::address::NamesGivenBack;
use self::rendering::{GivenBack, is_rendered_in_browser};
use self::steps::log_step;

pub use self::address::address_to_count;

mod address;
mod conditional;
mod document;
mod giving_back;
mod redirects;
mod rendering;
mod robots_fetch;
mod scripted;
mod second_fetch;
mod sitemaps;
mod steps;
mod turns;

/// So often a task is tried again because its answer may be a block, of which a site that answers each time with
/// something else would never see the end.
const MOST_SUSPICIONS: usize = 3;

/// What the runners of all sites share. Everything here lives on the worker's main thread.
pub struct Journey {
    /// The worker's name in the cache and the store.
    pub name: String,
    pub politeness: PolitenessConfig,
    pub gate: Gate,
    /// Those that the gate sends with requests for pages of a site.
    pub headers: SiteHeaders,
    /// Where what was fetched is kept as it was sent, if it is.
    pub archive: Option<Archive>,
    pub resolver: Resolver,
    pub names_given_back: RefCell<NamesGivenBack>,
    pub cache: Arc<dyn Cache>,
    pub store: Arc<dyn Store>,
    pub stored_pages: StoredPages,
    /// Held while a stored page is read that has no share of the memory yet.
    pub reading_stored: tokio::sync::Mutex<()>,
    /// Those in force, once they have come.
    pub mappings: RefCell<Option<Arc<MappingSet>>>,
    pub sites: RefCell<Sites>,
    /// The turns that this worker has reserved in the shared cache.
    pub reservations: SharedClock,
    pub robots: RefCell<RobotsFiles>,
    pub crawls: RefCell<HashMap<CrawlKey, Arc<Crawl>>>,
    /// To recognise sites that answer every URL with one page.
    pub repeated_pages: RefCell<RepeatedPages>,
    /// Fetches in flight.
    pub slots: FetchSlots,
    pub figures: Figures,
    /// The longest body that is kept, in crawls that keep them.
    pub kept_body_bytes: usize,
    /// If documents are read.
    pub documents: Option<Documents>,
    pub browser: Option<Browser>,
    pub scripted_pages: RefCell<ScriptedPages>,
    /// Without its browser this worker is of no use.
    pub needs_browser: bool,
    /// Told of faults that end this process.
    pub broken: mpsc::Sender<Fault>,
    /// For the bodies of answers.
    pub bodies: Memory,
    /// For results that wait for a second fetch of their page.
    pub held: Memory,
    /// For what waits to be saved.
    pub results_memory: Memory,
    pub extraction: mpsc::Sender<Work>,
    pub results: mpsc::Sender<TaskResult>,
    pub draining: Cell<bool>,
    /// Wakes runners that wait for a site's clock or a slot, when tasks are to be given back.
    pub called_back: Notify,
    /// Tells the supervisor of a task, by its id and delivery, that waits for a name server.
    pub tell_waiting: Box<dyn Fn((u64, Delivery))>,
    /// Gives leases back unfinished.
    pub give_back: Box<dyn Fn(Vec<TaskReturned>)>,
}

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
                self.figures.task_left(id);
                continue;
            }
            let span = self.span_of(&task);
            self.travel(&site, task, &permit).instrument(span).await;
            self.figures.task_left(id);
            self.end_turn(&site).await;
        }
    }

    /// Whether a task whose page was not requested yet must be given back.
    fn is_called_back(&self, permit: &Permit) -> bool {
        self.draining.get() || permit.is_recalled()
    }

    async fn travel(&self, site: &str, task: Task, permit: &Permit) {
        let crawl = self.crawls.borrow().get(&task.crawl).cloned();
        let (Some(crawl), Ok(url)) = (crawl, Url::parse(&task.url)) else {
            // Neither happens with a dispatcher of our version; the lease must not be lost.
            return self.return_task(site, &task, None);
        };
        if let Some(outcome) = task.given_up {
            return self.end_refused(site, task, crawl, outcome, None).await;
        }
        let (rendering, browser) = self.rendering_of(&crawl, &task.url, site);
        if browser.is_none() && crawl.lane == Lane::Browser {
            // Nor does this.
            return self.return_task(site, &task, None);
        }
        let is_rendered = rendering == Rendering::Always && browser.is_some();
        let takes_tab = is_rendered
            || (rendering == Rendering::IfUnread && self.scripted_pages.borrow().has_filled(site));
        let is_first_look = !is_rendered && self.is_first_look(&task, &crawl).await;
        // The requests for robots.txt and the page share one look-up.
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
        // A page without a version has to come whole, or there would never be one.
        let condition = match is_first_look || is_rendered {
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
        let request = Request::now(delay);
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
        // The slot or place is held until the extraction has the body, which bounds bodies in memory.
        let mut slot = Some(slot);
        if sitemaps::is_sitemap(&page) {
            // It is no document, and nothing to render.
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
        if is_first_look {
            return self
                .look_twice(page, (slot, place), &url, request, permit)
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

    /// Waits until an exchange is archived. False if there was none.
    async fn archive(&self, exchange: Option<Box<Exchange>>) -> bool {
        let (Some(archive), Some(exchange)) = (&self.archive, exchange) else {
            return false;
        };
        archive.keep(exchange).await;
        true
    }

    /// Whether a URL of the task's site may be fetched for the task; robots.txt is fetched if
    /// neither this worker nor the shared cache knows it.
    async fn permission(
        &self,
        task: &Task,
        url: &Url,
        permit: &Permit,
    ) -> (Permission, Option<Rules>) {
        self.look_up_clock(&task.site, permit).await;
        if self.politeness.ignore_robots && self.is_private_host(url, permit).await {
            let delay = self.politeness.delay_in_force(None, task.delay_ms);
            let turn = Turn::Page(delay);
            return (Permission::Allowed { delay, turn }, None);
        }
        if let Err(refusal) = self.resolver.judge_literal(url) {
            tracing::debug!(event = "refused", url = url.as_str(), reason = %refusal, "unsafe address");
            let refused = Permission::Refused {
                outcome: Outcome::UnsafeAddress,
                evidence: None,
            };
            return (refused, None);
        }
        let looks_up_twice = self.politeness.clock == ClockOwner::Shared;
        let check = PermissionCheck::begin(task, url, looks_up_twice, self.known(), Now::read());
        self.carry_out(check, &task.site, permit).await
    }

    /// False if the task is called back meanwhile.
    async fn is_private_host(&self, url: &Url, permit: &Permit) -> bool {
        let _name = self.look_up(url, permit).await;
        !self.is_called_back(permit) && self.resolver.is_private_host(url).await
    }

    /// The user agent of a crawl that wants a text of its own in it.
    fn user_agent_of(&self, crawl: &Crawl) -> Option<String> {
        let wanted = crawl.useragent.as_deref()?;
        Some(self.politeness.user_agent_of(Some(wanted)))
    }

    /// What is sent with the request for a page beside the headers of its site: those of its mapping, and these.
    fn headers_of(&self, url: &Url, conditions: &[(String, String)]) -> Vec<(String, String)> {
        let mappings = self.mappings.borrow().clone();
        let of_mapping = mappings.and_then(|mappings| {
            let index = mappings.find(url.as_str())?;
            Some(mappings.headers(index).to_vec())
        });
        let mut headers = of_mapping.unwrap_or_default();
        headers.extend_from_slice(conditions);
        headers
    }

    fn known(&self) -> Knowledge<'_> {
        Knowledge {
            politeness: &self.politeness,
            sites: &self.sites,
            robots: &self.robots,
        }
    }

    fn fetched(
        &self,
        task: Task,
        crawl: Arc<Crawl>,
        url: &Url,
        request: Request,
        mut fetched: Fetched,
        memory: Share,
    ) -> FetchedPage {
        let site = task.site.clone();
        let block = self.judge(&mut fetched, url, &task, crawl.lane);
        let mut result = TaskResult::unfetched(task, crawl, Outcome::NetworkError);
        result.started_at_ms = request.started.wall_ms;
        self.note_answer(&site, request, &fetched);
        result.elapsed = request.started.instant.elapsed();
        result.next_start = self
            .sites
            .borrow()
            .next_start(&site, Turn::Page(request.delay));
        let spacing = self.sites.borrow().spacing(&site, request.delay);
        result.delay = Some(spacing);
        let asked_with = self.headers.told(url);
        let documents = self.documents.as_ref();
        result.validators = conditions::validators(&fetched, &result, documents, &asked_with);
        let mut result = result.with_fetched(&mut fetched);
        self.figures.page_fetched(&result, request.started.instant);
        if let Some(sign) = &block {
            block_outcome::end_as_blocked(&mut result, sign);
        }
        if let Some(target) = result.redirect.take() {
            redirects::take(&mut result, url, &target);
        }
        FetchedPage {
            result,
            body: fetched.body,
            document: None,
            is_rendered: false,
            is_candidate: false,
            answer: None,
            memory,
        }
    }

    /// Recognises a block, before the site's clock moves.
    fn judge(&self, fetched: &mut Fetched, url: &Url, task: &Task, lane: Lane) -> Option<Sign> {
        let attempts = task.failed_attempts.iter();
        let blocks = attempts.filter(|attempt| attempt.outcome == Outcome::Blocked);
        let before = Before {
            repeated: &mut self.repeated_pages.borrow_mut(),
            site: &task.site,
            // To the browser, many applications serve the same short page for all URLs.
            compares_pages: lane == Lane::Http,
            may_wait: blocks.count() < MOST_SUSPICIONS,
        };
        block_outcome::judge_fetched(fetched, url, Some(before))
    }

    /// Moves the site's clock.
    fn note_answer(&self, site: &str, request: Request, fetched: &Fetched) {
        // A request to an unsafe address is refused before it is sent.
        if fetched.outcome == Outcome::UnsafeAddress {
            return;
        }
        self.note_use(site);
        let answered = Answered {
            started: request.started,
            at: fetched.answered_at,
            answer: fetched.answer,
        };
        let pace = self.politeness.pace(request.delay);
        self.sites.borrow_mut().page_answered(site, answered, pace);
    }

    async fn hand_on(&self, mut page: FetchedPage) {
        let is_ok = page.result.outcome == Outcome::Ok;
        if !is_ok || (page.body.is_empty() && page.document.is_none()) {
            if is_ok {
                page.result.body = page.result.crawl.body.then(|| "".into());
                // It might be a sitemap that is being written: nothing of it is to be taken on trust.
                page.result.validators = None;
                if let Ok(url) = Url::parse(&page.result.task.url) {
                    end_if_sent_on(&mut page.result, &url, None);
                }
            }
            page.result.look = look::without_page(&page.result);
            return self.report(page.result).await;
        }
        // The channel closes only after the last runner is done.
        let _ = self.extraction.send(Work::Page(Box::new(page))).await;
    }

    /// Ends a task whose page may not be fetched. There is evidence if robots.txt was requested in
    /// vain.
    async fn end_refused(
        &self,
        site: &str,
        task: Task,
        crawl: Arc<Crawl>,
        outcome: Outcome,
        evidence: Option<Evidence>,
    ) {
        let mut result = TaskResult::unfetched(task, crawl, outcome);
        result.next_start = self
            .sites
            .borrow()
            .next_start_after_refusal(site, evidence.is_some());
        result.error = evidence.as_ref().map(|evidence| evidence.sign.clone());
        result.evidence = evidence;
        self.report(result).await;
    }

    async fn report(&self, mut result: TaskResult) {
        if result.memory.is_none() {
            let memory = self.results_memory.take(result.memory_bytes()).await;
            result.memory = Some(memory);
        }
        let _ = self.results.send(result).await;
    }
}

/// A request: when it was started, and the delay that it keeps.
#[derive(Debug, Clone, Copy)]
struct Request {
    started: Now,
    delay: Duration,
}

impl Request {
    fn now(delay: Duration) -> Request {
        let started = Now::read();
        Request { started, delay }
    }
}
