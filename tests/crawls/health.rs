//! Tests mappings that decay: the layout of pages changes in the middle of a crawl, and the change is reported once.

mod rows;

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Page, Site, Web, page};
use webfill_tests::workplace::{Workplace, profile_mapping_with_alternative};

/// The number of pages with the old layout, which come first, and the number of pages after the change.
const BEFORE: usize = 150;
const AFTER: usize = 60;

const HOST: &str = "shop.example";

/// The number in a path, for example 17 in `/17`.
fn parse_number(path: &str) -> usize {
    path.trim_start_matches('/').parse().unwrap_or_default()
}

fn old_page(number: usize) -> Page {
    page(&format!("Thing {number}"))
        .field("name", &format!("Name {number}"))
        .field("location", &format!("Place {number}"))
}

/// A page in another layout: the title stays, but the other fields of the mapping are gone.
fn new_page(number: usize) -> Page {
    page(&format!("Thing {number}")).html(format!(
        "<section><dl><dt>Name<dd>Name {number}<dt>Place<dd>Place {number}</dl></section>"
    ))
}

/// Serves pages with the old layout for the numbers below [`BEFORE`], and pages made by `other` for all higher numbers.
fn serve_old_then(site: &Site, other: impl Fn(usize) -> Page + Send + Sync + 'static) {
    site.serve_otherwise(move |request| match parse_number(&request.path) {
        number if number < BEFORE => old_page(number).into(),
        number => other(number).into(),
    });
}

fn crawl_command(work: &Workplace, web: &Web) -> Run {
    crawl_of(work, web, BEFORE + AFTER)
}

fn crawl_of(work: &Workplace, web: &Web, pages: usize) -> Run {
    let urls: Vec<Value> = (0..pages)
        .map(|number| json!({"id": number.to_string(), "urls": [format!("http://{HOST}/{number}")], "fields": {"name": null}}))
        .collect();
    let seeds = work.write_lines("seeds.jsonl", &urls);
    let run = work.crawl_without_delay(web).args(["--delay", "0"]);
    run.arg("--seeds").arg(seeds)
}

fn run_health(store: &str, more: &[&str]) -> Finished {
    Run::new(["health", "--store", store]).args(more).finish()
}

fn health_report(store: &str) -> Value {
    let output = run_health(store, &["--json"]).expect_code(0).stdout;
    serde_json::from_str(&output).expect("an object")
}

fn sqlite_uri(work: &Workplace) -> String {
    format!("sqlite:{}", work.path("store.db").display())
}

fn alert_fields(alert: &Value) -> Vec<&str> {
    let fields = alert["fields"].as_array().expect("a list");
    fields
        .iter()
        .filter_map(|one| one["field"].as_str())
        .collect()
}

/// Checks that there is one alert, which names both fields and has sample pages from before and after the change.
fn assert_layout_changed(report: &Value) {
    assert_eq!(report["alerts"], 1, "{report:#}");
    let mapping = &report["mappings"][0];
    assert_eq!(
        (&mapping["mapping"], &mapping["pages"]),
        (&json!("profile"), &json!(BEFORE + AFTER))
    );
    assert_eq!(alert_fields(&mapping["alert"]), ["location", "name"]);
    assert_eq!(mapping["past_alerts"], json!([]));
    for (when, has_name) in [("before", true), ("after", false)] {
        let pages = mapping["alert"][when].as_array().expect("a list");
        assert_eq!(pages.len(), 20, "{when}");
        for page in pages {
            let url = page["url"].as_str().expect("a text");
            let path = url.strip_prefix("http://shop.example").expect(url);
            assert_eq!(parse_number(path) < BEFORE, has_name, "{when}: {url}");
            assert_eq!(page["fields"].get("name").is_some(), has_name, "{page}");
        }
    }
}

#[test]
fn fields_that_are_lost_together_are_one_alert_everywhere() {
    let web = Web::start();
    serve_old_then(&web.site(HOST), new_page);
    let work = Workplace::new();
    let run = crawl_command(&work, &web).finish().expect_code(0);
    let alerts = &run.summary().json["found"]["alerts"];
    assert_eq!(alerts.as_array().map(Vec::len), Some(1), "{alerts}");
    assert_eq!(alert_fields(&alerts[0]), ["location", "name"]);
    let store = sqlite_uri(&work);
    assert_layout_changed(&health_report(&store));
    let output = run_health(&store, &["--fail-on-alert"])
        .expect_code(1)
        .stdout;
    assert!(
        output.contains("ALERT") && output.contains("the layout of mapping profile changed"),
        "{output}"
    );
    run_health(&store, &["other", "--fail-on-alert"]).expect_code(0);
    let logged = work.logs();
    let logged = logged.values().flatten();
    let warned: Vec<_> = logged
        .filter(|line| line["event"] == "layout_changed")
        .collect();
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert_eq!(warned[0]["level"], "WARN");
    let folder = work.path("repair");
    let pages = folder.to_str().expect("UTF-8");
    run_health(&store, &["--pages", pages]).expect_code(0);
    let read =
        |name: String| std::fs::read_to_string(folder.join("profile").join(name)).expect("a page");
    for number in 1..=20 {
        let old = read(format!("before-{number:02}.html"));
        assert!(old.contains("<p class=\"name\">"), "{old}");
        let new = read(format!("after-{number:02}.html"));
        assert!(new.contains("<dt>Name<dd>"), "{new}");
    }
    let listed = read(String::from("pages.jsonl"));
    assert_eq!(listed.lines().count(), 40);
    // A second crawl of the same pages changes nothing. The summary for people contains the alert.
    let again = crawl_command(&work, &web)
        .replace_flag("--summary", "human")
        .finish()
        .expect_code(0);
    assert!(
        again
            .stdout
            .contains("ALERT     the layout of mapping profile"),
        "{}",
        again.stdout
    );
    assert_layout_changed(&health_report(&store));
}

/// The number of sample pages that are kept for repairs in the SQLite store.
fn count_samples(work: &Workplace) -> u64 {
    let store = rusqlite::Connection::open(work.path("store.db")).expect("a store");
    let count = store.query_row("SELECT count(*) FROM samples", (), |row| {
        row.get::<_, i64>(0)
    });
    count.expect("a number").unsigned_abs()
}

#[test]
fn pages_for_repairs_are_removed_with_old_pages_and_only_kept_if_wanted() {
    let web = Web::start();
    serve_old_then(&web.site(HOST), new_page);
    let work = Workplace::new();
    let refused = crawl_command(&work, &web).env("WEBFILL_RETENTION_SAMPLES_MIB", "0");
    refused.finish().expect_code(0);
    assert_eq!(count_samples(&work), 0);
    assert_layout_changed(&health_report(&sqlite_uri(&work)));

    let work = Workplace::new();
    let again = || crawl_command(&work, &web).args(["--refresh-after", "0s"]);
    again().finish().expect_code(0);
    assert!(count_samples(&work) > 40, "{}", count_samples(&work));
    let store = sqlite_uri(&work);
    let prune = |age| Run::new(["prune", "--store", &store, "--json", "--older-than", age]);
    let pruned = |age| -> Value {
        let output = prune(age).finish().expect_code(0).stdout;
        serde_json::from_str(&output).expect("an object")
    };
    assert_eq!(pruned("1h")["total_samples"], 0);
    let kept = count_samples(&work);
    assert_eq!(pruned("0s")["total_samples"], kept);
    assert_eq!(count_samples(&work), 0);

    again().finish().expect_code(0);
    assert!(count_samples(&work) > 0);
    let unwanted = again().env("WEBFILL_RETENTION_SAMPLES_MIB", "0");
    unwanted.finish().expect_code(0);
    assert_eq!(count_samples(&work), 0, "what there is goes at the start");
}

#[needs(mongod)]
#[test]
fn mongodb_keeps_the_same_samples_as_the_embedded_store() {
    let database = fresh_database();
    let web = Web::start();
    serve_old_then(&web.site(HOST), new_page);
    let work = Workplace::new();
    // MongoDB may return pages that were saved together in any order. The pages before and after the change are saved
    // by separate crawls, so that their order is clear.
    for pages in [BEFORE, BEFORE + AFTER] {
        let run = crawl_of(&work, &web, pages).replace_flag("--store", database.uri());
        run.finish().expect_code(0);
    }
    let report = health_report(database.uri());
    assert_layout_changed(&report);
    let folder = work.path("repair");
    run_health(
        database.uri(),
        &["--pages", folder.to_str().expect("UTF-8")],
    )
    .expect_code(0);
    let listed = folder.join("profile/pages.jsonl");
    let listed = std::fs::read_to_string(listed).expect("a list");
    assert_eq!(listed.lines().count(), 40, "{listed}{report:#}");
}

/// Half of the sites answer with a challenge. All other sites answer with the same page, which has no known signature.
#[test]
fn blocked_pages_are_no_change_of_the_layout() {
    let web = Web::start();
    serve_old_then(&web.site(HOST), old_page);
    let mut urls: Vec<String> = (0..BEFORE)
        .map(|number| format!("http://{HOST}/{number}"))
        .collect();
    for number in 0..AFTER {
        let host = format!("b{number}.example");
        let reply = match number % 2 {
            0 => page("Home").status(403).header("cf-mitigated", "challenge"),
            _ => page("Please hold on").html("<script>document.cookie = run()</script>"),
        };
        web.site(&host).serve("/", reply);
        urls.push(format!("http://{host}/"));
    }
    let work = Workplace::new();
    let seeds = work.write("seeds.txt", urls.join("\n"));
    let run = work.crawl_without_delay(&web).args(["--delay", "0"]);
    let run = run.arg("--seeds").arg(seeds).finish().expect_code(0);
    assert_eq!(run.summary().outcomes()["blocked"] as usize, AFTER / 2);
    let report = health_report(&sqlite_uri(&work));
    assert_eq!(report["alerts"], 0, "{report:#}");
    let mapping = &report["mappings"][0];
    assert_eq!(mapping["past_alerts"], json!([]));
    assert_eq!(mapping["pages"], BEFORE + 1, "the unknown page counts once");
}

#[test]
fn deaths_in_the_middle_neither_lose_nor_repeat_a_page() {
    let web = Web::start();
    serve_old_then(&web.site(HOST), new_page);
    let work = Workplace::new();
    for pages in [40, 110, 170] {
        let running = crawl_command(&work, &web).start();
        web.log()
            .wait_until("it continues", |visits| visits.pages().len() > pages);
        for process in running.processes() {
            process.signal(Signal::KILL);
        }
        running.finish();
    }
    crawl_command(&work, &web).finish().expect_code(0);
    assert_layout_changed(&health_report(&sqlite_uri(&work)));
}

#[test]
fn known_values_that_pages_no_longer_have_raise_an_alert() {
    let web = Web::start();
    serve_old_then(&web.site(HOST), |number| {
        old_page(number + 1_000).field("email", "x@y.example")
    });
    let work = Workplace::new();
    let records: Vec<Value> = (0..BEFORE + AFTER)
        .map(|number| {
            let fields = json!({"name": format!("NAME  {number}"), "location": null});
            json!({"id": number.to_string(), "urls": [format!("http://{HOST}/{number}")], "fields": fields})
        })
        .collect();
    let seeds = work.write_lines("known.jsonl", &records);
    let run = work.crawl_without_delay(&web).args(["--delay", "0"]);
    run.arg("--seeds").arg(seeds).finish().expect_code(0);
    let report = health_report(&sqlite_uri(&work));
    assert_eq!(report["alerts"], 1, "{report:#}");
    let alert = &report["mappings"][0]["alert"];
    assert_eq!(alert_fields(alert), ["name"]);
    assert_eq!(alert["fields"][0]["sign"], "wrong_values");
}

fn write_alternative_mapping(work: &Workplace) {
    work.write_json("mappings/profile.json", &profile_mapping_with_alternative());
}

fn an_alternative_that_begins_to_serve_is_reported(store: Option<&str>) {
    let web = Web::start();
    serve_old_then(&web.site(HOST), new_page);
    let work = Workplace::new();
    write_alternative_mapping(&work);
    let store = store.map_or_else(|| sqlite_uri(&work), str::to_owned);
    let run = || crawl_command(&work, &web).replace_flag("--store", &store);
    let found = &run().finish().expect_code(0).summary().json["found"];
    assert_eq!(
        found["mappings"]["profile"]["fields"]["name"]["empty"], 0,
        "nothing is lost: {found:#}"
    );
    assert_eq!(found["alerts"], json!([]));
    let is_reported = |warnings: &Value| {
        assert_eq!(warnings.as_array().map(Vec::len), Some(1), "{warnings:#}");
        assert_eq!(warnings[0]["kind"], "alternative_serves");
        assert_eq!(warnings[0]["field"], "name");
        assert_eq!(
            warnings[0]["detail"],
            "its first chain yields nothing any more; its alternative 2 serves"
        );
    };
    is_reported(&found["warnings"]);
    let report = health_report(&store);
    assert_eq!(report["alerts"], 0);
    is_reported(&report["mappings"][0]["warnings"]);
    let output = run_health(&store, &["--fail-on-alert"])
        .expect_code(0)
        .stdout;
    assert!(
        output.contains("profile: name: its first chain yields nothing any more"),
        "{output}"
    );
    let logged = work.logs();
    let suspicious = logged
        .values()
        .flatten()
        .filter(|line| line["event"] == "extraction_suspicious");
    assert_eq!(suspicious.count(), 1);
    let again = run()
        .replace_flag("--summary", "human")
        .finish()
        .expect_code(0);
    assert!(
        again.stdout.contains(
            "WARNING   field name of mapping profile: its first chain yields nothing any more"
        ),
        "{}",
        again.stdout
    );
}

#[test]
fn an_alternative_that_begins_to_serve_is_reported_everywhere() {
    an_alternative_that_begins_to_serve_is_reported(None);
}

#[needs(mongod)]
#[test]
fn an_alternative_that_begins_to_serve_is_reported_from_mongodb_as_well() {
    an_alternative_that_begins_to_serve_is_reported(Some(fresh_database().uri()));
}

#[test]
fn an_alternative_that_serves_every_third_page_from_the_start_is_not_reported() {
    let web = Web::start();
    web.site(HOST)
        .serve_otherwise(|request| match parse_number(&request.path) {
            number if number % 3 == 0 => new_page(number).into(),
            number => old_page(number).into(),
        });
    let work = Workplace::new();
    write_alternative_mapping(&work);
    let found = &crawl_command(&work, &web)
        .finish()
        .expect_code(0)
        .summary()
        .json["found"];
    assert_eq!(
        found["mappings"]["profile"]["fields"]["name"]["empty"], 0,
        "{found:#}"
    );
    assert_eq!(found["warnings"], json!([]));
    let report = health_report(&sqlite_uri(&work));
    assert_eq!(report["mappings"][0]["warnings"], json!([]), "{report:#}");
    assert_eq!(report["mappings"][0]["pages"], json!(BEFORE + AFTER));
}
