//! The headless Chromium of a worker. The worker fetches a page like any other page, and the browser renders it. The
//! document is read after its scripts have run.
//!
//! - [`process`] starts and kills Chromium; [`devtools`] is the protocol it is controlled with.
//! - [`tab`] renders one page; [`subresources`] decides which requests of its scripts are answered, and caches the
//!   answers.
//!
//! The browser itself has no access to the network. Every request of a page is intercepted. The worker refuses it, or
//! fetches it as part of the page's task ([`crate::journey`]), under the same robots.txt rules, delays and permissions
//! as all other requests. The browser is replaced after [`BrowserConfig::pages`] pages and whenever it misbehaves. A
//! killed worker's browser dies with it.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use webfill_urls::Url;

use crate::fetch_permits::{FetchPermit, FetchPermits};
use crate::permits::Denied;

mod devtools;
mod process;
mod subresources;
mod tab;

pub use self::subresources::{
    Answer, Subresource, SubresourceRequest, fresh_duration, is_received_header,
};
pub use self::tab::{PageFault, ReadError};

use self::devtools::CallError;
use self::process::Process;
use self::subresources::SubresourceCache;
use self::tab::Tab;

/// Settings of the browser: its program, its limits, and the pages that it renders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrowserConfig {
    /// Chromium, or another browser of its family: a program in the PATH, or a file.
    pub command: String,
    /// Chromium's own sandbox around pages; it does not work for root.
    pub sandbox: bool,
    /// Pages rendered at once, per worker.
    pub tabs: usize,
    /// A page is read after this many seconds of its virtual clock, which stands still while a request
    /// is under way.
    pub settle: f64,
    /// Seconds that a page's scripts may run between two requests.
    pub page_deadline: f64,
    /// Subresources that one page may request.
    pub max_requests: usize,
    /// Memory limit of each browser process, in MiB; the JavaScript heap gets a quarter of it.
    pub memory_mib: u32,
    /// The browser is replaced after this many pages, because its memory grows.
    pub pages: u32,
    /// Render pages of crawls in the lane `http` if they show nothing without their scripts.
    pub auto: bool,
    /// Sites (registrable domains) whose pages are all rendered, in every lane.
    pub sites: Vec<String>,
    /// Sites whose pages are never rendered in crawls of the lane `http`.
    pub not_sites: Vec<String>,
}

impl Default for BrowserConfig {
    fn default() -> Self {
        BrowserConfig {
            command: "chromium".into(),
            sandbox: true,
            tabs: 4,
            settle: 5.0,
            page_deadline: 30.0,
            max_requests: 64,
            memory_mib: 1_024,
            pages: 500,
            auto: true,
            sites: Vec::new(),
            not_sites: Vec::new(),
        }
    }
}

/// Checks the settings before the crawl opens anything: the program exists, and its sandbox can work.
pub fn check(config: &BrowserConfig) -> Result<(), String> {
    let command = Path::new(&config.command);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_there = match command.components().count() {
        1 => std::env::split_paths(&folders).any(|folder| folder.join(command).is_file()),
        _ => command.is_file(),
    };
    if !is_there {
        return Err(format!(
            "browser.command = {:?}: there is no such program; the lane `browser` needs Chromium \
             (on Debian: apt-get install chromium)",
            config.command
        ));
    }
    if config.sandbox && webfill_service::is_root() {
        return Err(
            "Chromium's sandbox does not work for root: start webfill as another user, or, where \
             something else protects the machine from the pages' scripts, set browser.sandbox = false"
                .into(),
        );
    }
    Ok(())
}

/// A page to be rendered.
pub struct Page<'a> {
    pub url: &'a Url,
    /// The page's site. The dispatcher routes the page by it.
    pub site: &'a str,
    pub text: &'a str,
    pub user_agent: &'a str,
}

/// The result of rendering a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendered {
    /// The HTML of the document after the page's scripts ran.
    Text(String),
    /// The page's scripts navigated to this other page.
    MovedTo(String),
}

/// Why a page was not rendered.
#[derive(Debug)]
pub enum RenderError {
    /// The browser of this machine cannot be started.
    NoBrowser(String),
    /// The browser runs, but the page was not read.
    Read(ReadError),
}

/// The browser of one worker, started when the first page needs it.
pub struct Browser {
    config: BrowserConfig,
    folder: PathBuf,
    max_bytes: usize,
    tabs: FetchPermits,
    current: Mutex<Option<Rc<RunningBrowser>>>,
    started: Cell<u64>,
    cache: RefCell<SubresourceCache>,
}

/// A running browser. Once another browser has replaced it, it ends after the last page that it renders.
struct RunningBrowser {
    process: Process,
    pages: Cell<u32>,
    spoilt: Cell<bool>,
}

/// A DevTools message may be this many times as large as the page in it, because JSON escapes quotes
/// and other characters.
const MAX_ESCAPE_FACTOR: usize = 2;

impl Browser {
    /// Keeps profiles in `folder`, which nothing else may use. Documents larger than `max_bytes` are refused.
    pub fn new(config: BrowserConfig, folder: PathBuf, max_bytes: usize) -> Browser {
        // A worker that was killed may have left the profile of its browser.
        let _ = std::fs::remove_dir_all(&folder);
        Browser {
            tabs: FetchPermits::new(config.tabs),
            config,
            folder,
            max_bytes,
            current: Mutex::default(),
            started: Cell::new(0),
            cache: RefCell::default(),
        }
    }

    /// Waits for a permit to render a page. Tasks with a higher priority get theirs first.
    pub async fn take_tab(&self, priority: u8) -> FetchPermit<'_> {
        self.tabs.take(priority).await
    }

    /// Renders a page and reads the document after its scripts ran. `fetch` fetches the subresources that the scripts
    /// request.
    pub async fn render(
        &self,
        page: &Page<'_>,
        fetch: impl AsyncFn(SubresourceRequest) -> Result<Subresource, Denied>,
    ) -> Result<Rendered, RenderError> {
        let running = self.get_or_start().await.map_err(RenderError::NoBrowser)?;
        let opened = Tab::open(&running.process.devtools, page.user_agent);
        let mut tab = match tokio::time::timeout(OPEN_TIMEOUT, opened).await {
            Ok(Ok(tab)) => tab,
            Ok(Err(_)) | Err(_) => {
                running.spoilt.set(true);
                return Err(RenderError::Read(ReadError::BrowserGone));
            }
        };
        let read = tab.render_and_read(page, &self.config, fetch).await;
        if !tab.close().await {
            running.spoilt.set(true);
        }
        match read {
            Ok(Rendered::Text(text)) if text.len() > self.max_bytes => {
                Err(RenderError::Read(ReadError::Page(PageFault::TooLarge)))
            }
            read => read.map_err(RenderError::Read),
        }
    }

    /// Returns the answer to this request if it was fetched for another page and is still fresh.
    pub fn cached_answer(&self, request: &SubresourceRequest) -> Option<Subresource> {
        let answer = self.cache.borrow().get(&request.url, Instant::now())?;
        Some(Subresource::Answer(answer))
    }

    pub fn cache(&self, request: &SubresourceRequest, answer: &Rc<Answer>) {
        self.cache
            .borrow_mut()
            .insert(&request.url, answer, Instant::now());
    }

    /// The running browser, or a new one.
    async fn get_or_start(&self) -> Result<Rc<RunningBrowser>, String> {
        let mut current = self.current.lock().await;
        if let Some(running) = current
            .as_ref()
            .filter(|running| self.may_take_page(running))
        {
            running.pages.set(running.pages.get() + 1);
            return Ok(Rc::clone(running));
        }
        // Ends the old browser, unless other pages are still rendered in it.
        *current = None;
        self.started.set(self.started.get() + 1);
        let profile = self.folder.join(self.started.get().to_string());
        let max_bytes = MAX_ESCAPE_FACTOR * self.max_bytes + (1 << 20);
        let process = Process::start(&self.config, profile, max_bytes).await?;
        let running = Rc::new(RunningBrowser {
            process,
            pages: Cell::new(1),
            spoilt: Cell::new(false),
        });
        *current = Some(Rc::clone(&running));
        Ok(running)
    }

    /// Whether the running browser takes another page. A browser that is due for replacement takes further pages while
    /// it renders others, up to twice the configured number, because a second browser would double the memory.
    fn may_take_page(&self, running: &Rc<RunningBrowser>) -> bool {
        let (pages, enough) = (running.pages.get(), self.config.pages);
        let is_idle = Rc::strong_count(running) == 1;
        !running.spoilt.get()
            && !running.process.devtools.is_gone()
            && (pages < enough || (!is_idle && pages < enough.saturating_mul(2)))
    }
}

/// The longest time that opening a tab may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

impl From<CallError> for RenderError {
    fn from(why: CallError) -> RenderError {
        RenderError::Read(why.into())
    }
}
