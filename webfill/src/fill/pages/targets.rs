//! Finds the pages that the links of a table lead to.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Pages;
use crate::fill::table::Table;

/// If at least this many rows have the same page under different URLs, that page is an error, a block or a login.
const ROWS_OF_SAME_CONTENT: usize = 3;

/// The rows that link to each page, by the page's URL after redirects. If many rows have pages of identical content,
/// these count as one page.
pub fn rows_of_targets<'t>(
    table: &'t Table,
    pages: &'t Pages<'_>,
) -> BTreeMap<&'t str, BTreeSet<u32>> {
    let mut rows: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for (place, link) in table.links.iter().enumerate() {
        if let Some((target, _)) = pages.target(&link.url) {
            let linking = table.links.rows_of(place as u32);
            rows.entry(target).or_default().extend(linking);
        }
    }
    let hash_of = |target: &str| pages.get(target)?.content_hash.as_deref();
    let mut of_content: HashMap<&str, BTreeSet<u32>> = HashMap::new();
    for (target, linking) in &rows {
        if let Some(hash) = hash_of(target) {
            of_content.entry(hash).or_default().extend(linking);
        }
    }
    of_content.retain(|_, linking| linking.len() >= ROWS_OF_SAME_CONTENT);
    for (target, linking) in &mut rows {
        if let Some(all) = hash_of(target).and_then(|hash| of_content.get(hash)) {
            linking.extend(all);
        }
    }
    rows
}
