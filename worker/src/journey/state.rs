//! The state that the runners of all sites share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::mpsc;
use webfill_mapping::MappingSet;
use webfill_service::Fault;
use webfill_store::{Cache, Store};
use webfill_wire::{CrawlKey, CrawlSettings, TaskReturned};

use super::address::ReturnedTaskNames;
use super::interrupt::Interrupt;
use super::rechecks::Rechecks;
use super::turns::Turns;
use crate::archive::Archive;
use crate::blocks::RepeatedPages;
use crate::browser::Browser;
use crate::counts::Counts;
use crate::documents::Documents;
use crate::extract::Work;
use crate::gate::Gate;
use crate::memory::Memory;
use crate::politeness::PolitenessConfig;
use crate::resolve::Resolver;
use crate::robots::RobotsFiles;
use crate::scripts::ScriptedPages;
use crate::site_headers::SiteHeaders;
use crate::sites::Sites;
use crate::stored_pages::StoredPages;
use crate::task_result::TaskResult;

/// The state shared by the runners of all sites. Everything here lives on the worker's main thread.
pub struct Journey {
    pub politeness: Rc<PolitenessConfig>,
    pub turns: Turns,
    pub interrupt: Rc<Interrupt>,
    pub gate: Gate,
    /// The headers from the settings that the gate sends with requests for the pages of a site.
    pub headers: SiteHeaders,
    /// The archive of requests and answers, if there is one.
    pub archive: Option<Archive>,
    pub resolver: Resolver,
    pub names_given_back: RefCell<ReturnedTaskNames>,
    pub cache: Arc<dyn Cache>,
    pub store: Arc<dyn Store>,
    pub stored_pages: StoredPages,
    /// Locked while a stored page is read, because its size, and so the memory that it needs, is unknown before.
    pub reading_stored: tokio::sync::Mutex<()>,
    /// The mappings in use; `None` until they have arrived.
    pub mappings: RefCell<Option<Arc<MappingSet>>>,
    pub sites: Rc<RefCell<Sites>>,
    pub robots: RefCell<RobotsFiles>,
    pub crawls: RefCell<HashMap<CrawlKey, Arc<CrawlSettings>>>,
    /// Recognises sites that answer every URL with one page.
    pub repeated_pages: RefCell<RepeatedPages>,
    /// Counts, for each site, the second fetches of changed pages that showed no further difference.
    pub rechecks: RefCell<Rechecks>,
    pub counts: Counts,
    /// The size limit, in bytes, of bodies that are kept, in crawls that keep bodies.
    pub kept_body_bytes: usize,
    /// Reads documents such as PDFs; `None` if documents are not read.
    pub documents: Option<Documents>,
    pub browser: Option<Browser>,
    pub scripted_pages: RefCell<ScriptedPages>,
    /// Whether this worker is of no use without its browser.
    pub needs_browser: bool,
    /// Receives faults that end this process.
    pub broken: mpsc::Sender<Fault>,
    /// Memory for results that wait for a second fetch of their page, and for bodies that wait for a tab.
    pub held: Memory,
    /// Memory for results that wait until they are saved.
    pub results_memory: Memory,
    pub extraction: mpsc::Sender<Work>,
    pub results: mpsc::Sender<TaskResult>,
    /// Gives tasks back to the dispatcher without an outcome.
    pub give_back: Box<dyn Fn(Vec<TaskReturned>)>,
}
