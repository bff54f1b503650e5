//! A file of JSON lines that lists seeds for people to check. It is created with its first line. A resumed crawl
//! normally begins a new list. It appends to the list of an earlier run if that list covers input that is not fed
//! again.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use webfill_service::Fault;
use webfill_service::state::PRIVATE;

/// A file that lists seeds, with one JSON object per line.
pub struct ListFile {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    appends: bool,
}

impl ListFile {
    pub fn new(path: PathBuf) -> ListFile {
        ListFile {
            path,
            file: None,
            appends: false,
        }
    }

    /// From now on, lines are appended to the file of an earlier run instead of replacing it.
    pub fn keep_existing(&mut self) {
        self.appends = true;
    }

    /// Adds a line. Returns the path of the file, which now exists.
    pub fn add(&mut self, line: &Value) -> Result<&Path, Fault> {
        match self.write(line) {
            Ok(()) => Ok(&self.path),
            Err(error) => Err(self.cannot_list(&error)),
        }
    }

    /// Writes buffered lines.
    pub fn flush(&mut self) -> Result<(), Fault> {
        let flushed = self.file.as_mut().map_or(Ok(()), Write::flush);
        flushed.map_err(|error| self.cannot_list(&error))
    }

    /// Writes the remaining buffered lines.
    pub fn finish(&mut self) -> Result<(), Fault> {
        let flushed = self.file.take().map_or(Ok(()), |mut file| file.flush());
        flushed.map_err(|error| self.cannot_list(&error))
    }

    fn write(&mut self, line: &Value) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::new(self.open()?),
        };
        writeln!(self.file.insert(file), "{line}")
    }

    fn open(&self) -> io::Result<File> {
        let mut options = File::options();
        match self.appends {
            true => options.append(true),
            false => options.write(true).truncate(true),
        };
        options.create(true).mode(PRIVATE).open(&self.path)
    }

    fn cannot_list(&self, error: &io::Error) -> Fault {
        let file = self.path.display();
        Fault::fatal(format!("cannot list seeds in {file}: {error}"))
    }
}
