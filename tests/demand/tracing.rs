//! Tests `webfill trace`, which shows the history of a URL from the logs of several machines in one folder.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::site::page;
use webfill_tests::workplace::files_under;

use crate::fleet::{Fleet, request, wait_for};

/// Copies the logs of all processes into one folder, as if they were collected from several machines.
fn collect_logs(fleet: &Fleet) -> std::path::PathBuf {
    let folder = fleet.work.path("collected");
    for file in files_under(&fleet.work.path("state")) {
        let name = file
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if file.is_symlink() || !name.ends_with(".log") {
            continue;
        }
        let machine = file.ancestors().nth(2).and_then(|path| path.file_name());
        let place = folder.join(machine.expect("a state folder"));
        fs::create_dir_all(&place).expect("a folder");
        fs::copy(&file, place.join(name)).expect("a copy");
    }
    folder
}

/// The events in the history of a URL, in order. The number is that of the task's delivery.
fn step_events(reported: &Value) -> Vec<(String, Option<u64>)> {
    let steps = reported["steps"].as_array().expect("a list");
    steps
        .iter()
        .map(|step| {
            let event = step["event"].as_str().expect("a word");
            (event.to_owned(), step["delivery"].as_u64())
        })
        .collect()
}

#[test]
fn a_trace_shows_each_step_of_a_url_once_though_its_worker_was_killed() {
    let mut fleet = Fleet::start_with(&[("LOG_LEVEL", "info,journey=debug")]);
    fleet.add_supervisor("two");
    let site = fleet.web.site("a.example");
    site.serve("/next", page("N"));
    // The worker is killed during the first request, which does not end before that.
    let has_begun = AtomicBool::new(false);
    site.serve_with("/", move |_| {
        let page = page("T").mapped_link("/next");
        match has_begun.swap(true, Ordering::SeqCst) {
            true => page.into(),
            false => page.latency(Duration::from_secs(25)).into(),
        }
    });
    let url = site.url("/");
    fleet.feed(&[request(&url, "c")]);
    fleet
        .web
        .log()
        .wait_until("the page is being fetched", |visits| {
            visits.for_path("/").len() == 1
        });
    let reported = fleet.run_json(&["why", &url]);
    let holder = reported["crawls"][0]["supervisor"]
        .as_str()
        .expect("it is leased")
        .to_owned();
    for worker in fleet.supervisor_named(&holder).processes_of_role("worker") {
        worker.signal(Signal::KILL);
    }
    fleet.wait_until_done("c");

    let folder = collect_logs(&fleet);
    let folder = folder.display().to_string();
    let store = fleet.store_uri();
    let trace = ["trace", &url, "--logs", &folder, "--store", &store];
    // The processes may not have written the last lines of their logs yet.
    let reported = wait_for("the story is whole", || {
        collect_logs(&fleet);
        let reported = fleet.run_json(&trace);
        let is_whole = step_events(&reported)
            .iter()
            .any(|(event, _)| event == "counted");
        is_whole.then_some(reported)
    });
    let found = step_events(&reported);
    let expected = [
        ("queued", None),
        ("leased", Some(1)),
        ("received", Some(1)),
        ("given_to_worker", Some(1)),
        ("begun", Some(1)),
        ("permitted", Some(1)),
        ("requested", Some(1)),
        ("came_back", Some(1)),
        ("leased", Some(2)),
        ("received", Some(2)),
        ("given_to_worker", Some(2)),
        ("begun", Some(2)),
        ("permitted", Some(2)),
        ("requested", Some(2)),
        ("ended", Some(2)),
        ("counted", Some(2)),
    ];
    for step in &expected {
        let times = found
            .iter()
            .filter(|(event, number)| (event.as_str(), *number) == *step);
        assert_eq!(times.count(), 1, "{step:?} in {found:#?}");
    }
    let place = |step: &(&str, Option<u64>)| {
        let place = found
            .iter()
            .position(|(event, number)| (event.as_str(), *number) == *step);
        place.expect("it is there")
    };
    for pair in expected.windows(2) {
        assert!(place(&pair[0]) < place(&pair[1]), "{pair:?} in {found:#?}");
    }
    // The page was fetched in the second delivery and stored after that.
    let stored = ("page", Some(2));
    assert!(place(&("leased", Some(2))) < place(&stored), "{found:#?}");
    assert_eq!(reported["crawls"][0]["outcome"], "ok");
    assert_eq!(reported["missing"], json!([]), "{reported}");
    // The fleet has no keys, so all that is known is how the application has fed the URL.
    assert_eq!(
        found.iter().filter(|(event, _)| event == "fed").count(),
        1,
        "{found:#?}"
    );
    let queued = &reported["steps"][place(&("queued", None))];
    assert_eq!(queued["more"]["by"], "socket", "{queued}");
    let steps = reported["steps"].as_array().expect("a list");
    assert!(
        steps.iter().all(|step| step["crawlid"] == "c"),
        "{reported}"
    );

    let text = fleet.run(&trace).expect_code(0).stdout;
    for part in [
        "testapp/c: it ended with `ok` (status 200)",
        "fed, in scope and new: queued",
        "returned without an outcome, queued again",
        "robots.txt permits it",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    // The link was found but not accepted, because it is deeper than the crawl follows links.
    let stranger = fleet.run_json(&[
        "trace",
        &site.url("/next"),
        "--logs",
        &folder,
        "--store",
        &store,
    ]);
    assert_eq!(stranger["steps"], json!([]), "{stranger}");
    assert_eq!(stranger["crawls"][0]["state"], "unknown", "{stranger}");

    // The dispatcher is dead, but the trace still has the steps from the logs and the store.
    fleet.kill_dispatcher();
    let trace = [&trace[..], &["--app", "testapp", "--crawl", "c"]].concat();
    let reported = fleet.run_json(&trace);
    assert_eq!(step_events(&reported), found);
    let missing = reported["missing"][0].as_str().expect("a sentence");
    assert!(missing.starts_with("the dispatcher's data: "), "{missing}");
    // The dispatcher's file shows how the task ended. The command only reads the file.
    let state = fleet.dispatcher_state.display().to_string();
    let reported = fleet.run_json(&[&trace[..4], &["--state", &state]].concat());
    let known = &reported["crawls"][0];
    assert_eq!(
        (&known["appid"], &known["crawlid"], &known["outcome"]),
        (&json!("testapp"), &json!("c"), &json!("ok")),
        "{reported}"
    );
    assert_eq!(known["deliveries"], 2, "{known}");
    let missing = reported["missing"].to_string();
    assert!(missing.contains("beyond its file"), "{missing}");
    let other = fleet.work.write(
        "other/dispatcher.db",
        "no database at all, but a text of some length",
    );
    let other = other.parent().expect("a folder").display().to_string();
    let reported = fleet.run_json(&[&trace[..4], &["--state", &other]].concat());
    assert_eq!(reported["crawls"], json!([]), "{reported}");
    assert!(
        reported["missing"]
            .to_string()
            .contains("was not written by webfill"),
        "{reported}"
    );
}
