//! Takes back the values of a fetch whose response turned out not to be the page.

use serde_json::{Value, json};

use super::fill_rules::FillRules;
use super::gathered;
use super::source::{EVIDENCE, PARTS};
use super::stored::StoredRecord;

impl StoredRecord {
    /// Takes back the values of one fetch of a page. A field gets the best value of other pages instead. If there is
    /// none, it gets its earlier value, which is to be refreshed, or else is missing. Returns whether anything changed.
    /// Repeating the call changes nothing.
    pub(crate) fn take_back(
        &mut self,
        (url, started_at): (&str, &str),
        rules: &FillRules,
        now_ms: i64,
    ) -> bool {
        let before = self.clone();
        let is_of_fetch =
            |source: &Value| source["url"] == url && source["at"].as_str() == Some(started_at);
        self.candidates.retract(is_of_fetch);
        self.history.retract(is_of_fetch);
        let is_of_list = |source: &Value| {
            let mut parts = source[PARTS].as_array().into_iter().flatten();
            parts.any(is_of_fetch)
        };
        let sources = self.sources.iter();
        let taken = sources.filter(|(_, source)| is_of_fetch(source) || is_of_list(source));
        let taken = taken.map(|(name, _)| name.clone());
        // Values that a person has accepted stay.
        let taken: Vec<String> = taken.filter(|name| !self.doubts.is_final(name)).collect();
        for name in taken {
            if let Some(source) = self.sources.shift_remove(&name) {
                gathered::store_parts(&mut self.candidates, &name, source, is_of_fetch);
            }
            match self.candidates.take_best(&name, &rules.order) {
                Some(candidate) => self.restore_value(&name, candidate),
                None => {
                    let former = self
                        .history
                        .take_last(&name)
                        .unwrap_or(json!({"value": null}));
                    self.restore_value(&name, former);
                    if !self.missing.contains(&name) {
                        self.missing.push(name);
                    }
                }
            }
        }
        if *self == before {
            return false;
        }
        self.update_resolved_at(now_ms);
        true
    }

    /// Gives the field a value from its candidates or its history.
    fn restore_value(&mut self, name: &str, other: Value) {
        if !other["url"].is_null() {
            let (url, mapping, at) = (&other["url"], &other["mapping"], &other["at"]);
            let mut source = json!({"url": url, "mapping": mapping, "at": at});
            if let Some(evidence) = other.get(EVIDENCE) {
                source[EVIDENCE] = evidence.clone();
            }
            self.sources.insert(name.to_owned(), source);
        }
        self.fields.insert(name.to_owned(), other["value"].clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::super::PageValues;
    use super::super::fill_rules::NOWHERE;
    use super::*;
    use crate::timestamp::iso_time;

    const AT_MS: i64 = 1_795_000_000_000;

    fn page<'a>(url: &'a str, fields: &'a Map<String, Value>, at_ms: i64) -> PageValues<'a> {
        PageValues {
            fields,
            url,
            mapping: Some("m"),
            started_at_ms: at_ms,
            ended_at_ms: at_ms + 1,
            depth: Some(0),
            leads: &NOWHERE,
            is_of_other: false,
            is_reread: false,
        }
    }

    /// A record that wants a name and a town.
    fn record() -> StoredRecord {
        StoredRecord {
            fields: Map::from_iter([("id".to_owned(), json!(7))]),
            missing: vec!["name".into(), "town".into()],
            ..StoredRecord::default()
        }
    }

    fn values(name: &str, town: &str) -> Map<String, Value> {
        let fields = json!({"name": name, "town": town});
        fields.as_object().unwrap().clone()
    }

    #[test]
    fn values_of_the_page_are_removed_and_values_of_others_stay() {
        let rules = FillRules::default();
        let (block, real) = (values("Just a moment", ""), values("Ada", "Ockham"));
        let taken = ("http://a.org/1", iso_time(AT_MS));
        let taken = (taken.0, taken.1.as_str());
        // The result is the same whether the block page or another page came first, and whether another page had a
        // better value.
        for first_is_block in [true, false] {
            let mut record = record();
            let pages = [
                page("http://a.org/1", &block, AT_MS),
                page("http://a.org/2", &real, AT_MS),
            ];
            for index in [usize::from(!first_is_block), usize::from(first_is_block)] {
                record.fill(&pages[index], &rules);
            }
            assert!(record.take_back(taken, &rules, AT_MS + 5));
            assert_eq!(record.fields["name"], "Ada");
            assert_eq!(record.sources["name"]["url"], "http://a.org/2");
            assert!(record.candidates.is_empty() && record.missing.is_empty());
            assert!(record.resolved_at.is_some());
            assert!(!record.take_back(taken, &rules, AT_MS + 6), "repeated");
        }
        let mut alone = record();
        alone.fill(&page("http://a.org/1", &block, AT_MS), &rules);
        assert!(alone.take_back(taken, &rules, AT_MS + 5));
        assert_eq!(alone.fields["name"], Value::Null);
        assert_eq!(alone.missing, ["town", "name"]);
        assert!(alone.sources.is_empty() && alone.resolved_at.is_none());
    }

    #[test]
    fn a_refresh_that_got_a_block_page_stays_pending() {
        let rules = FillRules::default();
        let (real, block) = (values("Ada", "Ockham"), values("Just a moment", "Nowhere"));
        let url = "http://a.org/1";
        let mut record = record();
        record.fill(&page(url, &real, AT_MS), &rules);
        let (filled, later) = (record.clone(), AT_MS + 1_000);
        record.missing = vec!["name".into(), "town".into()];
        record.fill(&page(url, &block, later), &rules);
        assert_eq!(record.fields["name"], "Just a moment");
        assert!(record.take_back((url, &iso_time(later)), &rules, later));
        assert_eq!(
            (&record.fields, &record.sources),
            (&filled.fields, &filled.sources)
        );
        assert!(record.history.is_empty());
        assert_eq!(record.missing, ["name", "town"], "it asks again");
    }
}
