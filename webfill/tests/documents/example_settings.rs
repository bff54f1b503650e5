//! Tests that `deploy/webfill.toml` changes nothing as shipped, and that it is valid with every key uncommented.
//!
//! A `#` directly before a word comments out a key or a section; `# ` begins an explanation.

use std::path::Path;
use std::process::Command;

use crate::program::{ROOT, defaults, run_webfill, settings_of_a_crawl, text};

const EXAMPLE: &str = "deploy/webfill.toml";

fn read_example() -> String {
    std::fs::read_to_string(Path::new(ROOT).join(EXAMPLE)).expect("the example is there")
}

/// The example with every key uncommented.
fn with_all_keys(example: &str) -> String {
    let lines = example.lines();
    let lines = lines.map(|line| commented_out(line).unwrap_or(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The key or section that a line comments out.
fn commented_out(line: &str) -> Option<&str> {
    line.strip_prefix('#')
        .filter(|rest| rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '['))
}

#[test]
fn the_example_file_as_shipped_changes_no_setting() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = Path::new(ROOT).join(EXAMPLE);
    let flags = ["--config", path.to_str().expect("UTF-8")];
    assert_eq!(settings_of_a_crawl(folder.path(), &flags), defaults());
}

#[test]
fn the_example_file_with_every_key_set_is_accepted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("it is writable");
    };
    write("webfill.toml", &with_all_keys(&read_example()));
    // Create the files and folders that the example mentions.
    write("top-sites.csv", "1,excluded.example\n");
    std::fs::create_dir(folder.path().join("etl-mappings")).expect("it is writable");
    let make = Path::new(ROOT).join("certs/make.sh");
    let made = Command::new(make)
        .arg(folder.path())
        .arg("localhost")
        .output();
    let made = made.expect("certs/make.sh starts");
    assert!(made.status.success(), "{}", text(&made.stderr));
    // This crawl contacts nothing, because requests to loopback addresses are refused.
    let crawl = [
        "crawl",
        "http://127.0.0.1/",
        "--config",
        "webfill.toml",
        "--fail-on",
        "never",
    ];
    let ran = run_webfill(folder.path(), &crawl);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
}
