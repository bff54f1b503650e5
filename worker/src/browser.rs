//! The browser of a worker in the lane `browser`: a page that was fetched like any other is shown to
//! Chromium, and read when its scripts have run.
//!
//! [`tab`] is one page's stay, [`parts`] what it may ask for meanwhile, [`process`] the program and
//! [`devtools`] the language it speaks. What a page asks for is fetched by us, on the journey of its task
//! ([`crate::journey`]), with the same robots.txt, clock and gate as all else.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use webfill_urls::Url;

use crate::permits::Denied;
use crate::slots::{Slot, Slots};

mod devtools;
mod parts;
mod process;
mod tab;

pub use self::parts::{Answer, Part, PartRequest, fresh_for, is_received};
pub use self::tab::{Fault, Unread};

use self::devtools::NoAnswer;
use self::parts::KeptParts;
use self::process::Process;
use self::tab::Tab;

/// Chromium, and how far pages may go in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrowserConfig {
    /// Chromium, or another browser of its family: a program in the PATH, or a file.
    pub command: String,
    /// Chromium's own sandbox around pages; it does not work for root.
    pub sandbox: bool,
    /// Pages shown at once, per worker.
    pub tabs: usize,
    /// A page is read after so many seconds by its own clock, which stands still while it waits for an
    /// answer.
    pub settle: f64,
    /// Seconds that its scripts may run without asking for anything.
    pub page_deadline: f64,
    /// Scripts and data that one page may ask for.
    pub max_requests: usize,
    /// Memory that each of its processes may take, in MiB; the objects of a page's scripts a quarter of it.
    pub memory_mib: u32,
    /// Pages after which the browser is replaced, for it grows.
    pub pages: u32,
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
        }
    }
}

/// Judges the settings before anything is opened: is there such a program, and may it run?
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
    if config.sandbox && webfill_startup::is_root() {
        return Err(
            "Chromium's sandbox does not work for root: start webfill as another user, or, where \
             something else protects the machine from the pages' scripts, set browser.sandbox = false"
                .into(),
        );
    }
    Ok(())
}

/// A page to be shown.
pub struct Page<'a> {
    pub url: &'a Url,
    /// Its site, as the dispatcher routes by it.
    pub site: &'a str,
    pub text: &'a str,
    pub user_agent: &'a str,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendered {
    /// The document when its scripts had come to rest, as HTML.
    Text(String),
    /// They went to another page.
    MovedTo(String),
}

/// Why there is no text.
#[derive(Debug)]
pub enum Unrendered {
    /// This machine's browser cannot be started.
    NoBrowser(String),
    /// The page was not read.
    Unread(Unread),
}

/// The browser of one worker, started when the first page needs it.
pub struct Browser {
    config: BrowserConfig,
    folder: PathBuf,
    most_bytes: usize,
    tabs: Slots,
    current: Mutex<Option<Rc<Running>>>,
    started: Cell<u64>,
    kept: RefCell<KeptParts>,
}

/// A browser that pages are shown in. It ends with the last of them after it was replaced.
struct Running {
    process: Process,
    pages: Cell<u32>,
    spoilt: Cell<bool>,
}

/// A browser's answer may have so many times the bytes of a page: quotes and others are escaped.
const ESCAPED: usize = 2;

impl Browser {
    /// Keeps profiles in this folder, which is its own. Pages of more than `most_bytes` are not read.
    pub fn new(config: BrowserConfig, folder: PathBuf, most_bytes: usize) -> Browser {
        // What a killed worker left.
        let _ = std::fs::remove_dir_all(&folder);
        Browser {
            tabs: Slots::new(config.tabs),
            config,
            folder,
            most_bytes,
            current: Mutex::default(),
            started: Cell::new(0),
            kept: RefCell::default(),
        }
    }

    /// Waits for a place to show a page in.
    pub async fn place(&self, priority: u8) -> Slot<'_> {
        self.tabs.take(priority).await
    }

    /// Shows a page, and reads it when its scripts have come to rest. `fetch` gets what it asks for.
    pub async fn render(
        &self,
        page: &Page<'_>,
        fetch: impl AsyncFn(PartRequest) -> Result<Part, Denied>,
    ) -> Result<Rendered, Unrendered> {
        let running = self.running().await.map_err(Unrendered::NoBrowser)?;
        let opened = Tab::open(&running.process.devtools, page.user_agent);
        let mut tab = match tokio::time::timeout(OPEN_WITHIN, opened).await {
            Ok(Ok(tab)) => tab,
            Ok(Err(_)) | Err(_) => {
                running.spoilt.set(true);
                return Err(Unrendered::Unread(Unread::BrowserGone));
            }
        };
        let read = tab.read(page, &self.config, fetch).await;
        if !tab.close().await {
            running.spoilt.set(true);
        }
        match read {
            Ok(Rendered::Text(text)) if text.len() > self.most_bytes => {
                Err(Unrendered::Unread(Unread::Page(Fault::TooLarge)))
            }
            read => read.map_err(Unrendered::Unread),
        }
    }

    /// What was fetched for another page, and is fresh still.
    pub fn kept(&self, request: &PartRequest) -> Option<Part> {
        let kept = self.kept.borrow().get(&request.url, Instant::now())?;
        Some(Part::Answer(kept))
    }

    pub fn keep(&self, request: &PartRequest, answer: &Rc<Answer>) {
        self.kept
            .borrow_mut()
            .keep(&request.url, answer, Instant::now());
    }

    /// The browser to show a page in: the one that runs, or a new one.
    async fn running(&self) -> Result<Rc<Running>, String> {
        let mut current = self.current.lock().await;
        if let Some(running) = current.as_ref().filter(|running| self.may_go_on(running)) {
            running.pages.set(running.pages.get() + 1);
            return Ok(Rc::clone(running));
        }
        // Ends the old one, unless others are shown in it.
        *current = None;
        self.started.set(self.started.get() + 1);
        let profile = self.folder.join(self.started.get().to_string());
        let most_bytes = ESCAPED * self.most_bytes + (1 << 20);
        let process = Process::start(&self.config, profile, most_bytes).await?;
        let running = Rc::new(Running {
            process,
            pages: Cell::new(1),
            spoilt: Cell::new(false),
        });
        *current = Some(Rc::clone(&running));
        Ok(running)
    }

    /// One that has shown enough pages goes on while others are shown in it, for two take twice the
    /// memory; but not for ever.
    fn may_go_on(&self, running: &Rc<Running>) -> bool {
        let (pages, enough) = (running.pages.get(), self.config.pages);
        let is_idle = Rc::strong_count(running) == 1;
        !running.spoilt.get()
            && !running.process.devtools.is_gone()
            && (pages < enough || (!is_idle && pages < enough.saturating_mul(2)))
    }
}

/// A tab that is not open by then is not going to be.
const OPEN_WITHIN: Duration = Duration::from_secs(30);

impl From<NoAnswer> for Unrendered {
    fn from(why: NoAnswer) -> Unrendered {
        Unrendered::Unread(why.into())
    }
}
