//! The watches of a fleet and the records of their runs. They are in the frontier's file, so that a run is started and
//! recorded in the same transaction. Records stay when their watch is removed.

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use webfill_api::{RunEnd, WatchRun};

use super::error::FrontierError;
use super::parts::Watches;

/// The maximum number of kept records of runs per watch.
const MOST_RUNS: i64 = 1_000;

/// A watch as stored in the frontier's file.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredWatch {
    /// The watch as it was given, as JSON.
    pub json: String,
    pub paused: bool,
    /// When the watch began to wait for its first due time; milliseconds since the epoch.
    pub since_ms: i64,
    /// Whether a run is requested and has not started.
    pub asked: bool,
}

/// The data that a current run needs to continue after a restart. Kept until the run has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunContinuation {
    /// The watch as it was when the run began, without later changes.
    pub watch: Value,
    /// How the run ends once none of its tasks is leased; `None`: it continues.
    pub ending: Option<(RunEnd, Option<String>)>,
}

/// The record of a run as stored.
#[derive(Serialize, Deserialize)]
struct StoredRun {
    #[serde(flatten)]
    run: WatchRun,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    under_way: Option<RunContinuation>,
}

impl Watches<'_> {
    /// All watches, by name.
    pub fn all(&mut self) -> Result<Vec<(String, StoredWatch)>, FrontierError> {
        self.0.run("read the watches", |cx| {
            let sql = "SELECT name, watch, paused, since_ms, asked FROM watches ORDER BY name";
            let mut select = cx.db.prepare_cached(sql)?;
            let kept = |row: &rusqlite::Row<'_>| {
                let kept = StoredWatch {
                    json: row.get(1)?,
                    paused: row.get(2)?,
                    since_ms: row.get(3)?,
                    asked: row.get(4)?,
                };
                Ok((row.get(0)?, kept))
            };
            select.query_map([], kept)?.collect()
        })
    }

    /// Stores a new or changed watch.
    pub fn save(&mut self, name: &str, watch: &StoredWatch) -> Result<(), FrontierError> {
        self.0.run("keep a watch", |cx| {
            let sql = "INSERT OR REPLACE INTO watches (name, watch, paused, since_ms, asked)
                       VALUES (?1, ?2, ?3, ?4, ?5)";
            let values = params![name, watch.json, watch.paused, watch.since_ms, watch.asked];
            cx.db.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    /// Removes a watch. Returns whether there was one. The records of its runs stay.
    pub fn delete(&mut self, name: &str) -> Result<bool, FrontierError> {
        self.0.run("forget a watch", |cx| {
            let sql = "DELETE FROM watches WHERE name = ?1";
            Ok(cx.db.prepare_cached(sql)?.execute([name])? > 0)
        })
    }

    /// Records a new or changed run. `under_way`: the data to continue it, unless it has ended.
    pub fn record_run(
        &mut self,
        watch: &str,
        run: &WatchRun,
        under_way: Option<RunContinuation>,
    ) -> Result<(), FrontierError> {
        self.0.run("record a run", |cx| {
            let kept = StoredRun {
                run: run.clone(),
                under_way,
            };
            let record = serde_json::to_string(&kept)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            let sql = "INSERT OR REPLACE INTO watch_runs (watch, number, record)
                       VALUES (?1, ?2, ?3)";
            let number = run.number as i64;
            let values = params![watch, number, record];
            cx.db.prepare_cached(sql)?.execute(values)?;
            let sql = "DELETE FROM watch_runs WHERE watch = ?1 AND number <= ?2";
            let values = params![watch, number - MOST_RUNS];
            cx.db.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    /// The last runs of a watch, the latest first. Skips records that this version cannot read.
    pub fn list_runs(&mut self, watch: &str, most: u64) -> Result<Vec<WatchRun>, FrontierError> {
        self.0.run("read the runs of a watch", |cx| {
            let sql = "SELECT record FROM watch_runs WHERE watch = ?1
                       ORDER BY number DESC LIMIT ?2";
            let mut select = cx.db.prepare_cached(sql)?;
            let values = params![watch, most.min(i64::MAX as u64) as i64];
            let records = select.query_map(values, |row| row.get::<_, String>(0))?;
            let records: Vec<String> = records.collect::<rusqlite::Result<_>>()?;
            let read = |record: &String| serde_json::from_str(record).ok();
            Ok(records.iter().filter_map(read).collect())
        })
    }

    /// The data that an unfinished run needs to continue; `None` for a run that has ended.
    pub fn run_under_way(
        &mut self,
        watch: &str,
        number: u64,
    ) -> Result<Option<RunContinuation>, FrontierError> {
        self.0.run("read a run of a watch", |cx| {
            let sql = "SELECT record FROM watch_runs WHERE watch = ?1 AND number = ?2";
            let mut select = cx.db.prepare_cached(sql)?;
            let values = params![watch, number as i64];
            let record = select.query_row(values, |row| row.get::<_, String>(0));
            let kept = record.optional()?;
            let kept = kept.and_then(|record| serde_json::from_str::<StoredRun>(&record).ok());
            Ok(kept.and_then(|kept| kept.under_way))
        })
    }

    /// The number of a watch's last run; 0 if there was none.
    pub fn last_run_number(&mut self, watch: &str) -> Result<u64, FrontierError> {
        self.0.run("read the runs of a watch", |cx| {
            let sql = "SELECT max(number) FROM watch_runs WHERE watch = ?1";
            let mut select = cx.db.prepare_cached(sql)?;
            let number = select.query_row([watch], |row| row.get::<_, Option<i64>>(0));
            Ok(number.optional()?.flatten().unwrap_or(0) as u64)
        })
    }
}
