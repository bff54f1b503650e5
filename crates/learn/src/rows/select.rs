//! Finds an XPath that selects all rows of the pages, and nothing else.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use webfill_document::{NodeRef, XPath};

use super::likeness::kind_tokens;
use super::prepared_page::PreparedPage;
use super::standing::{Layout, RecordElements};
use super::target::{Target, header_texts, number_of_tag};
use crate::anchors::{is_valid_step_name, own_anchors, xpath_literal};
use crate::generated::looks_generated;
use crate::labels::Leaks;
use crate::steps::{absolute_paths, relative_paths};
use crate::survival::Anchor;

/// How many known rows are used to make selectors, and how many levels above a row are searched for anchors.
const HEADS: usize = 4;
const LEVELS: usize = 7;

/// The most conditions of one selector.
const MOST_CONDITIONS: usize = 3;

/// To how many selectors conditions are added as a trial.
const TRIED: usize = 150;

/// An XPath that selects rows, with the elements that it selects.
pub(super) struct RowSelector<'d> {
    pub(super) expression: String,
    pub(super) anchor: Anchor,
    /// The selected elements of each page, in page order.
    pub(super) rows: Vec<Vec<NodeRef<'d>>>,
    /// How well the selection agrees with the known rows of the pages, as F1.
    pub(super) f1: f64,
    /// An XPath condition that only the first element of each row meets, if rows consist of several elements.
    pub(super) first: Option<String>,
}

pub(super) fn select<'d>(
    sheets: &[PreparedPage<'d>],
    standings: &[RecordElements<'d>],
    layout: &Layout<'d>,
    target: &Target<'d>,
    leaks: &Leaks,
) -> Option<RowSelector<'d>> {
    let mut bases = base_selectors(sheets, standings, layout, leaks);
    bases.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
    bases.truncate(TRIED);
    let mut best: Option<(f64, RowSelector<'d>)> = None;
    for base in bases {
        let Some((score, selected)) = add_conditions(sheets, target, base) else {
            continue;
        };
        if best.as_ref().is_none_or(|(most, _)| score > *most) {
            best = Some((score, selected));
        }
    }
    let (_, mut selected) = best?;
    if layout.is_wide && target.stride.is_none() {
        let others: Vec<NodeRef<'d>> = target.others.iter().map(|(_, other)| *other).collect();
        let rows: Vec<NodeRef<'d>> = target.rows.iter().map(|(_, row)| *row).collect();
        let tag = rows.first().and_then(|row| row.tag()).unwrap_or_default();
        let alike: Vec<NodeRef<'d>> = others
            .into_iter()
            .filter(|other| other.tag() == Some(tag))
            .collect();
        let mut first = vec![format!("self::{tag}")];
        let conditions = choose_conditions(&rows, &[], alike, None);
        first.extend(conditions.into_iter().map(|one| one.xpath));
        selected.first = Some(first.join(" and "));
    }
    Some(selected)
}

/// A selector that conditions may be added to.
struct Base {
    anchor: Anchor,
    expression: String,
    burden: f64,
}

fn rank(base: &Base) -> f64 {
    base.burden - base.anchor.survival()
}

fn base_selectors(
    sheets: &[PreparedPage<'_>],
    standings: &[RecordElements<'_>],
    layout: &Layout<'_>,
    leaks: &Leaks,
) -> Vec<Base> {
    let mut bases: BTreeMap<String, Base> = BTreeMap::new();
    let mut add = |anchor: Anchor, expression: String, burden: f64| {
        let base = bases.entry(expression.clone());
        base.or_insert(Base {
            anchor,
            expression,
            burden,
        });
    };
    let step = layout.heads.len().div_ceil(HEADS).max(1);
    for (number, head) in layout.heads.iter().step_by(step) {
        let sheet = &sheets[standings[*number].sheet];
        add_row_selectors(sheet, *head, leaks, &mut add);
        add_selectors_above(sheet, *head, leaks, &mut add);
    }
    bases.into_values().collect()
}

/// Adds selectors that use names (ids, classes) of the row itself.
fn add_row_selectors(
    sheet: &PreparedPage<'_>,
    head: NodeRef<'_>,
    leaks: &Leaks,
    add: &mut dyn FnMut(Anchor, String, f64),
) {
    let Some(tag) = head.tag().filter(|tag| is_valid_step_name(tag)) else {
        return;
    };
    for (anchor, expression, burden) in own_anchors(&sheet.places, head, leaks) {
        let is_of_one = expression.starts_with('(') || anchor == Anchor::Id;
        if !is_of_one {
            add(anchor, expression, burden);
        }
    }
    for attribute in head.attributes().take(24) {
        let (name, value) = (attribute.name(), attribute.value());
        let is_type = matches!(name, "itemtype" | "role" | "typeof");
        if is_type && let Some(value) = xpath_literal(value).filter(|_| !leaks.occur_in(value)) {
            add(Anchor::Itemprop, format!("//{tag}[@{name}={value}]"), 0.0);
        } else if (name.starts_with("data-") || name == "itemscope") && is_valid_step_name(name) {
            add(Anchor::Data, format!("//{tag}[@{name}]"), 0.1);
        }
    }
}

/// Adds selectors that use anchors above or before the rows.
fn add_selectors_above(
    sheet: &PreparedPage<'_>,
    head: NodeRef<'_>,
    leaks: &Leaks,
    add: &mut dyn FnMut(Anchor, String, f64),
) {
    let (Some(tag), Some(parent)) = (
        head.tag().filter(|tag| is_valid_step_name(tag)),
        head.parent(),
    ) else {
        return;
    };
    let mut node = parent;
    for level in 0..LEVELS {
        let mut starts = own_anchors(&sheet.places, node, leaks);
        starts.extend(table_selectors(node, leaks));
        starts.extend(heading_selector(node, leaks));
        for (anchor, start, burden) in starts {
            let burden = burden + 0.05 * level as f64;
            for (steps, more) in relative_paths(node, parent) {
                add(anchor, format!("{start}{steps}/{tag}"), burden + more);
            }
            add(anchor, format!("{start}//{tag}"), burden + 0.1);
        }
        match node.parent().filter(|parent| parent.is_element()) {
            Some(parent) => node = parent,
            None => break,
        }
    }
    for (path, burden) in absolute_paths(parent).into_iter().flatten() {
        add(Anchor::Path, format!("{path}/{tag}"), burden);
    }
}

/// Selectors of a table, which use the header of a column or the caption.
fn table_selectors(node: NodeRef<'_>, leaks: &Leaks) -> Vec<(Anchor, String, f64)> {
    if node.tag() != Some("table") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let caption = node.children().find(|child| child.tag() == Some("caption"));
    let caption = caption.map(|caption| crate::fold::collapse_white_space(caption.text()));
    let is_name = |text: &String| !text.is_empty() && text.len() <= 60 && !leaks.occur_in(text);
    if let Some(text) = caption
        .filter(is_name)
        .and_then(|text| xpath_literal(&text))
    {
        let table = format!("//table[caption[normalize-space(.)={text}]]");
        found.push((Anchor::Label, table, 0.05));
    }
    for text in header_texts(node).into_iter().filter(is_name).take(8) {
        if let Some(text) = xpath_literal(&text) {
            let table = format!("//table[.//th[normalize-space(.)={text}]]");
            found.push((Anchor::Label, table, 0.05));
        }
    }
    found
}

/// A selector of an element, which uses the heading before it.
fn heading_selector(node: NodeRef<'_>, leaks: &Leaks) -> Option<(Anchor, String, f64)> {
    let tag = node.tag().filter(|tag| is_valid_step_name(tag))?;
    let siblings = node.parent()?.children().take_while(|one| *one != node);
    let before: Vec<NodeRef<'_>> = siblings.filter(|one| one.is_element()).collect();
    let (at, heading) = before
        .iter()
        .enumerate()
        .rev()
        .find(|(_, one)| matches!(one.tag(), Some("h1" | "h2" | "h3" | "h4" | "h5" | "h6")))?;
    let text = crate::fold::collapse_white_space(heading.text());
    let is_name = !text.is_empty() && text.len() <= 60 && !leaks.occur_in(&text);
    let text = xpath_literal(&text).filter(|_| is_name)?;
    let number = before[at..]
        .iter()
        .filter(|one| one.tag() == Some(tag))
        .count()
        + 1;
    let heading = heading.tag()?;
    let start =
        format!("//{heading}[normalize-space(.)={text}]/following-sibling::{tag}[{number}]");
    Some((Anchor::Label, start, 0.05 * number as f64))
}

/// The nodes that an XPath selects on each page; `None` if the XPath is invalid.
fn evaluate<'d>(sheets: &[PreparedPage<'d>], expression: &str) -> Option<Vec<Vec<NodeRef<'d>>>> {
    let xpath = XPath::compile(expression).ok()?;
    let of_sheet = |sheet: &PreparedPage<'d>| -> Option<Vec<NodeRef<'d>>> {
        let found = sheet.document.evaluate(&xpath).ok()?;
        Some(found.iter().filter_map(|value| value.node()).collect())
    };
    sheets.iter().map(of_sheet).collect()
}

/// Adds conditions to a selector if it selects other elements besides rows. Returns its score and the selector; `None`
/// if it selects less than half of the rows.
fn add_conditions<'d>(
    sheets: &[PreparedPage<'d>],
    target: &Target<'d>,
    base: Base,
) -> Option<(f64, RowSelector<'d>)> {
    let rows: HashSet<(usize, usize)> = target
        .rows
        .iter()
        .map(|(sheet, row)| (*sheet, row.position()))
        .collect();
    // Pages without known rows are no evidence for or against a selector.
    let known: BTreeSet<usize> = rows.iter().map(|(sheet, _)| *sheet).collect();
    let found = evaluate(sheets, &base.expression)?;
    let (mut right, mut open, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for sheet in &known {
        for element in &found[*sheet] {
            let place = (*sheet, element.position());
            match () {
                () if rows.contains(&place) => right.push(*element),
                () if target.open.contains(&place) => open.push(*element),
                () => wrong.push(*element),
            }
        }
    }
    if right.is_empty() || (right.len() as f64) < 0.5 * rows.len() as f64 {
        return None;
    }
    let conditions = match wrong.is_empty() {
        true => Vec::new(),
        false => choose_conditions(&right, &open, wrong, target.stride),
    };
    let mut expression = base.expression.clone();
    let mut burden = base.burden;
    for condition in &conditions {
        expression.push_str(&format!("[{}]", condition.xpath));
        burden += condition.burden;
    }
    let selected = match conditions.is_empty() {
        true => found,
        false => evaluate(sheets, &expression)?,
    };
    let of_known = known.iter().flat_map(|sheet| {
        selected[*sheet]
            .iter()
            .map(|element| (*sheet, element.position()))
    });
    let counted = of_known.filter(|place| !target.open.contains(place));
    let (is_right, is_wrong): (Vec<_>, Vec<_>) = counted.partition(|place| rows.contains(place));
    let f1 = 2.0 * is_right.len() as f64 / (is_right.len() + is_wrong.len() + rows.len()) as f64;
    let score = 10.0 * f1 + base.anchor.survival() - burden;
    let selected = RowSelector {
        expression,
        anchor: base.anchor,
        rows: selected,
        f1,
        first: None,
    };
    Some((score, selected))
}

/// A condition of a selector that all rows meet.
pub(super) struct Condition {
    pub(super) xpath: String,
    pub(super) burden: f64,
    meets: Box<dyn Fn(NodeRef<'_>) -> bool>,
}

/// Chooses conditions that all rows meet, and that as few other selected elements as possible meet.
fn choose_conditions(
    rows: &[NodeRef<'_>],
    open: &[NodeRef<'_>],
    mut wrong: Vec<NodeRef<'_>>,
    stride: Option<(usize, usize)>,
) -> Vec<Condition> {
    let shown: Vec<NodeRef<'_>> = open
        .iter()
        .copied()
        .filter(|one| !super::likeness::is_empty(*one))
        .collect();
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
