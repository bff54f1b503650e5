//! The state that the runners of all sites share, and what each of them derives from it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Notify, mpsc};
use webfill_mapping::MappingSet;
use webfill_service::Fault;
use webfill_store::{Cache, Store};
use webfill_urls::Url;
use webfill_wire::{CrawlKey, CrawlSettings, Delivery, TaskReturned};

use super::address::ReturnedTaskNames;
use super::rechecks::Rechecks;
use crate::archive::Archive;
use crate::blocks::RepeatedPages;
use crate::browser::Browser;
use crate::counts::Counts;
use crate::documents::Documents;
use crate::extract::Work;
use crate::fetch_permits::FetchPermits;
use crate::gate::Gate;
use crate::memory::Memory;
use crate::permits::Permit;
use crate::politeness::PolitenessConfig;
use crate::resolve::Resolver;
use crate::robots::RobotsFiles;
use crate::scripts::ScriptedPages;
use crate::shared_clock::SharedClock;
use crate::site_headers::SiteHeaders;
use crate::sites::Sites;
use crate::stored_pages::StoredPages;
use crate::task_result::TaskResult;

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
    pub names_given_back: RefCell<ReturnedTaskNames>,
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
    pub slots: FetchPermits,
    pub counts: Counts,
    /// The longest body that is kept, in crawls that keep bodies.
    pub kept_body_bytes: usize,
    /// Reads documents, if they are read at all.
    pub documents: Option<Documents>,
    pub browser: Option<Browser>,
    pub scripted_pages: RefCell<ScriptedPages>,
    /// Whether this worker is of no use without its browser.
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
    pub report_waiting: Box<dyn Fn((u64, Delivery))>,
    /// Gives leases back unfinished.
    pub give_back: Box<dyn Fn(Vec<TaskReturned>)>,
}

impl Journey {
    /// Whether a task whose page was not requested yet must be given back.
    pub(super) fn is_called_back(&self, permit: &Permit) -> bool {
        self.draining.get() || permit.is_recalled()
    }

    /// The user agent of a crawl that adds a text of its own.
    pub(super) fn user_agent_of(&self, crawl: &CrawlSettings) -> Option<String> {
        let wanted = crawl.useragent.as_deref()?;
        Some(self.politeness.user_agent_of(Some(wanted)))
    }

    /// The headers sent with a page's request in addition to those of its site: its mapping's headers and the given
    /// conditions.
    pub(super) fn headers_of(
        &self,
        url: &Url,
        conditions: &[(String, String)],
    ) -> Vec<(String, String)> {
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
