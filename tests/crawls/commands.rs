//! Tests commands other than `crawl`: checking and testing mappings, pruning, and the SQL queries of the reference.

use std::path::Path;

use serde_json::{Value, json};
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

const PROFILE: &str = "<html><body><h1> Ada's page </h1><p class='name'>Ada</p>\
    <a rel='me' href='/more'>m</a><a href='/other'>o</a></body></html>";

fn json_of(run: &Finished) -> Value {
    serde_json::from_str(&run.stdout)
        .unwrap_or_else(|error| panic!("not JSON ({error}): {}", run.stdout))
}

fn mapping_command(args: &[&str]) -> Run {
    Run::new(["mapping"]).args(args)
}

#[test]
fn mapping_check_passes_good_mappings_and_lists_every_fault_of_bad_ones() {
    let work = Workplace::new();
    let folder = work.path("mappings").display().to_string();
    mapping_command(&["check", &folder]).finish().expect_code(0);
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
    let run = mapping_command(&["check", &folder]).finish();
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
fn mapping_check_lists_the_faults_of_all_paths() {
    let work = Workplace::new();
    let folder = work.path("mappings").display().to_string();
    work.write("one.json", "{\"name\": \n");
    work.write("two", "{}\n");
    let [one, two, none] =
        ["one.json", "two", "none.json"].map(|name| work.path(name).display().to_string());
    let run = mapping_command(&["check", &one, &folder, &two, &none])
        .finish()
        .expect_code(2);
    assert!(
        run.stdout.contains(&format!("{folder}: ")),
        "{}",
        run.stdout
    );
    for fault in [
        format!("{one}:"),
        format!("{two}:1: the key `name` is missing"),
        format!("{none}: cannot be read"),
    ] {
        assert!(run.stderr.contains(&fault), "{}", run.stderr);
    }
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
    let run = mapping_command(&["check", &file]).finish().expect_code(0);
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
fn mapping_check_warns_of_numbers_and_dates_that_golden_cases_leave_open() {
    let work = Workplace::new();
    let field = |name: &str, processor: &str| {
        let css = json!({"type": "css", "parameters": {"selector": format!(".{name}")}});
        json!({"name": name, "processors": [css, {"type": processor}]})
    };
    let mut shop = json!({
        "name": "shop", "url_patterns": [{"type": "host", "pattern": "shop.example"}],
        "fields": [field("price", "number"), field("seen", "date"), field("weight", "number")],
    });
    let file = work.write_json("shop/shop.json", &shop);
    for (case, price, seen, weight) in [
        ("a", "1,234", "01/02/2024", "1 lb 3 oz"),
        ("b", "12,50", "25/12/2024", "5 kg"),
        ("c", "7", "1 May 2024", "2 kg (net)"),
    ] {
        let page = format!("<p class=price>{price}<p class=seen>{seen}<p class=weight>{weight}");
        work.write(&format!("shop/golden/shop/{case}.html"), &page);
        let kept = json!({"url": format!("https://shop.example/{case}"), "mapping": "shop"});
        work.write_json(&format!("shop/golden/shop/{case}.json"), &kept);
    }
    let file = file.display().to_string();
    let output = mapping_command(&["check", &file])
        .finish()
        .expect_code(0)
        .stdout;
    assert!(output.contains("1 mapping, 3 warnings"), "{output}");
    for warning in [
        r#"field weight: number: 1 values of the golden cases hold several numbers, such as "1 lb 3 oz", and are left out: cut out the one you mean with `regex` first"#,
        r#"field price: number: 1 values of the golden cases can be read in two ways, such as "1,234", and are left out: set "decimal": ",", as the others show"#,
        r#"field seen: date: 1 values of the golden cases can be read in two ways, such as "01/02/2024", and are left out: set "order": "day_first", as the others show"#,
    ] {
        assert!(output.contains(warning), "{output}");
    }
    shop["fields"][0]["processors"][1]["parameters"] = json!({"decimal": ","});
    shop["fields"][1]["processors"][1]["parameters"] = json!({"order": "day_first"});
    let pounds = json!({"type": "regex", "parameters": {"pattern": "^\\d+ (?:kg|lb)"}});
    let processors = shop["fields"][2]["processors"].as_array_mut().unwrap();
    processors.insert(1, pounds);
    work.write_json("shop/shop.json", &shop);
    let output = mapping_command(&["check", &file])
        .finish()
        .expect_code(0)
        .stdout;
    assert!(output.contains("1 mapping, all good"), "{output}");
}

#[test]
fn mapping_test_prints_what_a_saved_page_yields() {
    let work = Workplace::new();
    let file = work.path("mappings/profile.json").display().to_string();
    let saved = work.write("ada.html", PROFILE).display().to_string();
    let run = mapping_command(&["test", &file, &saved, "--url", "http://ada.example/"])
        .finish()
        .expect_code(0);
    let result = json_of(&run);
    assert_eq!(result["mapping"], "profile");
    assert_eq!(
        result["fields"],
        json!({"title": "Ada's page", "name": "Ada"})
    );
    assert_eq!(result["links"], json!(["http://ada.example/more"]));
}

#[test]
fn mapping_test_trace_shows_each_step_and_the_one_that_lost_a_field() {
    let work = Workplace::new();
    let file = work.path("mappings/profile.json").display().to_string();
    let saved = work.write("ada.html", PROFILE).display().to_string();
    let run = mapping_command(&[
        "test",
        &file,
        &saved,
        "--url",
        "http://ada.example/",
        "--trace",
    ])
    .finish()
    .expect_code(0);
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
    let printed = json_of(&mapping_command(&["schema"]).finish().expect_code(0));
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
    let run = mapping_command(&["check"])
        .arg(&folder)
        .finish()
        .expect_code(0);
    assert!(!run.stdout.contains("error"), "{}", run.stdout);
    assert!(folder.join("gravatar.json").exists());
    let files = std::fs::read_dir(&folder)
        .expect("the folder ships")
        .flatten();
    let is_mapping = |name: &str| name.ends_with(".json") && name != "schema.json";
    let mappings = files.filter(|file| file.file_name().to_str().is_some_and(is_mapping));
    assert!(mappings.count() >= 4, "Gravatar's and three for real sites");
}

/// The SQL in the documentation is run on the store of a crawl that has completed one of two records.
#[test]
fn every_query_of_the_reference_finds_something() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = web.site("people.example");
    site.serve(
        "/ada",
        page("Ada").field("name", "Ada").field("location", "London"),
    );
    site.serve("/bob", page("Bob").field("name", "Bob"));
    let record = |id: &str| json!({"id": id, "urls": [site.url(&format!("/{id}"))], "fields": {"name": null, "location": null}});
    let seeds = work.write_lines("seeds.jsonl", &[record("ada"), record("bob")]);
    let run = work.crawl(&web).arg("--seeds").arg(seeds);
    run.finish().expect_code(0);
    let db = rusqlite::Connection::open(work.path("store.db")).unwrap();
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/data.md");
    let text = std::fs::read_to_string(reference).unwrap();
    let queries: Vec<&str> = text
        .split("```sql\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(queries.len() >= 4, "{queries:?}");
    for query in queries {
        let mut statement = db.prepare(query).unwrap();
        let mut found = statement.query([]).unwrap();
        assert!(found.next().unwrap().is_some(), "{query}: finds nothing");
    }
}

/// Prunes crawls in the state folder of `webfill crawl`.
fn run_prune(work: &Workplace, args: &[&str]) -> Finished {
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
    site.serve_otherwise(|_| page("T").into());
    let crawl = || work.crawl(&web).arg(site.url("/")).finish();
    crawl().expect_code(0);
    run_prune(&work, &["other"]).expect_code(1);
    run_prune(&work, &["--older-than", "1h"]).expect_code(0);
    crawl().expect_code(0);
    assert_eq!(web.visits().pages().len(), 1, "it is known");
    let output = run_prune(&work, &["test"]).expect_code(0).stdout;
    assert_eq!(output.trim(), "local: 1 crawl with 1 URL pruned");
    crawl().expect_code(0);
    assert_eq!(web.visits().pages().len(), 2, "it began anew");
}

#[test]
fn crawls_that_are_not_pruned_are_listed_with_the_reason() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = web.site("a.example");
    site.serve_otherwise(|_| page("T").into());
    let urls = [site.url("/1"), site.url("/2")];
    let run = work.crawl(&web).args(["--max-pages", "1"]).args(urls);
    run.finish().expect_code(12);
    for (args, output) in [
        (&["test"][..], "1 of its URLs is not done"),
        (&["other"], "no such crawl"),
    ] {
        let refused = run_prune(&work, args).expect_code(1).stderr;
        assert!(refused.contains(output), "{refused}");
    }
    work.crawl(&web).finish().expect_code(0);
    let young = run_prune(&work, &["test", "--older-than", "1h"]).expect_code(1);
    let output = young.one_sentence();
    assert!(
        output.contains("active since the time of --older-than"),
        "{output}"
    );
    // Pruning cannot be undone, so its time must have a unit.
    let refused = run_prune(&work, &["--older-than", "30"]).expect_code(2);
    let output = refused.one_sentence();
    assert!(output.contains("`30` has no unit: write 30d"), "{output}");
    run_prune(&work, &["test"]).expect_code(0);
}

#[test]
fn zero_workers_mean_the_default_number() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = web.site("a.example");
    site.serve("/", page("T"));
    let run = work.crawl(&web).replace_flag("--workers", "0");
    let done = run.arg(site.url("/")).finish().expect_code(0);
    assert_eq!(done.summary().outcome_count("ok"), 1);
}
