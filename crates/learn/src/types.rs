//! The input and the output of learning.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use webfill_mapping::PageKind;
use webfill_urls::Url;

/// A page to learn from, with its known values.
#[derive(Debug, Clone)]
pub struct Page {
    /// The canonical URL that the page was read from, after redirects.
    pub url: Url,
    pub kind: PageKind,
    /// The decoded text of the page.
    pub text: String,
    /// The record that links to this page. Pages of one record may share known values.
    pub record: Option<String>,
    /// The values of the record, by field. They may be wrong, or not be on the page. A field that is not in the map is
    /// unknown.
    pub known: BTreeMap<String, Vec<String>>,
    /// Statements of a person about this page, by field. They are taken as true.
    pub said: BTreeMap<String, FieldStatement>,
}

/// The statement of a person about a field of one page.
#[derive(Debug, Clone, Default)]
pub struct FieldStatement {
    /// All values of the field. If empty, the values in `nodes` count.
    pub values: Vec<String>,
    /// Whether the page has no value of the field.
    pub absent: bool,
    /// Texts that are not values of the field on this page.
    pub rejected: Vec<String>,
    /// Elements, texts and attributes that contain the value, as absolute XPaths. A person has pointed at them. At most
    /// a hundred of a page are used.
    pub nodes: Vec<String>,
    /// Nodes that a person marked as wrong.
    pub rejected_nodes: Vec<String>,
}

/// A record on a page that lists many records.
#[derive(Debug, Clone, Default)]
pub struct KnownRow {
    pub record: Option<String>,
    /// The values of the record, by field, as for [`Page`].
    pub known: BTreeMap<String, Vec<String>>,
    /// Elements of the row that a person pointed at, as absolute XPaths.
    pub nodes: Vec<String>,
}

/// What to learn about the rows of pages.
#[derive(Debug, Clone)]
pub struct RowsTask {
    pub task: Task,
    /// The dataset that the records of the rows belong to.
    pub dataset: String,
}

/// What to learn about pages.
#[derive(Debug, Clone)]
pub struct Task {
    /// The name of the mapping. If several mappings are learned, a number is appended from the second on.
    pub name: String,
    /// The fields to learn. If empty, all fields with known values are learned.
    pub fields: Vec<String>,
    pub limits: Limits,
}

/// The limits of learning. They are counts, not times, so the same input gives the same mapping. The exception is a
/// page so slow that the engine's own deadline ends its reading.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most pages of one group that are used.
    pub pages: usize,
    /// The most candidates for one field that are run.
    pub candidates: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            pages: 50,
            candidates: 2_000,
        }
    }
}

/// Why nothing could be learned at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LearnError {
    /// No page was given.
    #[error("there are no pages to learn from")]
    NoPages,
    /// No page has a known value, nor a statement of a person.
    #[error("nothing is known of any page: give records with values, or label a page")]
    NothingKnown,
    /// A mapping cannot have this name.
    #[error("`{0}` cannot name a mapping: letters, digits, `.`, `_` and `-` can")]
    Name(String),
    /// The mapping to repair has errors.
    #[error("the old mapping cannot be loaded: {0}")]
    OldMapping(String),
    /// A field cannot have this name.
    #[error("`{0}` cannot name a field: a to z, digits and `_` can, a letter first")]
    FieldName(String),
}

/// The result of learning.
#[derive(Debug, Clone, Serialize)]
pub struct Learned {
    /// The learned mappings: one for each group of pages of one site and layout, if something was learned from it.
    pub mappings: Vec<LearnedMapping>,
    /// Pages that nothing was learned from, each with the reason.
    pub left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, Serialize)]
pub struct LearnedMapping {
    /// The mapping, in the form of a mapping file. It passes `mapping check`.
    pub mapping: Value,
    /// The URLs of the pages that the mapping was learned from.
    pub pages: Vec<String>,
    pub fields: Vec<FieldReport>,
    /// Whether the mapping is a draft: a field has a confidence below 0.9, or fewer than three records were known.
    pub draft: bool,
    /// The page that a person should check, because the best candidates disagree most on it.
    pub page_to_check: Option<String>,
    /// How rows were learned, if the mapping reads rows (their fields are in `fields`); otherwise `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowsReport>,
}

/// The rows of pages, without their fields.
#[derive(Debug, Clone, Serialize)]
pub struct SelectedRows {
    /// The chain (list of extraction steps) that selects the rows.
    pub select: Vec<Value>,
    /// The kind of anchor that the rows are found by, as named in the documentation.
    pub anchor: String,
    /// For each page, the positions in the document of the rows' first elements.
    pub elements: Vec<Vec<usize>>,
}

/// How the rows of pages were learned.
#[derive(Debug, Clone, Serialize)]
pub struct RowsReport {
    pub dataset: String,
    pub key: Vec<String>,
    /// The kind of anchor that rows are selected by.
    pub anchor: String,
    /// How many rows the mapping reads on the pages it was learned from.
    pub rows: usize,
    /// The number of known records, and how many of them are in rows.
    pub known: usize,
    pub matched: usize,
    /// The share of known rows that are selected by a rule learned from other known rows.
    pub confidence: f64,
    /// The reason for the choice of rows, in one sentence for users.
    pub why: String,
}

/// How a field was learned.
#[derive(Debug, Clone, Serialize)]
pub struct FieldReport {
    pub field: String,
    pub multiple: bool,
    /// The processors of the best candidate. `None` if nothing was found, or nothing that is right more often than
    /// wrong; `why` explains it.
    pub processors: Option<Value>,
    pub alternatives: Vec<Value>,
    /// The kind of anchor that the value is found by, as named in the documentation.
    pub anchor: Option<String>,
    /// The share of pages with known values that are read correctly by a candidate learned without that page.
    pub confidence: f64,
    /// The URLs of pages where the known value is read.
    pub agree: Vec<String>,
    pub disagree: Vec<Disagreement>,
    /// Pages whose record is more likely wrong than the page: its value is nowhere on the page, and extraction chains
    /// with different anchors read another value. Such pages count neither for nor against the field.
    pub doubted: Vec<Disagreement>,
    /// The URLs of pages with a known value, each with whether the best candidate found without the page reads the
    /// value. Pages in `doubted` are left out. It is empty for a single page, which cannot show this.
    #[serde(skip)]
    pub without_page: Vec<(String, bool)>,
    /// How many different values the chosen extraction chain reads on each page whose known value it reads correctly.
    /// It is one, or for a list, the length that at least three lists share; `None` if the number differs. If another
    /// page has several values instead of one, the first may be the wrong one. If a list has fewer values, some may be
    /// missing.
    #[serde(skip)]
    pub reads: Option<usize>,
    /// The fewest values that the chosen extraction chain reads on a page whose known value it reads correctly, if it
    /// takes the first of several. If another page has fewer, the first one may be missing there. `None` if the number
    /// is one, or if too few pages prove it.
    #[serde(skip)]
    pub least: Option<usize>,
    /// The URLs of pages without a known value where the chosen extraction chain is less likely right than elsewhere.
    /// Either it reads several values there instead of one; see `reads`. Or the group has too few pages to compare
    /// chains, and another chain, which reads the same known values by another kind of anchor, reads something else
    /// there.
    #[serde(skip)]
    pub disputed: Vec<String>,
    pub runner_up: Option<Value>,
    /// The best candidates with different kinds of anchors, at most three. The chosen one comes first.
    pub candidates: Vec<CandidateReport>,
    /// Why the extraction chain was chosen, or why nothing was found, in one sentence for users.
    pub why: String,
}

/// A report on one of the best candidates of a field.
#[derive(Debug, Clone, Serialize)]
pub struct CandidateReport {
    pub processors: Value,
    pub anchor: String,
    /// The URLs of pages where it reads a known value.
    pub agree: Vec<String>,
    /// The share of pages where this candidate and the chosen one read the same, among pages where either reads
    /// something. It is 0 if there are fewer than five such pages, or if the chosen candidate reads a list by
    /// positions.
    pub agreement: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Disagreement {
    pub url: String,
    pub known: Vec<String>,
    pub read: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    pub url: String,
    pub why: String,
}
