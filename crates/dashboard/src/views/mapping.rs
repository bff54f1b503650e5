//! A mapping: its health by field and by template, its alert with the evidence, its versions, and its pages.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webfill_mapping::MappingSet;
use webfill_store::PageFilter;

use super::page::can_use_editor;
use super::pages;
use super::reading::{data_or_fault, load_extractions, open_store, with_time_limit};
use crate::answer::{Problem, Shown};
use crate::extractions::{MappingReport, describe_lost_fields, is_lost};
use crate::snapshot::now_ms;
use crate::visit::Visit;

/// How many of the last pages of the mapping are shown.
const PAGES: u32 = 10;

pub(crate) async fn show(visit: &Visit, name: &str) -> Shown {
    visit.require_whole_fleet()?;
    let files = visit.dashboard.mapping_files.get().await;
    let set = files
        .as_ref()
        .and_then(|found| found.as_ref().as_ref().ok());
    let file = set.and_then(|set| description_json(set, name));
    let (read, store_fault) = match visit.dashboard.store.is_configured() {
        true => data_or_fault(load_stored(visit, name).await),
        false => (None, None),
    };
    let (read, rows, texts) = read.unwrap_or_default();
    if read.is_none() && file.is_none() && rows.is_empty() && store_fault.is_none() {
        return Err(Problem::not_found(format!(
            "unknown mapping {name}: it has read no page, and the mapping folder has no such mapping"
        )));
    }
    let report = read.as_ref().map(|read| &read.report);
    let content = json!({
        "name": name, "file": file, "rows": rows, "store_fault": store_fault,
        "files_fault": files.as_ref().and_then(|found| found.as_ref().as_ref().err()),
        "has_files": files.is_some(),
        "report": report,
        "fields": report.map(field_rows).unwrap_or_default(),
        "versions": report.map(|report| version_rows(report, file.as_ref())).unwrap_or_default(),
        "doubt": report.and_then(describe_lost_fields),
        "curves": report.map(|report| visit.dashboard.health_log().draw_curves(report, now_ms())),
        "pair": report.and_then(|report| pages_around_break(report, &texts)),
        "alert_text": read.as_ref().and_then(|read| read.alert.as_ref()),
        "can_bench": can_use_editor(visit),
    });
    visit.render_page("mapping.html", &format!("Mapping {name}"), content)
}

/// What the store has about a mapping: its health, its last pages, and the keys of pages whose texts are kept with its
/// alert.
type Stored = (Option<MappingReport>, Vec<Value>, BTreeSet<String>);

async fn load_stored(visit: &Visit, name: &str) -> Result<Stored, Problem> {
    let all = load_extractions(visit).await?;
    let read = all.iter().find(|one| one.mapping == name).cloned();
    let filter = PageFilter {
        mapping: Some(name.to_owned()),
        ..PageFilter::default()
    };
    let store = open_store(visit).await?;
    let list_page = with_time_limit(store.browse.pages(&filter, None, PAGES)).await?;
    let samples = with_time_limit(store.store.samples(name))
        .await?
        .into_iter();
    let texts = samples.filter(|sample| sample.alert.is_some());
    let texts = texts.map(|sample| sample.page).collect();
    Ok((
        read,
        list_page.rows.iter().map(pages::page_row).collect(),
        texts,
    ))
}

/// The description of a mapping from its file, as JSON.
fn description_json(set: &MappingSet, name: &str) -> Option<Value> {
    let index = set.find_by_name(name)?;
    Some(json!({
        "version": set.version_of(index),
        "description": set.description(index),
        "fields": set.fields_of(index),
    }))
}

/// The fields of a mapping with their state, and the share of known values that were read again.
fn field_rows(report: &Value) -> Vec<Value> {
    let list = |member: &str| report[member].as_array().into_iter().flatten();
    let fallen = |field: &Value| {
        let mut named = report["alert"]["fields"].as_array().into_iter().flatten();
        named.any(|one| one["field"] == field["field"])
    };
    let row = |field: &Value| {
        let known = list("known_values").find(|known| known["field"] == field["field"]);
        let has_fallen = fallen(field) || known.is_some_and(|known| known["fallen"] == true);
        let state = match has_fallen {
            true => "alert",
            false if is_lost(field) => "suspect",
            false if field["provisional"] == true => "not known yet",
            false => "fine",
        };
        json!({
            "name": field["field"],
            "pages": field["pages"],
            "now": percent(&field["now"]),
            "baseline": percent(&field["baseline"]),
            "known": known.and_then(|known| percent(&known["now"])),
            "state": state,
            "empty_in_row": field["empty_in_row"],
        })
    };
    list("fields").map(row).collect()
}

/// A page from before the break of a mapping and a page from after it, with the values read on each. Pages whose texts
/// are kept are preferred.
fn pages_around_break(report: &Value, texts: &BTreeSet<String>) -> Option<Value> {
    let has_text = |page: &&Value| page["id"].as_str().is_some_and(|id| texts.contains(id));
    let kept = |kind: &str| {
        let all = report["alert"][kind].as_array()?;
        let with_text: Vec<&Value> = all.iter().filter(has_text).collect();
        Some(match with_text.is_empty() {
            true => all.iter().collect(),
            false => with_text,
        })
    };
    let (former, now): (Vec<&Value>, Vec<&Value>) = (kept("before")?, kept("after")?);
    // The change is shown best by the same page, read before and after it.
    let same = now.iter().rev().find_map(|after| {
        let before = former.iter().rfind(|one| one["url"] == after["url"])?;
        Some((before, after))
    });
    let (before, after) = match same {
        Some(pair) => pair,
        None => (former.last()?, now.last()?),
    };
    let names = before["fields"].as_object().into_iter().flatten();
    let rows = names.map(|(name, value)| {
        let now = after["fields"].get(name);
        let is_lost = now.is_none_or(|now| !webfill_store::has_value(now));
        json!({"name": name, "before": value, "after": now, "is_lost": is_lost})
    });
    let rows: Vec<Value> = rows.collect();
    let link = |page: &Value| json!({"id": page["id"], "url": page["url"], "at": page["at"]});
    let has_copies = has_text(before) && has_text(after);
    Some(
        json!({"has_copies": has_copies, "before": link(before), "after": link(after), "rows": rows}),
    )
}

fn percent(share: &Value) -> Option<f64> {
    share.as_f64().map(|share| (share * 1_000.0).round() / 10.0)
}

/// The known versions of the mapping, the present one first.
fn version_rows(report: &Value, file: Option<&Value>) -> Vec<Value> {
    let file = file.and_then(|file| file["version"].as_str());
    let file = file.unwrap_or_default();
    let present = report["mapping_version"].as_str().unwrap_or_default();
    let mut listed: Vec<(String, String)> = Vec::new();
    let mut add = |version: &str, what: &str| {
        if !version.is_empty() && !listed.iter().any(|(known, _)| known == version) {
            listed.push((version.to_owned(), what.to_owned()));
        }
    };
    if file != present {
        add(file, "in the mapping folder; no page judged with it yet");
    }
    add(present, "judged now");
    let past = report["past_alerts"].as_array().into_iter().flatten();
    for alert in past.rev() {
        let at = alert["raised_at"].as_str().unwrap_or_default();
        let day = at.get(..10).unwrap_or(at);
        add(
            alert["mapping_version"].as_str().unwrap_or_default(),
            &format!("in an alert of {day}"),
        );
    }
    listed
        .into_iter()
        .map(|(version, what)| json!({"version": version, "what": what}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_in_alert_by_the_alert_or_by_its_known_values() {
        let report = json!({
            "fields": [
                {"field": "name", "pages": 9, "now": 0.9994, "baseline": 0.95, "provisional": false},
                {"field": "price", "pages": 9, "now": 0.0, "baseline": 0.95, "provisional": false},
                {"field": "city", "pages": 9, "now": 1.0, "baseline": null, "provisional": true},
            ],
            "known_values": [{"field": "name", "now": 0.5, "fallen": true}],
            "alert": {"fields": [{"field": "price"}]},
        });
        let listed = serde_json::to_value(field_rows(&report)).unwrap();
        let states: Vec<_> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["state"])
            .collect();
        assert_eq!(states, ["alert", "alert", "not known yet"]);
        assert_eq!(listed[0]["now"], 99.9);
        assert_eq!(listed[2]["baseline"], Value::Null);
    }

    #[test]
    fn versions_are_shown_once_with_their_kind() {
        let report = json!({"mapping_version": "b", "past_alerts": [
            {"mapping_version": "a", "raised_at": "2026-01-02T00:00:00Z"},
            {"mapping_version": "b", "raised_at": "2026-02-02T00:00:00Z"},
        ]});
        let file = json!({"version": "c"});
        let listed = serde_json::to_value(version_rows(&report, Some(&file))).unwrap();
        let names: Vec<_> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["version"])
            .collect();
        assert_eq!(names, ["c", "b", "a"]);
        assert_eq!(listed[2]["what"], "in an alert of 2026-01-02");
    }
}
