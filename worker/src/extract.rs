//! The extraction thread: decodes a body, runs its mapping, hands the ending on.
//!
//! Compiled XPath and documents are tied to one thread, and a page may take milliseconds: both
//! are reasons to keep this away from the fetches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, Wants};
use webfill_urls::Url;
use webfill_wire::{Follow, Outcome};

use crate::charset::{self, Kind};
use crate::ending::Ending;
use crate::kept;
use crate::suspect::Suspect;

/// A page to extract from, or a new set of mappings.
pub enum Work {
    Mappings(Arc<MappingSet>),
    Page(Box<FetchedPage>),
}

/// A fetched body and the task it belongs to.
pub struct FetchedPage {
    pub ending: Ending,
    pub body: Vec<u8>,
    /// The body is not the server's, but what scripts have made of it: HTML in UTF-8.
    pub is_rendered: bool,
    /// A large body's place, given back when the body is gone.
    pub large_body: Option<OwnedSemaphorePermit>,
    /// Room to keep the text in, if the crawl wants it.
    pub kept_room: Option<OwnedSemaphorePermit>,
}

/// Pages recurse no deeper than their limits allow; this leaves ample room.
const STACK_BYTES: usize = 16 << 20;

/// Links that one page may yield; what comes after is dropped, and the log says so.
const MOST_LINKS: usize = 50_000;

/// When the thread began with its current page, for whoever watches it.
#[derive(Debug, Clone)]
pub struct Pulse {
    epoch: Instant,
    /// Milliseconds since the epoch, plus one; 0 between pages.
    began: Arc<AtomicU64>,
}

impl Pulse {
    pub fn new() -> Pulse {
        Pulse {
            epoch: Instant::now(),
            began: Arc::default(),
        }
    }

    fn begin(&self) {
        let now_ms = self.epoch.elapsed().as_millis() as u64;
        self.began.store(now_ms + 1, Ordering::Relaxed);
    }

    fn end(&self) {
        self.began.store(0, Ordering::Relaxed);
    }

    /// How long the current page has been worked on.
    pub fn on_page_for(&self) -> Duration {
        match self.began.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            began => {
                let now_ms = self.epoch.elapsed().as_millis() as u64;
                Duration::from_millis((now_ms + 1).saturating_sub(began))
            }
        }
    }
}

/// Starts the thread. It ends when `work` is closed and empty.
pub fn start(
    mut work: mpsc::Receiver<Work>,
    endings: mpsc::Sender<Ending>,
    suspect: Suspect,
    pulse: Pulse,
    page_deadline: Duration,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new()
        .name("extract".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let mut engine = None;
            while let Some(next) = work.blocking_recv() {
                let page = match next {
                    Work::Mappings(set) => {
                        engine = Some(Engine::new(set, Limits::default()));
                        continue;
                    }
                    Work::Page(page) => *page,
                };
                suspect.name(page.ending.task.task);
                pulse.begin();
                let ending = match &engine {
                    Some(engine) => extract(engine, page, page_deadline),
                    None => failed(page.ending, "no mappings came before the first task".into()),
                };
                pulse.end();
                suspect.clear();
                if endings.blocking_send(ending).is_err() {
                    return;
                }
            }
        })
}

fn extract(engine: &Engine, page: FetchedPage, page_deadline: Duration) -> Ending {
    let FetchedPage {
        mut ending,
        body,
        is_rendered,
        large_body,
        kept_room,
    } = page;
    ending.content_hash = Some(webfill_urls::content_hash(&body));
    let Ok(url) = Url::parse(&ending.task.url) else {
        return failed(ending, "the task's URL does not parse".into());
    };
    let (kind, text) = match is_rendered {
        true => (Kind::Html, String::from_utf8_lossy(&body)),
        false => {
            let kind = charset::media_type(ending.content_type.as_deref(), &body);
            let text = charset::decode(&body, ending.content_type.as_deref(), kind);
            (kind, text)
        }
    };
    ending.body = kept_room.and_then(|room| kept::body(&text, room));
    let follows = ending.task.depth < ending.crawl.max_depth;
    let input = PageInput {
        url: &url,
        kind: page_kind(kind),
        text: &text,
    };
    let wants = Wants {
        mapped_links: follows && ending.crawl.follow == Follow::Mapped,
        all_links: follows && ending.crawl.follow == Follow::All,
        deadline: Some(Instant::now() + page_deadline),
    };
    let extracted = engine.extract(input, wants);
    drop(large_body);
    match extracted {
        Ok(extraction) => filled(ending, extraction),
        Err(error) => failed(ending, error.to_string()),
    }
}

fn filled(mut ending: Ending, extraction: webfill_mapping::Extraction) -> Ending {
    for warning in extraction.truncated.iter().chain(&extraction.warnings) {
        tracing::warn!(
            event = "extraction_warning",
            url = ending.task.url,
            crawl_id = ending.crawl.crawl_id,
            warning,
            "a page was not read in full"
        );
    }
    ending.mapping = extraction.mapping;
    ending.fields = extraction.fields;
    ending.links = match ending.crawl.follow {
        Follow::Mapped => extraction.links,
        Follow::All => extraction.all_links,
        Follow::None => Vec::new(),
    };
    if ending.links.len() > MOST_LINKS {
        tracing::warn!(
            event = "links_cut",
            url = ending.task.url,
            crawl_id = ending.crawl.crawl_id,
            links = ending.links.len(),
            kept = MOST_LINKS,
            "a page has more links than are taken from one page"
        );
        ending.links.truncate(MOST_LINKS);
    }
    ending
}

fn failed(mut ending: Ending, reason: String) -> Ending {
    ending.outcome = Outcome::ExtractError;
    ending.error = Some(reason);
    ending
}

fn page_kind(kind: Kind) -> PageKind {
    match kind {
        Kind::Html => PageKind::Html,
        Kind::Xml => PageKind::Xml,
        Kind::Json => PageKind::Json,
        Kind::Text | Kind::Unsupported => PageKind::Text,
    }
}
