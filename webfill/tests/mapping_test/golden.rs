//! Tests golden cases: `webfill mapping save`, and `webfill mapping test --all`.

use serde_json::{Value, json};

use crate::work::{Ran, Work, mapping, xpath};

const ADA: &str = "https://people.example/ada";

/// Creates a mapping for people, and two saved pages that it reads.
fn work_with_mapping() -> Work {
    let work = Work::new();
    write_mapping(&work, "//td/text()");
    for (file, name, born) in [("ada", "Ada", "1815"), ("bob", "Bob", "1901")] {
        let html = format!("<h1>{name}</h1><table><tr><td>{born}</td></tr></table>");
        work.write(&format!("saved/{file}.html"), &html);
    }
    work
}

fn write_mapping(work: &Work, born: &str) {
    let fields = [("name", xpath("//h1/text()")), ("born", xpath(born))];
    let text = mapping("people", "people.example", &fields);
    work.write("mappings/people.json", &text);
}

fn save(work: &Work, page: &str, more: &str) -> Ran {
    work.run(&format!("mapping save mappings/people.json {page} {more}"))
}

fn read_json(work: &Work, path: &str) -> Value {
    let text = std::fs::read_to_string(work.path().join(path)).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_page_is_kept_with_its_values_and_all_cases_are_run() {
    let work = work_with_mapping();
    let saved = save(&work, "saved/ada.html", &format!("--url {ADA}"));
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    assert!(
        saved.stdout.starts_with("mappings/golden/people/ada.json"),
        "{}",
        saved.stdout
    );
    let case = read_json(&work, "mappings/golden/people/ada.json");
    let expected = json!({"url": ADA, "mapping": "people",
        "fields": {"name": "Ada", "born": "1815"}, "links": []});
    assert_eq!(case, expected);
    assert!(
        work.path()
            .join("mappings/golden/people/ada.html")
            .is_file()
    );
    for mappings in ["mappings", "mappings/people.json"] {
        let ran = work.test(&format!("{mappings} --all"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert_eq!(ran.stdout, "1 golden case, all as expected\n");
    }
}

#[test]
fn differences_are_reported_with_exit_code_1() {
    let work = work_with_mapping();
    save(&work, "saved/ada.html", &format!("--url {ADA}"));
    save(&work, "saved/bob.html", "--url https://people.example/bob");
    write_mapping(&work, "//th/text()");
    let ran = work.test("mappings --all");
    assert_eq!(ran.code, 1);
    for answer in [
        "golden/people/ada.json differs",
        "-     \"born\": \"1815\"",
        "2 golden cases, 2 differ",
    ] {
        assert!(ran.stdout.contains(answer), "{answer}: {}", ran.stdout);
    }
    let ran = work.test("mappings --all --format json");
    let answer = ran.json();
    assert_eq!((ran.code, &answer["cases"]), (1, &json!(2)));
    let first = &answer["differing"][0];
    assert_eq!(first["expected"]["fields"]["born"], "1815");
    assert_eq!(first["found"]["fields"], json!({"name": "Ada"}));
    // Saving again replaces the expected values in the same files.
    save(&work, "saved/ada.html", &format!("--url {ADA}"));
    save(&work, "saved/bob.html", "--url https://people.example/bob");
    assert_eq!(
        work.test("mappings --all").stdout,
        "2 golden cases, all as expected\n"
    );
}

#[test]
fn members_that_a_case_omits_are_not_compared_and_broken_cases_are_reported() {
    let work = work_with_mapping();
    let case = |content: Value| work.write("mappings/golden/people/ada.json", &content.to_string());
    work.write("mappings/golden/people/ada.html", "<h1>Ada</h1>");
    case(json!({"url": ADA, "fields": {"name": "Ada"}}));
    assert_eq!(work.test("mappings --all").code, 0);
    case(json!({"url": "https://other.example/", "mapping": "people"}));
    let ran = work.test("mappings --all");
    assert!(
        ran.code == 1 && ran.stdout.contains("\"mapping\": null"),
        "{}",
        ran.stdout
    );
    case(json!({"fields": {}}));
    let ran = work.test("mappings --all");
    assert!(
        ran.code == 1 && ran.stdout.contains("it has no `url`"),
        "{}",
        ran.stdout
    );
    case(json!({"url": ADA}));
    std::fs::remove_file(work.path().join("mappings/golden/people/ada.html")).unwrap();
    let ran = work.test("mappings --all");
    assert!(
        ran.code == 1 && ran.stdout.contains("its page is missing"),
        "{}",
        ran.stdout
    );
}

#[test]
fn pages_of_other_charsets_and_of_json_are_read_as_they_were() {
    let work = work_with_mapping();
    let path = work.path().join("saved/latin.html");
    std::fs::write(path, b"<h1>\xc9mile</h1>").unwrap();
    let url = "--url https://people.example/emile --content-type text/html;charset=iso-8859-1";
    assert_eq!(save(&work, "saved/latin.html", url).code, 0);
    let case = read_json(&work, "mappings/golden/people/emile.json");
    assert_eq!(case["fields"]["name"], "Émile");
    let jsonpath = json!([{"type": "jsonpath", "parameters": {"expression": "$.name"}}]);
    work.write(
        "mappings/api.json",
        &mapping("api", "api.example", &[("name", jsonpath)]),
    );
    work.write("saved/7.json", r#"{"name": "Seven"}"#);
    let saved = work.run("mapping save mappings/api.json saved/7.json --url https://api.example/7 --content-type application/json");
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    assert_eq!(
        read_json(&work, "mappings/golden/api/7.json")["fields"]["name"],
        "Seven"
    );
    let ran = work.test("mappings --all");
    assert_eq!(ran.stdout, "2 golden cases, all as expected\n");
}

#[test]
fn pages_that_cannot_be_saved_are_refused_with_a_reason() {
    let work = work_with_mapping();
    save(&work, "saved/ada.html", &format!("--url {ADA}"));
    for (page, more, reported) in [
        ("saved/ada.html", "", "give it with --url"),
        (
            "saved/none.html",
            "--url https://people.example/",
            "no such file",
        ),
        (
            "saved/ada.html",
            "--url https://other.example/",
            "no url_pattern matches",
        ),
        (
            "saved/bob.html",
            "--url https://people.example/bob --as ada",
            "belongs to another page",
        ),
        (
            "saved/bob.html",
            "--url https://people.example/bob --as ../x",
            "only letters, digits",
        ),
    ] {
        let ran = save(&work, page, more);
        assert!(
            ran.code == 2 && ran.stderr.contains(reported),
            "{reported}: {}",
            ran.stderr
        );
    }
    let ran = work.test("mappings/places.json --all");
    assert!(
        ran.code == 2 && ran.stderr.contains("webfill mapping save"),
        "{}",
        ran.stderr
    );
}

#[test]
fn numbers_of_a_case_keep_their_digits() {
    let work = Work::new();
    let fields = [(
        "n",
        json!([{"type": "jsonpath", "parameters": {"expression": "$.n"}}]),
    )];
    let text = mapping("data", "people.example", &fields);
    work.write("mappings/data.json", &text);
    for (number, other) in [
        ("9007199254740993", "9007199254740992"),
        ("18446744073709551616", "18446744073709551615"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567891",
        ),
        ("12345678901234567.89", "12345678901234567.88"),
    ] {
        work.write(
            "mappings/golden/data/a.page",
            &format!("{{\"n\": {number}}}"),
        );
        for (expected, code) in [(number, 0), (other, 1)] {
            let case = format!(
                "{{\"url\": \"{ADA}\", \"content_type\": \"application/json\", \"fields\": {{\"n\": {expected}}}}}"
            );
            work.write("mappings/golden/data/a.json", &case);
            let ran = work.test("mappings --all");
            assert_eq!(ran.code, code, "{expected}: {} {}", ran.stdout, ran.stderr);
        }
    }
}
