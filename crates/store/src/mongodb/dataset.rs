//! A user's collection whose documents are records. Documents are read in the order of their `_id`, and found values
//! are written back to them.
//!
//! At most a few chunks are in memory. Reading can continue after any document. Writes carry their conditions in the
//! statements, so that neither a crash nor a concurrent write loses a value.

mod reading;
mod writing;

use bson::Document;
use mongodb::bson::{Bson, doc};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::command::{Db, with_timeout};
use super::fault::Fault;
use super::indexes;
use super::runtime_thread::RuntimeThread;
use super::{MongoUri, connection, panic_error};
use crate::error::StoreError;
use crate::source_document::UnwrittenRecord;

/// The documents to read, and their members. The syntax is already checked, but no connection is made.
#[derive(Debug, Clone)]
pub struct DatasetSource {
    uri: MongoUri,
    collection: String,
    query: Document,
    projection: Option<Document>,
}

/// The collection that found values are written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteBack {
    /// A collection of the dataset's database. If it is the one that is read, only existing documents are updated. In
    /// another one, missing documents are created.
    pub collection: String,
}

/// A document as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetDocument {
    /// The id of the document's record: a text as it is, an ObjectId as 24 hexadecimal digits, an integer in decimal,
    /// anything else as canonical extended JSON.
    pub record: String,
    /// The document's `_id` with its type, as canonical extended JSON.
    pub id: String,
    /// All other members. A member that the projection names but the document lacks is null.
    pub members: Map<String, Value>,
}

impl DatasetSource {
    /// All documents of a collection of the database in the URI.
    pub fn new(uri: MongoUri, collection: &str) -> Result<DatasetSource, String> {
        check_collection(collection)?;
        Ok(DatasetSource {
            uri,
            collection: collection.to_owned(),
            query: Document::new(),
            projection: None,
        })
    }

    /// Restricts the source to documents that match a query in extended JSON.
    pub fn with_query(mut self, query: &str) -> Result<DatasetSource, String> {
        self.query = parse_object(query)?;
        Ok(self)
    }

    /// Applies a projection in extended JSON to each document, by the rules of `find`.
    pub fn with_projection(mut self, projection: &str) -> Result<DatasetSource, String> {
        let projection = parse_object(projection)?;
        let id = projection.get("_id");
        if !id.is_none_or(|id| matches!(id, Bson::Int32(1) | Bson::Boolean(true))) {
            return Err(String::from(
                "it changes `_id`, by which a document is found again: leave `_id` out of it",
            ));
        }
        self.projection = Some(projection);
        Ok(self)
    }

    /// The database and the collection, with a dot between them.
    pub fn name(&self) -> String {
        format!("{}.{}", self.uri.database(), self.collection)
    }

    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// A text that identifies the source. It contains no credentials.
    pub fn identity(&self) -> String {
        let projection = self.projection.clone().unwrap_or_default();
        format!(
            "{}/{} {} {projection}",
            self.uri, self.collection, self.query
        )
    }

    /// The members that the projection names. A document may lack some of them.
    fn projected_members(&self) -> Vec<String> {
        let is_left_out = |value: &Bson| {
            matches!(
                value,
                Bson::Boolean(false) | Bson::Int32(0) | Bson::Int64(0)
            ) || value.as_f64() == Some(0.0)
        };
        let mut names: Vec<String> = Vec::new();
        for (path, value) in self.projection.iter().flatten() {
            let name = path.split('.').next().unwrap_or(path);
            if name != "_id" && !is_left_out(value) && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
}

/// Checks the name of a collection.
pub(super) fn check_collection(name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains(['$', '\0']) || name.starts_with("system.") {
        return Err(format!("`{name:.80}` is no name of a collection"));
    }
    Ok(())
}

impl WriteBack {
    pub fn new(collection: &str) -> Result<WriteBack, String> {
        check_collection(collection)?;
        Ok(WriteBack {
            collection: collection.to_owned(),
        })
    }
}

fn parse_object(text: &str) -> Result<Document, String> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    match Bson::try_from(value) {
        Ok(Bson::Document(document)) => Ok(document),
        Ok(_) => Err(String::from("it is no JSON object")),
        Err(error) => Err(format!("it is no extended JSON: {error}")),
    }
}

/// An opened dataset.
pub struct Dataset {
    db: Db,
    thread: RuntimeThread,
    source: DatasetSource,
}

/// Iterates over the documents of a dataset, chunk by chunk.
pub struct Documents {
    chunks: mpsc::Receiver<reading::Chunk>,
    store: String,
}

impl Iterator for Documents {
    type Item = Result<Vec<DatasetDocument>, StoreError>;

    /// The next chunk, which has at least one document. Blocks this thread, even while the server is unavailable. An
    /// error is permanent, and the last item.
    fn next(&mut self) -> Option<Self::Item> {
        let chunk = self.chunks.blocking_recv()?;
        Some(chunk.map_err(|fault| fault.into_error(&self.store)))
    }
}

impl Dataset {
    /// Connects, and checks that the collection exists and is not webfill's own collection of records, and that the
    /// server accepts the query and the projection.
    pub async fn open(source: DatasetSource) -> Result<Dataset, StoreError> {
        let store = format!("{}/{}", source.uri, source.collection);
        let thread = RuntimeThread::start().map_err(|error| StoreError::Fatal {
            store: store.clone(),
            reason: format!("cannot start its thread: {error}"),
        })?;
        let checked = source.clone();
        let opening = thread.run(async move {
            let db = connection::connect(&checked.uri).await?;
            check_source(&db, &checked).await?;
            Ok(db)
        });
        let opened = opening.await.ok_or_else(|| panic_error(&store))?;
        let mut db = opened.map_err(|fault: Fault| fault.into_error(&store))?;
        db.store = store;
        Ok(Dataset { db, thread, source })
    }

    /// Reads the documents in the order of their `_id`: those after the given id, or all.
    pub fn read(&self, after: Option<&str>) -> Result<Documents, String> {
        let after = after.map(parse_document_id).transpose()?;
        // The channel holds one chunk, so one chunk at most waits while the next is read.
        let (chunks, read) = mpsc::channel(1);
        let task = reading::stream_documents(self.db.clone(), self.source.clone(), after, chunks);
        self.thread.start_task(task);
        Ok(Documents {
            chunks: read,
            store: self.db.store.clone(),
        })
    }

    /// Checks that the collection can be written to, and is not webfill's own collection of records.
    pub async fn check_writable(&self, to: &WriteBack) -> Result<(), StoreError> {
        let (db, to) = (self.db.clone(), to.clone());
        let checking = async move {
            check_is_foreign(&db, &to.collection).await?;
            writing::check_writable(&db, &to).await
        };
        self.run_on_thread(checking).await
    }

    /// Writes values back. Returns the records that were refused, each with the reason. The call may be repeated.
    pub async fn write_back(
        &self,
        to: &WriteBack,
        records: &[UnwrittenRecord],
    ) -> Result<Vec<(String, String)>, StoreError> {
        let (db, to, records) = (self.db.clone(), to.clone(), records.to_vec());
        let is_same = to.collection == self.source.collection;
        let writing = async move { writing::write_back(&db, &to, is_same, &records).await };
        self.run_on_thread(writing).await
    }

    async fn run_on_thread<R: Send + 'static>(
        &self,
        work: impl Future<Output = Result<R, Fault>> + Send + 'static,
    ) -> Result<R, StoreError> {
        let done = self.thread.run(work).await;
        let done = done.ok_or_else(|| panic_error(&self.db.store))?;
        done.map_err(|fault| fault.into_error(&self.db.store))
    }
}

async fn check_source(db: &Db, source: &DatasetSource) -> Result<(), Fault> {
    let named = doc! {"name": source.collection.as_str()};
    let names =
        with_timeout(async { db.database.list_collection_names().filter(named).await }).await?;
    if names.is_empty() {
        return Err(Fault::Unusable(String::from(
            "there is no such collection: check the names of the database and the collection",
        )));
    }
    check_is_foreign(db, &source.collection).await?;
    check_query(db, source).await
}

/// Refuses webfill's own collection of records as a dataset.
async fn check_is_foreign(db: &Db, collection: &str) -> Result<(), Fault> {
    let collection = db.database.collection::<Document>(collection);
    // For a view, this fails, because a view has no indexes.
    let names = with_timeout(async { collection.list_index_names().await }).await;
    if names.is_ok_and(|names| names.iter().any(|name| name == indexes::OF_RECORDS)) {
        return Err(Fault::Unusable(String::from(
            "it holds records of webfill's own: keep the dataset in another collection",
        )));
    }
    Ok(())
}

/// Lets the server plan the query. The server refuses an invalid query or projection at this point.
async fn check_query(db: &Db, source: &DatasetSource) -> Result<(), Fault> {
    let find = doc! {
        "find": source.collection.as_str(),
        "filter": source.query.clone(),
        "projection": source.projection.clone().unwrap_or_default(),
        "sort": {"_id": 1},
    };
    let command = doc! {"explain": find, "verbosity": "queryPlanner"};
    let planned = with_timeout(async { db.database.run_command(command).await }).await;
    planned.map(drop).map_err(|fault| match fault {
        Fault::Unusable(reason) => Fault::Unusable(format!(
            "its documents cannot be read with this query and projection: {reason}"
        )),
        other => other,
    })
}

/// Reads an `_id` from canonical extended JSON.
pub(super) fn parse_document_id(text: &str) -> Result<Bson, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Bson::try_from(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
