//! Translates CSS selectors into paths of steps through the tree: forward to find elements, backward to test one
//! element.

use super::selector::{Combinator, Complex, Compound, Extract};
use crate::xpath::ast::Axis;
use crate::xpath::plan::{NodeTest, Nodes, Path, Predicate, Start, Step, StepAxis, Test};

/// The path of a whole selector. A selector that begins with `:scope` starts at the node itself.
pub(crate) fn selector_path(selector: Complex) -> Path {
    let begins_at_scope = selector
        .parts
        .first()
        .is_some_and(|(combinator, first)| *combinator == Combinator::Descendant && first.scoped);
    let mut path = relative_path(selector);
    if begins_at_scope {
        path.steps[0].axis = StepAxis::Axis(Axis::DescendantOrSelf);
    }
    path
}

/// The path from a node to the elements that the selector matches.
pub(crate) fn relative_path(selector: Complex) -> Path {
    let mut steps = Vec::new();
    for (combinator, compound) in selector.parts {
        match combinator {
            Combinator::Descendant => steps.push(step(Axis::Descendant, compound)),
            Combinator::Child => steps.push(step(Axis::Child, compound)),
            Combinator::LaterSibling => steps.push(step(Axis::FollowingSibling, compound)),
            Combinator::NextSibling => {
                steps.push(nearest_sibling_step(Axis::FollowingSibling));
                steps.push(step(Axis::Myself, compound));
            }
        }
    }
    match selector.extract {
        Some(Extract::Text) => steps.push(plain_step(Axis::Child, NodeTest::Text)),
        Some(Extract::Attribute(name)) => {
            steps.push(plain_step(Axis::Attribute, NodeTest::Name(name)));
        }
        None => {}
    }
    Path {
        start: Start::Context,
        steps,
    }
}

/// The condition that is true for elements that match the selector.
pub(crate) fn match_condition(selector: Complex) -> Test {
    let mut steps = Vec::new();
    let mut before: Option<Combinator> = None;
    for (combinator, compound) in selector.parts.into_iter().rev() {
        let axis = match before {
            None => Axis::Myself,
            Some(Combinator::Descendant) => Axis::Ancestor,
            Some(Combinator::Child) => Axis::Parent,
            Some(Combinator::LaterSibling) => Axis::PrecedingSibling,
            Some(Combinator::NextSibling) => {
                steps.push(nearest_sibling_step(Axis::PrecedingSibling));
                Axis::Myself
            }
        };
        steps.push(step(axis, compound));
        before = Some(combinator);
    }
    Test::Exists(path_from_context(steps))
}

pub(crate) fn path_from_context(steps: Vec<Step>) -> Nodes {
    Nodes::Path(Path {
        start: Start::Context,
        steps,
    })
}

pub(crate) fn children(test: NodeTest) -> Nodes {
    path_from_context(vec![plain_step(Axis::Child, test)])
}

fn step(axis: Axis, compound: Compound) -> Step {
    let predicates = compound.tests.into_iter().map(Predicate::Holds).collect();
    Step {
        axis: StepAxis::Axis(axis),
        test: compound.element,
        predicates,
    }
}

/// The step from a node to its next sibling in the direction of `axis`.
fn nearest_sibling_step(axis: Axis) -> Step {
    let predicates = vec![Predicate::Place(1)];
    Step {
        axis: StepAxis::Axis(axis),
        test: NodeTest::AnyName,
        predicates,
    }
}

fn plain_step(axis: Axis, test: NodeTest) -> Step {
    Step {
        axis: StepAxis::Axis(axis),
        test,
        predicates: Vec::new(),
    }
}
