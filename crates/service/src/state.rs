//! The state folder: its lock, which one process at a time holds, and the folder of its sockets.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::disk::is_full;
use crate::exit::Fault;

/// The mode of every file in a state folder. Each file must be private itself, because others may be able to read a
/// copy of the folder.
pub const PRIVATE: u32 = 0o600;

/// The state folder of a process, which is locked as long as this value exists. The lock is one of the kernel
/// (`flock`), so the kernel releases it when the process dies.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    is_new: bool,
    _lock: File,
}

impl StateFolder {
    /// Creates the folder if necessary and takes its lock, `NAME.lock`.
    pub fn open(path: &Path, lock_name: &str) -> Result<StateFolder, Fault> {
        let unwritable = |error: std::io::Error| match is_full(&error) {
            true => disk_full_fault(path),
            false => Fault::usage(format!(
                "cannot write to the state folder {}: {error}",
                path.display()
            )),
        };
        if let Some(why) = why_not_folder(path) {
            let path = path.display();
            return Err(Fault::usage(format!(
                "the state folder {path} {why}: choose another --state"
            )));
        }
        let is_new = !path.exists();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(unwritable)?;
        let path = path.canonicalize().map_err(unwritable)?;
        make_private(&path)?;
        refuse_files_of_others(&path)?;
        make_files_private(&path);
        let lock_path = path.join(format!("{lock_name}.lock"));
        let mut lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(PRIVATE)
            .open(&lock_path)
            .map_err(unwritable)?;
        if !try_lock(&lock) {
            let mut holder = String::new();
            // The process id in the lock file is only a hint, so an error while reading it is ignored.
            let _ = lock.read_to_string(&mut holder);
            return Err(Fault::error(format!(
                "the state folder {} is in use by another {lock_name} (process {}): wait for it, stop it, or choose another --state",
                path.display(),
                holder.trim()
            )));
        }
        write_own_pid(&mut lock).map_err(unwritable)?;
        Ok(StateFolder {
            path,
            is_new,
            _lock: lock,
        })
    }

    /// Removes the folder if this process has created it. It is called only before the process has begun its work.
    pub fn discard_if_new(self) {
        if self.is_new {
            // If this fails, the folder that remains does no harm.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A number that identifies this folder, this machine and its last boot. A copy of the folder on another machine
    /// has another number. If two processes have the same number, the earlier one is dead, because it has released the
    /// lock.
    pub fn instance(&self) -> Result<u64, Fault> {
        let unknown = |path: &Path, error: std::io::Error| {
            Fault::error(format!(
                "cannot identify this machine by {}: {error}",
                path.display()
            ))
        };
        let boot_file = Path::new("/proc/sys/kernel/random/boot_id");
        let mut place = std::fs::read(boot_file).map_err(|error| unknown(boot_file, error))?;
        let folder = std::fs::metadata(&self.path).map_err(|error| unknown(&self.path, error))?;
        place.extend(folder.dev().to_le_bytes());
        place.extend(folder.ino().to_le_bytes());
        Ok(fnv1a(&place))
    }
}

fn disk_full_fault(path: &Path) -> Fault {
    Fault::fatal(format!(
        "the disk that holds the state folder {} is full: free some space and run the same command again",
        path.display()
    ))
}

fn write_own_pid(lock: &mut File) -> std::io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    write!(lock, "{}", std::process::id())
}

fn try_lock(file: &File) -> bool {
    // SAFETY: flock has no memory effects; the descriptor is open for as long as `file` lives.
    #[allow(unsafe_code)]
    unsafe {
        libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0
    }
}

/// The length limit of the path of a folder for sockets: that of the path of a Unix socket, minus the longest name of a
/// socket.
const LONGEST_SOCKET_FOLDER: usize = 107 - 40;

/// Creates and returns the folder for Unix sockets: `sockets` in the state folder. If that path is too long for a
/// socket, it is a folder in the system's folder for temporary files, with a name derived from the path of the state
/// folder.
pub fn socket_folder(state: &Path) -> Result<PathBuf, Fault> {
    let inside = state.join("sockets");
    let folder = if inside.as_os_str().len() <= LONGEST_SOCKET_FOLDER {
        inside
    } else {
        let name = fnv1a(state.as_os_str().as_encoded_bytes());
        std::env::temp_dir().join(format!("webfill-{name:016x}"))
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(|error| match is_full(&error) {
            true => disk_full_fault(state),
            false => Fault::usage(format!("cannot create {}: {error}", folder.display())),
        })?;
    make_private(&folder)?;
    Ok(folder)
}

/// What an existing path is instead of a folder, in words; `None` if it is a folder or does not exist.
pub fn why_not_folder(path: &Path) -> Option<&'static str> {
    let found = std::fs::symlink_metadata(path).ok()?;
    match path.metadata() {
        Ok(target) if target.is_dir() => None,
        Ok(_) => Some("is a file, not a folder"),
        Err(_) if found.is_symlink() => Some("is a link to something that is not there"),
        Err(_) => None,
    }
}

/// Closes a folder to other users, and checks that it belongs to this user. Otherwise others could use its sockets,
/// which need no keys, and read the crawled data.
fn make_private(folder: &Path) -> Result<(), Fault> {
    let refused = |why: String| Fault::usage(format!("the folder {} {why}", folder.display()));
    // If the path is a link, this inspects the link itself. In a folder that everyone may write to, another user may
    // have placed it.
    let found = std::fs::symlink_metadata(folder)
        .map_err(|error| refused(format!("cannot be read: {error}")))?;
    if !found.is_dir() {
        return Err(refused(String::from(
            "is a link or a file, not a folder: choose another --state",
        )));
    }
    if found.uid() != own_user_id() {
        return Err(refused(
            owner_mismatch_message(found.uid()) + ": choose another --state",
        ));
    }
    if found.mode() & 0o077 == 0 {
        return Ok(());
    }
    if !is_own_folder(folder) {
        return Err(refused(format!(
            "has files of others and is open to other users: choose another --state, or close it by `chmod 700 {}`",
            folder.display()
        )));
    }
    std::fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(|error| {
        refused(format!(
            "is open to other users, and cannot be closed: {error}"
        ))
    })
}

/// Refuses files of other users. While the folder was open to them, they could have placed anything in it, such as
/// tasks, or a link in place of a log. Files with names that webfill does not use are allowed, because they are never
/// read.
fn refuse_files_of_others(folder: &Path) -> Result<(), Fault> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| Fault::usage(format!("cannot look into {}: {error}", folder.display())))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_used = name.to_str().is_some_and(is_used_name);
        let Ok(found) = entry.metadata() else {
            continue;
        };
        if is_used && found.uid() != own_user_id() {
            return Err(Fault::usage(format!(
                "{} {}: choose another --state, or give the file to this user (chown) if it is to be trusted",
                entry.path().display(),
                owner_mismatch_message(found.uid())
            )));
        }
    }
    Ok(())
}

/// How many levels of subfolders [`make_files_private`] descends into.
const DEPTH: usize = 4;

/// Closes files to other users. In a copy of a state folder, the files may be open to others. A file that cannot be
/// closed, or that no longer exists, is skipped.
fn make_files_private(folder: &Path) {
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            // For a link, this is the metadata of the link itself, so nothing outside the folder is changed.
            let Ok(found) = entry.metadata() else {
                continue;
            };
            let name = entry.file_name();
            if depth == 0 && !name.to_str().is_some_and(is_used_name) {
                continue;
            }
            if found.is_dir() && depth < DEPTH {
                folders.push((entry.path(), depth + 1));
            } else if found.is_file() && found.mode() & 0o077 != 0 && found.uid() == own_user_id() {
                let closed = Permissions::from_mode(found.mode() & 0o700);
                let _ = std::fs::set_permissions(entry.path(), closed);
            }
        }
    }
}

/// Whether webfill uses a file or a folder with this name in a state folder.
fn is_used_name(name: &str) -> bool {
    const NAMES: [&str; 21] = [
        "claim",
        "crawl.lock",
        "dashboard-history.jsonl",
        "dispatcher.db",
        "dispatcher.db-journal",
        "dispatcher.db-shm",
        "dispatcher.db-wal",
        "dispatcher.lock",
        "dispatcher.starts",
        "feeders.toml",
        "last_backup",
        "logs",
        "seen",
        "sockets",
        "supervisor.lock",
        "supervisor.starts",
        "supervisor.toml",
        "watch.lock",
        "watches",
        "webfill.toml",
        "editor-drafts",
    ];
    const LISTS: [&str; 4] = ["broken-seeds-", "records-read-", "repeated-seeds-", "runs-"];
    NAMES.contains(&name) || LISTS.iter().any(|list| name.starts_with(list))
}

fn owner_mismatch_message(owner: u32) -> String {
    format!(
        "belongs to user {owner}, and webfill runs as user {}",
        own_user_id()
    )
}

fn own_user_id() -> u32 {
    // SAFETY: the call has no preconditions and cannot fail.
    #[allow(unsafe_code)]
    unsafe {
        libc::geteuid()
    }
}

/// Whether the folder is empty or has been used as a state folder or for sockets.
fn is_own_folder(folder: &Path) -> bool {
    let Ok(mut entries) = std::fs::read_dir(folder) else {
        return false;
    };
    let is_ours = |name: &str| {
        ["dispatcher.db", "sockets", "logs"].contains(&name) || name.ends_with(".lock")
    };
    let is_socket = |name: &str| name.starts_with("dispatcher-") || name.starts_with("worker-");
    let mut names = entries
        .by_ref()
        .flatten()
        .map(|entry| entry.file_name())
        .peekable();
    names.peek().is_none()
        || names.any(|name| {
            name.to_str()
                .is_some_and(|name| is_ours(name) || is_socket(name))
        })
}

/// The hash function FNV-1a with 64 bits. The hash of a folder must stay the same, and should differ from that of
/// others.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_folder_has_one_owner_at_a_time() {
        let folder = std::env::temp_dir().join(format!("webfill-lock-{}", std::process::id()));
        let first = StateFolder::open(&folder, "crawl").unwrap();
        let refused = StateFolder::open(&folder, "crawl").unwrap_err();
        assert!(refused.message.contains("in use"), "{refused}");
        assert!(refused.message.contains(&std::process::id().to_string()));
        drop(first);
        StateFolder::open(&folder, "crawl").unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_is_for_its_owner_alone() {
        let folder = std::env::temp_dir().join(format!("webfill-private-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        drop(StateFolder::open(&folder, "crawl").unwrap());
        assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        std::fs::remove_file(folder.join("crawl.lock")).unwrap();
        std::fs::write(folder.join("letter.txt"), "Dear Ada").unwrap();
        let refused = StateFolder::open(&folder, "crawl").unwrap_err();
        assert!(refused.message.contains("chmod 700"), "{refused}");
        assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o755);
        let link = folder.join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        let refused = make_private(&link).unwrap_err();
        assert!(refused.message.contains("is a link or a file"), "{refused}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_path_that_is_no_folder_is_named_by_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        std::os::unix::fs::symlink(folder.path(), at("link")).unwrap();
        for (name, reported) in [
            ("file", "is a file, not a folder"),
            ("dangling", "is a link to something that is not there"),
        ] {
            let refused = StateFolder::open(&at(name), "crawl").unwrap_err();
            assert!(refused.message.contains(reported), "{refused}");
        }
        assert_eq!(why_not_folder(&at("link")), None);
        assert_eq!(why_not_folder(&at("new")), None);
    }

    /// This test needs root, because only root can create a file of another user.
    #[test]
    fn files_of_another_user_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        if own_user_id() != 0 {
            return;
        }
        for name in ["dispatcher.db", "dispatcher.db-wal", "logs", "crawl.lock"] {
            let file = folder.path().join(name);
            std::fs::write(&file, "").unwrap();
            std::os::unix::fs::lchown(&file, Some(12_345), None).unwrap();
            let refused = StateFolder::open(folder.path(), "crawl").unwrap_err();
            assert!(refused.message.contains(name), "{refused}");
            assert!(refused.message.contains("user 12345"), "{refused}");
            std::fs::remove_file(&file).unwrap();
        }
        let notes = folder.path().join("notes.txt");
        std::fs::write(&notes, "").unwrap();
        std::os::unix::fs::lchown(&notes, Some(12_345), None).unwrap();
        drop(StateFolder::open(folder.path(), "crawl").unwrap());
        // A folder of another user is refused as well, with an error that names the user.
        std::os::unix::fs::lchown(folder.path(), Some(12_345), None).unwrap();
        let refused = StateFolder::open(folder.path(), "crawl").unwrap_err();
        assert!(refused.message.contains("user 12345"), "{refused}");
    }

    #[test]
    fn each_state_folder_is_an_instance_of_its_own() {
        let folder = |name: &str| {
            let name = format!("webfill-instance-{}-{name}", std::process::id());
            StateFolder::open(&std::env::temp_dir().join(name), "supervisor").unwrap()
        };
        let (here, there) = (folder("a"), folder("b"));
        assert_eq!(here.instance().unwrap(), here.instance().unwrap());
        assert_ne!(here.instance().unwrap(), there.instance().unwrap());
        std::fs::remove_dir_all(here.path()).unwrap();
        std::fs::remove_dir_all(there.path()).unwrap();
    }

    #[test]
    fn sockets_of_a_deep_state_folder_go_elsewhere() {
        let deep = PathBuf::from("/").join("x".repeat(200));
        let folder = socket_folder(&deep).unwrap();
        assert!(folder.as_os_str().len() <= LONGEST_SOCKET_FOLDER);
        assert_eq!(folder, socket_folder(&deep).unwrap());
        let mode = || std::fs::metadata(&folder).unwrap().mode() & 0o777;
        assert_eq!(mode(), 0o700);
        let open = || std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        open();
        socket_folder(&deep).unwrap();
        assert_eq!(mode(), 0o700, "it was closed again");
        open();
        std::fs::write(folder.join("letter.txt"), "Dear Ada").unwrap();
        let refused = socket_folder(&deep).unwrap_err();
        assert!(refused.message.contains("chmod 700"), "{refused}");
        std::fs::remove_dir_all(&folder).unwrap();
        // Anyone who may write to the temporary folder can place a link there first.
        std::os::unix::fs::symlink("/", &folder).unwrap();
        let refused = socket_folder(&deep).unwrap_err();
        assert!(refused.message.contains("is a link or a file"), "{refused}");
        std::fs::remove_file(&folder).unwrap();
    }
}
