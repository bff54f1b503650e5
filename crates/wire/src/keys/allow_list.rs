//! The allow-list of public keys: a text file with one `ROLE NAME KEY` per line, optionally followed by a client's
//! [`Rights`].
//!
//! The file may be changed at any time. Its metadata is checked before each batch of messages (one `stat` call), so
//! that a removed key is refused from its next message on. If the changed file has a fault, the previous list stays in
//! force, and the fault is reported once. An empty file counts as faulty, because a file that is rewritten in place is
//! empty for a moment.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ListChange, PublicKey, Rights, Role, is_valid_name};

/// The first line of every list; a file without it is refused.
pub const HEADING: &str = "# webfill: who is let in, one `ROLE NAME KEY` per line";

/// A key that is admitted, with its owner's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub role: Role,
    pub name: Arc<str>,
    pub key: PublicKey,
    pub rights: Rights,
}

/// Why a file cannot be used as the list.
#[derive(Debug, thiserror::Error)]
pub enum AllowListError {
    #[error("cannot read the allow list {}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: {fault}", path.display())]
    Fault { path: PathBuf, fault: ListFault },
}

/// A fault in the text of a list, with the line that has it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListFault {
    #[error("not a list of keys: its first line is not `{HEADING}`")]
    NoHeading,
    #[error("line {line}: the last line is cut off")]
    CutOff { line: usize },
    #[error("line {line}: {reason}")]
    Line { line: usize, reason: String },
}

/// The list of admitted keys that is in force, and the file that it was read from.
#[derive(Debug, Clone)]
pub struct AllowList {
    path: PathBuf,
    stamp: Option<Stamp>,
    entries: HashMap<PublicKey, Arc<Entry>>,
    /// The entries by the text of their keys. libzmq attaches this text to each message, so the sender of a flood is
    /// found without decoding a key.
    by_text: HashMap<String, Arc<Entry>>,
}

/// Metadata of a file that changes whenever the file is written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl AllowList {
    /// A list without entries and without a file.
    #[cfg(test)]
    pub(crate) fn empty() -> AllowList {
        AllowList {
            path: PathBuf::new(),
            stamp: None,
            entries: HashMap::new(),
            by_text: HashMap::new(),
        }
    }

    /// Reads the list at the start of a process.
    pub fn open(path: &Path) -> Result<AllowList, AllowListError> {
        let mut list = AllowList {
            path: path.to_owned(),
            stamp: file_stamp(path),
            entries: HashMap::new(),
            by_text: HashMap::new(),
        };
        let entries = list.read_entries()?;
        list.replace_entries(entries);
        Ok(list)
    }

    /// The entry of a key, if it is on the list.
    pub fn entry(&self, key: &PublicKey) -> Option<&Arc<Entry>> {
        self.entries.get(key)
    }

    /// The entry of a key in its text form.
    pub fn entry_by_key_text(&self, key: &str) -> Option<&Arc<Entry>> {
        self.by_text.get(key)
    }

    /// Replaces the entries in force with these, and returns the previous ones.
    fn replace_entries(
        &mut self,
        entries: HashMap<PublicKey, Arc<Entry>>,
    ) -> HashMap<PublicKey, Arc<Entry>> {
        let texts = entries.iter();
        self.by_text = texts
            .map(|(key, entry)| (key.to_string(), Arc::clone(entry)))
            .collect();
        std::mem::replace(&mut self.entries, entries)
    }

    /// Reads the file again if it has changed, and returns the changes of the list. After an error the previous list
    /// stays in force, and the error is returned only once for each change of the file.
    pub fn refresh(&mut self) -> Result<Option<ListChange>, AllowListError> {
        let now = file_stamp(&self.path);
        if now == self.stamp {
            return Ok(None);
        }
        // The stamp is set before the file is read, so that the next call notices a change in between.
        self.stamp = now;
        let now = self.read_entries()?;
        let before = self.replace_entries(now);
        Ok(Some(ListChange::between(&before, &self.entries)))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn read_entries(&self) -> Result<HashMap<PublicKey, Arc<Entry>>, AllowListError> {
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
            .map(|entry| (entry.key, Arc::new(entry)))
            .collect())
    }
}

pub(super) fn file_stamp(path: &Path) -> Option<Stamp> {
    let file = std::fs::metadata(path).ok()?;
    Some(Stamp {
        inode: file.ino(),
        bytes: file.size(),
        changed: (file.ctime(), file.ctime_nsec()),
    })
}

/// Parses the text of a list. Empty lines and lines that begin with `#` are skipped; each name and
/// each key may occur once.
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
        let entry = parse_entry(content).map_err(fault)?;
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

fn parse_entry(line: &str) -> Result<Entry, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [role, name, key, rights @ ..] = &words[..] else {
        return Err(format!(
            "expected `ROLE NAME KEY`, found {} words",
            words.len()
        ));
    };
    let role: Role = role.parse()?;
    if role != Role::Client && !rights.is_empty() {
        return Err(format!("only a client's key has rights: `{}`", rights[0]));
    }
    if !is_valid_name(name) {
        return Err(format!(
            "`{name}` is no name: 1 to 64 letters, digits, or - _ ."
        ));
    }
    Ok(Entry {
        role,
        name: (*name).into(),
        key: key
            .parse()
            .map_err(|error| format!("the key of {name}: {error}"))?,
        rights: Rights::parse(rights)?,
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
    fn a_client_may_be_limited_to_applications_and_to_reading() {
        let text = list(&[
            format!("client all {}", key(1)),
            format!("client shop {} apps=shop,blog read-only", key(2)),
        ]);
        let entries = parse(&text).unwrap();
        assert_eq!(entries[0].rights, Rights::ALL);
        assert!(entries[1].rights.is_read_only() && !entries[1].rights.permits_app("news"));
        for wrong in [
            format!("client shop {} apps", key(2)),
            format!("client shop {} readonly", key(2)),
            format!("supervisor vm {} read-only", key(2)),
        ] {
            let fault = parse(&list(&[wrong])).unwrap_err().to_string();
            assert!(fault.starts_with("line 2: "), "{fault}");
        }
    }

    #[test]
    fn faults_are_reported_with_their_line() {
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
    fn a_changed_list_returns_its_changes() {
        let path = std::env::temp_dir().join(format!("wf-changed-{}", std::process::id()));
        let line = |name: &str, byte, rights: &str| format!("client {name} {} {rights}", key(byte));
        std::fs::write(
            &path,
            list(&[line("a", 1, ""), line("b", 2, "apps=x"), line("c", 3, "")]),
        )
        .unwrap();
        let mut allowed = AllowList::open(&path).unwrap();
        let new = [
            "# sorted".into(),
            line("d", 4, ""),
            line("c", 3, ""),
            line("b", 2, ""),
        ];
        std::fs::write(&path, list(&new)).unwrap();
        let change = allowed.refresh().unwrap().unwrap();
        let names = |entries: &[Arc<Entry>]| -> Vec<String> {
            entries.iter().map(|entry| entry.name.to_string()).collect()
        };
        assert_eq!(names(&change.added), ["d"]);
        assert_eq!(names(&change.removed), ["a"]);
        let [(before, now)] = &change.changed[..] else {
            panic!("{:?}", change.changed)
        };
        assert_eq!((&*now.name, now.rights.is_limited_to_apps()), ("b", false));
        assert!(before.rights.is_limited_to_apps());
        std::fs::write(&path, list(&new[1..])).unwrap();
        assert!(allowed.refresh().unwrap().unwrap().is_empty());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_changed_file_is_used_unless_it_is_faulty() {
        let path = std::env::temp_dir().join(format!("wf-allowed-{}", std::process::id()));
        std::fs::write(&path, list(&[format!("client a {}", key(1))])).unwrap();
        let mut allowed = AllowList::open(&path).unwrap();
        assert!(allowed.entry(&key(1)).is_some());
        assert_eq!(allowed.refresh().unwrap(), None, "nothing has changed");
        std::fs::write(&path, "").unwrap();
        assert!(allowed.refresh().is_err());
        assert!(allowed.entry(&key(1)).is_some(), "the former list holds");
        assert_eq!(allowed.refresh().unwrap(), None, "a fault is reported once");
        std::fs::write(&path, list(&[format!("client b {}", key(2))])).unwrap();
        assert!(allowed.refresh().unwrap().is_some());
        assert!(allowed.entry(&key(1)).is_none());
        assert_eq!(&*allowed.entry(&key(2)).unwrap().name, "b");
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(
            allowed.refresh(),
            Err(AllowListError::Unreadable { .. })
        ));
    }
}
