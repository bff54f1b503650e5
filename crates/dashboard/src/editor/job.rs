//! Jobs: whatever reads a foreign page for the mapping editor, in a process of its own (`webfill dashboard-job`).
//!
//! The dashboard's own process never parses a page. It starts a child, which confines itself before it reads the first
//! byte (no files, no sockets, no programs, bounded memory and time), and speaks with it over pipes: on standard
//! input one line of JSON, the [`Order`], and then the bodies of its pages, one after the other; on standard
//! output an [`Answer`]. The child lives for one order. Its answer is as foreign as the pages are: it is bounded,
//! and shown as text.

mod candidates;
mod child;
mod nodes;
mod parent;
mod reading;
mod repairing;
mod rows;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use webfill_mapping::Source;

pub use child::{Decode, Decoded, run};
pub use parent::{Jobs, Trouble};

/// What a job may take: bytes of memory beside the program, seconds of a processor.
pub const MEMORY_BYTES: u64 = 1 << 30;
pub const CPU_SECONDS: u64 = 60;

/// Pages of one job.
pub const MOST_PAGES: usize = 20;

/// Bytes of the pages of one job together.
pub const MOST_BYTES: u64 = 64 << 20;

/// What is to be done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    pub work: Work,
    /// In the order in which their bodies follow.
    pub pages: Vec<PageHead>,
}

/// A page, without its body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PageHead {
    /// After redirects, canonical.
    pub url: String,
    pub content_type: Option<String>,
    /// Of its file's name, without the dot; empty if there is none.
    pub ending: String,
    pub bytes: u64,
    /// By field, what records know of it.
    pub known: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A copy of the only page, to be shown.
    Copy,
    /// What a mapping reads on each page.
    Read {
        sources: Vec<Source>,
        mapping: String,
        /// Whole values, for golden cases; else they are shortened for people.
        is_whole: bool,
    },
    /// Each step of a mapping on the only page.
    Trace {
        sources: Vec<Source>,
        mapping: String,
    },
    /// Chains that read what was pointed at.
    Candidates { field: String, said: Vec<Pointed> },
    /// A whole mapping, out of what is known of the pages.
    Learn {
        name: String,
        said: BTreeMap<String, Vec<Pointed>>,
    },
    /// The rows that were pointed at, and what was pointed at in them.
    Rows {
        name: String,
        dataset: String,
        said: BTreeMap<String, Vec<Pointed>>,
    },
    /// The fields of a mapping that read no longer what is known.
    Repair { mapping: Value },
}

/// Under this name a draft has what was pointed at as rows; and, with a point and the name of a field after it, what was
/// pointed at in rows. No field is called so.
pub(super) const ROWS: &str = "#rows";

/// What a person has said of a field on one page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pointed {
    /// Its number among the pages.
    pub page: usize,
    /// Numbers of elements whose text is a value.
    pub right: Vec<usize>,
    /// Numbers of elements whose text is none.
    pub wrong: Vec<usize>,
    /// The page has no value.
    pub absent: bool,
}

/// What became of an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Done(Value),
    /// Why it cannot be done, for people.
    Refused(String),
}
