use super::*;
use crate::record::MappingOrder;

const AT_MS: i64 = 1_795_000_000_000;

fn row<'a>(fields: &'a Map<String, Value>, url: &'a str, at_ms: i64) -> RowValues<'a> {
    RowValues {
        fields,
        position: 3,
        url,
        mapping: Some("list"),
        mapping_version: None,
        parent: None,
        want: &[],
        links: &[],
        list: None,
        started_at_ms: at_ms,
    }
}

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn known_record() -> StoredRecord {
    let mut record = StoredRecord::default();
    let first = fields(json!({"item": "a", "stars": 4, "note": null}));
    assert!(record.put_row(
        &row(&first, "http://a.org/?page=1", AT_MS),
        &FillRules::default()
    ));
    record
}

#[test]
fn a_new_row_has_its_values_and_null_for_missing_ones() {
    let record = known_record();
    assert_eq!(
        Value::Object(record.fields.clone()),
        json!({"item": "a", "stars": 4, "note": null})
    );
    assert_eq!(record.row.as_ref().unwrap()["position"], 3);
    assert_eq!(record.sources["stars"]["url"], "http://a.org/?page=1");
    assert!(!record.sources.contains_key("note") && record.missing.is_empty());
}

#[test]
fn the_same_row_again_changes_nothing_and_an_older_one_neither() {
    let mut record = known_record();
    let same = fields(json!({"item": "a", "stars": 4, "note": null}));
    assert!(!record.put_row(
        &row(&same, "http://a.org/?page=1", AT_MS),
        &FillRules::default()
    ));
    let other = fields(json!({"item": "a", "stars": 1, "note": null}));
    assert!(!record.put_row(
        &row(&other, "http://a.org/?page=1", AT_MS - 1),
        &FillRules::default()
    ));
    assert_eq!(record, known_record());
}

#[test]
fn a_later_fetch_replaces_values_of_the_mapping_wherever_the_row_is_now() {
    let mut record = known_record();
    let later = fields(json!({"item": "a", "stars": 5, "note": "good"}));
    assert!(record.put_row(
        &row(&later, "http://a.org/?page=2", AT_MS + 1),
        &FillRules::default()
    ));
    assert_eq!(
        Value::Object(record.fields.clone()),
        json!({"item": "a", "stars": 5, "note": "good"})
    );
    assert_eq!(record.history["stars"][0]["value"], 4);
    let emptied = fields(json!({"item": "a", "stars": null, "note": null}));
    record.put_row(
        &row(&emptied, "http://a.org/?page=2", AT_MS + 2),
        &FillRules::default(),
    );
    assert_eq!(record.fields["stars"], 5, "an empty cell replaces nothing");
}

#[test]
fn values_that_another_version_does_not_find_on_the_same_fetch_are_taken_back() {
    let read = |record: &mut StoredRecord, values: Value, version: &'static str, at_ms: i64| {
        let fields = fields(values);
        let row = RowValues {
            mapping_version: Some(version),
            ..row(&fields, "http://a.org/?page=1", at_ms)
        };
        record.put_row(&row, &FillRules::default())
    };
    let mut record = StoredRecord::default();
    read(&mut record, json!({"item": "a", "stars": 4}), "1", AT_MS);
    let wrong = record.clone();
    let empty = || json!({"item": "a", "stars": null});
    assert!(read(&mut record, empty(), "2", AT_MS));
    assert_eq!(record.fields["stars"], Value::Null);
    assert_eq!(record.history["stars"][0]["value"], 4);
    assert!(!record.sources.contains_key("stars"));
    assert!(
        !read(&mut record, empty(), "2", AT_MS),
        "again it changes nothing"
    );
    // Two rules of one mapping read the row from the same fetch, and only one of them reads the stars.
    let mut record = wrong.clone();
    read(&mut record, empty(), "2", AT_MS);
    read(&mut record, json!({"item": "a", "stars": 5}), "2", AT_MS);
    read(&mut record, empty(), "2", AT_MS);
    assert_eq!(record.fields["stars"], 5);
    // A later fetch may lack a value that is still right.
    let mut record = wrong;
    read(&mut record, empty(), "2", AT_MS + 1);
    assert_eq!(record.fields["stars"], 4);
}

#[test]
fn values_of_the_user_and_of_better_mappings_stay() {
    let mut record = known_record();
    record.fields.insert("note".into(), "mine".into());
    let rules = FillRules {
        order: MappingOrder(vec!["detail".into(), "list".into()]),
        ..FillRules::default()
    };
    record.sources["stars"]["mapping"] = "detail".into();
    let later = fields(json!({"item": "a", "stars": 5, "note": "theirs"}));
    record.put_row(&row(&later, "http://a.org/?page=1", AT_MS + 1), &rules);
    assert_eq!(
        Value::Object(record.fields.clone()),
        json!({"item": "a", "stars": 4, "note": "mine"})
    );
    assert_eq!(record.candidates["stars"][0]["value"], 5);
}

const LIST: &str = "http://a.org/";
const OTHER: &str = "http://a.org/other";

fn put_seen_row(record: &mut StoredRecord, list: Option<&str>, at_ms: i64) {
    let fields = fields(json!({"item": "a"}));
    let row = RowValues {
        list,
        ..row(&fields, "http://a.org/?page=1", at_ms)
    };
    record.put_row(&row, &FillRules::default());
}

#[test]
fn a_row_is_gone_once_no_list_holds_it_and_back_when_it_is_seen_later() {
    let mut record = StoredRecord::default();
    put_seen_row(&mut record, Some(LIST), AT_MS);
    put_seen_row(&mut record, Some(OTHER), AT_MS + 1);
    assert_eq!(
        record.note_row_missing_from_list(LIST, AT_MS),
        RowLoss::Nothing,
        "it was seen then"
    );
    assert_eq!(
        record.note_row_missing_from_list(LIST, AT_MS + 10),
        RowLoss::List
    );
    assert_eq!(record.gone_from(), None);
    assert_eq!(
        record.note_row_missing_from_list(OTHER, AT_MS + 10),
        RowLoss::Row
    );
    assert_eq!(
        record.note_row_missing_from_list(OTHER, AT_MS + 10),
        RowLoss::Nothing,
        "again"
    );
    assert_eq!(record.gone_from().unwrap().list, OTHER);
    assert_eq!(record.row.as_ref().unwrap()["url"], "http://a.org/?page=1");
    // These pages were fetched before the row was found to be gone, but were saved later.
    put_seen_row(&mut record, Some(OTHER), AT_MS + 9);
    assert!(record.gone_from().is_some());
    let mut held_elsewhere = record.clone();
    put_seen_row(&mut held_elsewhere, Some(LIST), AT_MS + 9);
    assert_eq!(held_elsewhere.gone_from(), None);
    put_seen_row(&mut record, Some(OTHER), AT_MS + 10);
    assert_eq!(record.gone_from(), None);
    assert_eq!(
        record.list_holder(OTHER).unwrap().since,
        iso_time(AT_MS + 10)
    );
}

#[test]
fn a_row_that_was_seen_elsewhere_since_is_not_gone() {
    let mut record = StoredRecord::default();
    put_seen_row(&mut record, Some(LIST), AT_MS);
    put_seen_row(&mut record, None, AT_MS + 10);
    assert_eq!(
        record.note_row_missing_from_list(LIST, AT_MS + 11),
        RowLoss::Nothing
    );
    put_seen_row(&mut record, Some(LIST), AT_MS + 12);
    assert_eq!(
        record.note_row_missing_from_list(LIST, AT_MS + 13),
        RowLoss::Row
    );
}

#[test]
fn an_older_page_still_counts_for_its_own_list() {
    let mut record = StoredRecord::default();
    put_seen_row(&mut record, Some(LIST), AT_MS + 1);
    put_seen_row(&mut record, Some(OTHER), AT_MS);
    assert_eq!(
        record.note_row_missing_from_list(LIST, AT_MS + 10),
        RowLoss::List
    );
}

#[test]
fn a_row_of_too_many_lists_is_never_gone() {
    let mut record = StoredRecord::default();
    let lists: Vec<String> = (0..MOST_LISTS + 2)
        .map(|list| format!("{LIST}{list}"))
        .collect();
    for list in &lists {
        put_seen_row(&mut record, Some(list), AT_MS);
    }
    for list in &lists {
        assert_ne!(
            record.note_row_missing_from_list(list, AT_MS + 1),
            RowLoss::Row
        );
    }
}
