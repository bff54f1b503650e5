//! Converts the rows that a mapping found (records listed on one page) into the form that the store takes.

use std::collections::HashSet;

use webfill_mapping::{Continuation, Listing as Found};
use webfill_store::{ListedRow, Listing, PageLack, PageOfList};
use webfill_wire::Follow;

use crate::task_result::TaskResult;

/// Separates the links of rows from those of the page. A row's links belong to its own record; links of the page would
/// belong to the page's records. A page whose rows have links is requested unconditionally, because these links are not
/// stored with it.
pub(super) fn separate_row_links(result: &mut TaskResult) {
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

/// Notes what the page says about its list, for example its next page. `is_cut` means that part of the page was left
/// out. A page of a list that marks missing rows as gone is requested unconditionally, because only rows that are read
/// again count as seen.
pub(super) fn note_list(result: &mut TaskResult, mut continuation: Continuation, is_cut: bool) {
    let rows = result.listings.iter().flat_map(|listing| &listing.rows);
    let of_rows: HashSet<&String> = rows.flat_map(|row| &row.links).collect();
    continuation.next.retain(|link| !of_rows.contains(link));
    let complete = result.listings.iter().filter(|listing| listing.complete);
    let mut complete: Vec<String> = complete
        .map(|listing| listing.dataset.as_str().to_owned())
        .collect();
    complete.dedup();
    if !complete.is_empty() {
        result.validators = None;
    }
    let is_followed =
        result.crawl.follow != Follow::None && result.task.depth < result.crawl.max_depth;
    let is_empty = result.rows() == 0 && result.fields.is_empty();
    let lacks = [
        (is_cut || continuation.is_cut, PageLack::Cut),
        (is_empty, PageLack::Empty),
        (
            result
                .row_counts
                .iter()
                .any(|counts| counts.without_key > 0),
            PageLack::RowsWithoutKey,
        ),
        (continuation.lacks_count, PageLack::NoCount),
        (
            !is_followed && !continuation.next.is_empty(),
            PageLack::NotFollowed,
        ),
    ];
    let first_lack = lacks.into_iter().find(|(is_so, _)| *is_so);
    result.list = Some(PageOfList {
        // The store fills in the URL of the list's first page.
        first: String::new(),
        next: continuation.next,
        complete,
        lacks: first_lack.map(|(_, lack)| lack),
        is_further: continuation.is_further,
        is_counted: continuation.is_counted,
    });
}

pub(super) fn into_listings(found: Vec<Found>) -> Vec<Listing> {
    let stored = found.into_iter().filter_map(|found| {
        Some(Listing {
            // A mapping with an invalid name is refused when it is loaded.
            dataset: found.dataset.parse().ok()?,
            key: found.key,
            from_record: found
                .from_record
                .into_iter()
                .filter_map(|(name, field)| Some((name, field.as_str()?.to_owned())))
                .collect(),
            want: found.want,
            complete: found.complete,
            cut: found.cut,
            rows: found
                .rows
                .into_iter()
                .map(|row| ListedRow {
                    position: row.position as u64,
                    links: row.links,
                    fields: row.fields,
                    undecided: row.undecided,
                })
                .collect(),
        })
    });
    stored.collect()
}
