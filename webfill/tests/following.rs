//! Tests that `webfill export pages --since CURSOR --follow` misses no page, even if it is killed and continued, or if
//! several processes write at the same time.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_store::{CrawlId, Page, Save, StoreUri, open};
use webfill_wire::Outcome;

const WAIT: Duration = Duration::from_secs(60);

fn url(number: usize) -> String {
    format!("https://example.com/{number}")
}

fn page(app_id: &str, number: usize) -> Page {
    let crawl = CrawlId::new(app_id, "c1");
    Page {
        links: vec![url(number + 1); 20],
        ..Page::new(&crawl, &url(number), "example.com", Outcome::Ok)
    }
}

/// Saves pages as a worker does, in batches over its own connection.
fn spawn_writer(store: &Path, app_id: &'static str, pages: Vec<usize>) -> JoinHandle<()> {
    let uri = StoreUri::Sqlite(store.to_owned());
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            let store = open(&uri, None).await.unwrap().store;
            for batch in pages.chunks(5) {
                let save = |number: &usize| Save {
                    page: page(app_id, *number),
                    records: Vec::new(),
                };
                let saved = store.save(batch.iter().map(save).collect()).await;
                assert!(saved.iter().all(Result::is_ok), "{saved:?}");
            }
        });
    })
}

/// A running export, with a channel of the complete lines that it has written.
struct Export {
    child: Child,
    lines: Receiver<Value>,
}

fn command(store: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webfill"));
    command.args(["export", "pages", "--store"]);
    command.arg(format!("sqlite:{}", store.display()));
    command.args(args);
    command
}

impl Export {
    fn start(store: &Path, args: &[&str]) -> Export {
        let mut child = command(store, args).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (taken, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            while out.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                // Stop at an incomplete line, which a killed export may leave at the end.
                if !line.ends_with('\n')
                    || taken.send(serde_json::from_str(&line).unwrap()).is_err()
                {
                    break;
                }
                line.clear();
            }
        });
        Export { child, lines }
    }

    /// Processes up to `most` lines, and sets `cursor` to the cursor of the last one.
    fn take_lines(
        &self,
        most: usize,
        seen: &mut BTreeSet<String>,
        cursor: &mut String,
        all: usize,
    ) {
        let deadline = Instant::now() + WAIT;
        for _ in 0..most {
            if seen.len() == all {
                return;
            }
            assert!(Instant::now() < deadline, "{} of {all}", seen.len());
            match self.lines.recv_timeout(WAIT) {
                Ok(line) => {
                    seen.insert(line["url"].as_str().unwrap().to_owned());
                    cursor.clear();
                    cursor.push_str(line["cursor"].as_str().unwrap());
                }
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!("{} of {all}", seen.len()),
            }
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn interrupt(mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
        assert!(sent.success());
        self.child.wait().unwrap()
    }
}

fn empty_store(folder: &Path) -> std::path::PathBuf {
    let store = folder.join("webfill.db");
    spawn_writer(&store, "a", Vec::new()).join().unwrap();
    store
}

#[test]
fn a_follower_that_is_killed_again_and_again_misses_no_page_of_several_writers() {
    const WRITERS: usize = 4;
    const PAGES: usize = 600;
    let folder = tempfile::tempdir().unwrap();
    let store = empty_store(folder.path());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            spawn_writer(
                &store,
                "a",
                (0..PAGES).map(|page| page * WRITERS + writer).collect(),
            )
        })
        .collect();
    let all = WRITERS * PAGES;
    let mut seen = BTreeSet::new();
    let mut cursor = String::from("0");
    let mut kills = 0;
    while seen.len() < all {
        let export = Export::start(&store, &["--since", &cursor, "--follow"]);
        // If lines were written but not processed, the next export writes them again.
        export.take_lines(317, &mut seen, &mut cursor, all);
        export.kill();
        kills += 1;
    }
    assert!(kills > 5, "{kills}");
    writers
        .into_iter()
        .for_each(|writer| writer.join().unwrap());
    assert_eq!(seen, (0..all).map(url).collect());
    let rest = command(&store, &["--since", &cursor]).output().unwrap();
    assert!(rest.status.success() && rest.stdout.is_empty(), "{rest:?}");
}

#[test]
fn a_follower_prints_each_page_at_once_and_ends_well_when_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let store = empty_store(folder.path());
    let export = Export::start(&store, &["--follow", "--app", "a"]);
    for number in 0..5 {
        spawn_writer(&store, "b", vec![100 + number])
            .join()
            .unwrap();
        spawn_writer(&store, "a", vec![number]).join().unwrap();
        let line = export.lines.recv_timeout(WAIT).expect("a line");
        assert_eq!(
            (&line["url"], &line["app_id"]),
            (&url(number).into(), &"a".into())
        );
    }
    assert_eq!(export.interrupt().code(), Some(0));
}

#[test]
fn without_follow_an_export_ends_after_the_stored_pages() {
    let folder = tempfile::tempdir().unwrap();
    let store = empty_store(folder.path());
    spawn_writer(&store, "a", (0..7).collect()).join().unwrap();
    let mut export = Export::start(&store, &["--since", "0", "--crawl", "c1"]);
    assert!(export.child.wait().unwrap().success());
    let cursors: Vec<Value> = export
        .lines
        .iter()
        .map(|line| line["cursor"].clone())
        .collect();
    assert_eq!(cursors.len(), 7);
    let rest = command(&store, &["--since", cursors[4].as_str().unwrap()]);
    let rest = { rest }.output().unwrap();
    assert_eq!(
        rest.stdout.split(|byte| *byte == b'\n').count(),
        3,
        "two lines"
    );
}

#[test]
fn invalid_cursors_and_flags_are_refused_before_anything_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("none.db");
    for (args, says) in [
        (&["--since", "yesterday"][..], "`yesterday` is no cursor"),
        (&["--since", "0", "--format", "csv"], "JSON lines"),
        (&["--follow", "--format", "csv"], "JSON lines"),
    ] {
        let mut child = command(&store, args)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2));
        let mut reported = String::new();
        child.stderr.unwrap().read_to_string(&mut reported).unwrap();
        assert!(reported.contains(says), "{reported}");
    }
    let records = Command::new(env!("CARGO_BIN_EXE_webfill"))
        .args(["export", "records", "--follow"])
        .output()
        .unwrap();
    assert_eq!(records.status.code(), Some(2));
    let foreign = empty_store(folder.path());
    let refused = command(&foreign, &["--since", "abcd-1"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let reported = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(reported.contains("of another store"), "{reported}");
}
