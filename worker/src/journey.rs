//! The journey of one task through a worker:
//! robots.txt -> politeness -> fetch -> extraction (decode, parse, mapping) -> save -> acknowledge.
//!
//! Each site has one runner, which takes the site's tasks one after another. Decisions are made elsewhere, without
//! I/O and without a clock: [`permission`](crate::permission) decides whether a page may be fetched,
//! [`sites`](crate::sites) when. This module waits, queries and requests.
//!
//! A task whose page was not requested is given back when the worker drains or the task is recalled.
//! After a crash all tasks that were not acknowledged come back through the supervisor.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{Notify, mpsc};
use tracing::Instrument;
use webfill_mapping::MappingSet;
use webfill_service::Fault;
use webfill_store::{Cache, Store};
use webfill_urls::Url;
use webfill_wire::{CrawlKey, CrawlSettings, Delivery, Feature, Lane, Task, TaskReturned};

use crate::archive::Archive;
use crate::blocks::RepeatedPages;
use crate::browser::Browser;
use crate::documents::Documents;
use crate::extract::Work;
use crate::fetch::PageRequest;
use crate::fetch_slots::FetchSlots;
use crate::figures::Figures;
use crate::gate::Gate;
use crate::memory::Memory;
use crate::permission::Permission;
use crate::permits::{Denied, Permit};
use crate::politeness::PolitenessConfig;
use crate::resolve::Resolver;
use crate::robots::RobotsFiles;
use crate::scripts::{Rendering, ScriptedPages};
use crate::shared_clock::SharedClock;
use crate::site_headers::SiteHeaders;
use crate::sites::Sites;
use crate::stored_pages::StoredPages;
use crate::task_result::TaskResult;

use self::address::NamesGivenBack;
use self::answered::Request;
use self::rendering::{GivenBack, is_rendered_in_browser};
use self::second_fetch::LookKind;
use self::steps::log_step;

pub use self::address::address_to_count;
pub use self::second_fetch::Rechecks;

mod address;
mod answered;
mod conditional;
mod document;
mod ending;
mod giving_back;
mod permission;
mod redirects;
mod rendering;
mod robots_fetch;
mod scripted;
mod second_fetch;
mod sitemaps;
mod steps;
mod turns;

/// The state shared by the runners of all sites. Everything here lives on the worker's main thread.
pub struct Journey {
    /// The worker's name in the cache and the store.
    pub name: String,
    pub politeness: PolitenessConfig,
    pub gate: Gate,
    /// The headers that the gate sends with requests for pages of a site.
    pub headers: SiteHeaders,
    /// The archive of exchanges as they were sent, if there is one.
    pub archive: Option<Archive>,
    pub resolver: Resolver,
    pub names_given_back: RefCell<NamesGivenBack>,
    pub cache: Arc<dyn Cache>,
    pub store: Arc<dyn Store>,
    pub stored_pages: StoredPages,
    /// Held while reading a stored page that has no memory permit yet.
    pub reading_stored: tokio::sync::Mutex<()>,
    /// The mappings in force, once they have arrived.
    pub mappings: RefCell<Option<Arc<MappingSet>>>,
    pub sites: RefCell<Sites>,
    /// The turns that this worker has reserved in the shared cache.
    pub reservations: SharedClock,
    pub robots: RefCell<RobotsFiles>,
    pub crawls: RefCell<HashMap<CrawlKey, Arc<CrawlSettings>>>,
    /// Recognises sites that answer every URL with one page.
    pub repeated_pages: RefCell<RepeatedPages>,
    /// Sites where recent second fetches of changed pages showed nothing.
    pub rechecks: RefCell<Rechecks>,
    /// Bounds the fetches in flight.
    pub slots: FetchSlots,
    pub figures: Figures,
    /// The longest body that is kept, in crawls that keep bodies.
    pub kept_body_bytes: usize,
    /// Reads documents, if they are read at all.
    pub documents: Option<Documents>,
    pub browser: Option<Browser>,
    pub scripted_pages: RefCell<ScriptedPages>,
    /// Without its browser this worker is of no use.
    pub needs_browser: bool,
    /// Receives faults that end this process.
    pub broken: mpsc::Sender<Fault>,
    /// Memory for the bodies of answers.
    pub bodies: Memory,
    /// Memory for results that wait for a second fetch of their page.
    pub held: Memory,
    /// Memory for results that wait to be saved.
    pub results_memory: Memory,
    pub extraction: mpsc::Sender<Work>,
    pub results: mpsc::Sender<TaskResult>,
    pub draining: Cell<bool>,
    /// Wakes runners that wait for a site's clock or a slot when tasks must be given back.
    pub called_back: Notify,
    /// Reports to the supervisor that a task, given by its id and delivery, waits for a name server.
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
            false => self.look_kind(&task, &crawl).await,
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
                .look_twice(look, page, (slot, place), &url, request, permit)
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

    /// The user agent of a crawl that adds a text of its own.
    fn user_agent_of(&self, crawl: &CrawlSettings) -> Option<String> {
        let wanted = crawl.useragent.as_deref()?;
        Some(self.politeness.user_agent_of(Some(wanted)))
    }

    /// The headers sent with a page's request in addition to those of its site: its mapping's headers and the given
    /// conditions.
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
}
