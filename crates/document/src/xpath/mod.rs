//! XPath 1.0 over a [`Document`].
//!
//! An expression is parsed ([`parser`]) and compiled into a plan ([`lower`], [`plan`]) once. Sets of nodes are found in
//! the tree ([`walk`], [`evaluate`]). The remaining functions and operators are compiled by `sxd-xpath` ([`scalar`],
//! [`sxd`]).

pub(crate) mod ast;
mod capitals;
mod condition;
mod context;
mod error;
mod evaluate;
mod idioms;
mod language;
mod lexer;
mod lower;
mod number;
mod parser;
pub(crate) mod plan;
mod scalar;
mod single;
mod steps;
#[cfg(test)]
mod stock;
pub(crate) mod sxd;
mod value;
pub(crate) mod walk;

use std::time::Instant;

use html5ever::LocalName;

pub use capitals::{NameUnlikeHtml, names_unlike_html};
pub use context::ignores_context;
pub use error::XPathError;
pub use value::{EvaluateError, XValue};

use self::evaluate::{Evaluator, Outcome, Stop};
use self::lower::Lowering;
use self::plan::{Names, Plan};
use self::walk::Item;
use crate::document::Document;
use crate::limits::Budget;
use crate::node::NodeRef;
use crate::tree::{NO_NAME, NameId};

/// A compiled XPath 1.0 expression, which can be evaluated on any number of pages.
///
/// It stays on the thread that compiled it, like the compiled forms of `sxd-xpath`. Compiling takes a few microseconds.
///
/// Names are written as in the page, in lower case for HTML and without namespaces: `//svg/path`. Elements of XML in
/// the namespace of the root element need no prefix. The prefixes of common vocabularies (`dc:`, `media:`, `itunes:`,
/// `xlink:`, ...) are part of the name; other prefixes are refused. There are no variables.
pub struct XPath {
    source: String,
    names: Names,
    plan: Plan,
}

impl XPath {
    /// Compiles `expression`, of at most 4 KiB and 64 levels of nesting. Refuses unknown functions,
    /// variables, axes and prefixes, wrong argument counts, and node-sets where none are allowed.
    pub fn compile(expression: &str) -> Result<XPath, XPathError> {
        let parsed = parser::parse(expression)?;
        let mut names = Names::default();
        let plan = Lowering::new(expression, &mut names).lower_expression(&parsed)?;
        Ok(XPath {
            source: expression.to_owned(),
            names,
            plan,
        })
    }

    /// The expression as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// Checks that `expression` can be compiled, for example when a mapping is loaded.
pub fn check_xpath(expression: &str) -> Result<(), XPathError> {
    XPath::compile(expression).map(drop)
}

impl Document {
    /// Evaluates an expression with the document as the context node. Returns one value per node in document order, or
    /// one value if the expression yields a string, number or boolean.
    ///
    /// All evaluations on a page share one time budget ([`crate::Limits::evaluation_time`]). When it is used up, they
    /// end with [`EvaluateError::OutOfTime`].
    pub fn evaluate(&self, xpath: &XPath) -> Result<Vec<XValue<'_>>, EvaluateError> {
        self.evaluate_plan(&xpath.plan, &xpath.names, Item::ROOT)
    }

    /// Runs a plan and returns its values.
    pub(crate) fn evaluate_plan(
        &self,
        plan: &Plan,
        names: &Names,
        from: Item,
    ) -> Result<Vec<XValue<'_>>, EvaluateError> {
        Ok(match self.run(plan, names, from)? {
            Outcome::Nodes(items) => items
                .into_iter()
                .map(|item| XValue::from_item(self, item))
                .collect(),
            Outcome::Single(single) => vec![XValue::from_single(single)],
        })
    }

    /// Runs a plan within the time that is left for this page.
    fn run(&self, plan: &Plan, names: &Names, from: Item) -> Result<Outcome, EvaluateError> {
        let started = Instant::now();
        let left = self.time_left.get();
        let out_of_time = || EvaluateError::OutOfTime {
            budget: self.evaluation_time(),
        };
        if left.is_zero() {
            return Err(out_of_time());
        }
        let budget = Budget::with_deadline(started + left);
        let names: Vec<_> = names
            .iter()
            .map(|name| self.resolve_name(name, names.any_case))
            .collect();
        let outcome = Evaluator::new(self, &names, &budget, from).run(plan);
        self.time_left.set(left.saturating_sub(started.elapsed()));
        outcome.map_err(|stop| match stop {
            Stop::OutOfTime => out_of_time(),
            Stop::Engine(message) => EvaluateError::Engine(message),
        })
    }
}

impl Document {
    /// Returns the number of a name on this page. On an HTML page only names of SVG and MathML have capitals
    /// (`viewBox`). On an XML page names in the root's namespace have no prefix.
    fn resolve_name(&self, name: &LocalName, any_case: bool) -> NameId {
        let written = self.tree.name_id(name);
        if written == NO_NAME && any_case && self.is_html {
            return self.tree.name_id(&name.to_ascii_lowercase());
        }
        match self.vocabulary.without_prefix(name) {
            Some(local) if written == NO_NAME => self.tree.name_id(&LocalName::from(local)),
            _ => written,
        }
    }
}

impl<'d> NodeRef<'d> {
    /// Evaluates an expression with this node as the context node: `.//a/@href` finds links within it. A path from the
    /// root (`//a`) still searches the whole document.
    pub fn evaluate(self, xpath: &XPath) -> Result<Vec<XValue<'d>>, EvaluateError> {
        self.document
            .evaluate_plan(&xpath.plan, &xpath.names, Item::node(self.id))
    }
}
