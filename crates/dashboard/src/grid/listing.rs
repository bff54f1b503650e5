//! A page of rows, by filter and order. Lists use a cursor: each page begins after the last row of the previous one. If
//! no index holds exactly the wanted rows, a limited number of rows is checked.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, params};

use super::building::{self, ANY};
use super::state::State;
use super::{Grid, Kind, index_error};

/// How many rows are checked for one page of the list. The next page continues after them.
const MOST_EXAMINED: u64 = 20_000;

/// How long rows are searched for one page of the list, if few rows match.
const SEARCH_TIME: Duration = Duration::from_millis(100);

/// How many characters of a text are compared when rows are sorted.
const SORTED_CHARS: usize = 64;

/// The rows to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Lists only rows with a cell in this state.
    pub(crate) state: Option<State>,
    /// Lists only rows where the cell with the given state is in this column.
    pub(crate) column: Option<usize>,
    /// Lists only rows with a page of this site.
    pub(crate) site: Option<String>,
}

/// The order of a list; by default the order of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) column: Option<usize>,
    pub(crate) is_descending: bool,
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) n: i64,
    pub(crate) number: u64,
    pub(crate) name: Option<String>,
    pub(crate) evidence: Option<u64>,
    pub(crate) states: Vec<u8>,
    /// The values of the row, shortened.
    pub(crate) cells: Vec<Option<String>>,
}

#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Row>,
    /// The number of the last row that was checked; `None` at the end of the list.
    pub(crate) next: Option<i64>,
    pub(crate) examined: u64,
}

/// A filter in the form of the index's rows, where sites are numbers.
pub(super) struct IndexFilter {
    state: Option<u8>,
    column: Option<usize>,
    site: Option<String>,
    /// Whether no row can match, because no row has the requested site.
    is_empty: bool,
}

impl IndexFilter {
    pub(super) fn new(grid: &Grid, filter: &Filter) -> rusqlite::Result<IndexFilter> {
        let key = filter.site.as_ref().map(|name| site_key(grid, name));
        let key = key.transpose()?;
        Ok(IndexFilter {
            state: filter.state.map(State::byte),
            column: filter.column,
            is_empty: matches!(key, Some(None)),
            site: key.flatten().map(|(key, _)| format!(",{key},")),
        })
    }

    pub(super) fn matches(&self, states: &[u8], sites: &str) -> bool {
        let is_in_state = match (self.state, self.column) {
            (None, _) => true,
            (Some(state), Some(column)) => states.get(column) == Some(&state),
            (Some(state), None) => states.contains(&state),
        };
        let is_of_site = self.site.as_ref().is_none_or(|key| sites.contains(key));
        !self.is_empty && is_in_state && is_of_site
    }
}

fn site_key(grid: &Grid, name: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    let sql = "SELECT key, rows FROM sites WHERE name = ?1";
    let found = grid
        .conn
        .query_row(sql, [name], |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional()
}

impl Grid {
    /// Reads the rows that follow the row `after`, at most `wanted`.
    pub(crate) fn page(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<i64>,
        wanted: usize,
    ) -> Result<Page, String> {
        self.read_page(filter, order, after, wanted)
            .map_err(|error| index_error(&error))
    }

    fn read_page(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<i64>,
        wanted: usize,
    ) -> rusqlite::Result<Page> {
        let sieve = IndexFilter::new(self, filter)?;
        if sieve.is_empty {
            return Ok(Page::default());
        }
        let mut search = Search {
            grid: self,
            sieve,
            wanted,
            began: Instant::now(),
            page: Page::default(),
        };
        match order.column {
            Some(column) => search.read_in_column_order(column, order.is_descending, after)?,
            None => search.read_in_table_order(filter, after)?,
        }
        Ok(search.page)
    }

    /// Reads the row with this number.
    pub(crate) fn row(&self, n: i64) -> Result<Option<Row>, String> {
        self.read_row(n).map_err(|error| index_error(&error))
    }

    fn read_row(&self, n: i64) -> rusqlite::Result<Option<Row>> {
        let sql = "SELECT number, name, evidence, states, cells FROM rows WHERE n = ?1";
        let mut select = self.conn.prepare_cached(sql)?;
        let read = select.query_row([n], |row| {
            let cells: String = row.get(4)?;
            Ok(Row {
                n,
                number: row.get::<_, i64>(0)?.unsigned_abs(),
                name: row.get(1)?,
                evidence: row.get::<_, Option<i64>>(2)?.map(i64::unsigned_abs),
                states: row.get(3)?,
                cells: serde_json::from_str(&cells).unwrap_or_default(),
            })
        });
        read.optional()
    }

    /// The number of the last row in the index that is before a line of the file; 0 if there is none. Lines count from
    /// 1.
    pub(crate) fn row_before_line(&self, number: u64) -> Result<i64, String> {
        // Later rows have greater line numbers, so the row can be found by bisection.
        let (mut low, mut high) = (0, i64::try_from(self.meta.rows).unwrap_or(i64::MAX));
        let mut select = self
            .conn
            .prepare_cached("SELECT number FROM rows WHERE n = ?1")
            .map_err(|error| index_error(&error))?;
        while low < high {
            let middle = low + (high - low + 1) / 2;
            let read = select.query_row([middle], |row| row.get::<_, i64>(0));
            let line = read.map_err(|error| index_error(&error))?;
            match line.unsigned_abs() < number {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        Ok(low)
    }

    /// How many cells are in each state, in one column or in the whole table.
    pub(crate) fn counts(&self, column: Option<usize>) -> Result<Vec<(State, u64)>, String> {
        let read = || -> rusqlite::Result<Vec<(State, u64)>> {
            let sql = "SELECT state, count FROM counts WHERE col = ?1";
            let mut select = self.conn.prepare_cached(sql)?;
            let column = column.map_or(ANY, |column| column as i64);
            let rows = select.query_map([column], |row| {
                let count: i64 = row.get(1)?;
                Ok((State::from_byte(row.get(0)?), count.unsigned_abs()))
            })?;
            rows.collect()
        };
        read().map_err(|error| index_error(&error))
    }
}

/// A search for the rows of one page.
struct Search<'g> {
    grid: &'g Grid,
    sieve: IndexFilter,
    wanted: usize,
    began: Instant,
    page: Page,
}

impl Search<'_> {
    /// Reads rows in the order of the table. Of the database indexes that fit the filter, the one with the fewest rows
    /// is used.
    fn read_in_table_order(&mut self, filter: &Filter, after: Option<i64>) -> rusqlite::Result<()> {
        let conn = &self.grid.conn;
        let after = after.unwrap_or(0);
        let marked = filter.state.filter(|state| state.is_marked());
        let column = filter.column.map_or(ANY, |column| column as i64);
        let marks = match marked {
            Some(state) => {
                let sql = "SELECT count FROM counts WHERE col = ?1 AND state = ?2";
                let found = conn.query_row(sql, params![column, state.byte()], |row| row.get(0));
                Some((state, found.optional()?.unwrap_or(0_i64)))
            }
            None => None,
        };
        let site = filter.site.as_deref();
        let site = site.map(|name| site_key(self.grid, name)).transpose()?;
        match (marks, site.flatten()) {
            (Some((state, count)), site) if site.is_none_or(|(_, rows)| count <= rows) => {
                let sql = "SELECT n FROM marks WHERE col = ?1 AND state = ?2 AND n > ?3 ORDER BY n";
                let mut select = conn.prepare_cached(sql)?;
                let rows = select.query(params![column, state.byte(), after])?;
                self.collect_rows(rows).map(drop)
            }
            (_, Some((key, _))) => {
                let sql = "SELECT n FROM site_rows WHERE site = ?1 AND n > ?2 ORDER BY n";
                let mut select = conn.prepare_cached(sql)?;
                self.collect_rows(select.query(params![key, after])?)
                    .map(drop)
            }
            _ => {
                let mut select =
                    conn.prepare_cached("SELECT n FROM rows WHERE n > ?1 ORDER BY n")?;
                self.collect_rows(select.query([after])?).map(drop)
            }
        }
    }

    /// Reads rows in the order of a column's values. Rows without a value come last.
    fn read_in_column_order(
        &mut self,
        column: usize,
        is_descending: bool,
        after: Option<i64>,
    ) -> rusqlite::Result<()> {
        let conn = &self.grid.conn;
        let kind = self.grid.meta.columns[column].kind;
        let begin: Option<(Sql, i64)> = match after {
            None => None,
            Some(n) => {
                let sql = format!(
                    "SELECT coalesce(v, '') FROM (SELECT {} AS v FROM rows WHERE n = ?1)",
                    sort_expression(column, kind)
                );
                let key = conn.query_row(&sql, [n], |row| row.get(0)).optional()?;
                key.map(|key: Sql| (key, n))
            }
        };
        let is_behind_values = matches!(&begin, Some((Sql::Text(text), _)) if text.is_empty());
        let (sign, direction) = match is_descending {
            true => ("<", " DESC"),
            false => (">", ""),
        };
        if !is_behind_values {
            let from = match &begin {
                Some(_) => format!("AND (v, n) {sign} (?1, ?2)"),
                None => String::new(),
            };
            let sql = format!(
                "SELECT n FROM sort_{column} WHERE is_empty = 0 {from} ORDER BY v{direction}, n{direction}"
            );
            let mut select = conn.prepare_cached(&sql)?;
            let rows = match &begin {
                Some((key, n)) => select.query(params![key, n])?,
                None => select.query(())?,
            };
            if self.collect_rows(rows)? {
                return Ok(());
            }
        }
        let after = begin.filter(|_| is_behind_values).map_or(0, |(_, n)| n);
        let sql = format!("SELECT n FROM sort_{column} WHERE is_empty = 1 AND n > ?1 ORDER BY n");
        let mut select = conn.prepare_cached(&sql)?;
        self.collect_rows(select.query([after])?).map(drop)
    }

    /// Collects the rows that match the filter. Returns whether the page is full.
    fn collect_rows(&mut self, mut rows: rusqlite::Rows<'_>) -> rusqlite::Result<bool> {
        let sql = "SELECT states, sites FROM rows WHERE n = ?1";
        let mut check = self.grid.conn.prepare_cached(sql)?;
        let mut last = None;
        while let Some(row) = rows.next()? {
            // The time limit counts only if few of the checked rows match. Otherwise the page will soon be full.
            let is_late =
                self.page.examined > 4 * self.wanted as u64 && self.began.elapsed() >= SEARCH_TIME;
            let is_full = self.page.rows.len() >= self.wanted
                || self.page.examined >= MOST_EXAMINED
                || is_late;
            // At least one row is checked, so that the next page always begins after this one.
            if is_full && (last.is_some() || !self.page.rows.is_empty()) {
                self.page.next = last.or(self.page.rows.last().map(|row| row.n));
                return Ok(true);
            }
            let n: i64 = row.get(0)?;
            self.page.examined += 1;
            last = Some(n);
            let is_taken = check.query_row([n], |row| {
                let sites = row.get_ref(1)?.as_str()?;
                Ok(self.sieve.matches(row.get_ref(0)?.as_blob()?, sites))
            })?;
            if is_taken {
                self.page.rows.extend(self.grid.read_row(n)?);
            }
        }
        Ok(false)
    }
}

/// The SQL expression for sorting by a column. It is NULL for an empty cell.
fn sort_expression(column: usize, kind: Kind) -> String {
    let value = format!("json_extract(cells, '$[{column}]')");
    match kind {
        Kind::Integer | Kind::Number => format!("CAST(nullif({value}, '') AS REAL)"),
        Kind::Text => format!("nullif(lower(substr({value}, 1, {SORTED_CHARS})), '')"),
    }
}

/// Whether the index is already sorted by this column.
pub(super) fn is_sorted(grid: &Grid, column: usize) -> bool {
    let sql = "SELECT 1 FROM sqlite_schema WHERE name = ?1";
    let found = grid
        .conn
        .query_row(sql, [format!("sort_{column}")], |_| Ok(()));
    found.is_ok()
}

/// Sorts a copy of an index by a column. The copy then replaces the index.
pub(super) fn sort(index: &Path, column: usize, kind: Kind) -> Result<(), String> {
    building::build_atomically(index, |part| {
        let copied = fs::copy(index, part);
        copied.map_err(|error| format!("cannot write {}: {error}", part.display()))?;
        write_order(part, column, kind).map_err(|error| index_error(&error))
    })
}

fn write_order(part: &Path, column: usize, kind: Kind) -> rusqlite::Result<()> {
    let conn = Connection::open(part)?;
    // An incomplete copy is thrown away, so no journal is needed.
    conn.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536",
    )?;
    let value = sort_expression(column, kind);
    conn.execute_batch(&format!(
        "BEGIN;
        CREATE TABLE IF NOT EXISTS sort_{column} (is_empty INTEGER, v ANY, n INTEGER, PRIMARY KEY (is_empty, v, n))
            STRICT, WITHOUT ROWID;
        DELETE FROM sort_{column};
        INSERT INTO sort_{column} SELECT v IS NULL, coalesce(v, ''), n FROM (SELECT {value} AS v, n FROM rows)
            ORDER BY 1, 2, 3;
        COMMIT"
    ))
}

#[cfg(test)]
mod tests;
