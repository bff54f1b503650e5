//! The table `health`.

use rusqlite::{Connection, params};

use super::Sqlite;
use super::fault::Fault;
use crate::error::StoreError;
use crate::health::HealthState;
use crate::site_clock::clamp_to_i64;
use crate::store::Health;
use async_trait::async_trait;

const INSERT: &str = "
INSERT INTO health (_id, revision, writer, cursor, state) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (_id) DO NOTHING";

const UPDATE: &str = "
UPDATE health SET revision = ?2, writer = ?3, cursor = ?4, state = ?5
WHERE _id = ?1 AND revision = ?2 - 1";

pub(super) fn load_all(conn: &Connection) -> Result<Vec<HealthState>, Fault> {
    let sql = "SELECT _id, revision, writer, cursor, state FROM health ORDER BY _id";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(())?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let cursor: String = row.get(3)?;
        all.push(HealthState {
            id: row.get(0)?,
            revision: row.get::<_, i64>(1)?.unsigned_abs(),
            writer: row.get(2)?,
            cursor: cursor
                .parse()
                .map_err(|error| Fault::InvalidEntry(format!("a stored cursor: {error}")))?,
            state: row.get(4)?,
        });
    }
    Ok(all)
}

/// Stores states. Returns for each whether it has replaced the previous revision.
pub(super) fn replace_if_current(
    conn: &Connection,
    states: &[HealthState],
) -> Result<Vec<bool>, Fault> {
    let mut replaced = Vec::with_capacity(states.len());
    for state in states {
        let sql = if state.revision == 1 { INSERT } else { UPDATE };
        let changed = conn.prepare_cached(sql)?.execute(params![
            state.id,
            clamp_to_i64(state.revision),
            state.writer,
            state.cursor.to_string(),
            state.state,
        ])?;
        replaced.push(changed == 1);
    }
    Ok(replaced)
}

#[async_trait]
impl Health for Sqlite {
    async fn health(&self) -> Result<Vec<HealthState>, StoreError> {
        self.read(load_all).await
    }

    /// Stores all states in one transaction.
    async fn replace_health_if_current(
        &self,
        states: Vec<HealthState>,
    ) -> Result<Vec<bool>, StoreError> {
        self.write(move |conn| replace_if_current(conn, &states))
            .await
    }
}
