//! Conditional requests (RFC 9110, section 13): a page that is stored is asked for with its validators, so
//! that its server may answer that it has not changed (304). The page keeps what it has then: fields,
//! links, mapping.
//!
//! A request has conditions only if the answer would be read as the stored page was: by the same version
//! of its mapping, for the same links. Servers err, so a page is asked for without conditions at least
//! every 30 days. If the store does not answer soon, there are no conditions.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use tokio::sync::{mpsc, oneshot};
use webfill_mapping::MappingSet;
use webfill_store::{KnownPage, Store, Validators};
use webfill_wire::{Feature, Lane, Outcome, Task};

use crate::crawl::Crawl;
use crate::fetch::Fetched;
use crate::task_result::TaskResult;

/// The longest time for which a page is taken on trust.
const UNCONDITIONAL_AFTER_MS: i64 = 30 * 86_400_000;

/// Longer validators are not kept.
const MOST_BYTES: usize = 1_024;

/// Pages that are looked up at once, and that may wait for that.
const MOST_AT_ONCE: usize = 256;

/// A request does not wait longer for the store.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Asks for a stored page by its key.
type Question = (String, oneshot::Sender<KnownPage>);

/// Looks up stored pages, those that are asked for at the same time together.
pub struct Conditions {
    questions: mpsc::Sender<Question>,
}

impl Conditions {
    /// Must be called within a `LocalSet`. The task ends when this is dropped.
    pub fn start(store: Arc<dyn Store>) -> Conditions {
        let (questions, asked) = mpsc::channel(MOST_AT_ONCE);
        tokio::task::spawn_local(answer(store, asked));
        Conditions { questions }
    }

    /// The stored page with this key, if it can be asked for conditionally.
    pub async fn known_page(&self, id: String) -> Option<KnownPage> {
        let (answer, known) = oneshot::channel();
        let asking = async {
            self.questions.send((id, answer)).await.ok()?;
            known.await.ok()
        };
        tokio::time::timeout(LONGEST_WAIT, asking).await.ok()?
    }
}

async fn answer(store: Arc<dyn Store>, mut asked: mpsc::Receiver<Question>) {
    let mut questions = Vec::new();
    while asked.recv_many(&mut questions, MOST_AT_ONCE).await > 0 {
        let mut questions = std::mem::take(&mut questions);
        let ids = questions.iter().map(|(id, _)| id.clone()).collect();
        // The store logs its own unavailability.
        for known in store.known_pages(ids).await.unwrap_or_default() {
            let place = questions.iter().position(|(id, _)| *id == known.id);
            if let Some(place) = place {
                // Who does not wait any more needs no answer.
                let _ = questions.swap_remove(place).1.send(known);
            }
        }
    }
}

/// Whether pages of a crawl are asked for conditionally. What a browser makes of a page may change though
/// the page itself has not.
pub fn are_wanted(crawl: &Crawl) -> bool {
    crawl.has(Feature::Conditional) && crawl.lane == Lane::Http
}

/// The headers of a request for a stored page; empty if it must be sent whatever it is.
pub fn headers(
    known: &KnownPage,
    task: &Task,
    crawl: &Crawl,
    mappings: &MappingSet,
    now_ms: i64,
) -> Vec<(String, String)> {
    let validators = &known.validators;
    let age_ms = now_ms.saturating_sub(validators.fetched_at_ms);
    let mapping = mappings.find(&task.url);
    let would_read = mapping.map(|index| (mappings.name(index), mappings.version_of(index)));
    let has_read = known
        .mapping
        .as_deref()
        .zip(known.mapping_version.as_deref());
    let is_trusted = (0..UNCONDITIONAL_AFTER_MS).contains(&age_ms);
    if !is_trusted || validators.read_as != read_as(task, crawl) || would_read != has_read {
        return Vec::new();
    }
    let named = |name: HeaderName, value: &Option<String>| {
        value.clone().map(|value| (name.to_string(), value))
    };
    let headers = [
        named(IF_NONE_MATCH, &validators.etag),
        named(IF_MODIFIED_SINCE, &validators.last_modified),
    ];
    headers.into_iter().flatten().collect()
}

/// The validators of an answer, if it has any. Also of crawls that do not ask conditionally themselves: one
/// that goes on with their pages later may.
pub fn validators(fetched: &Fetched, result: &TaskResult) -> Option<Validators> {
    let is_page = fetched.outcome == Outcome::Ok && result.crawl.lane == Lane::Http;
    let headers = Some(&fetched.headers).filter(|_| is_page)?;
    let (etag, last_modified) = (text(headers, ETAG), text(headers, LAST_MODIFIED));
    (etag.is_some() || last_modified.is_some()).then(|| Validators {
        etag,
        last_modified,
        fetched_at_ms: result.started_at_ms,
        read_as: read_as(&result.task, &result.crawl),
    })
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty() && value.len() <= MOST_BYTES).then(|| value.to_owned())
}

/// By which program a page is read, and what of it is kept.
fn read_as(task: &Task, crawl: &Crawl) -> String {
    let follows = task.depth < crawl.max_depth;
    let links = if follows { crawl.follow.as_str() } else { "no" };
    let mut read_as = format!("{} {links} links", env!("CARGO_PKG_VERSION"));
    for (is_kept, what) in [
        (crawl.body, " body"),
        (crawl.headers, " headers"),
        (crawl.has(Feature::Changes), " look"),
        (crawl.has(Feature::Sitemaps), " feeds"),
    ] {
        if is_kept {
            read_as.push_str(what);
        }
    }
    read_as
}
