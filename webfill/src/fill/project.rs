//! The project folder of a table, `books.webfill` for `books.csv`, and the paths of the files that are written beside
//! the table.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use webfill_service::Fault;
use webfill_service::state::StateFolder;
use webfill_service::whole_file::{remove_remains, write_whole_with};

use crate::mapping_command::writing::write_atomically;

/// How long to wait for a dashboard to release the lock. It only checks the lock, which takes much less time.
const LOCK_CHECK: Duration = Duration::from_millis(50);

/// The paths of a table and of its project folder.
#[derive(Debug, Clone)]
pub struct Project {
    table: PathBuf,
    folder: PathBuf,
    /// Whether the table is a MongoDB collection. Then `table` is the name that its file would have.
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

    /// The project of a collection of documents. Its folder is in the working folder.
    pub fn for_collection(file: &Path) -> Project {
        Project {
            is_collection: true,
            ..Project::new(file)
        }
    }

    /// The file with the copied documents of a collection, as JSON lines.
    pub fn copy_file(&self) -> PathBuf {
        self.folder.join(&self.table)
    }

    /// The log of values that were written back to a collection.
    pub fn written_values_file(&self) -> PathBuf {
        self.folder.join("written.jsonl")
    }

    /// Creates the folder, and locks it until the result is dropped.
    pub fn open(&self) -> Result<StateFolder, Fault> {
        // The project folder may exist already, because a person has put mappings there. A dashboard may hold the lock
        // for a moment while it checks whether the command runs, so try twice.
        let opened = StateFolder::open(&self.state_folder(), "fill").or_else(|_| {
            std::thread::sleep(LOCK_CHECK);
            StateFolder::open(&self.state_folder(), "fill")
        });
        let lock = opened.map_err(|mut fault| {
            // The table determines the state folder, so remove the advice to choose another one.
            fault.message = fault.message.replace(
                "wait for it, stop it, or choose another --state",
                "wait for it, or stop it",
            );
            fault
        })?;
        for folder in [
            self.mappings_folder(),
            self.learned_folder(),
            self.no_mappings_folder(),
        ] {
            std::fs::create_dir_all(&folder).map_err(|error| Fault::unwritable(&folder, &error))?;
        }
        self.remove_remains();
        let name = self.table.file_name().unwrap_or_default();
        write_atomically(&self.owner_file(), name.to_string_lossy().as_bytes())?;
        Ok(lock)
    }

    /// Removes partial files that killed runs have left, in the folder and beside the table.
    fn remove_remains(&self) {
        for folder in [
            self.folder.clone(),
            self.mappings_folder(),
            self.learned_folder(),
            self.former_folder(),
            self.state_folder(),
        ] {
            remove_remains(&folder, |_| true);
        }
        let beside = self.table.parent();
        let beside = beside.filter(|folder| *folder != Path::new(""));
        let stem = format!("{}.", self.name());
        remove_remains(beside.unwrap_or(Path::new(".")), |name| {
            name.starts_with(&stem)
        });
    }

    /// Whether a process works on the table. This check holds the lock for a moment.
    pub fn is_running(&self) -> bool {
        let lock = File::open(self.state_folder().join("fill.lock"));
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// The file with the name of the table that the folder belongs to.
    fn owner_file(&self) -> PathBuf {
        self.folder.join("table.txt")
    }

    /// Refuses a folder that belongs to another table. For example, `books.csv` and `books.jsonl` would share one.
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

    /// The file with the ids of the fleet's crawls that fetch the pages of the table.
    pub fn fleet_file(&self) -> PathBuf {
        self.folder.join("fleet.json")
    }

    /// The file that lists all unusable lines of the table.
    pub fn bad_rows_file(&self) -> PathBuf {
        self.folder.join("bad-rows.txt")
    }

    /// The folder of mapping files, both learned ones and a person's.
    pub fn mappings_folder(&self) -> PathBuf {
        self.folder.join("mappings")
    }

    /// The folder with the origin of each learned mapping.
    pub fn learned_folder(&self) -> PathBuf {
        self.folder.join("learned")
    }

    /// An empty folder of mappings for the crawl, so that it extracts nothing.
    pub fn no_mappings_folder(&self) -> PathBuf {
        self.folder.join("state").join("no-mappings")
    }

    /// The file with a person's answers to doubts.
    pub fn answers_file(&self) -> PathBuf {
        self.folder.join("answers.json")
    }

    /// The file with all doubts that were listed so far.
    pub fn listed_doubts_file(&self) -> PathBuf {
        self.folder.join("doubts.json")
    }

    /// The file with the open doubts, for the review in the dashboard.
    pub fn review_file(&self) -> PathBuf {
        self.folder.join("review.json")
    }

    /// The file that the review in the dashboard appends its answers to.
    pub fn review_answers_file(&self) -> PathBuf {
        self.folder.join("review.jsonl")
    }

    /// The file with the columns that the user has named, so that the dashboard understands the table in the same way.
    pub fn wishes_file(&self) -> PathBuf {
        self.folder.join("wishes.json")
    }

    /// The file with the progress of the work.
    pub fn overview_file(&self) -> PathBuf {
        self.folder.join("overview.json")
    }

    /// The folder with copies of pages from before their refresh.
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

    /// The file with the URLs that a crawl must fetch.
    pub fn seeds_file(&self) -> PathBuf {
        self.folder.join("state").join("urls.txt")
    }

    /// The path of the filled table. It has the same ending as the table, because it has the same format.
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

/// All endings of a file's name, such as `.csv` or `.jsonl.gz`.
fn endings(table: &Path) -> String {
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    let last = |name: &str| name.rfind('.').filter(|&at| at > 0);
    let packed = [".gz", ".zst"].into_iter().find(|end| name.ends_with(end));
    let packed = packed.unwrap_or_default();
    let stem = name.strip_suffix(packed).unwrap_or(&name);
    let ending = last(stem).map_or("", |at| &stem[at..]);
    format!("{ending}{packed}")
}

/// The path of a file or folder beside the table. Its name is that of the table, with another ending.
fn path_beside(table: &Path, ending: &str) -> PathBuf {
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    let stem = &name[..name.len() - endings(table).len()];
    let mut name = OsString::from(stem);
    name.push(ending);
    table.with_file_name(name)
}

/// Writes a file under a temporary name, and renames it when it is complete.
pub fn write_file_atomically(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), Fault> {
    write_whole_with(path, write).map_err(|error| Fault::unwritable(path, &error))
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
