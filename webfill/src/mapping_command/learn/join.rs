//! Joins pages with their known values: from records that link to them, and from a person's examples.

use std::collections::BTreeSet;

use webfill_learn::Page;
use webfill_mapping::nearest_first;
use webfill_service::Fault;

use super::gathered::GatheredPage;
use super::listed::ListedRecords;
use super::records::KnownRecords;
use super::statements::PageStatements;
use crate::demand::table::without_control_characters;

pub fn join_pages_with_values(
    pages: &[GatheredPage],
    records: &KnownRecords,
    said: &PageStatements,
) -> Result<Vec<Page>, Fault> {
    let joined: Vec<Page> = pages
        .iter()
        .map(|page| join_page(page, records, said))
        .collect();
    let names: BTreeSet<&str> = pages.iter().flat_map(GatheredPage::urls).collect();
    if let Some(url) = said.keys().find(|url| !names.contains(url.as_str())) {
        let nearest = nearest_first(url, names);
        let nearest = nearest
            .first()
            .map(|name| format!("; the nearest is {name}"));
        return Err(Fault::usage(format!(
            "{url}: not one of the pages{}",
            nearest.unwrap_or_default()
        )));
    }
    let is_known = |page: &Page| !page.known.is_empty() || !page.said.is_empty();
    match joined.iter().any(is_known) {
        true => Ok(joined),
        false => Err(Fault::error(nothing_known_message(pages, &joined, records))),
    }
}

/// Whether records or examples have values for one of these pages.
pub fn is_any_known(pages: &[GatheredPage], records: &KnownRecords, said: &PageStatements) -> bool {
    let is_known = |name: &str| {
        let record = records.find_by_link(name);
        said.contains_key(name) || record.is_some_and(|record| !record.known.is_empty())
    };
    pages.iter().flat_map(GatheredPage::urls).any(is_known)
}

fn is_usable(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_plain)
}

/// Removes unusable fields from records that are rows, and reports them. See [`leave_out_unusable_names`].
pub fn leave_out_unusable_rows(listed: &mut ListedRecords) {
    report_unusable(listed.leave_out_unusable_names(is_usable));
}

/// Removes fields whose names are not allowed in mappings, and reports them.
pub fn leave_out_unusable_names(pages: &mut [Page]) {
    let mut left_out = BTreeSet::new();
    for page in pages {
        page.known.retain(|name, _| {
            let is_usable = is_usable(name);
            if !is_usable {
                left_out.insert(name.clone());
            }
            is_usable
        });
    }
    report_unusable(left_out);
}

fn report_unusable(left_out: BTreeSet<String>) {
    for name in left_out {
        webfill_service::say!(
            "webfill: `{}` is skipped: field names have a to z, digits and `_`, a letter first",
            without_control_characters(&name)
        );
    }
}

fn join_page(page: &GatheredPage, records: &KnownRecords, said: &PageStatements) -> Page {
    let record = page.urls().find_map(|name| records.find_by_link(name));
    let of_page = page.urls().find_map(|name| said.get(name));
    Page {
        url: page.url.clone(),
        kind: page.kind,
        text: page.text.clone(),
        record: record.map(|record| record.id.clone()),
        known: record
            .map(|record| record.known.clone())
            .unwrap_or_default(),
        said: of_page.cloned().unwrap_or_default(),
    }
}

fn nothing_known_message(
    pages: &[GatheredPage],
    joined: &[Page],
    records: &KnownRecords,
) -> String {
    let Some(first) = pages.first() else {
        return String::from("no page to learn from");
    };
    let count = pages.len();
    match joined.iter().filter(|page| page.record.is_some()).count() {
        0 => format!(
            "none of {} records links to one of the {count} pages, such as {}: compare the links of the records with the URLs of the pages, or find the records by their values with --rows if these pages list them",
            records.read, first.url
        ),
        linked => format!(
            "the records of {linked} pages have no known values: learning needs records with filled fields"
        ),
    }
}
