//! Commands to the database: how long they may take, when they are tried again, and what the
//! answers mean.
//!
//! Writes go out as the `update` command with many statements, unordered, and are answered once a
//! majority of the members has them in its journal. The driver's own retries know no such command,
//! and need none here: every statement is idempotent, so one that was cut off is simply sent again
//! ([`Db::run`]).

use std::time::Duration;

use mongodb::bson::raw::cstr;
use mongodb::bson::{Document, RawArrayBuf, RawDocument, RawDocumentBuf, doc, rawdoc};
use mongodb::{Collection, Database};

use super::fault::{DUPLICATE_KEY, Fault, is_retryable_at_once};

/// A server that is paused, or cut off without a word, keeps a command for no longer.
const COMMAND_MAX: Duration = Duration::from_secs(15);

/// How long the server waits for the majority before it says that there is none.
const MAJORITY_WITHIN_MS: i32 = 10_000;

/// A message ends at 48 MB; a statement of the greatest size must fit into what is left.
const MESSAGE_BYTES: usize = 28 << 20;

/// The most documents that one answer is asked for.
const ANSWERED_AT_ONCE: u32 = 10_000;

/// The database, with the name that its errors carry.
#[derive(Clone)]
pub(super) struct Db {
    pub(super) database: Database,
    pub(super) store: String,
}

/// What became of the statements of an update.
#[derive(Debug, Default)]
pub(super) struct Updated {
    /// Documents that statements found or created.
    pub(super) matched: i64,
    /// Which statements failed: index, code and message.
    pub(super) failed: Vec<(usize, i32, String)>,
}

impl Db {
    /// Runs a command that may be run twice.
    pub(super) async fn run(&self, command: RawDocumentBuf) -> Result<Document, Fault> {
        let again = command.clone();
        match self.run_once(command).await {
            Err(Failed::Transient(_)) => self.run_once(again).await.map_err(Failed::fault),
            answer => answer.map_err(Failed::fault),
        }
    }

    /// Runs a command that inserts a key of its own; false if that is taken. One that was cut off
    /// is run again, and may then have inserted two.
    pub(super) async fn run_unless_duplicate(
        &self,
        command: RawDocumentBuf,
    ) -> Result<bool, Fault> {
        let again = command.clone();
        let ran = match self.run_once(command).await {
            Err(Failed::Transient(fault)) if !fault.is_duplicate_key() => {
                self.run_once(again).await
            }
            ran => ran,
        };
        match ran.map_err(Failed::fault) {
            Err(fault) if fault.is_duplicate_key() => Ok(false),
            ran => ran.map(|_| true),
        }
    }

    async fn run_once(&self, command: RawDocumentBuf) -> Result<Document, Failed> {
        let run = self.database.run_raw_command(command);
        match tokio::time::timeout(COMMAND_MAX, run).await {
            Err(_) => Err(Failed::Permanent(silent())),
            Ok(Err(error)) if is_retryable_at_once(&error) => Err(Failed::Transient(error.into())),
            Ok(Err(error)) => Err(Failed::Permanent(error.into())),
            Ok(Ok(answer)) => match answer.get_document("writeConcernError") {
                Err(_) => Ok(answer),
                Ok(error) => Err(Failed::Permanent(Fault::Unavailable(format!(
                    "a majority of its members did not confirm the write: {}",
                    error.get_str("errmsg").unwrap_or_default()
                )))),
            },
        }
    }

    /// Sends the statements of an `update` command, in as few messages as hold them.
    pub(super) async fn update(
        &self,
        collection: &str,
        statements: &[RawDocumentBuf],
    ) -> Result<Updated, Fault> {
        let mut updated = Updated::default();
        let mut first = 0;
        while first < statements.len() {
            let count = fitting(&statements[first..]);
            let some = &statements[first..first + count];
            let answer = self.run(update_command(collection, some)).await?;
            updated.add(&answer, first);
            first += count;
        }
        Ok(updated)
    }

    /// As [`Db::update`], for statements that create what they do not find. Whoever was a moment
    /// slower than somebody else at creating a document finds it the next time.
    pub(super) async fn upsert(
        &self,
        collection: &str,
        statements: &[RawDocumentBuf],
    ) -> Result<Updated, Fault> {
        let mut updated = self.update(collection, statements).await?;
        let is_late = |failed: &(usize, i32, String)| failed.1 == DUPLICATE_KEY;
        let late: Vec<_> = updated
            .failed
            .extract_if(.., |failed| is_late(failed))
            .collect();
        let again = late.iter().map(|(index, ..)| statements[*index].clone());
        let again = self.update(collection, &again.collect::<Vec<_>>()).await?;
        updated.matched += again.matched;
        let failed = again.failed.into_iter();
        let of_all = |(index, code, message): (usize, i32, String)| (late[index].0, code, message);
        updated.failed.extend(failed.map(of_all));
        Ok(updated)
    }

    /// The documents of these keys, in any order; a majority of the members has them.
    pub(super) async fn find_all(
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

    /// The document of this key.
    pub(super) async fn find_one(
        &self,
        collection: &str,
        id: &str,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        let collection: Collection<RawDocumentBuf> = self.database.collection(collection);
        with_timeout(async { collection.find_one(doc! {"_id": id}).await }).await
    }
}

/// Runs what the driver tries again by itself.
pub(super) async fn with_timeout<R>(
    work: impl Future<Output = mongodb::error::Result<R>>,
) -> Result<R, Fault> {
    match tokio::time::timeout(COMMAND_MAX, work).await {
        Ok(done) => done.map_err(Fault::from),
        Err(_) => Err(silent()),
    }
}

/// What every command that writes says of when it is done.
pub(super) fn majority() -> RawDocumentBuf {
    rawdoc! {"w": "majority", "wtimeout": MAJORITY_WITHIN_MS}
}

fn silent() -> Fault {
    let seconds = COMMAND_MAX.as_secs();
    Fault::Unavailable(format!("the server has not answered for {seconds} s"))
}

enum Failed {
    Transient(Fault),
    Permanent(Fault),
}

impl Failed {
    fn fault(self) -> Fault {
        let (Failed::Transient(fault) | Failed::Permanent(fault)) = self;
        fault
    }
}

/// How many statements go into one message: at least one.
fn fitting(statements: &[RawDocumentBuf]) -> usize {
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
    command.append(cstr!("writeConcern"), majority());
    command.append(cstr!("updates"), statements);
    command
}

impl Updated {
    /// Adds the answer to a message whose first statement has this index.
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
