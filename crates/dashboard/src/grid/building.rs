//! Makes the index of a table: reads the table and its evidence side by side, once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{Connection, params};
use serde_json::Value;
use webfill_service::whole_file::{part_path, remove_remains};
use webfill_table::Cell;
use webfill_urls::{Url, site};

use super::evidence::Lines;
use super::files::{Files, INDEX_NAME};
use super::state::State;
use super::{Column, Grid, Kind, Meta};

/// How many characters of values the index keeps for one row, and how many it keeps of one value at least and at most.
const ROW_CHARS: usize = 60_000;
const LEAST_CHARS: usize = 40;
const MOST_CHARS: usize = 160;

/// The column number that stands for any column in `marks`, and for all columns together in `counts`.
pub(super) const ANY: i64 = -1;

const TABLES: &str = "
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -65536;
    CREATE TABLE meta (value TEXT NOT NULL) STRICT;
    CREATE TABLE sites (key INTEGER PRIMARY KEY, name TEXT NOT NULL, rows INTEGER NOT NULL) STRICT;
    -- In the order of the table. Large columns come last: a search reads the first ones only.
    CREATE TABLE rows (
        n INTEGER PRIMARY KEY,       -- counts the rows that can be used
        states BLOB NOT NULL,        -- a byte for each column
        sites TEXT NOT NULL,         -- keys of sites, each between commas
        number INTEGER NOT NULL,     -- the line, as a person counts
        name TEXT,                   -- its id, if it has evidence
        evidence INTEGER,            -- the byte where its evidence begins
        cells TEXT NOT NULL          -- [the beginning of a value, or null]
    ) STRICT;
    -- For each column (-1: any column) and state, the rows that have such a cell.
    CREATE TABLE marks (col INTEGER, state INTEGER, n INTEGER, PRIMARY KEY (col, state, n)) STRICT, WITHOUT ROWID;
    CREATE TABLE site_rows (site INTEGER, n INTEGER, PRIMARY KEY (site, n)) STRICT, WITHOUT ROWID;
    -- The cells of each state, by column and of all (-1).
    CREATE TABLE counts (col INTEGER, state INTEGER, count INTEGER NOT NULL, PRIMARY KEY (col, state))
        STRICT, WITHOUT ROWID;
    BEGIN";

/// Makes the index of a table from its files. `done` counts the rows that are written so far.
pub(super) fn build(files: &Files, done: &AtomicU64) -> Result<(), String> {
    build_atomically(&files.index, |part| write_index(files, part, done))
}

/// Makes an index under a temporary name, and renames it when it is complete. So an incomplete index is never used,
/// even after a crash.
pub(super) fn build_atomically(
    index: &Path,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let part = part_path(index);
    let _ = fs::remove_file(&part);
    let made = make(&part).and_then(|()| {
        let synced = File::open(&part).and_then(|file| file.sync_all());
        let renamed = synced
            .and_then(|()| remove_journal_and_index(index))
            .and_then(|()| fs::rename(&part, index));
        renamed.map_err(|error| format!("cannot write {}: {error}", index.display()))
    });
    if made.is_err() {
        // If this fails, the file only takes up space until the next attempt removes it.
        let _ = fs::remove_file(&part);
    }
    made
}

/// Removes incomplete indexes in a project folder that killed dashboards have left.
pub(crate) fn remove_incomplete_indexes(folder: &Path) {
    remove_remains(folder, |name| name == INDEX_NAME);
}

/// Removes the journal that an interrupted write has left, because SQLite would apply it to the new index. The old
/// index cannot be used without its journal, so it is removed first.
fn remove_journal_and_index(index: &Path) -> io::Result<()> {
    let mut journal = index.as_os_str().to_owned();
    journal.push("-journal");
    let journal = PathBuf::from(journal);
    if journal.exists() {
        if index.exists() {
            fs::remove_file(index)?;
        }
        fs::remove_file(journal)?;
    }
    Ok(())
}

fn write_index(files: &Files, part: &Path, done: &AtomicU64) -> Result<(), String> {
    let opened = Connection::open(part);
    let conn = opened.map_err(|error| format!("cannot write {}: {error}", part.display()))?;
    index_rows(files, &conn, usize::MAX, done).map(drop)
}

/// Makes an index of the first `rows` rows of a table, in memory. It is shown until the complete index is made.
pub(crate) fn build_preview(files: &Files, rows: usize) -> Result<Grid, String> {
    let conn = Connection::open_in_memory().map_err(|error| error.to_string())?;
    let meta = index_rows(files, &conn, rows, &AtomicU64::new(0))?;
    Ok(Grid { meta, conn })
}

/// Indexes the first `most` rows of a table.
fn index_rows(
    files: &Files,
    conn: &Connection,
    most: usize,
    done: &AtomicU64,
) -> Result<Meta, String> {
    let failed = |error: rusqlite::Error| format!("cannot write the index of the table: {error}");
    let signature = files.signature();
    let mut table = webfill_table::open(files.shown_table()).map_err(|error| error.to_string())?;
    let mut evidence = Lines::open(&files.evidence)?;
    conn.execute_batch(TABLES).map_err(failed)?;
    let mut columns = Columns::new(&table, &read_overview_fields(files));
    let mut sites = Sites::default();
    let mut counts: BTreeMap<(i64, u8), u64> = BTreeMap::new();
    let (mut n, mut has_evidence) = (0_i64, false);
    {
        let sql = "INSERT INTO rows VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let mut add = conn.prepare(sql).map_err(failed)?;
        let sql = "INSERT OR IGNORE INTO marks VALUES (?1, ?2, ?3)";
        let mut mark = conn.prepare(sql).map_err(failed)?;
        let sql = "INSERT INTO site_rows VALUES (?1, ?2)";
        let mut of_site = conn.prepare(sql).map_err(failed)?;
        while (n.unsigned_abs() as usize) < most
            && let Some(row) = table.next_row()
        {
            let row = match row {
                Ok(row) => row,
                Err(fault) if fault.is_end => return Err(fault.reason),
                Err(_) => continue,
            };
            n += 1;
            let cells: Vec<Option<String>> = row.cells.iter().map(cell_text).collect();
            let mut states = columns.states_without_evidence(&cells);
            let (mut name, mut begin, mut of_row) = (None, None, BTreeSet::new());
            if let Some(lines) = &mut evidence {
                while let Some((at, line)) = lines.next_line_of_row(row.number)? {
                    begin.get_or_insert(at);
                    if let Some(url) = &line.url {
                        of_row.insert(sites.get_or_add_key(url));
                    }
                    columns.apply_evidence(&line.column, &line.state, &mut states);
                    name = Some(line.id);
                }
            }
            has_evidence |= begin.is_some();
            for key in &of_row {
                sites.rows[*key as usize] += 1;
                of_site.execute(params![key, n]).map_err(failed)?;
            }
            for (column, byte) in states.iter().enumerate() {
                if !State::from_byte(*byte).is_marked() {
                    continue;
                }
                for column in [column as i64, ANY] {
                    mark.execute(params![column, byte, n]).map_err(failed)?;
                    *counts.entry((column, *byte)).or_default() += 1;
                }
            }
            let keys: String = of_row.iter().map(|key| format!(",{key}")).collect();
            let shown = columns.shortened_cells_json(&cells);
            let (number, begin) = (row.number as i64, begin.map(|at| at as i64));
            let row = params![n, states, keys + ",", number, name, begin, shown];
            add.execute(row).map_err(failed)?;
            done.store(n.unsigned_abs(), Ordering::Relaxed);
        }
    }
    for ((column, byte), count) in counts {
        let sql = "INSERT INTO counts VALUES (?1, ?2, ?3)";
        conn.execute(sql, params![column, byte, count as i64])
            .map_err(failed)?;
    }
    sites.write(conn).map_err(failed)?;
    if files.signature() != signature {
        return Err(String::from("the table was changed meanwhile"));
    }
    let meta = Meta {
        signature,
        rows: n.unsigned_abs(),
        columns: columns.all,
        has_evidence,
    };
    let text = serde_json::to_string(&meta).map_err(|error| error.to_string())?;
    conn.execute("INSERT INTO meta VALUES (?1)", [text])
        .and_then(|_| conn.execute_batch("COMMIT"))
        .map_err(failed)?;
    Ok(meta)
}

/// The names of the columns that `webfill fill` fills or compares, from its `overview.json`; empty if the file is
/// missing.
fn read_overview_fields(files: &Files) -> BTreeSet<String> {
    let overview = files.wishes.with_file_name("overview.json");
    let overview = fs::read(overview).ok();
    let overview: Option<Value> = overview.and_then(|json| serde_json::from_slice(&json).ok());
    let fields = overview.and_then(|overview| overview["fields"].as_array().cloned());
    let names = fields.into_iter().flatten();
    names
        .filter_map(|field| Some(field["name"].as_str()?.to_owned()))
        .collect()
}

/// The text of a cell. The entries of a list are joined by `; `, and an object is written as JSON.
pub(crate) fn cell_text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Missing => None,
        Cell::List(cells) => {
            let texts: Vec<String> = cells.iter().filter_map(cell_text).collect();
            Some(texts.join("; ")).filter(|text| !text.is_empty())
        }
        Cell::Other(value) => Some(value.to_string()),
        other => other.text().map(str::to_owned),
    }
}

struct Columns {
    all: Vec<Column>,
    by_name: HashMap<String, usize>,
    most_chars: usize,
}

impl Columns {
    fn new(table: &webfill_table::TableReader, fields: &BTreeSet<String>) -> Columns {
        let columns = table.columns().iter();
        let all: Vec<Column> = columns
            .map(|column| Column {
                name: column.name.clone(),
                kind: Kind::Integer,
                is_field: fields.contains(&column.name),
            })
            .collect();
        let names = all.iter().map(|column| column.name.clone());
        // Of several columns with the same name, the name means the first one.
        let by_name = names.zip(0..).collect::<Vec<_>>().into_iter().rev();
        Columns {
            by_name: by_name.collect(),
            most_chars: (ROW_CHARS / all.len().max(1)).clamp(LEAST_CHARS, MOST_CHARS),
            all,
        }
    }

    /// The states of the cells in a row, as far as they are known without evidence.
    fn states_without_evidence(&mut self, cells: &[Option<String>]) -> Vec<u8> {
        let columns = self.all.iter_mut().enumerate();
        let states = columns.map(|(at, column)| {
            let text = cells.get(at).and_then(Option::as_deref);
            let text = text.filter(|text| !text.trim().is_empty());
            if let Some(text) = text {
                column.kind = merge_kind(column.kind, text);
            }
            let state = match (column.is_field, text) {
                (false, _) => State::Kept,
                (true, None) => State::Empty,
                (true, Some(_)) => State::Given,
            };
            state.byte()
        });
        states.collect()
    }

    /// Applies one line of the evidence, which gives the state of one cell of the row.
    fn apply_evidence(&mut self, column: &str, state: &str, states: &mut [u8]) {
        if let (Some(&at), Some(state)) = (self.by_name.get(column), State::from_name(state)) {
            self.all[at].is_field = true;
            states[at] = state.byte();
        }
    }

    fn shortened_cells_json(&self, cells: &[Option<String>]) -> String {
        let cut = |text: &String| match text.char_indices().nth(self.most_chars) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.clone(),
        };
        let columns = 0..self.all.len();
        let shown = columns.map(|at| cells.get(at)?.as_ref().map(cut));
        let shown: Vec<Option<String>> = shown.collect();
        serde_json::to_string(&shown).expect("texts are JSON")
    }
}

/// The kind of a column after one more value, if its values so far are of `kind`. A text counts as a number only if
/// programs write numbers like it: `007` is a text.
pub(super) fn merge_kind(kind: Kind, text: &str) -> Kind {
    let is_whole = |text: &str| text.parse::<i64>().is_ok_and(|n| n.to_string() == text);
    let is_number = |text: &str| {
        let begins = text.trim_start_matches('-');
        let is_plain = !begins.starts_with('0') || begins == "0" || begins.starts_with("0.");
        let is_of_digits = text.bytes().all(|byte| b"0123456789.-".contains(&byte));
        is_plain && is_of_digits && text.parse::<f64>().is_ok_and(f64::is_finite)
    };
    match kind {
        Kind::Integer if is_whole(text) => Kind::Integer,
        Kind::Integer | Kind::Number if is_number(text) => Kind::Number,
        _ => Kind::Text,
    }
}

/// The sites of pages, each with a number and the count of its rows.
#[derive(Default)]
struct Sites {
    keys: HashMap<String, i64>,
    names: Vec<String>,
    rows: Vec<u64>,
    /// The last URL and the number of its site. Several cells of a row often have the same URL.
    last: (String, i64),
}

impl Sites {
    fn get_or_add_key(&mut self, url: &str) -> i64 {
        if self.last.0 == url {
            return self.last.1;
        }
        let name = Url::parse(url).map_or_else(|_| String::from("no site"), |url| site(&url));
        let next = self.names.len() as i64;
        let key = *self.keys.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.rows.push(0);
            next
        });
        self.last = (url.to_owned(), key);
        key
    }

    fn write(&self, conn: &Connection) -> rusqlite::Result<()> {
        let mut add = conn.prepare("INSERT INTO sites VALUES (?1, ?2, ?3)")?;
        for (key, (name, rows)) in self.names.iter().zip(&self.rows).enumerate() {
            add.execute(params![key as i64, name, *rows as i64])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dashboard has ended while it was writing an index, and has left a journal.
    #[test]
    fn a_leftover_journal_does_not_affect_the_new_index() {
        let place = tempfile::tempdir().unwrap();
        let index = place.path().join("grid.db");
        let journal = place.path().join("grid.db-journal");
        fs::write(&index, "old").unwrap();
        fs::write(&journal, "left").unwrap();
        build_atomically(&index, |part| {
            fs::write(part, "new").map_err(|error| error.to_string())
        })
        .unwrap();
        assert_eq!(fs::read_to_string(&index).unwrap(), "new");
        assert!(!journal.exists());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        build_atomically(&index, |_| Err(String::from("broken"))).unwrap_err();
        assert_eq!(fs::read_to_string(&index).unwrap(), "new");
    }

    #[test]
    fn only_plain_numbers_make_a_column_of_numbers() {
        let kind = |texts: &[&str]| {
            let kinds = texts.iter();
            kinds.fold(Kind::Integer, |kind, text| merge_kind(kind, text))
        };
        assert_eq!(kind(&["1", "-20", "0"]), Kind::Integer);
        assert_eq!(kind(&["1", "2.50", "0.5"]), Kind::Number);
        for text in ["007", "1e5", "inf", "1,5", "", "+1", "-"] {
            assert_eq!(kind(&["1", text]), Kind::Text, "{text}");
        }
    }
}
