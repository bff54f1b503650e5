//! The dispatcher's public keys that a supervisor or client trusts: one, or two while the key is replaced. A CURVE
//! server has one key at a time, so its clients handle the replacement. They hold the present and the next key. If the
//! owner of one key does not admit them, they try the other.
//!
//! The files may be changed at any time. Their metadata is checked before each batch of messages, like that of the
//! [`super::AllowList`]. So a new key needs no restart, and once a key is removed, nothing more is sent to its owner.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::allow_list::{Stamp, file_stamp};
use super::{KeyError, PublicKey, read_key_file};

/// The shortest and the longest pause before another key is tried; it doubles each time. The shortest is short because
/// the key has most likely just been replaced.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// The trusted keys of the dispatcher, and the files that they are read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKeys {
    /// The file of the present key, and the file of the next key. The second one need not exist.
    files: Vec<PathBuf>,
    stamps: Vec<Option<Stamp>>,
    trusted: Vec<TrustedKey>,
    /// The key that is being tried, or the one that this process was admitted with.
    current: TrustedKey,
    /// Failed handshakes since the last one that succeeded.
    failed: u32,
    /// The key whose owner last admitted this process.
    let_in_by: Option<PublicKey>,
}

/// A key, and the name of the file that it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    pub key: PublicKey,
    pub file: String,
}

impl TrustedKeys {
    /// A single fixed key that is not in a file.
    pub fn from_fixed_key(key: PublicKey) -> TrustedKeys {
        let file = String::new();
        let current = TrustedKey { key, file };
        TrustedKeys {
            files: Vec::new(),
            stamps: Vec::new(),
            trusted: vec![current.clone()],
            current,
            failed: 0,
            let_in_by: None,
        }
    }

    /// Trusts the key of the first file, which the caller has read, and the keys of the other files. The other files
    /// are read when they are first needed, because their faults are logged.
    pub fn from_files(first: PublicKey, files: Vec<PathBuf>) -> TrustedKeys {
        let mut keys = TrustedKeys {
            files,
            ..TrustedKeys::from_fixed_key(first)
        };
        keys.current.file = keys
            .files
            .first()
            .map_or_else(String::new, |file| file_name(file));
        keys.trusted = vec![keys.current.clone()];
        keys
    }

    /// The key that the server must have when this process connects next.
    pub fn current_key(&self) -> &TrustedKey {
        &self.current
    }

    /// Records that a handshake with the current key has succeeded. Returns whether it is the first one, or the
    /// previous one was with another key.
    pub(crate) fn note_admitted(&mut self) -> bool {
        self.failed = 0;
        let key = self.current.key;
        self.let_in_by.replace(key) != Some(key)
    }

    /// Records a failed handshake with the current key, and switches to the next trusted key. Returns the pause before
    /// that key is tried; `None` if there is no other key.
    pub(crate) fn switch_to_next_key(&mut self) -> Option<Duration> {
        self.refresh();
        let is_current = |one: &TrustedKey| one.key == self.current.key;
        let place = self.trusted.iter().position(is_current);
        let next = place.map_or(0, |place| (place + 1) % self.trusted.len());
        if place == Some(next) {
            return None;
        }
        self.current = self.trusted[next].clone();
        let pause = FIRST_PAUSE * 2u32.pow(self.failed.min(8));
        self.failed = self.failed.saturating_add(1);
        Some(pause.min(LAST_PAUSE))
    }

    /// Switches to another key if the current one is no longer trusted. Returns whether it switched.
    pub(crate) fn drop_untrusted(&mut self) -> bool {
        self.refresh();
        let key = self.current.key;
        let still = self.trusted.iter().find(|one| one.key == key);
        self.current = still.unwrap_or(&self.trusted[0]).clone();
        self.current.key != key
    }

    /// Reads the files again if one has changed. A file may be missing for a moment, so the known keys are kept until
    /// at least one key is read.
    fn refresh(&mut self) {
        let now: Vec<Option<Stamp>> = self.files.iter().map(|file| file_stamp(file)).collect();
        if now == self.stamps {
            return;
        }
        // The stamps are set before the files are read, so that the next call notices a change in between.
        self.stamps = now;
        let mut trusted: Vec<TrustedKey> = Vec::new();
        // The last file is read first. It may be renamed to the first one at any moment, and must not be missed then.
        for file in self.files.iter().rev() {
            match read_key(file) {
                Ok(None) => {}
                Ok(Some(one)) => {
                    trusted.retain(|other| other.key != one.key);
                    trusted.insert(0, one);
                }
                Err(why) => tracing::warn!(
                    event = "key_not_taken", file = %file.display(), why,
                    "a public key of the dispatcher cannot be used; continuing without it"
                ),
            }
        }
        if !trusted.is_empty() {
            self.trusted = trusted;
        }
    }
}

/// Reads a key file; `None` if there is no file. An error says why its content cannot be used.
fn read_key(path: &Path) -> Result<Option<TrustedKey>, String> {
    let text = match read_key_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| error.to_string())?,
    };
    let key = text
        .trim()
        .parse()
        .map_err(|fault: KeyError| fault.to_string())?;
    let file = file_name(path);
    Ok(Some(TrustedKey { key, file }))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn key(byte: u8) -> PublicKey {
        PublicKey::from_bytes(&[byte; 32]).unwrap()
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("webfill-trusted-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            Folder(folder)
        }

        fn files(&self) -> Vec<PathBuf> {
            ["dispatcher.pub", "dispatcher-next.pub"]
                .map(|file| self.0.join(file))
                .to_vec()
        }

        fn write_key(&self, file: &str, key: PublicKey) {
            fs::write(self.0.join(file), format!("{key}\n")).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn two_keys_are_tried_in_turn_with_growing_pauses() {
        let folder = Folder::new("two");
        folder.write_key("dispatcher.pub", key(1));
        folder.write_key("dispatcher-next.pub", key(2));
        let mut trusted = TrustedKeys::from_files(key(1), folder.files());
        let mut tried = Vec::new();
        for _ in 0..7 {
            let pause = trusted.switch_to_next_key().unwrap().as_millis();
            tried.push((trusted.current_key().key, pause));
        }
        let pauses = [100, 200, 400, 800, 1_600, 2_000, 2_000];
        let keys = [2, 1, 2, 1, 2, 1, 2].map(key);
        assert_eq!(tried, keys.into_iter().zip(pauses).collect::<Vec<_>>());
        assert_eq!(trusted.current_key().file, "dispatcher-next.pub");
        assert!(trusted.note_admitted());
        assert!(!trusted.note_admitted(), "by the same one as before");
        assert_eq!(trusted.switch_to_next_key(), Some(FIRST_PAUSE));
        assert!(trusted.note_admitted());
    }

    #[test]
    fn a_key_that_comes_or_goes_is_noticed_at_the_next_failure() {
        let folder = Folder::new("comes");
        folder.write_key("dispatcher.pub", key(1));
        let mut trusted = TrustedKeys::from_files(key(1), folder.files());
        assert_eq!(trusted.switch_to_next_key(), None, "there is no other");
        folder.write_key("dispatcher-next.pub", key(2));
        assert!(trusted.switch_to_next_key().is_some());
        assert_eq!(trusted.current_key().key, key(2));
        // The rotation ends: the next key replaces the present one.
        let [present, next] = &folder.files()[..] else {
            unreachable!()
        };
        assert!(!trusted.drop_untrusted());
        fs::rename(next, present).unwrap();
        assert!(!trusted.drop_untrusted());
        assert_eq!(trusted.current_key().file, "dispatcher.pub");
        assert_eq!(
            trusted.switch_to_next_key(),
            None,
            "the former key is not trusted any more"
        );
        fs::remove_file(present).unwrap();
        assert_eq!(trusted.switch_to_next_key(), None);
        assert_eq!(
            trusted.current_key().key,
            key(2),
            "it stays while there is none"
        );
        folder.write_key("dispatcher.pub", key(3));
        assert!(trusted.drop_untrusted());
        assert_eq!(trusted.current_key().key, key(3));
    }

    #[test]
    fn invalid_keys_are_not_tried() {
        let folder = Folder::new("faulty");
        folder.write_key("dispatcher.pub", key(1));
        fs::write(&folder.files()[1], "half a k").unwrap();
        let mut trusted = TrustedKeys::from_files(key(1), folder.files());
        assert_eq!(trusted.switch_to_next_key(), None);
        folder.write_key("dispatcher-next.pub", key(1));
        assert_eq!(
            trusted.switch_to_next_key(),
            None,
            "the same key twice is one"
        );
    }

    #[test]
    fn an_unusable_key_file_is_an_error_but_a_missing_one_is_not() {
        let folder = Folder::new("reasons");
        let [present, next] = &folder.files()[..] else {
            unreachable!()
        };
        assert_eq!(read_key(present), Ok(None));
        fs::write(present, "").unwrap();
        assert!(read_key(present).is_err(), "it is empty");
        fs::write(present, [b'x'; 1 << 20]).unwrap();
        assert!(read_key(present).unwrap_err().contains("larger"));
        fs::create_dir(next).unwrap();
        assert!(read_key(next).unwrap_err().contains("plain file"));
    }
}
