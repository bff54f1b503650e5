//! The part of the summary about seeds that could not be read, and seeds that repeat others. Results of `writeln!` are
//! ignored, because writing to a string cannot fail.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::printing::escape_and_shorten;

/// A seed that could not be read.
#[derive(Debug, Clone)]
pub struct BrokenSeed {
    pub line: u64,
    /// The id of the document, if the seed is a document of a dataset.
    pub document: Option<String>,
    /// The JSON path of the fault, if the line is a crawl request.
    pub path: Option<String>,
    pub reason: String,
}

impl BrokenSeed {
    fn json(&self) -> Value {
        let mut report = match &self.document {
            None => json!({"line": self.line}),
            Some(id) => json!({"_id": id}),
        };
        if let Some(path) = &self.path {
            report["path"] = path.as_str().into();
        }
        report["reason"] = self.reason.as_str().into();
        report
    }

    fn text(&self) -> String {
        match (&self.document, &self.path) {
            (Some(id), _) => format!("record {id}: {}", self.reason),
            (None, Some(path)) if path != "$" => {
                format!("line {}: {path}: {}", self.line, self.reason)
            }
            (None, _) => format!("line {}: {}", self.line, self.reason),
        }
    }
}

/// Seeds that could not be read: their number, and the first few of them. A file lists all.
#[derive(Debug, Clone, Default)]
pub struct BrokenSeeds {
    pub count: u64,
    pub first: Vec<BrokenSeed>,
    pub file: Option<PathBuf>,
}

/// A line that repeats the record of an earlier line.
#[derive(Debug, Clone)]
pub struct RepeatedSeed {
    pub line: u64,
    pub first_line: u64,
    pub id: String,
}

impl RepeatedSeed {
    pub fn json(&self) -> Value {
        json!({"line": self.line, "first_line": self.first_line, "id": self.id})
    }
}

/// Lines that repeat the records of earlier lines: their number, and the first few of them. A file lists all.
#[derive(Debug, Clone, Default)]
pub struct RepeatedSeeds {
    pub count: u64,
    pub first: Vec<RepeatedSeed>,
    pub file: Option<PathBuf>,
}

impl BrokenSeeds {
    pub(super) fn json(&self) -> Value {
        let first: Vec<Value> = self.first.iter().map(BrokenSeed::json).collect();
        json!({"count": self.count, "file": self.file, "first": first})
    }

    pub(super) fn write(&self, text: &mut String) {
        if self.count == 0 {
            return;
        }
        let _ = write!(text, "  seeds     {} broken", self.count);
        let _ = match &self.file {
            Some(file) => writeln!(text, ", all listed in {}", file.display()),
            None => writeln!(text),
        };
        for seed in &self.first {
            let _ = writeln!(text, "            {}", seed.text());
        }
    }
}

impl RepeatedSeeds {
    pub(super) fn json(&self) -> Value {
        let first: Vec<Value> = self.first.iter().map(RepeatedSeed::json).collect();
        json!({"count": self.count, "file": self.file, "first": first})
    }

    pub(super) fn write(&self, text: &mut String) {
        if self.count == 0 {
            return;
        }
        let _ = write!(
            text,
            "  repeated  {} lines merged with earlier ones",
            self.count
        );
        let _ = match &self.file {
            Some(file) => writeln!(text, ", all listed in {}", file.display()),
            None => writeln!(text),
        };
        for seed in &self.first {
            let (line, first, id) = (seed.line, seed.first_line, escape_and_shorten(&seed.id));
            let _ = writeln!(text, "            line {line}: id {id}, as on line {first}");
        }
    }
}
