//! Bodies of pages, kept so that pages can be read again without fetching ([`Bodies`]).
//!
//! They stand beside the pages: in SQLite in a file of their own, which is named after the store's with
//! `.bodies` at its end, in MongoDB in the collection `bodies`. A body belongs to a page if both have the same
//! content hash. So it does not matter that the two are not written at once: a worker keeps the body first,
//! and one whose page did not come after it, or was fetched again without one, is not taken for that page's.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use webfill_wire::Delivery;

use crate::crawl::CrawlId;
use crate::error::StoreError;

/// A body that is longer than this, compressed, is not kept: a MongoDB document ends at 16 MiB.
pub const MAX_KEPT_BYTES: usize = 15 << 20;

/// What a body takes beside itself, about.
pub(crate) const BESIDE_BODY: usize = 256;

/// How much is kept of bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BodiesConfig {
    /// All bodies of the store together, compressed, in MiB; the oldest go.
    pub max_mib: u64,
    /// A longer body is not kept, in MiB before compression.
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
    /// See [`crate::page_id`].
    pub page_id: String,
    /// That of the page.
    pub content_hash: String,
    /// It is the document after its scripts ran, and not what the server has sent.
    pub is_rendered: bool,
    /// When the page was fetched, or last found unchanged; milliseconds since the epoch.
    pub at_ms: i64,
    /// The task at its dispatcher.
    pub task: u64,
    /// Of two bodies of a page that of the later delivery is kept, as with the page itself.
    pub delivery: Delivery,
    /// Its length.
    pub bytes: u64,
    /// Compressed (Zstandard).
    pub body: Vec<u8>,
}

/// What the end of a task says of its page's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyChange {
    Keep(Body),
    /// The page has not changed.
    Unchanged {
        page_id: String,
        content_hash: String,
        at_ms: i64,
    },
    /// The page was fetched at this time, and has no body that is kept. An earlier one goes.
    Forget {
        page_id: String,
        at_ms: i64,
    },
}

/// Bodies that went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DroppedBodies {
    pub bodies: u64,
    /// There is more to drop: call again.
    pub has_more: bool,
}

/// See the module.
#[async_trait]
pub trait Bodies: Send + Sync {
    /// Applies changes, all of them or none of them; they are durable when this returns. If all bodies together
    /// take more than `max_bytes`, the oldest go, which are counted.
    async fn keep(
        &self,
        changes: Vec<BodyChange>,
        max_bytes: u64,
    ) -> Result<DroppedBodies, StoreError>;

    /// Some bodies of a crawl, in the order of their pages' keys, after a key. None only if there are no more.
    /// Their number and size are bounded.
    async fn bodies(&self, crawl: &CrawlId, after: Option<String>)
    -> Result<Vec<Body>, StoreError>;
}

/// The keys of a crawl's pages are after the first and before the second.
pub(crate) fn keys_of(crawl: &CrawlId) -> (String, String) {
    // `0` follows `/`.
    (format!("{crawl}/"), format!("{crawl}0"))
}
