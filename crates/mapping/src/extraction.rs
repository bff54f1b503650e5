//! The input and the result of an extraction.

use std::time::Instant;

use serde::Serialize;
use serde_json::{Map, Value};
use webfill_document::Shell;
use webfill_urls::{Encoding, Url};

use crate::listing::Listing;

/// The format of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PageKind {
    Html,
    Xml,
    Json,
    Text,
}

/// A page to extract from, as decoded text.
#[derive(Debug, Clone, Copy)]
pub struct PageInput<'a> {
    /// The canonical URL that the page was read from, after redirects.
    pub url: &'a Url,
    pub kind: PageKind,
    pub text: &'a str,
}

/// Name and value of one item of a document's metadata. The names are `title`, `author`, `created`, `modified`,
/// `pages`.
pub type Metadatum = (&'static str, String);

/// The parts of a page that are extracted in addition to the fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestedParts {
    /// The links that the mapping's url_parsers select.
    pub mapped_links: bool,
    /// The links from rows to pages that may fill their records.
    pub row_links: bool,
    /// Every link of the page.
    pub all_links: bool,
    /// The feeds (RSS, Atom) that the page names.
    pub feeds: bool,
    /// Whether the page is an empty shell, which its scripts would fill. Known only if the page is parsed into a tree.
    pub shell: bool,
    /// When the extraction must end.
    pub deadline: Option<Instant>,
    /// The encoding of the page, which browsers also use for the queries of its links; UTF-8 if unset.
    pub encoding: Option<&'static Encoding>,
}

/// The values, rows and links that were extracted from a page.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Extraction {
    /// The name of the mapping that matched the URL.
    pub mapping: Option<String>,
    /// The version of the mapping: the first 32 digits of the SHA-256 of its file.
    pub mapping_version: Option<String>,
    /// The layout of the page, see [`webfill_document::Document::sketch`]. `None` if no mapping matched, or if the
    /// extraction did not parse the page into a tree.
    pub template: Option<String>,
    /// The evidence that the page is an empty shell, which its scripts would fill. `None` if it is not one, or if this
    /// was not requested.
    #[serde(skip)]
    pub shell: Option<Shell>,
    /// The values of the fields: a text, a number, or a list of them if the field has `multiple`. Fields without a
    /// value are absent.
    pub fields: Map<String, Value>,
    /// The rows of the page, one listing for each row rule of the mapping.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listings: Vec<Listing>,
    /// How the list that the page belongs to continues on further pages; `None` if the mapping has no rows.
    #[serde(skip)]
    pub continuation: Option<Continuation>,
    /// For each field whose value is not from its first chain: the number of the alternative that yielded it, from 1.
    /// The number is 0 if the field has no value because the page's text can be read in two ways.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub alternatives: Map<String, Value>,
    /// The links that the mapping selects, absolute and canonical, without duplicates. A link that is
    /// not an http or https URL is included as written, so that the dispatcher can count it.
    pub links: Vec<String>,
    /// Every link of the page, if requested, in the same form as `links`.
    pub all_links: Vec<String>,
    /// The feeds (RSS, Atom) that the page names as its alternates, if requested: absolute and canonical URLs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub feeds: Vec<String>,
    /// Why the end of the page was not read; `None` if the whole page was read.
    pub truncated: Option<String>,
    /// Messages about values that were cut, skipped or dropped.
    pub warnings: Vec<String>,
}

/// How a list of rows continues, as seen from one of its pages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Continuation {
    /// The page's links to further pages of the same mapping.
    pub next: Vec<String>,
    /// Whether the page's URL shows that this is not the first page of the list.
    pub is_further: bool,
    /// Whether the page gives the number of pages of the list.
    pub is_counted: bool,
    /// Whether the URLs of the further pages are computed from a count, but the page does not have this count.
    pub lacks_count: bool,
    /// Whether rows, links or values were left out because of a limit.
    pub is_cut: bool,
}

/// Why an extraction has failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The deadline passed.
    #[error("the page took too long, at {subject} of mapping {mapping}")]
    OutOfTime { mapping: String, subject: String },
}
