//! Pages from before and after a fall (fields lost their values), kept for whoever repairs the mapping.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::good_page::GoodPage;
use crate::has_value;
use crate::recent::push_bounded;

/// How many pages are kept from before a fall, and how many from after it.
pub(crate) const KEPT: usize = 20;

/// Once enough complete pages are kept, only one page in this many replaces an older one. So the kept pages cover a
/// longer time.
const ONE_IN: u64 = 10;

/// The most characters of a value in a kept page (`MOST_CHARS`), and the most fields with their values.
const MOST_CHARS: usize = 200;
const MOST_FIELDS: usize = 50;

/// The approximate limit of a kept page in bytes. Above half of it, a placeholder replaces values; above the limit,
/// fields are omitted.
const MOST_BYTES: usize = 16 << 10;

/// The most bytes of a kept page's key, and of its URL. A URL can be as long as this.
const MOST_TEXT: usize = 4 << 10;

/// The placeholder for an omitted value: an ellipsis.
const LEFT_OUT: &str = "\u{2026}";

/// A page with its extracted values, shortened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptPage {
    /// The page's key in the store.
    pub id: String,
    pub url: String,
    pub site: String,
    pub at: String,
    pub template: Option<String>,
    /// The number of the page, counted among the pages of its mapping.
    pub number: u64,
    pub fields: Map<String, Value>,
}

impl KeptPage {
    pub(crate) fn from_page(page: &GoodPage<'_>, number: u64) -> KeptPage {
        let mut kept = KeptPage {
            id: truncate_text(page.id, MOST_TEXT).to_owned(),
            url: truncate_text(page.url, MOST_TEXT).to_owned(),
            site: truncate_text(page.site, MOST_TEXT / 8).to_owned(),
            at: page.at.to_owned(),
            template: page
                .template
                .map(|sketch| truncate_text(sketch, 64).to_owned()),
            number,
            fields: Map::new(),
        };
        let mut room = MOST_BYTES.saturating_sub(kept.id.len() + kept.url.len() + kept.site.len());
        for (nth, (name, value)) in page.fields.iter().enumerate() {
            let mut value = truncate_value(value);
            let bytes = |value: &Value| name.len() + value.to_string().len() + 4;
            let is_short =
                nth >= MOST_FIELDS || room.saturating_sub(bytes(&value)) < MOST_BYTES / 2;
            if is_short && has_value(&value) {
                // The value is too large, but the placeholder still shows that the field has a value.
                value = LEFT_OUT.into();
            }
            if bytes(&value) <= room {
                room -= bytes(&value);
                kept.fields.insert(name.clone(), value);
            }
        }
        kept
    }
}

/// The beginning of a text, at most `most` bytes.
fn truncate_text(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn truncate_value(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => Value::String(text[..end].to_owned()),
        None => value.clone(),
    }
}

/// The last pages with all fields that pages usually have (`whole`), and the last pages that lack one (`lacking`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct LastPages {
    whole_seen: u64,
    pub(crate) whole: VecDeque<KeptPage>,
    pub(crate) lacking: VecDeque<KeptPage>,
}

impl LastPages {
    pub(crate) fn note_page(&mut self, page: &GoodPage<'_>, number: u64, is_whole: bool) {
        if !is_whole {
            return push_bounded(&mut self.lacking, KeptPage::from_page(page, number), KEPT);
        }
        self.whole_seen += 1;
        if self.whole.len() < KEPT || self.whole_seen.is_multiple_of(ONE_IN) {
            push_bounded(&mut self.whole, KeptPage::from_page(page, number), KEPT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_page_is_bounded_and_still_shows_which_fields_have_a_value() {
        let field = |n: usize| (format!("field {n}"), "\u{1}".repeat(10_000).into());
        let page = |fields: &Map<String, Value>| {
            let long = "x".repeat(100_000);
            let page = GoodPage {
                id: &long,
                url: &long,
                site: &long,
                at: "2026-01-01T00:00:00.000Z",
                at_ms: 0,
                mapping_version: None,
                template: Some(&long),
                source: "",
                content_hash: None,
                attempts: 1,
                fields,
                rows: &[],
                alternatives: &Map::new(),
                known_values: &[],
            };
            KeptPage::from_page(&page, 1)
        };
        let kept = page(&(0..100).map(field).collect());
        assert_eq!(kept.fields.len(), 100);
        assert!(kept.fields.values().all(has_value));
        let named = |n: usize| (format!("{n}{}", "n".repeat(1_000)), true.into());
        for fields in [(0..100).map(field).collect(), (0..500).map(named).collect()] {
            let bytes = serde_json::to_string(&page(&fields)).unwrap().len();
            assert!(bytes < MOST_BYTES + 1_024, "{bytes}");
        }
    }
}
