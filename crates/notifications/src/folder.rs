//! Opens files below a folder named in the settings, by paths that may come from other machines.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// The folder and the path with symbolic links resolved, except a link at the file itself. `None` if the path leads out
/// of the folder, or if the folder of the file is missing.
fn resolve_path(folder: &Path, path: &str) -> Option<(PathBuf, PathBuf)> {
    let goes_up = Path::new(path)
        .components()
        .any(|step| step == Component::ParentDir);
    let given = std::path::absolute(folder).ok()?;
    let folder = folder.canonicalize().ok()?;
    let below = match Path::new(path).strip_prefix(&given) {
        Ok(below) => folder.join(below),
        Err(_) => folder.join(path),
    };
    let parent = below.parent()?.canonicalize().ok()?;
    let file = parent.join(below.file_name()?);
    (!goes_up && file.starts_with(&folder)).then_some((folder, file))
}

/// Whether a path is below the folder. The file need not exist yet.
pub(crate) fn is_below(folder: &Path, path: &str) -> bool {
    let Some((folder, file)) = resolve_path(folder, path) else {
        return false;
    };
    match file.canonicalize() {
        Ok(found) => found.starts_with(&folder) && found.is_file(),
        Err(_) => true,
    }
}

/// Opens a file below the folder. The check is repeated on the opened file, in case another file has replaced the
/// checked one.
pub(crate) fn open(folder: &Path, path: &str, options: &mut OpenOptions) -> Option<File> {
    if !is_below(folder, path) {
        return None;
    }
    let (folder, file) = resolve_path(folder, path)?;
    let file = set_open_flags(options).open(file).ok()?;
    let found = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    (is_file && found.starts_with(&folder)).then_some(file)
}

/// Sets the flags for opening without blocking. Otherwise, opening a pipe would wait until its other end is opened.
pub(crate) fn set_open_flags(options: &mut OpenOptions) -> &mut OpenOptions {
    options
        .mode(0o600)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_below_the_folder_are_opened() {
        let work = tempfile::tempdir().unwrap();
        let folder = work.path().join("link");
        fs::create_dir_all(work.path().join("files/inner")).unwrap();
        symlink(work.path().join("files"), &folder).unwrap();
        fs::write(work.path().join("secret"), "x").unwrap();
        fs::write(folder.join("inner/a"), "x").unwrap();
        symlink("../secret", folder.join("out")).unwrap();
        symlink("/tmp", folder.join("elsewhere")).unwrap();
        symlink("/dev/null", folder.join("device")).unwrap();
        let opens = |path: &str| {
            let opened = open(&folder, path, OpenOptions::new().read(true));
            assert_eq!(opened.is_some(), is_below(&folder, path), "{path}");
            opened.is_some()
        };
        let inside = folder.join("inner/a").display().to_string();
        assert!(opens("inner/a") && opens("./inner/a") && opens(&inside));
        let outside = work.path().join("secret").display().to_string();
        for wrong in [
            "../secret",
            "out",
            "device",
            "inner",
            "elsewhere/x",
            "/etc/passwd",
            "",
            &outside,
        ] {
            assert!(!opens(wrong), "{wrong}");
        }
        assert!(is_below(&folder, "inner/new"));
        let mut appending = OpenOptions::new();
        assert!(open(&folder, "inner/new", appending.append(true).create(true)).is_some());
    }
}
