//! Tests the test site itself: its log and its answers, as seen by curl or by a client with plain sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use webfill_test_needs::needs;
use webfill_tests::isolation::{add_address, run_isolated};
use webfill_tests::site::encodings::encoded_page;
use webfill_tests::site::hostile::hostile_pages;
use webfill_tests::site::robots::odd_robots;
use webfill_tests::site::{ConnectionPolicy, Web, page, script, status};

const MS: Duration = Duration::from_millis(1);

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the site listens");
    stream
        .set_read_timeout(Some(60_000 * MS))
        .expect("a timeout");
    stream
}

fn send_request(stream: &mut TcpStream, host: &str, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nX-Probe: 1\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .expect("the site reads");
}

/// Reads until the connection ends, but at most one MiB.
fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // The end of the connection and a reset both end the reading, so errors are ignored.
    let _ = stream.take(1 << 20).read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads one answer. It must have the header `content-length`.
fn read_page(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a whole head");
        answer.push(byte[0]);
    }
    let head = String::from_utf8(answer).expect("heads are ASCII");
    let length = head
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.split("\r\n").next());
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body).expect("the promised body");
    head + &String::from_utf8_lossy(&body)
}

#[test]
fn pages_are_served_by_host_and_path_on_one_connection() {
    let web = Web::start();
    web.site("a.example").serve("/x?q=1", page("Ax").link("/y"));
    web.site("b.example")
        .serve_otherwise(|request| page(&request.path).into());
    let mut stream = connect(web.plain_address());
    for (host, path, expected) in [
        ("a.example", "/x?q=1", "<h1>Ax</h1>\n<a href=\"/y\">"),
        ("A.example:80", "/x", "HTTP/1.1 404"),
        ("b.example", "/any", "<h1>/any</h1>"),
        ("b.example", "/robots.txt", "HTTP/1.1 404"),
        ("c.example", "/", "HTTP/1.1 404"),
    ] {
        send_request(&mut stream, host, path);
        let answer = read_page(&mut stream);
        assert!(answer.contains(expected), "{host}{path}: {answer}");
    }
    assert_eq!(web.connection_count(), 1);
    let visits = web.visits();
    assert_eq!(
        visits.for_host("a.example").paths(),
        ["a.example/x?q=1", "a.example/x"]
    );
    assert_eq!(visits.for_host("b.example").robots().len(), 1);
    assert_eq!(visits.0[0].header("x-probe"), Some("1"));
    assert_eq!(visits.0[1].host_header, "A.example:80");
}

#[test]
fn the_log_reports_gaps_and_overlaps() {
    let web = Web::start();
    // With this latency, the second request arrives before the first answer, even on a busy machine.
    let latency = 2_000 * MS;
    web.site("slow.example")
        .serve("/", page("s").latency(latency));
    let mut first = connect(web.plain_address());
    let mut second = connect(web.plain_address());
    send_request(&mut first, "slow.example", "/");
    web.log()
        .wait_until("the first request is there", |visits| visits.len() == 1);
    send_request(&mut second, "slow.example", "/");
    read_page(&mut first);
    read_page(&mut second);
    send_request(&mut first, "slow.example", "/");
    read_page(&mut first);
    let visits = web.log().wait_until("all have ended", |visits| {
        visits.len() == 3 && visits.0.iter().all(|visit| visit.ended_at.is_some())
    });
    assert_eq!(visits.overlaps().len(), 1, "{visits:#?}");
    let gaps = visits.gaps();
    assert!(
        gaps[0] < latency && gaps[1] >= latency - 10 * MS,
        "{gaps:?}"
    );
    let judged = std::panic::catch_unwind(|| visits.assert_polite(50 * MS));
    assert!(judged.is_err(), "an overlap is not polite");
}

#[test]
fn a_client_that_goes_away_is_noticed_while_the_site_waits() {
    let web = Web::start();
    web.site("a.example")
        .serve("/", page("late").latency(60_000 * MS));
    web.site("b.example")
        .serve("/", script().send("HTTP/1.1 200 OK\r\n").hold_open());
    for host in ["a.example", "b.example"] {
        let mut stream = connect(web.plain_address());
        send_request(&mut stream, host, "/");
        web.log()
            .wait_until("it was asked", |visits| !visits.for_host(host).is_empty());
    }
    let visits = web.log().wait_until("both are cut short", |visits| {
        visits.0.iter().all(|visit| visit.cut_short)
    });
    assert_eq!(visits.len(), 2);
}

#[test]
fn scripts_are_sent_to_the_byte_and_connections_end_as_scripted() {
    let web = Web::start();
    let site = web.site("a.example");
    site.serve("/cut", script().send("HTTP/1.1 20"));
    site.serve(
        "/reset",
        script()
            .send("HTTP/1.1 200 OK\r\n\r\nx")
            .pause(20 * MS)
            .reset(),
    );
    site.serve("/endless", script().send_endlessly("spam ", Duration::ZERO));
    let mut stream = connect(web.plain_address());
    send_request(&mut stream, "a.example", "/cut");
    assert_eq!(read_all(&mut stream), "HTTP/1.1 20");
    let mut stream = connect(web.plain_address());
    send_request(&mut stream, "a.example", "/reset");
    let ended = stream.read_to_end(&mut Vec::new());
    assert_eq!(
        ended.map_err(|error| error.kind()),
        Err(std::io::ErrorKind::ConnectionReset)
    );
    let mut stream = connect(web.plain_address());
    send_request(&mut stream, "a.example", "/endless");
    assert_eq!(read_all(&mut stream).len(), 1 << 20);
    drop(stream);
    let visits = web
        .log()
        .wait_until("the endless answer is over", |visits| {
            visits
                .for_path("/endless")
                .0
                .iter()
                .any(|visit| visit.cut_short)
        });
    assert!(visits.for_path("/endless").0[0].sent_bytes >= 1 << 20);
}

#[test]
fn sites_have_addresses_of_their_own_and_may_refuse_every_connection() {
    let web = Web::start();
    let plain = web.site_at("127.0.9.1");
    plain.serve("/", page("by address"));
    let address = plain
        .url("/")
        .replace("http://", "")
        .replace('/', "")
        .parse()
        .expect("an address");
    let mut stream = connect(address);
    send_request(&mut stream, &address.to_string(), "/");
    assert!(read_page(&mut stream).contains("by address"));
    for policy in [ConnectionPolicy::Close, ConnectionPolicy::Reset] {
        let url = web.site_with_policy("127.0.9.2", policy).url("/");
        let address = url
            .replace("http://", "")
            .replace('/', "")
            .parse()
            .expect("an address");
        let mut stream = connect(address);
        // Writing may fail, because the site may close the connection before.
        let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
        assert_eq!(read_all(&mut stream), "");
    }
    assert_eq!(web.connection_count(), 3);
}

#[test]
fn every_hostile_page_answers_something_or_falls_silent_on_purpose() {
    let web = Web::start();
    let pages = hostile_pages();
    assert!(pages.len() > 60);
    for hostile in &pages {
        web.site(&hostile.host()).serve("/", hostile.reply.clone());
    }
    for hostile in &pages {
        let mut stream = connect(web.plain_address());
        stream.set_read_timeout(Some(500 * MS)).expect("a timeout");
        send_request(&mut stream, &hostile.host(), "/");
        // If the connection ends, is reset or stays silent, no byte can be read.
        let answered = stream.read(&mut [0; 16]).unwrap_or(0) > 0;
        let silent = ["dropped-after-request", "reset-after-request", "silent"];
        assert_eq!(
            answered,
            !silent.contains(&hostile.name),
            "{}",
            hostile.name
        );
    }
    assert_eq!(
        web.visits().hosts().len(),
        pages.len(),
        "each has a host of its own"
    );
}

#[test]
fn every_odd_robots_file_is_served() {
    let web = Web::start();
    let files = odd_robots();
    for odd in &files {
        odd.serve_on(&web.site(&odd.host()));
        let mut stream = connect(web.plain_address());
        send_request(&mut stream, &odd.host(), "/closed");
        assert!(read_page(&mut stream).contains("<h1>/closed</h1>"));
        send_request(&mut stream, &odd.host(), "/robots.txt");
    }
    assert_eq!(
        web.log()
            .wait_until("all are asked", |visits| visits.robots().len()
                == files.len())
            .hosts()
            .len(),
        files.len()
    );
}

/// Requests a URL with curl, because curl is independent of this project.
fn curl(web: &Web, arguments: &[&str], url: &str) -> String {
    let authority = web.certificates().authority();
    let output = std::process::Command::new("curl")
        .args(["-sS", "--max-time", "10", "--noproxy", "*", "--cacert"])
        .arg(authority)
        .args([
            "--connect-to",
            &format!("tls.example:443:127.0.0.1:{}", web.tls_address().port()),
        ])
        .args(arguments)
        .arg(url)
        .output()
        .expect("curl is installed");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[needs(curl)]
#[test]
fn https_speaks_both_versions_and_every_encoding() {
    let web = Web::start_tls(&["tls.example"]);
    let site = web.site("tls.example");
    for encoding in ["gzip", "deflate", "br"] {
        site.serve(&format!("/{encoding}"), encoded_page(encoding, encoding));
    }
    for version in ["--http1.1", "--http2"] {
        for encoding in ["gzip", "deflate", "br"] {
            let url = site.https_url(&format!("/{encoding}"));
            let body = curl(&web, &["--compressed", version], &url);
            assert!(body.contains(&format!("<h1>{encoding}</h1>")), "{body}");
        }
    }
    let visits = web.visits();
    let versions: Vec<_> = visits.0.iter().map(|visit| visit.version).collect();
    assert_eq!(
        versions,
        [
            "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/2", "HTTP/2", "HTTP/2"
        ]
    );
    assert!(
        visits
            .0
            .iter()
            .all(|visit| visit.tls && visit.host == "tls.example")
    );
}

#[test]
fn statuses_without_a_body_end_with_their_head() {
    let web = Web::start();
    let site = web.site("a.example");
    site.serve("/204", status(204))
        .serve("/304", status(304))
        .serve("/999", page("t").status(999));
    let mut stream = connect(web.plain_address());
    for code in ["204", "304", "999"] {
        send_request(&mut stream, "a.example", &format!("/{code}"));
        let answer = read_page(&mut stream);
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
    }
}

#[needs(namespaces)]
#[test]
fn isolated_tests_see_a_network_of_their_own() {
    run_isolated(
        "the_test_site::isolated_tests_see_a_network_of_their_own",
        || {
            add_address("10.9.8.7");
            add_address("93.184.216.34");
            let web = Web::start_on("10.9.8.7".parse().expect("an address"));
            let public = web.site_at("93.184.216.34");
            public.serve("/", page("public"));
            let address = public
                .url("/")
                .replace("http://", "")
                .replace('/', "")
                .parse()
                .expect("an address");
            let mut stream = connect(address);
            send_request(&mut stream, "93.184.216.34", "/");
            assert!(read_page(&mut stream).contains("public"));
            let elsewhere = "10.0.0.1:80".parse().expect("an address");
            let elsewhere = TcpStream::connect_timeout(&elsewhere, 5_000 * MS);
            assert_eq!(
                elsewhere.expect_err("nothing else is reachable").kind(),
                ErrorKind::NetworkUnreachable
            );
        },
    );
}
