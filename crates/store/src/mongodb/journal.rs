//! The collection `dispatcher_journal`: numbered records of dispatchers (see [`crate::journal`]).
//!
//! | member | contents |
//! |---|---|
//! | `_id` | `group` and `number` |
//! | `epoch` | the tenure of the dispatcher that wrote it |
//! | `format` | the format of the changes |
//! | `changes`, `is_last` | a part of a commit, and whether it is the last one; missing: a dispatcher begins |
//!
//! The key is unique, so an insert also checks that the number is free. Only the first records of the journal are cut,
//! and the last record stays. So a dispatcher can add a record under a number that was cut, but then it finds that its
//! record is not the last one, and no reader applies it ([`journal_cut`]).

use mongodb::bson::raw::cstr;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{
    Binary, Bson, Document, RawArrayBuf, RawDocument, RawDocumentBuf, doc, rawdoc,
};
use mongodb::{ClientSession, Collection};

use super::command::{Db, number, with_timeout, write_concern};
use super::fault::{DUPLICATE_KEY, Fault};
use super::members::integer;
use super::{Mongo, journal_cut};
use crate::error::StoreError;
use crate::journal::{AppendAnswer, Content, JournalExtent, JournalPage, Record};

pub(super) const JOURNAL: &str = "dispatcher_journal";

/// The format of the records that this version writes, and the only one that it can read.
const FORMAT: i32 = 1;

/// From this size in bytes on, a command is full. A message may have 48 MB, and a record 16 MB.
const COMMAND_BYTES: usize = 16 << 20;

/// How many records a command may have. A server accepts 100,000 documents.
const MOST_IN_COMMAND: usize = 50_000;

/// Adds records in order, up to the first whose number is taken.
async fn append(db: &Db, group: &str, records: &[Record]) -> Result<AppendAnswer, Fault> {
    let mut rest = records;
    while !rest.is_empty() {
        let (command, others) = rest.split_at(count_fitting(rest));
        let answer = db.run(insert_command(group, command)).await?;
        let errors = answer.get_array("writeErrors").into_iter().flatten();
        if let Some(error) = errors.filter_map(|error| error.as_document()).next() {
            return explain_refusal(db, group, command, error).await;
        }
        rest = others;
    }
    match records.last() {
        Some(last) => check_is_last(db, group, last.number, last.epoch).await,
        None => Ok(AppendAnswer::Added),
    }
}

/// How many of the records fit into one command: at least one.
fn count_fitting(records: &[Record]) -> usize {
    let mut bytes = 0;
    let fits = |record: &&Record| {
        bytes += record.bytes();
        bytes <= COMMAND_BYTES
    };
    let count = records.iter().take(MOST_IN_COMMAND).take_while(fits);
    count.count().max(1)
}

fn insert_command(group: &str, records: &[Record]) -> RawDocumentBuf {
    let documents = records.iter().map(|record| to_document(group, record));
    let documents: RawArrayBuf = documents.collect();
    let mut command = RawDocumentBuf::new();
    command.append(cstr!("insert"), JOURNAL);
    command.append(cstr!("ordered"), true);
    command.append(cstr!("writeConcern"), write_concern());
    command.append(cstr!("documents"), documents);
    command
}

fn to_document(group: &str, record: &Record) -> RawDocumentBuf {
    let mut document = rawdoc! {
        "_id": {"group": group, "number": record.number as i64},
        "epoch": record.epoch as i64,
        "format": FORMAT,
    };
    if let Content::Changes { part, is_last } = &record.content {
        let changes = Binary {
            subtype: BinarySubtype::Generic,
            bytes: part.clone(),
        };
        document.append(cstr!("changes"), changes);
        document.append(cstr!("is_last"), *is_last);
    }
    document
}

/// Finds out which epoch wrote the record whose number is taken. It is the caller's own epoch if the same command was
/// sent before.
async fn explain_refusal(
    db: &Db,
    group: &str,
    command: &[Record],
    error: &Document,
) -> Result<AppendAnswer, Fault> {
    let code = number(error, "code") as i32;
    let index = number(error, "index") as usize;
    let (Some(refused), Some(last), DUPLICATE_KEY) = (command.get(index), command.last(), code)
    else {
        let message = error.get_str("errmsg").unwrap_or_default();
        return Err(Fault::from_statement_error(code, message));
    };
    let found = epochs(db, group, refused.number, last.number).await?;
    let own_epoch = refused.epoch;
    let own = (refused.number..).zip(&found);
    let own = own.take_while(|(number, found)| **found == (*number, own_epoch));
    match (own.last(), found.first()) {
        (Some((number, _)), _) => {
            let answer = check_is_last(db, group, number, own_epoch).await?;
            Ok(match answer {
                AppendAnswer::Added => AppendAnswer::Taken {
                    number,
                    epoch: own_epoch,
                },
                taken => taken,
            })
        }
        (None, Some((number, epoch))) if *number == refused.number => Ok(AppendAnswer::Taken {
            number: *number,
            epoch: *epoch,
        }),
        _ => Err(no_majority_fault()),
    }
}

/// The fault if a server has a record that a majority of the members does not have yet.
fn no_majority_fault() -> Fault {
    Fault::Unavailable(String::from(
        "a majority of its members does not have the last record of the dispatchers' journal yet",
    ))
}

/// The epochs of the records from one number to another, in order.
async fn epochs(db: &Db, group: &str, first: u64, last: u64) -> Result<Vec<(u64, u64)>, Fault> {
    let range = doc! {"_id": {"$gte": key(group, first), "$lte": key(group, last)}};
    let collection: Collection<RawDocumentBuf> = db.database.collection(JOURNAL);
    let find = async {
        let mut cursor = collection
            .find(range)
            .sort(doc! {"_id": 1})
            .projection(doc! {"epoch": 1})
            .await?;
        let mut found = Vec::new();
        while cursor.advance().await? {
            found.extend(number_and_epoch(cursor.current()));
        }
        Ok(found)
    };
    with_timeout(find).await
}

/// Checks that a record that was added is the last one of the journal. If not, its number belongs to an earlier record
/// that was cut.
async fn check_is_last(
    db: &Db,
    group: &str,
    added: u64,
    added_epoch: u64,
) -> Result<AppendAnswer, Fault> {
    match find_end_record(db, group, -1).await? {
        Some(last) if last == (added, added_epoch) => Ok(AppendAnswer::Added),
        Some((number, epoch)) if number > added && epoch != added_epoch => {
            Ok(AppendAnswer::Taken { number, epoch })
        }
        Some((number, _)) if number > added => Err(Fault::Unusable(format!(
            "record {added} of the dispatchers' journal was added, but the last one is {number}: two dispatchers use \
             the same epoch, or another program changes the journal"
        ))),
        _ => Err(no_majority_fault()),
    }
}

/// The number and the epoch of the first record (`order` is 1) or of the last one (`order` is -1). The first one may be
/// an orphan.
pub(super) async fn find_end_record(
    db: &Db,
    group: &str,
    order: i32,
) -> Result<Option<(u64, u64)>, Fault> {
    let collection: Collection<RawDocumentBuf> = db.database.collection(JOURNAL);
    let find = async {
        collection
            .find_one(group_filter(group))
            .sort(doc! {"_id": order})
            .projection(doc! {"epoch": 1})
            .await
    };
    let found = with_timeout(find).await?;
    Ok(found.and_then(|found| number_and_epoch(&found)))
}

pub(super) async fn extent(db: &Db, group: &str) -> Result<Option<JournalExtent>, Fault> {
    let (first, last) = (
        find_end_record(db, group, 1).await?,
        find_end_record(db, group, -1).await?,
    );
    let cut_before = journal_cut::read(db, group).await?;
    let ends = first.zip(last);
    Ok(ends.map(|((first, _), (last, epoch))| JournalExtent {
        first: first.max(cut_before),
        last,
        epoch,
    }))
}

/// Reads the records whose numbers are above `after`, in order, until their changes have `most_bytes` or more.
async fn read(
    db: &Db,
    group: &str,
    after: u64,
    most_bytes: usize,
) -> Result<Result<JournalPage, Unreadable>, Fault> {
    let read = async {
        let mut session = db.database.client().start_session().await?;
        let records = read_records(db, (group, after), most_bytes, &mut session).await?;
        let (records, is_end) = match records {
            Ok(read) => read,
            Err(why) => return Ok(Err(why)),
        };
        // The cut is read after the records. An orphan among them was added after its number became free, so after a
        // majority had the cut, and this read shows that. If the cut was read first, it could be raised, and an orphan
        // added, before the records are read. The session makes its reads causally consistent: otherwise a primary that
        // was just elected might show an older state than the former one.
        let cut_before = match records.is_empty() {
            true => 0,
            false => journal_cut::read_in_session(db, group, &mut session).await?,
        };
        Ok(Ok(JournalPage {
            records,
            is_end,
            cut_before,
        }))
    };
    with_timeout(read).await
}

/// Reads records. Returns also whether there is no further one.
async fn read_records(
    db: &Db,
    (group, after): (&str, u64),
    most_bytes: usize,
    session: &mut ClientSession,
) -> mongodb::error::Result<Result<(Vec<Record>, bool), Unreadable>> {
    let range = doc! {"_id": {"$gt": key(group, after), "$lt": end_key(group)}};
    let collection: Collection<RawDocumentBuf> = db.database.collection(JOURNAL);
    let find = collection.find(range).sort(doc! {"_id": 1});
    let mut cursor = find.session(&mut *session).await?;
    let (mut records, mut bytes) = (Vec::new(), 0);
    while bytes < most_bytes && cursor.advance(session).await? {
        match record_from(cursor.current()) {
            Ok(record) => {
                bytes += record.bytes();
                records.push(record);
            }
            // The records before the unreadable one can still be applied.
            Err(_) if !records.is_empty() => return Ok(Ok((records, false))),
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok((records, bytes < most_bytes)))
}

/// Why a record cannot be read.
struct Unreadable(String);

fn record_from(stored: &RawDocument) -> Result<Record, Unreadable> {
    let Some((number, epoch)) = number_and_epoch(stored) else {
        return Err(Unreadable(String::from(
            "a record of its dispatchers' journal has no number or no epoch",
        )));
    };
    let format = integer(stored, "format").unwrap_or_default();
    if format != i64::from(FORMAT) {
        return Err(Unreadable(format!(
            "record {number} of its dispatchers' journal has the format {format}, which this version of webfill does \
             not know: install the version of the dispatcher that serves"
        )));
    }
    let content = match stored.get_binary("changes") {
        Ok(changes) => Content::Changes {
            part: changes.bytes.to_owned(),
            is_last: stored.get_bool("is_last").unwrap_or_default(),
        },
        Err(_) => Content::Begins,
    };
    Ok(Record {
        number,
        epoch,
        content,
    })
}

fn number_and_epoch(stored: &RawDocument) -> Option<(u64, u64)> {
    let number = integer(stored.get_document("_id").ok()?, "number")?;
    let epoch = integer(stored, "epoch")?;
    Some((u64::try_from(number).ok()?, u64::try_from(epoch).ok()?))
}

pub(super) fn key(group: &str, number: u64) -> Document {
    doc! {"group": group, "number": number as i64}
}

/// A key after all keys of a group.
fn end_key(group: &str) -> Document {
    doc! {"group": group, "number": Bson::MaxKey}
}

fn group_filter(group: &str) -> Document {
    doc! {"_id": {"$gt": key(group, 0), "$lt": end_key(group)}}
}

pub(super) fn to_raw(document: &Document) -> Result<RawDocumentBuf, Fault> {
    Ok(RawDocumentBuf::try_from(document).map_err(mongodb::error::Error::from)?)
}

impl Mongo {
    pub(crate) async fn append_records(
        &self,
        group: &str,
        records: Vec<Record>,
    ) -> Result<AppendAnswer, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| append(&db, &group, &records).await)
            .await
    }

    pub(crate) async fn read_records(
        &self,
        group: &str,
        after: u64,
        most_bytes: usize,
    ) -> Result<JournalPage, StoreError> {
        let group = group.to_owned();
        let read = async move |db: Db| {
            let page = read(&db, &group, after, most_bytes).await?;
            page.map_err(|Unreadable(why)| Fault::Unusable(why))
        };
        self.call(read).await
    }

    pub(crate) async fn journal_extent(
        &self,
        group: &str,
    ) -> Result<Option<JournalExtent>, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| extent(&db, &group).await)
            .await
    }

    pub(crate) async fn cut_journal(&self, group: &str, before: u64) -> Result<(), StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| journal_cut::cut(&db, &group, before).await)
            .await
    }
}
