//! Reads a dataset's documents in chunks, from the first one or after a given one.

use std::time::Duration;

use mongodb::Collection;
use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use mongodb::error::{Error, ErrorKind};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{DatasetDocument, DatasetSource};
use crate::mongodb::command::Db;
use crate::mongodb::fault::Fault;
use crate::mongodb::value;

/// How many documents a chunk has. It may also end earlier, with the document that makes it larger than
/// [`CHUNK_BYTES`].
const CHUNK: usize = 500;
const CHUNK_BYTES: usize = 4 << 20;

/// How long an answer may take. A query that matches few of many documents may be slow.
const ANSWERED_WITHIN: Duration = Duration::from_secs(300);

/// How long to wait before an unavailable server is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Error codes of a lost cursor: it has timed out, or another member is now the primary.
const CURSOR_LOST: [i32; 4] = [43, 175, 206, 237];

pub(super) type Chunk = Result<Vec<DatasetDocument>, Fault>;

/// Sends the documents in chunks until the last one. An error is the last item. Stops when the receiver is dropped.
pub(super) async fn stream_documents(
    db: Db,
    source: DatasetSource,
    mut after: Option<Bson>,
    chunks: mpsc::Sender<Chunk>,
) {
    let mut logged_after = None;
    loop {
        match try_stream_documents(&db, &source, &mut after, &chunks).await {
            Ok(()) => return,
            Err(Fault::Unavailable(reason)) if !chunks.is_closed() => {
                // This is logged once for each document that reading got stuck after.
                let place = Some(after.clone());
                if logged_after != place {
                    tracing::warn!(
                        event = "dataset_away",
                        reason,
                        "reading the dataset waits for its server"
                    );
                    logged_after = place;
                }
                tokio::time::sleep(RETRY_EVERY).await;
            }
            Err(fault) => {
                // If the receiver is dropped, nobody needs the error.
                let _ = chunks.send(Err(fault)).await;
                return;
            }
        }
    }
}

/// Reads the documents after `after`, and updates it with every chunk that was received.
async fn try_stream_documents(
    db: &Db,
    source: &DatasetSource,
    after: &mut Option<Bson>,
    chunks: &mpsc::Sender<Chunk>,
) -> Result<(), Fault> {
    let collection: Collection<RawDocumentBuf> = db.database.collection(&source.collection);
    let mut find = collection
        .find(query(source, after.as_ref()))
        .sort(doc! {"_id": 1})
        .batch_size(CHUNK as u32)
        // The server has to sort the results if no index fits the query.
        .allow_disk_use(true);
    if let Some(projection) = &source.projection {
        find = find.projection(projection.clone());
    }
    let projected = source.projected_members();
    let mut cursor = with_read_timeout(async { find.await }).await?;
    let mut chunk = Vec::new();
    let mut bytes = 0;
    loop {
        let is_end = !with_read_timeout(cursor.advance()).await?;
        if !is_end {
            bytes += cursor.current().as_bytes().len();
            chunk.push(document_from(cursor.current(), &projected)?);
        }
        let is_full = chunk.len() >= CHUNK || bytes > CHUNK_BYTES;
        if is_full || (is_end && !chunk.is_empty()) {
            let (last, taken) = (last_id(&chunk)?, std::mem::take(&mut chunk));
            if chunks.send(Ok(taken)).await.is_err() {
                return Ok(());
            }
            *after = Some(last);
            bytes = 0;
        }
        if is_end {
            return Ok(());
        }
    }
}

/// The source's query, limited to ids after `after`. `$expr` compares ids of different types in the order of sorting; a
/// plain `$gt` would match only ids of the same type.
fn query(source: &DatasetSource, after: Option<&Bson>) -> Document {
    let Some(after) = after else {
        return source.query.clone();
    };
    let behind = doc! {"$expr": {"$gt": ["$_id", {"$literal": after.clone()}]}};
    doc! {"$and": [behind, source.query.clone()]}
}

async fn with_read_timeout<R>(
    work: impl Future<Output = mongodb::error::Result<R>>,
) -> Result<R, Fault> {
    match tokio::time::timeout(ANSWERED_WITHIN, work).await {
        Ok(done) => done.map_err(to_fault),
        Err(_) => Err(Fault::Unavailable(format!(
            "the server has not answered for {} s",
            ANSWERED_WITHIN.as_secs()
        ))),
    }
}

fn to_fault(error: Error) -> Fault {
    match error.kind.as_ref() {
        ErrorKind::Command(command) if CURSOR_LOST.contains(&command.code) => {
            Fault::Unavailable(String::from("the server has lost the cursor"))
        }
        _ => Fault::from(error),
    }
}

fn document_from(stored: &RawDocument, projected: &[String]) -> Result<DatasetDocument, Fault> {
    let raw_id = stored.get("_id").ok().flatten();
    let id = raw_id.and_then(|id| Bson::try_from(id).ok());
    let id = id.ok_or_else(|| Fault::Unusable(String::from("a document has no readable `_id`")))?;
    let mut members = value::object(stored);
    members.shift_remove("_id");
    for name in projected {
        members.entry(name.as_str()).or_insert(Value::Null);
    }
    Ok(DatasetDocument {
        record: record_id(&id),
        id: id.into_canonical_extjson().to_string(),
        members,
    })
}

fn last_id(chunk: &[DatasetDocument]) -> Result<Bson, Fault> {
    let last = chunk.last().map_or("null", |document| &document.id);
    super::parse_document_id(last).map_err(Fault::Unusable)
}

/// The id of a document's record.
pub(super) fn record_id(id: &Bson) -> String {
    match id {
        Bson::String(text) => text.clone(),
        Bson::ObjectId(id) => id.to_hex(),
        Bson::Int32(number) => number.to_string(),
        Bson::Int64(number) => number.to_string(),
        other => other.clone().into_canonical_extjson().to_string(),
    }
}
