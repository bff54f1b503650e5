//! The tables of `docs/reference.md` are those of the program, and its SQL finds something.

use std::collections::{BTreeMap, BTreeSet};

use toml::Value;
use webfill_service::ExitStatus;
use webfill_wire::{Outcome, Reason};

use crate::markdown::Document;
use crate::program::{commands, defaults, flag_in, flags_of, keys_known, text, value_of, webfill};

fn reference() -> Document {
    Document::read("docs/reference.md")
}

#[test]
fn every_flag_is_listed_with_its_default() {
    let reference = reference();
    let commands = reference.headings_of_tables("| flag |");
    let commands = commands.iter().filter_map(|heading| {
        let command = heading.strip_prefix("### `webfill ")?;
        command.strip_suffix('`')
    });
    let commands: Vec<&str> = commands.collect();
    assert!(commands.contains(&"crawl"), "{commands:?}");
    for command in commands {
        let listed: BTreeMap<String, String> = reference
            .rows(&format!("### `webfill {command}`"))
            .into_iter()
            .filter_map(|row| Some((flag_in(&row[0])?, row.get(2).cloned().unwrap_or_default())))
            .collect();
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(
            listed,
            flags_of(&words),
            "webfill {command}: docs/reference.md left, --help right"
        );
    }
}

#[test]
fn the_actions_on_a_crawl_take_the_flags_of_info() {
    for command in ["stop", "pause", "resume", "status", "reload"] {
        assert_eq!(
            flags_of(&[command]),
            flags_of(&["info"]),
            "webfill {command}"
        );
    }
}

#[test]
fn every_command_is_listed() {
    let listed = reference().first_cells("## Commands").into_iter();
    let listed: BTreeSet<String> = listed
        .map(|name| name.trim_start_matches("webfill ").to_owned())
        .map(|name| name.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(listed, commands(), "docs/reference.md left, --help right");
}

#[test]
fn every_setting_is_listed_with_its_default() {
    let defaults = defaults();
    let default_of = |key: &str| match value_of(&defaults, key) {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let listed: BTreeMap<String, String> = reference()
        .rows("## Settings")
        .into_iter()
        .map(|row| (row[0].clone(), row[2].clone()))
        .collect();
    let real: BTreeMap<String, String> = keys_known()
        .into_iter()
        .map(|key| (key.clone(), default_of(&key)))
        .collect();
    assert_eq!(listed, real, "docs/reference.md left, webfill right");
}

#[test]
fn outcomes_and_reasons_are_the_closed_lists() {
    let reference = reference();
    let outcomes: Vec<&str> = Outcome::ALL
        .iter()
        .map(|outcome| outcome.as_str())
        .collect();
    assert_eq!(reference.first_cells("### Outcomes"), outcomes);
    let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(reference.first_cells("### Reasons"), reasons);
}

#[test]
fn exit_codes_are_those_of_the_code() {
    assert_eq!(
        reference().first_cells("### Exit codes"),
        ExitStatus::ALL.map(|status| status.code().to_string())
    );
}

#[test]
fn every_query_finds_something_in_the_store_of_the_demo() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ran = webfill(folder.path(), &["demo", "--store", "sqlite:webfill.db"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let db =
        rusqlite::Connection::open(folder.path().join("webfill.db")).expect("it is a database");
    let reference = reference();
    let queries = reference.blocks("sql");
    assert!(!queries.is_empty(), "docs/reference.md shows no SQL");
    for query in queries {
        let mut statement = db
            .prepare(query)
            .unwrap_or_else(|error| panic!("{query}: {error}"));
        let mut found = statement.query([]).expect("it takes no parameters");
        assert!(
            found.next().expect("it runs").is_some(),
            "{query}: finds nothing"
        );
    }
}
