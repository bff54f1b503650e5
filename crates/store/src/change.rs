//! Changes of pages: a [`Change`] for each difference between a snapshot of a page and its versions, the versions
//! that snapshots are compared with, and the position up to which all snapshots are judged.
//!
//! The three are stored together ([`Judgement`]), so each snapshot is judged once, whichever process dies.

use serde::Serialize;
use serde_json::{Value, json};

use crate::cursor::Cursor;
use crate::timestamp::iso_time;

/// The limit of a page's snapshot, of its versions, and of a judgement, in bytes. A MongoDB document has at most 16
/// MiB.
pub const MAX_SNAPSHOT_BYTES: usize = 1 << 20;
pub const MAX_JUDGEMENT_BYTES: usize = 8 << 20;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The page is new to the crawl.
    New,
    /// Its content differs from the last snapshots.
    Changed,
    /// It was not found at two checks in a row.
    Gone,
    /// It is there again after it was gone.
    Back,
}

impl ChangeKind {
    pub const ALL: [ChangeKind; 4] = [
        ChangeKind::New,
        ChangeKind::Changed,
        ChangeKind::Gone,
        ChangeKind::Back,
    ];

    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeKind::New => "new",
            ChangeKind::Changed => "changed",
            ChangeKind::Gone => "gone",
            ChangeKind::Back => "back",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<ChangeKind> {
        ChangeKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// One change of one page.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its position among the changes of the store: ascending, from 1, never used again.
    pub number: u64,
    pub app_id: String,
    pub crawl_id: String,
    pub url: String,
    /// The page's key, see [`crate::page_id`].
    pub page_id: String,
    pub site: String,
    pub kind: ChangeKind,
    /// Start of the fetch that showed it, milliseconds since the epoch.
    pub at_ms: i64,
    /// The mapping whose fields were compared; `None` if the text was compared.
    pub mapping: Option<String>,
    /// The changed parts, before and after: fields with their values, or blocks of text.
    pub old: Option<Value>,
    pub new: Option<Value>,
    /// Both, line by line, for people.
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
    /// Only those of fetches that began at this time or later.
    pub since_ms: Option<i64>,
}

/// The position up to which snapshots are judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgedTo {
    /// Counts the judgements; 0 before the first one.
    pub revision: u64,
    pub cursor: Cursor,
    /// The number of the last change.
    pub last_number: u64,
}

/// The versions that snapshots of one page, or of the pages of one site, are compared with. Their content is opaque
/// to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// The key of the page, or `APPID/CRAWLID/site/SITE`.
    pub id: String,
    /// When it was last checked, milliseconds since the epoch.
    pub checked_at_ms: i64,
    /// Compressed (Zstandard) JSON.
    pub state: Vec<u8>,
}

/// The results of all snapshots up to a position.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// It is stored only if the stored one has the previous revision.
    pub to: JudgedTo,
    /// Identifies the process: a writer whose answer was lost may repeat the write.
    pub writer: String,
    pub versions: Vec<Versions>,
    /// Numbered consecutively after the last one.
    pub changes: Vec<Change>,
}
