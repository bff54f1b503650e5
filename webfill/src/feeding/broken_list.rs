//! Lists the seeds that cannot be used: all of them in a file, the first few for the summary.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use serde_json::json;
use webfill_startup::Fault;

use crate::seeds::SeedFault;
use crate::summary::{BrokenSeed, BrokenSeeds};

/// Broken seeds told in the summary; the file has all.
const TOLD: usize = 5;

/// The list; its file is made by the first broken seed.
pub struct BrokenList {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    /// What an earlier run has listed stays.
    goes_on: bool,
    broken: BrokenSeeds,
}

impl BrokenList {
    pub fn new(path: PathBuf) -> BrokenList {
        BrokenList {
            path,
            file: None,
            goes_on: false,
            broken: BrokenSeeds::default(),
        }
    }

    /// Adds to what an earlier run has listed: its part of the input is not read again.
    pub fn go_on(&mut self) {
        self.goes_on = true;
    }

    pub fn add(&mut self, fault: &SeedFault) -> Result<(), Fault> {
        self.write(fault)
            .map_err(|error| self.cannot_list(&error))?;
        self.broken.count += 1;
        if self.broken.first.len() < TOLD {
            self.broken.first.push(BrokenSeed {
                line: fault.line,
                document: fault.document.clone(),
                reason: fault.reason.clone(),
            });
        }
        Ok(())
    }

    /// Everything that was broken, safely in the file.
    pub fn finish(mut self) -> Result<BrokenSeeds, Fault> {
        let flushed = self.file.take().map_or(Ok(()), |mut file| file.flush());
        flushed.map_err(|error| self.cannot_list(&error))?;
        Ok(self.broken)
    }

    fn write(&mut self, fault: &SeedFault) -> io::Result<()> {
        let line = match &fault.document {
            None => json!({"line": fault.line, "reason": fault.reason, "text": fault.text}),
            Some(id) => json!({"_id": id, "reason": fault.reason, "text": fault.text}),
        };
        let file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::new(self.open()?),
        };
        self.broken.file = Some(self.path.clone());
        writeln!(self.file.insert(file), "{line}")
    }

    fn open(&self) -> io::Result<File> {
        match self.goes_on {
            true => File::options().append(true).create(true).open(&self.path),
            false => File::create(&self.path),
        }
    }

    fn cannot_list(&self, error: &io::Error) -> Fault {
        let file = self.path.display();
        Fault::fatal(format!("cannot list broken seeds in {file}: {error}"))
    }
}
