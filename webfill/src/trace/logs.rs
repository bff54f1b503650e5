//! Finds the lines of log files that belong to the history of a URL. Files are read line by line, so their length does
//! not matter. Symbolic links are skipped, because they lead to other files of the folder.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::feeders::Feeders;
use super::steps::Step;

/// The most lines of a history that are kept.
const MOST_LINES: usize = 10_000;

/// The longest line that is read, in bytes. Longer lines are skipped.
const LONGEST_LINE: u64 = 1 << 20;

/// The most levels of folders that are read.
const MOST_DEEP: usize = 8;

/// A task, by its number and the id of its crawl. The number alone is unique only within one dispatcher.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskName {
    task: u64,
    crawl_id: String,
}

impl TaskName {
    /// The name of the task in an entry of the answer to `webfill why`.
    pub(super) fn from_crawl(crawl: &Value) -> Option<TaskName> {
        Some(TaskName {
            task: crawl["task"].as_u64()?,
            crawl_id: crawl["crawlid"].as_str()?.to_owned(),
        })
    }

    /// The name of the task that a log line is about.
    fn from_line(line: &Value) -> Option<TaskName> {
        let of = |key: &str| match &line[key] {
            Value::Null => &line["span"][key],
            own => own,
        };
        Some(TaskName {
            task: of("task").as_u64()?,
            crawl_id: of("crawl_id").as_str()?.to_owned(),
        })
    }
}

/// Which crawls belong to the history. `None` means any application or any crawl.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CrawlFilter<'a> {
    pub(super) app: Option<&'a str>,
    pub(super) crawl: Option<&'a str>,
}

impl CrawlFilter<'_> {
    /// Whether a line may be about a selected crawl. A line that names no application counts as well.
    fn may_match(self, line: &Value) -> bool {
        let of = |key: &str| line[key].as_str().or(line["span"][key].as_str());
        let is_of_app = match (self.app, of("app_id").or(of("appid"))) {
            (Some(wanted), Some(app)) => wanted == app,
            _ => true,
        };
        is_of_app
            && self
                .crawl
                .is_none_or(|wanted| of("crawl_id") == Some(wanted))
    }
}

/// The lines found in a folder of logs, with notes about unreadable or omitted ones.
#[derive(Debug, Default)]
pub(super) struct FoundLines {
    pub(super) steps: Vec<Step>,
    pub(super) missing: BTreeSet<String>,
}

impl FoundLines {
    fn note_unreadable(&mut self, path: &Path, error: &io::Error) {
        let what = format!("the logs in {}: {error}", path.display());
        self.missing.insert(what);
    }
}

/// Finds the lines of the history in a folder of logs. Lines about the URL name tasks, and other lines about these
/// tasks belong to the history, too. Unreadable files are reported and skipped.
pub(super) fn read_logs(
    folder: &Path,
    url: &str,
    wanted: CrawlFilter<'_>,
    known: Vec<TaskName>,
    mut feeders: Feeders,
) -> FoundLines {
    let mut found = FoundLines::default();
    let mut files = Vec::new();
    collect_files(folder, MOST_DEEP, &mut files, &mut found);
    files.sort();
    let in_json = serde_json::to_string(url).unwrap_or_default();
    let is_wanted = |line: &Value| line["url"] == url && wanted.may_match(line);
    let mut tasks: BTreeSet<TaskName> = known.into_iter().collect();
    for file in &files {
        let read = for_each_line(file, |text| {
            if let Some(line) = parse_if_wanted(text, text.contains(&in_json)).filter(is_wanted) {
                tasks.extend(TaskName::from_line(&line));
                feeders.note_crawl(&line);
            }
        });
        read.unwrap_or_else(|error| found.note_unreadable(file, &error));
    }
    let mut seen = BTreeSet::new();
    for file in &files {
        let (mut steps, mut is_cut) = (std::mem::take(&mut found.steps), false);
        let read = for_each_line(file, |text| {
            let may_be_of_feed = Feeders::may_be_feed_line(text);
            let may_belong = text.contains(&in_json) || text.contains("\"task\":");
            let Some(line) = parse_if_wanted(text, may_be_of_feed || may_belong) else {
                return;
            };
            if may_be_of_feed {
                feeders.note_feed(&line);
            }
            let belongs = match TaskName::from_line(&line) {
                Some(task) => tasks.contains(&task),
                None => line["url"] == url,
            };
            // The same file may have been collected twice, so equal lines of a process count once.
            let mut is_new = || seen.insert((process_name(file), text.to_owned()));
            if !belongs || !wanted.may_match(&line) || !is_new() {
                return;
            }
            match steps.len() < MOST_LINES {
                true => steps.push(Step::from_line(
                    process_path(folder, file),
                    &line,
                    steps.len(),
                )),
                false => is_cut = true,
            }
        });
        found.steps = steps;
        read.unwrap_or_else(|error| found.note_unreadable(file, &error));
        if is_cut {
            let what = format!("further lines of the logs: only {MOST_LINES} are shown");
            found.missing.insert(what);
            break;
        }
    }
    if feeders.is_cut {
        found.missing.insert("further feeders of its crawls".into());
    }
    // Position 0 puts feeds before their consequences in the same second.
    found.steps.extend(feeders.into_steps(0));
    found
}

/// Parses a line if `may_be_wanted` is true.
fn parse_if_wanted(text: &str, may_be_wanted: bool) -> Option<Value> {
    may_be_wanted.then(|| serde_json::from_str(text).ok())?
}

/// Collects the log files of this folder and of all folders in it.
fn collect_files(folder: &Path, deep: usize, files: &mut Vec<PathBuf>, found: &mut FoundLines) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return found.note_unreadable(folder, &error),
    };
    for entry in entries {
        let kind = entry.and_then(|entry| Ok((entry.file_type()?, entry)));
        let (kind, entry) = match kind {
            Ok(known) => known,
            Err(error) => {
                found.note_unreadable(folder, &error);
                continue;
            }
        };
        let path = entry.path();
        if kind.is_dir() && deep > 0 {
            collect_files(&path, deep - 1, files, found);
        } else if kind.is_file() && entry.file_name().to_string_lossy().contains(".log") {
            files.push(path);
        }
    }
}

/// The name of the process that wrote a log file: `worker-0` for `worker-0.2026-11-23.log`.
fn process_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// The process that wrote a log file, with the file's folder below the folder of logs: `vm-1/worker-0`.
fn process_path(folder: &Path, file: &Path) -> String {
    let below = file
        .parent()
        .and_then(|path| path.strip_prefix(folder).ok());
    let place = below.unwrap_or(Path::new("")).join(process_name(file));
    place.display().to_string()
}

/// Passes each line to `each`. Lines that are too long are left out. In lines with invalid UTF-8, characters are
/// replaced; no line of a history is affected.
fn for_each_line(file: &Path, mut each: impl FnMut(&str)) -> io::Result<()> {
    let mut reader = BufReader::new(File::open(file)?);
    let mut line = Vec::new();
    let mut is_backoff = false;
    loop {
        line.clear();
        let read = (&mut reader)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let is_part = read as u64 == LONGEST_LINE && !line.ends_with(b"\n");
        if !is_part && !is_backoff {
            each(String::from_utf8_lossy(&line).trim_end());
        }
        is_backoff = is_part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_url_and_of_its_tasks_are_found_in_all_files_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, lines: &[&str]| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, lines.join("\n")).unwrap();
        };
        let queued = r#"{"timestamp":"2026-11-23T10:00:00Z","event":"queued","task":7,"crawl_id":"c","url":"http://a.org/"}"#;
        write(
            "vm-0/dispatcher.2026-11-23.log",
            &[queued, "no JSON", "{\"task\":8}"],
        );
        write("copy/dispatcher.2026-11-23.log", &[queued]);
        write(
            "vm-1/worker-0.2026-11-23.log",
            &[
                r#"{"timestamp":"2026-11-23T10:00:01Z","event":"begun","span":{"task":7,"crawl_id":"c"}}"#,
                r#"{"timestamp":"2026-11-23T10:00:01Z","event":"begun","span":{"task":7,"crawl_id":"another"}}"#,
            ],
        );
        let reported = read_logs(
            folder.path(),
            "http://a.org/",
            CrawlFilter::default(),
            Vec::new(),
            Feeders::default(),
        );
        assert!(reported.missing.is_empty(), "{reported:?}");
        let mut found: Vec<(String, String)> = reported
            .steps
            .into_iter()
            .map(|step| (step.process, step.event))
            .collect();
        found.sort();
        let expected = [("copy/dispatcher", "queued"), ("vm-1/worker-0", "begun")];
        assert_eq!(
            found,
            expected.map(|(one, other)| (one.to_owned(), other.to_owned()))
        );
    }

    #[test]
    fn unreadable_files_are_named_and_the_rest_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vm.logs");
        std::fs::create_dir(&path).unwrap();
        let line =
            |app: &str| format!(r#"{{"event":"fed","app_id":"{app}","url":"http://a.org/"}}"#);
        let long = format!("{}{}", line("one"), " ".repeat(LONGEST_LINE as usize));
        let lines = [long, line("one"), line("another")].join("\n");
        std::fs::write(path.join("dispatcher.log"), lines).unwrap();
        std::fs::write(path.join("notes.txt"), line("one")).unwrap();
        let wanted = CrawlFilter {
            app: Some("one"),
            crawl: None,
        };
        let found = read_logs(
            folder.path(),
            "http://a.org/",
            wanted,
            Vec::new(),
            Feeders::default(),
        );
        assert_eq!(found.steps.len(), 1, "{found:?}");
        assert!(found.missing.is_empty(), "{found:?}");

        let mut found = FoundLines::default();
        let gone = folder.path().join("gone");
        collect_files(&gone, 1, &mut Vec::new(), &mut found);
        assert!(found.missing.iter().any(|what| what.contains("gone")));
    }

    #[test]
    fn lines_that_are_left_out_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<String> = (0..=MOST_LINES)
            .map(|n| format!(r#"{{"n":{n},"url":"http://a.org/"}}"#))
            .collect();
        std::fs::write(folder.path().join("a.log"), lines.join("\n")).unwrap();
        let found = read_logs(
            folder.path(),
            "http://a.org/",
            CrawlFilter::default(),
            Vec::new(),
            Feeders::default(),
        );
        assert_eq!(found.steps.len(), MOST_LINES);
        assert_eq!(found.missing.len(), 1, "{:?}", found.missing);
    }
}
