//! CSS selectors over a [`Document`].
//!
//! A selector is compiled into the same [`Plan`](crate::xpath::plan::Plan) as XPath expressions, so
//! both have one evaluator, the same indexes and the same time budget.

mod cursor;
mod error;
mod namespace;
mod nth;
mod parser;
mod pseudo;
mod selector;
mod translate;

pub use error::SelectorError;

use crate::document::Document;
use crate::node::NodeRef;
use crate::xpath::plan::{Names, Nodes, Plan};
use crate::xpath::walk::Item;
use crate::xpath::{EvaluateError, XValue};

/// A compiled selector list. It can be applied to any number of pages, on the thread that compiled it.
///
/// Supported are names of elements, `*`, `*|name`, `#id`, `.class`, `[attribute]` with all operators and the flags `i`
/// and `s`, and comments. A selector may begin with one of the combinators ` `, `>`, `+`, `~`. The supported
/// pseudo-classes are `:first-child`, `:last-child`, `:only-child`, `:nth-child()` and `:nth-last-child()` (the last
/// two also with `of`), and the `-of-type` form of each of these. Also supported are `:not()`, `:is()`, `:where()`,
/// `:has()`, `:root`, `:scope`, `:empty`, `:checked`, `:lang()` and `:contains("text")`. A selector may end in `::text`
/// (the text nodes) or `::attr(name)`.
///
/// On HTML pages the names of elements and attributes match in any case, and so do the values of some attributes, such
/// as `type` and `rel`, by the HTML Standard. On XML pages both match as written. Ids and classes match as written.
/// `:scope` matches the node that [`NodeRef::select`] is called on.
pub struct Selector {
    source: String,
    names: Names,
    plan: Plan,
}

impl Selector {
    /// Compiles a selector list of at most 4 KiB.
    pub fn compile(selector: &str) -> Result<Selector, SelectorError> {
        let mut names = Names::for_selector();
        let list = parser::parse(selector, &mut names)?;
        let paths = list
            .into_iter()
            .map(translate::selector_path)
            .map(Nodes::Path)
            .collect();
        let plan = Plan::Nodes(Nodes::Union(paths));
        Ok(Selector {
            source: selector.to_owned(),
            names,
            plan,
        })
    }

    /// The selector as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// Checks that `selector` can be compiled, for example when a mapping is loaded.
pub fn check_selector(selector: &str) -> Result<(), SelectorError> {
    Selector::compile(selector).map(drop)
}

impl Document {
    /// Finds the matches in document order, without duplicates: elements, or their texts or attributes if the selector
    /// ends in `::text` or `::attr()`.
    pub fn select(&self, selector: &Selector) -> Result<Vec<XValue<'_>>, EvaluateError> {
        self.root().select(selector)
    }
}

impl<'d> NodeRef<'d> {
    /// Finds the matches within this node. The whole selector must match within it: `ul a` finds links in lists that
    /// are below this node.
    pub fn select(self, selector: &Selector) -> Result<Vec<XValue<'d>>, EvaluateError> {
        self.document
            .evaluate_plan(&selector.plan, &selector.names, Item::node(self.id))
    }
}
