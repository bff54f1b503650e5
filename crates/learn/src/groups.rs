//! Groups pages of the same site and layout, so that one mapping can serve each group.

use std::collections::BTreeMap;

use webfill_urls::site;

use crate::types::Page;

/// Groups pages by the sketches (hashes of the layout) of their trees. A group holds indexes of `pages`; groups are in
/// the order they first appear.
pub(crate) fn group_pages(pages: &[Page], sketches: Vec<Option<String>>) -> Vec<Vec<usize>> {
    let mut by_site: BTreeMap<String, Vec<(String, Vec<usize>)>> = BTreeMap::new();
    for (index, (page, sketch)) in pages.iter().zip(sketches).enumerate() {
        let sketch = sketch.unwrap_or_else(|| format!("{:?}", page.kind));
        let layouts = by_site.entry(site(&page.url)).or_default();
        let alike = layouts
            .iter()
            .enumerate()
            .map(|(at, (first, _))| (at, similarity_percent(first, &sketch)))
            .filter(|(_, likeness)| *likeness >= 50)
            .max_by_key(|(at, likeness)| (*likeness, usize::MAX - at));
        match alike {
            Some((at, _)) => layouts[at].1.push(index),
            None => layouts.push((sketch, vec![index])),
        }
    }
    let mut groups: Vec<Vec<usize>> = by_site
        .into_values()
        .flat_map(|layouts| layouts.into_iter().map(|(_, group)| group))
        .collect();
    groups.sort();
    groups
}

/// The percentage of equal digits in two sketches.
fn similarity_percent(one: &str, other: &str) -> usize {
    if one.len() != other.len() {
        return 0;
    }
    let equal = one
        .bytes()
        .zip(other.bytes())
        .filter(|(a, b)| a == b)
        .count();
    100 * equal / one.len().max(1)
}
