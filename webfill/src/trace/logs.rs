//! The lines of log files that belong to the story of a URL. Files are read line by line, whatever their
//! length; those that are links lead to others in the folder, and are passed over.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::steps::Step;

/// At most so many lines are kept of a story.
const MOST_LINES: usize = 10_000;

/// At most so many folders deep.
const MOST_DEEP: usize = 8;

/// A task, by its number and the id of its crawl: numbers alone are those of one dispatcher.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskName {
    task: u64,
    crawl_id: String,
}

impl TaskName {
    /// That of a crawl in the answer of `webfill why`.
    pub(super) fn of_crawl(told: &Value) -> Option<TaskName> {
        Some(TaskName {
            task: told["task"].as_u64()?,
            crawl_id: told["crawlid"].as_str()?.to_owned(),
        })
    }

    /// The task that a line is about.
    fn of_line(line: &Value) -> Option<TaskName> {
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

/// The story's lines in a folder of logs. Tasks that lines about the URL name belong to it, too.
pub(super) fn read_logs(
    folder: &Path,
    url: &str,
    crawl: Option<&str>,
    known: Vec<TaskName>,
) -> io::Result<Vec<Step>> {
    let mut files = Vec::new();
    collect_files(folder, MOST_DEEP, &mut files)?;
    files.sort();
    let mut tasks: BTreeSet<TaskName> = known.into_iter().collect();
    let in_json = serde_json::to_string(url).unwrap_or_default();
    let is_wanted = |crawl_id: &str| crawl.is_none_or(|wanted| wanted == crawl_id);
    for file in &files {
        each_line(file, |text| {
            if !text.contains(&in_json) {
                return;
            }
            let Ok(line) = serde_json::from_str::<Value>(text) else {
                return;
            };
            if line["url"] == url
                && let Some(task) = TaskName::of_line(&line)
                && is_wanted(&task.crawl_id)
            {
                tasks.insert(task);
            }
        })?;
    }
    let mut steps = Vec::new();
    let mut seen = BTreeSet::new();
    for file in &files {
        each_line(file, |text| {
            let is_about = text.contains(&in_json) || text.contains("\"task\":");
            if !is_about || steps.len() >= MOST_LINES {
                return;
            }
            let Ok(line) = serde_json::from_str::<Value>(text) else {
                return;
            };
            let task = TaskName::of_line(&line);
            let belongs = match &task {
                Some(task) => tasks.contains(task),
                None => {
                    let crawl_id = line["crawl_id"].as_str().unwrap_or_default();
                    line["url"] == url && is_wanted(crawl_id)
                }
            };
            // A file may have been collected twice.
            let process = process_of(file);
            if belongs && seen.insert((process.clone(), text.to_owned())) {
                steps.push(Step::of_line(process, &line, steps.len()));
            }
        })?;
    }
    Ok(steps)
}

/// Files of logs, in any folder below this one.
fn collect_files(folder: &Path, deep: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() && deep > 0 {
            collect_files(&path, deep - 1, files)?;
        } else if kind.is_file() && path.to_string_lossy().contains(".log") {
            files.push(path);
        }
    }
    Ok(())
}

/// The name of the process that wrote a file: `worker-0` of `worker-0.2026-11-23.log`.
fn process_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Bytes that are no UTF-8 are replaced: a line of them is none of the story.
fn each_line(file: &Path, mut each: impl FnMut(&str)) -> io::Result<()> {
    let mut reader = BufReader::new(File::open(file)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        each(String::from_utf8_lossy(&line).trim_end());
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
        let steps = read_logs(folder.path(), "http://a.org/", None, Vec::new()).unwrap();
        let mut found: Vec<(String, String)> = steps
            .into_iter()
            .map(|step| (step.process, step.event))
            .collect();
        found.sort();
        let expected = [("dispatcher", "queued"), ("worker-0", "begun")];
        assert_eq!(
            found,
            expected.map(|(one, other)| (one.to_owned(), other.to_owned()))
        );
    }
}
