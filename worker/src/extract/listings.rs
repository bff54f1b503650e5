//! The rows that a mapping has found, as the store takes them.

use webfill_mapping::Listing as Found;
use webfill_store::{ListedRow, Listing};

pub(super) fn to_store(found: Vec<Found>) -> Vec<Listing> {
    let stored = found.into_iter().filter_map(|found| {
        Some(Listing {
            // A mapping with another name is refused when it is loaded.
            dataset: found.dataset.parse().ok()?,
            key: found.key,
            from_record: found
                .from_record
                .into_iter()
                .filter_map(|(name, field)| Some((name, field.as_str()?.to_owned())))
                .collect(),
            rows: found
                .rows
                .into_iter()
                .map(|row| ListedRow {
                    position: row.position as u64,
                    fields: row.fields,
                })
                .collect(),
        })
    });
    stored.collect()
}
