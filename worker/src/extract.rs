//! The extraction thread: decodes page bodies, applies their mappings, passes the results to the
//! saver.
//!
//! It is a thread of its own because compiled XPath expressions and documents are `!Send`, and because a page may
//! take milliseconds while fetches must continue. The crash marker names the current task, so the supervisor knows
//! which page killed the worker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts};
use webfill_reader::Status;
use webfill_urls::Url;
use webfill_wire::{Feature, Follow, Outcome, Task};

use crate::blocks;
use crate::charset::{self, Kind};
use crate::crash_marker::CrashMarker;
use crate::documents::{ReadDocument, is_readable};
use crate::kept_body;
use crate::memory::{Memory, MemoryPermit};
use crate::sampler::Sampler;
use crate::scripts::{self, UnreadPage};
use crate::sitemaps;
use crate::snapshot;
use crate::task_result::TaskResult;

use self::repeats::Repeats;
use self::results::{with_extract_error, with_extracted};

mod listed;
mod listings;
mod page_timer;
mod refreshes;
mod repeats;
mod results;

pub use page_timer::PageTimer;
pub(crate) use refreshes::end_if_redirecting;

/// A page to extract from, or a new set of mappings.
pub enum Work {
    Mappings(Arc<MappingSet>),
    Page(Box<FetchedPage>),
}

/// A fetched body, and the result of its task so far.
pub struct FetchedPage {
    pub result: TaskResult,
    pub body: Vec<u8>,
    /// The result of reading the page, if it is a document.
    pub document: Option<Box<ReadDocument>>,
    /// Whether the body is not what the server sent, but the document after its scripts ran, as HTML in UTF-8.
    pub is_rendered: bool,
    /// Whether the body is returned with the result ([`TaskResult::unread`]) if the page shows nothing without its
    /// scripts.
    pub is_candidate: bool,
    /// The receiver of the result if it is still needed before it is saved; otherwise it goes to the saver directly.
    pub answer: Option<oneshot::Sender<TaskResult>>,
    /// The permit for the memory that the body takes; the worker's memory is limited.
    pub memory: MemoryPermit,
}

impl FetchedPage {
    /// Prepares a page to be read again in another form. The caller adds the body.
    pub fn for_rereading(result: TaskResult, memory: MemoryPermit) -> FetchedPage {
        FetchedPage {
            result,
            body: Vec::new(),
            document: None,
            is_rendered: false,
            is_candidate: false,
            answer: None,
            memory,
        }
    }
}

/// The stack of the extraction thread. The limits on documents and mappings keep recursion far below it.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// A page that shows this many characters, not counting white space, is not an empty shell.
const SHELL_CHARACTERS: usize = 400;

/// The longest text that is stored, in bytes. A page with a longer text might exceed the limit of the store.
const MAX_STORED_TEXT_BYTES: usize = 10 << 20;

/// The thread's memory limits.
pub struct ExtractionMemory {
    /// The limit on the trees and values of the page being read, in bytes.
    pub page: usize,
    /// The memory of results until they are saved.
    pub results: Memory,
    /// The size limit, in bytes, of bodies that are kept, in crawls that keep them.
    pub kept_body: usize,
}

/// Starts the extraction thread. It ends when `work` is closed and empty.
pub fn start(
    mut work: mpsc::Receiver<Work>,
    results: mpsc::Sender<TaskResult>,
    crash_marker: CrashMarker,
    page_timer: PageTimer,
    page_deadline: Duration,
    memory: ExtractionMemory,
    sampler: Option<Sampler>,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new()
        .name("extract".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let mut engine = None;
            let mut keeping = Keeping {
                sampler,
                repeats: Repeats::default(),
                body_bytes: memory.kept_body,
            };
            while let Some(next) = work.blocking_recv() {
                let mut page = match next {
                    Work::Mappings(set) => {
                        engine = Some(Engine::new(set, Limits::with_memory(memory.page)));
                        continue;
                    }
                    Work::Page(page) => *page,
                };
                let answer = page.answer.take();
                let _span = page.result.span.clone().entered();
                crash_marker.set(page.result.task.task);
                page_timer.begin();
                let mut result = match &engine {
                    Some(engine) => extract(engine, Some(&mut keeping), page, page_deadline),
                    None => with_extract_error(
                        page.result,
                        "no mappings came before the first task".into(),
                    ),
                };
                page_timer.end();
                crash_marker.clear();
                if let Some(answer) = answer {
                    // Sending fails only if the receiver is gone, which means that the process is ending.
                    let _ = answer.send(result);
                    continue;
                }
                // The page's memory is free by now, so its result may wait here for the saver.
                result.memory = Some(memory.results.take_blocking(result.memory_bytes()));
                if results.blocking_send(result).is_err() {
                    return;
                }
            }
        })
}

/// Remembers and selects what is kept of pages besides the values that mappings find.
pub(crate) struct Keeping {
    sampler: Option<Sampler>,
    repeats: Repeats,
    /// The size limit, in bytes, of a body that is kept.
    body_bytes: usize,
}

impl Keeping {
    /// Keeps samples of pages, and no bodies.
    pub(crate) fn with_samples() -> Keeping {
        Keeping {
            sampler: Some(Sampler::default()),
            repeats: Repeats::default(),
            body_bytes: 0,
        }
    }
}

/// Extracts from a page. Without `keeping`, the page is a stored one that is read again: only its values are returned,
/// and nothing else of it is kept.
pub(crate) fn extract(
    engine: &Engine,
    keeping: Option<&mut Keeping>,
    mut page: FetchedPage,
    page_deadline: Duration,
) -> TaskResult {
    if let Some(document) = page.document.take() {
        return extract_document(engine, page.result, *document, page.memory, page_deadline);
    }
    page.result.content_hash = Some(webfill_urls::content_hash(&page.body));
    let Ok(url) = Url::parse(&page.result.task.url) else {
        return with_extract_error(page.result, "the task's URL does not parse".into());
    };
    let is_sitemap = read_sitemap(engine, &mut page, &url, Instant::now() + page_deadline);
    let is_listed_alone = is_sitemap && engine.set().find(url.as_str()).is_none();
    if is_sitemap && (sitemaps::is_gzip(&page.body) || is_listed_alone && !page.result.crawl.body) {
        return page.result;
    }
    if let Some(keeping) = &keeping
        && page.result.crawl.needs_feature(Feature::KeepBodies)
    {
        page.result.kept_body =
            kept_body::compress(&page.body, page.is_rendered, keeping.body_bytes);
    }
    let body = std::mem::take(&mut page.body);
    let (kind, encoding) = kind_and_encoding(&page.result, &body, page.is_rendered);
    let text = match page.is_rendered {
        true => String::from_utf8_lossy(&body),
        false => {
            let content_type = page.result.content_type.as_deref();
            charset::page_text(&body, content_type, kind, encoding)
        }
    };
    if page.result.crawl.body && text.len() <= MAX_STORED_TEXT_BYTES {
        page.result.body = Some(text.as_ref().into());
    }
    if is_listed_alone {
        return page.result;
    }
    // The text may be a copy of the body, and the body may be kept in addition.
    let kept = page.result.kept_body.as_ref();
    let kept = kept.map_or(0, |kept| kept.body.len());
    let texts = text.len() * (1 + usize::from(page.result.body.is_some()));
    page.memory.set(body.capacity() + kept + texts);
    let input = PageInput {
        url: &url,
        kind: page_kind(kind),
        text: &text,
    };
    let mut wanted = requested_parts(&page.result, page_deadline);
    // Most pages show enough at their beginning, so only few pages are searched for the empty element that scripts
    // would fill.
    wanted.shell = page.is_candidate && blocks::has_less_text_than(&text, SHELL_CHARACTERS);
    wanted.encoding = Some(encoding);
    let extracted = engine.extract(input, wanted);
    let is_read = extracted.is_ok();
    let shell = extracted.as_ref().ok().and_then(|read| read.shell.clone());
    let mut result = with_extracted(page.result, extracted);
    inspect_text(engine, keeping, &mut result, (&url, kind, &text), is_read);
    drop(text);
    if page.is_candidate && is_read && result.outcome == Outcome::Ok {
        let shell = shell.as_ref();
        if let Some((kind, is_shell, seen)) = scripts::unread_kind(&result, engine.set(), shell) {
            page.memory.set(body.capacity());
            result.unread = Some(UnreadPage {
                kind,
                is_shell,
                seen,
                body,
                memory: page.memory,
            });
        }
    }
    result
}

/// Reads the page as a sitemap if it is one and the crawl reads sitemaps. Returns whether it is one.
fn read_sitemap(engine: &Engine, page: &mut FetchedPage, url: &Url, deadline: Instant) -> bool {
    let FetchedPage {
        result,
        body,
        memory,
        ..
    } = page;
    if !result.crawl.needs_feature(Feature::Sitemaps) {
        return false;
    }
    let is_sitemap = listed::read(engine.set(), result, (url, body), memory, deadline);
    if is_sitemap || sitemaps::is_gzip(body) {
        // Without validators, the sitemap is always fetched in full. Its entries are not stored with it, so a 304
        // would lose them; and an empty or unreadable sitemap must not stay so because of a 304.
        result.validators = None;
    }
    is_sitemap
}

fn kind_and_encoding(
    result: &TaskResult,
    body: &[u8],
    is_rendered: bool,
) -> (Kind, &'static encoding_rs::Encoding) {
    let content_type = result.content_type.as_deref();
    if is_rendered {
        // The body is the rendered document, so only the headers of the original answer can show its encoding.
        return (
            Kind::Html,
            charset::encoding_of(b"", content_type, Kind::Html),
        );
    }
    let kind = charset::content_kind(content_type, body);
    (kind, charset::encoding_of(body, content_type, kind))
}

/// Inspects the text of a page apart from the values of its mapping. Finds a redirect in it, whether it repeats other
/// pages, a sample of it, and its snapshot for a watch.
fn inspect_text(
    engine: &Engine,
    keeping: Option<&mut Keeping>,
    result: &mut TaskResult,
    (url, kind, text): (&Url, Kind, &str),
    is_read: bool,
) {
    // Only new pages are inspected here. A page that is read again was inspected when it was fetched.
    if keeping.is_some() {
        let html = (kind == Kind::Html).then_some(text);
        end_if_redirecting(result, url, html);
    }
    if is_read && result.outcome == Outcome::Ok {
        let sampler = keeping.and_then(|keeping| {
            if kind == Kind::Html {
                keeping.repeats.note_page(result, url, text);
            }
            keeping.sampler.as_mut()
        });
        result.sample = sampler.and_then(|sampler| sampler.sample(result, text));
        result.snapshot = snapshot::snapshot_of_page(result, kind, text, engine.document_limits());
    }
}

fn extract_document(
    engine: &Engine,
    mut result: TaskResult,
    document: ReadDocument,
    mut memory: MemoryPermit,
    page_deadline: Duration,
) -> TaskResult {
    let text = document.text;
    result.content_hash = Some(document.content_hash);
    result.document = Some(document.stored);
    result.kept_body = document.kept_body;
    if !is_readable(document.status) {
        // The mapping is not applied, because its default values would pass for values found in the document.
        result.snapshot = snapshot::snapshot_of_unread(&result);
        return result;
    }
    let Ok(url) = Url::parse(&result.task.url) else {
        return with_extract_error(result, "the task's URL does not parse".into());
    };
    if result.crawl.body && text.len() <= MAX_STORED_TEXT_BYTES {
        result.body = Some(text.as_str().into());
    }
    let kept = result.kept_body.as_ref().map_or(0, |kept| kept.body.len());
    memory.set(kept + text.len() * (1 + usize::from(result.body.is_some())));
    let input = PageInput {
        url: &url,
        kind: PageKind::Text,
        text: &text,
    };
    let metadata: Vec<_> = document.metadata.entries().collect();
    let extracted =
        engine.extract_document(input, &metadata, requested_parts(&result, page_deadline));
    let is_read = extracted.is_ok();
    let mut result = with_extracted(result, extracted);
    result.snapshot = match document.status {
        _ if !is_read => None,
        Status::Text => {
            snapshot::snapshot_of_page(&result, Kind::Text, &text, engine.document_limits())
        }
        _ => snapshot::snapshot_of_unread(&result),
    };
    drop(memory);
    result
}

fn requested_parts(result: &TaskResult, page_deadline: Duration) -> RequestedParts {
    let follows = result.task.depth < result.crawl.max_depth;
    RequestedParts {
        mapped_links: follows && result.crawl.follow == Follow::Mapped,
        row_links: follows && result.crawl.follow != Follow::None,
        // `nofollow` does not apply to links that a mapping selects, because the operator chose them; see
        // docs/explanation/webmasters.md.
        all_links: follows && result.crawl.follow == Follow::All && !result.is_nofollow,
        feeds: result.crawl.needs_feature(Feature::Sitemaps) && is_seed(&result.task),
        shell: false,
        deadline: Some(Instant::now() + page_deadline),
        encoding: None,
    }
}

/// Whether a task is a seed or the first page of its site, where a seed may have been redirected to. Feeds are taken
/// only from such pages, because on many sites each page has its own feed of comments.
fn is_seed(task: &Task) -> bool {
    let is_first_page = || Url::parse(&task.url).is_ok_and(|url| url.path() == "/");
    task.depth == 0 && (task.parent.is_none() || is_first_page())
}

fn page_kind(kind: Kind) -> PageKind {
    match kind {
        Kind::Html => PageKind::Html,
        Kind::Xml => PageKind::Xml,
        Kind::Json => PageKind::Json,
        Kind::Text | Kind::Unsupported => PageKind::Text,
    }
}
