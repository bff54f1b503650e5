//! The rows that a mapping has found, as the store takes them.

use std::collections::HashSet;

use webfill_mapping::{Listing as Found, RECORD_ID};
use webfill_store::{ListedRow, Listing, has_value};

use crate::task_result::TaskResult;

/// What a row leads to is for its own record: it is no link of the page, which would be for the page's records. A
/// page is asked for without a condition if rows lead on, because their links are not stored with it.
pub(super) fn keep_links_apart(result: &mut TaskResult) {
    let rows = result.listings.iter().flat_map(|listing| &listing.rows);
    let of_rows: HashSet<&str> = rows
        .flat_map(|row| &row.links)
        .map(String::as_str)
        .collect();
    if of_rows.is_empty() {
        return;
    }
    result.links.retain(|link| !of_rows.contains(link.as_str()));
    result.validators = None;
}

/// How many rows of a page that was fetched for these records have no key, and become no records.
pub(super) fn without_key(listings: &[Listing], records: &[String]) -> usize {
    let of_listing = |listing: &Listing| {
        let rows = listing.rows.iter();
        rows.filter(|row| !has_key(listing, row, records)).count()
    };
    listings.iter().map(of_listing).sum()
}

fn has_key(listing: &Listing, row: &ListedRow, records: &[String]) -> bool {
    let has_part = |name: &String| {
        let of_record = listing.from_record.iter().find(|(field, _)| field == name);
        match of_record.map(|(_, field)| field.as_str()) {
            Some(RECORD_ID) => records.len() == 1,
            // What the record has is known to the store alone.
            Some(_) => !records.is_empty(),
            None => row.fields.get(name).is_some_and(has_value),
        }
    };
    listing.key.iter().all(has_part)
}

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
            want: found.want,
            rows: found
                .rows
                .into_iter()
                .map(|row| ListedRow {
                    position: row.position as u64,
                    links: row.links,
                    fields: row.fields,
                })
                .collect(),
        })
    });
    stored.collect()
}
