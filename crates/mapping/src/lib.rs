//! The mapping engine: finds the mapping of a URL, and extracts fields and links from its page. No
//! network.
//!
//! A [`MappingSet`] is loaded once and checked completely: every error in every file is reported with
//! its position. An [`Engine`] uses a set on one thread. Each processor is declared once, in a table (`catalogue`). The
//! checks, [`schema`] and [`processors_manual`] are made from it.
//!
//! ```
//! use std::sync::Arc;
//! use webfill_mapping::{
//!     Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source,
//! };
//! use webfill_urls::Url;
//!
//! let text = r#"{
//!     "name": "people",
//!     "url_patterns": [{"type": "host", "pattern": "people.example"}],
//!     "fields": [{"name": "name", "processors": [
//!         {"type": "xpath", "parameters": {"expression": "//h1/text()"}},
//!         {"type": "trim"}
//!     ]}]
//! }"#;
//! let source = Source { name: "people.json".into(), text: text.into() };
//! let set = Arc::new(MappingSet::from_sources(vec![source]).unwrap());
//! let engine = Engine::new(set, Limits::default());
//! let url = Url::parse("https://people.example/ada").unwrap();
//! let page = PageInput { url: &url, kind: PageKind::Html, text: "<h1> Ada </h1>" };
//! let extraction = engine.extract(page, RequestedParts::default()).unwrap();
//! assert_eq!(extraction.fields["name"], "Ada");
//! ```
//!
//! For each page, `engine` finds the mapping (`url_index`) and runs the `chain` of every field and
//! url_parser on the `page`, which is parsed only as far as they need it.

mod catalogue;
mod chain;
mod columns;
mod engine;
mod entities;
mod entry;
mod extraction;
mod fault;
mod item;
mod json_positions;
mod json_query;
mod json_text;
mod json_wrapping;
mod keys;
mod limits;
mod link_scan;
mod linked_data;
mod listing;
mod manual;
mod mapping;
mod page;
mod page_text;
mod parallel;
mod parameters;
mod pattern;
mod plain_links;
mod processors;
mod reader;
mod reading;
mod request_headers;
mod required_literals;
mod robots_directives;
mod row_extraction;
mod rows;
mod run;
mod schema;
mod selectors;
mod set;
mod source;
mod tables;
mod trace;
mod url_index;
mod url_pattern;
mod value_text;

pub use engine::Engine;
pub use extraction::{
    Continuation, ExtractError, Extraction, Metadatum, PageInput, PageKind, RequestedParts,
};
pub use fault::{Fault, LoadErrors, nearest_first};
pub use limits::Limits;
pub use listing::{Listing, Row};
pub use manual::processors_manual;
pub use mapping::PageLane;
pub use parallel::ParallelLists;
pub use processors::duration::seconds_of_duration;
pub use processors::measure::{Measure, round_decimals};
pub use reading::{FoundMatch, FoundNode, Reading};
pub use request_headers::normalize_request_header;
pub use robots_directives::is_nofollow_tag;
pub use rows::RECORD_ID;
pub use schema::{case_schema, mapping_file_schema};
pub use set::{MappingIndex, MappingSet};
pub use source::Source;
pub use tables::{ColumnOfRow, columns_of_row};
pub use trace::{FieldTrace, RowTrace, RowsTrace, StepTrace, Trace, UrlParserTrace, Values};
pub use value_text::value_text;
pub use webfill_document::Shell;
