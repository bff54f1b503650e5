//! The folder of a table's work, `books.webfill` beside `books.csv`, and the files that are written beside the table.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use webfill_service::Fault;
use webfill_service::state::StateFolder;

use crate::mapping_command::writing::write_atomically;

/// Much longer than a check of the lock takes.
const LOCK_CHECK: Duration = Duration::from_millis(50);

/// The paths of a table and of its project folder.
#[derive(Debug, Clone)]
pub struct Project {
    table: PathBuf,
    folder: PathBuf,
    /// Whether the table is a collection; `table` is then the name that its file would have.
    is_collection: bool,
}

impl Project {
    pub const APP: &str = "local";
    /// The crawl that fetches the pages of the table.
    pub const CRAWL: &str = "fill";

    pub fn new(table: &Path) -> Project {
        Project {
            table: table.to_owned(),
            folder: path_beside(table, ".webfill"),
            is_collection: false,
        }
    }

    /// The project of a collection of documents, in the working folder.
    pub fn for_collection(file: &Path) -> Project {
        Project {
            is_collection: true,
            ..Project::new(file)
        }
    }

    /// The documents of a collection as lines of JSON.
    pub fn copy_file(&self) -> PathBuf {
        self.folder.join(&self.table)
    }

    /// The values that were written back to a collection.
    pub fn written_values_file(&self) -> PathBuf {
        self.folder.join("written.jsonl")
    }

    /// Makes the folder, and locks it for as long as the result lives.
    pub fn open(&self) -> Result<StateFolder, Fault> {
        // A person may have made the folder above, to put mappings there.
        // A dashboard that checks whether the command runs holds the lock for a moment.
        let opened = StateFolder::open(&self.state_folder(), "fill").or_else(|_| {
            std::thread::sleep(LOCK_CHECK);
            StateFolder::open(&self.state_folder(), "fill")
        });
        let lock = opened.map_err(|mut fault| {
            // The state folder follows from the table, so no other one can be chosen.
            fault.message = fault.message.replace(", or choose another --state", "");
            fault
        })?;
        for folder in [
            self.mappings_folder(),
            self.learned_folder(),
            self.no_mappings_folder(),
        ] {
            std::fs::create_dir_all(&folder).map_err(|error| {
                Fault::error(format!("cannot create {}: {error}", folder.display()))
            })?;
        }
        let name = self.table.file_name().unwrap_or_default();
        write_atomically(&self.owner_file(), name.to_string_lossy().as_bytes())?;
        Ok(lock)
    }

    /// Whether a process works on the table. Holds the lock for a moment, as [`Project::open`] expects.
    pub fn is_running(&self) -> bool {
        let lock = File::open(self.state_folder().join("fill.lock"));
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// The name of the table whose work this is.
    fn owner_file(&self) -> PathBuf {
        self.folder.join("table.txt")
    }

    /// Refuses a folder that belongs to another table: `books.csv` and `books.jsonl` would share it.
    pub fn require_own_folder(&self) -> Result<(), Fault> {
        let name = self.table.file_name().unwrap_or_default().to_string_lossy();
        match std::fs::read_to_string(self.owner_file()) {
            Ok(owner) if owner != name => Err(Fault::usage(format!(
                "{} belongs to {owner}: give this table another name, or delete the folder",
                self.folder.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The table's name without its endings.
    pub fn name(&self) -> String {
        let name = self.table.file_name().unwrap_or_default().to_string_lossy();
        name[..name.len() - endings(&self.table).len()].to_owned()
    }

    /// The crawls of a fleet that fetch the pages of the table.
    pub fn fleet_file(&self) -> PathBuf {
        self.folder.join("fleet.json")
    }

    /// All lines that cannot be used.
    pub fn bad_rows_file(&self) -> PathBuf {
        self.folder.join("bad-rows.txt")
    }

    /// Mapping files: those that were learned, and those of a person.
    pub fn mappings_folder(&self) -> PathBuf {
        self.folder.join("mappings")
    }

    /// How each mapping was learned, and from what.
    pub fn learned_folder(&self) -> PathBuf {
        self.folder.join("learned")
    }

    /// An empty folder: the crawl itself extracts nothing.
    pub fn no_mappings_folder(&self) -> PathBuf {
        self.folder.join("state").join("no-mappings")
    }

    /// A person's answers to doubts.
    pub fn answers_file(&self) -> PathBuf {
        self.folder.join("answers.json")
    }

    /// The doubts that were listed so far.
    pub fn listed_doubts_file(&self) -> PathBuf {
        self.folder.join("doubts.json")
    }

    /// The open doubts, for the review in the dashboard.
    pub fn review_file(&self) -> PathBuf {
        self.folder.join("review.json")
    }

    /// The answers of the review.
    pub fn review_answers_file(&self) -> PathBuf {
        self.folder.join("review.jsonl")
    }

    /// The columns that a person has named, so that the dashboard understands the table in the same way.
    pub fn wishes_file(&self) -> PathBuf {
        self.folder.join("wishes.json")
    }

    /// The progress of the work.
    pub fn overview_file(&self) -> PathBuf {
        self.folder.join("overview.json")
    }

    /// Pages as they were before they were requested again.
    pub fn former_folder(&self) -> PathBuf {
        self.folder.join("former")
    }

    pub fn state_folder(&self) -> PathBuf {
        self.folder.join("state")
    }

    pub fn logs_folder(&self) -> PathBuf {
        self.folder.join("state").join("logs")
    }

    pub fn store_file(&self) -> PathBuf {
        self.folder.join("webfill.db")
    }

    pub fn store_uri(&self) -> String {
        format!("sqlite:{}", self.store_file().display())
    }

    /// The URLs that a crawl is to fetch.
    pub fn seeds_file(&self) -> PathBuf {
        self.folder.join("state").join("urls.txt")
    }

    /// The filled table, with the ending of the table, because it has the same format.
    pub fn filled_table_file(&self) -> PathBuf {
        let table = match self.is_collection {
            true => self.copy_file(),
            false => self.table.clone(),
        };
        let endings = endings(&table);
        path_beside(&table, &format!(".filled{endings}"))
    }

    pub fn evidence_file(&self, ending: &str) -> PathBuf {
        path_beside(&self.table, &format!(".evidence.{ending}"))
    }

    pub fn doubts_file(&self) -> PathBuf {
        path_beside(&self.table, ".doubts.csv")
    }
}

/// The endings of a file's name, such as `.csv` or `.jsonl.gz`.
fn endings(table: &Path) -> String {
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    let last = |name: &str| name.rfind('.').filter(|&at| at > 0);
    let packed = [".gz", ".zst"].into_iter().find(|end| name.ends_with(end));
    let packed = packed.unwrap_or_default();
    let stem = name.strip_suffix(packed).unwrap_or(&name);
    let ending = last(stem).map_or("", |at| &stem[at..]);
    format!("{ending}{packed}")
}

/// A file or folder beside the table, named after it without its endings.
fn path_beside(table: &Path, ending: &str) -> PathBuf {
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    let stem = &name[..name.len() - endings(table).len()];
    let mut name = OsString::from(stem);
    name.push(ending);
    table.with_file_name(name)
}

/// Writes a file that gets its name once it is complete.
pub fn write_file_atomically(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), Fault> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let written = File::create(&part).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()?;
        std::fs::rename(&part, path)
    });
    written.map_err(|error| Fault::error(format!("cannot write {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beside_a_table_are_named_after_it() {
        let named = |table: &str| {
            let project = Project::new(Path::new(table));
            let names = [
                project.filled_table_file(),
                project.doubts_file(),
                project.folder,
            ];
            names.map(|path| path.display().to_string())
        };
        assert_eq!(
            named("in/books.csv"),
            [
                "in/books.filled.csv",
                "in/books.doubts.csv",
                "in/books.webfill"
            ]
        );
        assert_eq!(
            named("books.v2.jsonl.gz"),
            [
                "books.v2.filled.jsonl.gz",
                "books.v2.doubts.csv",
                "books.v2.webfill"
            ]
        );
        assert_eq!(named("books.csv.zst")[0], "books.filled.csv.zst");
        assert_eq!(named("books")[0], "books.filled");
    }
}
