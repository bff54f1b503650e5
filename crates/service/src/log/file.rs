//! The files of a log: `NAME.DATE.log`, and `NAME.DATE.2.log` and so on when one is full. `NAME.log` is a
//! symbolic link to the newest. The dates are UTC.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::state::PRIVATE;

const DAY_S: u64 = 86_400;

/// The position of a file among the files of a log: its day since 1970, and its number on that day.
pub(super) type FilePosition = (u64, u32);

/// Writes a log, in files of limited size and number.
pub(super) struct LogFiles {
    folder: PathBuf,
    name: String,
    max_bytes: u64,
    keep: usize,
    place: FilePosition,
    file: File,
    bytes: u64,
}

impl LogFiles {
    /// Opens a log. Continues the newest file of today, if there is one.
    pub(super) fn open(
        folder: &Path,
        name: &str,
        max_bytes: u64,
        keep: usize,
    ) -> io::Result<LogFiles> {
        let place = position_for_today(folder, name)?;
        let (file, bytes) = open_for_append(&folder.join(file_name(name, place)))?;
        let mut log = LogFiles {
            folder: folder.to_owned(),
            name: name.to_owned(),
            max_bytes,
            keep,
            place,
            file,
            bytes,
        };
        log.link_newest_and_prune();
        Ok(log)
    }

    fn begin_file(&mut self, place: FilePosition) -> io::Result<()> {
        let path = self.folder.join(file_name(&self.name, place));
        (self.file, self.bytes) = open_for_append(&path)?;
        self.place = place;
        self.link_newest_and_prune();
        Ok(())
    }

    /// Points the link to the current file, and removes the oldest files. If that fails, it is tried again with the
    /// next file.
    fn link_newest_and_prune(&mut self) {
        link_newest_and_prune(&self.folder, &self.name, self.place, self.keep);
    }

    /// The file that the next line goes to.
    fn next_position(&self, line_bytes: u64) -> FilePosition {
        let is_full = self.bytes > 0 && self.bytes + line_bytes > self.max_bytes;
        next_position(self.place, is_full)
    }
}

/// Points the link `NAME.log` to the newest file, and removes the oldest files beyond `keep`.
pub(super) fn link_newest_and_prune(folder: &Path, name: &str, newest: FilePosition, keep: usize) {
    let link = folder.join(format!("{name}.log"));
    let new = folder.join(format!("{name}.log.{}", std::process::id()));
    // The link contains only a file name, because a relative link is resolved from its own folder.
    if symlink(file_name(name, newest), &new).is_ok() && std::fs::rename(&new, &link).is_err() {
        let _ = std::fs::remove_file(&new);
    }
    let found = list_log_files(folder, name).unwrap_or_default();
    let surplus = found.len().saturating_sub(keep);
    for (_, path) in &found[..surplus] {
        let _ = std::fs::remove_file(path);
    }
}

/// The position of the file for the next line. A new file begins each day, and when the current one is full.
pub(super) fn next_position((day, number): FilePosition, is_full: bool) -> FilePosition {
    let today = days_since_epoch();
    match is_full {
        _ if today > day => (today, 1),
        true => (day, number + 1),
        false => (day, number),
    }
}

/// The file where an opened log continues: the newest one of today, or a new one.
pub(super) fn position_for_today(folder: &Path, name: &str) -> io::Result<FilePosition> {
    let today = days_since_epoch();
    let newest = list_log_files(folder, name)?.pop().map(|(place, _)| place);
    Ok(newest
        .filter(|(day, _)| *day >= today)
        .unwrap_or((today, 1)))
}

impl Write for LogFiles {
    /// Writes one line. Begins a new file first if necessary.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let place = self.next_position(line.len() as u64);
        if place != self.place {
            self.begin_file(place)?;
        }
        let written = self.file.write(line)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn open_for_append(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(PRIVATE)
        .open(path)?;
    let bytes = file.metadata()?.len();
    Ok((file, bytes))
}

pub(super) fn file_name(name: &str, (day, number): FilePosition) -> String {
    let date = date_of_day(day);
    match number {
        1 => format!("{name}.{date}.log"),
        _ => format!("{name}.{date}.{number}.log"),
    }
}

/// The files of a log, oldest first.
pub(super) fn list_log_files(
    folder: &Path,
    name: &str,
) -> io::Result<Vec<(FilePosition, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let file = path.file_name().and_then(|file| file.to_str());
        if let Some(place) = file.and_then(|file| parse_position(file, name)) {
            found.push((place, path));
        }
    }
    found.sort();
    Ok(found)
}

/// The position of a log's file, from its name; `None` for a file of another log.
fn parse_position(file: &str, name: &str) -> Option<FilePosition> {
    let rest = file.strip_prefix(name)?.strip_prefix('.')?;
    let rest = rest.strip_suffix(".log")?;
    let (date, number) = match rest.split_once('.') {
        Some((date, number)) => (date, number.parse().ok()?),
        None => (rest, 1),
    };
    let mut parts = date.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    Some((day_from_date(year, month, day), number))
}

fn days_since_epoch() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs() / DAY_S
}

/// The number of days from the first of March of the year 0 to the first of January 1970.
const EPOCH: u64 = 719_468;
const DAYS_OF_400_YEARS: u64 = 146_097;

/// The Gregorian date of a day, counted from 1970. Years are counted from March here, so that a leap day is the last
/// day of its year.
fn date_of_day(day: u64) -> String {
    let day = day + EPOCH;
    let (era, day) = (day / DAYS_OF_400_YEARS, day % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The number of days from 1970 to a Gregorian date.
fn day_from_date(year: u64, month: u64, day: u64) -> u64 {
    let year = year.saturating_sub(u64::from(month <= 2));
    let (era, year) = (year / 400, year % 400);
    let months = if month > 2 { month - 3 } else { month + 9 };
    let day = (153 * months + 2) / 5 + day.saturating_sub(1);
    let days = era * DAYS_OF_400_YEARS + 365 * year + year / 4 - year / 100 + day;
    days.saturating_sub(EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (day, shown) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_779, "2026-11-22"),
            (20_818, "2026-12-31"),
        ] {
            assert_eq!(date_of_day(day), shown);
            let file = format!("worker-1.{shown}.7.log");
            assert_eq!(parse_position(&file, "worker-1"), Some((day, 7)));
        }
        for other in ["worker-1.log", "worker-10.2026-11-22.log", "worker-1.x.log"] {
            assert_eq!(parse_position(other, "worker-1"), None, "{other}");
        }
    }

    #[test]
    fn a_full_file_is_followed_by_another_and_few_are_kept() {
        let folder = std::env::temp_dir().join(format!("webfill-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let open = || LogFiles::open(&folder, "a", 100, 3).unwrap();
        let mut log = open();
        for number in 0..25 {
            if number == 12 {
                log = open();
            }
            let line = format!("line {number:02}, thirty characters..\n");
            log.write_all(line.as_bytes()).unwrap();
        }
        let left = list_log_files(&folder, "a").unwrap();
        assert_eq!(left.len(), 3);
        let text = |path: &Path| std::fs::read_to_string(path).unwrap();
        let all: String = left.iter().map(|(_, path)| text(path)).collect();
        let numbers: Vec<&str> = all.lines().map(|line| &line[5..7]).collect();
        assert_eq!(numbers, ["18", "19", "20", "21", "22", "23", "24"]);
        assert!(left.iter().all(|(_, path)| text(path).len() <= 100));
        let newest = text(&folder.join("a.log"));
        assert_eq!(newest, text(&left[2].1), "the link leads to the newest");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
