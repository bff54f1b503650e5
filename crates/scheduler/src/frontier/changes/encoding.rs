//! Encodes changed rows while they are read, in the form of a list of [`ChangedRows`](super::changed_rows::ChangedRows).

use rusqlite::types::ValueRef;
use serde::Serialize;

use super::changed_rows::Change;

/// The changes of a commit.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    groups: usize,
    encoded: Vec<u8>,
}

/// Rows of a table that have changed in the same way.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) table: &'a str,
    pub(super) change: Change,
    /// The names of the columns whose values follow, those of the key first.
    pub(super) columns: Vec<&'a str>,
    /// How many columns are the key.
    pub(super) keys: usize,
    count: usize,
    /// The values, row by row.
    values: Vec<u8>,
}

impl<'a> Group<'a> {
    pub(super) fn new(table: &'a str, change: Change, columns: Vec<&'a str>, keys: usize) -> Self {
        Group {
            table,
            change,
            columns,
            keys,
            count: 0,
            values: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, value: ValueRef<'_>) {
        self.count += 1;
        append_value(&mut self.values, value);
    }
}

impl Encoder {
    /// Adds the rows of a group, unless there are none.
    pub(super) fn add(&mut self, group: &Group<'_>) {
        if group.count == 0 {
            return;
        }
        let head = (
            group.table,
            group.change,
            &group.columns,
            group.keys,
            group.count,
        );
        self.groups += 1;
        append(&mut self.encoded, &head);
        self.encoded.extend_from_slice(&group.values);
    }

    /// The encoded changes; empty if there are none.
    pub(super) fn finish(self) -> Vec<u8> {
        if self.groups == 0 {
            return Vec::new();
        }
        let mut changes = Vec::with_capacity(self.encoded.len() + 10);
        append(&mut changes, &self.groups);
        changes.extend_from_slice(&self.encoded);
        changes
    }
}

/// Appends the encoding of a value. A length is encoded as a `usize` is.
fn append(encoded: &mut Vec<u8>, value: &impl Serialize) {
    let extended = postcard::to_extend(value, std::mem::take(encoded));
    *encoded = extended.expect("it holds only types that postcard can encode");
}

/// Appends a value as postcard encodes a [`Cell`](super::changed_rows::Cell): the number of its kind, then its contents
/// ([specification](https://postcard.jamesmunns.com/wire-format)). A commit has many values, and postcard's way to
/// extend a vector takes three times as long.
fn append_value(encoded: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => encoded.push(0),
        ValueRef::Integer(number) => {
            encoded.push(1);
            append_varint(encoded, ((number << 1) ^ (number >> 63)) as u64);
        }
        ValueRef::Real(number) => {
            encoded.push(2);
            encoded.extend_from_slice(&number.to_le_bytes());
        }
        ValueRef::Text(text) => {
            encoded.push(3);
            append_bytes(encoded, String::from_utf8_lossy(text).as_bytes());
        }
        ValueRef::Blob(bytes) => {
            encoded.push(4);
            append_bytes(encoded, bytes);
        }
    }
}

fn append_bytes(encoded: &mut Vec<u8>, bytes: &[u8]) {
    append_varint(encoded, bytes.len() as u64);
    encoded.extend_from_slice(bytes);
}

fn append_varint(encoded: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        encoded.push(number as u8 | 0x80);
        number >>= 7;
    }
    encoded.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::super::changed_rows::Cell;
    use super::*;

    #[test]
    fn a_value_is_encoded_as_postcard_encodes_a_cell() {
        let integers = (0..64).flat_map(|bits| {
            let power = 1i64 << bits;
            [power, power.wrapping_sub(1), power.wrapping_neg(), !power]
        });
        let long = "ä".repeat(20_000);
        let texts = ["", "a", "ä\u{1f600}", &long].map(|text| ValueRef::Text(text.as_bytes()));
        let blobs: [&[u8]; 3] = [&[], &[0, 127, 128, 255], long.as_bytes()];
        let reals = [0.0, -0.0, 1.5, f64::MIN, f64::INFINITY].map(ValueRef::Real);
        let values = integers
            .map(ValueRef::Integer)
            .chain(texts)
            .chain(blobs.map(ValueRef::Blob))
            .chain(reals)
            .chain([ValueRef::Null, ValueRef::Text(b"not \xff UTF-8")]);
        for value in values {
            let mut encoded = Vec::new();
            append_value(&mut encoded, value);
            let expected = postcard::to_allocvec(&Cell::of(value)).unwrap();
            assert_eq!(encoded, expected, "{value:?}");
        }
    }
}
