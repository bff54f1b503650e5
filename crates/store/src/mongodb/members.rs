//! Members of documents: times and integers.

use mongodb::bson::{DateTime, RawDocument};

pub(super) fn date(at_ms: i64) -> DateTime {
    DateTime::from_millis(at_ms)
}

pub(super) fn time(stored: &RawDocument, name: &str) -> Option<i64> {
    stored
        .get_datetime(name)
        .ok()
        .map(DateTime::timestamp_millis)
}

pub(super) fn integer(stored: &RawDocument, name: &str) -> Option<i64> {
    let short = || stored.get_i32(name).ok().map(i64::from);
    stored.get_i64(name).ok().or_else(short)
}
