//! Evaluates conditions: predicates and boolean expressions on a node.

use rustc_hash::FxHashSet;

use super::ast::Comparison;
use super::evaluate::{Evaluated, EvaluationContext, Evaluator, NodeDemand, Stop};
use super::number::{is_space, text_to_number};
use super::plan::{AttributeTest, LetterCase, Relation, SiblingPlace, Side, Test, Text};
use super::single::normalizes_to;
use super::sxd::Single;
use super::walk::Item;
use crate::tree::{Kind, NodeId, ROOT};

impl<'d> Evaluator<'d> {
    pub(crate) fn evaluate_test(
        &self,
        test: &'d Test,
        place: EvaluationContext,
    ) -> Evaluated<bool> {
        match test {
            Test::Always(value) => Ok(*value),
            Test::Exists(nodes) => Ok(self.first_node(nodes, place)?.is_some()),
            Test::IsText(Text::Normalized(text)) => {
                let text = self.evaluate_text(text, place)?;
                let spaces = text.len() - text.trim_start_matches(is_space).len();
                self.budget.spend(spaces / 16)?;
                Ok(spaces < text.len())
            }
            Test::IsText(text) => Ok(!self.evaluate_text(text, place)?.is_empty()),
            Test::Compare(comparison, left, right) => self.compare(*comparison, left, right, place),
            Test::SameText(left, right) => self.is_same_text(left, right, place),
            Test::And(tests) => {
                for test in tests {
                    if !self.evaluate_test(test, place)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Test::Or(tests) => {
                for test in tests {
                    if self.evaluate_test(test, place)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::Not(test) => Ok(!self.evaluate_test(test, place)?),
            Test::Contains(text, part) => {
                let (text, part) = (
                    self.evaluate_text(text, place)?,
                    self.evaluate_text(part, place)?,
                );
                self.budget.spend(text.len() / 32)?;
                Ok(text.contains(&*part))
            }
            Test::StartsWith(text, part) => Ok(self
                .evaluate_text(text, place)?
                .starts_with(&*self.evaluate_text(part, place)?)),
            Test::Lang(language) => {
                let wanted = self.evaluate_text(language, place)?;
                self.is_in_language(place.item.node, &wanted)
            }
            Test::Language(ranges) => self.is_in_a_range(place.item.node, ranges),
            Test::Scope => Ok(self.is_scope(place.item)),
            Test::LocalName(name) => Ok(self.has_local_name(place.item, name)),
            Test::Attribute(test) => Ok(self.attribute_holds(test, place.item)),
            Test::Sibling(wanted) => self.is_sibling_at(wanted, place.item),
            Test::Scalar(scalar) => match self.evaluate_scalar(scalar, place)? {
                Single::Boolean(value) => Ok(value),
                other => Err(Stop::Engine(format!("expected a boolean, got {other:?}"))),
            },
        }
    }

    fn attribute_holds(&self, test: &AttributeTest, item: Item) -> bool {
        if !item.is_node() {
            return false;
        }
        let Some(value) = self.tree.attribute_of(item.node, self.names[test.name]) else {
            return false;
        };
        let ignores_case = match test.case {
            LetterCase::Matters => false,
            LetterCase::Ignored => true,
            LetterCase::IgnoredInHtml => self.document.is_html,
        };
        if ignores_case {
            let wanted = test.value.to_ascii_lowercase();
            relation_holds(test.relation, &value.to_ascii_lowercase(), &wanted)
        } else {
            relation_holds(test.relation, value, &test.value)
        }
    }

    fn is_scope(&self, item: Item) -> bool {
        let is_root = || item.is_node() && self.tree.parent(item.node) == Some(ROOT);
        item == self.from
            || (self.from == Item::ROOT && is_root() && self.tree.is_element(item.node))
    }

    /// Whether the local name of an item is `wanted`. On an HTML page elements have no prefixes, so the local name of
    /// `o:p` is `o:p`.
    fn has_local_name(&self, item: Item, wanted: &str) -> bool {
        let Kind::Element(name) = self.tree.kind(item.node) else {
            return false;
        };
        let name = self.tree.name(name);
        match self.document.is_html {
            true => name == wanted || name == wanted.to_ascii_lowercase(),
            false => name.rsplit(':').next() == Some(wanted),
        }
    }

    fn is_sibling_at(&self, wanted: &'d SiblingPlace, item: Item) -> Evaluated<bool> {
        let node = item.node;
        let kind = self.tree.kind(node);
        let counts = |sibling: NodeId| match &wanted.of {
            _ if !self.tree.is_element(sibling) => Ok(false),
            Some(of) => self.evaluate_test(of, EvaluationContext::single(Item::node(sibling))),
            None => Ok(!wanted.same_name || self.tree.kind(sibling) == kind),
        };
        if !counts(node)? {
            return Ok(false);
        }
        let next = |node: NodeId| match wanted.from_end {
            true => self.tree.next_sibling(node),
            false => self.tree.previous_sibling(node),
        };
        let farthest = if wanted.step > 0 {
            i64::MAX
        } else {
            i64::from(wanted.offset)
        };
        let mut place = 1_i64;
        let mut nearer = next(node);
        while let Some(sibling) = nearer {
            self.budget.spend(1)?;
            place += i64::from(counts(sibling)?);
            if place > farthest {
                return Ok(false);
            }
            nearer = next(sibling);
        }
        let beyond = place - i64::from(wanted.offset);
        Ok(match i64::from(wanted.step) {
            0 => beyond == 0,
            step => beyond % step == 0 && beyond / step >= 0,
        })
    }

    /// Whether two texts are the same. If `normalize-space()` is compared with a literal, the words are compared one by
    /// one. So a long text is usually rejected by its first word.
    fn is_same_text(
        &self,
        left: &'d Text,
        right: &'d Text,
        place: EvaluationContext,
    ) -> Evaluated<bool> {
        if let (Text::Normalized(text), Text::Literal(wanted))
        | (Text::Literal(wanted), Text::Normalized(text)) = (left, right)
        {
            let text = self.evaluate_text(text, place)?;
            let (is_same, read) = normalizes_to(&text, wanted);
            self.budget.spend(read / 16)?;
            return Ok(is_same);
        }
        let (left, right) = (
            self.evaluate_text(left, place)?,
            self.evaluate_text(right, place)?,
        );
        self.budget.spend(left.len().min(right.len()) / 32)?;
        Ok(left == right)
    }

    /// Evaluates a comparison with a node-set (section 3.4). It is true if it holds for at least one of the nodes. If
    /// the other side is a boolean, it is compared with whether there are any nodes.
    fn compare(
        &self,
        comparison: Comparison,
        left: &'d Side,
        right: &'d Side,
        place: EvaluationContext,
    ) -> Evaluated<bool> {
        match (left, right) {
            (Side::Nodes(left), Side::Nodes(right)) => {
                let left = self.evaluate_nodes(left, place, NodeDemand::All)?;
                let right = self.evaluate_nodes(right, place, NodeDemand::All)?;
                self.compare_sets(comparison, &left, &right)
            }
            (Side::Nodes(nodes), Side::Boolean(test)) => {
                let exists = self.first_node(nodes, place)?.is_some();
                Ok(holds_for_booleans(
                    comparison,
                    exists,
                    self.evaluate_test(test, place)?,
                ))
            }
            (Side::Nodes(nodes), other) => {
                let items = self.evaluate_nodes(nodes, place, NodeDemand::All)?;
                self.compare_set(comparison, &items, other, place)
            }
            (other, Side::Nodes(_)) => self.compare(swap_sides(comparison), right, other, place),
            _ => Err(Stop::Engine(
                "a comparison without a set of nodes".to_owned(),
            )),
        }
    }

    fn compare_set(
        &self,
        comparison: Comparison,
        items: &[Item],
        other: &'d Side,
        place: EvaluationContext,
    ) -> Evaluated<bool> {
        let number = match other {
            Side::Number(number) => self.evaluate_number(number, place)?,
            Side::Text(text) => {
                let text = self.evaluate_text(text, place)?;
                if matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
                    let equal = comparison == Comparison::Equal;
                    return self.any_holds(items, |value| (value == text) == equal);
                }
                text_to_number(&text)
            }
            Side::Nodes(_) | Side::Boolean(_) => {
                return Err(Stop::Engine("a comparison of the wrong kind".to_owned()));
            }
        };
        self.any_holds(items, |value| {
            holds_for_numbers(comparison, text_to_number(value), number)
        })
    }

    fn compare_sets(
        &self,
        comparison: Comparison,
        left: &[Item],
        right: &[Item],
    ) -> Evaluated<bool> {
        match comparison {
            Comparison::Equal => {
                let values = self.string_values(left)?;
                self.any_holds(right, |value| values.contains(value))
            }
            // If one of the sets has several values, or if their only values differ, some pair of values differs.
            Comparison::NotEqual => {
                let (left, right) = (self.string_values(left)?, self.string_values(right)?);
                let both = !left.is_empty() && !right.is_empty();
                Ok(both && (left.len() > 1 || right.len() > 1 || left != right))
            }
            _ => {
                let (left, right) = (self.numbers(left)?, self.numbers(right)?);
                let less = matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
                let low = |numbers: &[f64]| numbers.iter().copied().fold(f64::NAN, f64::min);
                let high = |numbers: &[f64]| numbers.iter().copied().fold(f64::NAN, f64::max);
                let best = if less {
                    (low(&left), high(&right))
                } else {
                    (high(&left), low(&right))
                };
                Ok(holds_for_numbers(comparison, best.0, best.1))
            }
        }
    }

    fn any_holds(&self, items: &[Item], mut holds: impl FnMut(&str) -> bool) -> Evaluated<bool> {
        for item in items {
            let value = self.string_value(*item);
            self.budget.spend(1 + value.len() / 32)?;
            if holds(value) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn string_values(&self, items: &[Item]) -> Evaluated<FxHashSet<&'d str>> {
        let mut values = FxHashSet::default();
        for item in items {
            let value = self.string_value(*item);
            self.budget.spend(1 + value.len() / 8)?;
            values.insert(value);
        }
        Ok(values)
    }
}

fn relation_holds(relation: Relation, value: &str, wanted: &str) -> bool {
    match relation {
        Relation::Present => true,
        Relation::Equals => value == wanted,
        Relation::Contains => value.contains(wanted),
        Relation::StartsWith => value.starts_with(wanted),
        Relation::EndsWith => value.ends_with(wanted),
        Relation::HasWord => value
            .split(|c| is_space(c) || c == '\u{c}')
            .any(|word| word == wanted),
        Relation::HasPrefixWord => value
            .strip_prefix(wanted)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
    }
}

fn swap_sides(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        equality => equality,
    }
}

fn holds_for_booleans(comparison: Comparison, left: bool, right: bool) -> bool {
    holds_for_numbers(
        comparison,
        f64::from(u8::from(left)),
        f64::from(u8::from(right)),
    )
}

fn holds_for_numbers(comparison: Comparison, left: f64, right: f64) -> bool {
    match comparison {
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
        Comparison::Less => left < right,
        Comparison::LessOrEqual => left <= right,
        Comparison::Greater => left > right,
        Comparison::GreaterOrEqual => left >= right,
    }
}
