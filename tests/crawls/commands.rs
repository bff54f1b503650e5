//! The commands beside `crawl`: mapping checks and tests, exports, the demo.

use std::path::Path;

use serde_json::{Value, json};
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::{Workplace, files_under};

const PROFILE: &str = "<html><body><h1> Ada's page </h1><p class='name'>Ada</p>\
    <a rel='me' href='/more'>m</a><a href='/other'>o</a></body></html>";

fn json_of(run: &Finished) -> Value {
    serde_json::from_str(&run.stdout)
        .unwrap_or_else(|error| panic!("not JSON ({error}): {}", run.stdout))
}

fn mapping(args: &[&str]) -> Run {
    Run::new(["mapping"]).args(args)
}

#[test]
fn mapping_check_passes_good_mappings_and_lists_every_fault_of_bad_ones() {
    let work = Workplace::new();
    let folder = work.path("mappings").display().to_string();
    mapping(&["check", &folder]).finish().expect(0);
    let bad = json!({
        "name": "bad", "url_patterns": [{"type": "regex", "pattern": "("}], "filds": [],
        "fields": [
            {"name": "Upper", "processors": [{"type": "trim", "parameters": {}}]},
            {"name": "x", "processors": [{"type": "xpath", "parameters": {"expression": "//a["}}]},
            {"name": "y", "processors": [{"type": "css", "parameters": {"selectr": "a"}}]},
        ],
    });
    work.write_json("mappings/bad.json", &bad);
    work.write("mappings/worse.json", "{\"name\": \n");
    let run = mapping(&["check", &folder]).finish();
    assert!(matches!(run.status.code(), Some(1 | 2)), "{:?}", run.status);
    let said = run.stdout.clone() + &run.stderr;
    let faults = [
        "bad.json",
        "worse.json",
        "filds",
        "url_patterns[0].pattern",
        "fields[0].name",
        "Upper",
        "fields[1].processors[0].parameters.expression",
        "//a[",
        "selectr",
        "selector",
    ];
    for fault in faults {
        assert!(said.contains(fault), "`{fault}` is not in:\n{said}");
    }
    assert!(
        !said.contains("profile.json"),
        "the good one is not blamed:\n{said}"
    );
}

#[test]
fn mapping_check_warns_of_names_that_no_html_page_has() {
    let work = Workplace::new();
    let xpath = |name: &str, expression: &str| {
        let parameters = json!({"expression": expression});
        json!({"name": name, "processors": [{"type": "xpath", "parameters": parameters}]})
    };
    let mapping_file = json!({
        "name": "capitals", "url_patterns": [{"type": "host", "pattern": "a.example"}],
        "fields": [
            xpath("svg", "//svg/@viewBox"), xpath("feed", "//item/pubDate"), xpath("bad", "//DIV/h1"),
        ],
    });
    let file = work.write_json("capitals.json", &mapping_file);
    let file = file.display().to_string();
    let run = mapping(&["check", &file]).finish().expect(0);
    assert!(
        run.stdout.contains("1 mapping, 1 warning"),
        "{}",
        run.stdout
    );
    let warning = run.stdout.lines().nth(1).unwrap_or_default();
    for part in [
        "capitals.json:",
        "fields[2].processors[0].parameters.expression",
        "`DIV` at offset 2",
        "write `div`",
    ] {
        assert!(warning.contains(part), "`{part}` is not in {warning}");
    }
}

#[test]
fn mapping_test_prints_what_a_saved_page_yields() {
    let work = Workplace::new();
    let file = work.path("mappings/profile.json").display().to_string();
    let saved = work.write("ada.html", PROFILE).display().to_string();
    let run = mapping(&["test", &file, &saved, "--url", "http://ada.example/"])
        .finish()
        .expect(0);
    let result = json_of(&run);
    assert_eq!(result["mapping"], "profile");
    assert_eq!(
        result["fields"],
        json!({"title": "Ada's page", "name": "Ada"})
    );
    assert_eq!(result["links"], json!(["http://ada.example/more"]));
}

#[test]
fn mapping_test_trace_shows_each_step_and_what_lost_a_field() {
    let work = Workplace::new();
    let file = work.path("mappings/profile.json").display().to_string();
    let saved = work.write("ada.html", PROFILE).display().to_string();
    let run = mapping(&[
        "test",
        &file,
        &saved,
        "--url",
        "http://ada.example/",
        "--trace",
    ])
    .finish()
    .expect(0);
    let trace = json_of(&run).to_string();
    for part in [
        "xpath",
        "trim",
        "//h1/text()",
        " Ada's page ",
        "\"Ada's page\"",
        "location",
    ] {
        assert!(
            trace.contains(part),
            "`{part}` is not in the trace:\n{trace}"
        );
    }
}

#[test]
fn mapping_schema_is_json_and_the_copy_in_the_folder_is_the_same() {
    let printed = json_of(&mapping(&["schema"]).finish().expect(0));
    let copy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../etl-mappings/schema.json");
    let copy = std::fs::read_to_string(copy).expect("the folder has a copy of the schema");
    let copy: Value = serde_json::from_str(&copy).expect("the copy is JSON");
    assert_eq!(printed, copy);
    let draft = printed["$schema"].as_str().unwrap_or_default();
    assert!(draft.contains("json-schema.org"), "{draft}");
}

#[test]
fn the_mappings_that_ship_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../etl-mappings");
    let run = mapping(&["check"]).arg(&folder).finish().expect(0);
    assert!(!run.stdout.contains("error"), "{}", run.stdout);
    assert!(folder.join("gravatar.json").exists());
    let files = std::fs::read_dir(&folder)
        .expect("the folder ships")
        .flatten();
    let is_mapping = |name: &str| name.ends_with(".json") && name != "schema.json";
    let mappings = files.filter(|file| file.file_name().to_str().is_some_and(is_mapping));
    assert!(mappings.count() >= 4, "Gravatar's and three for real sites");
}

/// A crawl of three profiles, for exports.
fn crawled() -> Workplace {
    let web = Web::start();
    let site = web.site("x.example");
    site.serve(
        "/1",
        page("One")
            .field("name", "Ada, \"the\" first")
            .field("location", "=1+1"),
    );
    site.serve("/2", page("Two").field("name", "Zoë\u{1F600}"));
    site.serve("/3", page("Three").status(404));
    let work = Workplace::new();
    let missing = json!({"name": null, "location": null});
    let records: Vec<Value> = (1..=3)
        .map(|n| json!({"id": n.to_string(), "urls": [site.url(&format!("/{n}"))], "fields": missing}))
        .collect();
    let seeds = work.write_lines("seeds.jsonl", &records);
    work.crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect(0);
    work
}

fn export(work: &Workplace, args: &[&str]) -> Finished {
    let store = format!("sqlite:{}", work.path("store.db").display());
    Run::new(["export", "--store", &store])
        .args(args)
        .finish()
        .expect(0)
}

#[test]
fn export_writes_pages_and_records_as_json_lines() {
    let work = crawled();
    let lines = |what: &str| -> Vec<Value> {
        let run = export(&work, &[what, "--format", "jsonl"]);
        run.stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("a JSON value per line"))
            .collect()
    };
    let records = lines("records");
    assert_eq!(records.len(), 3);
    let first = records
        .iter()
        .find(|record| record["record_id"] == "1")
        .expect("record 1");
    assert_eq!(first["fields"]["name"], "Ada, \"the\" first");
    let pages = lines("pages");
    assert_eq!(pages.len(), 3);
    let lost = pages
        .iter()
        .find(|page| page["url"] == "http://x.example/3")
        .expect("page 3");
    assert_eq!(
        (&lost["outcome"], &lost["status_code"]),
        (&json!("http_error"), &json!(404))
    );
}

#[test]
fn export_writes_csv_for_programs_or_for_spreadsheets() {
    let work = crawled();
    let run = export(&work, &["records", "--format", "csv"]);
    let mut lines = run.stdout.lines();
    let header = lines.next().expect("a header");
    assert!(
        header.starts_with("id,") && header.contains("name") && header.contains("location"),
        "{header}"
    );
    assert_eq!(run.stdout.lines().count(), 4);
    assert!(
        run.stdout.contains("\"Ada, \"\"the\"\" first\""),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("Zoë\u{1F600}"), "{}", run.stdout);
    assert!(run.stdout.contains(",=1+1"), "as it is: {}", run.stdout);
    let run = export(&work, &["records", "--format", "csv", "--spreadsheet"]);
    assert!(
        run.stdout.contains(",'=1+1"),
        "a formula is disarmed: {}",
        run.stdout
    );
}

#[test]
fn export_of_a_store_that_is_not_there_makes_none() {
    let work = Workplace::new();
    let store = format!("sqlite:{}", work.path("none.db").display());
    let run = Run::new(["export", "--store", &store, "pages", "--format", "jsonl"]).finish();
    assert!(matches!(run.status.code(), Some(1 | 2)), "{:?}", run.status);
    assert!(run.one_sentence().contains("none.db"), "{}", run.stderr);
    assert!(!work.path("none.db").exists());
}

#[test]
fn the_demo_needs_nothing_and_prints_resolved_records() {
    let empty = tempfile::tempdir().expect("a temporary folder");
    let run = Run::new(["demo"])
        .in_folder(empty.path())
        .finish()
        .expect(0);
    assert!(
        run.elapsed < std::time::Duration::from_secs(30),
        "{:?}",
        run.elapsed
    );
    assert!(run.stdout.lines().count() > 8, "{}", run.stdout);
    assert!(
        run.stdout.to_lowercase().contains("resolved"),
        "{}",
        run.stdout
    );
    let left: Vec<_> = files_under(empty.path());
    assert!(left.is_empty(), "the demo leaves nothing behind: {left:#?}");
}

/// Prunes in the state folder of `webfill crawl`.
fn prune(work: &Workplace, args: &[&str]) -> Finished {
    Run::new(["prune", "local"])
        .args(args)
        .arg("--state")
        .arg(work.path("state"))
        .finish()
}

#[test]
fn a_crawl_on_this_machine_is_pruned_in_its_state_folder_and_begins_anew() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = web.site("a.example");
    site.otherwise(|_| page("T").into());
    let crawl = || work.crawl(&web).arg(site.url("/")).finish();
    crawl().expect(0);
    prune(&work, &["other"]).expect(1);
    prune(&work, &["--older-than", "1h"]).expect(0);
    crawl().expect(0);
    assert_eq!(web.visits().pages().len(), 1, "it is known");
    let told = prune(&work, &["test"]).expect(0).stdout;
    assert_eq!(told.trim(), "local: 1 crawls with 1 URLs pruned");
    crawl().expect(0);
    assert_eq!(web.visits().pages().len(), 2, "it began anew");
}
