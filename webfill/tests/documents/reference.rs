//! Tests that the pages in `docs/reference/` equal those that the program generates.

use webfill_service::ExitStatus;

use crate::markdown::Document;
use crate::program::run_webfill;

#[test]
fn generated_pages_are_up_to_date() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let written = run_webfill(folder.path(), &["manual", "."]);
    assert!(written.status.success(), "{written:?}");
    let pages = std::fs::read_dir(folder.path()).expect("the folder");
    let pages = pages.map(|entry| entry.expect("an entry").file_name());
    let mut files: Vec<(String, String)> = pages
        .map(|name| name.into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".md"))
        .map(|name| (name.clone(), format!("docs/reference/{name}")))
        .collect();
    assert!(files.len() > 5, "{files:?}");
    let elsewhere = [
        (
            "crawl-request.schema.json",
            "docs/reference/crawl-request.schema.json",
        ),
        ("watch.schema.json", "docs/reference/watch.schema.json"),
        (
            "progress.schema.json",
            "docs/reference/progress.schema.json",
        ),
        ("mapping.schema.json", "etl-mappings/schema.json"),
        (
            "golden-case.schema.json",
            "etl-mappings/golden/case.schema.json",
        ),
        ("webfill.toml", "deploy/webfill.toml"),
    ];
    files.extend(elsewhere.map(|(made, kept)| (made.to_owned(), kept.to_owned())));
    for (made, kept) in files {
        let made = std::fs::read_to_string(folder.path().join(made)).expect("it is written");
        let text = Document::read(&kept).text;
        let differing = made
            .lines()
            .zip(text.lines())
            .find(|(made, kept)| made != kept);
        assert!(
            made == text,
            "{kept} is not up to date; run `make reference`: {differing:?}"
        );
    }
}

#[test]
fn documented_exit_codes_equal_those_of_the_program() {
    assert_eq!(
        Document::read("docs/reference/data.md").first_cells("### Exit codes"),
        ExitStatus::ALL.map(|status| status.code().to_string())
    );
}
