//! A parsed CSS selector (Selectors level 4): compounds, such as `a.x`, joined by combinators, such as `>`.

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
    /// Whether one of the tests is `:scope`.
    pub(crate) scoped: bool,
}

/// What a pseudo-element (`::text` or `::attr(name)`) selects of the matching elements.
pub(crate) enum Extract {
    Text,
    Attribute(usize),
}
