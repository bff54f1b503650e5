//! The rows of a page, which become records.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::dataset_name::{DatasetName, record_key, split_record_key};
use crate::record::{MAX_RECORD_ID_BYTES, StoredRecord};

/// The rows of one dataset on a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    pub dataset: DatasetName,
    /// The fields whose values form the id of a row's record.
    pub key: Vec<String>,
    /// Fields whose values come from the record that the page was fetched for. Each pair has the row's field and the
    /// record's field, or `_id` for the record's id.
    pub from_record: Vec<(String, String)>,
    /// The fields to be filled by the pages that the rows link to.
    pub want: Vec<String>,
    /// Whether rows that are missing from a list read to its end are marked as gone.
    pub complete: bool,
    /// Whether further rows were left out because of a limit.
    pub cut: bool,
    pub rows: Vec<ListedRow>,
}

/// One row of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedRow {
    /// The row's position on the page, from 0.
    pub position: u64,
    /// The values of the row. A field without a value is null.
    pub fields: Map<String, Value>,
    /// The URLs of pages that the row links to, and that may fill its record.
    pub links: Vec<String>,
    /// Fields that have no value only because their text is ambiguous.
    pub undecided: Vec<String>,
}

/// In [`Listing::from_record`], this name stands for the id of the record that the page was fetched for.
pub(crate) const RECORD_ID: &str = "_id";

/// A row with the key of its record, including the values from the record that its page was fetched for.
pub(crate) struct KeyedRow {
    pub(crate) key: String,
    pub(crate) position: u64,
    pub(crate) fields: Map<String, Value>,
    pub(crate) links: Vec<String>,
    pub(crate) want: Vec<String>,
    /// Whether missing rows are marked as gone; see [`Listing::complete`].
    pub(crate) complete: bool,
}

impl Listing {
    /// The part of a row's record id that the row itself gives, without values from the record that the page was
    /// fetched for; `None` if a value is missing.
    pub fn own_id(&self, row: &ListedRow) -> Option<String> {
        let is_own = |name: &&String| !self.from_record.iter().any(|(field, _)| field == *name);
        let key: Vec<String> = self.key.iter().filter(is_own).cloned().collect();
        row_id(&key, &row.fields)
    }

    /// Whether rows take values other than the id from the record that the page was fetched for.
    pub(crate) fn needs_record(&self) -> bool {
        self.from_record.iter().any(|(_, field)| field != RECORD_ID)
    }

    /// The rows that have a key, and the number of rows without one. Of several rows with the same key, the first one
    /// is taken. `records` are the records that the page was fetched for, with their keys.
    pub(crate) fn rows_with_keys(
        &self,
        records: &[(String, Option<StoredRecord>)],
    ) -> (Vec<KeyedRow>, u64) {
        let named = self.from_record.iter();
        let of_record: Vec<(&String, Value)> = named
            .map(|(name, field)| (name, common_value(records, field)))
            .collect();
        let mut seen = HashSet::new();
        let mut keyed = Vec::with_capacity(self.rows.len());
        let mut without_key = 0;
        for row in &self.rows {
            let mut fields = row.fields.clone();
            for (name, value) in &of_record {
                fields.insert((*name).clone(), value.clone());
            }
            let Some(id) = row_id(&self.key, &fields) else {
                without_key += 1;
                continue;
            };
            if seen.insert(id.clone()) {
                keyed.push(KeyedRow {
                    key: record_key(&self.dataset, &id),
                    position: row.position,
                    fields,
                    links: row.links.clone(),
                    want: self.want.clone(),
                    complete: self.complete,
                });
            }
        }
        (keyed, without_key)
    }
}

/// The value of a field that all of these records have; null if the values differ, because it is then unknown which
/// record the rows belong to.
fn common_value(records: &[(String, Option<StoredRecord>)], field: &str) -> Value {
    let mut values = records.iter().map(|(key, stored)| match field {
        RECORD_ID => Value::from(split_record_key(key).1),
        _ => {
            let stored = stored.as_ref();
            let value = stored.and_then(|stored| stored.fields.get(field));
            value.cloned().unwrap_or_default()
        }
    });
    let first = values.next().unwrap_or_default();
    match values.all(|other| other == first) {
        true => first,
        false => Value::Null,
    }
}

/// The id of a row's record; `None` if the value of any key field is missing. The texts of the values are joined by
/// `/`; `/` and `%` within them are escaped.
pub(crate) fn row_id(key: &[String], fields: &Map<String, Value>) -> Option<String> {
    let mut id = String::new();
    for (index, name) in key.iter().enumerate() {
        let text = match fields.get(name)? {
            Value::String(text) => webfill_values::normal_form(text),
            Value::Number(number) => number.to_string(),
            Value::Bool(bool) => bool.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        if text.is_empty() {
            return None;
        }
        if index > 0 {
            id.push('/');
        }
        match key.len() {
            1 => id.push_str(&text),
            _ => id.push_str(&text.replace('%', "%25").replace('/', "%2F")),
        }
    }
    Some(shorten_id(id))
}

/// The id, or, if it is too long, its beginning with a hash of the whole id.
fn shorten_id(id: String) -> String {
    if id.len() <= MAX_RECORD_ID_BYTES {
        return id;
    }
    let hash = webfill_urls::page_hash(&id);
    let kept = id.floor_char_boundary(MAX_RECORD_ID_BYTES - hash.len() - 1);
    format!("{}#{hash}", &id[..kept])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row_id_from_json(key: &[&str], fields: Value) -> Option<String> {
        let key: Vec<String> = key.iter().map(|&name| name.to_owned()).collect();
        row_id(&key, fields.as_object().unwrap())
    }

    #[test]
    fn ids_are_readable_and_those_of_different_keys_differ() {
        let of = |user: &str, item: Value| {
            row_id_from_json(&["user", "item"], json!({"user": user, "item": item}))
        };
        assert_eq!(of("ada", json!(7)).unwrap(), "ada/7");
        assert_eq!(of("ada/7", json!("x")).unwrap(), "ada%2F7/x");
        assert_ne!(of("a/b", json!("c")), of("a", json!("b/c")));
        assert_ne!(of("a%2Fb", json!("c")), of("a/b", json!("c")));
        assert_eq!(
            row_id_from_json(&["url"], json!({"url": "https://a.example/1"})).unwrap(),
            "https://a.example/1"
        );
        assert_eq!(
            of(" ada ", json!(7)),
            of("ada", json!("7")),
            "in their normal form"
        );
    }

    #[test]
    fn without_a_value_there_is_no_id() {
        for missing in [
            json!(null),
            json!(""),
            json!("\u{a0}"),
            json!([1]),
            json!({}),
        ] {
            assert_eq!(
                row_id_from_json(&["user", "item"], json!({"user": "ada", "item": missing})),
                None
            );
        }
        assert_eq!(
            row_id_from_json(&["user", "item"], json!({"user": "ada"})),
            None
        );
    }

    #[test]
    fn long_ids_are_cut_and_still_differ() {
        let of = |end: &str| {
            row_id_from_json(&["text"], json!({"text": "ä".repeat(2_000) + end})).unwrap()
        };
        assert!(of("1").len() <= MAX_RECORD_ID_BYTES);
        assert_ne!(of("1"), of("2"));
    }
}
