//! Bodies of pages, kept so that pages can be read again without fetching ([`Bodies`]).
//!
//! They are stored beside the pages: in SQLite in a separate file, named after the store's with the ending `.bodies`;
//! in MongoDB in the collection `bodies`. A body belongs to a page if both have the same content hash, so the two need
//! not be written together. A worker stores the body first. If its page is then never saved, or is fetched again
//! without a body, the hashes differ.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use webfill_wire::Delivery;

use crate::crawl::CrawlId;
use crate::error::StoreError;

/// The largest body that is kept, in bytes after compression. A MongoDB document has at most 16 MiB.
pub const MAX_KEPT_BYTES: usize = 15 << 20;

/// The approximate storage overhead of a body, in bytes.
pub(crate) const BESIDE_BODY: usize = 256;

/// Limits on kept bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BodiesConfig {
    /// The most MiB that all bodies of the store take together, compressed. Beyond that, the oldest are dropped.
    pub max_mib: u64,
    /// The largest body that is kept, in MiB before compression.
    pub max_body_mib: u64,
}

impl Default for BodiesConfig {
    fn default() -> Self {
        BodiesConfig {
            max_mib: 4_096,
            max_body_mib: 8,
        }
    }
}

impl BodiesConfig {
    pub fn max_bytes(&self) -> u64 {
        self.max_mib << 20
    }

    pub fn max_body_bytes(&self) -> usize {
        usize::try_from(self.max_body_mib << 20).unwrap_or(usize::MAX)
    }
}

/// The body of a page, as a mapping reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The key of the page; see [`crate::page_id`].
    pub page_id: String,
    /// The content hash of the page.
    pub content_hash: String,
    /// Whether this is the document after its scripts ran, not the body sent by the server.
    pub is_rendered: bool,
    /// When the page was fetched, or last found unchanged, in milliseconds since the epoch.
    pub at_ms: i64,
    /// The number that the dispatcher gave to the task that fetched the page.
    pub task: u64,
    /// Which delivery of the task to a worker led to this body. Of two bodies of a page, the one of the later delivery
    /// is kept.
    pub delivery: Delivery,
    /// The length of the body before compression.
    pub bytes: u64,
    /// The body, compressed (Zstandard).
    pub body: Vec<u8>,
}

/// The change to a page's body at the end of its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyChange {
    Keep(Body),
    /// The page has not changed: its stored body is kept as the body of this later fetch.
    Unchanged {
        page_id: String,
        content_hash: String,
        at_ms: i64,
    },
    /// The page was fetched at this time, and its body is not kept. An earlier body is dropped.
    Forget {
        page_id: String,
        at_ms: i64,
    },
}

/// How many bodies were dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DroppedBodies {
    pub bodies: u64,
    /// Whether more bodies are to be dropped, by another call.
    pub has_more: bool,
}

/// The bodies of a store's pages, kept so that pages can be read again without fetching.
#[async_trait]
pub trait Bodies: Send + Sync {
    /// Applies changes, all of them or none of them; they are durable when this returns. If all bodies together
    /// exceed `max_bytes`, the oldest are dropped and counted.
    async fn keep(
        &self,
        changes: Vec<BodyChange>,
        max_bytes: u64,
    ) -> Result<DroppedBodies, StoreError>;

    /// Some bodies of a crawl, in the order of their pages' keys, after the given key. The list is empty only if no
    /// further body exists. The number and size of the bodies are limited.
    async fn bodies(&self, crawl: &CrawlId, after: Option<String>)
    -> Result<Vec<Body>, StoreError>;
}

/// The range of the keys of a crawl's pages: after the first text and before the second.
pub(crate) fn page_key_range(crawl: &CrawlId) -> (String, String) {
    // `0` is the character after `/` in ASCII, so the range holds all keys that begin with the crawl's id and `/`.
    (format!("{crawl}/"), format!("{crawl}0"))
}
