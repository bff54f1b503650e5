//! Evaluates a [`Plan`] on a page.
//!
//! Node-sets are lists in document order without duplicates. All work that can take long counts against the time budget
//! of the page. So evaluation ends in time, if necessary with [`Stop::OutOfTime`]. Only a call of `sxd-xpath` cannot be
//! interrupted: it reads the text of the page at most once for each function in the expression.

use std::ops::ControlFlow;

use super::number::is_space;
use super::plan::{NodeTest, Nodes, Path, Plan, Predicate, Start, Step, StepAxis};
use super::sxd::Single;
use super::walk::{Item, ResolvedTest, Walk, WalkEnd, is_reverse};
use crate::document::Document;
use crate::limits::{Budget, OutOfTime};
use crate::tree::{NameId, NodeId, Tree};

/// Why an evaluation has no value.
#[derive(Debug)]
pub(crate) enum Stop {
    OutOfTime,
    Engine(String),
}

impl From<OutOfTime> for Stop {
    fn from(_: OutOfTime) -> Self {
        Stop::OutOfTime
    }
}

pub(crate) type Evaluated<T> = Result<T, Stop>;

/// A node with its context position and context size for a predicate.
#[derive(Clone, Copy)]
pub(crate) struct EvaluationContext {
    pub(crate) item: Item,
    pub(crate) position: usize,
    pub(crate) size: usize,
}

impl EvaluationContext {
    pub(crate) fn single(item: Item) -> Self {
        EvaluationContext {
            item,
            position: 1,
            size: 1,
        }
    }
}

/// Which part of a node-set is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeDemand {
    All,
    /// At least the first node in document order, if there is one. The result may contain more nodes, but need not.
    First,
}

pub(crate) enum Outcome {
    Nodes(Vec<Item>),
    Single(Single),
}

pub(crate) struct Evaluator<'d> {
    pub(crate) document: &'d Document,
    pub(crate) tree: &'d Tree,
    /// The numbers that the names in the expression have on this page.
    pub(crate) names: &'d [NameId],
    pub(crate) budget: &'d Budget,
    /// The node where the evaluation begins.
    pub(crate) from: Item,
}

impl<'d> Evaluator<'d> {
    pub(crate) fn new(
        document: &'d Document,
        names: &'d [NameId],
        budget: &'d Budget,
        from: Item,
    ) -> Self {
        Evaluator {
            document,
            tree: &document.tree,
            names,
            budget,
            from,
        }
    }

    pub(crate) fn run(&self, plan: &'d Plan) -> Evaluated<Outcome> {
        let place = EvaluationContext::single(self.from);
        Ok(match plan {
            Plan::Nodes(nodes) => {
                Outcome::Nodes(self.evaluate_nodes(nodes, place, NodeDemand::All)?)
            }
            Plan::Boolean(test) => {
                Outcome::Single(Single::Boolean(self.evaluate_test(test, place)?))
            }
            Plan::Number(number) => {
                Outcome::Single(Single::Number(self.evaluate_number(number, place)?))
            }
            Plan::Text(text) => {
                Outcome::Single(Single::Text(self.evaluate_text(text, place)?.into_owned()))
            }
        })
    }

    pub(crate) fn evaluate_nodes(
        &self,
        nodes: &'d Nodes,
        place: EvaluationContext,
        wanted: NodeDemand,
    ) -> Evaluated<Vec<Item>> {
        match nodes {
            Nodes::Path(path) => self.evaluate_path(path, place, wanted),
            Nodes::Union(sets) => {
                let mut union = Vec::new();
                for set in sets {
                    union.append(&mut self.evaluate_nodes(set, place, wanted)?);
                }
                sort_and_dedup(&mut union);
                Ok(union)
            }
            Nodes::Id(text) => {
                let words = self.evaluate_text(text, place)?;
                self.elements_with_id(words.split(is_space))
            }
            Nodes::Ids(nodes) => {
                let items = self.evaluate_nodes(nodes, place, NodeDemand::All)?;
                let texts = items.iter().map(|item| self.string_value(*item));
                self.elements_with_id(texts.flat_map(|text| text.split(is_space)))
            }
        }
    }

    pub(crate) fn first_node(
        &self,
        nodes: &'d Nodes,
        place: EvaluationContext,
    ) -> Evaluated<Option<Item>> {
        if let Nodes::Path(Path {
            start: Start::Context,
            steps,
        }) = nodes
            && steps.is_empty()
        {
            return Ok(Some(place.item));
        }
        Ok(self
            .evaluate_nodes(nodes, place, NodeDemand::First)?
            .first()
            .copied())
    }

    fn elements_with_id<'w>(&self, words: impl Iterator<Item = &'w str>) -> Evaluated<Vec<Item>> {
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let id = self.tree.name_id(&html5ever::local_name!("id"));
        let mut found: Vec<(&str, Item)> = Vec::new();
        for index in self.tree.attributes_named(id) {
            self.budget.spend(1 + words.len())?;
            let value = self.tree.attribute_value(*index);
            let is_first = found.iter().all(|(known, _)| *known != value);
            if words.contains(&value) && is_first {
                found.push((value, Item::node(self.tree.attribute(*index).owner)));
            }
        }
        Ok(found.into_iter().map(|(_, item)| item).collect())
    }

    fn evaluate_path(
        &self,
        path: &'d Path,
        place: EvaluationContext,
        wanted: NodeDemand,
    ) -> Evaluated<Vec<Item>> {
        let wanted_of_start = if path.steps.is_empty() {
            wanted
        } else {
            NodeDemand::All
        };
        let mut set = match &path.start {
            Start::Context => vec![place.item],
            Start::Root => vec![Item::ROOT],
            Start::Filter(nodes, predicates) => {
                let wanted = match predicates.first() {
                    Some(Predicate::Place(1)) => NodeDemand::First,
                    Some(_) => NodeDemand::All,
                    None => wanted_of_start,
                };
                let nodes = self.evaluate_nodes(nodes, place, wanted)?;
                self.filter(predicates, nodes)?
            }
        };
        for (number, step) in path.steps.iter().enumerate() {
            let is_last = number + 1 == path.steps.len();
            set = self.evaluate_step(step, &set, if is_last { wanted } else { NodeDemand::All })?;
            if set.is_empty() {
                break;
            }
        }
        Ok(set)
    }

    fn evaluate_step(
        &self,
        step: &'d Step,
        from: &[Item],
        wanted: NodeDemand,
    ) -> Evaluated<Vec<Item>> {
        if step.predicates.iter().any(Predicate::is_positional) {
            return self.evaluate_positional_step(step, from);
        }
        let in_order = !is_reverse(step.axis);
        let stop_at_first = wanted == NodeDemand::First && in_order && from.len() == 1;
        let mut found = Vec::new();
        self.walk(step, from, |item| {
            if !self.all_hold(&step.predicates, item)? {
                return Ok(true);
            }
            found.push(item);
            Ok(!stop_at_first)
        })?;
        sort_and_dedup(&mut found);
        Ok(found)
    }

    /// Evaluates a step with a predicate that depends on the position. The nodes reached from each node are filtered
    /// separately, in the order of the axis.
    fn evaluate_positional_step(&self, step: &'d Step, from: &[Item]) -> Evaluated<Vec<Item>> {
        let mut found = Vec::new();
        if step.axis == StepAxis::EachChild {
            for siblings in self.children_by_parent(step, from)? {
                found.append(&mut self.filter(&step.predicates, siblings)?);
            }
        } else {
            let is_test = |predicate: &&Predicate| matches!(predicate, Predicate::Holds(_));
            let tests = step.predicates.iter().take_while(is_test).count();
            let (tests, others) = step.predicates.split_at(tests);
            let enough = match others.first() {
                Some(Predicate::Place(place)) => *place,
                _ => usize::MAX,
            };
            for item in from {
                let mut candidates = Vec::new();
                self.walk(step, std::slice::from_ref(item), |candidate| {
                    if self.all_hold(tests, candidate)? {
                        candidates.push(candidate);
                    }
                    Ok(candidates.len() < enough)
                })?;
                found.append(&mut self.filter(others, candidates)?);
            }
        }
        sort_and_dedup(&mut found);
        Ok(found)
    }

    /// Returns the descendants that pass the node test, grouped by their parents.
    fn children_by_parent(&self, step: &'d Step, from: &[Item]) -> Evaluated<Vec<Vec<Item>>> {
        let mut children: Vec<(Option<NodeId>, Item)> = Vec::new();
        self.walk(step, from, |item| {
            children.push((self.tree.parent(item.node), item));
            Ok(true)
        })?;
        children.sort_by_key(|(parent, _)| *parent);
        let families = children.chunk_by(|(one, _), (other, _)| one == other);
        Ok(families
            .map(|family| family.iter().map(|(_, item)| *item).collect())
            .collect())
    }

    /// Calls `visit` for each node that the step reaches, until it returns that the walk ends.
    fn walk(
        &self,
        step: &'d Step,
        from: &[Item],
        mut visit: impl FnMut(Item) -> Evaluated<bool>,
    ) -> Evaluated<()> {
        let visit = |item| match visit(item) {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(WalkEnd::Enough),
            Err(stop) => ControlFlow::Break(WalkEnd::Error(stop)),
        };
        let test = self.resolve_test(&step.test);
        match (Walk {
            tree: self.tree,
            budget: self.budget,
            test,
            visit,
        })
        .run(step.axis, from)
        {
            ControlFlow::Continue(()) | ControlFlow::Break(WalkEnd::Enough) => Ok(()),
            ControlFlow::Break(WalkEnd::Error(stop)) => Err(stop),
        }
    }

    fn resolve_test(&self, test: &'d NodeTest) -> ResolvedTest<'d> {
        match test {
            NodeTest::Name(name) => ResolvedTest::Name(self.names[*name]),
            NodeTest::AnyName => ResolvedTest::AnyName,
            NodeTest::AnyNode => ResolvedTest::AnyNode,
            NodeTest::Text => ResolvedTest::Text,
            NodeTest::Comment => ResolvedTest::Comment,
            NodeTest::Instruction(target) => ResolvedTest::Instruction(target.as_deref()),
        }
    }

    /// Keeps the items that satisfy all predicates. The positions for a predicate count only the items that the
    /// previous predicates have kept.
    fn filter(&self, predicates: &'d [Predicate], mut items: Vec<Item>) -> Evaluated<Vec<Item>> {
        for predicate in predicates {
            let size = items.len();
            match predicate {
                Predicate::Place(place) => {
                    items = items.get(place - 1).copied().into_iter().collect()
                }
                Predicate::Last => items = items.last().copied().into_iter().collect(),
                _ => {
                    let mut kept = Vec::new();
                    for (before, item) in items.iter().enumerate() {
                        let place = EvaluationContext {
                            item: *item,
                            position: before + 1,
                            size,
                        };
                        if self.holds(predicate, place)? {
                            kept.push(*item);
                        }
                    }
                    items = kept;
                }
            }
        }
        Ok(items)
    }

    /// Whether all predicates hold. They must not depend on the position.
    fn all_hold(&self, predicates: &'d [Predicate], item: Item) -> Evaluated<bool> {
        for predicate in predicates {
            if !self.holds(predicate, EvaluationContext::single(item))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn holds(&self, predicate: &'d Predicate, place: EvaluationContext) -> Evaluated<bool> {
        match predicate {
            Predicate::Place(wanted) => Ok(place.position == *wanted),
            Predicate::Last => Ok(place.position == place.size),
            Predicate::Never => Ok(false),
            Predicate::Number(number) => {
                Ok(self.evaluate_number(number, place)? == place.position as f64)
            }
            Predicate::Holds(test) | Predicate::HoldsAtPlace(test) => {
                self.evaluate_test(test, place)
            }
        }
    }
}

fn sort_and_dedup(items: &mut Vec<Item>) {
    if !items.is_sorted_by(|one, other| one < other) {
        items.sort_unstable();
        items.dedup();
    }
}
