//! Lists that go over several pages: a record gets the entries of all of them.
//!
//! The source of such a field is the page that came first, with all pages that have brought a part of the list, in
//! the order in which they came. A page that is fetched again replaces its own part.

use serde_json::{Value, json};

use super::{PageValues, StoredRecord, has_value};
use crate::timestamp::iso_time;

/// The member of a source that lists the parts: `[{url, at, value}]`.
const PARTS: &str = "parts";

/// The most pages of one list.
const MAX_PARTS: usize = 200;

impl StoredRecord {
    /// Adds a page's part of a list. Returns whether anything changed.
    pub(super) fn gather(
        &mut self,
        name: &str,
        items: &[Value],
        page: &PageValues<'_>,
        evidence: Option<u32>,
    ) -> bool {
        let is_missing = self.missing.iter().any(|one| one == name);
        let kept = self.sources.get(name);
        // The user's own list is not added to.
        if kept.is_none() && !is_missing {
            return false;
        }
        let mut source = kept.cloned().unwrap_or_else(|| page.source(evidence));
        let before = source.clone();
        let part = json!({"url": page.url, "at": iso_time(page.started_at_ms), "value": items});
        let mut parts = source[PARTS].as_array().cloned().unwrap_or_default();
        match parts.iter().position(|known| known["url"] == page.url) {
            Some(known) => parts[known] = part,
            None if parts.len() < MAX_PARTS => parts.push(part),
            None => return false,
        }
        if source["url"] == page.url {
            source = page.source(evidence);
        }
        let mut list: Vec<Value> = Vec::new();
        for item in parts
            .iter()
            .filter_map(|part| part["value"].as_array())
            .flatten()
        {
            if !list.contains(item) {
                list.push(item.clone());
            }
        }
        source[PARTS] = parts.into();
        if source == before && !is_missing {
            return false;
        }
        let list = Value::Array(list);
        let former = self
            .fields
            .insert(name.to_owned(), list.clone())
            .unwrap_or_default();
        // What was read by a page more is no former value.
        if kept_from_elsewhere(&former, &before) && former != list {
            self.remember(name, former, None, page.ended_at_ms);
        }
        self.sources.insert(name.to_owned(), source);
        self.missing.retain(|missing| missing != name);
        true
    }

    /// Whether the record has a list to which further pages may add.
    pub(super) fn is_gathered(&self) -> bool {
        self.sources.values().any(|source| !source[PARTS].is_null())
    }
}

/// Whether a value is none of the parts.
fn kept_from_elsewhere(former: &Value, source: &Value) -> bool {
    has_value(former) && source[PARTS].is_null()
}
