//! Repairs a mapping. The result is a proposal to the user.

use serde_json::Value;
use webfill_learn::{Limits, repair as learn_again};

use super::MOST_PAGES;
use super::page::Page;

/// Finds new chains for those fields of a mapping that do not yield the known values of the pages. Returns the repaired
/// mapping and the result for each field.
pub(super) fn repair(mapping: &Value, pages: &[Page]) -> Result<Value, String> {
    let pages: Vec<_> = pages.iter().map(Page::to_learn_page).collect();
    let limits = Limits {
        pages: MOST_PAGES,
        ..Limits::default()
    };
    let repaired = learn_again(mapping, &pages, &limits).map_err(|error| error.to_string())?;
    serde_json::to_value(repaired).map_err(|error| error.to_string())
}
