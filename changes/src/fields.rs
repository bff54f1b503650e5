//! Fields that a mapping has read, bounded for keeping and compared by value.

use serde_json::{Map, Value};

use crate::hash;

/// A longer value is kept by its beginning and its hash.
const MOST_VALUE_BYTES: usize = 8 << 10;

/// What is kept of all values together; of those behind it the hash.
const MOST_BYTES: usize = 128 << 10;

const MOST_FIELDS: usize = 2_000;

/// Of a long value, characters that are kept.
const BEGINNING: usize = 500;

/// The fields as they are kept.
pub(crate) fn kept(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut bytes = 0;
    let mut kept = Map::new();
    for (name, value) in fields.iter().take(MOST_FIELDS) {
        let text = value.to_string();
        bytes += name.len() + text.len().min(MOST_VALUE_BYTES);
        let is_short = text.len() <= MOST_VALUE_BYTES && bytes <= MOST_BYTES;
        let name: String = name.chars().take(BEGINNING).collect();
        let value = match is_short {
            true => value.clone(),
            false => {
                let most = if bytes <= MOST_BYTES { BEGINNING } else { 0 };
                let beginning: String = text.chars().take(most).collect();
                format!("{beginning}… ({} bytes, {:016x})", text.len(), hash(&text)).into()
            }
        };
        kept.insert(name, value);
    }
    kept
}

/// Whether no field has a value.
pub(crate) fn are_empty(fields: &Map<String, Value>) -> bool {
    fields.values().all(|value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    })
}

/// The fields that differ, as they were and as they are.
pub(crate) fn differing(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> (Map<String, Value>, Map<String, Value>) {
    let without = |all: &Map<String, Value>, others: &Map<String, Value>| {
        let differs = |(name, value): &(&String, &Value)| others.get(*name) != Some(*value);
        let some = all.iter().filter(differs);
        some.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    (without(old, new), without(new, old))
}
