//! Repairers that are measured.

use serde_json::{Value, json};
use webfill_bench::repairs::{Break, Repaired};
use webfill_bench::sites::{Failure, LabelledPage, Site, Values};

use crate::anchors::Kind;
use crate::survival::{Rule, rules_of};

/// Kinds of anchors, the best first.
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

/// The plainest repair, for comparison: of the rules of one anchor that read the values of before on nearly all new
/// pages, the one whose kind survives best. It knows neither lists nor parts of texts, and refuses what it does not
/// find.
pub fn plain(site: &Site, broken: &Break) -> Result<Repaired, Failure> {
    let mut repaired = Repaired::default();
    let mut mapping = broken.mapping.clone();
    let rules = rules_of(&new_site(site, broken))?;
    for field in &broken.fields {
        let place = |rule: &&Rule| PREFERRED.iter().position(|kind| *kind == rule.kind);
        let of_field = rules.iter().filter(|rule| rule.field == *field);
        if let Some(rule) = of_field.min_by_key(place) {
            replace(&mut mapping, rule);
            repaired.accepted.insert(field.clone());
        }
    }
    repaired.mapping = Some(mapping);
    Ok(repaired)
}

/// The new pages with what was read before, of fields that broke and that had one value.
fn new_site(site: &Site, broken: &Break) -> Site {
    let pages = broken.after.iter().zip(&broken.before);
    let pages = pages.map(|(page, (_, before))| {
        let mut truth: Values = before.clone();
        truth.retain(|field, values| broken.fields.contains(field) && values.len() == 1);
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

fn replace(mapping: &mut Value, rule: &Rule) {
    let fields = mapping["fields"].as_array_mut().into_iter().flatten();
    for field in fields.filter(|field| field["name"] == rule.field.as_str()) {
        *field = json!({"name": rule.field, "processors": rule.chain});
    }
}
