//! Which values are one in two spellings.

use serde_json::Value;
use webfill_values::same_value;

use super::has_value;

/// Whether a value of the input is the one that is kept, perhaps as the text that a CSV file has in its place. The
/// user decides how a value is spelt, so another spelling is another one.
pub(super) fn is_same(kept: &Value, given: &Value) -> bool {
    match (kept, given) {
        // The texts "null" and "[]" are texts, and no missing values.
        (Value::Null | Value::Array(_), Value::String(_)) if !has_value(kept) => false,
        (Value::String(_), _) => kept == given,
        (_, Value::String(text)) => {
            serde_json::from_str::<Value>(text).is_ok_and(|value| value == *kept)
        }
        _ => given == kept,
    }
}

/// Whether two values are one, perhaps in two spellings.
pub(crate) fn is_one(one: &Value, other: &Value) -> bool {
    one == other || same_value(one, other)
}
