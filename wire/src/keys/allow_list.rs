//! The list of keys that are let in: a text file, one `ROLE NAME KEY` per line.
//!
//! The file may change while the list is in force. It is looked at before each batch of messages
//! (one `stat`), so that a key that was taken out is cut off by its next message. A file with a
//! fault changes nothing: the list as it was before stays in force, and the fault is told. An
//! empty file is such a fault, because that is what a file being written in place looks like.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{PublicKey, Role, is_name};

/// The first line of every list; a file without it is none.
pub const HEADING: &str = "# webfill: who is let in, one `ROLE NAME KEY` per line";

/// A key that is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub role: Role,
    pub name: Arc<str>,
    pub key: PublicKey,
}

/// Why a list cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum AllowListError {
    #[error("cannot read the list of keys {}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: {fault}", path.display())]
    Fault { path: PathBuf, fault: ListFault },
}

/// What is wrong in a list, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListFault {
    #[error("not a list of keys: its first line is not `{HEADING}`")]
    NoHeading,
    #[error("line {line}: the last line is cut off")]
    CutOff { line: usize },
    #[error("line {line}: {reason}")]
    Line { line: usize, reason: String },
}

/// The list in force, and the file that it came from.
#[derive(Debug, Clone)]
pub struct AllowList {
    path: PathBuf,
    seen: Option<Stamp>,
    entries: HashMap<PublicKey, Entry>,
}

/// Tells whether a file was written or replaced since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl AllowList {
    /// A list that lets nobody in, and has no file.
    #[cfg(test)]
    pub(crate) fn none() -> AllowList {
        AllowList {
            path: PathBuf::new(),
            seen: None,
            entries: HashMap::new(),
        }
    }

    /// Reads the list at the start of a process.
    pub fn open(path: &Path) -> Result<AllowList, AllowListError> {
        let mut list = AllowList {
            path: path.to_owned(),
            seen: stamp(path),
            entries: HashMap::new(),
        };
        list.entries = list.read()?;
        Ok(list)
    }

    /// The entry of a key, if it is let in.
    pub fn entry(&self, key: &PublicKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Takes the file anew if it has changed; returns whether it has. After an error the former
    /// list is in force, and the same error is not told again until the file changes once more.
    pub fn refresh(&mut self) -> Result<bool, AllowListError> {
        let now = stamp(&self.path);
        if now == self.seen {
            return Ok(false);
        }
        // Taken before the file is read: a change in between is seen the next time.
        self.seen = now;
        self.entries = self.read()?;
        Ok(true)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn read(&self) -> Result<HashMap<PublicKey, Entry>, AllowListError> {
        let path = || self.path.clone();
        let text =
            std::fs::read_to_string(&self.path).map_err(|source| AllowListError::Unreadable {
                path: path(),
                source,
            })?;
        let entries = parse(&text).map_err(|fault| AllowListError::Fault {
            path: path(),
            fault,
        })?;
        Ok(entries
            .into_iter()
            .map(|entry| (entry.key, entry))
            .collect())
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let file = std::fs::metadata(path).ok()?;
    Some(Stamp {
        inode: file.ino(),
        bytes: file.size(),
        changed: (file.ctime(), file.ctime_nsec()),
    })
}

/// Reads the text of a list. Empty lines and lines that begin with `#` say nothing; names and keys
/// stand in it once.
pub fn parse(text: &str) -> Result<Vec<Entry>, ListFault> {
    if text.lines().next() != Some(HEADING) {
        return Err(ListFault::NoHeading);
    }
    if !text.ends_with('\n') {
        let line = text.lines().count();
        return Err(ListFault::CutOff { line });
    }
    let mut entries: Vec<Entry> = Vec::new();
    let mut names = HashMap::new();
    let mut keys = HashMap::new();
    for (line, content) in text.lines().enumerate() {
        let line = line + 1;
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let fault = |reason| ListFault::Line { line, reason };
        let entry = entry(content).map_err(fault)?;
        if let Some(before) = names.insert(Arc::clone(&entry.name), line) {
            let reason = format!("the name `{}` stands in line {before} already", entry.name);
            return Err(fault(reason));
        }
        if let Some(before) = keys.insert(entry.key, line) {
            let reason = format!("the key {} stands in line {before} already", entry.key);
            return Err(fault(reason));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn entry(line: &str) -> Result<Entry, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [role, name, key] = words[..] else {
        return Err(format!(
            "expected `ROLE NAME KEY`, found {} words",
            words.len()
        ));
    };
    if !is_name(name) {
        return Err(format!(
            "`{name}` is no name: 1 to 64 letters, digits, or - _ ."
        ));
    }
    Ok(Entry {
        role: role.parse()?,
        name: name.into(),
        key: key
            .parse()
            .map_err(|error| format!("the key of {name}: {error}"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PublicKey {
        PublicKey::from_bytes(&[byte; 32]).unwrap()
    }

    fn list(lines: &[String]) -> String {
        format!("{HEADING}\n{}\n", lines.join("\n"))
    }

    #[test]
    fn a_list_has_a_role_a_name_and_a_key_per_line() {
        let text = list(&[
            "# the first rack".into(),
            String::new(),
            format!("supervisor vm-01 {}", key(1)),
            format!("  client   feeder\t{}  ", key(2)),
        ]);
        let entries = parse(&text).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(
            (entries[0].role, &*entries[0].name),
            (Role::Supervisor, "vm-01")
        );
        assert_eq!((entries[1].role, entries[1].key), (Role::Client, key(2)));
        assert_eq!(parse(&format!("{HEADING}\n")).unwrap(), []);
    }

    #[test]
    fn faults_are_told_with_their_line() {
        let one = format!("supervisor vm-01 {}", key(1));
        let faults = [
            (format!("admin vm-01 {}", key(1)), "admin"),
            (format!("supervisor vm:01 {}", key(1)), "vm:01"),
            ("supervisor vm-01".into(), "2 words"),
            ("supervisor vm-01 abc".into(), "40 characters, not 3"),
            (format!("client vm-01 {}", key(2)), "line 2"),
            (format!("client other {}", key(1)), "line 2"),
        ];
        for (line, says) in faults {
            let fault = parse(&list(&[one.clone(), line])).unwrap_err().to_string();
            assert!(
                fault.starts_with("line 3: ") && fault.contains(says),
                "{fault}"
            );
        }
        assert_eq!(parse(""), Err(ListFault::NoHeading));
        let whole = list(&[one]);
        for cut in HEADING.len() + 1..whole.len() {
            assert!(parse(&whole[..cut]).is_err() || whole[..cut].ends_with('\n'));
        }
    }

    #[test]
    fn a_file_that_changes_is_taken_and_a_faulty_one_is_not() {
        let path = std::env::temp_dir().join(format!("wf-allowed-{}", std::process::id()));
        std::fs::write(&path, list(&[format!("client a {}", key(1))])).unwrap();
        let mut allowed = AllowList::open(&path).unwrap();
        assert!(allowed.entry(&key(1)).is_some());
        assert!(!allowed.refresh().unwrap(), "nothing has changed");
        std::fs::write(&path, "").unwrap();
        assert!(allowed.refresh().is_err());
        assert!(allowed.entry(&key(1)).is_some(), "the former list holds");
        assert!(!allowed.refresh().unwrap(), "a fault is told once");
        std::fs::write(&path, list(&[format!("client b {}", key(2))])).unwrap();
        assert!(allowed.refresh().unwrap());
        assert!(allowed.entry(&key(1)).is_none());
        assert_eq!(&*allowed.entry(&key(2)).unwrap().name, "b");
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(
            allowed.refresh(),
            Err(AllowListError::Unreadable { .. })
        ));
    }
}
