//! Keeps several backups in one folder. Each is in a folder named after its time; older ones are removed.
//!
//! A backup gets its name only once it is complete. The remains of an interrupted command have another name, are never
//! mistaken for a backup, and are removed after a day. Nothing else in the folder is touched.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use webfill_service::Fault;
use webfill_store::iso_time;

/// The prefix of the name of a backup that is not complete.
const UNFINISHED: &str = "unfinished-";

/// The number of characters of a backup's name that give the day.
const DAY: usize = "2026-11-27".len();

const DAY_MS: i64 = 86_400_000;

/// A folder of backups, and how many of them to keep.
pub(super) struct Rotation<'f> {
    pub(super) folder: &'f Path,
    /// The number of latest backups to keep.
    pub(super) keep: usize,
    /// The number of latest days whose first backup is kept. Days without backups do not count.
    pub(super) keep_days: usize,
}

impl Rotation<'_> {
    /// Makes another backup, then removes the surplus ones.
    pub(super) fn make_and_rotate(
        &self,
        now_ms: i64,
        make: impl FnOnce(&Path) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let name = backup_name(now_ms);
        let unfinished = self.folder.join(format!("{UNFINISHED}{name}"));
        make(&unfinished)?;
        let (folder, finished) = (self.folder, self.folder.join(&name));
        let cannot = |what: &str, error: std::io::Error| {
            Fault::error(format!("cannot {what} {}: {error}", finished.display()))
        };
        fs::rename(&unfinished, &finished)
            .and_then(|()| fs::File::open(folder)?.sync_all())
            .map_err(|error| cannot("give the backup its name", error))?;
        crate::stdout::print(finished.display())?;
        self.remove_surplus(now_ms)
            .map_err(|error| cannot("remove the backups before", error))
    }

    fn remove_surplus(&self, now_ms: i64) -> std::io::Result<()> {
        let mut backups = BTreeSet::new();
        let oldest_unfinished = backup_name(now_ms - DAY_MS);
        for entry in fs::read_dir(self.folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            match name.strip_prefix(UNFINISHED) {
                Some(begun) if is_backup_name(begun) && *begun < *oldest_unfinished => {
                    fs::remove_dir_all(entry.path())?;
                }
                None if is_backup_name(&name) => drop(backups.insert(name)),
                _ => {}
            }
        }
        for name in surplus_backups(&backups, self.keep, self.keep_days) {
            fs::remove_dir_all(self.folder.join(name))?;
        }
        Ok(())
    }
}

/// Makes the name of a backup from its time: `2026-11-27T03-20-05.123Z` sorts by time and is valid in every file
/// system.
fn backup_name(at_ms: i64) -> String {
    iso_time(at_ms).replace(':', "-")
}

fn is_backup_name(text: &str) -> bool {
    let pattern = "0000-00-00T00-00-00.000Z";
    text.len() == pattern.len()
        && pattern
            .bytes()
            .zip(text.bytes())
            .all(|(wanted, found)| match wanted {
                b'0' => found.is_ascii_digit(),
                _ => found == wanted,
            })
}

fn surplus_backups(backups: &BTreeSet<String>, keep: usize, keep_days: usize) -> Vec<&str> {
    let last: BTreeSet<&str> = backups
        .iter()
        .rev()
        .take(keep)
        .map(String::as_str)
        .collect();
    let mut days: Vec<&str> = Vec::new();
    for name in backups {
        if days.last().is_none_or(|first| first[..DAY] != name[..DAY]) {
            days.push(name);
        }
    }
    let first_of_days = &days[days.len().saturating_sub(keep_days)..];
    let is_kept = |name: &&str| last.contains(name) || first_of_days.contains(name);
    let names = backups.iter().map(String::as_str);
    names.filter(|name| !is_kept(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_backups_and_the_first_of_each_day_are_kept() {
        let day = |day: u32, times: &[&str]| -> Vec<String> {
            let name = |time: &&str| format!("2026-11-{day}T{time}-00.000Z");
            times.iter().map(name).collect()
        };
        let backups: BTreeSet<String> = [
            day(24, &["10-00"]),
            day(25, &["00-00", "00-10", "23-50"]),
            day(26, &["00-00", "12-00", "23-50"]),
            day(27, &["00-00", "00-10", "00-20", "00-30"]),
        ]
        .concat()
        .into_iter()
        .collect();
        let left = |keep, keep_days| -> Vec<String> {
            let gone = surplus_backups(&backups, keep, keep_days);
            let left = backups.iter().filter(|name| !gone.contains(&name.as_str()));
            left.map(|name| name[8..16].to_owned()).collect()
        };
        for (keep, days, expected) in [
            (1, 0, vec!["27T00-30"]),
            (2, 0, vec!["27T00-20", "27T00-30"]),
            (2, 1, vec!["27T00-00", "27T00-20", "27T00-30"]),
            (2, 2, vec!["26T00-00", "27T00-00", "27T00-20", "27T00-30"]),
            (1, 3, vec!["25T00-00", "26T00-00", "27T00-00", "27T00-30"]),
        ] {
            assert_eq!(left(keep, days), expected, "{keep} {days}");
        }
        assert_eq!(left(99, 0).len(), backups.len());
    }

    #[test]
    fn only_surplus_and_unfinished_backups_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let now_ms = 1_764_000_000_000;
        for other in [
            "2026",
            "notes",
            "unfinished-by-me",
            "2026-11-27T03-20-05.123Z.tar",
        ] {
            fs::create_dir(folder.path().join(other)).unwrap();
        }
        let dead = format!("{UNFINISHED}{}", backup_name(now_ms - 2 * DAY_MS));
        fs::create_dir(folder.path().join(&dead)).unwrap();
        let rotation = Rotation {
            folder: folder.path(),
            keep: 2,
            keep_days: 0,
        };
        for minute in 0..5 {
            let at_ms = now_ms + minute * 60_000;
            rotation
                .make_and_rotate(at_ms, |made| {
                    fs::create_dir(made).unwrap();
                    Ok(())
                })
                .unwrap();
        }
        let failed = rotation.make_and_rotate(now_ms + DAY_MS, |made| {
            fs::create_dir(made).unwrap();
            Err(Fault::error("the disk is full"))
        });
        assert!(failed.is_err());
        let names: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let backups: BTreeSet<&String> = names.iter().filter(|name| is_backup_name(name)).collect();
        let last = [3, 4].map(|minute| backup_name(now_ms + minute * 60_000));
        assert_eq!(backups.into_iter().cloned().collect::<Vec<_>>(), last);
        assert!(!names.contains(&dead));
        // These are the last two backups, the remains of the failed one, and four files that are no backups.
        assert_eq!(names.len(), 7, "{names:?}");
    }
}
