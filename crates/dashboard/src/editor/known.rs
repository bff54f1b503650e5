//! What is known of a page's fields, and how what a mapping reads compares with it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

/// Values of one field that are kept, and characters of each.
const MOST_VALUES: usize = 50;
const MOST_CHARS: usize = 2_000;

/// How a field of a page compares; the first ones deserve a look first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Something else is known.
    Differs,
    /// Something is known, and nothing is read.
    NotRead,
    /// Nothing is known, and nothing is read.
    Empty,
    /// Something is read, and nothing is known.
    New,
    Same,
}

/// The values of fields as texts, those that have any.
pub(super) fn known_values(fields: &Map<String, Value>) -> BTreeMap<String, Vec<String>> {
    let of_field = |(name, value): (&String, &Value)| {
        let values = texts_of(value);
        (!values.is_empty()).then(|| (name.clone(), values))
    };
    fields.iter().filter_map(of_field).collect()
}

/// The texts of a value.
pub(super) fn texts_of(value: &Value) -> Vec<String> {
    let all = match value {
        Value::Array(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    };
    let text = |value: &Value| match value {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(text.chars().take(MOST_CHARS).collect()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    all.iter().filter_map(text).take(MOST_VALUES).collect()
}

/// Compares what was read with what is known. White space aside, texts are the same or not; the order of several
/// values says nothing.
pub(super) fn compare(read: &[String], known: Option<&[String]>) -> Verdict {
    let known = known.unwrap_or_default();
    match (read, known) {
        ([], []) => Verdict::Empty,
        ([], _) => Verdict::NotRead,
        (_, []) => Verdict::New,
        (read, known) if folded(read) == folded(known) => Verdict::Same,
        _ => Verdict::Differs,
    }
}

fn folded(values: &[String]) -> Vec<String> {
    let one = |value: &String| value.split_whitespace().collect::<Vec<&str>>().join(" ");
    let mut folded: Vec<String> = values.iter().map(one).collect();
    folded.sort();
    folded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_is_compared_with_what_is_known() {
        let verdict =
            |read: Value, known: Value| compare(&texts_of(&read), Some(&texts_of(&known)));
        assert_eq!(verdict(json!(" Ada  L"), json!("Ada L")), Verdict::Same);
        assert_eq!(verdict(json!(["b", "a"]), json!(["a", "b"])), Verdict::Same);
        assert_eq!(verdict(json!(3), json!("3")), Verdict::Same);
        assert_eq!(verdict(json!("Bob"), json!("Ada")), Verdict::Differs);
        assert_eq!(verdict(json!(null), json!("Ada")), Verdict::NotRead);
        assert_eq!(verdict(json!("Ada"), json!("")), Verdict::New);
        assert_eq!(verdict(json!([]), json!(null)), Verdict::Empty);
        assert_eq!(compare(&[], None), Verdict::Empty);
        assert!(Verdict::Differs < Verdict::NotRead && Verdict::New < Verdict::Same);
    }
}
