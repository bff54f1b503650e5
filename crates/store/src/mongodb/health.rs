//! The collection `health`.

use async_trait::async_trait;
use mongodb::Collection;
use mongodb::bson::{RawDocument, RawDocumentBuf, doc, rawdoc};

use super::Mongo;
use super::command::{Db, with_timeout};
use super::fault::Fault;
use crate::error::StoreError;
use crate::health::HealthState;
use crate::site_clock::clamp_to_i64;
use crate::store::Health;

const HEALTH: &str = "health";

/// The server's error code for a key that already exists.
const DUPLICATE_KEY: i32 = 11_000;

pub(super) async fn load_all(db: &Db) -> Result<Vec<HealthState>, Fault> {
    let health: Collection<RawDocumentBuf> = db.database.collection(HEALTH);
    let find = async {
        let mut cursor = health.find(doc! {}).sort(doc! {"_id": 1}).await?;
        let mut all = Vec::new();
        while cursor.advance().await? {
            all.push(cursor.current().to_owned());
        }
        Ok(all)
    };
    let stored: Vec<RawDocumentBuf> = with_timeout(find).await?;
    stored.iter().map(|one| parse_health(one)).collect()
}

fn parse_health(stored: &RawDocument) -> Result<HealthState, Fault> {
    let broken = |name: &str| {
        Fault::InvalidEntry(format!(
            "`{name}` of a stored health is not as webfill writes it"
        ))
    };
    let text = |name: &str| match stored.get_str(name) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(broken(name)),
    };
    Ok(HealthState {
        id: text("_id")?,
        revision: stored
            .get_i64("revision")
            .map_err(|_| broken("revision"))?
            .unsigned_abs(),
        writer: text("writer")?,
        cursor: text("cursor")?.parse().map_err(|_| broken("cursor"))?,
        state: text("state")?,
    })
}

/// Stores states. Returns for each whether it has replaced the previous revision. Each is a command of its own,
/// because the number of matched documents is returned per command.
pub(super) async fn put(db: &Db, states: &[HealthState]) -> Result<Vec<bool>, Fault> {
    let mut replaced = Vec::with_capacity(states.len());
    for state in states {
        let updated = db.update(HEALTH, &[update_statement(state)]).await?;
        let fault = updated
            .failed
            .iter()
            .find(|(_, code, _)| *code != DUPLICATE_KEY);
        if let Some((_, code, message)) = fault {
            return Err(Fault::from_statement_error(*code, message));
        }
        replaced.push(updated.failed.is_empty() && updated.matched == 1);
    }
    Ok(replaced)
}

/// The statement that stores a state. It matches the previous revision, and also a state that this writer has already
/// stored, because a command may be sent twice.
fn update_statement(state: &HealthState) -> RawDocumentBuf {
    let revision = clamp_to_i64(state.revision);
    let stored = rawdoc! {
        "_id": state.id.as_str(),
        "revision": revision,
        "writer": state.writer.as_str(),
        "cursor": state.cursor.to_string(),
        "state": state.state.as_str(),
    };
    rawdoc! {
        "q": {"_id": state.id.as_str(), "$or": [
            {"revision": revision - 1},
            {"revision": revision, "writer": state.writer.as_str()},
        ]},
        "u": stored,
        "upsert": state.revision == 1,
    }
}

#[async_trait]
impl Health for Mongo {
    async fn health(&self) -> Result<Vec<HealthState>, StoreError> {
        self.call(async move |db: Db| load_all(&db).await).await
    }

    async fn replace_health_if_current(
        &self,
        states: Vec<HealthState>,
    ) -> Result<Vec<bool>, StoreError> {
        self.call(async move |db: Db| put(&db, &states).await).await
    }
}
