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

/// The limits of a job: bytes of memory beyond those of the program itself, and seconds of CPU time.
pub const MEMORY_BYTES: u64 = 1 << 30;
pub const CPU_SECONDS: u64 = 60;

/// The most pages of one job.
pub const MOST_PAGES: usize = 20;

/// The most bytes of all pages of one job together.
pub const MOST_BYTES: u64 = 64 << 20;

/// A task for a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    pub work: Work,
    /// The pages, in the order in which their bodies follow.
    pub pages: Vec<PageHead>,
}

/// A page, without its body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PageHead {
    /// The final URL after redirects, in canonical form.
    pub url: String,
    pub content_type: Option<String>,
    /// The ending of its file's name, without the dot; empty if there is none.
    pub ending: String,
    pub bytes: u64,
    /// The values of fields that the page is known to have, from its records, golden cases, or readings before a
    /// change.
    pub known: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Makes a copy of the only page, for display.
    Copy,
    /// Reads each page by a mapping.
    Read {
        sources: Vec<Source>,
        mapping: String,
        /// Whether values are returned whole, for golden cases. Otherwise they are shortened for display.
        is_whole: bool,
    },
    /// Traces each step of a mapping on the only page.
    Trace {
        sources: Vec<Source>,
        mapping: String,
    },
    /// Finds chains for a field that read the elements that the user has pointed at.
    Candidates {
        field: String,
        said: Vec<PointedField>,
    },
    /// Learns a whole mapping from the known values of the pages.
    Learn {
        name: String,
        said: BTreeMap<String, Vec<PointedField>>,
    },
    /// Learns rows from the row elements, and the elements within rows, that the user has pointed at.
    Rows {
        name: String,
        dataset: String,
        said: BTreeMap<String, Vec<PointedField>>,
    },
    /// Repairs the fields of a mapping that no longer read the known values.
    Repair { mapping: Value },
}

/// The name under which a draft stores the elements pointed at as rows. The elements pointed at as values of a field
/// within rows are stored under this name, a dot and the name of the field. No field has this name.
pub(super) const ROWS: &str = "#rows";

/// The statements of a person about a field on one page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PointedField {
    /// The position of the page in the order's list of pages.
    pub page: usize,
    /// Numbers of elements whose text is a value.
    pub right: Vec<usize>,
    /// Numbers of elements whose text is not a value.
    pub wrong: Vec<usize>,
    /// Whether the page has no value for this field.
    pub absent: bool,
}

/// The result of an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Done(Value),
    /// Why the order cannot be carried out, for people.
    Refused(String),
}
