//! Tests that deaths in the mapping editor do no harm: jobs that are killed or need too much memory, and a dashboard
//! that is killed while it saves.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::process::send_signal;
use webfill_tests::run::Run;
use webfill_tests::site::Web;
use webfill_tests::waiting::wait_for;
use webfill_tests::workplace::Workplace;

use super::bench::{Bench, heading_mapping};

const HOST: &str = "people.example";

/// The length in bytes of a page that takes seconds to read.
const LARGE: usize = 15 << 20;

/// The process id of a job (a process that reads pages for the editor) of this dashboard, once it is reading.
fn find_job_process(dashboard: u32) -> Option<u32> {
    let threads = fs::read_dir(format!("/proc/{dashboard}/task"))
        .ok()?
        .flatten();
    let children =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children = children.collect::<Vec<_>>().join(" ");
    let mut children = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    children.find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        String::from_utf8_lossy(&line).contains("dashboard-job") && threads > 1
    })
}

#[test]
fn a_job_that_dies_is_reported_and_the_dashboard_continues() {
    let (work, web) = (Workplace::new(), Web::start());
    let mut bench = Bench::start(&work, &web, &[]);
    let draft = bench.begin_draft("", "people");
    let body = "<p>x".repeat(LARGE / 4);
    let large = format!("<h1>Ada</h1>{body}");
    bench.request_ok(
        &draft,
        "check",
        &json!({"mapping": heading_mapping("people", "page.invalid")}),
    );
    assert_eq!(bench.upload(&draft, "large.html", &large).status, 200);
    let dashboard = bench.dashboard().processes()[0].pid;
    let bench = &bench;
    let ended = |end: &dyn Fn(u32)| {
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| bench.request_refused(&draft, "trial", &json!({})));
            end(wait_for("a job is at work", || find_job_process(dashboard)));
            asked.join().expect("it is reported")
        })
    };
    let killed = ended(&|job| send_signal(job, Signal::KILL));
    assert!(
        killed.starts_with("killed, probably for lack of memory"),
        "{killed}"
    );
    let slow = ended(&|job| send_signal(job, Signal::XCPU));
    assert!(slow.starts_with("it took too long"), "{slow}");
    // With this limit on the job's address space, its next allocation of memory fails.
    let large = ended(&|job| {
        let limit = Command::new("prlimit")
            .args(["--as=1", "--pid", &job.to_string()])
            .status();
        assert!(limit.expect("prlimit").success());
    });
    assert!(large.starts_with("it ran out of memory"), "{large}");

    let small = bench.begin_draft("", "people");
    bench.upload(&small, "small.html", "<h1>Bob</h1>");
    let mapping = json!({"mapping": heading_mapping("people", "page.invalid")});
    let tried = bench.request_ok(&small, "trial", &mapping);
    assert_eq!(tried["rows"][0]["read"], "Bob");
}

/// A mapping so large that it takes some time to write. Its content depends only on the number.
fn large_mapping(number: usize) -> Value {
    let mut mapping = heading_mapping("people", HOST);
    mapping["description"] = format!("{number} {}", "x".repeat(500_000)).into();
    mapping
}

#[test]
fn a_dashboard_that_is_killed_while_it_saves_leaves_whole_files() {
    let (work, web) = (Workplace::new(), Web::start());
    for round in 0..6 {
        let mut bench = Bench::start(&work, &web, &[]);
        let known = if round == 0 { "" } else { "people" };
        let draft = bench.begin_draft(known, "people");
        let first = work.path("mappings/people.json").exists();
        let dashboard = bench.dashboard().processes()[0].pid;
        let saving = std::thread::spawn(move || {
            for number in 0.. {
                bench.request_ok(&draft, "save", &json!({"mapping": large_mapping(number)}));
            }
        });
        let is_there = || work.path("mappings/people.json.1").exists() || first;
        wait_for("something was saved", || is_there().then_some(()));
        // The dashboard is killed later in each round, so it dies at different moments of saving.
        std::thread::sleep(Duration::from_millis(7 * round));
        send_signal(dashboard, Signal::KILL);
        saving.join().expect_err("its dashboard is gone");
        assert_whole(&work.path("mappings"));
    }
    Run::new(["mapping", "check", "mappings"])
        .in_folder(work.path("."))
        .finish()
        .expect_code(0);
}

/// Checks that every saved version of the mapping is complete.
fn assert_whole(folder: &Path) {
    let files = fs::read_dir(folder).expect("it is there").flatten();
    let files = files.filter(|file| {
        file.file_name()
            .to_string_lossy()
            .starts_with("people.json")
    });
    let mut versions = 0;
    for file in files {
        let text = fs::read_to_string(file.path()).expect("a file");
        let read: Value = serde_json::from_str(&text).expect("a whole one");
        let description = read["description"].as_str().expect("a description");
        let (number, _) = description.split_once(' ').expect("a number");
        assert_eq!(read, large_mapping(number.parse().expect("a number")));
        versions += 1;
    }
    assert!(versions >= 2, "the former version is kept");
}
