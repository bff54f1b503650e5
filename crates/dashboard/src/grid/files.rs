//! The files of a project folder: the user's table, the filled table, and the evidence, with the names that `webfill
//! fill` gives them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Part of each index's signature. Increment it when the content of indexes changes, so that old ones are made anew.
const INDEX_FORM: u32 = 1;

/// The paths of a project's files.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    /// The table as the user has written it.
    pub(crate) input: PathBuf,
    pub(crate) filled: PathBuf,
    pub(crate) evidence: PathBuf,
    /// The columns that the user has named.
    pub(crate) wishes: PathBuf,
    pub(crate) index: PathBuf,
}

impl Files {
    /// The files of a project folder.
    pub(crate) fn from_project_folder(folder: &Path) -> Result<Files, String> {
        let owner = folder.join("table.txt");
        let named = fs::read_to_string(&owner)
            .map_err(|error| format!("cannot read {}: {error}", owner.display()))?;
        // Only the last part of the path counts, so that it cannot lead out of the folder.
        let name = Path::new(named.trim()).file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
        let stem = folder_name.strip_suffix(".webfill").unwrap_or(&folder_name);
        let endings = name.strip_prefix(stem).unwrap_or_default();
        let beside = folder.parent().unwrap_or(Path::new("."));
        // For a MongoDB collection, the folder itself contains a copy of the documents.
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
            index: folder.join("grid.db"),
        })
    }

    /// The path of the table to show: the filled one if it exists, otherwise the user's own.
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

    /// Whether the beginning of the table can be read without the rest. A workbook is read as a whole.
    pub(crate) fn can_be_previewed(&self) -> bool {
        let ending = self.shown_table().extension();
        !ending.is_some_and(|ending| ending.eq_ignore_ascii_case("xlsx"))
    }

    /// A text that changes when one of the files changes: it has their sizes and times.
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
        // The name in `table.txt` must not lead out of the folder.
        fs::write(folder.join("table.txt"), "../../../etc/passwd").unwrap();
        assert_eq!(
            Files::from_project_folder(&folder).unwrap().input,
            place.path().join("passwd")
        );
        // A table that was copied from a collection is in the folder itself.
        fs::write(folder.join("table.txt"), "books.v2.jsonl").unwrap();
        fs::write(folder.join("books.v2.jsonl"), "").unwrap();
        let files = Files::from_project_folder(&folder).unwrap();
        assert_eq!(files.filled, folder.join("books.v2.filled.jsonl"));
        assert_eq!(files.evidence, place.path().join("books.v2.evidence.jsonl"));
    }
}
