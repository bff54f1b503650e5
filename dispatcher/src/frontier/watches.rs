//! The watches of a fleet and the records of their runs, in the file of the frontier, so that a run
//! begins in the same transaction in which it is recorded. Records stay when their watch is removed.

use rusqlite::{OptionalExtension, params};
use webfill_api::WatchRun;

use super::{Frontier, FrontierError};

/// A watch as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptWatch {
    /// As it was given.
    pub json: String,
    pub paused: bool,
    /// Since when it is waited for its first due time, in milliseconds since the epoch.
    pub since_ms: i64,
}

impl Frontier {
    /// All watches, by name.
    pub fn watches(&mut self) -> Result<Vec<KeptWatch>, FrontierError> {
        self.guarded("read the watches", |frontier| {
            let sql = "SELECT watch, paused, since_ms FROM watches ORDER BY name";
            let mut select = frontier.db.prepare_cached(sql)?;
            let kept = |row: &rusqlite::Row<'_>| {
                Ok(KeptWatch {
                    json: row.get(0)?,
                    paused: row.get(1)?,
                    since_ms: row.get(2)?,
                })
            };
            select.query_map([], kept)?.collect()
        })
    }

    /// Keeps a watch, new or changed.
    pub fn keep_watch(&mut self, name: &str, watch: &KeptWatch) -> Result<(), FrontierError> {
        self.guarded("keep a watch", |frontier| {
            let sql = "INSERT OR REPLACE INTO watches (name, watch, paused, since_ms)
                       VALUES (?1, ?2, ?3, ?4)";
            let values = params![name, watch.json, watch.paused, watch.since_ms];
            frontier.db.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    /// Forgets a watch; the records of its runs stay.
    pub fn forget_watch(&mut self, name: &str) -> Result<(), FrontierError> {
        self.guarded("forget a watch", |frontier| {
            let sql = "DELETE FROM watches WHERE name = ?1";
            frontier.db.prepare_cached(sql)?.execute([name]).map(drop)
        })
    }

    /// Records a run, new or changed.
    pub fn record_run(&mut self, watch: &str, run: &WatchRun) -> Result<(), FrontierError> {
        self.guarded("record a run", |frontier| {
            let record = serde_json::to_string(run)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            let sql = "INSERT OR REPLACE INTO watch_runs (watch, number, record)
                       VALUES (?1, ?2, ?3)";
            let values = params![watch, run.number as i64, record];
            frontier.db.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    /// The last runs of a watch, the latest first. A record that this version cannot read is passed
    /// over.
    pub fn runs_of(&mut self, watch: &str, most: u64) -> Result<Vec<WatchRun>, FrontierError> {
        self.guarded("read the runs of a watch", |frontier| {
            let sql = "SELECT record FROM watch_runs WHERE watch = ?1
                       ORDER BY number DESC LIMIT ?2";
            let mut select = frontier.db.prepare_cached(sql)?;
            let values = params![watch, most.min(i64::MAX as u64) as i64];
            let records = select.query_map(values, |row| row.get::<_, String>(0))?;
            let records: Vec<String> = records.collect::<rusqlite::Result<_>>()?;
            let read = |record: &String| serde_json::from_str(record).ok();
            Ok(records.iter().filter_map(read).collect())
        })
    }

    /// The number of a watch's last run, 0 if there was none.
    pub fn last_run_number(&mut self, watch: &str) -> Result<u64, FrontierError> {
        self.guarded("read the runs of a watch", |frontier| {
            let sql = "SELECT max(number) FROM watch_runs WHERE watch = ?1";
            let mut select = frontier.db.prepare_cached(sql)?;
            let number = select.query_row([watch], |row| row.get::<_, Option<i64>>(0));
            Ok(number.optional()?.flatten().unwrap_or(0) as u64)
        })
    }
}
