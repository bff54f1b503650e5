//! Tests that the reference pages are those that the program generates.

use webfill_service::ExitStatus;

use crate::markdown::Document;
use crate::program::run_webfill;

#[test]
fn what_is_made_from_the_program_is_up_to_date() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let written = run_webfill(folder.path(), &["manual", "."]);
    assert!(written.status.success(), "{written:?}");
    for (made, kept) in [
        ("commands.md", "docs/reference/commands.md"),
        ("settings.md", "docs/reference/settings.md"),
        ("outcomes.md", "docs/reference/outcomes.md"),
        ("processors.md", "docs/reference/processors.md"),
        ("webfill.toml", "deploy/webfill.toml"),
    ] {
        let made = std::fs::read_to_string(folder.path().join(made)).expect("it is written");
        let text = Document::read(kept).text;
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
fn exit_codes_are_those_of_the_code() {
    assert_eq!(
        Document::read("docs/reference/data.md").first_cells("### Exit codes"),
        ExitStatus::ALL.map(|status| status.code().to_string())
    );
}
