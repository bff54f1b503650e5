//! Tests that types and circles of files stay small enough to keep in mind. A type that exceeds the limits should be
//! divided into parts, each with its own state. Files that use each other in a circle share types that should move into
//! a further file.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::modules::read_crates;
use crate::repository::{sources, words};

/// The most methods of a type, not counting those of traits, and the most files that contain such methods.
const MOST_METHODS: usize = 60;
const MOST_FILES: usize = 6;

/// The most files that use each other in a circle.
const LONGEST_CIRCLE: usize = 4;

#[test]
fn no_type_has_too_many_methods_or_files() {
    let sources = sources();
    let mut defined: HashMap<&str, Vec<&str>> = HashMap::new();
    for (path, text) in &sources {
        for name in text.lines().filter_map(defined_type) {
            defined.entry(name).or_default().push(path);
        }
    }
    // For each type, identified by its defining file and its name: the number of its methods in each file.
    let mut types: BTreeMap<(&str, &str), BTreeMap<&str, usize>> = BTreeMap::new();
    for (path, text) in &sources {
        for (name, methods) in inherent_methods(text) {
            let owners = defined.get(name).map_or(&[][..], Vec::as_slice);
            let owner = owners
                .iter()
                .max_by_key(|owner| (common_folders(owner, path), Reverse(owner.len())));
            let files = types.entry((owner.unwrap_or(&"?"), name)).or_default();
            *files.entry(path).or_default() += methods;
        }
    }
    assert!(types.len() > 500, "only {} types are found", types.len());
    let too_large: Vec<String> = types
        .iter()
        .map(|(owner, files)| (owner, files.values().sum::<usize>(), files.len()))
        .filter(|(_, methods, files)| *methods > MOST_METHODS || *files > MOST_FILES)
        .map(|((path, name), methods, files)| {
            format!("{name} ({path}): {methods} methods in {files} files")
        })
        .collect();
    assert!(
        too_large.is_empty(),
        "at most {MOST_METHODS} methods in {MOST_FILES} files: {too_large:#?}"
    );
}

#[test]
fn no_circle_of_files_is_long() {
    let crates = read_crates(sources());
    assert!(crates.len() > 20, "only {} crates are found", crates.len());
    let mut long: BTreeSet<Vec<String>> = BTreeSet::new();
    for modules in &crates {
        let uses = modules.uses();
        let reach: BTreeMap<&str, BTreeSet<&str>> = uses
            .keys()
            .map(|from| (*from, reachable(&uses, from)))
            .collect();
        for (from, reached) in &reach {
            let circle: Vec<String> = reached
                .iter()
                .filter(|to| reach[*to].contains(from))
                .map(|file| (*file).to_owned())
                .collect();
            if circle.len() > LONGEST_CIRCLE {
                long.insert(circle);
            }
        }
    }
    assert!(
        long.is_empty(),
        "at most {LONGEST_CIRCLE} files in a circle: {long:#?}"
    );
}

fn reachable<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        open.extend(uses[next].iter().filter(|to| found.insert(**to)));
    }
    found
}

/// The type that a line defines.
fn defined_type(line: &str) -> Option<&str> {
    if line.starts_with([' ', '/']) {
        return None;
    }
    let mut words = words(line).skip_while(|word| !["struct", "enum", "union"].contains(word));
    words.nth(1)
}

/// The inherent implementations in a formatted source: the type of each, and its number of methods.
fn inherent_methods(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\nimpl") {
        rest = &rest[at + 1..];
        let end = rest.find("\n}").unwrap_or(rest.len());
        let implementation = &rest[..end];
        rest = &rest[end..];
        let Some((head, body)) = implementation.split_once('{') else {
            continue;
        };
        if let Some(name) = inherent_type(head) {
            found.push((name, body.lines().filter(|line| is_method(line)).count()));
        }
    }
    found
}

/// The type of an inherent `impl` line; `None` if the line implements a trait.
fn inherent_type(head: &str) -> Option<&str> {
    let mut head = head.strip_prefix("impl")?;
    if head.starts_with('<') {
        let mut depth = 0;
        let end = head.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        })?;
        head = &head[end + 1..];
    }
    if head.contains(" for ") {
        return None;
    }
    let path = head.trim_start().split(['<', ' ', '\n']).next()?;
    path.rsplit("::").next()
}

/// Whether a line of an implementation begins a method.
fn is_method(line: &str) -> bool {
    let Some(code) = line
        .strip_prefix("    ")
        .filter(|code| !code.starts_with([' ', '/']))
    else {
        return false;
    };
    let before = match code.split_once("fn ") {
        Some((before, _)) => before,
        None => return false,
    };
    before.starts_with("pub(in ")
        || words(before).all(|word| {
            [
                "pub", "crate", "super", "const", "async", "unsafe", "extern",
            ]
            .contains(&word)
        })
}

fn common_folders(one: &str, other: &str) -> usize {
    let parts = |path: &str| -> Vec<String> {
        let path = path.trim_end_matches(".rs");
        path.split('/').map(str::to_owned).collect()
    };
    let (one, other) = (parts(one), parts(other));
    one.iter().zip(&other).take_while(|(a, b)| a == b).count()
}
