//! A file of JSON lines. Lines are appended; a file that has become too long is rewritten with the current lines only.
//! A line that a power loss cut off is skipped. If a line cannot be written, this is logged once, and the line is lost
//! when the process ends.
//!
//! The recorded data are in memory, under a lock that visitors' requests need, too. So nothing is written to disk under
//! that lock: adding lines returns a [`Writing`], which is carried out after the lock is released.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use webfill_service::state::PRIVATE;
use webfill_service::whole_file::write_private;

/// A file of JSON lines, which grows by appending. Without a folder, nothing is written.
#[derive(Debug, Default)]
pub(crate) struct LineFile {
    path: Option<PathBuf>,
    lines: usize,
    most: usize,
    disk: Arc<Mutex<Disk>>,
}

/// The state of the file on disk. Locked while the file is written.
#[derive(Debug, Default)]
struct Disk {
    is_failing: bool,
}

/// Lines that are to be written to the file, the oldest first.
#[must_use = "nothing is written before"]
#[derive(Debug, Default)]
pub(crate) struct Writing(Option<Lines>);

#[derive(Debug)]
struct Lines {
    path: PathBuf,
    text: String,
    /// Whether the lines replace the whole file, instead of being appended.
    is_whole: bool,
    disk: Arc<Mutex<Disk>>,
}

impl LineFile {
    /// Reads the file `name` in a folder. It is rewritten once it has more than twice `most` lines.
    pub(crate) fn open<T: DeserializeOwned>(
        folder: Option<&Path>,
        name: &str,
        most: usize,
    ) -> (LineFile, Vec<T>) {
        let mut file = LineFile {
            path: folder.map(|folder| folder.join(name)),
            most,
            ..LineFile::default()
        };
        let mut read = Vec::new();
        if let Some(Ok(opened)) = file.path.as_ref().map(File::open) {
            let lines = BufReader::new(opened).lines().map_while(Result::ok);
            for line in lines.take(4 * most) {
                file.lines += 1;
                read.extend(serde_json::from_str(&line));
            }
        }
        (file, read)
    }

    /// Prepares to append the lines `added`. `all` is the whole content, for the case that the file has to be
    /// rewritten.
    pub(crate) fn prepare_write<'a, T: Serialize + 'a>(
        &mut self,
        added: &[T],
        all: impl Iterator<Item = &'a T>,
    ) -> Writing {
        let Some(path) = self.path.clone().filter(|_| !added.is_empty()) else {
            return Writing::default();
        };
        let is_whole = self.lines + added.len() > 2 * self.most;
        let (text, lines) = match is_whole {
            true => to_json_lines(all),
            false => to_json_lines(added.iter()),
        };
        self.lines = match is_whole {
            true => lines,
            false => self.lines + lines,
        };
        Writing(Some(Lines {
            path,
            text,
            is_whole,
            disk: Arc::clone(&self.disk),
        }))
    }
}

impl Writing {
    pub(crate) fn write(self) {
        let Some(lines) = self.0 else {
            return;
        };
        let mut disk = lines.disk.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match lines.is_whole {
            true => write_private(&lines.path, lines.text.as_bytes()),
            false => append_text(&lines.path, &lines.text),
        };
        if let Err(error) = &written
            && !disk.is_failing
        {
            let file = lines.path.display();
            tracing::warn!(event = "dashboard_file_unwritten", %file, %error, "what the dashboard records cannot be stored");
        }
        disk.is_failing = written.is_err();
    }
}

fn to_json_lines<'a, T: Serialize + 'a>(items: impl Iterator<Item = &'a T>) -> (String, usize) {
    let (mut text, mut lines) = (String::new(), 0);
    for item in items {
        text += &serde_json::to_string(item).unwrap_or_default();
        text.push('\n');
        lines += 1;
    }
    (text, lines)
}

fn append_text(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.create(true).append(true).mode(PRIVATE).open(path)?;
    file.write_all(text.as_bytes())
}
