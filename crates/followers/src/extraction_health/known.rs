//! Compares the values of a page with earlier values of its record. Only some pages are compared, as a canary.

use serde_json::{Map, Value};
use webfill_store::{Cursor, Store, StoreError};

/// The most pages of a chunk that are compared with their records.
const COMPARED: usize = 128;

/// For each page, the fields that its record knew before, and whether the page gives the same value. Most pages of a
/// long chunk are not compared, so their lists are empty.
pub(super) async fn compare_values(
    store: &dyn Store,
    pages: &[(Cursor, Value)],
) -> Result<Vec<Vec<(String, bool)>>, StoreError> {
    let with_record: Vec<(usize, &str)> = pages
        .iter()
        .enumerate()
        .filter_map(|(index, (_, page))| Some((index, page["records"][0].as_str()?)))
        .collect();
    let every = with_record.len().div_ceil(COMPARED).max(1);
    let chosen: Vec<(usize, &str)> = with_record.into_iter().step_by(every).collect();
    let mut known = vec![Vec::new(); pages.len()];
    if chosen.is_empty() {
        return Ok(known);
    }
    let keys = chosen.iter().map(|(_, key)| (*key).to_owned()).collect();
    for ((index, _), given) in chosen.iter().zip(store.given_values(keys).await?) {
        if let Some(found) = pages[*index].1["fields"].as_object() {
            known[*index] = compare_fields(&given, found);
        }
    }
    Ok(known)
}

/// The fields with a known and a found value, and whether the two agree.
fn compare_fields(given: &Map<String, Value>, found: &Map<String, Value>) -> Vec<(String, bool)> {
    let both = given
        .iter()
        .filter_map(|(name, known)| Some((name, known, found.get(name)?)));
    both.map(|(name, known, found)| (name.clone(), is_same_value(found, known)))
        .collect()
}

/// Whether the found value equals the known one. Letter case, spaces and the notation of numbers do not matter. For
/// lists, one equal item is enough.
fn is_same_value(found: &Value, known: &Value) -> bool {
    match (found, known) {
        (Value::Array(items), known) => items.iter().any(|item| is_same_value(item, known)),
        (found, Value::Array(items)) => items.iter().any(|item| is_same_value(found, item)),
        (found, known) => {
            let (found, known) = (normalize_value(found), normalize_value(known));
            let number = |text: &str| text.replace(',', "").parse::<f64>().ok();
            found == known || number(&found).is_some_and(|one| number(&known) == Some(one))
        }
    }
}

fn normalize_value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.to_lowercase(),
        other => other.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_compared_as_people_do() {
        assert!(is_same_value(
            &json!(" ADA \n Lovelace"),
            &json!("Ada Lovelace")
        ));
        assert!(is_same_value(&json!(7), &json!("7.0")));
        assert!(is_same_value(&json!("1,200"), &json!(1200)));
        assert!(is_same_value(&json!(["x", "Rome"]), &json!("rome")));
        assert!(!is_same_value(&json!("Rome"), &json!("Paris")));
        let given = json!({"name": "Ada", "city": "Rome"});
        let found = json!({"name": "Eve", "price": 3});
        let compared = compare_fields(given.as_object().unwrap(), found.as_object().unwrap());
        assert_eq!(compared, [("name".to_owned(), false)]);
    }
}
