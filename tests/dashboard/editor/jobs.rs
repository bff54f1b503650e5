//! Tests the jobs of the mapping editor (processes that read pages for it): their rights, and how they end.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_tests::run::binary;

fn start_job() -> Child {
    Command::new(binary())
        .arg("dashboard-job")
        .env("MIMALLOC_ARENA_RESERVE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn page_head(url: &str, body: &str) -> Value {
    json!({"url": url, "content_type": null, "ending": "html", "bytes": body.len(), "known": {}})
}

/// Runs a job on one page with this body. Returns the result for the page.
fn run_job(work: Value, body: &str) -> Value {
    let order = json!({"work": work, "pages": [page_head("https://a.example/", body)]});
    let mut job = start_job();
    let mut stdin = job.stdin.take().expect("piped");
    let mut stdout = job.stdout.take().expect("piped");
    let text = format!("{order}\n{body}");
    let writing = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    let mut answer = String::new();
    stdout.read_to_string(&mut answer).expect("UTF-8");
    writing.join().expect("it writes");
    let status = job.wait().expect("it ends");
    assert!(status.success(), "{status}: {answer}");
    serde_json::from_str(&answer).expect("JSON")
}

fn read_proc_file(child: &Child, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap_or_default()
}

#[test]
fn a_job_is_confined_before_it_reads_its_pages() {
    let body = "<h1>x</h1>";
    let order = json!({"work": "copy", "pages": [page_head("https://a.example/", body)]});
    let mut job = start_job();
    let mut stdin = job.stdin.take().expect("piped");
    writeln!(stdin, "{order}").expect("it reads");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !read_proc_file(&job, "status").contains("Seccomp:\t2") {
        assert!(
            Instant::now() < deadline,
            "{}",
            read_proc_file(&job, "status")
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let limits = read_proc_file(&job, "limits");
    let limit = |name: &str| {
        let line = limits
            .lines()
            .find(|line| line.starts_with(name))
            .expect("a limit");
        let words: Vec<&str> = line[name.len()..].split_whitespace().collect();
        words[0].to_owned()
    };
    assert_eq!(limit("Max cpu time"), "60");
    assert_eq!(limit("Max open files"), "0");
    assert_eq!(limit("Max file size"), "0");
    assert_eq!(limit("Max processes"), "0");
    let memory: u64 = limit("Max address space").parse().expect("a number");
    assert!(memory < 3 << 30, "{memory}");
    stdin.write_all(body.as_bytes()).expect("it reads");
    drop(stdin);
    let ended = job.wait_with_output().expect("it ends");
    assert!(ended.status.success());
    assert!(String::from_utf8_lossy(&ended.stdout).contains("\"done\""));
}

#[test]
fn hostile_pages_end_in_bounded_copies() {
    let nested = "<div>".repeat(200_000);
    let wide = "<p onclick=alert(1)>x</p>".repeat((10 << 20) / 25);
    let attributes = format!("<p {}>x", "a='1' ".repeat(1 << 20));
    for body in [
        nested,
        wide,
        attributes,
        "<table><td>".repeat(100_000),
        "<b><i><a>".repeat(100_000),
    ] {
        let copy = &run_job(json!("copy"), &body)["done"];
        let html = copy["html"].as_str().expect("a copy");
        assert!(html.len() < 7 << 20, "{}", html.len());
        assert!(!html.contains("onclick"), "no handler is part of it");
    }
}

#[test]
fn invalid_pages_and_faulty_mappings_are_refused_with_a_reason() {
    let refused = run_job(json!("copy"), "%PDF-1.7 x");
    assert!(
        refused["refused"]
            .as_str()
            .is_some_and(|why| why.contains("because it is broken")),
        "{refused}"
    );
    let work = json!({"read": {"sources": [{"name": "a.json", "text": "{"}], "mapping": "a", "is_whole": false}});
    assert!(run_job(work, "<p>x")["refused"].is_string());
}

#[test]
fn an_invalid_order_ends_the_job_with_a_reason() {
    for order in [
        "",
        "{}",
        "{\"work\": \"copy\", \"pages\": [{\"bytes\": 99999999999}]}\n",
    ] {
        let mut job = start_job();
        let mut stdin = job.stdin.take().expect("piped");
        let _ = stdin.write_all(order.as_bytes());
        drop(stdin);
        let ended = job.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(1), "{order}");
        assert!(!ended.stderr.is_empty());
    }
}
