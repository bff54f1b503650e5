//! A WARC file being written. It belongs to this process alone and stays locked as long as the process lives. Its
//! name ends in `.open` until it is complete; [`recovery`](super::recovery) completes the file of a killed process.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::record::{Record, RecordId, format_date};

/// The ending of a file that is being written.
pub const OPEN: &str = ".open";

/// A WARC file that is being written.
#[derive(Debug)]
pub struct WarcFile {
    folder: PathBuf,
    /// The final name of the file, without the suffix `.open`.
    name: String,
    out: BufWriter<File>,
    warcinfo: RecordId,
}

impl WarcFile {
    /// Creates a file and writes its `warcinfo` record. Increments `serial` until the name is free.
    pub fn begin(
        folder: &Path,
        serial: &mut u32,
        now_ms: i64,
        about: &str,
    ) -> io::Result<WarcFile> {
        std::fs::create_dir_all(folder)?;
        loop {
            *serial += 1;
            let name = new_file_name(now_ms, *serial);
            let path = folder.join(format!("{name}{OPEN}"));
            let file = match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            file.lock()?;
            // A recovering process may already have removed the file, because it was still empty.
            if !is_file_at(&file, &path) {
                continue;
            }
            let mut begun = WarcFile {
                folder: folder.to_owned(),
                name,
                out: BufWriter::with_capacity(64 << 10, file),
                warcinfo: RecordId::random(),
            };
            begun.write_warcinfo(now_ms, about)?;
            return Ok(begun);
        }
    }

    fn write_warcinfo(&mut self, now_ms: i64, about: &str) -> io::Result<()> {
        let record = Record::new("warcinfo", self.warcinfo, now_ms)
            .field("WARC-Filename", &self.name)
            .block("application/warc-fields", [about.as_bytes(), &[]]);
        self.append(&record)
    }

    /// The id of the file's first record. All other records of the file refer to it.
    pub fn warcinfo(&self) -> RecordId {
        self.warcinfo
    }

    /// Appends a record. After an error the file has a torn end, which recovery cuts off.
    pub fn append(&mut self, record: &Record<'_>) -> io::Result<()> {
        record.write_to(&mut self.out)
    }

    /// Syncs all appended records to disk.
    pub fn sync(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.out.get_ref().sync_data()
    }

    pub fn bytes(&self) -> io::Result<u64> {
        Ok(self.out.get_ref().metadata()?.len())
    }

    /// Renames the file to its final name, now that it is complete.
    pub fn finish(mut self) -> io::Result<()> {
        self.sync()?;
        let path = self.folder.join(format!("{}{OPEN}", self.name));
        complete(&path, &self.folder.join(&self.name))
    }
}

/// Renames a complete file, durably.
pub fn complete(open: &Path, completed: &Path) -> io::Result<()> {
    std::fs::rename(open, completed)?;
    let folder = completed.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Whether `path` still names this file.
pub fn is_file_at(file: &File, path: &Path) -> bool {
    let here = file.metadata().map(|found| (found.dev(), found.ino()));
    let there = std::fs::metadata(path).map(|found| (found.dev(), found.ino()));
    matches!((here, there), (Ok(here), Ok(there)) if here == there)
}

/// The usual form of WARC names: prefix, time, serial number, host and process.
fn new_file_name(now_ms: i64, serial: u32) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let host: String = host.trim().chars().filter(fits).take(100).collect();
    let time: String = format_date(now_ms)
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let process = std::process::id();
    format!("webfill-{time}-{serial:05}-{host}~{process}.warc.gz")
}
