use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, mpsc};

use webfill_scheduler::effects::Client;

use super::*;
use crate::permits::SharedPermits;
use crate::request_reader::ClientRequest;

/// The health of a dispatcher whose loop has turned.
fn turning_health() -> Health {
    let health = Health::new();
    health.note_turn(None);
    health
}

fn pending_requests(on_request: impl Fn(ClientRequest) + Send + Sync + 'static) -> PendingRequests {
    PendingRequests::new(SharedPermits::default(), on_request)
}

/// Starts an HTTP service whose requests are answered by this function.
fn serve_with(answer: impl Fn(ControlRequest) -> Value + Send + 'static) -> SocketAddr {
    let (ask, asked) = mpsc::channel::<ClientRequest>();
    let ask = Mutex::new(ask);
    let pending_requests =
        pending_requests(move |request| ask.lock().unwrap().send(request).unwrap());
    let answers = pending_requests.clone();
    std::thread::spawn(move || {
        for request in asked {
            let Client::Http(asker) = request.requester.client else {
                panic!("nobody else asks");
            };
            answers.answer(asker.number, answer(request.asked.unwrap()));
        }
    });
    let any = "127.0.0.1:0".parse().unwrap();
    let open = SharedProtection::default();
    let dashboard = DashboardSetup::default();
    let clock = SteadyClock::start();
    start(
        any,
        clock,
        pending_requests,
        turning_health(),
        open,
        dashboard,
    )
    .unwrap()
}

/// Starts an HTTP service that accepts every batch, and answers any other request with the request as it was read.
fn serve_accepting() -> SocketAddr {
    serve_with(|asked| match asked {
        ControlRequest::Feed { batch, .. } => json!({"accepted": batch.len()}),
        other => json!({"read": format!("{other:?}")}),
    })
}

fn send_request(to: SocketAddr, request: &[u8]) -> (u16, Value) {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.write_all(request).unwrap();
    read_answer(stream)
}

fn read_answer(mut stream: TcpStream) -> (u16, Value) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer has a head");
    let status = head[9..12].parse().unwrap();
    (
        status,
        serde_json::from_str(body).expect("an answer is JSON"),
    )
}

fn get(to: SocketAddr, path: &str) -> (u16, Value) {
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    send_request(to, head.as_bytes())
}

fn post(to: SocketAddr, path: &str, kind: &str, body: &str) -> (u16, Value) {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    send_request(to, (head + body).as_bytes())
}

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const REQUEST: &str = r#"{"url": "http://a.org/", "appid": "app", "crawlid": "c1"}"#;

#[test]
fn requests_are_fed_one_by_one_and_in_lists() {
    let to = serve_accepting();
    assert_eq!(
        post(to, "/feed", JSON, REQUEST),
        (200, json!({"accepted": 1}))
    );
    let list = format!("[{REQUEST}, {REQUEST}]");
    assert_eq!(
        post(to, "/feed", JSON, &list),
        (200, json!({"accepted": 2}))
    );
    let faulty = format!("[{REQUEST}, 7]");
    let (status, answer) = post(to, "/feed", JSON, &faulty);
    assert_eq!((status, &answer["error"]["path"]), (400, &json!("$[1]")));
}

#[test]
fn http_offers_no_drain() {
    let to = serve_accepting();
    for drain in [
        r#"{"action": "drain"}"#,
        r#"{"action": "end", "crawls": []}"#,
    ] {
        let (status, answer) = post(to, "/feed", JSON, drain);
        assert_eq!(
            (status, &answer["error"]["path"]),
            (400, &json!("$.action"))
        );
        let (status, _) = post(to, "/stop", JSON, drain);
        assert_eq!(status, 400);
        let (status, _) = post(to, "/drain", JSON, drain);
        assert_eq!(status, 404);
    }
}

#[test]
fn lines_are_taken_in_in_parts_and_faulty_ones_left_out() {
    let (heard, sizes) = mpsc::channel();
    let to = serve_with(move |asked| match asked {
        ControlRequest::Feed { batch, whole, .. } => {
            assert!(!whole);
            heard.send(batch.len()).unwrap();
            json!({"accepted": batch.len()})
        }
        _ => json!({}), // the dashboard asks for the status
    });
    let mut body = format!("{REQUEST}\n").repeat(2_500);
    body.push_str("\n  \r\n{\"url\": 7}\nrubbish\n");
    body.push_str(REQUEST);
    let (status, answer) = post(to, "/feed", LINES, &body);
    assert_eq!(
        (status, &answer["accepted"]),
        (200, &json!(2_501)),
        "{answer}"
    );
    assert_eq!(answer["refused"], 2);
    let places: Vec<&Value> = answer["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["line"])
        .collect();
    assert_eq!(places, [2_503, 2_504]);
    assert_eq!(sizes.try_iter().collect::<Vec<_>>(), [1_000, 1_000, 501]);
}

/// The audit log needs the refused lines of a stream even if the stream has no other lines or breaks off.
#[test]
fn refused_lines_are_handed_over_for_the_audit_log() {
    let (heard, reported) = mpsc::channel();
    let to = serve_with(move |asked| match asked {
        ControlRequest::Feed { batch, refused, .. } => {
            heard.send((batch.len(), refused.faulty)).unwrap();
            json!({"accepted": batch.len()})
        }
        _ => json!({}), // the dashboard asks for the status
    });
    let (status, answer) = post(to, "/feed", LINES, "rubbish\nmore\n");
    assert_eq!((status, &answer["refused"]), (200, &json!(2)), "{answer}");
    assert_eq!(reported.recv().unwrap(), (0, 2));
    let endless = format!("{REQUEST}\nrubbish\n{}", "x".repeat(3 << 20));
    let (status, _) = post(to, "/feed", LINES, &endless);
    assert_eq!(status, 413);
    assert_eq!(reported.recv().unwrap(), (0, 1));
}

#[test]
fn a_line_without_an_end_is_refused() {
    let to = serve_accepting();
    let (status, _) = post(to, "/feed", LINES, &"x".repeat(3 << 20));
    assert_eq!(status, 413);
}

#[test]
fn actions_have_paths_of_their_own() {
    let to = serve_accepting();
    let read = |answer: (u16, Value)| answer.1["read"].as_str().unwrap_or_default().to_owned();
    let subject = r#"{"appid": "app", "crawlid": "c1", "uuid": "u1"}"#;
    for (path, name) in [
        ("/stop", "Stop"),
        ("/pause", "Pause"),
        ("/resume", "Resume"),
    ] {
        let read = read(post(to, path, JSON, subject));
        assert!(read.contains(name) && read.contains("u1"), "{path}: {read}");
    }
    let retry = r#"{"appid": "app", "crawlid": "c1", "outcome": ["timeout"]}"#;
    assert!(read(post(to, "/retry", JSON, retry)).contains("Timeout"));
    assert!(read(post(to, "/site", JSON, r#"{"site": "a.org"}"#)).contains("a.org"));
    assert!(read(get(to, "/status")).contains("Status"));
    let info = read(get(to, "/info?appid=my%20app&crawlid=c1"));
    assert!(info.is_empty(), "an id has no white space: {info}");
    let info = read(get(to, "/info?appid=app&crawlid=c%2D1&uuid=a%20b"));
    assert!(info.contains("c-1") && info.contains("a b"), "{info}");
    assert_eq!(get(to, "/info").1["error"]["path"], "$.appid");
    assert_eq!(get(to, "/healthz"), (200, json!({"ok": true})));
    assert_eq!(get(to, "/schema").1, webfill_api::crawl_request_schema());
}

#[test]
fn unknown_paths_and_requests_of_browsers_are_refused() {
    let to = serve_accepting();
    assert_eq!(get(to, "/elsewhere").0, 404);
    assert_eq!(get(to, "/feed").0, 405);
    assert_eq!(post(to, "/status", JSON, "{}").0, 405);
    assert_eq!(post(to, "/feed", "text/plain", REQUEST).0, 415);
    let foreign = "GET /status HTTP/1.1\r\nHost: evil.org\r\nConnection: close\r\n\r\n";
    assert_eq!(send_request(to, foreign.as_bytes()).0, 403);
    let page = "GET /status HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.org\r\nConnection: close\r\n\r\n";
    assert_eq!(send_request(to, page.as_bytes()).0, 403);
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_has_arrived() {
    let to = serve_accepting();
    let mut stream = TcpStream::connect(to).unwrap();
    let head = "POST /feed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 99999999999\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(read_answer(stream).0, 413);
}

#[test]
fn what_one_address_has_under_way_is_bounded_and_more_is_refused_for_now() {
    let to = serve_accepting();
    let head = "POST /feed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 16777216\r\n\r\n";
    // The server asks for the body only if it takes the request.
    let begin = |moment_ms| {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let moment = std::time::Duration::from_millis(moment_ms);
        stream.set_read_timeout(Some(moment)).unwrap();
        let is_refused = stream.peek(&mut [0]).is_ok();
        (stream, is_refused)
    };
    let taken: Vec<TcpStream> = (0..2)
        .map(|_| {
            let (stream, is_refused) = begin(300);
            assert!(!is_refused);
            stream
        })
        .collect();
    let (third, is_refused) = begin(30_000);
    assert!(is_refused);
    let (status, answer) = read_answer(third);
    assert_eq!((status, &answer["error"]["retry"]), (503, &json!(true)));
    assert_eq!(get(to, "/status").0, 200, "a short request is taken");
    drop(taken);
    while begin(300).1 {}
}

#[test]
fn a_client_that_sends_nothing_further_delays_no_other() {
    let to = serve_accepting();
    let _slow: Vec<TcpStream> = ["", "GET /sta", "POST /feed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{"]
        .iter()
        .map(|beginning| {
            let mut stream = TcpStream::connect(to).unwrap();
            stream.write_all(beginning.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(get(to, "/healthz").0, 200);
}

#[test]
fn a_loop_that_has_ended_is_reported() {
    let pending_requests = pending_requests(|_| {});
    let forgetful = pending_requests.clone();
    let to = start(
        "127.0.0.1:0".parse().unwrap(),
        SteadyClock::start(),
        pending_requests,
        turning_health(),
        SharedProtection::default(),
        DashboardSetup::default(),
    )
    .unwrap();
    let asking = std::thread::spawn(move || get(to, "/status").0);
    // The dashboard also sends a request for its history, so the first one that waits may not be that of this test.
    while !asking.is_finished() {
        forgetful.cancel_all();
        std::thread::yield_now();
    }
    assert_eq!(asking.join().unwrap(), 503);
}

#[test]
fn before_the_frontier_is_open_only_health_is_served() {
    let pending_requests = pending_requests(|_| panic!("nobody can answer"));
    let any = "127.0.0.1:0".parse().unwrap();
    let health = Health::new();
    let to = start(
        any,
        SteadyClock::start(),
        pending_requests,
        health,
        SharedProtection::default(),
        DashboardSetup::default(),
    )
    .unwrap();
    for path in ["/healthz", "/readyz", "/status", "/info?appid=a&uuid=u"] {
        let (status, reported) = get(to, path);
        assert_eq!(status, 503, "{path}");
        let reported = reported.to_string();
        assert!(
            reported.contains("the frontier is being opened"),
            "{path}: {reported}"
        );
    }
}
