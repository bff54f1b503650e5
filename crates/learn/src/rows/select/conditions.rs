//! Conditions of a selector that all rows meet, and as few other elements as possible.

use std::collections::BTreeSet;

use webfill_document::NodeRef;

use super::super::likeness::{is_empty, kind_tokens};
use super::super::target::number_of_tag;
use crate::anchors::{is_valid_step_name, xpath_literal};
use crate::generated::looks_generated;

/// The most conditions of one selector.
const MOST_CONDITIONS: usize = 3;

/// A condition of a selector that all rows meet.
pub(super) struct Condition {
    pub(super) xpath: String,
    pub(super) burden: f64,
    meets: Box<dyn Fn(NodeRef<'_>) -> bool>,
}

/// Chooses conditions that all rows meet, and that as few other selected elements as possible meet.
pub(super) fn choose_conditions(
    rows: &[NodeRef<'_>],
    open: &[NodeRef<'_>],
    mut wrong: Vec<NodeRef<'_>>,
    stride: Option<(usize, usize)>,
) -> Vec<Condition> {
    let shown: Vec<NodeRef<'_>> = open.iter().copied().filter(|one| !is_empty(*one)).collect();
    let mut possible = candidate_conditions(rows, &wrong, stride);
    possible.retain(|one| rows.iter().all(|row| (one.meets)(*row)));
    // Conditions that keep incomplete rows come first. A condition that drops them is used only if the others do not
    // suffice.
    let (keeping, others): (Vec<_>, Vec<_>) = possible
        .into_iter()
        .partition(|one| shown.iter().all(|open| (one.meets)(*open)));
    let mut chosen = Vec::new();
    for mut possible in [keeping, others] {
        while chosen.len() < MOST_CONDITIONS && !wrong.is_empty() {
            let dropped =
                |one: &Condition| wrong.iter().filter(|other| !(one.meets)(**other)).count();
            let worth = |one: &Condition| dropped(one) as f64 / wrong.len() as f64 - one.burden;
            let best = (0..possible.len())
                .filter(|&at| dropped(&possible[at]) > 0)
                .max_by(|&one, &other| {
                    worth(&possible[one])
                        .total_cmp(&worth(&possible[other]))
                        .then(other.cmp(&one))
                });
            let Some(best) = best else { break };
            let condition = possible.swap_remove(best);
            wrong.retain(|other| (condition.meets)(*other));
            chosen.push(condition);
        }
    }
    chosen
}

fn has_token(element: NodeRef<'_>, token: &str) -> bool {
    let classes = element.attribute("class").unwrap_or_default();
    classes.split_whitespace().any(|one| one == token)
}

fn condition_on_class_token(token: &str) -> Option<String> {
    let literal = xpath_literal(&format!(" {token} "))?;
    Some(format!(
        "contains(concat(' ', normalize-space(@class), ' '), {literal})"
    ))
}

/// The names of elements inside an element: children by tag, and all descendants by tag and class, and by tag alone
/// (with an empty class).
fn descendant_names<'d>(element: NodeRef<'d>) -> BTreeSet<(&'d str, Option<&'d str>)> {
    let mut found = BTreeSet::new();
    for child in element.descendants().take(400) {
        let Some(tag) = child.tag().filter(|tag| is_valid_step_name(tag)) else {
            continue;
        };
        if child.parent() == Some(element) {
            found.insert((tag, None));
        } else {
            found.insert((tag, Some("")));
        }
        found.extend(kind_tokens(child).map(|token| (tag, Some(token))));
    }
    found
}

fn intersection<T: Ord + Clone>(mut sets: impl Iterator<Item = BTreeSet<T>>) -> BTreeSet<T> {
    let first = sets.next().unwrap_or_default();
    sets.fold(first, |shared, set| {
        shared.intersection(&set).cloned().collect()
    })
}

fn union<T: Ord>(sets: impl Iterator<Item = BTreeSet<T>>) -> BTreeSet<T> {
    sets.flatten().collect()
}

fn candidate_conditions(
    rows: &[NodeRef<'_>],
    wrong: &[NodeRef<'_>],
    stride: Option<(usize, usize)>,
) -> Vec<Condition> {
    let mut found = Vec::new();
    let mut add = |xpath: String, burden: f64, meets: Box<dyn Fn(NodeRef<'_>) -> bool>| {
        found.push(Condition {
            xpath,
            burden,
            meets,
        });
    };
    if let Some((width, rest)) = stride {
        let meets = move |element: NodeRef<'_>| number_of_tag(element) % width == rest;
        add(
            format!("position() mod {width} = {rest}"),
            0.3,
            Box::new(meets),
        );
    }
    let own = |element: &NodeRef<'_>| -> BTreeSet<String> {
        kind_tokens(*element).map(str::to_owned).collect()
    };
    for token in intersection(rows.iter().map(own)) {
        if let Some(test) = condition_on_class_token(&token) {
            add(
                test,
                0.05,
                Box::new(move |element| has_token(element, &token)),
            );
        }
    }
    let of_rows = union(rows.iter().map(own));
    for token in union(wrong.iter().map(own)).difference(&of_rows) {
        let token = token.clone();
        if let Some(test) = condition_on_class_token(&token) {
            add(
                format!("not({test})"),
                0.12,
                Box::new(move |element| !has_token(element, &token)),
            );
        }
    }
    if rows.iter().all(|row| row.attribute("class").is_none()) {
        add(
            "not(@class)".to_owned(),
            0.2,
            Box::new(|element| element.attribute("class").is_none()),
        );
    }
    add_child_conditions(rows, wrong, &mut add);
    add_attribute_conditions(rows, &mut add);
    add_count_conditions(rows, &mut add);
    let tag = rows
        .first()
        .and_then(|row| row.tag())
        .unwrap_or_default()
        .to_owned();
    if is_valid_step_name(&tag) {
        let xpath = format!("not(ancestor::{tag})");
        let meets = move |element: NodeRef<'_>| {
            let mut up = element.parent();
            while let Some(node) = up {
                if node.tag() == Some(tag.as_str()) {
                    return false;
                }
                up = node.parent();
            }
            true
        };
        add(xpath, 0.15, Box::new(meets));
    }
    found
}

type Add<'a> = &'a mut dyn FnMut(String, f64, Box<dyn Fn(NodeRef<'_>) -> bool>);

fn add_child_conditions(rows: &[NodeRef<'_>], wrong: &[NodeRef<'_>], add: Add<'_>) {
    let own = |element: &NodeRef<'_>| -> BTreeSet<(String, Option<String>)> {
        let children = descendant_names(*element).into_iter();
        children
            .map(|(tag, token)| (tag.to_owned(), token.map(str::to_owned)))
            .collect()
    };
    let test = |tag: &str, token: &Option<String>| match token {
        None => Some(tag.to_owned()),
        Some(token) if token.is_empty() => Some(format!(".//{tag}")),
        Some(token) => Some(format!(".//{tag}[{}]", condition_on_class_token(token)?)),
    };
    let has = |tag: String, token: Option<String>| {
        move |element: NodeRef<'_>| match &token {
            None => element
                .children()
                .any(|child| child.tag() == Some(tag.as_str())),
            Some(token) => element.descendants().any(|node| {
                node.tag() == Some(tag.as_str()) && (token.is_empty() || has_token(node, token))
            }),
        }
    };
    for (tag, token) in intersection(rows.iter().map(own)) {
        if let Some(xpath) = test(&tag, &token) {
            let burden = if token.is_some() { 0.1 } else { 0.06 };
            add(xpath, burden, Box::new(has(tag, token)));
        }
    }
    let of_rows = union(rows.iter().map(own));
    for (tag, token) in union(wrong.iter().map(own)).difference(&of_rows) {
        if let Some(xpath) = test(tag, token) {
            let has = has(tag.clone(), token.clone());
            add(
                format!("not({xpath})"),
                0.15,
                Box::new(move |element| !has(element)),
            );
        }
    }
}

fn add_attribute_conditions(rows: &[NodeRef<'_>], add: Add<'_>) {
    let names = |element: &NodeRef<'_>| -> BTreeSet<String> {
        let names = element
            .attributes()
            .map(|attribute| attribute.name().to_owned());
        names
            .filter(|name| is_valid_step_name(name) && name != "class" && name != "style")
            .collect()
    };
    for name in intersection(rows.iter().map(names)) {
        let xpath = format!("@{name}");
        add(
            xpath,
            0.1,
            Box::new(move |element| element.attribute(&name).is_some()),
        );
    }
    let ids = rows.iter().filter_map(|row| row.attribute("id"));
    let starts: BTreeSet<&str> = ids
        .map(|id| id.trim_end_matches(|c: char| c.is_ascii_digit()))
        .collect();
    if let (1, Some(start)) = (starts.len(), starts.first().copied())
        && start.len() > 1
        && !looks_generated(start)
        && let Some(written) = xpath_literal(start)
    {
        let start = start.to_owned();
        let meets = move |element: NodeRef<'_>| {
            element
                .attribute("id")
                .is_some_and(|id| id.starts_with(&start))
        };
        add(format!("starts-with(@id,{written})"), 0.1, Box::new(meets));
    }
}

fn add_count_conditions(rows: &[NodeRef<'_>], add: Add<'_>) {
    let count = |element: NodeRef<'_>, tag: &str| {
        element
            .children()
            .filter(|child| child.tag() == Some(tag))
            .count()
    };
    for tag in ["td", "div", "span", "p", "a"] {
        let counts: BTreeSet<usize> = rows.iter().map(|row| count(*row, tag)).collect();
        let least = counts.first().copied().unwrap_or(0);
        if least > 1 {
            let meets = move |element: NodeRef<'_>| count(element, tag) >= least;
            add(format!("count({tag}) >= {least}"), 0.2, Box::new(meets));
        }
    }
}
