//! Reads a whole collection in the order of creation, while others write.

use std::collections::HashMap;
use std::io;

use async_trait::async_trait;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::{Collection, Cursor};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::command::{Db, with_timeout};
use super::fault::Fault;
use super::{Mongo, value};
use crate::record::explain_doubts;
use crate::store::{Export, ExportError, ExportFilter, ExportKind};

/// The most documents in one answer of the server. An answer also ends at 16 MB.
pub(super) const STEP: u32 = 500;

/// A step ends at this size in bytes, including the document that exceeds it.
pub(super) const STEP_BYTES: usize = 1 << 20;

/// The result of one step.
pub(super) type Step = Result<Vec<Value>, Fault>;

/// Members of records and pages that only the store itself uses. Exports leave them out.
const OWN_OF_RECORDS: &[&str] = &[
    "version",
    "crawls",
    "positions",
    "origins",
    "unwritten",
    "given",
    "written",
];
const OWN_OF_PAGES: &[&str] = &[
    "epoch",
    "list",
    "snapshot",
    "task",
    "unlogged",
    "validators",
];

/// Sends the documents of a collection in steps until its end. An error is the last step. Stops when the receiver is
/// dropped.
pub(super) async fn stream_rows(
    db: Db,
    kind: ExportKind,
    filter: ExportFilter,
    steps: mpsc::Sender<Step>,
) {
    if let Err(fault) = try_stream_rows(&db, kind, &filter, &steps).await {
        // If the receiver is dropped, nobody needs the error.
        let _ = steps.send(Err(fault)).await;
    }
}

async fn try_stream_rows(
    db: &Db,
    kind: ExportKind,
    filter: &ExportFilter,
    steps: &mpsc::Sender<Step>,
) -> Result<(), Fault> {
    let name = match kind {
        ExportKind::Pages => "pages",
        ExportKind::Records => "records",
    };
    let collection: Collection<RawDocumentBuf> = db.database.collection(name);
    let find = collection
        .find(query(kind, filter))
        .sort(doc! {"$natural": 1})
        .batch_size(STEP)
        // The receiver may be slow, so the server must not close the cursor after a timeout.
        .no_cursor_timeout(true);
    let cursor = with_timeout(async { find.await }).await?;
    let parents_from = (kind == ExportKind::Records && filter.parents).then_some(db);
    send_cursor_rows(kind, cursor, parents_from, steps).await
}

/// Sends the pages with these keys in steps. If reading fails, the error is the last step.
pub(super) async fn stream_pages(db: Db, ids: Vec<String>, steps: mpsc::Sender<Step>) {
    let find = async {
        let collection: Collection<RawDocumentBuf> = db.database.collection("pages");
        let find = collection.find(doc! {"_id": {"$in": ids}}).batch_size(STEP);
        let cursor = with_timeout(async { find.await }).await?;
        send_cursor_rows(ExportKind::Pages, cursor, None, &steps).await
    };
    if let Err(fault) = find.await {
        let _ = steps.send(Err(fault)).await;
    }
}

/// Sends all documents of a cursor. If `parents_from` is given, rows get the fields of their parents from that
/// database.
async fn send_cursor_rows(
    kind: ExportKind,
    mut cursor: Cursor<RawDocumentBuf>,
    parents_from: Option<&Db>,
    steps: &mpsc::Sender<Step>,
) -> Result<(), Fault> {
    let mut step = Vec::new();
    let mut bytes = 0;
    while with_timeout(cursor.advance()).await? {
        bytes += cursor.current().as_bytes().len();
        step.push(row(kind, cursor.current()));
        if step.len() >= STEP as usize || bytes >= STEP_BYTES {
            bytes = 0;
            add_parents(parents_from, &mut step).await?;
            if steps.send(Ok(std::mem::take(&mut step))).await.is_err() {
                return Ok(());
            }
        }
    }
    add_parents(parents_from, &mut step).await?;
    // If the receiver is dropped, nobody needs the rest.
    let _ = steps.send(Ok(step)).await;
    Ok(())
}

async fn add_parents(db: Option<&Db>, step: &mut [Value]) -> Result<(), Fault> {
    let Some(db) = db else {
        return Ok(());
    };
    let mut keys: Vec<String> = step.iter().filter_map(parent_of).collect();
    keys.sort_unstable();
    keys.dedup();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut fields: HashMap<String, Value> = HashMap::new();
    for parent in db.find_by_ids("records", &keys).await? {
        if let (Ok(key), Some(of_parent)) = (
            parent.get_str("_id"),
            value::object(&parent).remove("fields"),
        ) {
            fields.insert(key.to_owned(), of_parent);
        }
    }
    for row in step {
        if let Some(of_parent) = parent_of(row).and_then(|key| fields.get(&key)) {
            row["parent_fields"] = of_parent.clone();
        }
    }
    Ok(())
}

/// The key of the record that a row's page was fetched for.
fn parent_of(record: &Value) -> Option<String> {
    record["row"]["parent"].as_str().map(str::to_owned)
}

fn query(kind: ExportKind, filter: &ExportFilter) -> Document {
    let of_crawl = match kind {
        ExportKind::Pages => "",
        ExportKind::Records => "crawls.",
    };
    let mut query = Document::new();
    let wanted = [("app_id", &filter.app_id), ("crawl_id", &filter.crawl_id)];
    for (name, wanted) in wanted {
        if let Some(wanted) = wanted {
            query.insert(format!("{of_crawl}{name}"), wanted);
        }
    }
    if kind == ExportKind::Records && query.len() > 1 {
        // Both conditions must hold for the same crawl.
        query = doc! {"crawls": {"$elemMatch": {
            "app_id": filter.app_id.as_deref(), "crawl_id": filter.crawl_id.as_deref(),
        }}};
    }
    if let Some(dataset) = &filter.dataset {
        query.insert("dataset", dataset);
    }
    query
}

/// Converts a stored document to the JSON that all backends export.
pub(super) fn row(kind: ExportKind, stored: &mongodb::bson::RawDocument) -> Value {
    let mut members: Map<String, Value> = value::object(stored);
    let own = match kind {
        ExportKind::Records => OWN_OF_RECORDS,
        ExportKind::Pages => OWN_OF_PAGES,
    };
    members.retain(|name, _| !own.contains(&name.as_str()));
    explain_doubts(&mut members);
    Value::Object(members)
}

/// Passes the content of the steps to `each`. Returns how many rows there were.
async fn forward_rows(
    mongo: &Mongo,
    mut steps: mpsc::Receiver<Step>,
    each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
) -> Result<u64, ExportError> {
    let mut received = 0;
    while let Some(step) = steps.recv().await {
        for one in step.map_err(|fault| fault.into_error(&mongo.db.store))? {
            each(one)?;
            received += 1;
        }
    }
    Ok(received)
}

#[async_trait]
impl Export for Mongo {
    async fn export(
        &self,
        kind: ExportKind,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError> {
        // The channel holds one step, so one step at most waits while the next is read.
        let (steps, read) = mpsc::channel(1);
        let reading = stream_rows(self.db.clone(), kind, filter.clone(), steps);
        self.thread.start_task(reading);
        forward_rows(self, read, each).await
    }

    async fn pages(
        &self,
        ids: Vec<String>,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError> {
        let (steps, found) = mpsc::channel(1);
        let finding = stream_pages(self.db.clone(), ids, steps);
        self.thread.start_task(finding);
        forward_rows(self, found, each).await
    }
}
