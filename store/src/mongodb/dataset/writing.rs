//! Values on their way back into documents.
//!
//! Whether a field is missing is judged by the server, in the statement that sets it: what
//! somebody writes meanwhile is kept. Names of fields come from mappings and are plain words;
//! values stand below `$literal`.

use mongodb::bson::raw::cstr;
use mongodb::bson::{Bson, RawArrayBuf, RawBson, RawDocumentBuf, rawdoc};

use super::{WriteBack, document_id};
use crate::mongodb::command::Db;
use crate::mongodb::fault::Fault;
use crate::mongodb::value::{bson, key};
use crate::source_document::{FilledField, Unwritten};

/// Writes nothing, but as somebody who may.
pub(super) async fn check(db: &Db, to: &WriteBack) -> Result<(), Fault> {
    let nobody = rawdoc! {"_id": {"$in": RawArrayBuf::new()}};
    let statement = rawdoc! {"q": nobody, "u": [{"$set": {"_id": "$_id"}}]};
    let updated = db.update(&to.collection, &[statement]).await?;
    match updated.failed.first() {
        None => Ok(()),
        Some((_, _, message)) => Err(Fault::Unusable(format!(
            "the collection {} cannot be written to: {message}",
            to.collection
        ))),
    }
}

/// Writes what records have, in as few messages as hold it.
pub(super) async fn write_back(
    db: &Db,
    to: &WriteBack,
    is_same: bool,
    records: &[Unwritten],
) -> Result<Vec<(String, String)>, Fault> {
    let mut refused = Vec::new();
    let mut statements = Vec::with_capacity(records.len());
    let mut sent = Vec::with_capacity(records.len());
    for record in records.iter().filter(|record| !record.fields.is_empty()) {
        match statement(record, to.refresh, !is_same) {
            Ok(statement) => {
                statements.push(statement);
                sent.push(record);
            }
            Err(Fault::InvalidEntry(reason)) => refused.push((record.record.clone(), reason)),
            Err(fault) => return Err(fault),
        }
    }
    for (statement, code, message) in db.upsert(&to.collection, &statements).await?.failed {
        match Fault::of_statement(code, &message) {
            Fault::InvalidEntry(reason) => refused.push((sent[statement].record.clone(), reason)),
            fault => return Err(fault),
        }
    }
    Ok(refused)
}

fn statement(record: &Unwritten, refresh: bool, creates: bool) -> Result<RawDocumentBuf, Fault> {
    let id: Bson = document_id(&record.document).map_err(Fault::InvalidEntry)?;
    let id = RawBson::try_from(id).map_err(|error| Fault::InvalidEntry(error.to_string()))?;
    let mut set = RawDocumentBuf::new();
    for field in &record.fields {
        if is_plain(&field.name) {
            set.append(key(&field.name), new_value(field, refresh)?);
        }
    }
    Ok(rawdoc! {"q": {"_id": {"$eq": id}}, "u": [{"$set": set}], "upsert": creates})
}

/// As mappings name fields. Anything else might be a path, or an operator.
fn is_plain(name: &str) -> bool {
    let is_of_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_of_word)
}

/// The found value where the field is missing, or has another value that pages brought: of
/// those, the record has the best. Else the value that is there.
fn new_value(field: &FilledField, refresh: bool) -> Result<RawDocumentBuf, Fault> {
    let found = bson(&field.value)?;
    if refresh {
        return Ok(rawdoc! {"$literal": found});
    }
    let mut replaceable = RawArrayBuf::new();
    replaceable.push(RawBson::Null);
    replaceable.push("");
    replaceable.push(RawArrayBuf::new());
    for other in &field.others {
        replaceable.push(bson(other)?);
    }
    let there = format!("${}", field.name);
    let mut choice = RawArrayBuf::new();
    choice.push(rawdoc! {"$in": [
        {"$ifNull": [there.as_str(), RawBson::Null]}, {"$literal": replaceable},
    ]});
    choice.push(rawdoc! {"$literal": found});
    choice.push(there);
    let mut value = RawDocumentBuf::new();
    value.append(cstr!("$cond"), choice);
    Ok(value)
}
