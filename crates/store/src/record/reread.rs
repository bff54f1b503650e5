//! How a page that was read again fills a record.

use serde_json::Value;

use super::fill_rules::{FillRules, PageValues};
use super::identity;
use super::spelling::has_value;
use super::stored::StoredRecord;
use crate::reread::FieldChange;
use crate::timestamp::iso_time;

impl StoredRecord {
    /// Fills the record like [`StoredRecord::fill`], from a page that was read again. Returns which values are new or
    /// changed. A pending refresh of a field stays pending, because this is not a new fetch.
    pub(crate) fn fill_from_reread_page(
        &mut self,
        page: &PageValues<'_>,
        rules: &FillRules,
    ) -> Vec<FieldChange> {
        let Ok(evidence) = identity::evidence_for_page(self, page, rules) else {
            self.fill(page, rules);
            return Vec::new();
        };
        let before = self.fields.clone();
        let missing = self.missing.clone();
        let continued = rules.continued_fields(page.mapping);
        let is_continued = |name: &String| continued.contains(&name.as_str());
        let is_asked_again = |name: &String| before.get(name).is_some_and(has_value);
        self.missing
            .retain(|name| !is_asked_again(name) || is_continued(name));
        for (name, value) in page.fields {
            if has_value(value) && !is_continued(name) && !self.doubts.is_closed_to(name, value) {
                self.replace_page_value(name, value, page, evidence);
            }
        }
        self.fill(page, rules);
        let left = std::mem::take(&mut self.missing);
        let is_missing =
            |name: &String| left.contains(name) || (is_asked_again(name) && !is_continued(name));
        // Reading a page again may show that a list is incomplete, so its field is missing again.
        let withdrawn = left.iter().filter(|name| !missing.contains(name)).cloned();
        let withdrawn: Vec<String> = withdrawn.collect();
        self.missing = missing.into_iter().filter(is_missing).collect();
        self.missing.extend(withdrawn);
        self.update_resolved_at(page.ended_at_ms);
        let is_other = |(name, value): &(&String, &Value)| before.get(*name) != Some(*value);
        let others = self.fields.iter().filter(is_other);
        let changes = others.map(|(name, value)| FieldChange {
            field: name.clone(),
            old: before.get(name).cloned(),
            new: value.clone(),
        });
        changes.collect()
    }

    /// Replaces all values that this page gave earlier, the record's value as well as candidates. Candidates of other
    /// pages stay, because only this page was read again.
    fn replace_page_value(
        &mut self,
        name: &str,
        value: &Value,
        page: &PageValues<'_>,
        evidence: Option<u32>,
    ) {
        let others = self.candidates.of_field(name).to_vec();
        let source = self.sources.get(name);
        let is_newer = self.fields.get(name) != Some(value)
            && source.is_some_and(|source| is_from_same_or_earlier_fetch(source, page));
        if is_newer {
            self.set_if_new_fetch(name, value, page, evidence);
        }
        let stays = |other: &Value| match other["value"] == *value {
            true => !is_newer,
            false => !is_from_same_or_earlier_fetch(other, page),
        };
        let others = others.into_iter().filter(stays);
        self.candidates.set(name, others.collect());
    }
}

/// Whether a value comes from this fetch of the page or from an earlier fetch of it.
fn is_from_same_or_earlier_fetch(source: &Value, page: &PageValues<'_>) -> bool {
    let at = iso_time(page.started_at_ms);
    source["url"] == page.url && source["at"].as_str().is_some_and(|of| of <= at.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::super::fill_rules::NOWHERE;
    use super::*;

    const URL: &str = "http://a.org/1";
    const AT_MS: i64 = 1_795_000_000_000;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn values(fields: &Map<String, Value>, started_at_ms: i64) -> PageValues<'_> {
        PageValues {
            fields,
            url: URL,
            mapping: Some("m"),
            started_at_ms,
            ended_at_ms: AT_MS + 1_000,
            depth: None,
            leads: &NOWHERE,
            is_of_other: false,
            is_reread: true,
        }
    }

    /// A record with one value of the user, and two of a page that was fetched at `AT_MS`.
    fn record() -> StoredRecord {
        let mut record = StoredRecord {
            fields: fields(json!({"given": "mine"})),
            missing: vec!["price".into(), "name".into()],
            ..StoredRecord::default()
        };
        let found = fields(json!({"price": "12", "name": "Ada", "given": "theirs"}));
        assert!(record.fill(&values(&found, AT_MS), &FillRules::default()));
        record
    }

    #[test]
    fn values_of_the_same_fetch_are_replaced_and_kept_in_the_history() {
        let mut record = record();
        let now = fields(json!({"price": "12.50", "name": "", "given": "theirs"}));
        let rules = FillRules::default();
        assert_eq!(
            record
                .fill_from_reread_page(&values(&now, AT_MS), &rules)
                .len(),
            1
        );
        let expected = json!({"given": "mine", "price": "12.50", "name": "Ada"});
        assert_eq!(Value::Object(record.fields.clone()), expected);
        assert_eq!(record.history["price"][0]["value"], "12");
        let once = record.clone();
        assert_eq!(
            record
                .fill_from_reread_page(&values(&now, AT_MS), &rules)
                .len(),
            0
        );
        assert_eq!(record, once, "repeated, it changes nothing");
    }

    #[test]
    fn a_value_of_a_later_fetch_is_not_replaced() {
        let mut record = record();
        let now = fields(json!({"price": "11"}));
        let earlier = values(&now, AT_MS - 1);
        assert_eq!(
            record
                .fill_from_reread_page(&earlier, &FillRules::default())
                .len(),
            0
        );
        assert_eq!(record.fields["price"], "12");
    }

    #[test]
    fn a_refresh_still_takes_the_later_value() {
        let mut record = record();
        let rules = FillRules::default();
        record.mark_for_refresh(&["price".into(), "name".into()]);
        let now = fields(json!({"price": "12.50", "name": "Ada"}));
        let renamed = PageValues {
            mapping: Some("other"),
            ..values(&now, AT_MS)
        };
        assert_eq!(record.fill_from_reread_page(&renamed, &rules).len(), 1);
        assert_eq!(record.fields["price"], "12.50");
        assert_eq!(record.missing, ["price", "name"]);
        assert_eq!(record.resolved_at, None);
        let fresh = fields(json!({"price": "15", "name": "Ada"}));
        assert!(record.fill(&values(&fresh, AT_MS + 5), &rules));
        assert_eq!(record.fields["price"], "15");
        assert_eq!(record.missing, [""; 0]);
    }

    #[test]
    fn rereading_another_page_does_not_end_a_refresh() {
        let mut record = record();
        let rules = FillRules::default();
        record.mark_for_refresh(&["price".into()]);
        let now = fields(json!({"price": "99"}));
        let other = PageValues {
            url: "http://a.org/2",
            ..values(&now, AT_MS)
        };
        assert_eq!(record.fill_from_reread_page(&other, &rules).len(), 0);
        assert_eq!(record.missing, ["price"]);
        assert_eq!(record.fields["price"], "12");
    }

    #[test]
    fn candidates_of_other_pages_stay_in_whatever_order_pages_are_read() {
        let rules = FillRules::default();
        let other = |fields| PageValues {
            url: "http://a.org/0",
            ..values(fields, AT_MS)
        };
        let mut before = record();
        let theirs = fields(json!({"price": "13"}));
        assert!(before.fill(&other(&theirs), &rules));
        let (owner, theirs) = (json!({"price": "12.50"}), json!({"price": "14"}));
        let (owner, theirs) = (fields(owner), fields(theirs));
        let pages = [values(&owner, AT_MS), other(&theirs)];
        let mut results = Vec::new();
        for numbers in [[0, 1], [1, 0]] {
            let mut record = before.clone();
            numbers.iter().for_each(|number| {
                record.fill_from_reread_page(&pages[*number], &rules);
            });
            let once = record.clone();
            numbers.iter().for_each(|number| {
                record.fill_from_reread_page(&pages[*number], &rules);
            });
            assert_eq!(record, once, "repeated, it changes nothing");
            assert_eq!(record.fields["price"], "12.50");
            assert_eq!(record.other_values("price"), ["14", "12"]);
            results.push(record);
        }
        assert_eq!(results[0], results[1]);
    }

    #[test]
    fn missing_fields_are_filled() {
        let mut record = record();
        record.missing.push("town".into());
        record.resolved_at = None;
        let now = fields(json!({"town": "Ockham"}));
        assert_eq!(
            record.fill_from_reread_page(&values(&now, AT_MS), &FillRules::default()),
            [FieldChange {
                field: "town".into(),
                old: None,
                new: json!("Ockham")
            }]
        );
        assert_eq!(record.resolved_at, Some(iso_time(AT_MS + 1_000)));
    }
}
