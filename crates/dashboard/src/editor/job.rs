//! Jobs read foreign pages for the mapping editor, each in a separate process (`webfill dashboard-job`).
//!
//! The dashboard's own process never parses a page. It starts a child, which confines itself before it reads the
//! first byte (no files, no sockets, no programs, bounded memory and time), and communicates with it over pipes.
//! Standard input has one line of JSON, the [`Order`], and then the bodies of its pages, one after the other.
//! Standard output has an [`Answer`]. The child lives for one order. Its answer is as untrusted as the pages: it is
//! bounded, and shown as text.

mod candidates;
mod child;
mod nodes;
mod page;
mod parent;
mod reading;
mod repairing;
mod rows;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use webfill_mapping::Source;

pub use child::{Decode, Decoded, run};
pub use parent::{JobError, Jobs};

/// The limits of a job: memory in bytes, in addition to that of the program itself, and CPU time.
pub const MEMORY_BYTES: u64 = 1 << 30;
pub const CPU_SECONDS: u64 = 60;

/// How many pages one job may have.
pub const MOST_PAGES: usize = 20;

/// The largest total size of the pages of one job, in bytes.
pub const MOST_BYTES: u64 = 64 << 20;

/// The order for a job: what to do, on which pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    pub work: Work,
    /// The pages. Their bodies follow in the same order.
    pub pages: Vec<PageHead>,
}

/// A page, without its body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PageHead {
    /// The final URL after redirects, in canonical form.
    pub url: String,
    pub content_type: Option<String>,
    /// The extension of the file name, without the dot; empty if there is none.
    pub ending: String,
    pub bytes: u64,
    /// Values of fields that the page is known to have: from its records, from golden cases, or as read before the site
    /// changed.
    pub known: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Makes a copy of a single page that a browser can show.
    Copy,
    /// Reads each page by a mapping.
    Read {
        sources: Vec<Source>,
        mapping: String,
        /// Whether values are returned whole, as golden cases need them. Otherwise they are shortened for display.
        is_whole: bool,
    },
    /// Traces each step of a mapping on a single page.
    Trace {
        sources: Vec<Source>,
        mapping: String,
    },
    /// Finds chains that read the elements that the user has pointed at as values of a field.
    Candidates {
        field: String,
        said: Vec<PointedField>,
    },
    /// Learns a whole mapping from the known values of the pages.
    Learn {
        name: String,
        said: BTreeMap<String, Vec<PointedField>>,
    },
    /// Learns a rule for rows from the elements that the user has pointed at: whole rows, and values in rows.
    Rows {
        name: String,
        dataset: String,
        said: BTreeMap<String, Vec<PointedField>>,
    },
    /// Repairs the fields of a mapping that do not yield the known values of the pages.
    Repair { mapping: Value },
}

/// In a draft, the name for elements that the user has pointed at as rows. For values of a field in rows, a dot and the
/// field's name follow. No field has this name.
pub(super) const ROWS: &str = "#rows";

/// What a user has said about a field on one page, by pointing at elements.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PointedField {
    /// The position of the page in the order's list of pages.
    pub page: usize,
    /// The numbers of elements whose text is a value of the field.
    pub right: Vec<usize>,
    /// The numbers of elements whose text is not a value of the field.
    pub wrong: Vec<usize>,
    /// Whether the page has no value for this field.
    pub absent: bool,
}

/// The answer of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Done(Value),
    /// The order cannot be carried out. The text says why, for users.
    Refused(String),
}
