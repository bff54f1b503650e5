//! The extraction thread: decodes a body, runs its mapping, hands the ending on.
//!
//! Compiled XPath and documents are tied to one thread, and a page may take milliseconds: both
//! are reasons to keep this away from the fetches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, Wants};
use webfill_urls::Url;
use webfill_wire::{Follow, Outcome};

use crate::charset::{self, Kind};
use crate::ending::Ending;
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
    /// A large body's place, given back when the body is gone.
    pub large_body: Option<tokio::sync::OwnedSemaphorePermit>,
}

/// Pages recurse no deeper than their limits allow; this leaves ample room.
const STACK_BYTES: usize = 16 << 20;

/// Links that one page may yield; what comes after is dropped, and the log says so.
const MOST_LINKS: usize = 50_000;

/// Starts the thread. It ends when `work` is closed and empty.
pub fn start(
    mut work: mpsc::Receiver<Work>,
    endings: mpsc::Sender<Ending>,
    suspect: Suspect,
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
                let ending = match &engine {
                    Some(engine) => extract(engine, page, page_deadline),
                    None => failed(page.ending, "no mappings came before the first task".into()),
                };
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
        large_body,
    } = page;
    ending.content_hash = Some(webfill_urls::content_hash(&body));
    let Ok(url) = Url::parse(&ending.task.url) else {
        return failed(ending, "the task's URL does not parse".into());
    };
    let kind = charset::media_type(ending.content_type.as_deref(), &body);
    let text = charset::decode(&body, ending.content_type.as_deref(), kind);
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
