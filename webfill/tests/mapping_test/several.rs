//! Tests trials on several pages: how often fields are filled, and on which pages they are empty.

use serde_json::{Value, json};

use crate::work::{ADA, Ran, Work};

fn lines(ran: &Ran) -> Vec<Value> {
    let lines = ran.stdout.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// Creates three pages, and other files that are not pages. One page lacks the name, and all lack the year.
fn work_with_pages() -> Work {
    let work = Work::new();
    work.write("pages/ada.html", ADA);
    work.write("pages/ada.json", r#"{"name": "Ada"}"#);
    work.write("pages/bob.html", "<h1>Bob</h1>");
    work.write("pages/nobody.html", "<p>Not found");
    work.write("pages/.hidden.html", ADA);
    work.write("pages/picture", "\u{0}\u{1}\u{2}\u{3}");
    work.write("pages/deeper/eve.html", ADA);
    work
}

#[test]
fn a_folder_gives_a_table_of_fill_rates() {
    let work = work_with_pages();
    let ran = work.test("mappings/people.json pages --format text");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let expected = "mapping people on 3 pages
field  filled  empty  share    empty on
name        2      1   66.7 %  pages/nobody.html
born        0      3    0.0 %  pages/ada.html, pages/bob.html, pages/nobody.html
";
    assert_eq!(ran.stdout, expected);
    assert!(ran.stderr.contains("pages/picture"), "{}", ran.stderr);
}

#[test]
fn json_has_a_line_for_each_page_and_one_for_all_pages() {
    let work = work_with_pages();
    let ran = work.test("mappings/people.json pages/ada.html pages/bob.html --field name");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines = lines(&ran);
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["page"], "pages/ada.html");
    assert_eq!(lines[1]["fields"], json!({"name": "Bob"}));
    let name = json!({"filled": 2, "empty": 0, "share": 1.0, "empty_on": []});
    assert_eq!(
        lines[2],
        json!({
            "pages": 2, "no_mapping": [], "failed": [],
            "mappings": {"people": {"pages": 2, "fields": {"name": name}}},
        })
    );
}

#[test]
fn an_unreadable_page_counts_as_failed_and_does_not_stop_the_others() {
    let work = work_with_pages();
    let ran = work.test("mappings/people.json pages/bob.html missing.html");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("missing.html"), "{}", ran.stderr);
    let last = lines(&ran).pop().unwrap();
    assert_eq!(last["failed"], json!(["missing.html"]));
    assert_eq!(last["mappings"]["people"]["fields"]["name"]["filled"], 1);
}

#[test]
fn ambiguous_arguments_are_refused() {
    let work = work_with_pages();
    work.write("nothing/.keep", "");
    for (arguments, message) in [
        ("mappings/people.json nothing", "no page in it"),
        ("mappings pages", "choose one with --url or --mapping"),
        (
            "mappings pages --url http://people.example/",
            "are for one saved page",
        ),
    ] {
        let refused = work.test(arguments);
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (2, ""),
            "{arguments}"
        );
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    }
}

#[test]
fn each_page_of_several_can_be_traced() {
    let work = work_with_pages();
    let ran = work.test("mappings/people.json pages --trace --format text --field name");
    assert_eq!(
        ran.stdout.matches("field name: ").count(),
        3,
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("mapping people on 3 pages"),
        "{}",
        ran.stdout
    );
    let ran = work.test("mappings/people.json pages --trace");
    assert_eq!(lines(&ran)[1]["fields"][0]["value"], "Bob");
}
