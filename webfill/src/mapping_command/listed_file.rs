//! Finds files that a list of pages names. Lists may come from strangers together with their folder, so they must not
//! name files outside that folder.

use std::path::{Component, Path, PathBuf};

/// The path of a file that a list names. The error says why the file does not belong to the folder.
pub fn path_in_folder(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let is_below = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let outside = || format!("`{name}` is outside of the folder {}", folder.display());
    if name.is_empty() || !Path::new(name).components().all(is_below) {
        return Err(outside());
    }
    let file = folder.join(name);
    // The code that reads the file reports it if it is missing.
    let real = file.canonicalize().ok().zip(folder.canonicalize().ok());
    match real {
        Some((real, folder)) if !real.starts_with(&folder) => Err(outside()),
        _ => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_outside_the_folder_is_refused_however_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("pages");
        std::fs::create_dir_all(inside.join("one")).unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        std::fs::write(inside.join("one/page.html"), "page").unwrap();
        std::os::unix::fs::symlink("../secret", inside.join("link")).unwrap();
        std::os::unix::fs::symlink("one/page.html", inside.join("same")).unwrap();
        for name in ["one/page.html", "./one/page.html", "same", "missing.html"] {
            assert_eq!(path_in_folder(&inside, name), Ok(inside.join(name)));
        }
        let absolute = folder.path().join("secret").display().to_string();
        for name in [
            "../secret",
            "one/../../secret",
            "link",
            &absolute,
            "/etc/passwd",
            "",
        ] {
            assert!(path_in_folder(&inside, name).is_err(), "{name}");
        }
    }
}
