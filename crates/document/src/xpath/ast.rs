//! The syntax tree of XPath 1.0 expressions (https://www.w3.org/TR/xpath-10/), with abbreviations
//! expanded.

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Or(Vec<Expression>),
    And(Vec<Expression>),
    Compare(Comparison, Box<Expression>, Box<Expression>),
    Arithmetic(Operator, Box<Expression>, Box<Expression>),
    Negate(Box<Expression>),
    Union(Vec<Expression>),
    Path(Path),
    Literal(String),
    Number(f64),
    Call(Function, Vec<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path {
    pub(crate) start: Start,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Start {
    Context,
    Root,
    /// A bracketed expression or a function call, with its predicates: `(//p)[1]`.
    Filter(Box<Expression>, Vec<Expression>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) axis: Axis,
    pub(crate) test: Test,
    pub(crate) predicates: Vec<Expression>,
}

impl Step {
    pub(crate) fn new(axis: Axis, test: Test) -> Self {
        Step {
            axis,
            test,
            predicates: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Following,
    FollowingSibling,
    Namespace,
    Parent,
    Preceding,
    PrecedingSibling,
    Myself,
}

impl Axis {
    pub(crate) const NAMES: [(&'static str, Axis); 13] = [
        ("ancestor", Axis::Ancestor),
        ("ancestor-or-self", Axis::AncestorOrSelf),
        ("attribute", Axis::Attribute),
        ("child", Axis::Child),
        ("descendant", Axis::Descendant),
        ("descendant-or-self", Axis::DescendantOrSelf),
        ("following", Axis::Following),
        ("following-sibling", Axis::FollowingSibling),
        ("namespace", Axis::Namespace),
        ("parent", Axis::Parent),
        ("preceding", Axis::Preceding),
        ("preceding-sibling", Axis::PrecedingSibling),
        ("self", Axis::Myself),
    ];
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    /// An element of this name, or an attribute on the attribute axis.
    Name(String),
    /// Any element, or any attribute on the attribute axis.
    AnyName,
    AnyNode,
    Text,
    Comment,
    Instruction(Option<String>),
}

/// The type of an expression's value. XPath has variables, but they are not supported, so the type is known before
/// evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nodes,
    Boolean,
    Number,
    Text,
}

macro_rules! functions {
    ($($variant:ident $name:literal $least:literal..=$most:literal $yields:ident,)*) => {
        /// The functions of XPath's core library (section 4).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Function { $($variant),* }

        impl Function {
            pub(crate) const ALL: &'static [Function] = &[$(Function::$variant),*];

            pub(crate) fn name(self) -> &'static str {
                match self { $(Function::$variant => $name),* }
            }

            /// The number of arguments that the function takes.
            pub(crate) fn arguments(self) -> std::ops::RangeInclusive<usize> {
                match self { $(Function::$variant => $least..=$most),* }
            }

            pub(crate) fn yields(self) -> Kind {
                match self { $(Function::$variant => Kind::$yields),* }
            }
        }
    };
}

functions! {
    Last "last" 0..=0 Number,
    Position "position" 0..=0 Number,
    Count "count" 1..=1 Number,
    Id "id" 1..=1 Nodes,
    LocalName "local-name" 0..=1 Text,
    NamespaceUri "namespace-uri" 0..=1 Text,
    Name "name" 0..=1 Text,
    String "string" 0..=1 Text,
    Concat "concat" 2..=1000 Text,
    StartsWith "starts-with" 2..=2 Boolean,
    Contains "contains" 2..=2 Boolean,
    SubstringBefore "substring-before" 2..=2 Text,
    SubstringAfter "substring-after" 2..=2 Text,
    Substring "substring" 2..=3 Text,
    StringLength "string-length" 0..=1 Number,
    NormalizeSpace "normalize-space" 0..=1 Text,
    Translate "translate" 3..=3 Text,
    Boolean "boolean" 1..=1 Boolean,
    Not "not" 1..=1 Boolean,
    True "true" 0..=0 Boolean,
    False "false" 0..=0 Boolean,
    Lang "lang" 1..=1 Boolean,
    Number "number" 0..=1 Number,
    Sum "sum" 1..=1 Number,
    Floor "floor" 1..=1 Number,
    Ceiling "ceiling" 1..=1 Number,
    Round "round" 1..=1 Number,
}

impl Expression {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Expression::Or(_) | Expression::And(_) | Expression::Compare(..) => Kind::Boolean,
            Expression::Arithmetic(..) | Expression::Negate(_) | Expression::Number(_) => {
                Kind::Number
            }
            Expression::Union(_) | Expression::Path(_) => Kind::Nodes,
            Expression::Literal(_) => Kind::Text,
            Expression::Call(function, _) => function.yields(),
        }
    }

    /// Whether the value depends on the context position or size. `position()` and `last()` within nested predicates do
    /// not count, because they refer to other nodes.
    pub(crate) fn depends_on_position(&self) -> bool {
        match self {
            Expression::Call(Function::Position | Function::Last, _) => true,
            Expression::Or(operands)
            | Expression::And(operands)
            | Expression::Union(operands)
            | Expression::Call(_, operands) => operands.iter().any(Expression::depends_on_position),
            Expression::Compare(_, left, right) | Expression::Arithmetic(_, left, right) => {
                left.depends_on_position() || right.depends_on_position()
            }
            Expression::Negate(inner)
            | Expression::Path(Path {
                start: Start::Filter(inner, _),
                ..
            }) => inner.depends_on_position(),
            Expression::Path(_) | Expression::Literal(_) | Expression::Number(_) => false,
        }
    }
}
