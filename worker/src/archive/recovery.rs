//! Completes the WARC files of processes that were killed: each file is cut after its last whole record and gets its
//! final name.
//!
//! A process holds the lock of its file while it lives, so a file whose lock is free no longer has a writer. Several
//! processes may recover the same folder at once.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use flate2::bufread::GzDecoder;

use super::file::{OPEN, complete, is_file_at};

/// The ending of a file that is being written.
const OPEN_WARC: &str = ".warc.gz.open";

/// Completes all files in the folder that have no writer. Files that cannot be completed are logged and left alone.
pub fn recover(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        // There is no archive yet.
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.ends_with(OPEN_WARC)) else {
            continue;
        };
        match recover_file(&path, name) {
            Ok(Recovery::Completed { cut }) => {
                tracing::info!(event = "warc_recovered", path = %path.display(), cut_bytes = cut, "an archive file of a killed process was completed");
            }
            Ok(Recovery::Empty | Recovery::InUse) => {}
            Err(error) => {
                tracing::warn!(event = "warc_not_recovered", path = %path.display(), %error, "an archive file of a killed process could not be completed");
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Recovery {
    Completed {
        cut: u64,
    },
    /// The file had no whole record and was removed.
    Empty,
    InUse,
}

fn recover_file(path: &Path, name: &str) -> io::Result<Recovery> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Recovery::InUse),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) if is_file_at(&file, path) => {}
        // Another process completed the file first, or is still writing it.
        Ok(()) | Err(TryLockError::WouldBlock) => return Ok(Recovery::InUse),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let whole = count_whole_bytes(&file)?;
    if whole == 0 {
        std::fs::remove_file(path)?;
        return Ok(Recovery::Empty);
    }
    let cut = file.metadata()?.len() - whole;
    file.set_len(whole)?;
    file.sync_all()?;
    complete(path, &path.with_file_name(name.trim_end_matches(OPEN)))?;
    Ok(Recovery::Completed { cut })
}

/// The length of the file's whole gzip members. Each member is a record.
fn count_whole_bytes(file: &File) -> io::Result<u64> {
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut whole = 0;
    while !reader.fill_buf()?.is_empty() {
        let mut member = GzDecoder::new(reader);
        match io::copy(&mut member.by_ref(), &mut io::sink()) {
            Ok(_) => {}
            Err(torn) if is_torn(&torn) => break,
            // A failed read does not show that the file is torn, so nothing may be cut off.
            Err(error) => return Err(error),
        }
        reader = member.into_inner();
        whole = reader.stream_position()?;
    }
    Ok(whole)
}

/// Whether an error means that the bytes are wrong or end too early, as opposed to a failed read.
fn is_torn(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::archive::file::WarcFile;
    use crate::archive::record::{Record, RecordId};

    /// Writes a file with four records, and returns its length after each of the first three.
    fn write_file(folder: &Path) -> (PathBuf, Vec<u64>) {
        let mut file = WarcFile::begin(folder, &mut 0, 0, "software: test\r\n").unwrap();
        let mut lengths = Vec::new();
        for number in 0..3_u8 {
            file.sync().unwrap();
            lengths.push(file.bytes().unwrap());
            let body = vec![number; 3_000];
            let record = Record::new("resource", RecordId::random(), 0);
            file.append(&record.block("text/plain", [&body, b""]))
                .unwrap();
        }
        drop(file);
        let entry = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap();
        (entry.path(), lengths)
    }

    fn file_names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let name = |entry: io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        entries.map(name).collect()
    }

    fn missing_folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn a_file_is_cut_behind_its_last_whole_record_wherever_it_was_torn() {
        let folder = missing_folder("warc-torn");
        let (path, ends) = write_file(&folder);
        let bytes = std::fs::read(&path).unwrap();
        for torn in 0..bytes.len() {
            std::fs::write(&path, &bytes[..torn]).unwrap();
            let whole = ends.iter().rfind(|end| **end <= torn as u64);
            let expected = whole.copied().unwrap_or(0);
            assert_eq!(
                count_whole_bytes(&File::open(&path).unwrap()).unwrap(),
                expected
            );
        }
        // After a loss of power, a file may end in zeros.
        let zeros = [bytes.as_slice(), &[0; 512]].concat();
        std::fs::write(&path, zeros).unwrap();
        recover(&folder);
        let [name] = &file_names(&folder)[..] else {
            panic!("{:?}", file_names(&folder));
        };
        assert!(name.ends_with(".warc.gz"), "{name}");
        assert_eq!(std::fs::read(folder.join(name)).unwrap(), bytes);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_without_records_is_removed_and_one_being_written_stays() {
        let folder = missing_folder("warc-in-use");
        let mut used = WarcFile::begin(&folder, &mut 0, 0, "software: test\r\n").unwrap();
        used.sync().unwrap();
        std::fs::write(folder.join("killed.warc.gz.open"), b"\x1f\x8b").unwrap();
        std::fs::write(folder.join("anothers.open"), b"").unwrap();
        recover(&folder);
        let mut left = file_names(&folder);
        left.sort();
        assert_eq!(left[0], "anothers.open");
        assert!(left[1].ends_with(OPEN_WARC) && left.len() == 2, "{left:?}");
        used.finish().unwrap();
        assert!(
            file_names(&folder)
                .iter()
                .any(|name| name.ends_with(".warc.gz"))
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
