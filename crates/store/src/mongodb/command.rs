//! Commands to the database: their time limits, their retries, and the meaning of their answers.
//!
//! Writes are `update` and `insert` commands with many statements, unordered. A command is answered once a majority of
//! the members has the writes in its journal. The driver does not retry such commands by itself; [`Db::run`] does.
//! This is safe because every statement is idempotent.

use std::collections::HashSet;
use std::time::Duration;

use mongodb::bson::raw::cstr;
use mongodb::bson::{Document, RawArrayBuf, RawDocument, RawDocumentBuf, doc, rawdoc};
use mongodb::{Collection, Database};

use super::fault::{DUPLICATE_KEY, Fault, is_retryable_at_once};

/// How long a command may take. A server may be paused, or unreachable without an error.
const COMMAND_MAX: Duration = Duration::from_secs(15);

/// How long the server waits for the majority before it reports that there is none (`wtimeout`).
const MAJORITY_WITHIN_MS: i32 = 10_000;

/// The most bytes of statements in one message, if it has more than one statement. The server accepts 48 MB.
const MESSAGE_BYTES: usize = 28 << 20;

/// How many documents one answer may have.
const ANSWERED_AT_ONCE: u32 = 10_000;

/// The connection to the database, with the store's name for error messages.
#[derive(Clone)]
pub(super) struct Db {
    pub(super) database: Database,
    pub(super) store: String,
}

/// The results of an update's statements.
#[derive(Debug, Default)]
pub(super) struct UpdateResult {
    /// How many documents were found or created.
    pub(super) matched: i64,
    /// The statements that failed: index, code and message.
    pub(super) failed: Vec<(usize, i32, String)>,
}

impl Db {
    /// Runs an idempotent command. After a transient error, it is run once more.
    pub(super) async fn run(&self, command: RawDocumentBuf) -> Result<Document, Fault> {
        let again = command.clone();
        match self.run_once(command).await {
            Err(CommandFailure::Transient(_)) => self
                .run_once(again)
                .await
                .map_err(CommandFailure::into_fault),
            answer => answer.map_err(CommandFailure::into_fault),
        }
    }

    /// Runs a command that inserts a document under a new key. Returns false if the key exists. After a transient
    /// error, the command is run once more, and may then have inserted two documents.
    pub(super) async fn run_unless_duplicate(
        &self,
        command: RawDocumentBuf,
    ) -> Result<bool, Fault> {
        let again = command.clone();
        let ran = match self.run_once(command).await {
            Err(CommandFailure::Transient(fault)) if !fault.is_duplicate_key() => {
                self.run_once(again).await
            }
            ran => ran,
        };
        match ran.map_err(CommandFailure::into_fault) {
            Err(fault) if fault.is_duplicate_key() => Ok(false),
            ran => ran.map(|_| true),
        }
    }

    async fn run_once(&self, command: RawDocumentBuf) -> Result<Document, CommandFailure> {
        let run = self.database.run_raw_command(command);
        match tokio::time::timeout(COMMAND_MAX, run).await {
            Err(_) => Err(CommandFailure::Permanent(timeout_fault())),
            Ok(Err(error)) if is_retryable_at_once(&error) => {
                Err(CommandFailure::Transient(error.into()))
            }
            Ok(Err(error)) => Err(CommandFailure::Permanent(error.into())),
            Ok(Ok(answer)) => match answer.get_document("writeConcernError") {
                Err(_) => Ok(answer),
                Ok(error) => Err(CommandFailure::Permanent(Fault::Unavailable(format!(
                    "a majority of its members did not confirm the write: {}",
                    error.get_str("errmsg").unwrap_or_default()
                )))),
            },
        }
    }

    /// Sends the statements of an `update` command in as few messages as possible.
    pub(super) async fn update(
        &self,
        collection: &str,
        statements: &[RawDocumentBuf],
    ) -> Result<UpdateResult, Fault> {
        let mut updated = UpdateResult::default();
        let mut first = 0;
        while first < statements.len() {
            let count = count_fitting(&statements[first..]);
            let some = &statements[first..first + count];
            let answer = self.run(update_command(collection, some)).await?;
            updated.add(&answer, first);
            first += count;
        }
        Ok(updated)
    }

    /// Inserts documents in as few messages as possible. Documents whose keys exist fail as duplicates. After a
    /// transient error, these include documents inserted by this call.
    pub(super) async fn insert(
        &self,
        collection: &str,
        documents: &[RawDocumentBuf],
    ) -> Result<UpdateResult, Fault> {
        let mut inserted = UpdateResult::default();
        let mut first = 0;
        while first < documents.len() {
            let count = count_fitting(&documents[first..]);
            let some = &documents[first..first + count];
            let answer = self.run(insert_command(collection, some)).await?;
            inserted.add(&answer, first);
            first += count;
        }
        Ok(inserted)
    }

    /// Which of these keys exist.
    pub(super) async fn existing_ids(
        &self,
        collection: &str,
        ids: &[&str],
    ) -> Result<HashSet<String>, Fault> {
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let collection: Collection<RawDocumentBuf> = self.database.collection(collection);
        let find = async {
            let mut cursor = collection
                .find(doc! {"_id": {"$in": ids}})
                .projection(doc! {"_id": 1})
                .batch_size(ANSWERED_AT_ONCE)
                .await?;
            let mut found = HashSet::new();
            while cursor.advance().await? {
                if let Ok(id) = cursor.current().get_str("_id") {
                    found.insert(id.to_owned());
                }
            }
            Ok(found)
        };
        with_timeout(find).await
    }

    /// Like [`Db::update`], for statements that create missing documents. If another client creates a document at the
    /// same moment, the statement fails with a duplicate key and is sent again. Then it finds the document.
    pub(super) async fn upsert(
        &self,
        collection: &str,
        statements: &[RawDocumentBuf],
    ) -> Result<UpdateResult, Fault> {
        let mut updated = self.update(collection, statements).await?;
        let is_duplicate = |failed: &(usize, i32, String)| failed.1 == DUPLICATE_KEY;
        let duplicates: Vec<_> = updated
            .failed
            .extract_if(.., |failed| is_duplicate(failed))
            .collect();
        let again = duplicates
            .iter()
            .map(|(index, ..)| statements[*index].clone());
        let again = self.update(collection, &again.collect::<Vec<_>>()).await?;
        updated.matched += again.matched;
        let failed = again.failed.into_iter();
        let with_first_index =
            |(index, code, message): (usize, i32, String)| (duplicates[index].0, code, message);
        updated.failed.extend(failed.map(with_first_index));
        Ok(updated)
    }

    /// Deletes the documents with these keys.
    pub(super) async fn delete(
        &self,
        collection: &str,
        ids: &[String],
    ) -> Result<UpdateResult, Fault> {
        if ids.is_empty() {
            return Ok(UpdateResult::default());
        }
        let keys: RawArrayBuf = ids.iter().map(String::as_str).collect();
        self.delete_matching(collection, rawdoc! {"_id": {"$in": keys}})
            .await
    }

    /// Deletes the documents that match a query.
    pub(super) async fn delete_matching(
        &self,
        collection: &str,
        query: RawDocumentBuf,
    ) -> Result<UpdateResult, Fault> {
        let mut command = rawdoc! {
            "delete": collection,
            "deletes": [{"q": query, "limit": 0}],
        };
        command.append(cstr!("writeConcern"), write_concern());
        let mut updated = UpdateResult::default();
        updated.add(&self.run(command).await?, 0);
        Ok(updated)
    }

    /// The documents with these keys, in any order, as a majority of the members has them.
    pub(super) async fn find_by_ids(
        &self,
        collection: &str,
        ids: &[&str],
    ) -> Result<Vec<RawDocumentBuf>, Fault> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let collection: Collection<RawDocumentBuf> = self.database.collection(collection);
        let find = async {
            let mut cursor = collection
                .find(doc! {"_id": {"$in": ids}})
                .batch_size(ANSWERED_AT_ONCE)
                .await?;
            let mut found = Vec::with_capacity(ids.len());
            while cursor.advance().await? {
                found.push(cursor.current().to_owned());
            }
            Ok(found)
        };
        with_timeout(find).await
    }

    /// The document with this key.
    pub(super) async fn find_one(
        &self,
        collection: &str,
        id: &str,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        let collection: Collection<RawDocumentBuf> = self.database.collection(collection);
        with_timeout(async { collection.find_one(doc! {"_id": id}).await }).await
    }
}

/// Runs an operation that the driver retries by itself, within [`COMMAND_MAX`].
pub(super) async fn with_timeout<R>(
    work: impl Future<Output = mongodb::error::Result<R>>,
) -> Result<R, Fault> {
    match tokio::time::timeout(COMMAND_MAX, work).await {
        Ok(done) => done.map_err(Fault::from),
        Err(_) => Err(timeout_fault()),
    }
}

/// The write concern of every command that writes. A replica set may be configured so that a majority does not imply a
/// write to its journals (`writeConcernMajorityJournalDefault`); `j` requires it all the same.
pub(super) fn write_concern() -> RawDocumentBuf {
    rawdoc! {"w": "majority", "j": true, "wtimeout": MAJORITY_WITHIN_MS}
}

fn timeout_fault() -> Fault {
    let seconds = COMMAND_MAX.as_secs();
    Fault::Unavailable(format!("the server has not answered for {seconds} s"))
}

enum CommandFailure {
    Transient(Fault),
    Permanent(Fault),
}

impl CommandFailure {
    fn into_fault(self) -> Fault {
        let (CommandFailure::Transient(fault) | CommandFailure::Permanent(fault)) = self;
        fault
    }
}

/// How many of the statements fit into one message: at least one.
fn count_fitting(statements: &[RawDocumentBuf]) -> usize {
    let mut bytes = 0;
    let fits = |statement: &&RawDocumentBuf| {
        bytes += statement.as_bytes().len();
        bytes <= MESSAGE_BYTES
    };
    statements.iter().take_while(fits).count().max(1)
}

fn update_command(collection: &str, statements: &[RawDocumentBuf]) -> RawDocumentBuf {
    let statements: RawArrayBuf = statements
        .iter()
        .map(|one| -> &RawDocument { one })
        .collect();
    let mut command = RawDocumentBuf::new();
    command.append(cstr!("update"), collection);
    command.append(cstr!("ordered"), false);
    command.append(cstr!("writeConcern"), write_concern());
    command.append(cstr!("updates"), statements);
    command
}

fn insert_command(collection: &str, documents: &[RawDocumentBuf]) -> RawDocumentBuf {
    let documents: RawArrayBuf = documents
        .iter()
        .map(|one| -> &RawDocument { one })
        .collect();
    let mut command = RawDocumentBuf::new();
    command.append(cstr!("insert"), collection);
    command.append(cstr!("ordered"), false);
    command.append(cstr!("writeConcern"), write_concern());
    command.append(cstr!("documents"), documents);
    command
}

impl UpdateResult {
    /// The results of a command that was sent whole.
    pub(super) fn of(answer: &Document) -> UpdateResult {
        let mut updated = UpdateResult::default();
        updated.add(answer, 0);
        updated
    }

    /// Adds the server's answer to one message. `first` is the index of the first statement in that message.
    fn add(&mut self, answer: &Document, first: usize) {
        self.matched += number(answer, "n");
        let errors = answer.get_array("writeErrors").into_iter().flatten();
        for error in errors.filter_map(|error| error.as_document()) {
            let index = usize::try_from(number(error, "index")).unwrap_or_default();
            let code = i32::try_from(number(error, "code")).unwrap_or_default();
            let message = error.get_str("errmsg").unwrap_or_default();
            self.failed.push((first + index, code, message.to_owned()));
        }
    }
}

pub(super) fn number(document: &Document, name: &str) -> i64 {
    match document.get(name) {
        Some(mongodb::bson::Bson::Int32(number)) => i64::from(*number),
        Some(mongodb::bson::Bson::Int64(number)) => *number,
        Some(mongodb::bson::Bson::Double(number)) => *number as i64,
        _ => 0,
    }
}
