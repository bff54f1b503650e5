//! How a row of a page becomes a record, and what later fetches change in it.
//!
//! - A row is known by its key: it needs no other evidence, and pages about others do not concern it.
//! - A value of the user stays; the page's becomes none of its candidates.
//! - A later fetch replaces what a mapping of the same or of a lower priority has brought, wherever the row
//!   stood then, because the rows of a listing move from page to page. What it replaces becomes history.
//! - A value of a mapping of higher priority stays, and the row's becomes a candidate.
//! - A row may lead to pages of its own, and want fields that these fill by the rules for all records.
//! - An empty cell replaces nothing, unless another version of the mapping reads the same fetch of the page again: then
//!   what the former one has read there was wrong, and becomes history.

use serde_json::{Map, Value, json};

use super::{FillRules, PageValues, StoredRecord, has_value, spelling};
use crate::listing::{KeyedRow, RowPage};
use crate::timestamp::iso_time;

/// A row, and where it stood.
pub(crate) struct RowValues<'a> {
    pub(crate) fields: &'a Map<String, Value>,
    pub(crate) position: u64,
    pub(crate) url: &'a str,
    pub(crate) mapping: Option<&'a str>,
    pub(crate) mapping_version: Option<&'a str>,
    /// The key of the record that the page was fetched for.
    pub(crate) parent: Option<&'a str>,
    /// The fields that the pages to which it leads are to fill, and their URLs.
    pub(crate) want: &'a [String],
    pub(crate) links: &'a [String],
    pub(crate) started_at_ms: i64,
}

/// The member of a record's doubts that says that its pages list rows.
const LISTS_ROWS: &str = "rows";

impl StoredRecord {
    /// Notes that the record's pages list rows: these are wanted, however complete the record itself is. Returns
    /// whether it is new.
    pub(super) fn note_rows(&mut self, page: &PageValues<'_>, rules: &FillRules) -> bool {
        let is_new = !self.has_rows()
            && (page.leads.lists_rows || self.urls.iter().any(|url| rules.is_of_rows(url)));
        if is_new {
            self.doubts.insert(LISTS_ROWS.to_owned(), true.into());
        }
        is_new
    }

    /// See [`StoredRecord::note_rows`].
    pub(super) fn has_rows(&self) -> bool {
        self.doubts.contains_key(LISTS_ROWS)
    }

    /// Takes the values of a row. Returns whether anything has changed.
    pub(crate) fn take_row(&mut self, row: &RowValues<'_>, rules: &FillRules) -> bool {
        let at = iso_time(row.started_at_ms);
        let is_older = |known: &Value| {
            known["at"]
                .as_str()
                .is_some_and(|known| known > at.as_str())
        };
        if self.row.as_ref().is_some_and(is_older) {
            return false;
        }
        let place = row.place(&at);
        let is_read_again = self.row.as_ref().is_some_and(|known| {
            known["mapping_version"] != place["mapping_version"]
                && ["url", "at", "mapping"]
                    .iter()
                    .all(|part| known[part] == place[part])
        });
        let mut changed = self.row.as_ref() != Some(&place);
        let former_links = self.row.replace(place).and_then(links_of);
        let source = json!({"url": row.url, "mapping": row.mapping, "at": at});
        for (name, value) in row.fields {
            if is_read_again && !has_value(value) {
                changed |= self.take_back_cell(name, &source, row.started_at_ms);
            }
            changed |= self.take_cell(name, value, &source, row, rules);
        }
        changed |= self.take_links(row.links, &former_links.unwrap_or_default());
        changed |= self.want_of_row(row.want);
        if changed {
            self.update_resolved(row.started_at_ms);
        }
        changed
    }

    /// The pages to which the row leads are the record's own, as those are that the user names. Those to which it led
    /// before, and no longer leads, are not. Returns whether anything has changed.
    fn take_links(&mut self, links: &[String], former: &[Value]) -> bool {
        let before = self.urls.len();
        self.urls
            .retain(|url| links.contains(url) || !former.iter().any(|one| one == url));
        let has_lost = self.urls.len() < before;
        self.add_urls(links) || has_lost
    }

    /// Notes which fields pages are to fill. Returns whether any is new.
    fn want_of_row(&mut self, want: &[String]) -> bool {
        let mut is_new = false;
        for name in want {
            if !self.fields.contains_key(name) {
                self.fields.insert(name.clone(), Value::Null);
                is_new = true;
            }
            if !has_value(&self.fields[name]) && !self.missing.contains(name) {
                self.missing.push(name.clone());
                is_new = true;
            }
        }
        is_new
    }

    /// Takes back a value that the same fetch of the page has brought. Returns whether there was one.
    fn take_back_cell(&mut self, name: &str, source: &Value, now_ms: i64) -> bool {
        if self.sources.get(name) != Some(source) {
            return false;
        }
        let former = self.sources.remove(name);
        let kept = self.fields.insert(name.to_owned(), Value::Null);
        self.remember(name, kept.unwrap_or_default(), former, now_ms);
        true
    }

    fn take_cell(
        &mut self,
        name: &str,
        value: &Value,
        source: &Value,
        row: &RowValues<'_>,
        rules: &FillRules,
    ) -> bool {
        let kept = self.fields.get(name).cloned().unwrap_or_default();
        if !has_value(value) {
            let is_new = !self.fields.contains_key(name);
            if is_new {
                self.fields.insert(name.to_owned(), Value::Null);
            }
            return is_new;
        }
        let former = self.sources.get(name).cloned();
        if has_value(&kept) {
            let Some(former) = &former else {
                return false;
            };
            let is_lesser =
                rules.order.rank(row.mapping) > rules.order.rank(former["mapping"].as_str());
            if is_lesser && !spelling::is_one(&kept, value) {
                return self.add_candidate(name, value, source.clone());
            }
            if is_lesser || former == source && spelling::is_one(&kept, value) {
                return false;
            }
        }
        if spelling::is_one(&kept, value) {
            self.sources.insert(name.to_owned(), source.clone());
            return true;
        }
        self.remember(name, kept, former, row.started_at_ms);
        self.fields.insert(name.to_owned(), value.clone());
        self.sources.insert(name.to_owned(), source.clone());
        self.missing.retain(|missing| missing != name);
        true
    }
}

impl<'a> RowValues<'a> {
    pub(crate) fn of(page: &RowPage<'a>, row: &'a KeyedRow) -> RowValues<'a> {
        RowValues {
            fields: &row.fields,
            position: row.position,
            url: page.url,
            mapping: page.mapping,
            mapping_version: page.mapping_version,
            parent: match page.records {
                [one] => Some(one),
                _ => None,
            },
            want: &row.want,
            links: &row.links,
            started_at_ms: page.started_at_ms,
        }
    }

    /// Where the row was seen last.
    fn place(&self, at: &str) -> Value {
        let mut place = json!({
            "url": self.url,
            "position": self.position,
            "mapping": self.mapping,
            "mapping_version": self.mapping_version,
            "parent": self.parent,
            "at": at,
        });
        if !self.links.is_empty() {
            place[LINKS] = self.links.into();
        }
        place
    }
}

/// The member of a row's place that says where the row leads.
const LINKS: &str = "links";

fn links_of(mut place: Value) -> Option<Vec<Value>> {
    match place[LINKS].take() {
        Value::Array(links) => Some(links),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::MappingOrder;

    const AT_MS: i64 = 1_795_000_000_000;

    fn row<'a>(fields: &'a Map<String, Value>, url: &'a str, at_ms: i64) -> RowValues<'a> {
        RowValues {
            fields,
            position: 3,
            url,
            mapping: Some("list"),
            mapping_version: None,
            parent: None,
            want: &[],
            links: &[],
            started_at_ms: at_ms,
        }
    }

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn known() -> StoredRecord {
        let mut record = StoredRecord::default();
        let first = fields(json!({"item": "a", "stars": 4, "note": null}));
        assert!(record.take_row(
            &row(&first, "http://a.org/?page=1", AT_MS),
            &FillRules::default()
        ));
        record
    }

    #[test]
    fn a_new_row_is_what_it_says_with_null_for_what_it_lacks() {
        let record = known();
        assert_eq!(
            Value::Object(record.fields.clone()),
            json!({"item": "a", "stars": 4, "note": null})
        );
        assert_eq!(record.row.as_ref().unwrap()["position"], 3);
        assert_eq!(record.sources["stars"]["url"], "http://a.org/?page=1");
        assert!(!record.sources.contains_key("note") && record.missing.is_empty());
    }

    #[test]
    fn the_same_row_again_changes_nothing_and_an_older_one_neither() {
        let mut record = known();
        let same = fields(json!({"item": "a", "stars": 4, "note": null}));
        assert!(!record.take_row(
            &row(&same, "http://a.org/?page=1", AT_MS),
            &FillRules::default()
        ));
        let other = fields(json!({"item": "a", "stars": 1, "note": null}));
        assert!(!record.take_row(
            &row(&other, "http://a.org/?page=1", AT_MS - 1),
            &FillRules::default()
        ));
        assert_eq!(record, known());
    }

    #[test]
    fn a_later_fetch_replaces_what_the_mapping_said_wherever_the_row_stands_now() {
        let mut record = known();
        let later = fields(json!({"item": "a", "stars": 5, "note": "good"}));
        assert!(record.take_row(
            &row(&later, "http://a.org/?page=2", AT_MS + 1),
            &FillRules::default()
        ));
        assert_eq!(
            Value::Object(record.fields.clone()),
            json!({"item": "a", "stars": 5, "note": "good"})
        );
        assert_eq!(record.history["stars"][0]["value"], 4);
        let emptied = fields(json!({"item": "a", "stars": null, "note": null}));
        record.take_row(
            &row(&emptied, "http://a.org/?page=2", AT_MS + 2),
            &FillRules::default(),
        );
        assert_eq!(record.fields["stars"], 5, "an empty cell replaces nothing");
    }

    #[test]
    fn what_another_version_does_not_find_on_the_same_fetch_is_taken_back() {
        let read = |record: &mut StoredRecord, values: Value, version: &'static str, at_ms: i64| {
            let fields = fields(values);
            let row = RowValues {
                mapping_version: Some(version),
                ..row(&fields, "http://a.org/?page=1", at_ms)
            };
            record.take_row(&row, &FillRules::default())
        };
        let mut record = StoredRecord::default();
        read(&mut record, json!({"item": "a", "stars": 4}), "1", AT_MS);
        let wrong = record.clone();
        let empty = || json!({"item": "a", "stars": null});
        assert!(read(&mut record, empty(), "2", AT_MS));
        assert_eq!(record.fields["stars"], Value::Null);
        assert_eq!(record.history["stars"][0]["value"], 4);
        assert!(!record.sources.contains_key("stars"));
        assert!(
            !read(&mut record, empty(), "2", AT_MS),
            "again it changes nothing"
        );
        // Two rules of one page, of which only one knows the stars.
        let mut record = wrong.clone();
        read(&mut record, empty(), "2", AT_MS);
        read(&mut record, json!({"item": "a", "stars": 5}), "2", AT_MS);
        read(&mut record, empty(), "2", AT_MS);
        assert_eq!(record.fields["stars"], 5);
        // A later fetch may lack what is still true.
        let mut record = wrong;
        read(&mut record, empty(), "2", AT_MS + 1);
        assert_eq!(record.fields["stars"], 4);
    }

    #[test]
    fn values_of_the_user_and_of_better_mappings_stay() {
        let mut record = known();
        record.fields.insert("note".into(), "mine".into());
        let rules = FillRules {
            order: MappingOrder(vec!["detail".into(), "list".into()]),
            ..FillRules::default()
        };
        record.sources["stars"]["mapping"] = "detail".into();
        let later = fields(json!({"item": "a", "stars": 5, "note": "theirs"}));
        record.take_row(&row(&later, "http://a.org/?page=1", AT_MS + 1), &rules);
        assert_eq!(
            Value::Object(record.fields.clone()),
            json!({"item": "a", "stars": 4, "note": "mine"})
        );
        assert_eq!(record.candidates["stars"][0]["value"], 5);
    }
}
