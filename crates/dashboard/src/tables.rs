//! The project folders of `webfill fill`: the progress of each table, its open doubts, and the answers given in its
//! review.
//!
//! The command writes `overview.json` and `review.json`; the dashboard only appends to `review.jsonl`. So both may work
//! at the same time. An answer is on disk before the visitor sees the next doubt, and the next run of the command reads
//! it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::snapshot::now_ms;

/// The largest file that is read, in bytes, and how many tables are listed.
const MOST_BYTES: u64 = 64 << 20;
const MOST_TABLES: usize = 500;

/// The ending of the name of a project folder, which belongs to one table.
const ENDING: &str = ".webfill";

/// The folders that the operator has named. Each is a project folder, or contains project folders.
#[derive(Debug, Default)]
pub(crate) struct Tables(Vec<PathBuf>);

/// A project folder of `webfill fill`, which belongs to one table.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    /// The name of the table, unique in this dashboard.
    pub(crate) name: String,
    folder: PathBuf,
}

/// A doubt that the last run of the command has left open: a value that a person should check.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct Doubt {
    pub(crate) key: String,
    pub(crate) row: u64,
    pub(crate) id: String,
    pub(crate) column: String,
    pub(crate) known: String,
    pub(crate) page: String,
    pub(crate) confidence: f64,
    pub(crate) url: Option<String>,
    pub(crate) excerpt: Option<String>,
    /// The doubt as the command has written it. It is stored with the answer, so that the command finds the doubt
    /// again.
    pub(crate) doubt: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Decision {
    Accept,
    Reject,
    Undo,
}

/// The doubts of a table, with the answers given since its last run.
#[derive(Debug, Default)]
pub(crate) struct Review {
    pub(crate) doubts: Vec<Doubt>,
    /// How many doubts there are, including those that are not listed.
    pub(crate) total: u64,
    /// For each answered doubt, by its key: whether the value from the page was accepted.
    answers: BTreeMap<String, bool>,
    /// The keys of the answered doubts, in the order of the answers.
    order: Vec<String>,
    /// The answers about cells, by row and column.
    cells: BTreeMap<(u64, String), CellAnswer>,
}

/// A person's answer about a cell, given since the last run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CellAnswer {
    pub(crate) is_accepted: bool,
    /// The value that the person has chosen; `None` if it is the value from the page.
    pub(crate) value: Option<String>,
    pub(crate) by: Option<String>,
    pub(crate) at: i64,
}

/// A person's answer that is to be stored.
pub(crate) struct Answer<'a> {
    /// The key of a listed doubt, or a key that is made from the cell.
    pub(crate) key: &'a str,
    pub(crate) row: u64,
    pub(crate) column: &'a str,
    pub(crate) decision: Decision,
    pub(crate) by: &'a Value,
    /// The doubt as JSON. The command recognises the doubt by it.
    pub(crate) doubt: &'a Value,
    /// The value that the person has chosen; `None` if it is the value from the page.
    pub(crate) value: Option<&'a str>,
}

#[derive(Deserialize)]
struct Listed {
    total: u64,
    doubts: Vec<Doubt>,
}

#[derive(Deserialize)]
struct CellDecision {
    key: String,
    answer: Decision,
    row: Option<u64>,
    column: Option<String>,
    value: Option<String>,
    by: Option<String>,
    at: Option<i64>,
}

/// What the command has recorded about the answers that it has read.
#[derive(Default, Deserialize)]
struct ReadAnswers {
    reviewed: usize,
}

impl Tables {
    pub(crate) fn new(folders: Vec<PathBuf>) -> Tables {
        Tables(folders)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The folder where projects for new tables are created; `None` if there is none.
    pub(crate) fn upload_folder(&self) -> Option<PathBuf> {
        let mut folders = self.0.iter();
        // A project folder may exist before it has any content, so its name is checked as well.
        let is_named = |folder: &Path| folder.to_string_lossy().ends_with(ENDING);
        let home = folders.find(|folder| !is_project(folder) && !is_named(folder))?;
        home.canonicalize().ok()
    }

    /// The projects of all tables, in the order of their folders and names.
    pub(crate) fn all(&self) -> Vec<Project> {
        let mut found: Vec<Project> = Vec::new();
        for folder in self.0.iter().flat_map(|folder| projects_in(folder)) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let name = name.strip_suffix(ENDING).unwrap_or(&name).to_owned();
            let is_taken = |name: &str| found.iter().any(|one| one.name == name);
            let other = |number: u32| format!("{name}-{number}");
            let name = match is_taken(&name) {
                false => name,
                true => (2..)
                    .map(other)
                    .find(|name| !is_taken(name))
                    .unwrap_or(name),
            };
            found.push(Project { name, folder });
        }
        found.truncate(MOST_TABLES);
        found
    }

    pub(crate) fn get(&self, name: &str) -> Option<Project> {
        self.all().into_iter().find(|one| one.name == name)
    }
}

fn is_project(folder: &Path) -> bool {
    folder.join("table.txt").is_file()
}

/// The project folders in a folder, or the folder itself if it is one.
fn projects_in(folder: &Path) -> Vec<PathBuf> {
    if is_project(folder) {
        return vec![folder.to_owned()];
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path());
    let mut found: Vec<PathBuf> = folders.filter(|folder| is_project(folder)).collect();
    found.sort();
    found
}

impl Project {
    /// The progress of a table as the command has written it; `None` before the first run.
    pub(crate) fn read_overview(&self) -> Result<Option<Value>, String> {
        let Some(mut overview) = read_json::<Value>(&self.folder.join("overview.json"))? else {
            return Ok(None);
        };
        // A run that was killed still has the stage "running", and its process id may belong to another process. Only a
        // run that is alive holds the lock.
        let is_running = overview["stage"] == "running";
        if is_running && !is_locked(&self.folder.join("state/fill.lock")) {
            overview["stage"] = "interrupted".into();
        }
        Ok(Some(overview))
    }

    pub(crate) fn read_review(&self) -> Result<Review, String> {
        let listed = read_json::<Listed>(&self.folder.join("review.json"))?;
        let mut review = match listed {
            Some(listed) => Review {
                doubts: listed.doubts,
                total: listed.total,
                ..Review::default()
            },
            None => Review::default(),
        };
        let doubts = review.doubts.iter();
        let cells = doubts.map(|doubt| (doubt.key.clone(), (doubt.row, doubt.column.clone())));
        let cells: BTreeMap<String, (u64, String)> = cells.collect();
        let read = read_json::<ReadAnswers>(&self.folder.join("answers.json"))?;
        let read = read.unwrap_or_default().reviewed;
        for (at, line) in read_confirmed_lines(&self.answers_path())? {
            let answered = serde_json::from_str::<CellDecision>(&line);
            let answered =
                answered.map_err(|error| file_error(&self.answers_path(), &error.to_string()))?;
            let listed = cells.get(&answered.key);
            if listed.is_some() {
                review.apply_decision(&answered.key, answered.answer);
            }
            let named = answered.row.zip(answered.column.clone());
            // The last run has used the answers before the position `read`, so their effect is already in the table.
            let cell = listed.cloned().or(named.filter(|_| at >= read));
            if let Some(cell) = cell {
                review.apply_cell_answer(cell, answered);
            }
        }
        Ok(review)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stores an answer. It is on disk when this returns.
    pub(crate) fn append_answer(&self, answer: &Answer<'_>) -> Result<(), String> {
        let line = json!({
            "key": answer.key,
            "answer": answer.decision,
            "by": answer.by,
            "at": now_ms(),
            "row": answer.row,
            "column": answer.column,
            "value": answer.value,
            "doubt": answer.doubt,
        });
        let file = self.answers_path();
        append_line(&file, &line.to_string())
            .map_err(|error| format!("cannot write {}: {error}", file.display()))
    }

    fn answers_path(&self) -> PathBuf {
        self.folder.join("review.jsonl")
    }
}

impl Review {
    fn apply_decision(&mut self, key: &str, decision: Decision) {
        self.order.retain(|other| other != key);
        self.answers.remove(key);
        if decision != Decision::Undo {
            self.order.push(key.to_owned());
            let is_accepted = decision == Decision::Accept;
            self.answers.insert(key.to_owned(), is_accepted);
        }
    }

    fn apply_cell_answer(&mut self, cell: (u64, String), answered: CellDecision) {
        match answered.answer {
            Decision::Undo => drop(self.cells.remove(&cell)),
            decision => {
                let answer = CellAnswer {
                    is_accepted: decision == Decision::Accept,
                    value: answered.value,
                    by: answered.by,
                    at: answered.at.unwrap_or_default(),
                };
                self.cells.insert(cell, answer);
            }
        }
    }

    /// The answer about a cell, given by its row and column.
    pub(crate) fn answer_of_cell(&self, row: u64, column: &str) -> Option<&CellAnswer> {
        self.cells.get(&(row, column.to_owned()))
    }

    /// The listed doubt about a cell, if there is one.
    pub(crate) fn doubt_about_cell(&self, row: u64, column: &str) -> Option<&Doubt> {
        let mut doubts = self.doubts.iter();
        doubts.find(|doubt| doubt.row == row && doubt.column == column)
    }

    pub(crate) fn position_of_doubt(&self, key: &str) -> Option<usize> {
        self.doubts.iter().position(|doubt| doubt.key == key)
    }

    /// Whether the value in a doubt was accepted; `None` if the doubt is open.
    pub(crate) fn answer(&self, doubt: &Doubt) -> Option<bool> {
        self.answers.get(&doubt.key).copied()
    }

    pub(crate) fn count_accepted(&self) -> usize {
        self.answers
            .values()
            .filter(|is_accepted| **is_accepted)
            .count()
    }

    pub(crate) fn count_rejected(&self) -> usize {
        self.answers.len() - self.count_accepted()
    }

    pub(crate) fn count_open(&self) -> usize {
        self.doubts.len() - self.answers.len()
    }

    /// The position of the first open doubt from `from` on, or else before it.
    pub(crate) fn next_open_position(&self, from: usize) -> Option<usize> {
        let mut places = (from..self.doubts.len()).chain(0..from.min(self.doubts.len()));
        places.find(|&place| self.answer(&self.doubts[place]).is_none())
    }

    /// The doubt that was answered last.
    pub(crate) fn last_answered(&self) -> Option<&Doubt> {
        let key = self.order.last()?;
        self.doubts.iter().find(|doubt| doubt.key == *key)
    }
}

/// Whether a running command holds the lock of this file. The kernel removes the lock when the process ends.
fn is_locked(file: &Path) -> bool {
    match File::open(file) {
        Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        // The file belongs to another user, so its lock cannot be tried. The command may be running.
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}

fn file_error(file: &Path, error: &str) -> String {
    format!("cannot read {}: {error}", file.display())
}

fn read(file: &Path) -> Result<Option<Vec<u8>>, String> {
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error(file, &error.to_string())),
    };
    let mut bytes = Vec::new();
    let read = opened.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| file_error(file, &error.to_string()))?;
    match bytes.len() as u64 > MOST_BYTES {
        true => Err(file_error(file, "it is larger than 64 MiB")),
        false => Ok(Some(bytes)),
    }
}

fn read_json<T: serde::de::DeserializeOwned>(file: &Path) -> Result<Option<T>, String> {
    let read = read(file)?.map(|bytes| serde_json::from_slice(&bytes));
    read.transpose()
        .map_err(|error| file_error(file, &error.to_string()))
}

/// The complete lines of a file, each with the byte position of its beginning. The last line is left out if it has no
/// line end, because its write was not confirmed.
fn read_confirmed_lines(file: &Path) -> Result<Vec<(usize, String)>, String> {
    let bytes = read(file)?.unwrap_or_default();
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = end.map_or(&[][..], |end| &bytes[..end]);
    let mut at = 0;
    let mut lines = Vec::new();
    for line in whole.split(|byte| *byte == b'\n') {
        if !line.is_empty() {
            lines.push((at, String::from_utf8_lossy(line).into_owned()));
        }
        at += line.len() + 1;
    }
    Ok(lines)
}

/// Appends a line to a file, after its last complete line.
fn append_line(file: &Path, line: &str) -> std::io::Result<()> {
    let is_new = !file.exists();
    let mut options = OpenOptions::new();
    let mut opened = options
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(file)?;
    // The lock makes several dashboards write one after the other.
    opened.lock()?;
    let mut end = opened.seek(SeekFrom::End(0))?;
    let mut last = [b'\n'];
    while end > 0 {
        opened.seek(SeekFrom::Start(end - 1))?;
        opened.read_exact(&mut last)?;
        if last == [b'\n'] {
            break;
        }
        end -= 1;
    }
    opened.set_len(end)?;
    opened.seek(SeekFrom::Start(end))?;
    opened.write_all(format!("{line}\n").as_bytes())?;
    opened.sync_all()?;
    if is_new {
        File::open(file.parent().unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
