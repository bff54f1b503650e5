//! The fields that a mapping has extracted, limited for storage and compared by value.

use serde_json::{Map, Value};
use webfill_values::normal_form;

use crate::hash;

/// The longest value that is kept, in bytes. Of a longer value, only the beginning and the hash are kept.
const MOST_VALUE_BYTES: usize = 8 << 10;

/// The most bytes kept of all names and values together. Of the rest, only the hash is kept.
const MOST_BYTES: usize = 128 << 10;

const MOST_FIELDS: usize = 2_000;

/// How many characters of a long value are kept.
const BEGINNING: usize = 500;

/// The fields as they are stored: limited in size.
pub(crate) fn bounded_fields(fields: &Map<String, Value>) -> Map<String, Value> {
    limit_fields(fields, "(further fields)")
}

/// The rows of a page as they are stored: limited in size. Each row is a field with a name that ends with `]`.
pub(crate) fn bounded_rows(rows: &Map<String, Value>) -> Map<String, Value> {
    limit_fields(rows, "(further rows)")
}

fn limit_fields(fields: &Map<String, Value>, further: &str) -> Map<String, Value> {
    let mut bytes = 0;
    let mut kept = Map::new();
    let mut rest = None;
    for (name, value) in fields {
        let text = value.to_string();
        bytes += name.len() + text.len().min(MOST_VALUE_BYTES);
        if kept.len() >= MOST_FIELDS || bytes > MOST_BYTES {
            let before = rest.unwrap_or_default();
            rest = Some(hash(&format!("{before:x} {name} {text}")));
            continue;
        }
        let value = match text.len() <= MOST_VALUE_BYTES {
            true => value.clone(),
            false => {
                let beginning: String = text.chars().take(BEGINNING).collect();
                format!("{beginning}… ({} bytes, {:016x})", text.len(), hash(&text)).into()
            }
        };
        kept.insert(name.clone(), value);
    }
    if let Some(rest) = rest {
        kept.insert(further.into(), format!("{rest:016x}").into());
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

/// The fields that differ, with their old and new values.
pub(crate) fn differing_fields(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> (Map<String, Value>, Map<String, Value>) {
    let without = |all: &Map<String, Value>, others: &Map<String, Value>| {
        let differs = |(name, value): &(&String, &Value)| {
            others.get(*name).map(normalize_value) != Some(normalize_value(value))
        };
        let some = all.iter().filter(differs);
        some.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let mut of_old: Map<String, Value> = without(old, new);
    let mut of_new: Map<String, Value> = without(new, old);
    // Of a row, only the changed fields are reported.
    for (name, old) in of_old.iter_mut().filter(|(name, _)| name.ends_with(']')) {
        if let Value::Object(old) = old
            && let Some(Value::Object(new)) = of_new.get_mut(name)
        {
            (*old, *new) = differing_fields(old, new);
        }
    }
    (of_old, of_new)
}

/// The normal form of a value: lists are sorted, and 5.0 equals 5.
fn normalize_value(value: &Value) -> Value {
    match value {
        Value::String(text) => normal_form(text).into(),
        Value::Number(number) => {
            let text = number.to_string();
            match text.split_once('.') {
                Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole.into(),
                _ => text.into(),
            }
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(normalize_value).collect();
            items.sort_by_key(Value::to_string);
            items.into()
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| (name.clone(), normalize_value(value));
            members.iter().map(member).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_looking_values_are_no_difference() {
        let fields = |value: Value| -> Map<String, Value> { Map::from_iter([("f".into(), value)]) };
        for (one, other, expected) in [
            ("10 EUR".into(), "10\u{a0}EUR".into(), false),
            ("caf\u{e9}".into(), "cafe\u{301}\u{200b}".into(), false),
            (vec!["a", "b"].into(), vec!["b", "a"].into(), false),
            (5.into(), 5.0.into(), false),
            (vec!["a", "a"].into(), vec!["a"].into(), true),
            ("5".into(), "5.0".into(), true),
            (5.into(), 5.5.into(), true),
            ("a".into(), Value::Null, true),
        ] {
            let (old, _) = differing_fields(&fields(one), &fields(other));
            assert_eq!(!old.is_empty(), expected, "{old:?}");
        }
    }

    #[test]
    fn many_fields_are_bounded_and_their_end_still_counts() {
        let fields = |last: &str| -> Map<String, Value> {
            let all =
                (0..3_000).map(|number| (format!("{}{number:05}", "n".repeat(900)), last.into()));
            all.collect()
        };
        let (one, other) = (
            bounded_fields(&fields("one")),
            bounded_fields(&fields("one")),
        );
        assert_eq!(one, other);
        assert!(Value::from(one.clone()).to_string().len() < 2 * MOST_BYTES);
        let mut changed = fields("one");
        changed.insert("z".into(), 1.into());
        let (old, new) = differing_fields(&one, &bounded_fields(&changed));
        assert_eq!((old.len(), new.len()), (1, 1));
    }
}
