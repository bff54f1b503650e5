//! The files of a project folder: the user's table, the filled table, and the evidence, with the names that `webfill
//! fill` gives them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A part of the signature of each index. Increment it when the content of indexes changes, so that existing indexes
/// are made again.
const INDEX_FORM: u32 = 1;

/// The name of the index in a project folder.
pub(super) const INDEX_NAME: &str = "grid.db";

/// The paths of a project's files.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    /// The table as the user has written it, before it was filled.
    pub(crate) input: PathBuf,
    pub(crate) filled: PathBuf,
    pub(crate) evidence: PathBuf,
    /// The names of the columns that the user wants filled, as JSON.
    pub(crate) wishes: PathBuf,
    pub(crate) index: PathBuf,
}

impl Files {
    /// Finds the files of a project folder.
    pub(crate) fn from_project_folder(folder: &Path) -> Result<Files, String> {
        let owner = folder.join("table.txt");
        let named = fs::read_to_string(&owner)
            .map_err(|error| format!("cannot read {}: {error}", owner.display()))?;
        // Only the last part of the path is used, so that it cannot lead out of the folder.
        let name = Path::new(named.trim()).file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
        let stem = folder_name.strip_suffix(".webfill").unwrap_or(&folder_name);
        let endings = name.strip_prefix(stem).unwrap_or_default();
        let beside = folder.parent().unwrap_or(Path::new("."));
        // If the table is a MongoDB collection, the folder contains a copy of its documents.
        let copy = folder.join(&name);
        let (input, home) = match copy.is_file() {
            true => (copy, folder),
            false => (beside.join(&name), beside),
        };
        Ok(Files {
            input,
            filled: home.join(format!("{stem}.filled{endings}")),
            evidence: beside.join(format!("{stem}.evidence.jsonl")),
            wishes: folder.join("wishes.json"),
            index: folder.join(INDEX_NAME),
        })
    }

    /// The table to show: the filled one if it exists, and otherwise the user's own.
    pub(crate) fn shown_table(&self) -> &Path {
        match self.filled.is_file() {
            true => &self.filled,
            false => &self.input,
        }
    }

    /// The total size of the files that the index is made of, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let files = [self.shown_table(), &self.evidence];
        let sizes = files.map(|file| fs::metadata(file).map_or(0, |about| about.len()));
        sizes.iter().sum()
    }

    /// Whether the first rows of the table can be read without the rest. This is not possible for an Excel workbook.
    pub(crate) fn can_be_previewed(&self) -> bool {
        let ending = self.shown_table().extension();
        !ending.is_some_and(|ending| ending.eq_ignore_ascii_case("xlsx"))
    }

    /// A text that is different after any of the files has changed. It contains their sizes and times.
    pub(crate) fn signature(&self) -> String {
        let of = |file: &Path| {
            let Ok(about) = fs::metadata(file) else {
                return String::from("-");
            };
            let changed = about.modified().ok();
            let since = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            format!("{}:{}", about.len(), since.unwrap_or_default().as_nanos())
        };
        let files = [&self.input, &self.filled, &self.evidence].map(|file| of(file));
        format!("{INDEX_FORM} {}", files.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_names_that_the_command_gives_them() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("books.v2.webfill");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("table.txt"), "books.v2.csv.gz").unwrap();
        let files = Files::from_project_folder(&folder).unwrap();
        assert_eq!(files.input, place.path().join("books.v2.csv.gz"));
        assert_eq!(files.filled, place.path().join("books.v2.filled.csv.gz"));
        assert_eq!(files.evidence, place.path().join("books.v2.evidence.jsonl"));
        // The path in `table.txt` must not lead out of the folder.
        fs::write(folder.join("table.txt"), "../../../etc/passwd").unwrap();
        assert_eq!(
            Files::from_project_folder(&folder).unwrap().input,
            place.path().join("passwd")
        );
        // If the table was copied from a collection, it is in the folder itself.
        fs::write(folder.join("table.txt"), "books.v2.jsonl").unwrap();
        fs::write(folder.join("books.v2.jsonl"), "").unwrap();
        let files = Files::from_project_folder(&folder).unwrap();
        assert_eq!(files.filled, folder.join("books.v2.filled.jsonl"));
        assert_eq!(files.evidence, place.path().join("books.v2.evidence.jsonl"));
    }
}
