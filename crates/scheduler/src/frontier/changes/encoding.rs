//! Encodes changed rows while they are read, in the form of a list of [`ChangedRows`](super::changed_rows::ChangedRows).

use serde::Serialize;

use super::changed_rows::{Cell, Change};

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

    pub(super) fn push(&mut self, cell: &Cell<'_>) {
        self.count += 1;
        append(&mut self.values, cell);
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
