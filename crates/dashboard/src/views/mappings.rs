//! Mappings by health: first those with an alert, then those that seem to have lost fields, then those that have read
//! nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use webfill_mapping::MappingSet;

use super::page::can_use_editor;
use super::reading::{data_or_fault, load_extractions};
use crate::answer::Shown;
use crate::extractions::{MappingReport, describe_lost_fields, verdict};
use crate::visit::Visit;

pub(crate) async fn show(visit: &Visit) -> Shown {
    visit.require_whole_fleet()?;
    let files = visit.dashboard.mapping_files.get().await;
    let set = files
        .as_ref()
        .and_then(|found| found.as_ref().as_ref().ok());
    let (read, store_fault) = match visit.dashboard.store.is_configured() {
        true => data_or_fault(load_extractions(visit).await),
        false => (None, None),
    };
    let read = read.as_deref().map(Vec::as_slice).unwrap_or_default();
    let content = json!({
        "rows": mapping_rows(read, set),
        "files_fault": files.as_ref().and_then(|found| found.as_ref().as_ref().err()),
        "folder": visit.dashboard.setup.mappings.as_ref().map(|folder| folder.display().to_string()),
        "has_store": visit.dashboard.store.is_configured(),
        "can_bench": can_use_editor(visit),
        "store_fault": store_fault,
    });
    visit.render_page("mappings.html", "Mappings", content)
}

/// One row for each mapping that has read pages or is in the folder.
fn mapping_rows(read: &[MappingReport], set: Option<&MappingSet>) -> Vec<Value> {
    let mut names: BTreeMap<&str, Option<&MappingReport>> = BTreeMap::new();
    for name in set.into_iter().flat_map(MappingSet::names) {
        names.insert(name, None);
    }
    for one in read {
        names.insert(&one.mapping, Some(one));
    }
    let mut rows: Vec<(usize, Value)> = names
        .into_iter()
        .map(|(name, read)| {
            let has_file = set.map(|set| set.find_by_name(name).is_some());
            mapping_row(name, read, has_file)
        })
        .collect();
    // The sort is stable, so mappings with equal rank stay in the order of their names.
    rows.sort_by_key(|(rank, _)| *rank);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn mapping_row(name: &str, read: Option<&MappingReport>, has_file: Option<bool>) -> (usize, Value) {
    let report = read.map(|read| &read.report);
    let fields = report.and_then(|report| report["fields"].as_array());
    let fields = fields.map(Vec::as_slice).unwrap_or_default();
    let lowest = fields
        .iter()
        .min_by(|one, other| fill_rate(one).total_cmp(&fill_rate(other)));
    let state = match read {
        Some(read) => verdict(&read.report, read.alert.is_some()),
        None => "no pages",
    };
    let order = ["alert", "suspect", "no pages", "not known yet", "fine"];
    let rank = order.iter().position(|one| *one == state);
    let row = json!({
        "name": name, "state": state, "has_file": has_file,
        "alert": read.and_then(|read| read.alert.clone().or_else(|| describe_lost_fields(&read.report))),
        "pages": report.map(|report| &report["pages"]),
        "last_at": report.map(|report| &report["last_at"]),
        "fields": fields.len(),
        "lowest": lowest.map(|field| json!({"name": field["field"], "percent": 100.0 * fill_rate(field)})),
    });
    (rank.unwrap_or_default(), row)
}

/// On what share of the last pages the field had a value.
fn fill_rate(field: &Value) -> f64 {
    field["now"].as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_in_alert_come_first() {
        let read = |name: &str, alert: Option<&str>, provisional: bool| MappingReport {
            mapping: name.to_owned(),
            report: json!({"pages": 9, "fields": [
                {"field": "a", "now": 0.5, "provisional": provisional}, {"field": "b", "now": 1.0}]}),
            alert: alert.map(str::to_owned),
        };
        let read = [
            read("fine", None, false),
            read("new", None, true),
            read("zebra", Some("the layout changed"), false),
        ];
        let rows = serde_json::to_value(mapping_rows(&read, None)).unwrap();
        let reported: Vec<_> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["name"])
            .collect();
        assert_eq!(reported, ["zebra", "new", "fine"]);
        assert_eq!(rows[0]["lowest"]["name"], "a");
        assert_eq!(rows[0]["lowest"]["percent"], 50.0);
    }
}
