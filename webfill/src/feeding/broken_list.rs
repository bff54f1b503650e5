//! Lists broken seeds: all of them in a file, and the first few in the summary. For a crawl request, the list has the
//! JSON path of the error.

use std::path::PathBuf;

use serde_json::json;
use webfill_service::Fault;

use super::list_file::ListFile;
use crate::seeds::SeedFault;
use crate::summary::{BrokenSeed, BrokenSeeds};

/// The most broken seeds in the summary.
const LISTED: usize = 5;

/// Collects broken seeds: all in a file, and the first few for the summary.
pub struct BrokenList {
    file: ListFile,
    broken: BrokenSeeds,
}

impl BrokenList {
    pub fn new(path: PathBuf) -> BrokenList {
        BrokenList {
            file: ListFile::new(path),
            broken: BrokenSeeds::default(),
        }
    }

    /// Appends to the list of an earlier run. See [`ListFile::keep_existing`].
    pub fn keep_existing(&mut self) {
        self.file.keep_existing();
    }

    pub fn add(&mut self, fault: &SeedFault) -> Result<(), Fault> {
        let mut line = match &fault.document {
            None => json!({"line": fault.line}),
            Some(id) => json!({"_id": id}),
        };
        if let Some(path) = &fault.path {
            line["path"] = path.as_str().into();
        }
        line["reason"] = fault.reason.as_str().into();
        line["text"] = fault.text.as_str().into();
        self.broken.file = Some(self.file.add(&line)?.to_owned());
        self.broken.count += 1;
        if self.broken.first.len() < LISTED {
            self.broken.first.push(BrokenSeed {
                line: fault.line,
                document: fault.document.clone(),
                path: fault.path.clone(),
                reason: fault.reason.clone(),
            });
        }
        Ok(())
    }

    /// Writes buffered lines. See [`ListFile::flush`].
    pub fn flush(&mut self) -> Result<(), Fault> {
        self.file.flush()
    }

    /// Completes the file and returns the list for the summary.
    pub fn finish(mut self) -> Result<BrokenSeeds, Fault> {
        self.file.finish()?;
        Ok(self.broken)
    }
}
