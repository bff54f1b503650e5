//! Mapping files, unchecked, as they are read from disk and sent to workers: a name and a text.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// The largest mapping file, in bytes. A larger file is probably something else, such as a web page saved under a wrong
/// name.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// A mapping file, unchecked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The path of the file as the loader was given it, for errors and logs.
    pub name: String,
    pub text: String,
}

/// Reads every mapping file of `dir`, in order of name: `*.json` except `schema.json` and hidden files. Sub-folders,
/// which hold golden cases, are skipped.
pub(crate) fn read_dir(dir: &Path) -> Result<Vec<Source>, Vec<Fault>> {
    match read_dir_leniently(dir) {
        (sources, faults) if faults.is_empty() => Ok(sources),
        (_, faults) => Err(faults),
    }
}

/// Reads the same files as [`read_dir`]. Returns the readable files, and a fault for each other file.
pub(crate) fn read_dir_leniently(dir: &Path) -> (Vec<Source>, Vec<Fault>) {
    let (mut sources, mut faults) = (Vec::new(), Vec::new());
    match mapping_file_paths(dir) {
        Err(error) => faults.push(file_fault(
            dir,
            format!("cannot read the mapping folder: {error}"),
        )),
        Ok(paths) => {
            for path in paths {
                match read_file(&path) {
                    Ok(source) => sources.push(source),
                    Err(fault) => faults.push(fault),
                }
            }
        }
    }
    (sources, faults)
}

fn mapping_file_paths(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if is_mapping_file(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn is_mapping_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".json") && name != "schema.json" && !name.starts_with('.') && !path.is_dir()
}

/// Reads one file as UTF-8; a byte order mark is dropped.
pub(crate) fn read_file(path: &Path) -> Result<Source, Fault> {
    let cannot = |error: io::Error| file_fault(path, format!("cannot be read: {error}"));
    let size = fs::metadata(path).map_err(cannot)?.len();
    if size > MAX_FILE_BYTES {
        let message = format!("{size} bytes; a mapping file may have {MAX_FILE_BYTES}");
        return Err(file_fault(path, message));
    }
    let bytes = fs::read(path).map_err(cannot)?;
    let text = String::from_utf8(bytes).map_err(|error| not_utf8_fault(path, &error))?;
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    Ok(Source {
        name: path.display().to_string(),
        text,
    })
}

fn not_utf8_fault(path: &Path, error: &std::string::FromUtf8Error) -> Fault {
    let valid = error.utf8_error().valid_up_to();
    let line = error.as_bytes()[..valid]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count();
    let message = format!(
        "not UTF-8: byte 0x{:02x} at offset {valid}; save the file as UTF-8",
        error.as_bytes()[valid]
    );
    Fault {
        line: Some(line + 1),
        ..file_fault(path, message)
    }
}

fn file_fault(path: &Path, message: String) -> Fault {
    Fault {
        source: path.display().to_string(),
        line: None,
        column: None,
        path: String::new(),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_in_order_of_name_and_others_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.json", "a.json", "schema.json", "notes.txt", ".x.json"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        fs::create_dir(dir.path().join("golden.json")).unwrap();
        let texts: Vec<String> = read_dir(dir.path())
            .unwrap()
            .into_iter()
            .map(|source| source.text)
            .collect();
        assert_eq!(texts, ["a.json", "b.json"]);
    }

    #[test]
    fn every_unreadable_file_is_reported_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.json"), b"{\n\"\xff\"}").unwrap();
        fs::write(dir.path().join("b.json"), b"\xe9").unwrap();
        let faults = read_dir(dir.path()).unwrap_err();
        assert_eq!(faults.len(), 2);
        assert_eq!(faults[0].line, Some(2));
        assert!(faults[0].message.contains("byte 0xff at offset 3"));
        fs::write(dir.path().join("c.json"), "{}").unwrap();
        let (sources, faults) = read_dir_leniently(dir.path());
        assert_eq!((sources.len(), faults.len()), (1, 2));
    }

    #[test]
    fn a_missing_folder_is_named() {
        let faults = read_dir(Path::new("no/such/folder")).unwrap_err();
        assert!(
            faults[0]
                .to_string()
                .starts_with("no/such/folder: cannot read")
        );
    }
}
