//! The plan of an expression, which evaluation runs.
//!
//! Node-sets, comparisons of node-sets, and the few tests found in most scrapers' predicates are answered from the
//! tree and its indexes. All other functions, operators and conversions are a [`Scalar`], which `sxd-xpath`
//! evaluates. CSS selectors are compiled into the same form.

use html5ever::LocalName;

use super::ast::{Axis, Comparison};
use super::scalar::Scalar;

/// A set of nodes.
pub(crate) enum Nodes {
    Path(Path),
    Union(Vec<Nodes>),
    /// The elements whose `id` is a word of a text.
    Id(Box<Text>),
    /// The elements whose `id` is a word of the text of one of several nodes.
    Ids(Box<Nodes>),
}

pub(crate) struct Path {
    pub(crate) start: Start,
    pub(crate) steps: Vec<Step>,
}

pub(crate) enum Start {
    Context,
    Root,
    /// A set whose predicates are evaluated in document order.
    Filter(Box<Nodes>, Vec<Predicate>),
}

pub(crate) struct Step {
    pub(crate) axis: StepAxis,
    pub(crate) test: NodeTest,
    pub(crate) predicates: Vec<Predicate>,
}

/// An axis, or two steps in one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepAxis {
    Axis(Axis),
    /// `descendant-or-self::node()/child::`, kept apart because a predicate depends on the position among siblings.
    EachChild,
    /// `descendant-or-self::node()/attribute::`
    EachAttribute,
}

pub(crate) enum NodeTest {
    /// The index of the name in [`Names`].
    Name(usize),
    AnyName,
    AnyNode,
    Text,
    Comment,
    Instruction(Option<String>),
}

pub(crate) enum Predicate {
    /// The node at this position: `[3]`.
    Place(usize),
    /// The last node: `[last()]`.
    Last,
    /// No node: `[1.5]`.
    Never,
    /// A number that is compared with the position.
    Number(Number),
    /// A test that does not depend on the position.
    Holds(Test),
    /// A test with `position()` or `last()`.
    HoldsAtPlace(Test),
}

impl Predicate {
    /// Whether the predicate depends on the other nodes of its step.
    pub(crate) fn is_positional(&self) -> bool {
        !matches!(self, Predicate::Holds(_) | Predicate::Never)
    }
}

pub(crate) enum Test {
    Always(bool),
    Exists(Nodes),
    /// Whether the text is not empty.
    IsText(Text),
    Compare(Comparison, Side, Side),
    /// Whether two strings are the same.
    SameText(Text, Text),
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
    Contains(Text, Text),
    StartsWith(Text, Text),
    Lang(Text),
    /// `:lang()`: the element's language is in one of the ranges.
    Language(Vec<String>),
    /// `:scope`: the node within which the selector is evaluated, or the root element if that node is the document.
    Scope,
    /// An element with this name in any namespace.
    LocalName(String),
    /// The common tests of one attribute of the node itself.
    Attribute(AttributeTest),
    /// The node's position among its siblings is `step * n + offset` for some n from 0.
    Sibling(SiblingPlace),
    Scalar(Scalar),
}

pub(crate) struct AttributeTest {
    pub(crate) name: usize,
    pub(crate) relation: Relation,
    pub(crate) value: String,
    pub(crate) case: LetterCase,
}

/// Whether the case of ASCII letters matters in a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LetterCase {
    Matters,
    Ignored,
    IgnoredInHtml,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Present,
    Equals,
    Contains,
    StartsWith,
    EndsWith,
    /// The value is one of the words of the attribute.
    HasWord,
    /// The attribute is the value, or begins with the value and a hyphen.
    HasPrefixWord,
}

pub(crate) struct SiblingPlace {
    pub(crate) step: i32,
    pub(crate) offset: i32,
    pub(crate) same_name: bool,
    pub(crate) from_end: bool,
    /// If set, only siblings for which this test holds count.
    pub(crate) of: Option<Box<Test>>,
}

/// A side of a comparison of which at least one side is a set of nodes.
pub(crate) enum Side {
    Nodes(Nodes),
    Text(Text),
    Number(Number),
    Boolean(Box<Test>),
}

pub(crate) enum Text {
    Literal(String),
    /// The string-value of the first node.
    Of(Nodes),
    /// A text with its white space trimmed and collapsed.
    Normalized(Box<Text>),
    /// The name of the first node; without its prefix if `local`.
    Name {
        nodes: Nodes,
        local: bool,
    },
    Scalar(Scalar),
}

pub(crate) enum Number {
    Literal(f64),
    Count(Nodes),
    Sum(Nodes),
    Scalar(Scalar),
}

/// A whole expression.
pub(crate) enum Plan {
    Nodes(Nodes),
    Boolean(Test),
    Number(Number),
    Text(Text),
}

/// The names in an expression. Each page numbers names in its own way, so the numbers are looked up once per
/// evaluation.
#[derive(Default)]
pub(crate) struct Names {
    names: Vec<LocalName>,
    /// Whether a name that an HTML page does not have as written is looked up in lower case.
    pub(crate) any_case: bool,
}

impl Names {
    pub(crate) fn for_selector() -> Names {
        Names {
            any_case: true,
            ..Names::default()
        }
    }

    pub(crate) fn get_or_insert(&mut self, name: &str) -> usize {
        let name = LocalName::from(name);
        match self.names.iter().position(|known| *known == name) {
            Some(place) => place,
            None => {
                self.names.push(name);
                self.names.len() - 1
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &LocalName> {
        self.names.iter()
    }
}
