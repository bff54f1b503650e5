//! Finds where records are on pages: in repeated adjacent elements, each with the values of one record.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use webfill_document::{NodeRef, XPath};

use super::likeness::{Likeness, Model};
use super::prepared_page::PreparedPage;
use crate::fold::KnownValue;

/// The most values of a record that are used, and the most elements that are examined for each value.
const MOST_VALUES: usize = 40;
const MOST_NODES: usize = 24;

/// The most adjacent elements that may make one row.
pub(super) const WIDEST: usize = 8;

/// Rows of several elements are used only if the share of known values inside rows is larger by this much than with
/// rows of one element.
const WORTH_SEVERAL: f64 = 0.12;

/// The share of known records that must have an element of their own.
const SEPARATE: f64 = 0.75;

/// A known record on a page, with the elements that contain each of its values.
#[derive(Clone)]
pub(super) struct RecordElements<'d> {
    pub(super) sheet: usize,
    /// The index of the record among the known rows of the page.
    pub(super) row: usize,
    pub(super) values: Vec<Vec<NodeRef<'d>>>,
}

pub(super) fn locate_records<'d>(sheets: &[PreparedPage<'d>]) -> Vec<RecordElements<'d>> {
    let mut standings = Vec::new();
    for (number, sheet) in sheets.iter().enumerate() {
        let of_row: Vec<Vec<KnownValue>> = sheet
            .list
            .rows
            .iter()
            .map(|row| row.known_values())
            .collect();
        for (row, wanted) in of_row.iter().enumerate() {
            let shared = |one: &&KnownValue| {
                let rows = of_row.iter().filter(|row| row.contains(one)).count();
                of_row.len() > 1 && rows * 2 > of_row.len().max(2)
            };
            let own = wanted.iter().filter(|one| !shared(one)).take(MOST_VALUES);
            let mut values: Vec<Vec<NodeRef<'d>>> =
                own.map(|one| elements_with_value(sheet, one)).collect();
            let pointed = &sheet.list.rows[row].nodes;
            values.extend(
                pointed
                    .iter()
                    .map(|path| element_at_path(sheet, path).into_iter().collect()),
            );
            values.retain(|nodes| !nodes.is_empty());
            if !values.is_empty() {
                standings.push(RecordElements {
                    sheet: number,
                    row,
                    values,
                });
            }
        }
    }
    standings
}

pub(super) fn element_at_path<'d>(sheet: &PreparedPage<'d>, path: &str) -> Option<NodeRef<'d>> {
    let found = sheet.document.evaluate(&XPath::compile(path).ok()?).ok()?;
    found.first()?.node()
}

fn elements_with_value<'d>(sheet: &PreparedPage<'d>, wanted: &KnownValue) -> Vec<NodeRef<'d>> {
    let mut places = sheet.places.find_exact(wanted);
    if places.is_empty() {
        let around = sheet.places.find_containing(wanted, MOST_NODES);
        places = around.into_iter().map(|(place, _)| place).collect();
    }
    if let (true, Some(day)) = (places.is_empty(), &wanted.day) {
        let around = sheet.places.find_containing_date(day, MOST_NODES);
        places = around.into_iter().map(|(place, ..)| place).collect();
    }
    let mut nodes: Vec<NodeRef<'d>> = Vec::new();
    for place in places {
        nodes.extend(
            sheet
                .places
                .element_of(place)
                .filter(|node| !nodes.contains(node)),
        );
    }
    nodes.truncate(MOST_NODES);
    nodes
}

/// An element whose children contain records.
struct Container<'d> {
    sheet: usize,
    node: NodeRef<'d>,
    /// For each record and each child element, the values of the record that are in the child.
    hits: BTreeMap<usize, BTreeMap<usize, BTreeSet<usize>>>,
}

/// One way to divide the pages into rows.
pub(super) struct Layout<'d> {
    /// The elements whose children are the rows, as pairs of page and element.
    pub(super) containers: Vec<(usize, NodeRef<'d>)>,
    /// For each record, the index of its [`RecordElements`] and the first element of its row.
    pub(super) heads: Vec<(usize, NodeRef<'d>)>,
    /// Whether a row consists of several adjacent elements.
    pub(super) is_wide: bool,
    coverage: f64,
    /// How many rows in all containers look like the known rows.
    alike: usize,
    /// Whether one container holds several records.
    holds_several: bool,
    depth: usize,
}

/// The likeliest way to divide the pages into rows; `None` if records are nowhere next to each other.
pub(super) fn likeliest_layout<'d>(standings: &[RecordElements<'d>]) -> Option<Layout<'d>> {
    let mut layouts = Vec::new();
    for containers in group_by_path(containers(standings)) {
        let single = single_element_layout(&containers, standings);
        let wide = multi_element_layout(&containers, standings);
        let of_single = single.as_ref().map_or(0.0, |one| one.coverage);
        layouts.extend(single);
        layouts.extend(wide.filter(|wide| wide.coverage > of_single + WORTH_SEVERAL));
    }
    let best = |layouts: &[Layout<'_>]| {
        let of = layouts.iter().map(|layout| layout.coverage - cost(layout));
        of.fold(0.0, f64::max)
    };
    let most = best(&layouts);
    layouts.retain(|layout| layout.coverage - cost(layout) >= most - 0.08);
    let several = layouts.iter().filter(|layout| layout.holds_several);
    let of_several = several.map(|layout| layout.alike).max().unwrap_or(0);
    layouts.retain(|one| one.holds_several || 2 * one.alike >= 3 * of_several);
    layouts
        .into_iter()
        .max_by_key(|layout| (layout.alike, !layout.is_wide, usize::MAX - layout.depth))
}

fn cost(layout: &Layout<'_>) -> f64 {
    match layout.is_wide {
        true => WORTH_SEVERAL,
        false => 0.0,
    }
}

fn containers<'d>(standings: &[RecordElements<'d>]) -> Vec<Container<'d>> {
    let mut places: HashMap<(usize, usize), usize> = HashMap::new();
    let mut containers: Vec<Container<'d>> = Vec::new();
    for (number, standing) in standings.iter().enumerate() {
        for (value, nodes) in standing.values.iter().enumerate() {
            for node in nodes {
                let mut child = *node;
                while let Some(parent) = child.parent().filter(|parent| parent.is_element()) {
                    let key = (standing.sheet, parent.position());
                    let at = *places.entry(key).or_insert_with(|| {
                        containers.push(Container {
                            sheet: standing.sheet,
                            node: parent,
                            hits: BTreeMap::new(),
                        });
                        containers.len() - 1
                    });
                    let of_record = containers[at].hits.entry(number).or_default();
                    of_record.entry(child.position()).or_default().insert(value);
                    child = parent;
                }
            }
        }
    }
    containers
}

/// Groups the containers of records by kind: containers with the same path of tags are of the same kind.
fn group_by_path(containers: Vec<Container<'_>>) -> Vec<Vec<Container<'_>>> {
    let mut kinds: BTreeMap<String, Vec<Container<'_>>> = BTreeMap::new();
    for container in containers {
        kinds
            .entry(tag_path(container.node))
            .or_default()
            .push(container);
    }
    kinds.into_values().collect()
}

pub(super) fn tag_path(node: NodeRef<'_>) -> String {
    let mut tags = Vec::new();
    let mut node = Some(node);
    while let Some(one) = node.filter(|node| node.is_element()) {
        tags.extend(one.tag());
        node = one.parent();
    }
    tags.reverse();
    tags.join("/")
}

fn child_at<'d>(container: &Container<'d>, position: usize) -> Option<NodeRef<'d>> {
    container
        .node
        .children()
        .find(|child| child.position() == position)
}

fn single_element_layout<'d>(
    containers: &[Container<'d>],
    standings: &[RecordElements<'d>],
) -> Option<Layout<'d>> {
    let mut heads: Vec<(usize, NodeRef<'d>)> = Vec::new();
    let mut counts = vec![0usize; standings.len()];
    for (number, standing) in standings.iter().enumerate() {
        let of_sheet = containers.iter().filter(|one| one.sheet == standing.sheet);
        let hits = of_sheet.filter_map(|one| Some((one, one.hits.get(&number)?)));
        let children = hits.flat_map(|(one, hits)| {
            hits.iter()
                .map(move |(child, values)| (one, *child, values.len()))
        });
        let mut children: Vec<_> = children.collect();
        children.sort_by_key(|(_, _, count)| usize::MAX - count);
        let Some(&(container, child, count)) = children.first() else {
            continue;
        };
        // If two children contain equally many values of the record, either may be its row, so the record is skipped.
        if children.get(1).is_some_and(|(_, _, other)| *other == count) {
            continue;
        }
        if let Some(head) = child_at(container, child) {
            heads.push((number, head));
            counts[number] = count;
        }
    }
    finish_layout(containers, standings, heads, &counts, false)
}

fn multi_element_layout<'d>(
    containers: &[Container<'d>],
    standings: &[RecordElements<'d>],
) -> Option<Layout<'d>> {
    let mut heads: Vec<(usize, NodeRef<'d>)> = Vec::new();
    let mut counts = vec![0usize; standings.len()];
    for (number, standing) in standings.iter().enumerate() {
        let of_sheet = containers.iter().filter(|one| one.sheet == standing.sheet);
        let windows = of_sheet.filter_map(|one| best_window(one, number));
        let best = windows.max_by_key(|(_, count, width)| (*count, usize::MAX - width));
        if let Some((head, count, _)) = best {
            heads.push((number, head));
            counts[number] = count;
        }
    }
    let kind = most_common(heads.iter().map(|(_, head)| tag_and_classes(*head)))?;
    // The first element of a row may contain no value of the record. So the row may begin before the first element with
    // a value.
    for (_, head) in &mut heads {
        let before = elements_before(*head).into_iter().take(WIDEST);
        let mut own = std::iter::once(*head).chain(before);
        if let Some(first) = own.find(|one| self::tag_and_classes(*one) == kind) {
            *head = first;
        }
    }
    heads.retain(|(_, head)| self::tag_and_classes(*head) == kind);
    finish_layout(containers, standings, heads, &counts, true)
}

fn elements_before(node: NodeRef<'_>) -> Vec<NodeRef<'_>> {
    let siblings = node.parent().into_iter().flat_map(NodeRef::children);
    let before = siblings
        .take_while(|one| *one != node)
        .filter(|one| one.is_element());
    let mut before: Vec<NodeRef<'_>> = before.collect();
    before.reverse();
    before
}

/// The tag of an element, with its classes that show its kind.
pub(super) fn tag_and_classes(node: NodeRef<'_>) -> String {
    let mut kind = node.tag().unwrap_or_default().to_owned();
    for token in super::likeness::kind_tokens(node) {
        kind.push('.');
        kind.push_str(token);
    }
    kind
}

pub(super) fn most_common<T: Ord + Clone>(all: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    let most = counts.iter().max_by_key(|(_, count)| **count)?;
    Some(most.0.clone())
}

/// Finds the adjacent children that contain the most values of a record. Returns the first of them, the number of
/// values, and the number of children.
fn best_window<'d>(
    container: &Container<'d>,
    record: usize,
) -> Option<(NodeRef<'d>, usize, usize)> {
    let hits = container.hits.get(&record)?;
    let children: Vec<NodeRef<'d>> = container
        .node
        .children()
        .filter(|child| child.is_element())
        .take(5_000)
        .collect();
    let places = children.iter().enumerate();
    let hit: Vec<(usize, &BTreeSet<usize>)> = places
        .filter_map(|(at, child)| Some((at, hits.get(&child.position())?)))
        .collect();
    let mut best: Option<(usize, usize, usize)> = None;
    for (number, (start, _)) in hit.iter().enumerate() {
        let mut values: BTreeSet<usize> = BTreeSet::new();
        for (at, of_child) in hit[number..]
            .iter()
            .take_while(|(at, _)| at - start < WIDEST)
        {
            values.extend(of_child.iter());
            let (count, width) = (values.len(), at - start + 1);
            let is_better = best.is_none_or(|(_, most, narrowest)| {
                count > most || count == most && width < narrowest
            });
            if is_better {
                best = Some((*start, count, width));
            }
        }
    }
    best.map(|(start, count, width)| (children[start], count, width))
}

fn finish_layout<'d>(
    containers: &[Container<'d>],
    standings: &[RecordElements<'d>],
    mut heads: Vec<(usize, NodeRef<'d>)>,
    counts: &[usize],
    is_wide: bool,
) -> Option<Layout<'d>> {
    let tag = most_common(heads.iter().filter_map(|(_, head)| head.tag()))?.to_owned();
    heads.retain(|(_, head)| head.tag() == Some(tag.as_str()));
    let places: BTreeSet<(usize, usize)> = heads
        .iter()
        .map(|(number, head)| (standings[*number].sheet, head.position()))
        .collect();
    let all = standings.len();
    if (places.len() as f64) < SEPARATE * all as f64 || places.is_empty() {
        return None;
    }
    let read: usize = heads.iter().map(|(number, _)| counts[*number]).sum();
    let known: usize = standings.iter().map(|one| one.values.len()).sum();
    let mut parents: Vec<(usize, NodeRef<'d>)> = Vec::new();
    let mut holds_several = false;
    for (number, head) in &heads {
        let parent = (standings[*number].sheet, head.parent()?);
        match parents.contains(&parent) {
            true => holds_several = true,
            false => parents.push(parent),
        }
    }
    if tag == "td" || tag == "th" {
        let has_elements = |head: NodeRef<'d>| head.children().any(NodeRef::is_element);
        if !heads.iter().all(|(_, head)| has_elements(*head)) {
            return None;
        }
    }
    let model = model(standings, &heads, is_wide);
    let alike = parents.iter().map(|(_, parent)| {
        let children = parent
            .children()
            .filter(|child| child.tag() == Some(tag.as_str()));
        children
            .filter(|child| model.likeness(*child) == Likeness::Row)
            .count()
    });
    let alike: Vec<usize> = alike.collect();
    // If most parents have at most one child like the known rows, the children are only parts of rows.
    if alike.iter().filter(|count| **count > 1).count() * 2 < alike.len().max(1) {
        return None;
    }
    Some(Layout {
        depth: containers[0].node.document().root().position()
            + tag_path(containers[0].node).matches('/').count(),
        containers: parents,
        heads,
        is_wide,
        coverage: read as f64 / known.max(1) as f64,
        alike: alike.iter().sum(),
        holds_several,
    })
}

/// What the rows with these first elements look like. If a row has several elements, only the first one counts, without
/// its known values.
pub(super) fn model<'d>(
    standings: &[RecordElements<'d>],
    heads: &[(usize, NodeRef<'d>)],
    is_wide: bool,
) -> Model {
    let rows = heads.iter().map(|(number, head)| {
        let values = standings[*number].values.iter().flatten();
        let within = values.filter(|node| !is_wide && head.contains(**node));
        (*head, within.copied().collect())
    });
    let rows: Vec<(NodeRef<'d>, Vec<NodeRef<'d>>)> = rows.collect();
    Model::new(&rows)
}
