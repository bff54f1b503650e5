//! Tests the second fetch: a page that is new or has changed is fetched again. Parts that differ between the two
//! fetches (such as a counter) do not count as changes.

use super::*;

/// Serves a page with its own text and a counter, which is different at each fetch.
fn serve_noisy(watched: &Watched, path: &str, words: &'static str) {
    let fetches = AtomicUsize::new(0);
    watched.site().serve_with(path, move |_| {
        let number = fetches.fetch_add(1, Ordering::SeqCst);
        let counter = format!("<div class=visits><p>Visitor {number}</p></div>");
        page("Shop").html(format!("<p>{words}</p>{counter}")).into()
    });
}

#[test]
fn a_page_without_a_mapping_is_fetched_twice_before_there_is_a_version_of_it() {
    let watched = Watched::new(UNMAPPED, None);
    let paths = ["/lamp", "/chair"];
    let visits = || watched.web.visits().pages();
    serve_noisy(&watched, "/lamp", "The lamp costs 10 euro");
    watched.site().serve("/chair", text_page("A chair"));
    let first = watched.run(&paths, &json!({"delay": 0.5}));
    let summary: Value = serde_json::from_str(&first.stdout).expect("a summary");
    assert_eq!(summary["pages"], 2, "a page counts once");
    assert_eq!(visits().for_path("/lamp").len(), 2);
    assert_eq!(visits().for_path("/chair").len(), 2);
    watched
        .web
        .visits()
        .assert_polite(Duration::from_millis(500));
    for run in 3..=4 {
        watched.run(&paths, &json!({"delay": 0.5}));
        assert_eq!(visits().for_path("/lamp").len(), run);
        assert_eq!(visits().for_path("/chair").len(), run);
    }
    assert_eq!(watched.changes(&[]), [Value::Null; 0]);
    serve_noisy(&watched, "/lamp", "The lamp costs 12 euro");
    watched.run(&paths, &json!({"delay": 0.5}));
    let changes = watched.changes(&[]);
    assert_eq!(changes.len(), 1);
    let difference = "~ The lamp costs [-10-]{+12+} euro";
    assert_eq!(changes[0]["difference"], difference);
}

/// A list grows above a counter that changes at each fetch, and a closing time changes by an hour.
#[test]
fn text_that_changes_at_each_fetch_is_ignored_wherever_it_is() {
    let watched = Watched::new(UNMAPPED, None);
    let serve = |items: &'static str, hour: u32| {
        let fetches = AtomicUsize::new(99);
        watched.site().serve_with("/lamp", move |_| {
            let number = fetches.fetch_add(1, Ordering::SeqCst);
            page("Shop")
                .html(format!(
                    "<ul>{items}<li>{number} views</ul><p>Open until {hour}:00, caf\u{e9}</p>"
                ))
                .into()
        });
    };
    for (items, hour) in [
        ("<li>Lamp", 18),
        ("<li>Lamp", 18),
        ("<li>Chair<li>Lamp", 18),
        ("<li>Chair<li>Lamp", 18),
        ("<li>Chair<li>Lamp", 19),
        ("<li>Chair<li>Lamp", 19),
    ] {
        serve(items, hour);
        watched.run(&["/lamp"], &json!({}));
    }
    let changes = watched.changes(&[]);
    let reported: Vec<&str> = changes
        .iter()
        .filter_map(|change| change["difference"].as_str())
        .collect();
    assert_eq!(
        reported,
        ["+ Chair", "~ Open until [-18:00,-]{+19:00,+} caf\u{e9}"]
    );
}

#[test]
fn if_the_second_fetch_fails_the_first_one_counts() {
    let watched = Watched::new(UNMAPPED, None);
    let fetches = AtomicUsize::new(0);
    watched.site().serve_with("/lamp", move |_| {
        match fetches.fetch_add(1, Ordering::SeqCst) {
            1 => status(500).into(),
            number => text_page(if number == 0 { "10 euro" } else { "12 euro" }).into(),
        }
    });
    let first = watched.run(&["/lamp"], &json!({}));
    let summary: Value = serde_json::from_str(&first.stdout).expect("a summary");
    assert_eq!(summary["outcomes"], json!({"ok": 1}));
    watched.run(&["/lamp"], &json!({}));
    // Each run has fetched the page twice.
    assert_eq!(watched.web.visits().pages().len(), 4);
    assert_eq!(watched.changes(&[]).len(), 1);
}

/// Kills processes of a watch's first run between the two fetches of a page whose counter changes at each fetch.
/// Returns the run after its end.
fn kill_between_fetches(watched: &Watched, victims: impl Fn(&str) -> bool) -> Finished {
    serve_noisy(watched, "/lamp", "The lamp costs 10 euro");
    let slowly = json!({"delay": 1.5});
    let running = watched.watch_run(&["/lamp"], &slowly).start();
    let log = watched.web.log();
    log.wait_until("the first fetch", |visits| visits.pages().len() == 1);
    for process in running.processes() {
        if victims(process.role()) {
            process.signal(Signal::KILL);
        }
    }
    let ended = running.finish();
    assert_eq!(watched.changes(&[]), [Value::Null; 0]);
    ended
}

/// Checks that an interrupted check of a page has left nothing behind: the page is fetched twice again, and compared
/// without its counter.
fn assert_noise_is_known(watched: &Watched) {
    let slowly = json!({"delay": 1.5});
    let visits = || watched.web.visits().pages().len();
    assert_eq!(visits(), 3);
    watched.run(&["/lamp"], &slowly);
    assert_eq!(visits(), 4);
    assert_eq!(watched.changes(&[]), [Value::Null; 0]);
    serve_noisy(watched, "/lamp", "The lamp costs 12 euro");
    watched.run(&["/lamp"], &slowly);
    let changes = watched.changes(&[]);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(
        changes[0]["difference"],
        "~ The lamp costs [-10-]{+12+} euro"
    );
    let delay = Duration::from_millis(1_500);
    watched.web.visits().assert_polite(delay);
}

#[test]
fn a_worker_killed_between_the_two_fetches_of_a_page_leaves_no_half_check() {
    let watched = Watched::new(UNMAPPED, None);
    let ended = kill_between_fetches(&watched, |role| role == "worker").expect_code(0);
    let summary: Value = serde_json::from_str(&ended.stdout).expect("a summary");
    assert_eq!(summary["outcomes"], json!({"ok": 1}));
    assert_noise_is_known(&watched);
}

#[test]
fn a_run_killed_between_the_two_fetches_of_a_page_leaves_no_half_check() {
    let watched = Watched::new(UNMAPPED, None);
    kill_between_fetches(&watched, |_| true);
    watched.run(&["/lamp"], &json!({"delay": 1.5}));
    assert_noise_is_known(&watched);
}
