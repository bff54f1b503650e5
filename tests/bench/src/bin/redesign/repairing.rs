//! The methods of repairing a mapping that are measured.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use webfill_bench::repairs::{Break, Repaired};
use webfill_bench::sites::{Failure, LabelledPage, Site, Values};
use webfill_learn::{Limits, Page, repair};
use webfill_mapping::PageKind;

use crate::anchors::Kind;
use crate::survival::{Rule, rules_of};

/// The kinds of anchors. The kind that survives redesigns best comes first.
const PREFERRED: [Kind; 10] = [
    Kind::Heading,
    Kind::Label,
    Kind::Data,
    Kind::ClassToken,
    Kind::WholeClass,
    Kind::Id,
    Kind::JsonLd,
    Kind::Meta,
    Kind::Itemprop,
    Kind::AbsolutePath,
];

/// The simplest repair of a mapping, for comparison. It considers rules with one anchor that read the earlier values on
/// nearly all new pages, and takes the one whose kind of anchor survives best. It supports neither lists nor parts of
/// texts, and refuses fields that it does not find.
pub fn repair_plainly(site: &Site, broken: &Break) -> Result<Repaired, Failure> {
    let mut repaired = Repaired::default();
    let mut mapping = broken.mapping.clone();
    let rules = rules_of(&new_site(site, broken))?;
    for field in &broken.fields {
        let place = |rule: &&Rule| PREFERRED.iter().position(|kind| *kind == rule.kind);
        let of_field = rules.iter().filter(|rule| rule.field == *field);
        if let Some(rule) = of_field.min_by_key(place) {
            let field_of = json!({"name": field, "processors": rule.chain});
            replace_field(&mut mapping, field, field_of);
            repaired.accepted.insert(field.clone());
        }
    }
    repaired.mapping = Some(mapping);
    Ok(repaired)
}

/// The new pages, with the values that were read before the redesign. Only broken fields with a single value are
/// included.
fn new_site(site: &Site, broken: &Break) -> Site {
    let pages = broken.after.iter().zip(&broken.before);
    let pages = pages.map(|(page, (_, before))| {
        let mut truth: Values = before.clone();
        truth.retain(|field, _| broken.fields.contains(field) && !is_list(broken, field));
        LabelledPage {
            url: page.url.clone(),
            html: page.html.clone(),
            truth,
        }
    });
    Site {
        name: site.name.clone(),
        pages: pages.collect(),
        mapping: None,
    }
}

/// Whether any page had several values of the field.
fn is_list(broken: &Break, field: &str) -> bool {
    let mut values = broken
        .before
        .iter()
        .filter_map(|(_, before)| before.get(field));
    values.any(|values| values.len() > 1)
}

fn replace_field(mapping: &mut Value, name: &str, with: Value) {
    let mut fields = mapping["fields"].as_array_mut().into_iter().flatten();
    if let Some(field) = fields.find(|field| field["name"] == name) {
        *field = with;
    }
}

/// Runs `webfill mapping repair` with the earlier values as known values of the new pages. Also returns the command's
/// message about each field.
pub fn repair_by_learning(broken: &Break) -> Result<(Repaired, BTreeMap<String, String>), Failure> {
    let fields = broken.mapping["fields"].as_array().into_iter().flatten();
    let fields = fields.filter_map(|field| field["name"].as_str());
    let pages = broken.after.iter().zip(&broken.before);
    let pages: Vec<Page> = pages
        .map(|(page, (_, before))| {
            let mut known: BTreeMap<String, Vec<String>> = before.clone();
            // A field without an earlier value is known to have no value on this page.
            for field in fields.clone() {
                known.entry(field.to_owned()).or_default();
            }
            Page {
                url: page.url.clone(),
                kind: PageKind::Html,
                text: page.html.clone(),
                record: None,
                known,
                said: BTreeMap::new(),
            }
        })
        .collect();
    let repaired = repair(&broken.mapping, &pages, &Limits::default())?;
    let accepted = repaired.fields.iter().filter(|field| field.accepted);
    let accepted = accepted.map(|field| field.field.clone()).collect();
    let reasons = repaired.fields.into_iter();
    let reasons = reasons.map(|field| (field.field, field.why)).collect();
    let repaired = Repaired {
        accepted,
        mapping: Some(repaired.mapping),
    };
    Ok((repaired, reasons))
}
