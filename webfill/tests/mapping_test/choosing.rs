//! Tests how the mapping to try and its fields are chosen.

use serde_json::json;

use crate::work::{ADA, Work};

#[test]
fn a_mapping_of_a_folder_is_chosen_by_its_name() {
    let work = Work::new();
    work.write("ada.html", ADA);
    let named = work.test("mappings ada.html --mapping places");
    assert_eq!(named.code, 0, "{}", named.stderr);
    assert_eq!(named.json()["fields"], json!({"title": "Ada"}));
    let against_url = work.test("mappings ada.html --mapping places --url https://people.example/");
    assert_eq!(against_url.json()["mapping"], "places");
    let by_url = work.test("mappings ada.html --url https://people.example/");
    assert_eq!(by_url.json()["mapping"], "people");
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones_nearest_first() {
    let work = Work::new();
    work.write("ada.html", ADA);
    for (flags, message) in [
        (
            "--mapping place",
            "no mapping `place`; there are places, people",
        ),
        (
            "--mapping people --field brn",
            "no field `brn`; there are born, name",
        ),
        (
            "--mapping places --field born",
            "no field `born`; there is title",
        ),
    ] {
        let refused = work.test(&format!("mappings ada.html {flags}"));
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{flags}");
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    }
    let of_another = work.test("mappings ada.html --url http://places.example/ --field born");
    assert_eq!(of_another.code, 2);
    assert!(
        of_another
            .stderr
            .contains("mapping places matches this page, but has no field born"),
        "{}",
        of_another.stderr
    );
    let no_mapping = work.test("mappings ada.html --url http://other.example/");
    assert_eq!(no_mapping.code, 2);
    assert!(
        no_mapping.stderr.contains("no url_pattern matches"),
        "{}",
        no_mapping.stderr
    );
    let unclear = work.test("mappings ada.html");
    assert_eq!(unclear.code, 2);
    assert!(
        unclear
            .stderr
            .contains("choose one with --url or --mapping"),
        "{}",
        unclear.stderr
    );
}

#[test]
fn only_the_requested_fields_are_in_result_and_trace() {
    let work = Work::new();
    work.write("ada.html", ADA);
    let one = work.test("mappings/people.json ada.html --field name");
    assert_eq!(
        one.json(),
        json!({"mapping": "people", "fields": {"name": "Ada"}, "links": []})
    );
    let traced = work.test("mappings/people.json ada.html --field born --trace");
    let fields = &traced.json()["fields"];
    assert_eq!(fields.as_array().map(Vec::len), Some(1), "{fields}");
    assert_eq!(fields[0]["name"], "born");
    let both = work.test("mappings/people.json ada.html --field born --field name");
    assert_eq!(both.json()["fields"], json!({"name": "Ada"}));
}
