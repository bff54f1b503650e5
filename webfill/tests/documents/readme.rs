//! Tests that `README.md` is short, and that the demo prints the output shown in it.

use crate::markdown::Document;
use crate::program::{run_webfill, text};

/// The maximum size of the README, in bytes. People read it before they decide, and details have their own pages.
const MOST_BYTES: usize = 12_288;

#[test]
fn the_readme_is_short_enough_to_be_read() {
    let bytes = Document::read("README.md").text.len();
    assert!(
        bytes <= MOST_BYTES,
        "README.md has {bytes} bytes, {MOST_BYTES} are allowed: move something to docs/"
    );
}

#[test]
fn the_demo_prints_the_output_shown_in_the_readme() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ran = run_webfill(folder.path(), &["demo", "--folder", "demo"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let printed = text(&ran.stdout);
    let readme = Document::read("README.md");
    let sessions = readme.code_blocks("console");
    let session = sessions
        .iter()
        .find_map(|session| session.strip_prefix("$ webfill demo\n"))
        .expect("README.md shows the demo");
    // Remove the port, because it differs in each run.
    let without_port = |line: &str| match line.starts_with('$') {
        true => line
            .rsplit_once(':')
            .map_or_else(String::new, |parts| parts.0.to_owned()),
        false => line.to_owned(),
    };
    let printed: Vec<String> = printed.lines().map(without_port).collect();
    for line in session.lines().filter(|line| *line != "...") {
        assert!(
            printed.contains(&without_port(line)),
            "{line}\nis not in\n{printed:#?}"
        );
    }
}
