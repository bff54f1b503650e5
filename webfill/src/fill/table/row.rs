//! A row: its links, its known values, and its gaps.

use crate::fill::known::KnownValues;

#[derive(Debug)]
pub struct Row {
    /// The number of the row in the file, counted from 1.
    pub number: u64,
    /// The id, if the table has a column of ids and the row has one.
    pub id: Option<String>,
    /// Indexes into [`Table::links`](super::Table::links).
    pub links: Box<[u32]>,
    pub(super) known: KnownValues,
}

impl Row {
    /// The name of the row: its id, or its number if it has none.
    pub fn name(&self) -> String {
        self.id.clone().unwrap_or_else(|| self.number.to_string())
    }

    /// The values of a field; empty for a gap.
    pub fn known_values(&self, field: usize) -> Vec<String> {
        self.known.get(field)
    }

    /// The values of each field.
    pub fn all_known_values(&self) -> impl Iterator<Item = Vec<String>> {
        self.known.fields()
    }

    /// Sets the values of a field, and returns the former ones.
    pub fn replace(&mut self, field: usize, values: Vec<String>) -> Vec<String> {
        let old = self.known_values(field);
        self.known.set(field, values);
        old
    }

    pub fn gaps(&self) -> impl Iterator<Item = usize> {
        let counts = self.known.counts().enumerate();
        counts.filter_map(|(field, count)| (count == 0).then_some(field))
    }

    pub fn is_complete(&self) -> bool {
        self.known.counts().all(|count| count > 0)
    }

    pub fn count_known_fields(&self) -> usize {
        self.known.counts().filter(|count| *count > 0).count()
    }
}
