//! The known values of a page's fields, and their comparison with the values that a mapping reads.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

/// How many values of a field are kept, and how many characters of each value.
const MOST_VALUES: usize = 50;
const MOST_CHARS: usize = 2_000;

/// How the value that was read for a field compares with its known value. Verdicts that need attention come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The value that was read differs from the known one.
    Differs,
    /// There is a known value, but nothing was read.
    NotRead,
    /// There is no known value, and nothing was read.
    Empty,
    /// A value was read, but none is known.
    New,
    Same,
}

/// The values of fields as texts. Fields without values are left out.
pub(super) fn known_values(fields: &Map<String, Value>) -> BTreeMap<String, Vec<String>> {
    let of_field = |(name, value): (&String, &Value)| {
        let values = texts_of(value);
        (!values.is_empty()).then(|| (name.clone(), values))
    };
    fields.iter().filter_map(of_field).collect()
}

/// The texts of a value: of each entry if it is a list.
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

/// Compares the values that were read with the known ones. White space and the order of values are ignored.
pub(super) fn compare(read: &[String], known: Option<&[String]>) -> Verdict {
    let known = known.unwrap_or_default();
    match (read, known) {
        ([], []) => Verdict::Empty,
        ([], _) => Verdict::NotRead,
        (_, []) => Verdict::New,
        (read, known) if fold_and_sort(read) == fold_and_sort(known) => Verdict::Same,
        _ => Verdict::Differs,
    }
}

fn fold_and_sort(values: &[String]) -> Vec<String> {
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
    fn read_values_are_compared_with_known_ones() {
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
