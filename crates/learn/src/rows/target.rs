//! Decides which elements of the pages are rows, by their similarity to the known rows.

use std::collections::{BTreeMap, HashSet};

use webfill_document::NodeRef;

use super::likeness::{Likeness, is_empty};
use super::prepared_page::PreparedPage;
use super::standing::{Layout, RecordElements, WIDEST, model, tag_and_classes, tag_path};
use crate::fold::fold_text;

/// The elements of the pages, classified by whether they are rows. In each pair, the first number is the page.
pub(super) struct Target<'d> {
    pub(super) rows: Vec<(usize, NodeRef<'d>)>,
    /// Elements that may or may not be rows, or are empty, as pairs of page and position. A selector may select them or
    /// not.
    pub(super) open: HashSet<(usize, usize)>,
    /// Elements beside the rows that a selector must not select, such as advertisements, and the later elements of rows
    /// that have several.
    pub(super) others: Vec<(usize, NodeRef<'d>)>,
    /// Set if the first element of a row looks like its later ones: how many elements make a row, and the number of one
    /// first element among its siblings.
    pub(super) stride: Option<(usize, usize)>,
    /// The most elements that follow the first one in a row.
    pub(super) tails: usize,
}

impl<'d> Target<'d> {
    pub(super) fn new(
        sheets: &[PreparedPage<'d>],
        standings: &[RecordElements<'d>],
        layout: &Layout<'d>,
    ) -> Target<'d> {
        let model = model(standings, &layout.heads, layout.is_wide);
        let known: HashSet<(usize, usize)> = layout
            .heads
            .iter()
            .map(|(number, head)| (standings[*number].sheet, head.position()))
            .collect();
        let tag = layout
            .heads
            .first()
            .and_then(|(_, head)| head.tag())
            .unwrap_or_default();
        let mut target = Target {
            rows: Vec::new(),
            open: HashSet::new(),
            others: Vec::new(),
            stride: None,
            tails: 0,
        };
        let tails = match layout.is_wide {
            true => find_tails(standings, layout),
            false => Vec::new(),
        };
        let later: Vec<(NodeRef<'d>, Vec<NodeRef<'d>>)> =
            tails.iter().map(|(_, tail)| (*tail, Vec::new())).collect();
        let later_model = super::likeness::Model::new(&later);
        let is_later = |place: &(usize, usize)| {
            tails
                .iter()
                .any(|(sheet, tail)| (*sheet, tail.position()) == *place)
        };
        // An element that contains names of fields is a header, unless known rows contain such names as labels.
        let rows_name_fields = layout
            .heads
            .iter()
            .any(|(_, head)| contains_field_names(sheets, *head));
        for (sheet, container) in containers(sheets, layout) {
            for child in container.children().filter(|child| child.is_element()) {
                let place = (sheet, child.position());
                let likeness = match () {
                    () if known.contains(&place) => Likeness::Row,
                    () if child.tag() != Some(tag) || is_later(&place) => Likeness::Other,
                    () if !rows_name_fields && contains_field_names(sheets, child) => {
                        Likeness::Other
                    }
                    () if layout.is_wide
                        && later_model.shared_parts_score(child)
                            > model.shared_parts_score(child) =>
                    {
                        Likeness::Other
                    }
                    () => model.likeness(child),
                };
                match likeness {
                    Likeness::Row => target.rows.push((sheet, child)),
                    Likeness::Doubtful => {
                        target.open.insert(place);
                    }
                    Likeness::Other if is_empty(child) => {
                        target.open.insert(place);
                    }
                    Likeness::Other => target.others.push((sheet, child)),
                }
            }
        }
        if layout.is_wide {
            target.tails = max_tail_count(layout, &tails);
            target.regroup_by_count(layout, &tails);
        }
        target
    }

    /// Finds the first elements of rows by counting, if the later elements of a row look like the first one.
    fn regroup_by_count(&mut self, layout: &Layout<'d>, tails: &[(usize, NodeRef<'d>)]) {
        let kinds: HashSet<String> = layout
            .heads
            .iter()
            .map(|(_, head)| tag_and_classes(*head))
            .collect();
        let is_alike = tails
            .iter()
            .any(|(_, tail)| kinds.contains(&tag_and_classes(*tail)));
        let width = 1 + self.tails;
        let first = layout
            .heads
            .first()
            .map_or(0, |(_, head)| number_of_tag(*head));
        let is_regular = layout
            .heads
            .iter()
            .all(|(_, head)| number_of_tag(*head) % width == first % width);
        if !is_alike || width < 2 || !is_regular || self.heads_differ_from_tails() {
            return;
        }
        self.stride = Some((width, first % width));
        let all: Vec<(usize, NodeRef<'d>)> =
            self.rows.drain(..).chain(self.others.drain(..)).collect();
        let tag = layout.heads.first().and_then(|(_, head)| head.tag());
        for (sheet, element) in all {
            let is_first = element.tag() == tag && number_of_tag(element) % width == first % width;
            match is_first {
                true => self.rows.push((sheet, element)),
                false => self.others.push((sheet, element)),
            }
        }
    }

    /// Whether the first elements of rows have other parts than the later ones.
    fn heads_differ_from_tails(&self) -> bool {
        let children = |element: &NodeRef<'d>| -> Vec<Option<&str>> {
            element
                .children()
                .filter(|one| one.is_element())
                .map(NodeRef::tag)
                .collect()
        };
        let of_rows: HashSet<_> = self.rows.iter().map(|(_, row)| children(row)).collect();
        let of_others: HashSet<_> = self
            .others
            .iter()
            .map(|(_, other)| children(other))
            .collect();
        of_rows.is_disjoint(&of_others)
    }
}

/// Whether an element contains the names of the rows' fields, as a header row does.
fn contains_field_names(sheets: &[PreparedPage<'_>], element: NodeRef<'_>) -> bool {
    let rows = sheets.iter().flat_map(|sheet| sheet.list.rows);
    let names: HashSet<String> = rows
        .take(20)
        .flat_map(|row| row.known.keys())
        .map(|name| fold_text(name))
        .collect();
    let texts = element
        .descendants()
        .filter(|node| node.is_text())
        .take(100);
    let named: HashSet<String> = texts
        .map(|text| fold_text(text.text()))
        .filter(|text| names.contains(text))
        .collect();
    named.len() > 1
}

/// The number of an element among its siblings with the same tag, from 1.
pub(super) fn number_of_tag(element: NodeRef<'_>) -> usize {
    let siblings = element.parent().into_iter().flat_map(NodeRef::children);
    let before = siblings.take_while(|one| *one != element);
    1 + before.filter(|one| one.tag() == element.tag()).count()
}

pub(super) fn siblings_after(element: NodeRef<'_>) -> Vec<NodeRef<'_>> {
    let mut after = Vec::new();
    let mut next = element.next_sibling();
    while let Some(one) = next.filter(|_| after.len() < WIDEST) {
        after.extend(Some(one).filter(|one| one.is_element()));
        next = one.next_sibling();
    }
    after
}

/// The most elements that any row has after its first one.
fn max_tail_count(layout: &Layout<'_>, tails: &[(usize, NodeRef<'_>)]) -> usize {
    let of_row = layout.heads.iter().map(|(_, head)| {
        let after = siblings_after(*head);
        let is_tail = |one: &&NodeRef<'_>| tails.iter().any(|(_, tail)| tail == *one);
        after.iter().take_while(is_tail).count()
    });
    of_row.max().unwrap_or(0)
}

/// The elements of a row that begins with `head` and consists of `width` elements.
pub(super) fn row_elements(head: NodeRef<'_>, width: usize) -> Vec<NodeRef<'_>> {
    let after = siblings_after(head).into_iter();
    std::iter::once(head).chain(after.take(width - 1)).collect()
}

/// The later elements of known rows: those after the first element, up to the last one with a value of the record.
fn find_tails<'d>(
    standings: &[RecordElements<'d>],
    layout: &Layout<'d>,
) -> Vec<(usize, NodeRef<'d>)> {
    let is_head = |node: NodeRef<'_>| layout.heads.iter().any(|(_, head)| *head == node);
    let mut tails = Vec::new();
    for (number, head) in &layout.heads {
        let standing = &standings[*number];
        let after: Vec<NodeRef<'d>> = siblings_after(*head)
            .into_iter()
            .take_while(|one| !is_head(*one))
            .collect();
        // A value that the row's first element also has does not show that later elements belong to the row.
        let own = standing
            .values
            .iter()
            .filter(|nodes| !nodes.iter().any(|node| head.contains(*node)));
        let last = own.filter_map(|nodes| {
            after
                .iter()
                .position(|one| nodes.iter().any(|node| one.contains(*node)))
        });
        let count = last.max().map_or(0, |last| last + 1);
        tails.extend(
            after
                .into_iter()
                .take(count)
                .map(|tail| (standing.sheet, tail)),
        );
    }
    tails
}

/// The containers of known rows, and other containers of the same kind on the same pages.
fn containers<'d>(sheets: &[PreparedPage<'d>], layout: &Layout<'d>) -> Vec<(usize, NodeRef<'d>)> {
    let mut of_sheets: BTreeMap<usize, usize> = BTreeMap::new();
    for (sheet, _) in &layout.containers {
        *of_sheets.entry(*sheet).or_default() += 1;
    }
    let are_many = of_sheets.values().any(|count| *count > 1);
    let kinds: HashSet<(String, String, Vec<String>)> = layout
        .containers
        .iter()
        .map(|(_, node)| kind_of(*node))
        .collect();
    let mut containers = layout.containers.clone();
    for sheet in of_sheets.keys() {
        for node in sheets[*sheet]
            .document
            .root()
            .descendants()
            .filter(|node| node.is_element())
        {
            let is_known = containers
                .iter()
                .any(|(of, known)| of == sheet && *known == node);
            if is_known
                || !kinds
                    .iter()
                    .any(|(_, kind, _)| *kind == self::tag_and_classes(node))
            {
                continue;
            }
            let kind = kind_of(node);
            if (are_many || kind.1.contains('.')) && kinds.contains(&kind) {
                containers.push((*sheet, node));
            }
        }
    }
    containers.sort_by_key(|(sheet, node)| (*sheet, node.position()));
    containers
}

/// What identifies the kind of a container: its path, its tag and class, and the column headers if it is a table.
fn kind_of(container: NodeRef<'_>) -> (String, String, Vec<String>) {
    let table = [Some(container), container.parent()];
    let table = table
        .into_iter()
        .flatten()
        .find(|node| node.tag() == Some("table"));
    let heads = table.into_iter().flat_map(|table| header_texts(table));
    (
        tag_path(container),
        tag_and_classes(container),
        heads.map(|text| fold_text(&text)).collect(),
    )
}

/// The texts of a table's first header row.
pub(super) fn header_texts(table: NodeRef<'_>) -> Vec<String> {
    let rows = table.descendants().filter(|node| node.tag() == Some("tr"));
    let is_cell = |node: &NodeRef<'_>| matches!(node.tag(), Some("td" | "th"));
    for row in rows.take(3) {
        let cells: Vec<NodeRef<'_>> = row.children().filter(is_cell).collect();
        let is_head = row.parent().and_then(NodeRef::tag) == Some("thead")
            || cells.iter().all(|cell| cell.tag() == Some("th"));
        if is_head && cells.len() > 1 {
            return cells
                .iter()
                .map(|cell| crate::fold::collapse_white_space(cell.text()))
                .collect();
        }
    }
    Vec::new()
}
