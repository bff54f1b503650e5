//! Pages prepared for learning, with the records on them.

use webfill_document::Document;

use crate::fold::KnownValue;
use crate::places::Places;
use crate::types::{KnownRow, Page};

/// A page, and the records on it.
#[derive(Clone, Copy)]
pub(super) struct ListPage<'p> {
    pub(super) page: &'p Page,
    pub(super) rows: &'p [KnownRow],
}

/// A page prepared for learning.
pub(super) struct PreparedPage<'d> {
    pub(super) list: ListPage<'d>,
    pub(super) document: &'d Document,
    pub(super) places: Places<'d>,
}

impl KnownRow {
    /// The known values of this record, at most 100, each once.
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
