//! Tests the list of signatures: it is complete and well written, and costs little time on healthy pages.

use std::collections::HashSet;

use super::*;
use crate::blocks::SHORT_CHARACTERS;

fn all_signatures() -> &'static [Signature] {
    &Signatures::built_in().signatures
}

#[test]
fn the_list_has_a_version_and_every_signature_an_id_of_its_own() {
    assert!(Signatures::built_in().version > 0);
    let ids: HashSet<&str> = all_signatures().iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids.len(), all_signatures().len());
    for id in ids {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(id.chars().all(is_plain), "{id}");
    }
}

#[test]
fn every_signature_has_a_source_and_a_reason() {
    for one in all_signatures() {
        assert!(one.source.len() > 10 && one.why.len() > 10, "{}", one.id);
        assert_eq!(one.sample, format!("blocked/{}.http", one.id));
    }
}

#[test]
fn texts_compared_in_lower_case_are_in_lower_case() {
    for one in all_signatures() {
        let header = one.when.header.iter().map(|header| &header.name);
        for text in header.chain(&one.when.titles).chain(&one.when.words) {
            assert_eq!(*text, text.to_lowercase(), "{}", one.id);
        }
        assert!(
            one.when
                .titles
                .iter()
                .all(|title| title.matches('*').count() < 2)
        );
    }
}

/// Without a cheap condition, a signature would search the whole text of every healthy page.
#[test]
fn a_signature_that_fits_served_pages_has_a_condition_that_is_cheap_on_them() {
    for one in all_signatures() {
        let when = &one.when;
        let only_refused = !when.statuses.is_empty() && !when.statuses.contains(&200);
        let is_cheap = only_refused
            || when.header.is_some()
            || when.target.is_some()
            || !when.titles.is_empty()
            || !when.markers.is_empty()
            || when
                .shows_below
                .is_some_and(|limit| limit <= SHORT_CHARACTERS);
        assert!(is_cheap, "{}", one.id);
    }
    let markers = all_signatures().iter().map(|one| one.when.markers.len());
    assert!(markers.sum::<usize>() <= 4);
}

#[test]
fn a_structural_signature_asks_for_a_short_page() {
    for one in all_signatures()
        .iter()
        .filter(|one| one.grade == Grade::Structural)
    {
        assert!(one.when.shows_below.is_some(), "{}", one.id);
    }
}

#[test]
fn a_title_is_compared_as_a_whole() {
    assert!(matches_title("just a moment...", "just a moment..."));
    assert!(!matches_title(
        "just a moment... please",
        "just a moment..."
    ));
    let wanted = "access denied | * used cloudflare";
    assert!(matches_title(
        "access denied | a.example used cloudflare",
        wanted
    ));
    assert!(!matches_title(
        "access denied | used cloudflare",
        "access denied | * used cloudflare"
    ));
    assert!(!matches_title("ab", "ab*b"));
}

#[test]
fn an_unknown_condition_is_refused() {
    let text = r#"{"version": 1, "signatures": [{"id": "x", "grade": "certain",
        "when": {"body": "x"}, "source": "", "why": "", "sample": "", "healthy": ""}]}"#;
    let error = serde_json::from_str::<Signatures>(text).unwrap_err();
    assert!(
        error.to_string().contains("unknown field `body`"),
        "{error}"
    );
}
