//! Learns new chains for a field, or gives the reason why it stays unchanged.

use std::collections::BTreeSet;

use serde_json::Value;
use webfill_learn::{Limits, Page};

use super::reading::fold_values;

/// A field is learned only if its pages have at least this many different values. A single value, such as `In stock`,
/// may be found anywhere by chance.
const LEAST_VALUES: usize = 2;

/// The chains (sequences of processors) that were newly learned for a field.
pub struct NewChains {
    pub field: String,
    pub chains: Vec<Value>,
    pub confidence: f64,
}

/// Learns new chains for a field from pages where the mapping no longer reads the known values. The error is the
/// reason, for people, why the field is not repaired.
pub fn relearn_field(mapping: &Value, field: &str, pages: &[Page]) -> Result<NewChains, String> {
    let knows_nothing = |page: &Page| page.known.values().all(Vec::is_empty);
    if pages.iter().all(knows_nothing) {
        return Err(String::from(
            "no page from after the change has a value known from before",
        ));
    }
    let repaired = webfill_learn::repair(mapping, pages, &Limits::default());
    let fields = repaired.map_err(|error| error.to_string())?.fields;
    let Some(repaired) = fields.into_iter().find(|one| one.field == field) else {
        return Err(String::from("nothing was learned"));
    };
    let (true, Some(report)) = (repaired.accepted, repaired.learned) else {
        return Err(repaired.why);
    };
    let agreeing = pages
        .iter()
        .filter(|page| report.agree.iter().any(|url| url == page.url.as_str()));
    let values: BTreeSet<Vec<String>> = agreeing
        .filter_map(|page| page.known.get(field))
        .map(|known| fold_values(known))
        .collect();
    if values.len() < LEAST_VALUES {
        return Err(format!(
            "its value was the same on all {} pages where it was found again, which is no evidence",
            report.agree.len()
        ));
    }
    Ok(NewChains {
        field: field.to_owned(),
        chains: report
            .processors
            .into_iter()
            .chain(report.alternatives)
            .collect(),
        confidence: report.confidence,
    })
}
