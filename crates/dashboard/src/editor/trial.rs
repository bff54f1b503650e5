//! A trial run of a draft on its pages: shows the values that were read beside the known ones, with disagreements
//! first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::drafts::{Draft, DraftPage};
use super::known::{Verdict, compare, texts_of};

/// The result of a trial for one field on one page.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    field: String,
    page: usize,
    verdict: Verdict,
    read: Value,
    known: Vec<String>,
}

/// The result of a trial as JSON. `read` contains what the job has read on `pages`, in the same order.
pub(super) fn result_json(draft: &Draft, pages: &[&DraftPage], read: &Value) -> Value {
    let fields = field_names(&draft.mapping);
    let mut rows = Vec::new();
    for (page, read) in pages
        .iter()
        .zip(read["pages"].as_array().into_iter().flatten())
    {
        if read["error"].is_string() {
            continue;
        }
        for field in &fields {
            let known = page.known.get(field);
            rows.push(Row {
                field: field.clone(),
                page: page.number,
                verdict: compare(&texts_of(&read["fields"][field]), known.map(Vec::as_slice)),
                read: read["fields"][field].clone(),
                known: known.cloned().unwrap_or_default(),
            });
        }
    }
    let place = |field: &str| fields.iter().position(|name| name == field);
    rows.sort_by_key(|row| (row.verdict, place(&row.field), row.page));
    let mut numbered = read.clone();
    for (page, read) in pages
        .iter()
        .zip(numbered["pages"].as_array_mut().into_iter().flatten())
    {
        read["page"] = page.number.into();
    }
    json!({
        "fields": count_verdicts(&fields, &rows),
        "rows": rows,
        "pages": numbered["pages"],
    })
}

/// Counts, for each field, how its values compare with the known ones. Fields with the most disagreements come first.
fn count_verdicts(fields: &[String], rows: &[Row]) -> Vec<Value> {
    let mut all: Vec<(&String, BTreeMap<Verdict, usize>)> = Vec::new();
    for field in fields {
        let mut counts = BTreeMap::new();
        for row in rows.iter().filter(|row| row.field == *field) {
            *counts.entry(row.verdict).or_default() += 1;
        }
        all.push((field, counts));
    }
    let of =
        |counts: &BTreeMap<Verdict, usize>, verdict| counts.get(&verdict).copied().unwrap_or(0);
    all.sort_by_key(|(_, counts)| {
        Reverse(of(counts, Verdict::Differs) + of(counts, Verdict::NotRead))
    });
    let rows = all.iter().map(|(field, counts)| {
        json!({
            "field": field,
            "differs": of(counts, Verdict::Differs),
            "not_read": of(counts, Verdict::NotRead),
            "empty": of(counts, Verdict::Empty),
            "new": of(counts, Verdict::New),
            "same": of(counts, Verdict::Same),
        })
    });
    rows.collect()
}

/// The names of a mapping's fields, in the mapping's order.
pub(super) fn field_names(mapping: &Value) -> Vec<String> {
    let fields = mapping["fields"].as_array().into_iter().flatten();
    let names = fields.filter_map(|field| field["name"].as_str());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::editor::mappings::Edited;

    fn page(number: usize, known: &[(&str, &str)]) -> DraftPage {
        let known = known
            .iter()
            .map(|(name, value)| ((*name).into(), vec![(*value).into()]));
        DraftPage {
            number,
            from: String::new(),
            url: format!("https://people.example/{number}"),
            content_type: None,
            ending: String::new(),
            bytes: 0,
            known: known.collect(),
            is_former: false,
        }
    }

    #[test]
    fn disagreements_come_first() {
        let draft = Draft {
            id: String::new(),
            edited: Edited {
                file: "a.json".into(),
                place: None,
                version: None,
            },
            mapping: json!({"fields": [{"name": "name"}, {"name": "town"}]}),
            pages: vec![
                page(4, &[("name", "Ada"), ("town", "Paris")]),
                page(7, &[("name", "Bob")]),
                page(9, &[]),
            ],
            said: BTreeMap::new(),
            repairs: None,
        };
        let pages: Vec<&DraftPage> = draft.pages.iter().collect();
        let read = json!({"pages": [
            {"fields": {"name": "Ada"}},
            {"fields": {"name": "Eve", "town": "Rome"}},
            {"error": "the page took too long"},
        ]});
        let shown = result_json(&draft, &pages, &read);
        let rows = shown["rows"].as_array().unwrap();
        let reported: Vec<(&str, u64, &str)> = rows
            .iter()
            .map(|row| {
                let text = |name: &str| row[name].as_str().unwrap();
                (
                    text("field"),
                    row["page"].as_u64().unwrap(),
                    text("verdict"),
                )
            })
            .collect();
        assert_eq!(
            reported,
            [
                ("name", 7, "differs"),
                ("town", 4, "not_read"),
                ("town", 7, "new"),
                ("name", 4, "same"),
            ]
        );
        assert_eq!(shown["pages"][2]["page"], 9);
        assert_eq!(shown["fields"][0]["differs"], 1);
    }
}
