//! The plan that an expression is compiled into, in the form that is evaluated.
//!
//! Node-sets, comparisons of node-sets, and the most common tests in predicates are evaluated on the tree and its
//! indexes. All other functions, operators and conversions are a [`Scalar`], which `sxd-xpath` evaluates. CSS selectors
//! are compiled into the same form.

use html5ever::LocalName;

use super::ast::{Axis, Comparison};
use super::scalar::Scalar;

/// A set of nodes.
pub(crate) enum Nodes {
    Path(Path),
    Union(Vec<Nodes>),
    /// The elements with an `id` that is one of the words of a text.
    Id(Box<Text>),
    /// The elements with an `id` that is one of the words in the texts of these nodes.
    Ids(Box<Nodes>),
}

pub(crate) struct Path {
    pub(crate) start: Start,
    pub(crate) steps: Vec<Step>,
}

pub(crate) enum Start {
    Context,
    Root,
    /// A set of nodes with predicates. Positions in the predicates count in document order.
    Filter(Box<Nodes>, Vec<Predicate>),
}

pub(crate) struct Step {
    pub(crate) axis: StepAxis,
    pub(crate) test: NodeTest,
    pub(crate) predicates: Vec<Predicate>,
}

/// An axis, or two steps that are evaluated as one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepAxis {
    Axis(Axis),
    /// The step `descendant-or-self::node()/child::`. It is used if a predicate depends on the position among siblings.
    EachChild,
    /// The step `descendant-or-self::node()/attribute::`.
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
    /// Holds for the node at this position: `[3]`.
    Place(usize),
    /// Holds for the last node: `[last()]`.
    Last,
    /// Holds for no node: `[1.5]`.
    Never,
    /// Holds if the position is equal to this number.
    Number(Number),
    /// A test that does not depend on the position.
    Holds(Test),
    /// A test that depends on the position, because it contains `position()` or `last()`.
    HoldsAtPlace(Test),
}

impl Predicate {
    /// Whether the predicate depends on the position of a node among the nodes of its step.
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
    /// `:scope`: whether the element is the node that the selector is evaluated within, or the root element if that
    /// node is the document.
    Scope,
    /// An element with this name in any namespace.
    LocalName(String),
    /// A common test of one attribute of the node itself, such as `@class = 'x'`.
    Attribute(AttributeTest),
    /// Whether the position of the node among its siblings is `step * n + offset`, for some n from 0 on.
    Sibling(SiblingPlace),
    Scalar(Scalar),
}

pub(crate) struct AttributeTest {
    pub(crate) name: usize,
    pub(crate) relation: Relation,
    pub(crate) value: String,
    pub(crate) case: LetterCase,
}

/// Whether the case of ASCII letters matters in the value of an attribute.
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
    /// Whether one of the words in the attribute's value is this value.
    HasWord,
    /// Whether the attribute's value is this value, or begins with it and a hyphen.
    HasPrefixWord,
}

pub(crate) struct SiblingPlace {
    pub(crate) step: i32,
    pub(crate) offset: i32,
    pub(crate) same_name: bool,
    pub(crate) from_end: bool,
    /// If set, only siblings that pass this test count.
    pub(crate) of: Option<Box<Test>>,
}

/// One side of a comparison. At least one of the two sides is a set of nodes.
pub(crate) enum Side {
    Nodes(Nodes),
    Text(Text),
    Number(Number),
    Boolean(Box<Test>),
}

pub(crate) enum Text {
    Literal(String),
    /// The text of the first node of a set.
    Of(Nodes),
    /// A text whose white space is trimmed and collapsed (`normalize-space()`).
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

/// The plan of a whole expression, by the type of its value.
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
    /// Whether a name is looked up in lower case as well if an HTML page does not contain it as written.
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
