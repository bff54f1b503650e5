//! Tests the watches of a fleet (crawls that run again and again). The dispatcher starts due runs by itself, even those
//! that became due while it was down.

use mongodb::bson::doc;
use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::documents::Documents;
use webfill_tests::site::page;

use crate::clients::{get, post};
use crate::fleet::{Fleet, request, wait_for};

const SITE: &str = "people.example";

/// The definition of a watch over a list page, which links to another page.
fn watch_of_list(fleet: &Fleet, schedule: &str) -> Value {
    let site = fleet.web.site(SITE);
    site.serve("/list", page("List").mapped_link("/ada"));
    site.serve("/ada", page("Ada").field("name", "Ada Byron"));
    json!({"name": "people", "urls": [format!("http://{SITE}/list")], "schedule": schedule})
}

fn add_watch(fleet: &Fleet, watch: &Value) -> Value {
    ask(fleet, json!({"action": "watch_add", "watch": watch}))
}

fn ask(fleet: &Fleet, action: Value) -> Value {
    fleet.client().ask(&action)
}

fn show_watch(fleet: &Fleet) -> Value {
    ask(
        fleet,
        json!({"action": "watch_show", "name": "people", "runs": 100}),
    )
}

/// The runs of the watch, the latest first.
fn listed_runs(fleet: &Fleet) -> Vec<Value> {
    let shown = show_watch(fleet);
    shown["runs"].as_array().cloned().unwrap_or_default()
}

fn ended_runs(fleet: &Fleet) -> Vec<Value> {
    let runs = listed_runs(fleet).into_iter();
    runs.filter(|run| run["how"] != Value::Null).collect()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    wait_for(what, || condition().then_some(()));
}

fn count_visits(fleet: &Fleet, path: &str) -> usize {
    fleet.web.visits().pages().for_path(path).len()
}

#[test]
fn runs_begin_by_themselves_and_check_each_page_once() {
    let fleet = Fleet::start();
    let watch = watch_of_list(&fleet, "every 2s");
    assert_eq!(add_watch(&fleet, &watch)["name"], "people");
    wait_until("three runs have ended", || ended_runs(&fleet).len() >= 3);
    ask(&fleet, json!({"action": "watch_pause", "name": "people"}));
    wait_until("none is under way", || {
        show_watch(&fleet)["state"] == "paused"
    });
    let runs = listed_runs(&fleet);
    for path in ["/list", "/ada"] {
        assert_eq!(count_visits(&fleet, path), runs.len(), "{path}");
    }
    for run in &runs {
        assert_eq!(run["how"], "finished", "{run}");
        assert_eq!(run["counts"]["outcomes"], json!({"ok": 2}), "{run}");
        assert_eq!(run["counts"]["pages"], 2);
    }
    // Another watch with the same schedule runs twice. So the paused watch would have been due, too.
    fleet.web.site("clock.example").serve("/clock", page("C"));
    let clock =
        json!({"name": "clock", "urls": ["http://clock.example/clock"], "schedule": "every 2s"});
    add_watch(&fleet, &clock);
    wait_until("another has run twice", || {
        count_visits(&fleet, "/clock") >= 2
    });
    assert_eq!(count_visits(&fleet, "/list"), runs.len(), "it is paused");
    ask(&fleet, json!({"action": "watch_resume", "name": "people"}));
    wait_until("it continues", || count_visits(&fleet, "/ada") > runs.len());
    ask(&fleet, json!({"action": "watch_remove", "name": "people"}));
    let gone = show_watch(&fleet);
    assert_eq!(gone["error"]["path"], "$.name", "{gone}");
}

#[test]
fn a_restarted_dispatcher_continues_its_run() {
    let mut fleet = Fleet::start_with_seeds();
    fleet.web.site(SITE).serve_otherwise(|_| page("P").into());
    let lines: Vec<String> = (0..60).map(|n| format!("http://{SITE}/p{n}\n")).collect();
    fleet.work.write("seeds/people.txt", lines.concat());
    let watch = json!({"name": "people", "seeds": "people.txt", "schedule": "every 1h"});
    add_watch(&fleet, &watch);
    for at in [10, 30] {
        fleet
            .web
            .log()
            .wait_until("it is under way", |visits| visits.pages().len() > at);
        fleet.kill_dispatcher();
        fleet.start_dispatcher();
    }
    wait_until("the run has ended", || ended_runs(&fleet).len() == 1);
    assert_eq!(listed_runs(&fleet).len(), 1, "one run, and no other");
    assert_eq!(listed_runs(&fleet)[0]["how"], "finished");
    let paths = fleet.web.visits().pages().counts();
    assert_eq!(paths.len(), 60, "every page");
    let visits: usize = paths.values().sum();
    // After each death, the few tasks that were handed out are fetched again. If the run started anew each time, there
    // would be 40 more pages or even more.
    assert!(
        visits <= 60 + 2 * 8,
        "{visits}: only what was under way is repeated"
    );
}

#[test]
fn runs_missed_while_the_dispatcher_was_down_are_made_up_for_once() {
    let mut fleet = Fleet::start();
    let watch = watch_of_list(&fleet, "0 0 1 1 *");
    add_watch(&fleet, &watch);
    fleet.kill_dispatcher();
    // Makes the dispatcher believe that the watch was added ten years ago, so that ten runs were missed.
    let file = fleet.dispatcher_state.join("dispatcher.db");
    let db = rusqlite::Connection::open(file).unwrap();
    let sql = "UPDATE watches SET since_ms = since_ms - 3652 * 86400000";
    assert_eq!(db.execute(sql, []).unwrap(), 1);
    drop(db);
    fleet.start_dispatcher();
    wait_until("a run has ended", || !ended_runs(&fleet).is_empty());
    let first = ended_runs(&fleet).pop().unwrap();
    assert_eq!(first["missed"], 9, "{first}");
    let late_s = first["started"].as_f64().unwrap() - first["due"].as_f64().unwrap();
    assert!(late_s > 9.0 * 365.0 * 86_400.0, "{first}");
    // A manual run starts only when no run is due.
    ask(&fleet, json!({"action": "watch_run", "name": "people"}));
    wait_until("it has ended", || ended_runs(&fleet).len() >= 2);
    assert_eq!(listed_runs(&fleet).len(), 2, "once for all");
}

#[test]
fn records_of_a_file_are_fetched_again_in_each_run() {
    let fleet = Fleet::start_with_seeds();
    let site = fleet.web.site(SITE);
    site.serve("/ada", page("Ada").field("name", "Ada Byron"));
    let record =
        json!({"id": "1", "urls": [format!("http://{SITE}/ada")], "fields": {"name": null}});
    let seeds = fleet.work.write_lines("seeds/people.jsonl", &[record]);
    add_watch(
        &fleet,
        &json!({"name": "people", "seeds": seeds, "schedule": "0 0 29 2 *"}),
    );
    for (number, name) in ["Ada King", "Ada Lovelace"].iter().enumerate() {
        site.serve("/ada", page("Ada").field("name", name));
        ask(&fleet, json!({"action": "watch_run", "name": "people"}));
        wait_until("the records are counted", || {
            ended_runs(&fleet).len() == number + 1
                && ended_runs(&fleet)[0]["counts"]["records"]["resolved"] == 1
        });
        let stored = fleet
            .work
            .stored()
            .query_texts("SELECT fields FROM records");
        assert!(stored[0].contains(name), "{stored:?}");
    }
}

#[test]
fn two_files_are_two_datasets_and_once_fills_their_records_one_time() {
    let fleet = Fleet::start_with_seeds();
    let site = fleet.web.site(SITE);
    site.serve_otherwise(|request| page("T").field("name", &request.path).into());
    for (name, path) in [("people", "/ada"), ("pets", "/rex")] {
        let fields = json!({"name": null});
        let record = json!({"id": "1", "urls": [format!("http://{SITE}{path}")], "fields": fields});
        let file = format!("{name}.jsonl");
        fleet.work.write_lines(&format!("seeds/{file}"), &[record]);
        add_watch(
            &fleet,
            &json!({"name": name, "seeds": file, "schedule": "once"}),
        );
    }
    let filled = || {
        let sql = "SELECT _id || ' ' || fields FROM records ORDER BY _id";
        fleet.work.stored().query_texts(sql)
    };
    let expected = [r#"people/1 {"name":"/ada"}"#, r#"pets/1 {"name":"/rex"}"#];
    wait_until("both are filled", || filled() == expected);
    wait_until("the run has ended", || ended_runs(&fleet).len() == 1);
    assert_eq!(show_watch(&fleet)["next"], Value::Null);
}

#[needs(mongod)]
#[test]
fn records_of_a_collection_are_read_again_and_written_back() {
    let database = fresh_database();
    let documents = Documents::open(database.uri());
    let insert = |id: i32| {
        let url = format!("http://{SITE}/{id}");
        let person = doc! {"_id": id, "urls": [url], "name": null};
        documents.run(doc! {"insert": "people", "documents": [person]});
    };
    let allowed = database.uri().split('?').next().unwrap();
    let fleet = Fleet::start_with(&[("WATCHES_RECORDS", allowed)]);
    fleet.web.site(SITE).serve_otherwise(|request| {
        page("T")
            .field("name", &format!("Name of {}", request.path))
            .into()
    });
    let records = json!({"uri": database.uri(), "collection": "people", "write_back": "people"});
    add_watch(
        &fleet,
        &json!({"name": "people", "records": records, "schedule": "0 0 29 2 *"}),
    );
    for id in [1, 2] {
        insert(id);
        ask(&fleet, json!({"action": "watch_run", "name": "people"}));
        wait_until("the records are counted", || {
            let runs = ended_runs(&fleet);
            runs.len() == id as usize && runs[0]["counts"]["records"]["resolved"] == id
        });
    }
    assert_eq!(
        (count_visits(&fleet, "/1"), count_visits(&fleet, "/2")),
        (2, 1)
    );
    let found = documents.run(doc! {"find": "people", "filter": {"name": {"$ne": null}}});
    let batch = found
        .get_document("cursor")
        .unwrap()
        .get_array("firstBatch")
        .unwrap()
        .len();
    assert_eq!(batch, 2, "written back: {found}");
}

#[test]
fn windows_and_budgets_end_runs_and_missing_seeds_fail_them() {
    let fleet = Fleet::start_with_seeds();
    fleet.web.site(SITE).serve_otherwise(|_| page("P").into());
    let urls: Vec<String> = (0..200).map(|n| format!("http://{SITE}/p{n}")).collect();
    let watch = |more: Value| {
        let mut watch = json!({"name": "people", "urls": urls, "schedule": "0 0 29 2 *"});
        for (key, value) in more.as_object().unwrap() {
            watch[key] = value.clone();
        }
        watch
    };
    for (number, (more, how)) in [
        (json!({"budget": {"pages": 3}}), "budget"),
        (json!({"window": "1s"}), "window"),
        (json!({"urls": [], "seeds": "missing.txt"}), "failed"),
    ]
    .into_iter()
    .enumerate()
    {
        let added = add_watch(&fleet, &watch(more));
        assert_eq!(added.get("error"), None, "{added}");
        ask(&fleet, json!({"action": "watch_run", "name": "people"}));
        wait_until("the run has ended", || {
            ended_runs(&fleet).len() == number + 1
        });
        let run = ended_runs(&fleet).remove(0);
        assert_eq!(run["how"], how, "{run}");
        assert_eq!(run["why"].is_string(), how == "failed", "{run}");
        if how == "budget" {
            assert_eq!(run["counts"]["pages"], 3);
        }
    }
    let before = fleet.web.visits().pages().len();
    fleet.feed(&[request(&format!("http://{SITE}/of-another"), "another")]);
    fleet.wait_until_done("another");
    assert_eq!(
        fleet.web.visits().pages().len(),
        before + 1,
        "what is left waits for the next run, and leaves the site to others"
    );
}

#[test]
fn faults_are_refused_by_every_way_in_with_their_path() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    for (key, value, path) in [
        ("schedule", json!("0 2 * *"), "$.watch.schedule"),
        ("crawl", json!({"depht": 1}), "$.watch.crawl.depht"),
        ("crawl", json!({"store": "sqlite:x"}), "$.watch.crawl.store"),
        ("seeds", json!("relative.txt"), "$.watch.seeds"),
        ("seeds", json!("/etc/passwd"), "$.watch.seeds"),
    ] {
        let mut watch = watch_of_list(&fleet, "every 2s");
        watch[key] = value;
        let refused = add_watch(&fleet, &watch);
        assert_eq!(refused["error"]["path"], path, "{refused}");
        let file = fleet.work.write_json("watch.json", &watch);
        if key != "seeds" {
            let refused = fleet
                .command(&["watch", "add", &file.display().to_string()])
                .finish()
                .expect_code(2);
            let place = path.replacen(".watch", "", 1);
            assert!(
                refused.one_sentence().contains(&place),
                "{}",
                refused.stderr
            );
        }
        let (status, answer) = post(&fleet, "/watches", &watch);
        assert_eq!((status, &answer["error"]["path"]), (400, &json!(path)));
    }
    assert_eq!(
        ask(&fleet, json!({"action": "watch_list"}))["watches"],
        json!([])
    );
}

#[test]
fn the_command_and_http_have_the_effects_of_actions() {
    let fleet = Fleet::start();
    let watch = watch_of_list(&fleet, "0 0 29 2 *");
    let file = fleet
        .work
        .write_json("people.json", &watch)
        .display()
        .to_string();
    let command = |args: &[&str]| {
        fleet
            .command(&[&["watch"], args].concat())
            .finish()
            .expect_code(0)
            .stdout
    };
    assert!(command(&["add", &file]).contains("people: added"));
    assert!(command(&["add", &file]).contains("changed"));
    assert!(command(&["run", "people"]).contains("a run begins"));
    wait_until("the run has ended", || ended_runs(&fleet).len() == 1);
    assert!(command(&["list"]).contains("finished"));
    assert!(command(&["show", "people"]).contains("finished"));
    assert!(command(&["pause", "people"]).contains("paused"));
    let (status, listed) = get(&fleet, "/watches");
    assert_eq!(
        (status, &listed["watches"][0]["state"]),
        (200, &json!("paused"))
    );
    assert_eq!(post(&fleet, "/watches/people/run", &json!({})).0, 200);
    wait_until("a paused one is run when asked", || {
        ended_runs(&fleet).len() == 2
    });
    assert_eq!(get(&fleet, "/watches/people").1["runs"][0]["run"], 2);
    assert_eq!(post(&fleet, "/watches/people/resume", &json!({})).0, 200);
    assert!(command(&["remove", "people"]).contains("removed"));
    assert_eq!(post(&fleet, "/watches", &watch).0, 200);
    wait_until("its runs are still known", || {
        listed_runs(&fleet).len() == 2
    });
}
