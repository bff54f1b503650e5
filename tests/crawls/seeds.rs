//! Tests seeds in every format, and the reports about invalid lines.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

fn start_web(hosts: &[&str]) -> Web {
    let web = Web::start();
    for host in hosts {
        web.site(host)
            .serve_otherwise(|_| page("T").field("name", "Found").into());
    }
    web
}

fn fetched_paths(web: &Web) -> BTreeSet<String> {
    web.visits().pages().paths().into_iter().collect()
}

fn path_set(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(ToString::to_string).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder
        .write_all(text.as_bytes())
        .expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

#[test]
fn seeds_may_be_text_with_comments_and_blank_lines() {
    let web = start_web(&["a.example", "b.example"]);
    let work = Workplace::new();
    let text = "# a comment\nhttp://a.example/1\n\n   http://b.example/2  \r\n# http://a.example/no\nhttp://a.example/1\n";
    let seeds = work.write("seeds.txt", text);
    let run = work
        .crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    assert_eq!(
        fetched_paths(&web),
        path_set(&["a.example/1", "b.example/2"])
    );
    assert_eq!(run.summary().skipped_count("duplicate"), 1);
}

#[test]
fn gzipped_seeds_are_read() {
    let web = start_web(&["a.example"]);
    let work = Workplace::new();
    let seeds = work.write("seeds.txt.gz", gzip("http://a.example/z\n"));
    work.crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    assert_eq!(fetched_paths(&web), path_set(&["a.example/z"]));
}

#[test]
fn seeds_from_standard_input_and_arguments_are_combined() {
    let web = start_web(&["a.example", "b.example"]);
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .args(["--seeds", "-", "http://b.example/argument"]);
    run.input("http://a.example/input\n")
        .finish()
        .expect_code(0);
    assert_eq!(
        fetched_paths(&web),
        path_set(&["a.example/input", "b.example/argument"])
    );
}

#[test]
fn a_pipe_is_read_once_and_holds_up_nothing_while_it_pauses() {
    let web = start_web(&["a.example"]);
    let work = Workplace::new();
    let pipe = work.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is there").success());
    // The test also opens the pipe for reading. So opening it does not wait for a reader, and writing does not fail
    // when the reader ends.
    let mut writer = File::options()
        .read(true)
        .write(true)
        .open(&pipe)
        .expect("our own pipe");
    writer
        .write_all(b"http://a.example/1\nhttp://a.example/2\n")
        .expect("a pipe takes a little");
    let mut running = work.crawl(&web).arg("--seeds").arg(&pipe).start();
    web.log().wait_until("all that came is fetched", |visits| {
        visits.pages().len() == 2
    });
    running.wait_until("all that came is stored", |_| {
        work.stored().pages().len() == 2
    });
    running.signal(Signal::INT);
    let run = running.finish().expect_code(11);
    assert_eq!(run.summary().outcome_count("ok"), 2);
    assert_eq!(
        fetched_paths(&web),
        path_set(&["a.example/1", "a.example/2"])
    );
    assert!(
        run.elapsed < Duration::from_secs(60),
        "the pipe is open still"
    );
}

#[test]
fn csv_columns_become_fields_and_empty_cells_are_missing() {
    let web = start_web(&["a.example", "b.example"]);
    let work = Workplace::new();
    let csv = "id,urls,name,location\r\n\
               1,http://a.example/1 http://b.example/1,,\"Paris, France\"\r\n\
               2,http://a.example/2,\"Known \"\"Nick\"\"\",\r\n";
    let seeds = work.write("seeds.csv", csv);
    work.crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    let records = work.stored().records();
    assert_eq!(records["1"].fields["name"], "Found");
    assert_eq!(records["1"].fields["location"], "Paris, France");
    assert!(records["1"].resolved);
    assert_eq!(records["2"].fields["name"], "Known \"Nick\"");
    assert_eq!(records["2"].missing, ["location"]);
    assert!(
        fetched_paths(&web).contains("a.example/2"),
        "it still misses its location"
    );
}

#[test]
fn json_lines_hold_crawl_requests_too() {
    let web = start_web(&["a.example", "b.example"]);
    let root = page("root").link("/1").link("http://b.example/2");
    web.site("a.example").serve("/", root);
    let work = Workplace::new();
    let request = json!({"url": "http://a.example/", "appid": "app7", "crawlid": "c7", "maxdepth": 1,
        "allowed_domains": ["a.example"], "attrs": {"ticket": [1, "two"]}});
    let seeds = work.write_lines("seeds.jsonl", &[request]);
    work.crawl(&web)
        .args(["--follow", "all"])
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    assert_eq!(
        fetched_paths(&web),
        path_set(&["a.example/", "a.example/1"])
    );
    let stored = work.stored();
    let attrs = stored.query_number("SELECT count(*) FROM pages WHERE attrs LIKE '%\"ticket\"%'");
    assert_eq!(
        attrs, 2,
        "attributes are handed through to every page of the request"
    );
}

/// The seed with this number. There are eight kinds of invalid lines, which alternate.
fn broken_line(number: usize) -> String {
    match number % 8 {
        0 => "not a url".into(),
        1 => "ftp://a.example/file".into(),
        2 => "http://".into(),
        3 => "http://[::bad".into(),
        4 => "javascript:alert(1)".into(),
        5 => "http://a.example:99999/".into(),
        6 => "\u{fffd}\u{0}\u{1}".into(),
        _ => format!("http://{}.example/", "x".repeat(300)),
    }
}

/// The rows of a seeds file. The first row is so long that the hash of the file's beginning covers no other row.
fn seed_rows(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    let note = "n".repeat(5_000);
    let mut rows = vec![
        String::from("id,url,name,note"),
        format!("a,http://a.example/a,,{note}"),
    ];
    rows.extend(numbers.into_iter().map(seed_row));
    rows
}

/// A row that spans two lines.
fn seed_row(number: u32) -> String {
    format!("{number},http://a.example/{number},,\"first line\nsecond line\"")
}

/// An edit of a seeds file: its name, the edit itself, and the numbers of the records that are new after it.
type Edit = (&'static str, fn(&mut Vec<String>), &'static [u32]);

/// The edits of a seeds file between two runs of a crawl.
const EDITS: &[Edit] = &[
    ("nothing", |_| {}, &[]),
    (
        "appended",
        |rows| rows.extend((100..120).map(seed_row)),
        &[100, 110, 119],
    ),
    (
        "inserted",
        |rows| drop(rows.splice(10..10, (100..120).map(seed_row))),
        &[100, 110, 119],
    ),
    (
        "in the place of others",
        |rows| drop(rows.splice(10..30, (100..120).map(seed_row))),
        &[100, 110, 119],
    ),
    ("one URL", |rows| rows[20] = seed_row(100), &[100]),
    (
        "the last row",
        |rows| *rows.last_mut().unwrap() = seed_row(100),
        &[100],
    ),
    (
        "removed and appended",
        |rows| {
            rows.drain(10..20);
            rows.extend((100..110).map(seed_row));
        },
        &[100, 109],
    ),
    (
        "a second line",
        |rows| rows[41] = rows[41].replace("second", "http://a.example/x"),
        &[],
    ),
    (
        "sorted anew",
        |rows| {
            rows[2..].reverse();
            rows.insert(2, seed_row(100));
        },
        &[100],
    ),
];

#[test]
fn a_resumed_crawl_reads_seeds_added_anywhere() {
    for is_compressed in [false, true] {
        let (web, work) = (start_web(&["a.example"]), Workplace::new());
        let write = |name: &str, rows: &[String]| {
            let text = rows.join("\n") + "\n";
            match is_compressed {
                true => work.write(&format!("{name}.csv.gz"), gzip(&text)),
                false => work.write(&format!("{name}.csv"), text),
            }
        };
        for (edit, (name, change, new)) in EDITS.iter().enumerate() {
            let id = format!("c{edit}");
            let mut lines = seed_rows(0..40);
            let seeds = write(&id, &lines);
            let run = || {
                let run = work.crawl_without_delay(&web).args(["--delay", "0"]);
                run.replace_flag("--crawl", &id)
                    .arg("--seeds")
                    .arg(&seeds)
                    .finish()
                    .expect_code(0)
            };
            run();
            let before = web.visits().pages().len();
            change(&mut lines);
            write(&id, &lines);
            let summary = run().summary();
            let pages = web.visits().pages().paths();
            let fetched: BTreeSet<String> = pages[before..].iter().cloned().collect();
            for number in *new {
                assert!(
                    fetched.contains(&format!("a.example/{number}")),
                    "{name}: {fetched:?}"
                );
            }
            let added = lines
                .iter()
                .filter(|line| line.starts_with('1') && line.find(',') == Some(3));
            assert_eq!(
                (pages.len() - before, fetched.len()),
                (added.clone().count(), added.count()),
                "{name}"
            );
            assert_eq!(summary.json["repeated_seeds"]["count"], 0, "{name}");
        }
    }
}

#[test]
fn a_thousand_broken_lines_do_not_stop_the_good_ones() {
    let web = start_web(&["a.example", "b.example", "c.example"]);
    let work = Workplace::new();
    let mut lines = Vec::new();
    let mut broken = Vec::new();
    for number in 0..1_000 {
        if number % 100 == 50 {
            let host = ["a", "b", "c"][lines.len() % 3];
            lines.push(format!("http://{host}.example/good/{number}"));
        }
        lines.push(broken_line(number));
        broken.push(lines.len());
    }
    let seeds = work.write("seeds.txt", lines.join("\n"));
    let run = work
        .crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    assert_eq!(fetched_paths(&web).len(), 10);
    assert_eq!(run.summary().outcome_count("ok"), 10);
    assert_broken_lines_are_reported(&run.summary().json, &broken);
}

#[test]
fn broken_json_lines_are_reported_by_number_and_reason() {
    let web = start_web(&["a.example"]);
    let work = Workplace::new();
    let lines = [
        r#"{"id": "1", "urls": ["http://a.example/1"], "fields": {"name": null}}"#,
        r#"{"id": "2", "urls": ["http://a.example/2"], "fields": {"name": null}"#,
        r#"{"id": "3", "urls": [], "fields": {"name": null}}"#,
        r#"{"id": "4", "fields": {"name": null}}"#,
        r#"{"id": "5", "urls": ["http://a.example/5"], "feilds": {"name": null}}"#,
        r#"{"id": "6", "urls": ["nonsense"], "fields": {"name": null}}"#,
        r#"[1, 2]"#,
        r#"{"id": "8", "urls": ["http://a.example/8"], "fields": {"name": null}}"#,
    ];
    let seeds = work.write("seeds.jsonl", lines.join("\n"));
    let run = work
        .crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    assert_eq!(
        fetched_paths(&web),
        path_set(&["a.example/1", "a.example/8"])
    );
    let reported = assert_broken_lines_are_reported(&run.summary().json, &[2, 3, 4, 5, 6, 7]);
    assert!(
        reported.contains("feilds") && reported.contains("fields"),
        "the nearest right name is shown:\n{reported}"
    );
}

/// Checks that the summary counts these broken lines, and names a file that gives a reason for each. Returns the
/// content of this file.
fn assert_broken_lines_are_reported(summary: &Value, broken: &[usize]) -> String {
    let reported = &summary["broken_seeds"];
    assert_eq!(
        reported["count"].as_u64(),
        Some(broken.len() as u64),
        "{summary}"
    );
    let file = reported["file"].as_str().expect("the file of broken lines");
    let text = std::fs::read_to_string(file).expect("a readable file");
    let number = |line: &str| {
        let digits = line.split(|c: char| !c.is_ascii_digit());
        digits.filter_map(|word| word.parse::<usize>().ok()).next()
    };
    let numbers: Vec<usize> = text.lines().filter_map(number).collect();
    assert_eq!(numbers, broken, "{text}");
    text
}
