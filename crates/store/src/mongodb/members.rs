//! Members of documents: names that have an index, times and integers.

use mongodb::bson::{Bson, DateTime, Document, RawDocument, doc};

/// The members of `records` that name the lists that hold a row, and the list that the row is gone from. Each has an
/// index.
pub(super) const HELD: &str = "row.lists.url";
pub(super) const GONE: &str = "row.gone.list";

/// The collection of bodies, and its member with the time used to find the oldest.
pub(super) const BODIES: &str = "bodies";
pub(super) const AT: &str = "at";

pub(super) fn date(at_ms: i64) -> DateTime {
    DateTime::from_millis(at_ms)
}

pub(super) fn time(stored: &RawDocument, name: &str) -> Option<i64> {
    stored
        .get_datetime(name)
        .ok()
        .map(DateTime::timestamp_millis)
}

/// For a projection: the member if it is an object of at most `most_bytes`, otherwise null.
pub(super) fn short_object_expression(name: &str, most_bytes: usize) -> Document {
    let member = format!("${name}");
    let is_object = doc! {"$eq": [{"$type": &member}, "object"]};
    let is_short = doc! {"$and": [
        is_object.clone(),
        {"$lte": [{"$bsonSize": {"$cond": [is_object, &member, {}]}}, most_bytes as i64]},
    ]};
    doc! {"$cond": [is_short, member, Bson::Null]}
}

pub(super) fn integer(stored: &RawDocument, name: &str) -> Option<i64> {
    let short = || stored.get_i32(name).ok().map(i64::from);
    stored.get_i64(name).ok().or_else(short)
}
