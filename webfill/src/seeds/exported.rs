//! Reads rows written by `webfill export` as seeds: records with their URLs, fields and missing fields, and pages as
//! plain URLs.

use serde_json::{Map, Value};

use super::LineContent;
use super::table::Column;
use crate::export::columns::{BEHIND_FIELDS, FIELDS, PAGES, urls_of_record};

const NO_URL: &str = "no URL: the record was given without one, and no page has filled it";

/// Reads an object that `webfill export` has written; `None` for any other object.
pub(super) fn read_exported_object(
    object: &Map<String, Value>,
) -> Option<Result<LineContent, String>> {
    let has = |names: &[&str]| names.iter().all(|name| object.contains_key(*name));
    if has(&["_id", "fields", "sources", "missing"]) {
        return Some(read_record(object));
    }
    let url = object.get("url").and_then(Value::as_str);
    let url = url.filter(|_| has(&["_id", "app_id", "crawl_id", "outcome"]))?;
    Some(Ok(LineContent {
        urls: vec![url.to_owned()],
        ..LineContent::default()
    }))
}

fn read_record(object: &Map<String, Value>) -> Result<LineContent, String> {
    let document = Value::Object(object.clone());
    let urls = urls_of_record(&document);
    if urls.is_empty() {
        return Err(String::from(NO_URL));
    }
    let id = &document["record_id"];
    let missing = document["missing"].as_array().into_iter().flatten();
    Ok(LineContent {
        id: id.as_str().map(str::to_owned),
        urls,
        fields: document["fields"].as_object().cloned().unwrap_or_default(),
        want: missing
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        ..LineContent::default()
    })
}

/// The columns of a CSV file that `webfill export` has written; `None` for the heading of any other file.
pub(super) fn columns_of_export(names: &[String]) -> Option<Vec<Column>> {
    let begins_alike = names.len() >= PAGES.len()
        && PAGES
            .iter()
            .zip(names)
            .all(|((known, _), name)| known == name);
    if begins_alike {
        let column = |name: &String| match name.as_str() {
            "url" => Column::Url,
            _ => Column::Ignored,
        };
        return Some(names.iter().map(column).collect());
    }
    let behind: Vec<&str> = BEHIND_FIELDS.iter().map(|(name, _)| *name).collect();
    let fields_end = names
        .windows(behind.len())
        .rposition(|some| some == behind)?;
    (names[0] == "id" && fields_end > 0).then(|| columns_of_records(names, fields_end))
}

fn columns_of_records(names: &[String], fields_end: usize) -> Vec<Column> {
    let column = |(number, name): (usize, &String)| {
        let is_field = number < fields_end;
        match name.as_str() {
            _ if number == 0 => Column::Id,
            name if is_field => Column::Value(name.strip_prefix(FIELDS).unwrap_or(name).to_owned()),
            "missing" => Column::Missing,
            "urls" => Column::Urls,
            _ => Column::Ignored,
        }
    };
    names.iter().enumerate().map(column).collect()
}
