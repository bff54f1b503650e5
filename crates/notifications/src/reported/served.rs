//! Reports fields whose first chain of extraction steps yields nothing any more, while an alternative chain does. Each
//! field is reported once, and a second time when its first chain yields values again or the mapping has changed.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use webfill_api::About;

use super::{Event, Reported, without_crawls};

impl Reported {
    pub(super) fn take_alternative_events(&mut self, warnings: &[Value]) -> Vec<Event> {
        let now = alternatives_by_field(warnings);
        let is_reported = |warning: &&Value| {
            let (mapping, field) = mapping_and_field(warning);
            let before = self
                .served
                .get(mapping)
                .and_then(|reported| reported.get(field));
            before.map(String::as_str) == warning["alternative_serves"].as_str()
        };
        let new = warnings.iter().filter(|warning| !is_reported(warning));
        let mut events: Vec<Event> = new.map(alternative_event).collect();
        for (mapping, fields) in &self.served {
            let stands = |field| now.get(mapping).is_some_and(|now| now.contains_key(field));
            for (field, since) in fields.iter().filter(|(field, _)| !stands(*field)) {
                events.push(Event {
                    about: About::Health,
                    name: "alternative_cleared",
                    line: format!(
                        "field {field} of mapping {mapping}: its first chain yields values again, or the mapping changed"
                    ),
                    detail: json!({"mapping": mapping, "field": field, "alternative_serves": since}),
                });
            }
        }
        self.served = now;
        events
    }
}

fn mapping_and_field(warning: &Value) -> (&str, &str) {
    let word = |key: &str| warning[key].as_str().unwrap_or_default();
    (word("mapping"), word("field"))
}

/// The time since which an alternative chain of extraction steps yields the values, by mapping and field.
pub(super) fn alternatives_by_field(
    warnings: &[Value],
) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut served: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for warning in warnings {
        let (mapping, field) = mapping_and_field(warning);
        let since = warning["alternative_serves"].as_str().unwrap_or_default();
        let fields = served.entry(mapping.to_owned()).or_default();
        fields.insert(field.to_owned(), since.to_owned());
    }
    served
}

fn alternative_event(warning: &Value) -> Event {
    let (mapping, field) = mapping_and_field(warning);
    let detail = warning["detail"].as_str().unwrap_or_default();
    Event {
        about: About::Health,
        name: "alternative_serves",
        line: format!("field {field} of mapping {mapping}: {detail}"),
        detail: without_crawls(warning),
    }
}
