//! Tests that `ARCHITECTURE.md` is short, lists each crate with the crates that it uses, and numbers the steps as the
//! sources do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::{Table, Value};

use crate::markdown::Document;
use crate::program::ROOT;
use crate::repository::sources;

fn read_manifest(folder: &str) -> Table {
    let path = Path::new(ROOT).join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).expect("a manifest");
    text.parse().expect("TOML")
}

/// For each crate, by its folder, the set of our own crates that its code uses. Test dependencies do not count.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let workspace = read_manifest("");
    let folder_of = |package: &String| {
        let path = workspace["workspace"]["dependencies"].get(package)?;
        Some(name_of(path.get("path")?.as_str()?))
    };
    let members = workspace["workspace"]["members"]
        .as_array()
        .expect("a list");
    let members = members.iter().filter_map(|member| member.as_str());
    members
        .map(|folder| {
            let manifest = read_manifest(folder);
            let dependencies = manifest.get("dependencies").and_then(Value::as_table);
            let packages = dependencies.into_iter().flat_map(Table::keys);
            (name_of(folder), packages.filter_map(folder_of).collect())
        })
        .collect()
}

/// The name of a crate: its folder, without `crates/`.
fn name_of(folder: &str) -> String {
    folder.strip_prefix("crates/").unwrap_or(folder).to_owned()
}

/// The limits of the document, so that a newcomer can read it in one sitting.
const MOST_BYTES: usize = 25_000;
const MOST_TERMS: usize = 40;

#[test]
fn the_architecture_document_is_short_and_has_few_terms() {
    let architecture = Document::read("ARCHITECTURE.md");
    let bytes = architecture.text.len();
    assert!(bytes <= MOST_BYTES, "{bytes} bytes, {MOST_BYTES} allowed");
    let mut sections = architecture.text.split("\n## ");
    let words = sections.nth(1).expect("the glossary comes first");
    let rows = words.lines().filter(|line| line.starts_with("| "));
    let terms = rows.filter(|row| !row.starts_with("| word |")).count();
    assert!(terms <= MOST_TERMS, "{terms} terms, {MOST_TERMS} allowed");
}

#[test]
fn the_crates_are_listed_with_the_crates_that_they_use() {
    let rows = Document::read("ARCHITECTURE.md").rows("## The crates");
    let listed: BTreeMap<String, BTreeSet<String>> = rows
        .into_iter()
        .map(|row| {
            let uses = row[1].split(", ").filter(|uses| *uses != "none");
            (row[0].clone(), uses.map(str::to_owned).collect())
        })
        .collect();
    assert_eq!(listed, crates(), "ARCHITECTURE.md left, Cargo.toml right");
}

#[test]
fn a_file_whose_head_names_a_step_is_linked_from_that_step() {
    let architecture = Document::read("ARCHITECTURE.md");
    let mut found = 0;
    for (path, text) in sources() {
        let Some(step) = text
            .strip_prefix("//! Step ")
            .and_then(|head| head.split(' ').next())
        else {
            continue;
        };
        let begins = format!("\n**{step}. ");
        let begun = architecture.text.split(&begins).nth(1);
        let reported = begun.and_then(|rest| rest.split("\n**").next());
        let reported = reported.unwrap_or_else(|| panic!("{path}: there is no step {step}"));
        assert!(
            reported.contains(&format!("({path})")),
            "{path} says that it is step {step}, where ARCHITECTURE.md does not link to it"
        );
        found += 1;
    }
    assert!(found > 0, "no source names its step");
}
