//! Counts of the rows of a page.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::dataset_name::DatasetName;
use crate::listing::{ListedRow, Listing, RECORD_ID, row_id};
use crate::record::{has_value, is_one_value};
use crate::site_clock::clamp_to_i64;

/// The rows that one rule of a mapping has found on a page. The counts are stored with the page, as `row_counts`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RowCounts {
    /// The dataset that the rows belong to as records.
    pub dataset: String,
    pub rows: u64,
    /// Rows that have no value for a field of their key, and so do not become records.
    pub without_key: u64,
    /// Rows that have the key of an earlier row of the page but other values. The values of such rows are lost.
    pub same_key: u64,
    /// Whether further rows of the page were left out because of a limit.
    pub cut: bool,
    /// For each field, how many rows have a value for it. Covers all fields that rows have from their own page.
    pub filled: BTreeMap<String, u64>,
    /// For each field, how many rows have no value only because their text is ambiguous.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub undecided: BTreeMap<String, u64>,
}

impl RowCounts {
    /// Rows whose values are in the store.
    pub fn stored(&self) -> u64 {
        self.rows
            .saturating_sub(self.without_key)
            .saturating_sub(self.same_key)
    }
}

/// The counts of a page that was fetched for these records, one entry per listing. Also returns the key of the first
/// row that is lost because an earlier row has the same key. The key lacks values that come from the records.
pub fn row_counts(listings: &[Listing], records: &[String]) -> (Vec<RowCounts>, Option<String>) {
    let (clashing, key) = find_key_clashes(listings);
    let counts = listings.iter().zip(clashing).map(|(listing, same_key)| {
        let without_key = listing.rows.iter();
        let without_key = without_key.filter(|row| !has_key(listing, row, records));
        RowCounts {
            dataset: listing.dataset.as_str().to_owned(),
            rows: listing.rows.len() as u64,
            without_key: without_key.count() as u64,
            same_key,
            cut: listing.cut,
            filled: count_filled(listing),
            undecided: count_undecided(listing),
        }
    });
    (counts.collect(), key)
}

/// How many rows a page lists; `None` if its mapping has no rows.
pub(crate) fn rows_of(counts: &[RowCounts]) -> Option<i64> {
    let rows = counts.iter().map(|of_rule| of_rule.rows).sum();
    (!counts.is_empty()).then_some(clamp_to_i64(rows))
}

fn count_filled(listing: &Listing) -> BTreeMap<String, u64> {
    let mut filled = BTreeMap::new();
    for row in &listing.rows {
        for (name, value) in &row.fields {
            match filled.get_mut(name) {
                Some(count) => *count += u64::from(has_value(value)),
                None => {
                    filled.insert(name.clone(), u64::from(has_value(value)));
                }
            }
        }
    }
    // Fields from the page's record are left out, because their values are known only when the rows are stored.
    filled.retain(|name, _| !comes_from_record(listing, name));
    filled
}

fn count_undecided(listing: &Listing) -> BTreeMap<String, u64> {
    let mut undecided = BTreeMap::new();
    for name in listing.rows.iter().flat_map(|row| &row.undecided) {
        *undecided.entry(name.clone()).or_default() += 1;
    }
    undecided
}

fn comes_from_record(listing: &Listing, name: &str) -> bool {
    listing.from_record.iter().any(|(field, _)| field == name)
}

fn has_key(listing: &Listing, row: &ListedRow, records: &[String]) -> bool {
    let has_part = |name: &String| {
        let of_record = listing.from_record.iter().find(|(field, _)| field == name);
        match of_record.map(|(_, field)| field.as_str()) {
            Some(RECORD_ID) => records.len() == 1,
            // A value from a record is known only when the rows are stored. Until then, it is assumed to exist.
            Some(_) => !records.is_empty(),
            None => row_id(std::slice::from_ref(name), &row.fields).is_some(),
        }
    };
    listing.key.iter().all(has_part)
}

/// The fields of a row, and the index of the rule that found it.
type RuleRow<'a> = (usize, &'a Map<String, Value>);

/// For each listing, how many rows lose values because another row has the same key. Also returns the key of the first
/// such row. Values from the record that the page was fetched for are ignored, because they are the same for all rows.
fn find_key_clashes(listings: &[Listing]) -> (Vec<u64>, Option<String>) {
    let mut known: HashMap<(&DatasetName, String), Vec<RuleRow>> = HashMap::new();
    let mut rows = vec![0; listings.len()];
    let mut first = None;
    for (rule, listing) in listings.iter().enumerate() {
        let is_of_page = |name: &&String| !comes_from_record(listing, name);
        let key: Vec<String> = listing.key.iter().filter(is_of_page).cloned().collect();
        for row in &listing.rows {
            let Some(id) = row_id(&key, &row.fields) else {
                continue;
            };
            let same_key = known.entry((&listing.dataset, id)).or_default();
            let is_lost = same_key.iter().any(|(other, fields)| match *other == rule {
                true => differ(fields, &row.fields),
                false => contradict(fields, &row.fields),
            });
            if is_lost {
                rows[rule] += 1;
                let id = || row_id(&key, &row.fields).unwrap_or_default();
                first.get_or_insert_with(id);
            } else if same_key.last().is_none_or(|(other, _)| *other != rule) {
                same_key.push((rule, &row.fields));
            }
        }
    }
    (rows, first)
}

/// Whether one of two rows of the same rule has values that the other lacks.
fn differ(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.iter().any(|(name, value)| {
        let other = other.get(name).unwrap_or(&Value::Null);
        (has_value(value) || has_value(other)) && !is_one_value(value, other)
    })
}

/// Whether two rows have different values for the same field. Rows of two rules may complete each other.
fn contradict(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.iter().any(|(name, value)| {
        other.get(name).is_some_and(|other| {
            has_value(value) && has_value(other) && !is_one_value(value, other)
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(dataset: &str, from_record: &[(&str, &str)], rows: &[Value]) -> Listing {
        let pair = |(field, of): &(&str, &str)| ((*field).to_owned(), (*of).to_owned());
        let row = |(position, fields): (usize, &Value)| ListedRow {
            position: position as u64,
            fields: fields.as_object().unwrap().clone(),
            links: Vec::new(),
            undecided: Vec::new(),
        };
        Listing {
            dataset: dataset.parse().unwrap(),
            key: vec!["user".to_owned(), "item".to_owned()],
            from_record: from_record.iter().map(pair).collect(),
            want: Vec::new(),
            complete: false,
            cut: false,
            rows: rows.iter().enumerate().map(row).collect(),
        }
    }

    #[test]
    fn rows_with_one_key_clash_if_their_values_differ() {
        let row = |item: Value, stars: Value| json!({"user": "ada", "item": item, "stars": stars});
        let first = row(json!("a"), json!(4));
        for (second, lost) in [
            (row(json!("a"), json!(4)), 0),
            (row(json!(" a"), json!(4)), 0),
            (row(json!("a"), json!(5)), 1),
            (row(json!("a"), json!(null)), 1),
            (row(json!("b"), json!(5)), 0),
            (row(json!(null), json!(5)), 0),
        ] {
            let rows = [first.clone(), second.clone()];
            let (found, key) = find_key_clashes(&[listing("ratings", &[], &rows)]);
            assert_eq!(found, [lost], "{second}");
            assert_eq!(key, (lost > 0).then(|| "ada/a".to_owned()));
            let (of_record, _) = find_key_clashes(&[listing("ratings", &[("user", "_id")], &rows)]);
            assert_eq!(of_record, [lost], "{second}");
        }
    }

    #[test]
    fn rows_of_two_rules_clash_only_where_both_have_values() {
        let one = listing(
            "r",
            &[],
            &[json!({"user": "a", "item": 1, "x": 1, "y": null})],
        );
        for (dataset, row, lost) in [
            ("r", json!({"user": "a", "item": 1, "x": null, "y": 2}), 0),
            ("r", json!({"user": "a", "item": 1, "z": 2}), 0),
            ("r", json!({"user": "a", "item": 1, "x": 2}), 1),
            ("other", json!({"user": "a", "item": 1, "x": 2}), 0),
        ] {
            let (found, _) = find_key_clashes(&[one.clone(), listing(dataset, &[], &[row])]);
            assert_eq!(found, [0, lost], "{dataset}");
        }
    }

    #[test]
    fn each_row_is_counted_once_by_its_result() {
        let rows = [
            json!({"user": null, "item": "a", "stars": 4}),
            json!({"user": null, "item": null, "stars": 5}),
            json!({"user": null, "item": "a", "stars": null}),
            json!({"user": null, "item": "b", "stars": ""}),
        ];
        let mut listing = listing("ratings", &[("user", "_id")], &rows);
        listing.rows[2].undecided = vec!["stars".to_owned()];
        let for_one = ["users/ada".to_owned()];
        let (counts, key) = row_counts(&[listing.clone()], &for_one);
        assert_eq!(
            serde_json::to_value(&counts).unwrap(),
            json!([{"dataset": "ratings", "rows": 4, "without_key": 1, "same_key": 1, "cut": false,
                "filled": {"item": 3, "stars": 2}, "undecided": {"stars": 1}}])
        );
        assert_eq!(counts[0].stored(), 2);
        assert_eq!(key.as_deref(), Some("a"));
        let (counts, _) = row_counts(&[listing], &[]);
        assert_eq!(counts[0].without_key, 4, "for no record");
    }
}
