//! The collection `dispatchers`: the reports of the dispatchers of a group about themselves, for people and for each
//! other (see [`crate::journal`]). It does not decide which dispatcher serves.
//!
//! | member | contents |
//! |---|---|
//! | `_id` | `group` and `instance` |
//! | `name` | the machine |
//! | `record` | the last record that it has applied or added |
//! | `serves` | whether it has the lease |
//! | `seen_at` | by the server's clock |

use mongodb::Collection;
use mongodb::bson::{Document, RawDocument, RawDocumentBuf, doc, rawdoc};

use super::Mongo;
use super::command::{Db, number, with_timeout};
use super::fault::Fault;
use super::journal::{JOURNAL, extent, to_raw};
use super::members::integer;
use super::{lease, snapshots};
use crate::error::StoreError;
use crate::journal::{DispatcherReport, SeenDispatcher, Survey};

const DISPATCHERS: &str = "dispatchers";

/// A dispatcher that has not reported for this long is removed from the list. It was stopped for good, or its state
/// folder became another instance when the machine booted.
const FORGOTTEN_AFTER_MS: u64 = 24 * 3_600_000;

async fn survey(db: &Db, group: &str, own: Option<DispatcherReport>) -> Result<Survey, Fault> {
    if let Some(own) = own {
        put_report(db, group, &own).await?;
    }
    let dispatchers = list(db, group).await?;
    let (seen, forgotten): (Vec<_>, Vec<_>) = dispatchers
        .into_iter()
        .partition(|one| one.seen_ago_ms < FORGOTTEN_AFTER_MS);
    for one in forgotten {
        let gone = to_raw(&doc! {"_id": key(group, one.report.instance)})?;
        db.delete_matching(DISPATCHERS, gone).await?.into_result()?;
    }
    Ok(Survey {
        extent: extent(db, group).await?,
        journal_bytes: journal_bytes(db).await?,
        snapshot: snapshots::newest(db, group).await?,
        hand_over_asked: lease::requested_hand_over_epoch(db, group).await?,
        dispatchers: seen,
    })
}

async fn put_report(db: &Db, group: &str, own: &DispatcherReport) -> Result<(), Fault> {
    let set = rawdoc! {
        "name": own.name.as_str(),
        "record": own.record as i64,
        "serves": own.serves,
        "seen_at": "$$NOW",
    };
    let statement = rawdoc! {
        "q": {"_id": to_raw(&key(group, own.instance))?},
        "u": [{"$set": set}],
        "upsert": true,
    };
    db.upsert(DISPATCHERS, &[statement]).await?.into_result()
}

/// All dispatchers of a group, in the order of their names.
async fn list(db: &Db, group: &str) -> Result<Vec<SeenDispatcher>, Fault> {
    let ago = doc! {"$subtract": ["$$NOW", "$seen_at"]};
    let pipeline = [
        doc! {"$match": {"_id.group": group}},
        doc! {"$set": {"seen_ago_ms": ago}},
        doc! {"$sort": {"name": 1, "_id": 1}},
    ];
    let collection: Collection<RawDocumentBuf> = db.database.collection(DISPATCHERS);
    let find = async {
        let mut cursor = collection.aggregate(pipeline).await?;
        let mut found = Vec::new();
        while cursor.advance().await? {
            found.extend(dispatcher_from(cursor.current()));
        }
        Ok(found)
    };
    with_timeout(find).await
}

fn dispatcher_from(stored: &RawDocument) -> Option<SeenDispatcher> {
    let member = |name| integer(stored, name);
    Some(SeenDispatcher {
        report: DispatcherReport {
            instance: integer(stored.get_document("_id").ok()?, "instance")? as u64,
            name: stored.get_str("name").ok()?.to_owned(),
            record: member("record")? as u64,
            serves: stored.get_bool("serves").ok()?,
        },
        seen_ago_ms: member("seen_ago_ms")?.max(0) as u64,
    })
}

/// The size of the journals of all groups. Usually there is only one group.
async fn journal_bytes(db: &Db) -> Result<u64, Fault> {
    let answer = db.run(rawdoc! {"collStats": JOURNAL}).await?;
    Ok(number(&answer, "size").max(0) as u64)
}

fn key(group: &str, instance: u64) -> Document {
    doc! {"group": group, "instance": instance as i64}
}

impl Mongo {
    pub(crate) async fn report_and_survey_dispatchers(
        &self,
        group: &str,
        own: Option<DispatcherReport>,
    ) -> Result<Survey, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| survey(&db, &group, own).await)
            .await
    }
}
