//! Pages that list records, prepared for learning.

use webfill_document::Document;

use crate::fold::KnownValue;
use crate::places::Places;
use crate::types::{KnownRow, Page};

/// A page, with the known records that it lists.
#[derive(Clone, Copy)]
pub(super) struct ListPage<'p> {
    pub(super) page: &'p Page,
    pub(super) rows: &'p [KnownRow],
}

/// A page with its tree and its places (texts), prepared for learning.
pub(super) struct PreparedPage<'d> {
    pub(super) list: ListPage<'d>,
    pub(super) document: &'d Document,
    pub(super) places: Places<'d>,
}

impl KnownRow {
    /// The known values of all records of this page, at most 100, each once.
    pub(super) fn known_values(&self) -> Vec<KnownValue> {
        let mut all: Vec<KnownValue> = Vec::new();
        for one in self
            .known
            .values()
            .flatten()
            .take(100)
            .filter_map(|value| KnownValue::new(value))
        {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }
}
