//! The supervisors that may hold leases, stored by name. They outlive the dispatcher, which must
//! know after a restart whose leases to wait for.

use rusqlite::params;

use super::error::FrontierError;
use super::parts::Supervisors;

/// A supervisor that may hold leases, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSupervisor {
    pub name: String,
    /// Distinguishes two supervisors of the same name; see [`webfill_wire::Hello`].
    pub instance: u64,
    pub longest_request_ms: u64,
    /// How long the supervisor has been silent, added up over restarts of the dispatcher.
    pub silent_ms: u64,
}

impl Supervisors<'_> {
    /// All stored supervisors, by name.
    pub fn all(&mut self) -> Result<Vec<SavedSupervisor>, FrontierError> {
        self.0.run("list the supervisors", |cx| {
            let sql =
                "SELECT name, home, longest_request_ms, silent_ms FROM supervisors ORDER BY name";
            let mut select = cx.db.prepare_cached(sql)?;
            let kept = select.query_map([], |row| {
                Ok(SavedSupervisor {
                    name: row.get(0)?,
                    instance: row.get::<_, i64>(1)? as u64,
                    longest_request_ms: row.get::<_, i64>(2)? as u64,
                    silent_ms: row.get::<_, i64>(3)? as u64,
                })
            })?;
            kept.collect()
        })
    }

    pub fn save(&mut self, kept: &SavedSupervisor) -> Result<(), FrontierError> {
        self.0.run("keep a supervisor", |cx| {
            let sql = "INSERT OR REPLACE INTO supervisors VALUES (?1, ?2, ?3, ?4)";
            let (longest_ms, silent_ms) = (kept.longest_request_ms as i64, kept.silent_ms as i64);
            let values = params![kept.name, kept.instance as i64, longest_ms, silent_ms];
            cx.db.prepare_cached(sql)?.execute(values)?;
            Ok(())
        })
    }

    /// Stores how long a supervisor has been silent.
    pub fn save_silence(&mut self, name: &str, silent_ms: u64) -> Result<(), FrontierError> {
        self.0.run("note a supervisor's silence", |cx| {
            let sql = "UPDATE supervisors SET silent_ms = ?2 WHERE name = ?1";
            let values = params![name, silent_ms as i64];
            cx.db.prepare_cached(sql)?.execute(values)?;
            Ok(())
        })
    }

    pub fn delete(&mut self, name: &str) -> Result<(), FrontierError> {
        self.0.run("forget a supervisor", |cx| {
            let sql = "DELETE FROM supervisors WHERE name = ?1";
            cx.db.prepare_cached(sql)?.execute([name])?;
            Ok(())
        })
    }
}
