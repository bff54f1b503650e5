//! Tests that the mappings in documents work as shown.

use std::path::Path;

use crate::markdown::Document;
use crate::program::{ROOT, run_webfill, text};

#[test]
fn the_mapping_in_the_readme_works_as_shown() {
    run_mapping_tests(&Document::read("README.md"), 1);
}

#[test]
fn the_mapping_in_the_walk_through_works_as_shown() {
    run_mapping_tests(&Document::read("docs/tutorials/writing-a-mapping.md"), 3);
}

#[test]
fn the_mapping_of_the_how_to_on_listings_works_as_shown() {
    run_mapping_tests(&Document::read("docs/how-to/listings.md"), 2);
}

/// Runs every `webfill mapping test` in a document. The folder contains the document's mapping under the file name that
/// its commands use.
fn run_mapping_tests(document: &Document, commands: usize) {
    let mapping = document
        .code_blocks("json")
        .into_iter()
        .find(|block| block.contains("url_patterns"))
        .unwrap_or_else(|| panic!("{} shows no mapping", document.path));
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("mine")).expect("it is writable");
    // The commands expect to run at the top of the repository.
    let golden = Path::new(ROOT).join("etl-mappings");
    std::os::unix::fs::symlink(golden, folder.path().join("etl-mappings")).expect("it is writable");
    let mut shown = 0;
    for session in document.code_blocks("console") {
        for (command, output) in commands_in(session) {
            let Some(arguments) = command.strip_prefix("webfill mapping test ") else {
                continue;
            };
            let arguments: Vec<&str> = arguments.split_whitespace().collect();
            std::fs::write(folder.path().join(arguments[0]), mapping).expect("it is writable");
            check_output(folder.path(), &arguments, output);
            shown += 1;
        }
    }
    assert_eq!(
        shown, commands,
        "{}: how often it shows `webfill mapping test`",
        document.path
    );
}

fn check_output(folder: &Path, arguments: &[&str], output: &str) {
    let ran = run_webfill(folder, &[&["mapping", "test"], arguments].concat());
    let said = text(&ran.stdout);
    for line in output.lines().filter(|line| line.trim() != "...") {
        assert!(
            said.lines().any(|said| said == line),
            "{line}\nis not in\n{said}"
        );
    }
}

/// The commands of a session, each with its output.
fn commands_in(session: &str) -> Vec<(&str, &str)> {
    let commands = session.split("$ ").skip(1);
    commands
        .map(|part| part.split_once('\n').unwrap_or((part, "")))
        .collect()
}
