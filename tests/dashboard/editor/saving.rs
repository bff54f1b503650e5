//! Tests drafts, faults and saving in the mapping editor, by the same requests as the page's script sends.

use std::fs;

use serde_json::{Value, json};
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

use super::bench::{Bench, heading_mapping};
use crate::fleet::Fleet;

const HOST: &str = "people.example";

#[test]
fn a_draft_is_tried_saved_and_its_pages_become_golden_cases() {
    let (work, web) = (Workplace::new(), Web::start());
    let site = web.site(HOST);
    site.serve("/ada", page("Ada").link("/bob"));
    site.serve("/bob", page("Bob"));
    let mut bench = Bench::start(&work, &web, &[]);
    let draft = bench.begin_draft("", "people");
    for path in ["/ada", "/bob", "/ada"] {
        bench.request_ok(&draft, "add", &json!({"add": {"url": site.url(path)}}));
    }
    assert_eq!(
        site.visits().pages().len(),
        2,
        "a page that is kept is not fetched again: {:?}",
        site.visits().pages()
    );
    assert_eq!(
        bench.state(&draft)["draft"]["pages"]
            .as_array()
            .unwrap()
            .len(),
        2
    );

    // A fault is reported with its path, and nothing is saved.
    let mut mapping = heading_mapping("people", HOST);
    mapping["fields"][0]["processors"][0]["parameters"]["selector"] = "h1[".into();
    let checked = bench.request_ok(&draft, "check", &json!({"mapping": mapping}));
    assert_eq!(
        checked["faults"][0]["path"],
        "fields[0].processors[0].parameters.selector"
    );
    bench.request_refused(&draft, "save", &json!({}));
    assert!(!work.path("mappings/people.json").exists());

    let mapping = json!({"mapping": heading_mapping("people", HOST)});
    let tried = bench.request_ok(&draft, "trial", &mapping);
    let read: Vec<&Value> = tried["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["read"])
        .collect();
    assert_eq!(read, ["Ada", "Bob"]);
    let traced = bench.request_ok(&draft, "trace", &json!({"page": 0}));
    assert_eq!(traced["fields"][0]["value"], "Ada");
    assert_eq!(traced["elements"]["title"].as_array().unwrap().len(), 1);

    let saved = bench.request_ok(&draft, "save", &json!({"golden": [0, 1]}));
    assert_eq!(saved["problems"], json!([]));
    assert_eq!(saved["cases"].as_array().unwrap().len(), 2);
    let tested = Run::new(["mapping", "test", "mappings", "--all"])
        .in_folder(work.path("."))
        .finish();
    assert!(
        tested
            .expect_code(0)
            .stdout
            .contains("2 golden cases, all as expected")
    );

    // A draft survives when its dashboard is killed. A new draft of the same mapping contains the golden cases (pages
    // with expected values).
    bench.dashboard().signal(webfill_tests::Signal::KILL);
    bench
        .dashboard()
        .wait_until("its end", |dashboard| dashboard.processes().is_empty());
    let bench = Bench::start(&work, &web, &[]);
    assert_eq!(bench.state(&draft)["draft"]["mapping"], mapping["mapping"]);
    let again = bench.begin_draft("people", "");
    let known = &bench.state(&again)["draft"]["pages"][0]["known"];
    assert_eq!(known["title"], json!(["Ada"]));
}

#[test]
fn changes_by_someone_else_are_not_overwritten() {
    let (work, web) = (Workplace::new(), Web::start());
    work.write_json("mappings/people.json", &heading_mapping("people", HOST));
    let bench = Bench::start(&work, &web, &[]);
    let [one, other] = ["people"; 2].map(|name| bench.begin_draft(name, ""));
    let mut mapping = heading_mapping("people", HOST);
    mapping["description"] = "One.".into();
    bench.request_ok(&one, "save", &json!({"mapping": mapping}));
    let refused = bench.request_refused(
        &other,
        "save",
        &json!({"mapping": heading_mapping("people", HOST)}),
    );
    assert!(refused.contains("has changed since"), "{refused}");
    let text = fs::read_to_string(work.path("mappings/people.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), mapping);
    let former = fs::read_to_string(work.path("mappings/people.json.1")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&former).unwrap(),
        heading_mapping("people", HOST)
    );
}

/// The lines of `webfill audit` about saved mappings, with these further arguments.
fn mapping_save_audit_lines(work: &Workplace, arguments: &[&str]) -> Vec<Value> {
    let reported = Run::new(["audit", "--json", "--what", "mapping_save"])
        .args(arguments)
        .in_folder(work.path("."))
        .finish()
        .expect_code(0);
    let lines = reported.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn the_audit_log_shows_who_has_saved_which_mapping() {
    let (work, web) = (Workplace::new(), Web::start());
    let bench = Bench::start(&work, &web, &[]);
    let draft = bench.begin_draft("", "people");
    let mut mapping = heading_mapping("people", HOST);
    bench.request_ok(&draft, "save", &json!({"mapping": mapping}));
    mapping["description"] = "Another.".into();
    bench.request_ok(&draft, "save", &json!({"mapping": mapping}));
    let lines = mapping_save_audit_lines(&work, &[]);
    assert_eq!(lines.len(), 2, "{lines:?}");
    let line = &lines[1];
    for (key, value) in [
        ("by", "dashboard"),
        ("result", "done"),
        ("mapping", "people"),
    ] {
        assert_eq!(line[key], value, "{line}");
    }
    assert!(
        line["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("people.json")),
        "{line}"
    );
    assert!(
        line["former"]
            .as_str()
            .is_some_and(|file| file.ends_with("people.json.1")),
        "{line}"
    );
    let shown = bench.visitor.get("/dashboard/audit");
    assert!(shown.body.contains("mapping_save"), "{}", shown.body);

    let token = "chief-0123456789abcdef0123456789abcdef";
    let fleet = Fleet::with_tokens(&format!("chief {token}\n"));
    let bench = Bench::of(fleet.log_in(token));
    let draft = bench.begin_draft("", "people");
    bench.request_ok(
        &draft,
        "save",
        &json!({"mapping": heading_mapping("people", HOST)}),
    );
    let lines = mapping_save_audit_lines(
        &fleet.work,
        &["--state", "state/dispatcher", "--who", "chief"],
    );
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        bench
            .visitor
            .get("/dashboard/audit")
            .body
            .contains("mapping_save")
    );
}

#[test]
fn requests_from_elsewhere_are_refused() {
    let (work, web) = (Workplace::new(), Web::start());
    let mut bench = Bench::start(&work, &web, &[]);
    let draft = bench.begin_draft("", "people");
    bench.token = "0".repeat(64);
    let forged = bench.request(&draft, "check", &json!({"mapping": {}}));
    assert_eq!(forged.status, 403, "{}", forged.body);
    let bench = Bench::start(&work, &web, &[]);
    for draft in [
        "/dashboard/editor/draft/..",
        "/dashboard/editor/draft/0",
        "/dashboard/editor/draft/%2e%2e%2f%2e%2e",
    ] {
        assert_eq!(
            bench.request(draft, "check", &json!({})).status,
            404,
            "{draft}"
        );
    }
    assert!(
        bench
            .request_refused(&draft, "trial", &json!({}))
            .contains(" in the mapping first")
    );
    let refused = bench.request_refused(
        &draft,
        "save",
        &json!({"file": "../out.json", "mapping": heading_mapping("x", HOST)}),
    );
    assert!(refused.contains("invalid file name"), "{refused}");
    assert!(
        bench
            .request_refused(&draft, "add", &json!({"add": {"file": "/etc/passwd"}}))
            .contains("unknown variant")
    );
    assert!(!work.path("out.json").exists());
}
