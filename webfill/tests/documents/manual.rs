//! Tests the pages of `webfill manual`: each command has one, and each page lists the command's exit codes.

use std::collections::BTreeMap;

use crate::markdown::Document;
use crate::program::{commands, run_webfill};

/// The text of each page, by its name.
fn pages() -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let written = run_webfill(folder.path(), &["manual", "."]);
    assert!(written.status.success(), "{written:?}");
    let files = std::fs::read_dir(folder.path()).expect("our own folder");
    files
        .filter_map(|file| {
            let path = file.expect("our own folder").path();
            let name = path.file_name()?.to_str()?.strip_suffix(".1")?.to_owned();
            Some((name, std::fs::read_to_string(&path).expect("a page")))
        })
        .collect()
}

/// The exit codes that a page lists.
fn exit_codes(page: &str) -> Vec<&str> {
    let sections: Vec<&str> = page.split("\n.SH ").collect();
    let reported: Vec<_> = sections
        .into_iter()
        .filter_map(|section| section.strip_prefix("\"EXIT STATUS\"\n"))
        .collect();
    assert_eq!(reported.len(), 1, "{page}");
    let items = reported[0].split(".TP\n").skip(1);
    items
        .map(|item| {
            let (code, meaning) = item.split_once('\n').expect("two lines");
            assert!(meaning.trim().len() > 5, "{item}");
            code.trim_start_matches("\\fB").trim_end_matches("\\fR")
        })
        .collect()
}

#[test]
fn every_command_has_a_page_with_its_exit_codes() {
    let pages = pages();
    let reference = Document::read("docs/reference/data.md");
    let all = reference.first_cells("### Exit codes");
    for command in commands() {
        let name = format!("webfill-{}", command.replace(' ', "-"));
        assert!(pages.contains_key(&name), "{name} has no page");
    }
    for (name, page) in &pages {
        let codes = exit_codes(page);
        assert_eq!(codes[..3], ["0", "1", "2"], "{name}");
        assert!(codes.iter().all(|code| all.contains(&(*code).to_owned())));
        let crawls = ["webfill", "webfill-crawl", "webfill-watch-run"].contains(&name.as_str());
        assert!(!crawls || codes == all, "{name}: {codes:?}");
    }
    assert_eq!(
        exit_codes(&pages["webfill-dispatcher"]),
        ["0", "1", "2", "17"]
    );
    assert_eq!(exit_codes(&pages["webfill-keys-new"]), ["0", "1", "2"]);
}
