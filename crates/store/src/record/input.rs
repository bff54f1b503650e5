//! The user's input for a record.
//!
//! A value is the user's if it differs from the input's previous value, from the values that webfill has written to
//! the dataset, and from the record's present value. Whether a page has had this value does not matter. It wins until
//! the user withdraws it by leaving the field empty. A value that the input merely repeats is not new, so values that
//! a refresh has found meanwhile stay.
//!
//! A user who wants a field that already has a value, by a refresh or by listing it, wants another value from pages.
//! But a correction stays: it is a user's value that replaced one from a page.
//!
//! A write to the dataset that was begun but not confirmed may or may not have happened. If the dataset has the value
//! from before the write, either it was never replaced, or the user typed it again. The store and the document look
//! the same in both cases. Such a value counts as the user's, and only an explicit refresh replaces it.

use serde_json::{Map, Value, json};
use webfill_urls::page_hash;

use super::source::INSTEAD_OF;
use super::spelling::has_value;
use super::stored::StoredRecord;
use super::urls::add_urls;
use super::{Record, gathered, spelling};
use crate::source_document::{DatasetRecord, FilledField};
use crate::timestamp::iso_time;

/// The longest value of the input that is kept as it is, in bytes of JSON. For a longer one, only its hash is kept.
const MAX_SAID_BYTES: usize = 512;

/// How many values of a field are remembered because webfill may have written them to the dataset.
const MAX_WRITTEN: usize = 8;

/// How a record enters a crawl.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Entry {
    /// Whether the record is new to the crawl.
    pub(crate) enters: bool,
    /// Whether the crawl has read the record before, perhaps at another position of its input. If two rows are for one
    /// record, an empty value in one of them does not withdraw the value of the other.
    pub(crate) is_repeat: bool,
}

impl Entry {
    /// How `input` enters a crawl. `earlier` is another position where the crawl first read the record.
    pub(crate) fn of(input: &DatasetRecord, enters: bool, earlier: Option<u64>) -> Entry {
        // The input is not a repetition if it is the row at the record's first position, or a document that values are
        // written back to.
        let is_it = input.source.is_some() || (input.position.is_some() && earlier.is_none());
        Entry {
            enters,
            is_repeat: !enters && !is_it,
        }
    }
}

impl StoredRecord {
    /// Takes the user's input into the record, and marks the fields to be refreshed. Returns whether anything changed.
    pub(crate) fn put(&mut self, input: &DatasetRecord, entry: Entry, now_ms: i64) -> bool {
        let before = self.clone();
        let (record, refresh) = (&input.record, &input.refresh);
        if entry.enters {
            // Doubts are reported for one crawl at a time, so those of an earlier crawl are removed.
            self.doubts.clear_except_decisions();
        }
        self.take_input(input, entry, now_ms);
        let mut again = self.fields_filled_before(&record.want, refresh.after_ms, now_ms);
        if entry.enters {
            let asked = refresh.on_entry.iter();
            again.extend(asked.filter(|name| !self.is_corrected(name)).cloned());
            for name in &again {
                // The pages of an incomplete list that an earlier crawl has left are too old to be completed.
                gathered::remove_parts(&mut self.candidates, name);
            }
        }
        self.mark_for_refresh(&again);
        add_urls(&mut self.urls, &input.urls);
        for name in &record.want {
            if !self.fields.get(name).is_some_and(has_value) && !self.missing.contains(name) {
                self.missing.push(name.clone());
            }
        }
        self.update_resolved_at(now_ms);
        *self != before
    }

    fn take_input(&mut self, input: &DatasetRecord, entry: Entry, now_ms: i64) {
        let is_new = self.given.is_none() && self.fields.is_empty();
        let is_of_older = self.given.is_none() && !is_new;
        let mut given = self.given.take().unwrap_or_default();
        for (name, value) in &input.record.fields {
            let said = given.get(name);
            // If the crawl only reads this collection, its values are not those that webfill has written to another
            // one.
            let is_target = input.source.as_ref().is_none_or(|source| source.is_target);
            let standing = match is_target {
                true => self.note_dataset_value(name, value),
                false => DatasetValueStatus::Unknown,
            };
            let is_repeated = standing == DatasetValueStatus::Unknown
                && (said.is_some_and(|said| is_from_input(said, value))
                    || (is_of_older && self.was_replaced_by_page(name, &input.record)));
            match has_value(value) {
                true => {
                    let was_users = said.is_some_and(|said| said["users"] == true);
                    let corrects = self.take_value(name, value, is_repeated, input, now_ms)
                        && standing != DatasetValueStatus::InDoubt;
                    let is_users = !self.sources.contains_key(name);
                    let said = InputValueInfo {
                        corrects: corrects || (is_users && said.is_some_and(is_correction)),
                        is_users: is_users || (is_repeated && was_users),
                    };
                    given.insert(name.clone(), said.stored_form(value));
                }
                false if entry.is_repeat && said.is_some() => {}
                false => {
                    self.withdraw_missing_value(name, value, said.is_some(), now_ms);
                    given.shift_remove(name);
                }
            }
        }
        self.given = Some(given);
    }

    /// Takes a value of the input, if it is the user's own value. Returns whether the value corrects one from a page.
    fn take_value(
        &mut self,
        name: &str,
        value: &Value,
        is_repeated: bool,
        input: &DatasetRecord,
        now_ms: i64,
    ) -> bool {
        let kept = self.fields.get(name);
        if kept.is_some_and(|kept| spelling::is_same_spelling(kept, value)) {
            // The input repeats the user's value and requests no refresh, so a refresh that has found no other value
            // ends.
            if !self.sources.contains_key(name)
                && !input.refresh.on_entry.iter().any(|one| one == name)
            {
                self.missing.retain(|missing| missing != name);
            }
            return false;
        }
        let is_there = kept.is_some_and(has_value);
        if is_there && (is_repeated || self.has_written(name, value)) {
            return false;
        }
        self.doubts.forget_decision(name);
        let former = self.fields.insert(name.to_owned(), value.clone());
        let source = self.sources.shift_remove(name);
        let corrects = source.is_some();
        self.candidates.take(name);
        if let Some(former) = former {
            self.history.add(name, former, source, now_ms);
        }
        self.missing.retain(|missing| missing != name);
        corrects
    }

    /// Handles an input without a value for a field. If the earlier input had a value, and the record still has that
    /// value, it is withdrawn.
    fn withdraw_missing_value(&mut self, name: &str, value: &Value, was_said: bool, now_ms: i64) {
        let is_users = was_said && !self.sources.contains_key(name);
        let kept = self.fields.get(name).cloned().unwrap_or_default();
        let says_nothing = self.fields.contains_key(name) && value.is_null();
        if has_value(&kept) && !is_users || !has_value(&kept) && says_nothing {
            return;
        }
        self.history.add(name, kept, None, now_ms);
        self.fields.insert(name.to_owned(), value.clone());
    }

    /// Whether a page's value has replaced the value of the input. Needed for records whose earlier input was not
    /// stored.
    fn was_replaced_by_page(&self, name: &str, input: &Record) -> bool {
        let history = self.history.of_field(name).iter();
        let mut others = history.chain(self.candidates.of_field(name));
        let given = input.fields.get(name);
        let is_given = |other: &Value| {
            given.is_some_and(|given| spelling::is_same_spelling(&other["value"], given))
        };
        self.sources.contains_key(name) && others.any(is_given)
    }

    fn is_corrected(&self, name: &str) -> bool {
        let said = self.given.as_ref().and_then(|given| given.get(name));
        said.is_some_and(is_correction) && !self.sources.contains_key(name)
    }

    /// Returns those of the named fields that a page has filled at least `after_ms` ago.
    fn fields_filled_before(
        &self,
        names: &[String],
        after_ms: Option<u64>,
        now_ms: i64,
    ) -> Vec<String> {
        let Some(after_ms) = after_ms else {
            return Vec::new();
        };
        let latest = iso_time(now_ms.saturating_sub_unsigned(after_ms));
        // All times have the same format, so that they can be compared as texts.
        let is_old = |name: &&String| {
            let at = self
                .sources
                .get(*name)
                .and_then(|source| source["at"].as_str());
            at.is_some_and(|at| at <= latest.as_str())
        };
        names.iter().filter(is_old).cloned().collect()
    }

    /// Marks those of the named fields that have a value as missing, so that pages refresh them.
    pub(super) fn mark_for_refresh(&mut self, names: &[String]) {
        for name in names {
            if self.doubts.is_final(name) {
                continue;
            }
            let is_filled = self.fields.get(name).is_some_and(has_value);
            if is_filled && !self.missing.contains(name) {
                self.missing.push(name.clone());
            }
            if let Some(Value::Object(source)) = self.sources.get_mut(name) {
                source.shift_remove(INSTEAD_OF);
            }
        }
    }

    /// Notes that the dataset has this value, and finds out whose it is. If webfill wrote it last, the values written
    /// earlier are forgotten. Otherwise all written values are forgotten: the value is in doubt if webfill has written
    /// it earlier, and is the user's if not.
    fn note_dataset_value(&mut self, name: &str, value: &Value) -> DatasetValueStatus {
        if !has_value(value) {
            return DatasetValueStatus::Unknown;
        }
        let Some(Value::Array(written)) = self.written.get_mut(name) else {
            return DatasetValueStatus::Unknown;
        };
        let stands = written
            .iter()
            .rposition(|one| spelling::is_same_spelling(one, value));
        if stands.is_some_and(|stands| stands + 1 == written.len()) {
            written.drain(..written.len() - 1);
            return DatasetValueStatus::Unknown;
        }
        self.written.shift_remove(name);
        match stands {
            Some(_) => DatasetValueStatus::InDoubt,
            None => DatasetValueStatus::Users,
        }
    }

    /// Whether webfill may have written this value to the user's dataset.
    fn has_written(&self, name: &str, value: &Value) -> bool {
        let written = self.written.get(name).and_then(Value::as_array);
        let mut written = written.into_iter().flatten();
        written.any(|written| spelling::is_same_spelling(written, value))
    }

    /// The values that may be in the user's dataset, and that a page's value may replace there. These are the values
    /// written by webfill, and those that were there when the user asked for another value.
    pub(crate) fn replaceable_values(&self, name: &str) -> Vec<Value> {
        let Some(given) = &self.given else {
            // No input has named the record: it was found as a row of a page.
            return self.other_values(name);
        };
        let written = self.written.get(name).and_then(Value::as_array);
        if let Some(written) = written {
            // Only the last written value is replaceable. A value that an unconfirmed write was to replace may be the
            // user's by now.
            return written.last().cloned().into_iter().collect();
        }
        let mut values = Vec::new();
        if let Some(said) = given.get(name).filter(|said| said["users"] == true) {
            let history = self.history.of_field(name).iter();
            let mut former = history.map(|one| &one["value"]);
            let known = said
                .get("value")
                .or_else(|| former.find(|value| is_from_input(said, value)));
            values.extend(known.cloned());
        }
        values
    }

    /// Those of `fields` that have a value from a page. A field whose value was written to the dataset, but that has no
    /// value any more, is included with null.
    pub(crate) fn filled_fields(&self, fields: &[String]) -> Vec<FilledField> {
        let filled = |name: &String| {
            let value = self.fields.get(name).filter(|value| has_value(value));
            let is_taken_back = value.is_none() && self.written.contains_key(name);
            if !is_taken_back && !self.sources.contains_key(name) {
                return None;
            }
            let is_asked_again = !is_taken_back && self.missing.contains(name);
            let others = self.replaceable_values(name);
            if is_asked_again && !others.is_empty() {
                // A field that is to be refreshed keeps its value in the dataset until another value is found.
                return None;
            }
            Some(FilledField {
                name: name.clone(),
                value: value.or(is_taken_back.then_some(&Value::Null))?.clone(),
                is_asked_again,
                others,
            })
        };
        fields.iter().filter_map(filled).collect()
    }

    /// Notes values that are about to be written to the dataset. From now on the dataset may have these values.
    pub(crate) fn note_writing(&mut self, fields: &[FilledField]) {
        for field in fields.iter().filter(|field| has_value(&field.value)) {
            let mut written = field.others.clone();
            written.retain(|other| *other != field.value);
            written.push(field.value.clone());
            let surplus = written.len().saturating_sub(MAX_WRITTEN);
            written.drain(..surplus);
            self.written.insert(field.name.clone(), written.into());
        }
    }

    /// Notes values that were written to the dataset. No other value of webfill is in the dataset any more.
    pub(crate) fn note_written(&mut self, fields: &[FilledField]) {
        for field in fields {
            match has_value(&field.value) {
                true => self
                    .written
                    .insert(field.name.clone(), json!([field.value])),
                false => self.written.shift_remove(&field.name),
            };
        }
    }
}

/// The owner of a value in the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DatasetValueStatus {
    /// The value is webfill's, or it is unknown.
    Unknown,
    /// The value is the user's: webfill has written only other values to the dataset.
    Users,
    /// It is unknown whose value it is: webfill has written it, but may have written another value after it.
    InDoubt,
}

/// A value of the user's input: whether it corrects a value from a page, and whether it is the user's own.
struct InputValueInfo {
    /// Whether the value has replaced one from a page.
    corrects: bool,
    is_users: bool,
}

impl InputValueInfo {
    /// The JSON that a value of the input is kept as, to recognise the same value in a later input.
    fn stored_form(&self, value: &Value) -> Value {
        let text = value.to_string();
        let mut said = match text.len() > MAX_SAID_BYTES {
            true => Map::from_iter([(String::from("hash"), page_hash(&text).into())]),
            false => Map::from_iter([(String::from("value"), value.clone())]),
        };
        for (name, is_so) in [("corrects", self.corrects), ("users", self.is_users)] {
            if is_so {
                said.insert(name.to_owned(), Value::Bool(true));
            }
        }
        Value::Object(said)
    }
}

fn is_from_input(said: &Value, value: &Value) -> bool {
    match said.get("hash") {
        Some(hash) => *hash == page_hash(&value.to_string()),
        None => said["value"] == *value,
    }
}

fn is_correction(said: &Value) -> bool {
    said["corrects"] == true
}
