//! Finds fields whose lists belong together on the pages of golden cases. The values of such lists are in the same
//! elements of the page, or the lists always have equal lengths.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use webfill_mapping::{Engine, FieldTrace, MappingIndex};

use crate::mapping_command::page::Page;

/// Lists belong together if their lengths are equal on all pages, and at least this many different lengths occur.
const DIFFERENT_LENGTHS: usize = 5;
/// Lists of at least this length belong together if their lengths differ by at most a tenth on all pages, and more than
/// one length occurs.
const LONG: usize = 10;

#[derive(Default)]
pub struct AdjacentLists {
    /// The XPath of the elements that contain the entries, with the fields that read a part of each.
    pub rows: Vec<(String, Vec<String>)>,
    /// Fields whose lists have the same lengths.
    pub alike: Vec<Vec<String>>,
}

/// The values of a field on one page.
struct List {
    length: usize,
    /// The paths of the nodes that the last chain selects.
    paths: Vec<String>,
}

pub fn find_adjacent_lists(
    engine: &Engine,
    index: MappingIndex,
    names: &[&str],
    pages: &[&Page],
) -> AdjacentLists {
    let mut lists: BTreeMap<&str, Vec<List>> = BTreeMap::new();
    for page in pages {
        let Some(trace) = page.trace(engine, index, &[]) else {
            continue;
        };
        for name in names {
            let field = trace.fields.iter().find(|field| field.name == *name);
            lists
                .entry(name)
                .or_default()
                .extend(field.map(list_from_trace));
        }
    }
    let rows = fields_in_same_entries(names, &lists);
    let written: HashSet<&String> = rows.iter().flat_map(|(_, fields)| fields).collect();
    let open = names
        .iter()
        .filter(|name| !written.contains(&(**name).to_owned()));
    let open: Vec<&str> = open.copied().collect();
    let alike = fields_of_equal_length(&open, &lists);
    AdjacentLists { rows, alike }
}

fn list_from_trace(field: &FieldTrace) -> List {
    let mut steps = field.alternatives.last().into_iter().flatten();
    let nodes = steps.rfind(|step| !step.reading.nodes.is_empty());
    let nodes = nodes.into_iter().flat_map(|step| &step.reading.nodes);
    List {
        length: field.value.as_array().map_or(0, Vec::len),
        paths: nodes.map(|node| node.path.clone()).collect(),
    }
}

/// Finds groups of fields whose nodes are in the same elements of the page, with one node of each field in each
/// element.
fn fields_in_same_entries(
    names: &[&str],
    lists: &BTreeMap<&str, Vec<List>>,
) -> Vec<(String, Vec<String>)> {
    let mut found: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (first, name) in names.iter().enumerate() {
        for (second, other) in names.iter().enumerate().skip(first + 1) {
            let pages = lists[name].iter().zip(&lists[other]);
            let common = pages.filter_map(|(one, other)| common_entries(&one.paths, &other.paths));
            if let Some(entries) = common.into_iter().next() {
                found.entry(entries).or_default().extend([first, second]);
            }
        }
    }
    let mut taken = HashSet::new();
    let mut rows: Vec<(String, BTreeSet<usize>)> = found.into_iter().collect();
    rows.sort_by_key(|(_, fields)| std::cmp::Reverse(fields.len()));
    let rows = rows.into_iter().filter_map(|(entries, fields)| {
        let open = fields.into_iter().filter(|field| taken.insert(*field));
        let open: Vec<String> = open.map(|field| names[field].to_owned()).collect();
        (open.len() > 1).then_some((entries, open))
    });
    rows.collect()
}

/// The XPath of the elements where both lists have nodes; `None` if there are fewer than two such elements.
fn common_entries(one: &[String], other: &[String]) -> Option<String> {
    let (one, other) = (entry_paths(one)?, entry_paths(other)?);
    let common = one.intersection(&other).count();
    let path = one.intersection(&other).next()?;
    let end = path.rfind('[')?;
    let is_last = !path[end..].contains('/');
    (common >= 2 && is_last).then(|| path[..end].to_owned())
}

/// The elements that contain one node each: where the paths of the nodes begin to differ. `None` if two nodes are in
/// the same element.
fn entry_paths(paths: &[String]) -> Option<BTreeSet<String>> {
    let parts: Vec<Vec<&str>> = paths.iter().map(|path| path.split('/').collect()).collect();
    let first = parts.first().filter(|_| parts.len() > 1)?;
    let same = (0..first.len()).take_while(|at| {
        let part = first.get(*at);
        parts.iter().all(|other| other.get(*at) == part)
    });
    let same = same.count();
    let entries: BTreeSet<String> = parts
        .iter()
        .map(|parts| parts[..parts.len().min(same + 1)].join("/"))
        .collect();
    (entries.len() == parts.len()).then_some(entries)
}

fn fields_of_equal_length(names: &[&str], lists: &BTreeMap<&str, Vec<List>>) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<&str>> = Vec::new();
    for name in names {
        let group = groups
            .iter_mut()
            .find(|group| have_similar_lengths(&lists[group[0]], &lists[name]));
        match group {
            Some(group) => group.push(name),
            None => groups.push(vec![name]),
        }
    }
    groups.retain(|group| group.len() > 1);
    let owned = |group: Vec<&str>| group.into_iter().map(str::to_owned).collect();
    groups.into_iter().map(owned).collect()
}

fn have_similar_lengths(one: &[List], other: &[List]) -> bool {
    let lengths = || {
        one.iter()
            .zip(other)
            .map(|(one, other)| (one.length, other.length))
    };
    let different: HashSet<usize> = lengths()
        .map(|(one, _)| one)
        .filter(|one| *one > 1)
        .collect();
    let are_equal = lengths().all(|(one, other)| one == other);
    let are_near = lengths()
        .all(|(one, other)| one.min(other) >= LONG && one.abs_diff(other) * 10 <= one.max(other));
    (are_equal && different.len() >= DIFFERENT_LENGTHS) || (are_near && different.len() >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn lists_in_the_same_elements_are_recognised_unlike_two_separate_lists() {
        let table: [(&[&str], &[&str], Option<&str>); 6] = [
            (
                &["/html/body/div[1]/h3", "/html/body/div[2]/h3"],
                &["/html/body/div[1]/p", "/html/body/div[2]/p"],
                Some("/html/body/div"),
            ),
            (
                &["/b/div[1]/h3", "/b/div[2]/h3", "/b/div[3]/h3"],
                &["/b/div[1]/p/i", "/b/div[3]/p/i"],
                Some("/b/div"),
            ),
            (
                &["/b/ul[1]/li[1]/a", "/b/ul[1]/li[2]/a"],
                &["/b/ul[2]/li[1]/a", "/b/ul[2]/li[2]/a"],
                None,
            ),
            (
                &["/b/div[1]/a[1]", "/b/div[1]/a[2]", "/b/div[2]/a"],
                &["/b/div[1]/p", "/b/div[2]/p"],
                None,
            ),
            (&["/b/h2"], &["/b/p[1]", "/b/p[2]"], None),
            (&[], &[], None),
        ];
        for (one, other, entries) in table {
            let found = common_entries(&paths(one), &paths(other));
            assert_eq!(found.as_deref(), entries, "{one:?} {other:?}");
        }
    }

    #[test]
    fn lists_belong_together_if_their_lengths_agree_on_many_pages() {
        let lists = |lengths: &[usize]| -> Vec<List> {
            let list = |length: &usize| List {
                length: *length,
                paths: Vec::new(),
            };
            lengths.iter().map(list).collect()
        };
        let table: [(&[usize], &[usize], bool); 6] = [
            (&[2, 3, 4, 5, 6], &[2, 3, 4, 5, 6], true),
            (&[3, 3, 3], &[3, 3, 3], false),
            (&[2, 3, 4, 5], &[2, 3, 4, 5], false),
            (&[2, 3, 4, 5, 6], &[2, 3, 4, 5, 7], false),
            (&[30, 28], &[29, 28], true),
            (&[30, 12], &[30, 9], false),
        ];
        for (one, other, wanted) in table {
            assert_eq!(
                have_similar_lengths(&lists(one), &lists(other)),
                wanted,
                "{one:?} {other:?}"
            );
        }
    }
}
