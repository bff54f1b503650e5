//! Writes values back to a dataset's documents.
//!
//! The server decides whether a field is missing, in the same statement that sets it. So a concurrent write by the
//! user is kept. Names that might be paths or operators are refused. Values are put below `$literal`, where the server
//! does not evaluate them.

use mongodb::bson::raw::cstr;
use mongodb::bson::{Bson, RawArrayBuf, RawBson, RawDocumentBuf, rawdoc};

use super::{WriteBack, parse_document_id};
use crate::mongodb::command::Db;
use crate::mongodb::fault::Fault;
use crate::mongodb::value::{bson, key};
use crate::source_document::{FilledField, UnwrittenRecord};

/// Sends an update that matches no document. It fails if the user of the URI may not write.
pub(super) async fn check_writable(db: &Db, to: &WriteBack) -> Result<(), Fault> {
    let nothing = rawdoc! {"_id": {"$in": RawArrayBuf::new()}};
    let statement = rawdoc! {"q": nothing, "u": [{"$set": {"_id": "$_id"}}]};
    let updated = db.update(&to.collection, &[statement]).await?;
    match updated.failed.first() {
        None => Ok(()),
        Some((_, _, message)) => Err(Fault::Unusable(format!(
            "the collection {} cannot be written to: {message}",
            to.collection
        ))),
    }
}

/// Writes the values of records, in as few messages as possible.
pub(super) async fn write_back(
    db: &Db,
    to: &WriteBack,
    is_same: bool,
    records: &[UnwrittenRecord],
) -> Result<Vec<(String, String)>, Fault> {
    let mut refused = Vec::new();
    let mut statements = Vec::with_capacity(records.len());
    let mut sent = Vec::with_capacity(records.len());
    for record in records.iter().filter(|record| !record.fields.is_empty()) {
        match statement(record, !is_same) {
            Ok(statement) => {
                statements.push(statement);
                sent.push(record);
            }
            Err(Fault::InvalidEntry(reason)) => refused.push((record.record.clone(), reason)),
            Err(fault) => return Err(fault),
        }
    }
    for (statement, code, message) in db.upsert(&to.collection, &statements).await?.failed {
        match Fault::from_statement_error(code, &message) {
            Fault::InvalidEntry(reason) => refused.push((sent[statement].record.clone(), reason)),
            fault => return Err(fault),
        }
    }
    Ok(refused)
}

fn statement(record: &UnwrittenRecord, creates: bool) -> Result<RawDocumentBuf, Fault> {
    let id: Bson = parse_document_id(&record.document).map_err(Fault::InvalidEntry)?;
    let id = RawBson::try_from(id).map_err(|error| Fault::InvalidEntry(error.to_string()))?;
    let mut set = RawDocumentBuf::new();
    for field in &record.fields {
        if !is_top_level_member(&field.name) {
            return Err(Fault::InvalidEntry(format!(
                "`{:.80}` is no name that can be written",
                field.name
            )));
        }
        set.append(key(&field.name), new_value_expression(field)?);
    }
    Ok(rawdoc! {"q": {"_id": {"$eq": id}}, "u": [{"$set": set}], "upsert": creates})
}

/// Whether a name is that of a top-level member: not a path, not an operator, not the id.
fn is_top_level_member(name: &str) -> bool {
    let is_name = !name.is_empty() && name != "_id" && !name.starts_with('$');
    is_name && !name.contains(['.', '\0'])
}

/// The expression for the new value of a field. It is the found value if the field is missing, or if its value may be
/// replaced. Otherwise it is the present value, which is the user's. While another value is wanted, the found value is
/// written only if the field is missing.
fn new_value_expression(field: &FilledField) -> Result<RawDocumentBuf, Fault> {
    let found = bson(&field.value)?;
    let mut replaceable = RawArrayBuf::new();
    // A found value replaces what counts as missing. Null takes a value back, so it must not be written there.
    if !field.value.is_null() {
        replaceable.push(RawBson::Null);
        replaceable.push("");
        replaceable.push(RawArrayBuf::new());
        // NaN counts as missing. In BSON, all types of NaN are equal.
        replaceable.push(f64::NAN);
    }
    for other in field.others.iter().filter(|_| !field.is_asked_again) {
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
