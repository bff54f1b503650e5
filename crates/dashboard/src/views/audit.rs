//! The audit log: who has fed or changed something, or was refused, newest first. It is read from the ends of the
//! files, in a blocking thread.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};
use webfill_service::log::audit::{audit_files, dashboard_audit_file};
use webfill_store::parse_iso_time;

use crate::answer::{Problem, Shown};
use crate::visit::Visit;

/// How many lines of the log are shown on one page.
const SHOWN: usize = 100;

/// How many bytes of the log are searched for one page. The page has a link to continue.
const MOST_BYTES: u64 = 8 << 20;

/// Files are read backwards in pieces of this size, in bytes.
const PIECE: u64 = 256 << 10;

/// Which lines of the log are requested.
#[derive(Debug, Clone, Default, Serialize)]
struct AuditQuery {
    who: Option<String>,
    action: Option<String>,
    /// Only lines before this position: the number of a file, and a byte offset in it.
    before: Option<(usize, u64)>,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Line {
    at: String,
    who: Option<String>,
    by: String,
    address: Option<String>,
    action: String,
    result: String,
    why: Option<String>,
    /// The members of the line that have no column of their own, each with its name and text.
    further: Vec<(String, String)>,
    #[serde(skip)]
    at_ms: i64,
}

/// The lines that were found, and where the search continues.
#[derive(Debug, Default)]
struct FoundLines {
    lines: Vec<Line>,
    next: Option<(usize, u64)>,
}

pub(crate) async fn show(visit: &Visit) -> Shown {
    visit.require_whole_fleet()?;
    let setup = &visit.dashboard.setup;
    let Some(logs) = setup.logs.clone().filter(|logs| logs.is_dir()) else {
        return Err(Problem::not_found(
            "no log folder: name the dispatcher's state folder with --state",
        ));
    };
    let mut beside = vec![dashboard_audit_file(&logs)];
    beside.extend(setup.keys_audit.clone());
    let before = match visit.query_value("before") {
        None => None,
        Some(text) => Some(
            parse_cursor(text)
                .ok_or_else(|| Problem::bad_request("before: not a position in the log"))?,
        ),
    };
    let asked = AuditQuery {
        who: visit.query_value("who").map(str::to_owned),
        action: visit.query_value("action").map(str::to_owned),
        before,
    };
    let query = asked.clone();
    let reading = tokio::task::spawn_blocking(move || search_logs(&logs, &beside, &query));
    let found = reading.await.map_err(Problem::internal_error)?;
    let found = found
        .map_err(|error| Problem::unavailable(format!("cannot read the audit log: {error}")))?;
    let next = found.next.map(|(file, at)| format!("{file}-{at}"));
    let lines = found.lines;
    visit.render_page(
        "audit.html",
        "Audit",
        json!({"lines": lines, "asked": asked, "next": next}),
    )
}

fn parse_cursor(text: &str) -> Option<(usize, u64)> {
    let (file, at) = text.split_once('-')?;
    Some((file.parse().ok()?, at.parse().ok()?))
}

/// Searches the log files for lines, the newest first. Files are numbered from the newest, so if a new file begins
/// between two requests, some lines may be shown twice. The logs of keys and dashboards (`beside`) are short, so only
/// the first page shows their last lines.
fn search_logs(logs: &Path, beside: &[PathBuf], asked: &AuditQuery) -> io::Result<FoundLines> {
    let mut files = audit_files(logs)?;
    files.reverse();
    let mut found = FoundLines::default();
    let mut left = MOST_BYTES;
    let (first, mut end) = asked
        .before
        .map_or((0, None), |(file, at)| (file, Some(at)));
    let is_first = asked.before.is_none();
    for file in beside.iter().filter(|file| is_first && file.exists()) {
        search_backwards(file, None, &mut left.clone(), asked, &mut found.lines)?;
    }
    let mut own = Vec::new();
    for (number, file) in files.iter().enumerate().skip(first) {
        let at = match search_backwards(file, end.take(), &mut left, asked, &mut own) {
            Ok(at) => at,
            // The dispatcher has removed the file after it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if let Some(at) = at {
            found.next = Some((number, at));
            break;
        }
    }
    found.lines.extend(own);
    found
        .lines
        .sort_by_key(|line| std::cmp::Reverse(line.at_ms));
    Ok(found)
}

/// Searches a file backwards, from a position or from its end. Returns where the search stopped, if there is more to
/// search.
fn search_backwards(
    path: &Path,
    end: Option<u64>,
    left: &mut u64,
    asked: &AuditQuery,
    lines: &mut Vec<Line>,
) -> io::Result<Option<u64>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut end = end.map_or(length, |end| end.min(length));
    // The beginning of the piece that was read last: the end of a line that begins in an earlier piece.
    let mut tail: Vec<u8> = Vec::new();
    while end > 0 {
        if *left == 0 {
            return Ok(Some(end + tail.len() as u64));
        }
        let begin = end.saturating_sub(PIECE);
        let mut piece = vec![0; (end - begin) as usize];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(&mut piece)?;
        *left = left.saturating_sub(piece.len() as u64);
        piece.extend_from_slice(&tail);
        let mut until = piece.len();
        while let Some(at) = piece[..until].iter().rposition(|byte| *byte == b'\n') {
            push_if_matching(&piece[at + 1..until], asked, lines);
            until = at;
            if lines.len() >= SHOWN {
                return Ok(Some(begin + at as u64));
            }
        }
        piece.truncate(until);
        tail = piece;
        end = begin;
    }
    push_if_matching(&tail, asked, lines);
    Ok(None)
}

fn push_if_matching(text: &[u8], asked: &AuditQuery, lines: &mut Vec<Line>) {
    let Ok(Value::Object(line)) = serde_json::from_slice(text) else {
        return;
    };
    let is = |key: &str, wanted: &Option<String>| {
        wanted.is_none() || line.get(key).and_then(Value::as_str) == wanted.as_deref()
    };
    if is("who", &asked.who) && is("action", &asked.action) {
        lines.push(line_from_json(line));
    }
}

/// The members of a log line that are shown in columns of their own.
const PLACED: [&str; 7] = [
    "timestamp",
    "action",
    "who",
    "address",
    "by",
    "result",
    "why",
];

fn line_from_json(line: Map<String, Value>) -> Line {
    let text = |key: &str| line.get(key).and_then(Value::as_str).map(str::to_owned);
    let at = text("timestamp").unwrap_or_default();
    Line {
        at_ms: parse_iso_time(&at).unwrap_or_default(),
        at,
        who: text("who"),
        by: text("by").unwrap_or_default(),
        address: text("address"),
        action: text("action").unwrap_or_default(),
        result: text("result").unwrap_or_default(),
        why: text("why"),
        further: line
            .iter()
            .filter(|(key, _)| !PLACED.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value_text(value)))
            .collect(),
    }
}

/// The text of a value: crawls by their names, texts unchanged, anything else as JSON.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(value_text).collect();
            items.join(", ")
        }
        Value::Object(crawl) if crawl.contains_key("appid") => {
            let text = |key: &str| crawl.get(key).and_then(Value::as_str).unwrap_or_default();
            format!("{}/{}", text("appid"), text("crawlid"))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn line(n: usize) -> String {
        let who = if n.is_multiple_of(2) { "even" } else { "odd" };
        let at = format!("2026-11-24T06:{:02}:{:02}.000Z", n / 60, n % 60);
        let line = json!({"timestamp": at, "action": "stop", "who": who, "by": "key", "result": "done", "n": n});
        format!("{line}\n")
    }

    fn numbers(found: &FoundLines) -> Vec<usize> {
        let number = |line: &Line| line.further[0].1.parse().unwrap();
        found.lines.iter().map(number).collect()
    }

    #[test]
    fn the_last_lines_come_first_page_by_page_over_all_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, of: std::ops::Range<usize>| {
            let text: String = of.map(line).collect();
            fs::write(folder.path().join(name), text).unwrap();
        };
        write("audit.2026-11-23.log", 0..150);
        write("audit.2026-11-24.log", 150..260);
        let mut asked = AuditQuery::default();
        let mut seen = Vec::new();
        loop {
            let found = search_logs(folder.path(), &[], &asked).unwrap();
            seen.extend(numbers(&found));
            match found.next {
                None => break,
                next => asked.before = next,
            }
        }
        assert_eq!(seen, (0..260).rev().collect::<Vec<_>>());
        let odd = AuditQuery {
            who: Some("odd".into()),
            ..AuditQuery::default()
        };
        let found = search_logs(folder.path(), &[], &odd).unwrap();
        assert_eq!(found.lines.len(), SHOWN);
        assert!(numbers(&found).iter().all(|n| n % 2 == 1));
    }

    #[test]
    fn a_long_log_is_read_in_bounded_parts() {
        let folder = tempfile::tempdir().unwrap();
        let long = "x".repeat(1_000);
        let text: String = (0..20_000)
            .map(|n| format!("{}\n", json!({"timestamp": "2026-11-24T06:00:00Z", "action": "feed", "n": n, "text": long})))
            .collect();
        fs::write(
            folder.path().join("audit.2026-11-24.log"),
            format!("{{\"who\": \"first\", \"n\": 0}}\n{text}not json\n"),
        )
        .unwrap();
        let mut asked = AuditQuery {
            who: Some("first".into()),
            ..AuditQuery::default()
        };
        let mut checks = 0;
        let found = loop {
            checks += 1;
            let found = search_logs(folder.path(), &[], &asked).unwrap();
            match found.next {
                Some(next) if found.lines.is_empty() => asked.before = Some(next),
                _ => break found,
            }
        };
        assert_eq!(found.lines.len(), 1);
        assert!((3..=4).contains(&checks), "{checks}");
    }

    #[test]
    fn positions_are_checked_and_crawls_are_shown_by_name() {
        assert_eq!(parse_cursor("2-77"), Some((2, 77)));
        for wrong in ["", "-", "1", "1--1", "a-b", "99999999999999999999-1"] {
            assert_eq!(parse_cursor(wrong), None, "{wrong}");
        }
        let crawls = json!([{"appid": "a", "crawlid": "b"}, {"appid": "c", "crawlid": "d"}]);
        assert_eq!(value_text(&crawls), "a/b, c/d");
        assert_eq!(value_text(&json!(5)), "5");
    }
}
