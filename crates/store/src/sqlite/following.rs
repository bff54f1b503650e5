//! A copy of an SQLite file that follows it while others write to it.
//!
//! Writers append to the write-ahead log, `FILE-wal`. Each pass appends the new frames of this log, up to the last
//! commit, to the log of the copy. When the log begins anew, its contents are in the file itself, and the copy does the
//! same with its own log. So the cost of a pass depends on the writes since the last pass, not on the size of the file.
//! If a part of the log was missed, the whole file is copied again.
//!
//! The copy is complete at any moment, as of some commit: the file with its log, like any file after a crash. A pass
//! [reads](FollowedFile::read) before it [writes](FollowedFile::write), so that the copies of two files can be written
//! in another order than they are read.

use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, OpenFlags};

use super::fault::{Fault, store_error, store_name};
use crate::error::StoreError;

/// The mode of a copied file. Other users may have access to its folder, so the file itself is private.
const PRIVATE: u32 = 0o600;

const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The number at the beginning of a log whose checksums use little-endian words. With big-endian words, the number is
/// larger by one.
const LITTLE_ENDIAN: u32 = 0x377f_0682;

/// How many times a pass is tried again if the log begins anew meanwhile.
const ATTEMPTS: usize = 5;

/// The header of a write-ahead log. It is different each time the log begins anew.
type Header = [u8; LOG_HEADER];

/// A position in a log, directly after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogPosition {
    header: Header,
    offset: u64,
    checksum: (u32, u32),
}

/// The changes to the file that one pass has read.
#[derive(Debug)]
pub enum FollowedChange {
    Nothing,
    /// The frames that were appended to the log.
    Frames(Vec<u8>),
    /// The log has begun anew: the rest of the former log, and the new log with its header.
    NewLog {
        end: Vec<u8>,
        log: Vec<u8>,
    },
    /// The whole file was copied: the copy, and the log to append to it.
    Whole {
        copy: PathBuf,
        log: Vec<u8>,
    },
}

/// A SQLite file and its copy, which follows the file's commits.
#[derive(Debug)]
pub struct FollowedFile {
    source: PathBuf,
    copy: PathBuf,
    /// How far the file's log is read; `None` if there was no log.
    position: Option<LogPosition>,
    /// The size and modification time of the file when it was copied without a log. Both change only when a new log
    /// begins.
    copied: Option<(u64, SystemTime)>,
}

impl FollowedFile {
    /// Prepares to follow a file. The first pass copies it whole into `folder`, under the same name.
    pub fn new(source: &Path, folder: &Path) -> FollowedFile {
        let name = source.file_name().unwrap_or(source.as_os_str());
        FollowedFile {
            source: source.to_owned(),
            copy: folder.join(name),
            position: None,
            copied: None,
        }
    }

    pub fn copy_path(&self) -> &Path {
        &self.copy
    }

    /// Reads the commits since the last pass. A pass is one call of this and of [`FollowedFile::write`].
    pub fn read(&mut self) -> Result<FollowedChange, StoreError> {
        self.try_read().map_err(|fault| self.to_store_error(fault))
    }

    /// Writes the changes that were read to the copy. They are on disk when this returns.
    pub fn write(&self, change: FollowedChange) -> Result<(), StoreError> {
        self.try_write(change)
            .map_err(|fault| self.to_store_error(fault))
    }

    fn to_store_error(&self, fault: Fault) -> StoreError {
        store_error(&store_name(&self.source), fault)
    }

    fn try_read(&mut self) -> Result<FollowedChange, Fault> {
        for _ in 0..ATTEMPTS {
            let header = read_header(&self.log_path()).map_err(unusable_file_fault)?;
            let change = match (self.position, header) {
                (Some(known), Some(header)) if known.header == header => self.read_frames(known),
                (Some(known), Some(header)) => self.read_new_log(known, header),
                (None, None) if self.copied.is_some() && self.copied == self.file_state() => {
                    return Ok(FollowedChange::Nothing);
                }
                _ => Ok(None),
            };
            let change = change.map_err(unusable_file_fault)?;
            if read_header(&self.log_path()).map_err(unusable_file_fault)? != header {
                continue;
            }
            let Some((change, position)) = change else {
                return self.copy_whole_file();
            };
            self.position = Some(position);
            return Ok(change);
        }
        self.copy_whole_file()
    }

    fn log_path(&self) -> PathBuf {
        with_ending(&self.source, "-wal")
    }

    fn file_state(&self) -> Option<(u64, SystemTime)> {
        let metadata = fs::metadata(&self.source).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    }

    fn read_frames(&self, from: LogPosition) -> io::Result<Option<(FollowedChange, LogPosition)>> {
        let (frames, position) = read_frames_to_last_commit(&self.log_path(), from)?;
        let change = match frames.is_empty() {
            true => FollowedChange::Nothing,
            false => FollowedChange::Frames(frames),
        };
        Ok(Some((change, position)))
    }

    /// Reads the end of the former log, which lies after the frames of the new one. `None` if it may be overwritten.
    fn read_new_log(
        &self,
        known: LogPosition,
        header: Header,
    ) -> io::Result<Option<(FollowedChange, LogPosition)>> {
        let (end, _) = read_frames_to_last_commit(&self.log_path(), known)?;
        let Some(begin) = position_after_header(header) else {
            return Ok(None);
        };
        let (frames, position) = read_frames_to_last_commit(&self.log_path(), begin)?;
        // Frames without a commit, even half-written ones, may also have overwritten the end of the former log. So all
        // frames are counted.
        let frame_bytes = FRAME_HEADER as u64 + u64::from(read_word(&header, 8));
        let is_whole = find_frames_end(&self.log_path(), begin)? + frame_bytes <= known.offset;
        let log = [&header[..], &frames].concat();
        let change = FollowedChange::NewLog { end, log };
        Ok(is_whole.then_some((change, position)))
    }

    /// Copies the file under a read transaction, which keeps its pages consistent with the log.
    fn copy_whole_file(&mut self) -> Result<FollowedChange, Fault> {
        let unfinished = with_ending(&self.copy, ".unfinished");
        for ending in ["", "-wal", "-shm"] {
            remove_if_exists(&with_ending(&unfinished, ending)).map_err(unusable_file_fault)?;
        }
        // The file is opened first and closed last, because this process loses SQLite's locks when it closes the file.
        let mut file = File::open(&self.source).map_err(unusable_file_fault)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(&self.source, flags)?;
        reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
        let state = self.file_state();
        let mut options = File::options();
        options.write(true).create_new(true).mode(PRIVATE);
        let copied = options.open(&unfinished);
        let mut copied = copied.map_err(unusable_file_fault)?;
        io::copy(&mut file, &mut copied).map_err(unusable_file_fault)?;
        let (log, position) =
            read_log_to_last_commit(&self.log_path()).map_err(unusable_file_fault)?;
        drop(reader);
        drop(file);
        self.position = position;
        self.copied = state.filter(|_| position.is_none());
        if !log.is_empty() {
            append_and_sync(&with_ending(&unfinished, "-wal"), &log)
                .map_err(unusable_file_fault)?;
        }
        merge_log(&unfinished)?;
        copied.sync_all().map_err(unusable_file_fault)?;
        Ok(FollowedChange::Whole {
            copy: unfinished,
            log,
        })
    }

    fn try_write(&self, change: FollowedChange) -> Result<(), Fault> {
        let log = with_ending(&self.copy, "-wal");
        match change {
            FollowedChange::Nothing => return Ok(()),
            FollowedChange::Frames(frames) => {
                append_and_sync(&log, &frames).map_err(unusable_file_fault)?
            }
            FollowedChange::NewLog { end, log: new } => {
                append_and_sync(&log, &end).map_err(unusable_file_fault)?;
                merge_log(&self.copy)?;
                append_and_sync(&log, &new).map_err(unusable_file_fault)?;
            }
            FollowedChange::Whole { copy, log: new } => {
                // The log of the former copy is removed first, because it would damage the new copy. Without its log,
                // the former copy still has the state of an earlier commit.
                remove_if_exists(&log).map_err(unusable_file_fault)?;
                fs::rename(&copy, &self.copy).map_err(unusable_file_fault)?;
                append_and_sync(&log, &new).map_err(unusable_file_fault)?;
            }
        }
        let folder = self.copy.parent().unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(unusable_file_fault)
    }

    /// Merges the log of the copy into the file, so that the copy is one file.
    pub fn finish(&self) -> Result<(), StoreError> {
        merge_log(&self.copy).map_err(|fault| self.to_store_error(fault))
    }
}

/// The header of a write-ahead log; `None` if there is no log, or if the log is too short.
fn read_header(log: &Path) -> io::Result<Option<Header>> {
    let mut header = [0; LOG_HEADER];
    match File::open(log).and_then(|mut file| file.read_exact(&mut header)) {
        Ok(()) => Ok(Some(header)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// The position directly after the header of a log; `None` if the checksum of the header is wrong.
fn position_after_header(header: Header) -> Option<LogPosition> {
    let checksum = checksum(&header, &header[..24], (0, 0));
    let stored = (read_word(&header, 24), read_word(&header, 28));
    (checksum == stored).then_some(LogPosition {
        header,
        offset: LOG_HEADER as u64,
        checksum,
    })
}

/// Reads a log up to its last commit. Returns its bytes and the position after that commit.
fn read_log_to_last_commit(log: &Path) -> io::Result<(Vec<u8>, Option<LogPosition>)> {
    let Some(begin) = read_header(log)?.and_then(position_after_header) else {
        return Ok((Vec::new(), None));
    };
    let (frames, position) = read_frames_to_last_commit(log, begin)?;
    Ok(([&begin.header[..], &frames].concat(), Some(position)))
}

/// Reads the frames of a log after a position, up to the last commit. Returns them and the position after that commit.
fn read_frames_to_last_commit(log: &Path, from: LogPosition) -> io::Result<(Vec<u8>, LogPosition)> {
    let (mut frames, mut committed, mut position) = (Vec::new(), 0, from);
    for_each_frame(log, from, |frame, end| {
        frames.extend_from_slice(frame);
        // This word is the size of the file after the commit that the frame ends; 0 if the frame ends no commit.
        if read_word(frame, 4) != 0 {
            committed = frames.len();
            position = end;
        }
    })?;
    frames.truncate(committed);
    Ok((frames, position))
}

/// The offset where the last valid frame after a position ends, whether or not it belongs to a commit.
fn find_frames_end(log: &Path, from: LogPosition) -> io::Result<u64> {
    let mut until = from.offset;
    for_each_frame(log, from, |_, end| until = end.offset)?;
    Ok(until)
}

/// Calls `use_frame` for each frame of a log after a position. Stops at the first frame whose checksum does not
/// continue the one before.
fn for_each_frame(
    log: &Path,
    from: LogPosition,
    mut use_frame: impl FnMut(&[u8], LogPosition),
) -> io::Result<()> {
    let header = from.header;
    let mut file = BufReader::new(File::open(log)?);
    file.seek(SeekFrom::Start(from.offset))?;
    let page_bytes = read_word(&header, 8) as usize;
    let mut frame = vec![0; FRAME_HEADER + page_bytes];
    let mut position = from;
    loop {
        match file.read_exact(&mut frame) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let sum = checksum(&header, &frame[..8], position.checksum);
        let sum = checksum(&header, &frame[FRAME_HEADER..], sum);
        let is_next =
            frame[8..16] == header[16..24] && sum == (read_word(&frame, 16), read_word(&frame, 20));
        if !is_next {
            return Ok(());
        }
        position.offset += frame.len() as u64;
        position.checksum = sum;
        use_frame(&frame, position);
    }
}

fn read_word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Continues SQLite's checksum of a write-ahead log (file format, section 4.2) by more bytes.
fn checksum(header: &Header, bytes: &[u8], (mut first, mut second): (u32, u32)) -> (u32, u32) {
    let read: fn([u8; 4]) -> u32 = match read_word(header, 0) == LITTLE_ENDIAN {
        true => u32::from_le_bytes,
        false => u32::from_be_bytes,
    };
    for pair in bytes.chunks_exact(8) {
        let low = read([pair[0], pair[1], pair[2], pair[3]]);
        let high = read([pair[4], pair[5], pair[6], pair[7]]);
        first = first.wrapping_add(low).wrapping_add(second);
        second = second.wrapping_add(high).wrapping_add(first);
    }
    (first, second)
}

/// Appends bytes to the log of a copy, and waits until they are on disk.
fn append_and_sync(log: &Path, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut options = File::options();
    let mut file = options.append(true).create(true).mode(PRIVATE).open(log)?;
    file.write_all(bytes)?;
    file.sync_data()
}

/// Merges the log of a copy into the copy. SQLite removes the log when the only connection is closed.
fn merge_log(copy: &Path) -> Result<(), Fault> {
    let db = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    db.close().map_err(|(_, error)| Fault::Sql(error))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(ending);
    PathBuf::from(name)
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn unusable_file_fault(error: io::Error) -> Fault {
    Fault::Unusable(format!("its copy: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Connection {
        let db = Connection::open(path).unwrap();
        db.pragma_update(None, "journal_mode", "WAL").unwrap();
        db.execute_batch("CREATE TABLE IF NOT EXISTS t (n INTEGER, b BLOB)")
            .unwrap();
        db
    }

    fn insert_rows(db: &Connection, rows: usize) {
        for _ in 0..rows {
            let sql = "INSERT INTO t SELECT coalesce(max(n), 0) + 1, randomblob(900) FROM t";
            db.execute(sql, []).unwrap();
        }
    }

    /// All rows of the table as one text. They are read from another copy, because reading may change the files.
    fn rows_as_text(path: &Path, folder: &Path) -> String {
        let other = folder.join("read.db");
        for ending in ["", "-wal", "-shm"] {
            remove_if_exists(&with_ending(&other, ending)).unwrap();
        }
        for ending in ["", "-wal"] {
            let from = with_ending(path, ending);
            if from.exists() {
                fs::copy(from, with_ending(&other, ending)).unwrap();
            }
        }
        let db = Connection::open(&other).unwrap();
        let check: String = db
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
        let sql = "SELECT group_concat(n || hex(b)) FROM t";
        let all: Option<String> = db.query_row(sql, [], |row| row.get(0)).unwrap();
        all.unwrap_or_default()
    }

    #[test]
    fn a_copy_has_every_commit_whether_the_log_grows_begins_anew_or_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let copies = folder.path().join("copies");
        fs::create_dir(&copies).unwrap();
        let source = folder.path().join("a.db");
        let mut db = open(&source);
        let mut followed = FollowedFile::new(&source, &copies);
        let mut seen = [0; 4];
        for round in 0..120 {
            // In some rounds the log begins anew, with few or with many frames. In others it is removed.
            let (limit, rows) = [(1_000, 3), (8, 20), (1_000, 1), (2, 60)][round % 4];
            db.pragma_update(None, "wal_autocheckpoint", limit).unwrap();
            insert_rows(&db, rows);
            if round % 30 == 29 {
                db.close().unwrap();
                db = open(&source);
            }
            let change = followed.read().unwrap();
            seen[match change {
                FollowedChange::Nothing => 0,
                FollowedChange::Frames(_) => 1,
                FollowedChange::NewLog { .. } => 2,
                FollowedChange::Whole { .. } => 3,
            }] += 1;
            followed.write(change).unwrap();
            let copied = rows_as_text(followed.copy_path(), folder.path());
            assert_eq!(copied, rows_as_text(&source, folder.path()), "{round}");
        }
        assert!(seen[1..].iter().all(|count| *count > 1), "{seen:?}");
        let nothing = followed.read().unwrap();
        assert!(matches!(nothing, FollowedChange::Nothing), "{nothing:?}");
        followed.finish().unwrap();
        assert!(!with_ending(followed.copy_path(), "-wal").exists());
    }

    #[test]
    fn frames_without_a_commit_are_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let copies = folder.path().join("copies");
        fs::create_dir(&copies).unwrap();
        let source = folder.path().join("a.db");
        let db = open(&source);
        db.pragma_update(None, "cache_size", 5).unwrap();
        insert_rows(&db, 10);
        let mut followed = FollowedFile::new(&source, &copies);
        let whole = followed.read().unwrap();
        followed.write(whole).unwrap();
        let before = rows_as_text(&source, folder.path());
        // SQLite writes changed pages that do not fit into its cache to the log, before the transaction is committed.
        db.execute_batch("BEGIN").unwrap();
        insert_rows(&db, 200);
        let nothing = followed.read().unwrap();
        assert!(matches!(nothing, FollowedChange::Nothing), "{nothing:?}");
        assert_eq!(rows_as_text(followed.copy_path(), folder.path()), before);
        db.execute_batch("ROLLBACK").unwrap();
        insert_rows(&db, 1);
        let frames = followed.read().unwrap();
        followed.write(frames).unwrap();
        let copied = rows_as_text(followed.copy_path(), folder.path());
        assert_eq!(copied, rows_as_text(&source, folder.path()));
    }
}
