//! What goes into an extraction and what comes out of it.

use std::time::Instant;

use serde::Serialize;
use serde_json::{Map, Value};
use webfill_urls::Url;

/// How a page's text is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PageKind {
    Html,
    Xml,
    Json,
    Text,
}

/// A decoded page.
#[derive(Debug, Clone, Copy)]
pub struct PageInput<'a> {
    /// The canonical URL that the page was read from, after redirects.
    pub url: &'a Url,
    pub kind: PageKind,
    pub text: &'a str,
}

/// What is wanted of a page besides its fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wants {
    /// The links that the mapping's url_parsers point out.
    pub mapped_links: bool,
    /// Every link of the page.
    pub all_links: bool,
    /// When the extraction is given up.
    pub deadline: Option<Instant>,
}

/// What was found on a page.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Extraction {
    /// The name of the mapping that matched the URL.
    pub mapping: Option<String>,
    /// A text, a number, or a list of them where the field has `multiple`; fields without a value
    /// are not there.
    pub fields: Map<String, Value>,
    /// The links that the mapping points out, absolute and canonical, each once. A link that is
    /// no http or https URL is there as it was written, so that whoever judges links can count it.
    pub links: Vec<String>,
    /// Every link of the page, if they were wanted; written like `links`.
    pub all_links: Vec<String>,
    /// Why the end of the page was not read.
    pub truncated: Option<String>,
    /// What was cut, skipped or given up.
    pub warnings: Vec<String>,
}

/// Why a page yielded nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The deadline passed.
    #[error("the page took too long, at {subject} of mapping {mapping}")]
    OutOfTime { mapping: String, subject: String },
}
