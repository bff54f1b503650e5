//! Tests requests and actions by HTTP, from clients on the same machine.

use serde_json::{Value, json};
use webfill_tests::run::Run;
use webfill_tests::site::page;

use crate::clients::{get, post, send_http};
use crate::fleet::{APP, Fleet, HTTP, action, request, wait_for};

fn serve_any_page(fleet: &Fleet) {
    fleet
        .web
        .site("a.example")
        .serve_otherwise(|request| page(&request.path).into());
}

#[test]
fn requests_and_actions_go_by_http_as_they_go_by_the_control_socket() {
    let fleet = Fleet::start();
    serve_any_page(&fleet);
    fleet
        .run(&["site", "a.example", "--block-until", "1h"])
        .expect_code(0);
    let one = request("http://a.example/1", "rest");
    assert_eq!(post(&fleet, "/feed", &one), (200, json!({"accepted": 1})));
    let list = json!([
        request("http://a.example/2", "rest"),
        request("http://a.example/3", "rest")
    ]);
    assert_eq!(post(&fleet, "/feed", &list), (200, json!({"accepted": 2})));
    let info = get(
        &fleet,
        &format!("/info?appid={APP}&crawlid=rest&uuid=u&spiderid=link"),
    );
    assert_eq!(
        (info.0, &info.1["total_pending"]),
        (200, &json!(3)),
        "{info:?}"
    );
    let info = get(&fleet, &format!("/info?appid={APP}"));
    assert_eq!(
        (info.0, &info.1["total_crawlids"]),
        (200, &json!(1)),
        "{info:?}"
    );
    for name in ["pause", "resume"] {
        let (status, answer) = post(&fleet, &format!("/{name}"), &action(name, Some("rest")));
        assert_eq!(
            (status, &answer["crawlid"]),
            (200, &json!("rest")),
            "{name}: {answer}"
        );
    }
    let (status, answer) = post(&fleet, "/stop", &action("stop", Some("rest")));
    assert_eq!(
        (status, &answer["total_purged"]),
        (200, &json!(3)),
        "{answer}"
    );
    let (status, answer) = post(
        &fleet,
        "/site",
        &json!({"site": "a.example", "block_until": null}),
    );
    assert_eq!(status, 200, "{answer}");
    assert_eq!(get(&fleet, "/status").0, 200);
    assert_eq!(get(&fleet, "/healthz").0, 200);
    assert_eq!(get(&fleet, "/readyz").0, 200);
    assert_eq!(
        post(&fleet, "/feed", &request("http://a.example/4", "more")).0,
        200
    );
    fleet.wait_until_done("more");
    assert_eq!(fleet.web.visits().pages().paths(), ["a.example/4"]);
}

#[test]
fn json_lines_are_streamed_by_http() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let lines: Vec<String> = (0..20_000)
        .map(|number| request(&format!("http://a.example/{number}"), "lines").to_string())
        .collect();
    let head = [
        "POST /feed HTTP/1.1".to_owned(),
        format!("Host: {}:{HTTP}", fleet.host),
        "Content-Type: application/x-ndjson".to_owned(),
    ];
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let (status, body) = send_http(&fleet, &head, &lines.join("\n"));
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(body.trim()).unwrap_or_else(|_| panic!("{body}"));
    assert_eq!(answer["accepted"], 20_000, "{answer}");
    assert_eq!(fleet.info("lines")["total_pending"], 20_000);
}

#[test]
fn faults_are_answered_with_a_status_and_the_path() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let (status, answer) = post(&fleet, "/feed", &json!([{"url": "http://a.example/"}]));
    assert_eq!(status, 400, "{answer}");
    assert!(
        answer["error"]["path"]
            .as_str()
            .is_some_and(|path| path.starts_with("$[0]")),
        "{answer}"
    );
    assert_eq!(get(&fleet, "/nowhere").0, 404);
    assert_eq!(get(&fleet, "/feed").0, 405);
    let stop = post(&fleet, "/stop", &json!({"appid": APP}));
    assert_eq!(stop.0, 400, "{stop:?}");
}

#[test]
fn a_browser_is_kept_out() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let body = request("http://a.example/", "drive-by").to_string();
    let ours = format!("Host: {}:{HTTP}", fleet.host);
    let json = "Content-Type: application/json";
    for (head, expected) in [
        (
            vec![
                "POST /feed HTTP/1.1",
                &ours,
                json,
                "Origin: http://evil.example",
            ],
            403,
        ),
        (
            vec!["POST /feed HTTP/1.1", "Host: rebound.example", json],
            403,
        ),
        (
            vec!["POST /feed HTTP/1.1", &ours, "Content-Type: text/plain"],
            415,
        ),
        (vec!["POST /feed HTTP/1.1", &ours], 415),
        (vec!["GET /status HTTP/1.1", "Host: rebound.example"], 403),
    ] {
        let (status, answer) = send_http(&fleet, &head, &body);
        assert!((400..500).contains(&status), "{head:?}: {status} {answer}");
        assert!(
            status == expected || status == 421 || status == 400,
            "{head:?}: {status} {answer}"
        );
    }
    assert_eq!(fleet.pending_tasks("drive-by"), 0);
}

#[test]
fn http_is_for_this_machine_only_and_can_be_off() {
    let work = webfill_tests::workplace::Workplace::new();
    let run = Run::new(["dispatcher", "--http", "192.0.2.1:8080", "--state"])
        .arg(work.path("state"))
        .in_folder(work.path(""))
        .finish()
        .expect_code(2);
    assert!(run.one_sentence().contains("192.0.2.1"), "{}", run.stderr);
    let run = Run::new(["dispatcher", "--http", "nonsense", "--state"])
        .arg(work.path("state"))
        .in_folder(work.path(""))
        .finish();
    run.expect_code(2);
}

#[test]
fn a_stuck_loop_is_reported() {
    let fleet = Fleet::start();
    serve_any_page(&fleet);
    let blocked = ["site", "a.example", "--block-until", "1h"];
    fleet.run(&blocked).expect_code(0);
    fleet.feed(&[request("http://a.example/1", "stuck")]);
    let frontier = fleet.dispatcher_state.join("dispatcher.db");
    let db = rusqlite::Connection::open(frontier).expect("it is SQLite");
    // Another program holds the lock of the database, so the dispatcher's loop waits ten seconds for it.
    db.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let answer = wait_for("it is reported", || {
        let (status, answer) = get(&fleet, "/healthz");
        (status == 503).then_some(answer)
    });
    assert!(
        answer["why"][0]
            .as_str()
            .is_some_and(|why| why.contains("stuck")),
        "{answer}"
    );
    assert_eq!(get(&fleet, "/readyz").0, 503);
    db.execute_batch("ROLLBACK").expect("the end");
    wait_for("it continues", || {
        (get(&fleet, "/readyz").0 == 200).then_some(())
    });
}
