//! The evidence of a run, `TABLE.evidence.jsonl`: its lines are in the order of the table's rows.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// The longest line that is read, in bytes, and how many lines of one row are read.
const MOST_BYTES: u64 = 16 << 20;
const MOST_LINES: usize = 20_000;

/// The parts of a line of evidence that the index needs.
#[derive(Debug, Deserialize)]
pub(crate) struct Line {
    pub(crate) row: u64,
    pub(crate) id: String,
    pub(crate) column: String,
    pub(crate) state: String,
    pub(crate) url: Option<String>,
}

/// Reads the lines of a file with evidence, one after the other.
pub(crate) struct Lines {
    file: BufReader<File>,
    /// The byte position where the next line begins.
    at: u64,
    text: Vec<u8>,
    next: Option<(u64, Line)>,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> Result<Option<Lines>, String> {
        let Ok(file) = File::open(path) else {
            return Ok(None);
        };
        let mut lines = Lines {
            file: BufReader::with_capacity(1 << 18, file),
            at: 0,
            text: Vec::new(),
            next: None,
        };
        lines.read_next()?;
        Ok(Some(lines))
    }

    fn read_next(&mut self) -> Result<(), String> {
        self.text.clear();
        let begin = self.at;
        let mut limited = (&mut self.file).take(MOST_BYTES);
        let read = limited.read_until(b'\n', &mut self.text);
        let length = read.map_err(|error| evidence_error(&error.to_string()))?;
        self.at += length as u64;
        self.next = match length {
            0 => None,
            _ => {
                let line = serde_json::from_slice(&self.text);
                Some((
                    begin,
                    line.map_err(|error| evidence_error(&error.to_string()))?,
                ))
            }
        };
        Ok(())
    }

    /// The next line and its byte position, if it belongs to this row. Lines of earlier rows are skipped.
    pub(crate) fn next_line_of_row(&mut self, row: u64) -> Result<Option<(u64, Line)>, String> {
        while self.next.as_ref().is_some_and(|(_, line)| line.row < row) {
            self.read_next()?;
        }
        match self.next.take() {
            Some((at, line)) if line.row == row => {
                self.read_next()?;
                Ok(Some((at, line)))
            }
            other => {
                self.next = other;
                Ok(None)
            }
        }
    }
}

/// The lines of evidence about one cell. `at` is the byte position where the lines of its row begin. If the file has
/// been replaced meanwhile, no lines are found.
pub(crate) fn read_cell(
    path: &Path,
    at: u64,
    row: u64,
    column: &str,
) -> Result<Vec<Value>, String> {
    let mut file = File::open(path).map_err(|error| evidence_error(&error.to_string()))?;
    file.seek(SeekFrom::Start(at))
        .map_err(|error| evidence_error(&error.to_string()))?;
    let mut file = BufReader::new(file);
    let mut found = Vec::new();
    let mut text = Vec::new();
    for _ in 0..MOST_LINES {
        text.clear();
        let read = (&mut file).take(MOST_BYTES).read_until(b'\n', &mut text);
        read.map_err(|error| evidence_error(&error.to_string()))?;
        let Ok(line) = serde_json::from_slice::<Value>(&text) else {
            break;
        };
        if line["row"] != row {
            break;
        }
        if line["column"] == column {
            found.push(line);
        } else if !found.is_empty() {
            break;
        }
    }
    Ok(found)
}

fn evidence_error(error: &str) -> String {
    format!("cannot read the evidence of the table: {error}")
}
