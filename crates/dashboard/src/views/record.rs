//! A record: its fields with their sources, and the missing fields with the reasons.

use serde_json::{Map, Value, json};
use webfill_store::{CrawlId, WholeRecord, split_record_key};

use super::reading::{open_store, with_time_limit};
use super::reasons;
use super::words::describe_doubt;
use crate::answer::{Problem, Shown};
use crate::visit::Visit;

pub(crate) async fn show(visit: &Visit, dataset: &str, id: &str) -> Shown {
    let store = open_store(visit).await?;
    let key = format!("{dataset}/{id}");
    let missing = || Problem::not_found(format!("record {id} of dataset {dataset} not found"));
    let record = with_time_limit(store.browse.record(&key))
        .await?
        .ok_or_else(missing)?;
    let own: Vec<&CrawlId> = record.crawls.iter().collect();
    let own: Vec<&CrawlId> = own
        .into_iter()
        .filter(|crawl| visit.visitor.rights.permits_app(&crawl.app_id))
        .collect();
    if own.is_empty() && visit.visitor.rights.is_limited_to_apps() {
        // The answer is the same as for a missing record, so that it does not show whether the record exists.
        return Err(missing());
    }
    let document = &record.document;
    let reasons = match missing_fields(document).is_empty() {
        true => reasons::Reasons::default(),
        false => {
            reasons::find_reasons(visit, &store, document, &missing_fields(document), &own).await?
        }
    };
    let crawls = own.iter();
    let crawls: Vec<Value> = crawls
        .map(|crawl| json!({"app": crawl.app_id, "crawl": crawl.crawl_id}))
        .collect();
    let content = json!({
        "dataset": dataset, "id": id,
        "fields": field_rows(&record),
        "missing": missing_fields(document),
        "resolved_at": document["resolved_at"],
        "urls": document["urls"],
        "doubts": pages_without_values(document),
        "row": row_position_json(document),
        "reasons": reasons, "crawls": crawls,
    });
    visit.render_page("record.html", &format!("Record {id}"), content)
}

/// The position of a record in the list of rows that it was read from; null if it is not a row of a page.
fn row_position_json(document: &Value) -> Value {
    let row = &document["row"];
    let Some(position) = row["position"].as_u64() else {
        return Value::Null;
    };
    let parent = row["parent"].as_str().map(split_record_key);
    json!({
        "page": row,
        // Users count rows from 1.
        "number": position + 1,
        "parent": parent.map(|(dataset, id)| json!({"dataset": dataset, "id": id})),
    })
}

/// The wanted fields without a value.
fn missing_fields(document: &Value) -> Vec<&str> {
    let names = document["missing"].as_array().into_iter().flatten();
    names.filter_map(Value::as_str).collect()
}

/// The pages that might have filled the record but have not, with the reasons.
fn pages_without_values(document: &Value) -> Vec<Value> {
    let doubts = document["doubts"].as_object().into_iter().flatten();
    let row = |(url, doubt): (&String, &Value)| {
        let why = describe_doubt(doubt["why"].as_str().unwrap_or_default());
        json!({"url": url, "why": why, "mapping": doubt["mapping"], "at": doubt["at"]})
    };
    doubts.map(row).collect()
}

/// The fields of a record with everything known about them. Missing fields come first.
fn field_rows(record: &WholeRecord) -> Vec<Value> {
    let document = &record.document;
    let missing = missing_fields(document);
    let empty = Map::new();
    let values = document["fields"].as_object().unwrap_or(&empty);
    let others = values.keys().map(String::as_str);
    let others = others.filter(|name| !missing.contains(name));
    let row = |name: &str| {
        let list = |member: &str| document[member][name].as_array().cloned();
        let mut history = list("history").unwrap_or_default();
        history.reverse();
        json!({
            "name": name,
            "value": values.get(name),
            "is_missing": missing.contains(&name),
            "source": document["sources"].get(name),
            "candidates": list("candidates").unwrap_or_default(),
            "history": history,
        })
    };
    missing.iter().copied().chain(others).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_have_not_filled_the_record_are_shown_with_reasons() {
        let document = json!({"doubts": {
            "http://a.org/bob": {"why": "other_values", "mapping": "people", "at": "2026-01-01T12:00:00.000Z"},
            "http://a.org/2": {"why": "gap", "mapping": "people", "at": "2026-01-01T12:00:00.000Z"},
        }});
        let reported = pages_without_values(&document);
        assert_eq!(reported[0]["url"], "http://a.org/bob");
        assert_eq!(reported[0]["why"], "contradicts known values of the record");
        assert_eq!(
            reported[1]["why"],
            "not read: a list of the record continues there"
        );
        assert!(pages_without_values(&json!({})).is_empty());
    }

    #[test]
    fn a_row_is_shown_with_its_list_its_number_and_its_parent() {
        let document = json!({"row": {
            "url": "http://a.org/list", "position": 2, "mapping": "list", "mapping_version": "v",
            "parent": "users/ada/b", "at": "2026-01-01T12:00:00.000Z",
        }});
        let reported = row_position_json(&document);
        assert_eq!(reported["page"]["url"], "http://a.org/list");
        assert_eq!(reported["number"], 3);
        assert_eq!(
            reported["parent"],
            json!({"dataset": "users", "id": "ada/b"})
        );
        assert_eq!(row_position_json(&json!({"row": null})), Value::Null);
        assert_eq!(row_position_json(&json!({})), Value::Null);
    }

    #[test]
    fn missing_fields_come_first_and_the_last_former_value_too() {
        let document = json!({
            "fields": {"name": "Ada", "city": null},
            "sources": {"name": {"url": "http://a.org/"}},
            "history": {"name": [{"value": "A."}, {"value": "Ad"}]},
            "missing": ["city"],
        });
        let crawls = Vec::new();
        let reported = field_rows(&WholeRecord { document, crawls });
        let reported = serde_json::to_value(reported).unwrap();
        assert_eq!(reported[0]["name"], "city");
        assert_eq!(reported[0]["is_missing"], true);
        assert_eq!(reported[1]["source"]["url"], "http://a.org/");
        assert_eq!(reported[1]["history"][0]["value"], "Ad");
        assert_eq!(reported.as_array().unwrap().len(), 2);
    }
}
