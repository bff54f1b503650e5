//! Pages from before and after a fall, for who repairs the mapping.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::mapping_health::GoodPage;
use crate::recent::push;

/// Pages of each kind.
pub(crate) const KEPT: usize = 20;

/// Of the pages from which nothing is missing, one in so many is kept once there are enough.
const ONE_IN: u64 = 10;

/// A kept value is cut to so many characters, and a page's fields to so many.
const MOST_CHARS: usize = 200;
const MOST_FIELDS: usize = 50;

/// A page, with what was extracted from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptPage {
    /// Its key in the store.
    pub id: String,
    pub url: String,
    pub at: String,
    pub template: Option<String>,
    /// Counts the pages of the mapping.
    pub number: u64,
    pub fields: Map<String, Value>,
}

impl KeptPage {
    pub(crate) fn of(page: &GoodPage<'_>, number: u64) -> KeptPage {
        let fields = page.fields.iter().take(MOST_FIELDS);
        KeptPage {
            id: page.id.to_owned(),
            url: page.url.to_owned(),
            at: page.at.to_owned(),
            template: page.template.map(str::to_owned),
            number,
            fields: fields
                .map(|(name, value)| (name.clone(), cut(value)))
                .collect(),
        }
    }
}

fn cut(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => Value::String(text[..end].to_owned()),
        None => value.clone(),
    }
}

/// The last pages that had all that is usual, and the last ones that had not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct LastPages {
    whole_seen: u64,
    pub(crate) whole: VecDeque<KeptPage>,
    pub(crate) lacking: VecDeque<KeptPage>,
}

impl LastPages {
    pub(crate) fn note(&mut self, page: &GoodPage<'_>, number: u64, is_whole: bool) {
        if !is_whole {
            return push(&mut self.lacking, KeptPage::of(page, number), KEPT);
        }
        self.whole_seen += 1;
        if self.whole.len() < KEPT || self.whole_seen.is_multiple_of(ONE_IN) {
            push(&mut self.whole, KeptPage::of(page, number), KEPT);
        }
    }
}
