//! Finds an XPath that selects all rows of the pages, and nothing else.

mod conditions;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use webfill_document::{NodeRef, XPath};

use self::conditions::choose_conditions;
use super::prepared_page::PreparedPage;
use super::standing::{Layout, RecordElements};
use super::target::{Target, header_texts};
use crate::anchors::{is_valid_step_name, own_anchors, xpath_literal};
use crate::labels::Leaks;
use crate::steps::{absolute_paths, relative_paths};
use crate::survival::Anchor;

/// How many known rows are used to make selectors, and how many levels above a row are searched for anchors.
const HEADS: usize = 4;
const LEVELS: usize = 7;

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
