//! Tests the ways to feed requests: by command, as a list, as lines. Also tests which requests are refused, and when
//! requests are durable.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::page;

use crate::fleet::{Fleet, request, request_with, wait_for};

/// Requests for pages of one site, which become JSON lines.
fn line_requests(range: std::ops::Range<usize>, crawl_id: &str) -> Vec<Value> {
    let url = |number| format!("http://lines.example/{number}");
    range
        .map(|number| request(&url(number), crawl_id))
        .collect()
}

fn serve_lines(fleet: &Fleet) {
    let site = fleet.web.site("lines.example");
    site.serve_otherwise(|request| page(&request.path).into());
}

#[test]
fn one_request_is_fed_as_an_argument_and_crawled() {
    let fleet = Fleet::start();
    serve_lines(&fleet);
    let request = line_requests(1..2, "one").remove(0).to_string();
    let run = fleet.run(&["feed", &request]).expect_code(0);
    assert_eq!(run.stdout, "1 accepted\n");
    fleet.wait_until_done("one");
    assert_eq!(fleet.web.visits().pages().paths(), ["lines.example/1"]);
}

#[test]
fn json_lines_are_fed_from_a_file_from_gzip_and_from_standard_input() {
    let fleet = Fleet::start();
    serve_lines(&fleet);
    let file = fleet
        .work
        .write_lines("a.jsonl", &line_requests(0..3, "lines"));
    let run = fleet
        .run(&["feed", file.to_str().expect("plain")])
        .expect_code(0);
    assert_eq!(run.stdout, "3 accepted\n");

    let text: Vec<String> = line_requests(3..5, "lines")
        .iter()
        .map(Value::to_string)
        .collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed
        .write_all(text.join("\n").as_bytes())
        .expect("memory");
    let file = fleet
        .work
        .write("b.jsonl.gz", packed.finish().expect("memory"));
    fleet
        .run(&["feed", file.to_str().expect("plain")])
        .expect_code(0);

    let text = format!("# a comment\n\n{}\n", line_requests(5..6, "lines")[0]);
    let run = fleet.command(&["feed", "-", "--json"]).input(text);
    let output: Value = serde_json::from_str(&run.finish().expect_code(0).stdout).expect("JSON");
    assert_eq!(output, json!({"accepted": 1, "refused": 0, "skipped": {}}));
    fleet.wait_until_done("lines");
    assert_eq!(fleet.web.visits().pages().len(), 6);
}

#[test]
fn broken_and_refused_lines_are_reported_by_number_and_the_others_are_fed() {
    let fleet = Fleet::start();
    serve_lines(&fleet);
    let good = line_requests(0..3, "mixed");
    let text = format!(
        "{}\n{{\"url\": \n{}\n{}\n7\n{}\n{}\n",
        good[0],
        request_with("http://lines.example/x", "mixed", json!({"maxdept": 1})),
        good[1],
        request_with("http://lines.example/x", "mixed", json!({"priority": 101})),
        good[2],
    );
    let run = fleet
        .command(&["feed", "-"])
        .input(text)
        .finish()
        .expect_code(1);
    assert_eq!(run.stdout, "3 accepted, 4 refused\n");
    let output: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(output.len(), 4, "{output:#?}");
    for (line, what) in [(2, "JSON"), (3, "maxdept"), (5, "object"), (6, "priority")] {
        let prefix = format!("line {line}: ");
        let sentence = output.iter().find(|output| output.contains(&prefix));
        let sentence = sentence.unwrap_or_else(|| panic!("no {prefix} in {output:#?}"));
        assert!(sentence.contains(what), "{sentence}");
    }
    fleet.wait_until_done("mixed");
    assert_eq!(fleet.web.visits().pages().len(), 3);
}

#[test]
fn files_of_another_kind_are_refused_with_the_command_for_them() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    for (name, content, part) in [
        (
            "table.csv",
            &b"id,url,name\n1,http://a.example/,\n"[..],
            "webfill fill",
        ),
        (
            "urls.txt",
            b"http://a.example/\nhttp://b.example/\n",
            "webfill crawl --seeds",
        ),
        (
            "array.json",
            b"[\n{\"url\": \"http://a.example/\"}\n]\n",
            "jq -c '.[]'",
        ),
        (
            "records.jsonl",
            b"{\"id\": \"1\", \"urls\": [\"http://a.example/\"]}\n",
            "is a record",
        ),
        ("binary", b"\x7fELF\x02\0\0\0\xff\xfe\n", "line 1"),
    ] {
        let file = fleet.work.write(name, content);
        let run = fleet
            .run(&["feed", file.to_str().expect("plain")])
            .expect_code(2);
        let sentence = run.one_sentence();
        assert!(
            sentence.contains(part) && sentence.contains(name),
            "{sentence}"
        );
    }
    let folder = fleet.work.path("").display().to_string();
    let run = fleet.run(&["feed", &folder]).expect_code(2);
    assert!(
        run.one_sentence().contains("name a file of JSON lines"),
        "{}",
        run.stderr
    );
    let run = fleet.run(&["feed", "http://a.example/"]).expect_code(2);
    assert!(run.one_sentence().contains("is a URL"), "{}", run.stderr);
    let empty = fleet.work.write("empty.jsonl", "\n");
    let run = fleet
        .run(&["feed", empty.to_str().expect("plain")])
        .expect_code(0);
    assert!(run.stderr.contains("it is empty"), "{}", run.stderr);
}

#[test]
fn a_refused_request_ends_the_command_with_one_and_its_reason() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let request = request_with("http://a.example/", "c", json!({"maxdepth": -1}));
    let run = fleet.run(&["feed", &request.to_string()]).expect_code(1);
    assert!(run.one_sentence().contains("maxdepth"), "{}", run.stderr);
    let run = fleet.run(&["feed", "{\"url\": "]).expect_code(2);
    assert!(
        run.one_sentence().contains("not valid JSON"),
        "{}",
        run.stderr
    );
    let run = fleet.run(&["feed", "no-such-file.jsonl"]).expect_code(2);
    assert!(
        run.one_sentence().contains("no-such-file.jsonl"),
        "{}",
        run.stderr
    );
    fleet.run(&["feed"]).expect_code(2);
}

#[test]
fn a_missing_dispatcher_is_reported_after_a_bounded_wait() {
    let nobody = ["--dispatcher", "tcp://127.0.0.1:9"];
    let request = request("http://a.example/", "c").to_string();
    for command in [vec!["feed", &request], vec!["status"]] {
        let run = Run::new(&command).args(nobody).finish().expect_code(1);
        let sentence = run.one_sentence();
        assert!(sentence.contains("tcp://127.0.0.1:11"), "{sentence}");
        assert!(run.elapsed < Duration::from_secs(30), "{:?}", run.elapsed);
    }
    let run = Run::new(["status", "--dispatcher", "localhost:5555"]).finish();
    assert!(
        run.expect_code(2)
            .one_sentence()
            .contains("tcp://HOST:PORT")
    );
    let run = Run::new(["status", "--dispatcher", "tcp://192.0.2.1:5555"]).finish();
    assert!(run.expect_code(2).one_sentence().contains("keys"));
}

#[test]
fn a_list_is_accepted_or_refused_as_a_whole_with_the_path() {
    let fleet = Fleet::start();
    serve_lines(&fleet);
    let client = fleet.client();
    let mut requests = line_requests(0..5, "list");
    requests[3]["maxdepth"] = json!("deep");
    let (path, message) = client.expect_refusal(&json!(requests));
    assert_eq!(path, "$[3].maxdepth");
    assert!(!message.is_empty());
    requests[3]["maxdepth"] = json!(0);
    requests[4]["colour"] = json!("red");
    let (path, message) = client.expect_refusal(&json!(requests));
    assert!(path.starts_with("$[4]") && (path + &message).contains("colour"));
    // The list was refused as a whole, so no request was accepted.
    assert_eq!(fleet.pending_tasks("list"), 0);
    assert!(fleet.web.visits().is_empty());
    let answer = client.ask(&json!(line_requests(0..5, "list")));
    assert_eq!(answer, json!({"accepted": 5}));
    fleet.wait_until_done("list");
    assert_eq!(fleet.web.visits().pages().len(), 5);
}

#[test]
fn each_fault_of_a_request_is_reported_with_its_path() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let client = fleet.client();
    for key in ["url", "appid", "crawlid"] {
        let mut request = request("http://a.example/", "c");
        request.as_object_mut().expect("an object").remove(key);
        let (path, message) = client.expect_refusal(&request);
        assert!((path + &message).contains(key), "{key}: {message}");
    }
    let faults = [
        ("url", json!("a.example")),
        ("url", json!("ftp://a.example/")),
        ("url", json!(7)),
        ("appid", json!("")),
        ("appid", json!("a/b")),
        ("crawlid", json!(1)),
        ("spiderid", json!("other")),
        ("maxdepth", json!(-1)),
        ("maxdepth", json!(1.5)),
        ("priority", json!(0)),
        ("priority", json!(101)),
        ("allowed_domains", json!("a.example")),
        ("allow_regex", json!(["("])),
        ("deny_regex", json!(["("])),
        ("deny_extensions", json!([1])),
        ("expires", json!(1_423_591_888)),
        ("expires", json!("soon")),
        ("useragent", json!(1)),
        ("useragent", json!("two\nlines")),
        ("attrs", json!([])),
        ("domain_max_pages", json!(0)),
        ("body", json!("yes")),
        ("colour", json!("red")),
    ];
    for (key, value) in faults {
        let request = request_with("http://a.example/", "c", json!({key: value}));
        let (path, message) = client.expect_refusal(&request);
        assert!(
            path.starts_with(&format!("$.{key}")) || (path == "$" && message.contains(key)),
            "{key} {value}: {path}: {message}"
        );
    }
}

#[test]
fn the_schema_is_published() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let (status, schema) = crate::clients::get(&fleet, "/schema");
    assert_eq!(status, 200);
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/reference/crawl-request.schema.json"
    );
    let file = std::fs::read_to_string(file).expect("the schema ships");
    assert_eq!(schema, serde_json::from_str::<Value>(&file).expect("JSON"));
    let named = schema.to_string();
    for key in [
        "url",
        "appid",
        "crawlid",
        "spiderid",
        "maxdepth",
        "priority",
        "allowed_domains",
        "allow_regex",
        "deny_regex",
        "deny_extensions",
        "expires",
        "useragent",
        "attrs",
        "domain_max_pages",
        "body",
    ] {
        assert!(
            named.contains(&format!("\"{key}\"")),
            "`{key}` is not in the schema"
        );
    }
}

#[test]
fn what_was_accepted_survives_a_dispatcher_that_is_killed_right_after() {
    let mut fleet = Fleet::start_dispatcher_only(&[]);
    serve_lines(&fleet);
    let requests = line_requests(0..500, "killed");
    let answer = fleet.client().ask(&json!(requests));
    fleet.kill_dispatcher();
    assert_eq!(answer, json!({"accepted": 500}));
    fleet.start_dispatcher();
    assert_eq!(fleet.info("killed")["total_pending"], 500);
    // Not only the number of requests is stored: all of their pages are fetched after the restart.
    fleet
        .run(&["site", "lines.example", "--delay", "0.001"])
        .expect_code(0);
    fleet.add_supervisor("one");
    fleet
        .web
        .log()
        .wait_until("all is fetched", |visits| visits.pages().len() >= 500);
    fleet.wait_until_done("killed");
    assert_eq!(fleet.web.visits().pages().counts().len(), 500);
}

#[test]
fn a_feed_waits_for_its_dispatcher_to_come_back() {
    let mut fleet = Fleet::start_dispatcher_only(&[]);
    let mut text = String::new();
    for request in line_requests(0..30_000, "waits") {
        text += &format!("{request}\n");
    }
    let mut feeding = fleet.command(&["feed", "-"]).input(text).start();
    wait_for("some are fed", || {
        (fleet.pending_tasks("waits") > 0).then_some(())
    });
    fleet.kill_dispatcher();
    assert!(feeding.exit_status().is_none(), "it is not over yet");
    fleet.start_dispatcher();
    let run = feeding.finish().expect_code(0);
    // The first attempt got no answer, so the command has fed the list again.
    assert!(run.stdout.starts_with("30000 accepted"), "{}", run.stdout);
    assert_eq!(fleet.info("waits")["total_pending"], 30_000);
}

#[test]
fn fifty_thousand_requests_are_taken_in_one_call() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let requests: Vec<Value> = (0..50_000)
        .map(|number| {
            request(
                &format!("http://s{}.example/{number}", number % 500),
                "many",
            )
        })
        .collect();
    let before = fleet.dispatcher().processes_of_role("dispatcher")[0].peak_bytes();
    let answer = fleet.client().ask(&json!(requests));
    assert_eq!(answer, json!({"accepted": 50_000}));
    let info = fleet.info("many");
    assert_eq!(info["total_pending"], 50_000, "{info}");
    let peak = fleet.dispatcher().processes_of_role("dispatcher")[0].peak_bytes();
    assert!(
        peak - before < 300 << 20,
        "{} MiB more",
        (peak - before) >> 20
    );
}

/// Feeds `count` lines from a file, and checks the highest memory use of the processes.
fn check_memory_of_stream(count: usize) {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let file = fleet.work.path("million.jsonl");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&file).expect("our own folder"));
    for number in 0..count {
        let url = format!("http://s{}.example/page/{number}", number % 5_000);
        writeln!(out, "{}", request(&url, "million")).expect("room");
    }
    out.flush().expect("room");
    drop(out);
    let started = Instant::now();
    let mut feeding = fleet
        .command(&["feed", file.to_str().expect("plain"), "--json"])
        .time_limit(Duration::from_secs(900))
        .start();
    let mut peak_of_feed = 0;
    while feeding.exit_status().is_none() {
        let peaks = feeding.processes_of_role("feed");
        peak_of_feed = peaks
            .first()
            .map_or(peak_of_feed, |feed| feed.peak_bytes().max(peak_of_feed));
        std::thread::sleep(Duration::from_millis(20));
    }
    let run = feeding.finish().expect_code(0);
    let output: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(
        output,
        json!({"accepted": count, "refused": 0, "skipped": {}})
    );
    let peak = fleet.dispatcher().processes_of_role("dispatcher")[0].peak_bytes();
    eprintln!(
        "{count} lines in {:.1} s; peaks: feed {} MiB, dispatcher {} MiB",
        started.elapsed().as_secs_f64(),
        peak_of_feed >> 20,
        peak >> 20
    );
    assert!(
        peak_of_feed < 64 << 20,
        "feed held {} MiB",
        peak_of_feed >> 20
    );
    assert!(peak < 512 << 20, "the dispatcher held {} MiB", peak >> 20);
    assert_eq!(fleet.info("million")["total_pending"], count);
}

#[test]
fn many_lines_are_streamed_in_bounded_memory() {
    check_memory_of_stream(60_000);
}

#[test]
#[ignore = "a million lines: half a minute alone on a machine"]
fn a_million_lines_are_streamed_in_bounded_memory() {
    check_memory_of_stream(1_000_000);
}

#[needs(python3_zmq)]
#[test]
fn the_python_client_of_the_documentation_feeds_and_gets_an_answer() {
    let fleet = Fleet::start();
    serve_lines(&fleet);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/feed.py");
    let run = |requests: &str| {
        std::process::Command::new("/usr/bin/python3")
            .args([script, &fleet.control_endpoint(), requests])
            .output()
            .expect("it starts")
    };
    let fed = run(&json!(line_requests(0..2, "python")).to_string());
    let said = String::from_utf8_lossy(&fed.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&fed.stderr).into_owned();
    assert!(fed.status.success(), "{said}{complaint}");
    assert!(said.contains("2"), "{said}");
    fleet.wait_until_done("python");
    assert_eq!(fleet.web.visits().pages().len(), 2);
    let refused = run(r#"{"url": "http://a.example/"}"#);
    assert!(!refused.status.success(), "a refused request is a failure");
    let text = std::fs::read_to_string(script).expect("it ships");
    let code = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    assert!(code.count() <= 25, "it is short");
}
