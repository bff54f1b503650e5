//! `deploy/webfill.toml` holds every key, commented out at its default, and nothing else.
//!
//! A `#` directly before a word comments out a key or a section; `# ` begins an explanation. A key
//! without a default shows an example, and its explanation says `No default`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use toml::{Table, Value};

use crate::program::{
    ROOT, defaults, keys_expected, keys_known, settings_of_a_crawl, text, value_of, webfill,
};

const EXAMPLE: &str = "deploy/webfill.toml";

fn example() -> String {
    std::fs::read_to_string(Path::new(ROOT).join(EXAMPLE)).expect("the example is there")
}

/// The example with every key in force.
fn with_all_keys(example: &str) -> String {
    let lines = example.lines();
    let lines = lines.map(|line| commented_out(line).unwrap_or(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// A key or a section that a `#` keeps out of force.
fn commented_out(line: &str) -> Option<&str> {
    line.strip_prefix('#')
        .filter(|rest| rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '['))
}

/// The keys with their sections. The limits of all applications are one key.
fn keys(settings: &Table) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for (name, value) in settings {
        match value {
            Value::Table(section) if name != "applications" => {
                keys.extend(section.keys().map(|key| format!("{name}.{key}")));
            }
            _ => {
                keys.insert(name.clone());
            }
        }
    }
    keys
}

#[test]
fn it_holds_every_key_and_no_other() {
    let all: Table = with_all_keys(&example()).parse().expect("TOML");
    assert_eq!(
        keys(&all),
        keys_known(),
        "{EXAMPLE} left, the program right"
    );
    let Some(Value::Table(applications)) = all.get("applications") else {
        panic!("{EXAMPLE} shows no application");
    };
    let shown = applications.values().filter_map(Value::as_table);
    let shown: BTreeSet<String> = shown.flat_map(|limits| limits.keys().cloned()).collect();
    let known = keys_expected("[applications.any]\n").into_iter();
    assert_eq!(shown, known.collect(), "applications.NAME");
}

#[test]
fn its_values_are_the_defaults() {
    let example = example();
    let all: Table = with_all_keys(&example).parse().expect("TOML");
    let defaults = defaults();
    let explained = explanations(&example);
    for key in keys(&all).iter().filter(|key| *key != "applications") {
        let says_none = explained[key].contains("No default");
        match value_of(&defaults, key) {
            Some(default) => {
                assert_eq!(value_of(&all, key), Some(default), "{EXAMPLE}: {key}");
                assert!(!says_none, "{EXAMPLE}: {key} has a default");
            }
            None => assert!(
                says_none,
                "{EXAMPLE}: {key} must be said to have no default"
            ),
        }
    }
}

/// What the comments directly above each key say.
fn explanations(example: &str) -> BTreeMap<String, String> {
    let mut explanations = BTreeMap::new();
    let mut section = String::new();
    let mut above = String::new();
    for line in example.lines() {
        let setting = commented_out(line).unwrap_or(line);
        if let Some(name) = setting.strip_prefix('[') {
            section = format!("{}.", name.trim_end_matches(']'));
        } else if let Some((key, _)) = commented_out(line).and_then(|line| line.split_once(" = ")) {
            assert!(!above.is_empty(), "{EXAMPLE}: {key} is not explained");
            explanations.insert(format!("{section}{key}"), std::mem::take(&mut above));
        } else if let Some(words) = line.strip_prefix("# ") {
            above.push_str(&format!("{words} "));
            continue;
        }
        above.clear();
    }
    explanations
}

#[test]
fn as_it_is_it_changes_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = Path::new(ROOT).join(EXAMPLE);
    let flags = ["--config", path.to_str().expect("UTF-8")];
    assert_eq!(settings_of_a_crawl(folder.path(), &flags), defaults());
}

#[test]
fn with_every_key_in_force_the_program_accepts_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("it is writable");
    };
    write("webfill.toml", &with_all_keys(&example()));
    // The files and folders that the example names.
    write("top-sites.csv", "1,excluded.example\n");
    std::fs::create_dir(folder.path().join("etl-mappings")).expect("it is writable");
    let make = Path::new(ROOT).join("certs/make.sh");
    let made = Command::new(make)
        .arg(folder.path())
        .arg("localhost")
        .output();
    let made = made.expect("certs/make.sh starts");
    assert!(made.status.success(), "{}", text(&made.stderr));
    // A loopback address is refused without a request, so this crawl touches nothing.
    let crawl = [
        "crawl",
        "http://127.0.0.1/",
        "--config",
        "webfill.toml",
        "--fail-on",
        "never",
    ];
    let ran = webfill(folder.path(), &crawl);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
}
