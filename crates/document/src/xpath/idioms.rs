//! Recognises common forms of conditions, such as `contains(@class, 'x')`, and plans them as tests that need no
//! `sxd-xpath`.

use super::ast::{self, Axis, Comparison, Expression, Function};
use super::plan::{
    AttributeTest, LetterCase, NodeTest, Nodes, Path, Relation, Side, Start, StepAxis, Test, Text,
};

/// If the node-set is a single attribute of the context node, as in `@href`, returns the number of its name.
pub(crate) fn lone_attribute(nodes: &Nodes) -> Option<usize> {
    let Nodes::Path(Path {
        start: Start::Context,
        steps,
    }) = nodes
    else {
        return None;
    };
    let [step] = steps.as_slice() else {
        return None;
    };
    match step.test {
        NodeTest::Name(name)
            if step.axis == StepAxis::Axis(Axis::Attribute) && step.predicates.is_empty() =>
        {
            Some(name)
        }
        _ => None,
    }
}

pub(crate) fn attribute_test(name: usize, relation: Relation, value: String) -> Test {
    Test::Attribute(AttributeTest {
        name,
        relation,
        value,
        case: LetterCase::Matters,
    })
}

/// Plans a comparison. `@name = 'value'` becomes a test of the attribute.
pub(crate) fn comparison_test(operator: Comparison, left: Side, right: Side) -> Test {
    let attribute = match (&left, &right) {
        (Side::Nodes(nodes), Side::Text(Text::Literal(value)))
        | (Side::Text(Text::Literal(value)), Side::Nodes(nodes)) => {
            lone_attribute(nodes).map(|name| (name, value.clone()))
        }
        _ => None,
    };
    match attribute {
        Some((name, value)) if operator == Comparison::Equal => {
            attribute_test(name, Relation::Equals, value)
        }
        _ => Test::Compare(operator, left, right),
    }
}

/// Plans a test of a text. Every text contains the empty text, even the text of a missing attribute, so a test for an
/// empty part is not a test of an attribute.
pub(crate) fn text_test(relation: Relation, text: Text, part: Text) -> Test {
    if let (Text::Of(nodes), Text::Literal(value)) = (&text, &part)
        && let Some(name) = lone_attribute(nodes)
        && !value.is_empty()
    {
        return attribute_test(name, relation, value.clone());
    }
    match relation {
        Relation::StartsWith => Test::StartsWith(text, part),
        _ => Test::Contains(text, part),
    }
}

/// Returns the attribute and the word of `contains(concat(' ', normalize-space(@class), ' '), ' name ')`, the usual
/// test for a class. Without `normalize-space`, the expression tests for a word only if single spaces separate the
/// words, so that form is not recognised.
pub(crate) fn class_idiom<'e>(
    text: &'e Expression,
    part: &'e Expression,
) -> Option<(&'e str, &'e str)> {
    let Expression::Literal(part) = part else {
        return None;
    };
    let word = part.strip_prefix(' ')?.strip_suffix(' ')?;
    let Expression::Call(Function::Concat, pieces) = text else {
        return None;
    };
    let [
        Expression::Literal(before),
        attribute,
        Expression::Literal(after),
    ] = pieces.as_slice()
    else {
        return None;
    };
    let Expression::Call(Function::NormalizeSpace, arguments) = attribute else {
        return None;
    };
    let [
        Expression::Path(ast::Path {
            start: ast::Start::Context,
            steps,
        }),
    ] = arguments.as_slice()
    else {
        return None;
    };
    let [
        ast::Step {
            axis: Axis::Attribute,
            test: ast::Test::Name(name),
            predicates,
        },
    ] = steps.as_slice()
    else {
        return None;
    };
    let is_word = !word.is_empty() && !word.contains([' ', '\t', '\r', '\n']);
    (before == " " && after == " " && is_word && predicates.is_empty()).then_some((name, word))
}
