//! Finds the names and values on a page that are most similar to a written one.

use std::collections::BTreeSet;

use webfill_document::NodeRef;

/// Names with a lower similarity than this are not taken for misspellings of each other.
const ALIKE: f64 = 0.8;
const MOST_NAMES: usize = 3;
/// How many nodes are searched for names at most.
const MOST_NODES: usize = 50_000;

/// The names most similar to `written`, the most similar first. `written` itself is left out.
pub(super) fn similar_names<'n>(
    written: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Vec<&'n str> {
    let folded = |name: &str| name.to_lowercase().replace('_', "-");
    let wanted = folded(written);
    let names: BTreeSet<&str> = names.into_iter().filter(|name| *name != written).collect();
    let mut alike: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wanted, &folded(name)), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|left, right| right.0.total_cmp(&left.0));
    let names = alike.into_iter().map(|(_, name)| name);
    names.take(MOST_NAMES).collect()
}

pub(super) fn children<'p>(nodes: &[NodeRef<'p>]) -> impl Iterator<Item = NodeRef<'p>> {
    let children = nodes.iter().copied().flat_map(NodeRef::children);
    children.take(MOST_NODES)
}

pub(super) fn descendants<'p>(nodes: &[NodeRef<'p>]) -> impl Iterator<Item = NodeRef<'p>> {
    let descendants = nodes.iter().copied().flat_map(NodeRef::descendants);
    descendants.take(MOST_NODES)
}

pub(super) fn attribute_names<'p>(
    nodes: impl IntoIterator<Item = NodeRef<'p>>,
) -> impl Iterator<Item = &'p str> {
    let attributes = nodes.into_iter().flat_map(NodeRef::attributes);
    attributes.map(|attribute| attribute.name())
}

/// The values of an attribute; for `class`, each class.
pub(super) fn attribute_values<'p>(
    nodes: impl IntoIterator<Item = NodeRef<'p>>,
    attribute: &str,
) -> impl Iterator<Item = &'p str> {
    let values = nodes
        .into_iter()
        .filter_map(move |node| node.attribute(attribute));
    let of_class = attribute == "class";
    values.flat_map(move |value| match of_class {
        true => value.split_whitespace().collect(),
        false => vec![value],
    })
}
