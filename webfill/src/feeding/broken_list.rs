//! Lists the seeds that cannot be used: all of them in a file, the first few in the summary. A crawl
//! request is listed with the JSON path of its fault.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use serde_json::json;
use webfill_startup::Fault;

use crate::seeds::SeedFault;
use crate::summary::{BrokenSeed, BrokenSeeds};

/// The most broken seeds in the summary.
const TOLD: usize = 5;

/// The list. Its file is created with the first broken seed.
pub struct BrokenList {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    /// The file keeps what an earlier run has listed.
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
                path: fault.path.clone(),
                reason: fault.reason.clone(),
            });
        }
        Ok(())
    }

    /// Flushes the file and returns the list for the summary.
    pub fn finish(mut self) -> Result<BrokenSeeds, Fault> {
        let flushed = self.file.take().map_or(Ok(()), |mut file| file.flush());
        flushed.map_err(|error| self.cannot_list(&error))?;
        Ok(self.broken)
    }

    fn write(&mut self, fault: &SeedFault) -> io::Result<()> {
        let mut line = match &fault.document {
            None => json!({"line": fault.line}),
            Some(id) => json!({"_id": id}),
        };
        if let Some(path) = &fault.path {
            line["path"] = path.as_str().into();
        }
        line["reason"] = fault.reason.as_str().into();
        line["text"] = fault.text.as_str().into();
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
