//! Parses pages (HTML5 and XML) into trees, and evaluates XPath 1.0 expressions and CSS selectors on them. Parsing has
//! limits ([`Limits`]), and evaluation has a time budget. The crate accesses neither the network nor files.
//!
//! ```
//! use webfill_document::{Document, Limits, XPath};
//!
//! let page = "<ul><li><a href='/1'>one</a><li><a href='/2'>two</a></ul>";
//! let document = Document::parse_html(page, &Limits::default());
//! let links = XPath::compile("//li/a/@href").unwrap();
//! let found: Vec<_> = document.evaluate(&links).unwrap().iter().map(|v| v.text()).collect();
//! assert_eq!(found, ["/1", "/2"]);
//! ```
//!
//! A document stays on the thread that parsed it, and a compiled expression on the thread that compiled it. No page can
//! overflow a stack of 2 MiB.

mod css;
mod document;
mod freeze;
mod growing;
mod limits;
mod node;
mod page;
mod parse;
mod serialize;
mod shell;
mod sink;
mod sketch;
mod tokenizer;
mod tree;
mod vocabulary;
mod xpath;

pub use css::{Selector, SelectorError, check_selector};
pub use document::Document;
pub use limits::{Limits, Truncation};
pub use node::{AttributeRef, NodeRef};
pub use shell::Shell;
/// Panics if this crate's HTML tokenizer and that of html5ever read `page` differently.
#[cfg(feature = "compare")]
#[doc(hidden)]
pub use tokenizer::compare::assert_tokenizers_agree as compare_tokenizers;
pub use xpath::{
    EvaluateError, NameUnlikeHtml, XPath, XPathError, XValue, check_xpath, ignores_context,
    names_unlike_html,
};
