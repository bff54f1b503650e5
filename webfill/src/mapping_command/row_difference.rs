//! Finds the rows and fields of a golden case that differ.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use webfill_mapping::Listing;

const LINES_SHOWN: usize = 20;
const VALUE_CHARS: usize = 80;

/// The differences, one per line. `expected` is the member `rows` of a golden case.
pub fn difference_lines(expected: &Value, found: &[Listing]) -> Vec<String> {
    let mut lines = Vec::new();
    let expected: Vec<&Value> = expected.as_array().into_iter().flatten().collect();
    for index in 0..expected.len().max(found.len()) {
        match (expected.get(index), found.get(index)) {
            (Some(expected), Some(found)) => compare_listings(expected, found, &mut lines),
            (Some(expected), None) => {
                let dataset = dataset_name(expected);
                lines.push(format!("- rows of {dataset}: the mapping has no such rows"));
            }
            (None, Some(found)) => {
                lines.push(format!("+ rows of {}: the case has none", found.dataset));
            }
            (None, None) => {}
        }
    }
    let more = lines.len().saturating_sub(LINES_SHOWN);
    lines.truncate(LINES_SHOWN);
    if more > 0 {
        lines.push(format!("and {more} more differences in rows"));
    }
    lines
}

fn dataset_name(listing: &Value) -> &str {
    listing["dataset"].as_str().unwrap_or("no dataset")
}

fn compare_listings(expected: &Value, found: &Listing, lines: &mut Vec<String>) {
    let name = &found.dataset;
    if dataset_name(expected) != name {
        let was = dataset_name(expected);
        lines.push(format!("- rows of {was}"));
        lines.push(format!("+ rows of {name}"));
        return;
    }
    let none = Map::new();
    let rows = expected["rows"].as_array().into_iter().flatten();
    let expected: Vec<&Map<String, Value>> =
        rows.map(|row| row.as_object().unwrap_or(&none)).collect();
    let found_rows: Vec<&Map<String, Value>> = found.rows.iter().map(|row| &row.fields).collect();
    if expected.len() != found_rows.len() {
        lines.push(format!(
            "  rows of {name}: {} expected, {} found",
            expected.len(),
            found_rows.len()
        ));
    }
    let pairs = match_rows(&expected, &found_rows, &found.key);
    for (at, other) in &pairs {
        match other {
            Some(other) => compare_row(name, *at, expected[*at], found_rows[*other], lines),
            None => lines.push(format!("- {name}, row {at}: {}", format_row(expected[*at]))),
        }
    }
    let matched: HashSet<usize> = pairs.iter().filter_map(|(_, other)| *other).collect();
    for (at, row) in found_rows.iter().enumerate() {
        if !matched.contains(&at) {
            lines.push(format!("+ {name}, row {at}: {}", format_row(row)));
        }
    }
    let places: Vec<usize> = pairs.iter().filter_map(|(_, other)| *other).collect();
    if !places.is_sorted() {
        lines.push(format!("  rows of {name}: they come in another order"));
    }
}

/// Matches expected and found rows: by their key if it is unique, otherwise by their order.
fn match_rows(
    expected: &[&Map<String, Value>],
    found: &[&Map<String, Value>],
    key: &[String],
) -> Vec<(usize, Option<usize>)> {
    if let (Some(of_expected), Some(of_found)) =
        (unique_keys(expected, key), unique_keys(found, key))
    {
        let places: HashMap<&String, usize> = of_found.iter().zip(0..).collect();
        let places = of_expected.iter().map(|key| places.get(key).copied());
        return places.enumerate().collect();
    }
    let place = |at: usize| (at < found.len()).then_some(at);
    (0..expected.len()).map(|at| (at, place(at))).collect()
}

/// The key of each row; `None` if two rows have the same key.
fn unique_keys(rows: &[&Map<String, Value>], key: &[String]) -> Option<Vec<String>> {
    let key_of = |row: &&Map<String, Value>| {
        let values: Vec<&Value> = key.iter().filter_map(|name| row.get(name)).collect();
        let is_known = values.iter().any(|value| !value.is_null());
        is_known.then(|| Value::from_iter(values.into_iter().cloned()).to_string())
    };
    let keys: Option<Vec<String>> = rows.iter().map(key_of).collect();
    let keys = keys?;
    let different: HashSet<&String> = keys.iter().collect();
    (different.len() == keys.len()).then_some(keys)
}

fn compare_row(
    name: &str,
    at: usize,
    expected: &Map<String, Value>,
    found: &Map<String, Value>,
    lines: &mut Vec<String>,
) {
    let others = found.keys().filter(|field| !expected.contains_key(*field));
    for field in expected.keys().chain(others) {
        let [was, is] = [expected, found].map(|row| row.get(field));
        if was != is {
            let (was, is) = (format_value(was), format_value(is));
            lines.push(format!("- {name}, row {at}: {field}: {was}"));
            lines.push(format!("+ {name}, row {at}: {field}: {is}"));
        }
    }
}

fn format_value(value: Option<&Value>) -> String {
    match value {
        Some(value) => shorten(&value.to_string()),
        None => "no such field".to_owned(),
    }
}

fn format_row(row: &Map<String, Value>) -> String {
    shorten(&Value::Object(row.clone()).to_string())
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use webfill_mapping::Row;

    use super::*;

    #[test]
    fn each_difference_names_its_row_and_field() {
        let rows = |rows: &[(&str, Value)]| -> Vec<Value> {
            let rows = rows.iter();
            rows.map(|(item, stars)| json!({"item": item, "stars": stars}))
                .collect()
        };
        let table: [(&str, Vec<Value>, &[&str]); 7] = [
            ("the same", rows(&[("a", json!(1)), ("b", json!(2))]), &[]),
            (
                "another value",
                rows(&[("a", json!(1)), ("b", json!(null))]),
                &["- d, row 1: stars: 2", "+ d, row 1: stars: null"],
            ),
            (
                "one less",
                rows(&[("b", json!(2))]),
                &[
                    "  rows of d: 2 expected, 1 found",
                    r#"- d, row 0: {"item":"a","stars":1}"#,
                ],
            ),
            (
                "one more",
                rows(&[("a", json!(1)), ("c", json!(3)), ("b", json!(2))]),
                &[
                    "  rows of d: 2 expected, 3 found",
                    r#"+ d, row 1: {"item":"c","stars":3}"#,
                ],
            ),
            (
                "another order",
                rows(&[("b", json!(2)), ("a", json!(1))]),
                &["  rows of d: they come in another order"],
            ),
            (
                "the same key twice: by their order",
                rows(&[("a", json!(1)), ("a", json!(2))]),
                &[r#"- d, row 1: item: "b""#, r#"+ d, row 1: item: "a""#],
            ),
            (
                "another field",
                vec![
                    json!({"item": "a", "stars": 1, "new": 1}),
                    json!({"item": "b"}),
                ],
                &[
                    "- d, row 0: new: no such field",
                    "+ d, row 0: new: 1",
                    "- d, row 1: stars: 2",
                    "+ d, row 1: stars: no such field",
                ],
            ),
        ];
        let expected = rows(&[("a", json!(1)), ("b", json!(2))]);
        let expected = json!([{"dataset": "d", "rows": expected}]);
        for (what, found, wanted) in table {
            let row = |(position, fields): (usize, Value)| Row {
                position,
                links: Vec::new(),
                fields: fields.as_object().unwrap().clone(),
                undecided: Vec::new(),
            };
            let found = Listing {
                dataset: "d".to_owned(),
                key: vec!["item".to_owned()],
                rows: found.into_iter().enumerate().map(row).collect(),
                ..Listing::default()
            };
            assert_eq!(difference_lines(&expected, &[found]), wanted, "{what}");
        }
    }

    #[test]
    fn rules_that_only_the_case_or_only_the_mapping_has_are_reported() {
        let expected = json!([{"dataset": "d", "rows": []}]);
        assert_eq!(
            difference_lines(&expected, &[]),
            ["- rows of d: the mapping has no such rows"]
        );
        let found = Listing {
            dataset: "e".to_owned(),
            ..Listing::default()
        };
        assert_eq!(
            difference_lines(&json!([]), &[found]),
            ["+ rows of e: the case has none"]
        );
    }
}
