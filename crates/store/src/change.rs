//! What has changed on pages: a [`Change`] of each difference that a look at a page has shown, the versions of
//! pages that looks are compared with, and up to which page all looks are judged.
//!
//! The three are stored together ([`Judgement`]), so that each look is judged once, whichever process dies.

use serde::Serialize;
use serde_json::{Value, json};

use crate::cursor::Cursor;
use crate::timestamp::iso_time;

/// The limit of a page's look, of its versions, and of a judgement, in bytes: a document of MongoDB has 16 MiB.
pub const MAX_LOOK_BYTES: usize = 1 << 20;
pub const MAX_JUDGEMENT_BYTES: usize = 8 << 20;

/// What a look has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The crawl has not had the page before.
    New,
    /// It says something else than at the last looks.
    Changed,
    /// It was not found at two looks in a row.
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
    /// Start of the fetch that has shown it, milliseconds since the epoch.
    pub at_ms: i64,
    /// The mapping whose fields were compared; `None`: the text was.
    pub mapping: Option<String>,
    /// What has changed, as it was and as it is: fields with their values, or blocks of text.
    pub old: Option<Value>,
    pub new: Option<Value>,
    /// Both, line by line, for people.
    pub difference: String,
}

impl Change {
    /// As programs are told of it.
    pub fn told(&self) -> Value {
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

/// Which changes are read; the default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeFilter {
    pub app_id: Option<String>,
    pub crawl_id: Option<String>,
    /// Only those of fetches that began at this time or later.
    pub since_ms: Option<i64>,
}

/// Up to which page looks are judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgedTo {
    /// Counts the judgements; 0: there is none yet.
    pub revision: u64,
    pub cursor: Cursor,
    /// The number of the last change.
    pub last_number: u64,
}

/// What looks at one page, or at the pages of one site, are compared with. It is text of its owner's, which
/// the store does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// The key of the page, or `APPID/CRAWLID/site/SITE`.
    pub id: String,
    /// When it was looked at last, milliseconds since the epoch.
    pub looked_at_ms: i64,
    /// Compressed (Zstandard) JSON.
    pub state: Vec<u8>,
}

/// What the looks up to a position have shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// It is stored if the one that is stored has the revision before.
    pub to: JudgedTo,
    /// Names the process: a writer whose answer was lost may repeat itself.
    pub writer: String,
    pub versions: Vec<Versions>,
    /// Numbered on from the last one.
    pub changes: Vec<Change>,
}
