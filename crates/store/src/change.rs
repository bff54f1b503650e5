//! Changes of pages. There is a [`Change`] for each difference between a snapshot of a page and the versions that it is
//! compared with. These versions are stored, and so is how far snapshots have been judged.
//!
//! The changes, the versions and the position are stored together ([`Comparison`]). So each snapshot is judged once,
//! whichever process dies.

use serde::Serialize;
use serde_json::{Value, json};

use crate::cursor::Cursor;
use crate::timestamp::iso_time;

/// The largest snapshot of a page, and the largest set of earlier versions of a page, in bytes. The second limit is for
/// all results of one [`Comparison`]. A MongoDB document has at most 16 MiB.
pub const MAX_SNAPSHOT_BYTES: usize = 1 << 20;
pub const MAX_JUDGEMENT_BYTES: usize = 8 << 20;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The page is new to the crawl.
    New,
    /// The page's content differs from the last snapshots.
    Changed,
    /// The page was not found by two checks in a row.
    Gone,
    /// The page is back after it was gone.
    Back,
}

impl ChangeKind {
    pub const ALL: [ChangeKind; 4] = [
        ChangeKind::New,
        ChangeKind::Changed,
        ChangeKind::Gone,
        ChangeKind::Back,
    ];

    /// The stable name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeKind::New => "new",
            ChangeKind::Changed => "changed",
            ChangeKind::Gone => "gone",
            ChangeKind::Back => "back",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<ChangeKind> {
        ChangeKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// A change of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The number of the change in the store: ascending, from 1, never reused.
    pub number: u64,
    pub app_id: String,
    pub crawl_id: String,
    pub url: String,
    /// The page's key; see [`crate::page_id`].
    pub page_id: String,
    pub site: String,
    pub kind: ChangeKind,
    /// When the fetch that showed the change started, in milliseconds since the epoch.
    pub at_ms: i64,
    /// The mapping whose fields were compared; `None` if the text was compared.
    pub mapping: Option<String>,
    /// The changed parts, before and after: fields with their values, or blocks of text.
    pub old: Option<Value>,
    pub new: Option<Value>,
    /// The readable difference, line by line.
    pub difference: String,
}

impl Change {
    /// The change as JSON, for programs.
    pub fn json(&self) -> Value {
        json!({
            "number": self.number,
            "app_id": self.app_id,
            "crawl_id": self.crawl_id,
            "url": self.url,
            "page": self.page_id,
            "site": self.site,
            "kind": self.kind.as_str(),
            "at": iso_time(self.at_ms),
            "mapping": self.mapping,
            "old": self.old,
            "new": self.new,
            "difference": self.difference,
        })
    }
}

/// The changes to read; the default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeFilter {
    pub app_id: Option<String>,
    pub crawl_id: Option<String>,
    /// Only changes whose fetches started at this time or later.
    pub since_ms: Option<i64>,
}

/// How far snapshots of pages have been compared with earlier versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComparedPosition {
    /// How many comparisons have been stored so far; 0 before the first one.
    pub revision: u64,
    pub cursor: Cursor,
    /// The number of the last change.
    pub last_number: u64,
}

/// The versions that snapshots of one page, or of the pages of one site, are compared with. Their content is opaque
/// to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownVersions {
    /// The key of the page, or `APPID/CRAWLID/site/SITE` for a site.
    pub id: String,
    /// When the page or site was last checked, in milliseconds since the epoch.
    pub checked_at_ms: i64,
    /// The versions as compressed JSON (Zstandard).
    pub state: Vec<u8>,
}

/// The results of comparing all snapshots up to a position with earlier versions of their pages.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The new position. The results are stored only if the stored revision is one less than this one.
    pub to: ComparedPosition,
    /// Identifies the process that stores the results. It may repeat the call if it got no answer.
    pub writer: String,
    pub versions: Vec<KnownVersions>,
    /// The changes, numbered consecutively after the last stored one.
    pub changes: Vec<Change>,
}
