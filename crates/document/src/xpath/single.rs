//! Evaluates expressions that yield a string or a number.

use std::borrow::Cow;

use super::evaluate::{Evaluated, EvaluationContext, Evaluator, NodeDemand, Stop};
use super::number::{is_space, text_to_number};
use super::plan::{Number, Text};
use super::scalar::{Operand, Scalar};
use super::sxd::{Single, SxdTree};
use super::walk::Item;
use crate::tree::Kind;

/// The error if the copy of the page for `sxd-xpath` would be too large.
const TOO_LARGE: &str = "the page is too large for this expression: use a simpler one";

/// The cost of one call of `sxd-xpath`, in units of the time budget.
const CALL_UNITS: usize = 50;

impl<'d> Evaluator<'d> {
    pub(crate) fn string_value(&self, item: Item) -> &'d str {
        match item.attribute() {
            Some(index) => self.tree.attribute_value(index),
            None => self.tree.string_value(item.node),
        }
    }

    pub(crate) fn evaluate_text(
        &self,
        text: &'d Text,
        place: EvaluationContext,
    ) -> Evaluated<Cow<'d, str>> {
        match text {
            Text::Literal(text) => Ok(Cow::Borrowed(text)),
            Text::Of(nodes) => {
                let first = self.first_node(nodes, place)?;
                Ok(Cow::Borrowed(
                    first.map_or("", |item| self.string_value(item)),
                ))
            }
            Text::Normalized(text) => {
                let text = self.evaluate_text(text, place)?;
                self.budget.spend(text.len() / 16)?;
                Ok(normalize_space(text))
            }
            Text::Name { nodes, local } => {
                let name = self
                    .first_node(nodes, place)?
                    .map_or("", |item| self.name_of(item));
                let local_part = name.rsplit_once(':').map_or(name, |(_, local)| local);
                Ok(Cow::Borrowed(if *local { local_part } else { name }))
            }
            Text::Scalar(scalar) => match self.evaluate_scalar(scalar, place)? {
                Single::Text(text) => Ok(Cow::Owned(text)),
                other => Err(wrong_type_error("a string", &other)),
            },
        }
    }

    fn name_of(&self, item: Item) -> &'d str {
        if let Some(index) = item.attribute() {
            return self.tree.name(self.tree.attribute(index).name);
        }
        match self.tree.kind(item.node) {
            Kind::Element(name) => self.tree.name(name),
            Kind::Instruction => self
                .tree
                .aside_of(item.node)
                .map_or("", |aside| &aside.target),
            Kind::Document | Kind::Text | Kind::Comment => "",
        }
    }

    pub(crate) fn evaluate_number(
        &self,
        number: &'d Number,
        place: EvaluationContext,
    ) -> Evaluated<f64> {
        match number {
            Number::Literal(number) => Ok(*number),
            Number::Count(nodes) => {
                Ok(self.evaluate_nodes(nodes, place, NodeDemand::All)?.len() as f64)
            }
            Number::Sum(nodes) => {
                let items = self.evaluate_nodes(nodes, place, NodeDemand::All)?;
                self.numbers(&items).map(|numbers| numbers.iter().sum())
            }
            Number::Scalar(scalar) => match self.evaluate_scalar(scalar, place)? {
                Single::Number(number) => Ok(number),
                other => Err(wrong_type_error("a number", &other)),
            },
        }
    }

    pub(crate) fn numbers(&self, items: &[Item]) -> Evaluated<Vec<f64>> {
        let mut numbers = Vec::with_capacity(items.len());
        for item in items {
            let value = self.string_value(*item);
            self.budget.spend(1 + value.len() / 8)?;
            numbers.push(text_to_number(value));
        }
        Ok(numbers)
    }

    /// Evaluates the variables on the tree, and then the expression with `sxd-xpath`.
    pub(crate) fn evaluate_scalar(
        &self,
        scalar: &'d Scalar,
        place: EvaluationContext,
    ) -> Evaluated<Single> {
        let mut variables = Vec::with_capacity(scalar.variables.len());
        for variable in &scalar.variables {
            let value = match &variable.value {
                Operand::Position => Single::Number(place.position as f64),
                Operand::Last => Single::Number(place.size as f64),
                Operand::Text(text) => Single::Text(self.evaluate_text(text, place)?.into_owned()),
                Operand::Number(number) => Single::Number(self.evaluate_number(number, place)?),
                Operand::Test(test) => Single::Boolean(self.evaluate_test(test, place)?),
            };
            if let Single::Text(text) = &value {
                self.budget.spend(text.len() / 8)?;
            }
            variables.push((variable.name.as_str(), value));
        }
        self.budget.spend(CALL_UNITS)?;
        if !scalar.needs_node {
            let sxd = self.document.blank_sxd.get_or_init(SxdTree::empty);
            return sxd
                .evaluate(&scalar.expression, Item::ROOT, None, variables)
                .map_err(Stop::Engine);
        }
        self.budget.spend(self.reading_cost(place.item))?;
        let Some(sxd) = self.document.sxd_tree() else {
            return Err(Stop::Engine(TOO_LARGE.to_owned()));
        };
        let attribute = place
            .item
            .attribute()
            .map(|index| self.tree.name(self.tree.attribute(index).name));
        sxd.evaluate(&scalar.expression, place.item, attribute, variables)
            .map_err(Stop::Engine)
    }

    /// The cost of reading everything within a node, in units of the time budget.
    fn reading_cost(&self, item: Item) -> usize {
        let nodes = self.tree.end(item.node) - item.node;
        nodes as usize + self.tree.text(item.node).len() / 8
    }
}

fn wrong_type_error(wanted: &str, got: &Single) -> Stop {
    Stop::Engine(format!("expected {wanted}, got {got:?}"))
}

fn normalize_space(text: Cow<'_, str>) -> Cow<'_, str> {
    let trimmed = text.trim_matches(is_space);
    let plain =
        trimmed.len() == text.len() && !text.contains(['\t', '\r', '\n']) && !text.contains("  ");
    if plain {
        return text;
    }
    let mut normalized = String::with_capacity(trimmed.len());
    for word in trimmed.split(is_space).filter(|word| !word.is_empty()) {
        if !normalized.is_empty() {
            normalized.push(' ');
        }
        normalized.push_str(word);
    }
    Cow::Owned(normalized)
}

/// Whether a text becomes `wanted` when its white space is normalized, and how many of its bytes were read to find out.
pub(super) fn normalizes_to(text: &str, wanted: &str) -> (bool, usize) {
    let mut rest = text.trim_start_matches(is_space);
    let read = |rest: &str| text.len() - rest.len();
    if wanted.is_empty() {
        return (rest.is_empty(), read(rest));
    }
    for word in wanted.split(' ') {
        let after = rest.strip_prefix(word).filter(|after| {
            let ends = after.is_empty() || after.starts_with(is_space);
            ends && !word.is_empty() && !word.contains(is_space)
        });
        let Some(after) = after else {
            return (false, read(rest) + word.len());
        };
        rest = after.trim_start_matches(is_space);
    }
    (rest.is_empty(), read(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_compared_as_if_it_were_normalized() {
        let texts = [
            "",
            " ",
            "a",
            " a\t",
            "a b",
            "\na \r b ",
            "a  b",
            "ab",
            "a b c",
            "a\tb",
            "a\u{a0}b",
            "\u{a0}",
        ];
        for text in texts {
            for wanted in texts {
                let normalized = normalize_space(Cow::Borrowed(text));
                let same = normalizes_to(text, wanted).0;
                assert_eq!(same, normalized == wanted, "{text:?} {wanted:?}");
            }
        }
    }
}
