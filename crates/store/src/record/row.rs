//! How a row of a page becomes a record, and how later fetches change it.
//!
//! - A row is identified by its key: it needs no other evidence, and pages about others do not affect it.
//! - A value of the user stays; the page's value does not become a candidate.
//! - A later fetch replaces values of mappings with the same or a lower priority, wherever the row was then, because
//!   the rows of a listing move from page to page. Replaced values become history.
//! - A value of a mapping with higher priority stays, and the row's becomes a candidate.
//! - If lists mark missing rows as gone, a row records which of them hold it. It is gone once each was read to its end
//!   without it, and back when it is seen later; see [`crate::list`].
//! - A row may link to pages of its own, and want fields that these pages fill by the rules for all records.
//! - An empty cell replaces a value only if another version of the mapping reads the same fetch of the page again. The
//!   value of the former version was then wrong, and becomes history.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::fill_rules::FillRules;
use super::spelling::{has_value, is_same_value};
use super::stored::StoredRecord;
use super::urls::add_urls;
use crate::listing::KeyedRow;
use crate::row_page::RowPage;
use crate::timestamp::iso_time;

/// The values of a row, and where it was found.
pub(crate) struct RowValues<'a> {
    pub(crate) fields: &'a Map<String, Value>,
    pub(crate) position: u64,
    pub(crate) url: &'a str,
    pub(crate) mapping: Option<&'a str>,
    pub(crate) mapping_version: Option<&'a str>,
    /// The key of the record that the page was fetched for.
    pub(crate) parent: Option<&'a str>,
    /// The fields to be filled by the pages that the row links to, and the URLs of these pages.
    pub(crate) want: &'a [String],
    pub(crate) links: &'a [String],
    /// The URL of the first page of the list that holds the row; `None` unless that list marks missing rows as gone.
    pub(crate) list: Option<&'a str>,
    pub(crate) started_at_ms: i64,
}

/// What it means for a row that a list no longer holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowLoss {
    /// Nothing: the list still holds the row, or it was seen elsewhere meanwhile.
    Nothing,
    /// The row is still held by other lists.
    List,
    /// The row is gone.
    Row,
}

impl StoredRecord {
    /// Takes the values of a row. Returns whether anything has changed.
    pub(crate) fn put_row(&mut self, row: &RowValues<'_>, rules: &FillRules) -> bool {
        let at = iso_time(row.started_at_ms);
        let is_older = |known: &Value| {
            known["at"]
                .as_str()
                .is_some_and(|known| known > at.as_str())
        };
        let mut holders = ListHolders::from_place(self.row.as_ref());
        let is_new_to_list = holders.note_seen(row.list, &at);
        if let Some(known) = self.row.as_mut().filter(|known| is_older(known)) {
            holders.write(known);
            return is_new_to_list;
        }
        let mut place = row.to_place_json(&at);
        holders.write(&mut place);
        let is_read_again = self.row.as_ref().is_some_and(|known| {
            known["mapping_version"] != place["mapping_version"]
                && ["url", "at", "mapping"]
                    .iter()
                    .all(|part| known[part] == place[part])
        });
        let mut changed = self.row.as_ref() != Some(&place);
        let former_links = self.row.replace(place).and_then(take_links_of_place);
        let source = json!({"url": row.url, "mapping": row.mapping, "at": at});
        for (name, value) in row.fields {
            if is_read_again && !has_value(value) {
                changed |= self.retract_cell(name, &source, row.started_at_ms);
            }
            changed |= self.set_cell(name, value, &source, row, rules);
        }
        changed |= self.set_links(row.links, &former_links.unwrap_or_default());
        changed |= self.add_wanted_fields(row.want);
        if changed {
            self.update_resolved_at(row.started_at_ms);
        }
        changed
    }

    /// Handles a list that was read to its end without the row, in a reading that began at this time. If the list held
    /// the row before, it no longer counts as a holder. If no other list holds the row, the row is gone.
    pub(crate) fn note_row_missing_from_list(&mut self, list: &str, began_ms: i64) -> RowLoss {
        let Some(row) = &mut self.row else {
            return RowLoss::Nothing;
        };
        let began = iso_time(began_ms);
        let mut holders = ListHolders::from_place(Some(row));
        let before = holders.lists.len();
        let is_last = before == 1;
        // A list that does not mark missing rows as gone is not stored as a holder of the row, but the row may have
        // been seen in it since.
        let seen_there = holders.lists.iter().map(|one| one.at.as_str()).max();
        let was_seen_elsewhere = row["at"].as_str() > seen_there;
        holders
            .lists
            .retain(|one| one.url != list || one.at >= began);
        if holders.lists.len() == before || is_last && was_seen_elsewhere {
            return RowLoss::Nothing;
        }
        if is_last {
            holders.gone = Some(GoneFrom {
                at: began,
                list: list.to_owned(),
            });
        }
        holders.write(row);
        match is_last {
            true => RowLoss::Row,
            false => RowLoss::List,
        }
    }

    /// Since when the row is gone, and from which list; `None` if it is not.
    pub(crate) fn gone_from(&self) -> Option<GoneFrom> {
        ListHolders::from_place(self.row.as_ref()).gone
    }

    /// Since when a list holds the row, and when the row was last seen in that list.
    pub(crate) fn list_holder(&self, list: &str) -> Option<ListHolder> {
        let holders = ListHolders::from_place(self.row.as_ref());
        holders.lists.into_iter().find(|one| one.url == list)
    }

    /// Makes the pages that the row links to the record's own, like those named by the user. Pages that the row no
    /// longer links to lose that status. Returns whether anything has changed.
    fn set_links(&mut self, links: &[String], former: &[Value]) -> bool {
        let before = self.urls.len();
        self.urls
            .retain(|url| links.contains(url) || !former.iter().any(|one| one == url));
        let has_lost = self.urls.len() < before;
        add_urls(&mut self.urls, links) || has_lost
    }

    /// Adds fields that pages are to fill. Returns whether any of them is new.
    fn add_wanted_fields(&mut self, want: &[String]) -> bool {
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

    /// Removes a field's value because the same fetch of the page, read again, does not give it. Returns whether the
    /// value was removed.
    fn retract_cell(&mut self, name: &str, source: &Value, now_ms: i64) -> bool {
        if self.sources.get(name) != Some(source) || self.doubts.is_final(name) {
            return false;
        }
        let former = self.sources.remove(name);
        let kept = self.fields.insert(name.to_owned(), Value::Null);
        self.history
            .add(name, kept.unwrap_or_default(), former, now_ms);
        true
    }

    fn set_cell(
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
        if self.doubts.is_closed_to(name, value) {
            return false;
        }
        let former = self.sources.get(name).cloned();
        if has_value(&kept) {
            let Some(former) = &former else {
                return false;
            };
            let is_lesser = rules.order.priority_rank(row.mapping)
                > rules.order.priority_rank(former["mapping"].as_str());
            if is_lesser && !is_same_value(&kept, value) {
                return self.candidates.add(name, value, source.clone());
            }
            if is_lesser || former == source && is_same_value(&kept, value) {
                return false;
            }
        }
        if is_same_value(&kept, value) {
            self.sources.insert(name.to_owned(), source.clone());
            return true;
        }
        self.history.add(name, kept, former, row.started_at_ms);
        self.fields.insert(name.to_owned(), value.clone());
        self.sources.insert(name.to_owned(), source.clone());
        self.missing.retain(|missing| missing != name);
        true
    }
}

/// The lists that hold a row, and whether it is gone. They are stored with the place where the row was last seen.
#[derive(Debug, Clone, PartialEq, Default)]
struct ListHolders {
    lists: Vec<ListHolder>,
    gone: Option<GoneFrom>,
}

/// A list that holds a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ListHolder {
    pub(crate) url: String,
    pub(crate) since: String,
    /// When the row was last seen in the list.
    pub(crate) at: String,
}

/// Since when a row is gone, and from which list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GoneFrom {
    /// When the reading began that did not find the row.
    pub(crate) at: String,
    pub(crate) list: String,
}

/// The member of a row's stored place with the lists that hold the row, and the member with the list and time since
/// which the row is gone.
const LISTS: &str = "lists";
const GONE: &str = "gone";

/// The most lists kept for one row. A row in more lists can never be gone, because not all of its lists are known.
const MOST_LISTS: usize = 1_000;

impl ListHolders {
    fn from_place(place: Option<&Value>) -> ListHolders {
        let member = |name: &str| place.and_then(|place| place.get(name)).cloned();
        ListHolders {
            lists: member(LISTS)
                .and_then(|lists| serde_json::from_value(lists).ok())
                .unwrap_or_default(),
            gone: member(GONE).and_then(|gone| serde_json::from_value(gone).ok()),
        }
    }

    /// Notes that the row was seen, and in which list if that is known. Returns whether anything has changed.
    fn note_seen(&mut self, list: Option<&str>, at: &str) -> bool {
        if let Some(gone) = &self.gone {
            let is_of_other = list.is_some_and(|list| list != gone.list);
            if at < gone.at.as_str() && !is_of_other {
                return false;
            }
        }
        let mut is_new = self.gone.take().is_some();
        let Some(list) = list else {
            return is_new;
        };
        if let Some(known) = self.lists.iter_mut().find(|known| known.url == list) {
            if known.at.as_str() < at {
                at.clone_into(&mut known.at);
                is_new = true;
            }
            return is_new;
        }
        let url = match self.lists.len() {
            ..MOST_LISTS => list,
            MOST_LISTS => "",
            _ => return is_new,
        };
        self.lists.push(ListHolder {
            url: url.to_owned(),
            since: at.to_owned(),
            at: at.to_owned(),
        });
        true
    }

    fn write(&self, place: &mut Value) {
        let Value::Object(place) = place else {
            return;
        };
        place.remove(LISTS);
        place.remove(GONE);
        if !self.lists.is_empty() {
            place.insert(LISTS.to_owned(), json!(self.lists));
        }
        if let Some(gone) = &self.gone {
            place.insert(GONE.to_owned(), json!(gone));
        }
    }
}

impl<'a> RowValues<'a> {
    pub(crate) fn of(page: &'a RowPage<'a>, row: &'a KeyedRow) -> RowValues<'a> {
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
            list: page.list.as_deref().filter(|_| row.complete),
            started_at_ms: page.started_at_ms,
        }
    }

    /// The place where the row was last seen.
    fn to_place_json(&self, at: &str) -> Value {
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

/// The member of a row's place that holds the row's links.
const LINKS: &str = "links";

fn take_links_of_place(mut place: Value) -> Option<Vec<Value>> {
    match place[LINKS].take() {
        Value::Array(links) => Some(links),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
