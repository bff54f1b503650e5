//! Whether two values are spellings of the same value.

use serde_json::Value;
use webfill_values::is_equivalent_value;

/// Whether a value of the input equals the stored one, also if it is the text of that value in a CSV file. The user
/// decides on the spelling, so another spelling is another value.
pub(super) fn is_same_spelling(kept: &Value, given: &Value) -> bool {
    match (kept, given) {
        // The texts "null" and "[]" are texts, not missing values.
        (Value::Null | Value::Array(_), Value::String(_)) if !has_value(kept) => false,
        (Value::String(_), _) => kept == given,
        (_, Value::String(text)) => {
            serde_json::from_str::<Value>(text).is_ok_and(|value| value == *kept)
        }
        _ => given == kept,
    }
}

/// Whether two values are the same, perhaps in different spellings.
pub(crate) fn is_same_value(one: &Value, other: &Value) -> bool {
    one == other || is_equivalent_value(one, other)
}

/// Whether a value counts as a value. Null, [], and texts without a visible character do not: they leave a field
/// missing.
pub fn has_value(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !webfill_values::is_blank(text),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}
