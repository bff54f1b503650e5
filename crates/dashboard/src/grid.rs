//! The grid shows rows and columns with the state of each cell. It has two sources: a table that `webfill fill`
//! completes, and the records of a store, which need no index ([`records`]). Both have one template, one script and one
//! set of states.
//!
//! # Tables
//!
//! `webfill fill` writes tables and their evidence as files that are read from the beginning. Filtered and sorted lists
//! need an index, `grid.db` in the project folder: the beginning of each value, the state of each cell, and where the
//! evidence of each row begins. When the files have changed, it is made anew in the background, and renamed when it is
//! complete. It may be deleted at any time. While the index of a large table is made, a small index of its first rows
//! is shown.
//!
//! | step | file |
//! |---|---|
//! | the files of a project | [`files`] |
//! | the states of cells | [`state`] |
//! | making the index | [`building`] |
//! | reading a page of rows, by filter and order | [`listing`] |
//! | the evidence of a cell | [`evidence`] |
//! | the row as the user has written it, for answers | [`origin`] |
//! | the filtered rows as a file, of both sources | [`download`] |

pub(crate) mod building;
pub(crate) mod download;
pub(crate) mod evidence;
pub(crate) mod files;
pub(crate) mod jobs;
pub(crate) mod listing;
pub(crate) mod origin;
pub(crate) mod record_cells;
pub(crate) mod records;
pub(crate) mod state;

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};

use self::files::Files;

/// An open index of a table.
pub(crate) struct Grid {
    pub(crate) meta: Meta,
    pub(crate) conn: Connection,
}

/// Facts about a whole table.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// The signature of the table's files when the index was made. It changes with the files.
    pub(crate) signature: String,
    pub(crate) rows: u64,
    pub(crate) columns: Vec<Column>,
    /// Whether any cell has evidence.
    pub(crate) has_evidence: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Whether `webfill fill` fills this column, or compares its values.
    pub(crate) is_field: bool,
}

/// The type that all values of a column have. Sorting and Parquet files depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Integer,
    Number,
    Text,
}

impl Grid {
    /// Opens the index of a table; `None` if it was not made of the current files.
    pub(crate) fn open(files: &Files) -> Result<Option<Grid>, String> {
        let signature = files.signature();
        let Some(grid) = Grid::open_any(&files.index) else {
            return Ok(None);
        };
        Ok(Some(grid).filter(|grid| grid.meta.signature == signature))
    }

    /// Opens the index without comparing it with the files; `None` if it is missing or unreadable.
    fn open_any(index: &Path) -> Option<Grid> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(index, flags).ok()?;
        let meta = conn.query_row("SELECT value FROM meta", (), |row| row.get::<_, String>(0));
        let meta = serde_json::from_str(&meta.ok()?).ok()?;
        Some(Grid { meta, conn })
    }

    /// Identifies the version of the table's files. Forms contain it, so that an answer about a cell is refused if the
    /// files have changed.
    pub(crate) fn version(&self) -> String {
        version_of_signature(&self.meta.signature)
    }

    /// The sites with the most rows, at most `most`, and their numbers of rows.
    pub(crate) fn sites(&self, most: usize) -> rusqlite::Result<Vec<(String, u64)>> {
        let sql = "SELECT name, rows FROM sites ORDER BY rows DESC, name LIMIT ?1";
        let mut sites = self.conn.prepare(sql)?;
        let rows = sites.query_map([most as i64], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
        })?;
        rows.collect()
    }
}

fn version_of_signature(signature: &str) -> String {
    use sha2::{Digest, Sha256};
    let mut digits = crate::secrets::hex(&Sha256::digest(signature.as_bytes()));
    digits.truncate(16);
    digits
}

/// The error message for users if the index cannot be read.
pub(crate) fn index_error(error: &rusqlite::Error) -> String {
    format!("cannot read the index of the table: {error}")
}
