//! A parsed selector (Selectors level 4): compounds, joined by combinators.

use crate::xpath::plan::{NodeTest, Test};

/// A complex selector: compounds, each with the combinator before it.
pub(crate) struct Complex {
    pub(crate) parts: Vec<(Combinator, Compound)>,
    pub(crate) extract: Option<Extract>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combinator {
    Descendant,
    Child,
    NextSibling,
    LaterSibling,
}

pub(crate) struct Compound {
    pub(crate) element: NodeTest,
    pub(crate) tests: Vec<Test>,
    /// Whether `:scope` is among the tests.
    pub(crate) scoped: bool,
}

/// The part of the matching elements that a pseudo-element selects.
pub(crate) enum Extract {
    Text,
    Attribute(usize),
}
