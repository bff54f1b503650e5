//! Lists the lines that repeat the record of an earlier line of the same input, and were merged with
//! it: all of them in a file, the first few in the summary.

use std::path::PathBuf;

use webfill_service::Fault;

use super::list_file::ListFile;
use crate::summary::{RepeatedSeed, RepeatedSeeds};

/// The most repeated seeds in the summary.
const LISTED: usize = 5;

/// Collects repeated seeds: all in a file, and the first few for the summary.
pub struct RepeatedList {
    file: ListFile,
    repeated: RepeatedSeeds,
}

impl RepeatedList {
    pub fn new(path: PathBuf) -> RepeatedList {
        RepeatedList {
            file: ListFile::new(path),
            repeated: RepeatedSeeds::default(),
        }
    }

    /// Appends to the list of an earlier run. See [`ListFile::keep_existing`].
    pub fn keep_existing(&mut self) {
        self.file.keep_existing();
    }

    /// Adds a line that repeats the record of an earlier one.
    pub fn add(&mut self, line: u64, earlier: u64, id: &str) -> Result<(), Fault> {
        let repeated = RepeatedSeed {
            line,
            first_line: earlier,
            id: id.to_owned(),
        };
        self.repeated.file = Some(self.file.add(&repeated.json())?.to_owned());
        self.repeated.count += 1;
        if self.repeated.first.len() < LISTED {
            self.repeated.first.push(repeated);
        }
        Ok(())
    }

    /// Writes buffered lines. See [`ListFile::flush`].
    pub fn flush(&mut self) -> Result<(), Fault> {
        self.file.flush()
    }

    /// Completes the file and returns the list for the summary.
    pub fn finish(mut self) -> Result<RepeatedSeeds, Fault> {
        self.file.finish()?;
        Ok(self.repeated)
    }
}
