//! The history of a record: former values of its fields.

use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::candidates::retract_from_lists;
use super::source::{MAX_CANDIDATE_BYTES, PARTS};
use super::spelling::has_value;
use crate::timestamp::iso_time;

/// The most former values of one field. Beyond that, the oldest are dropped.
const MAX_HISTORY: usize = 8;

/// The former values of each field, by its name: a list of `{value, until}`, with `{url, mapping, at}` if the value
/// came from a page. The latest is last.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct History(Map<String, Value>);

impl History {
    /// The former values of a field.
    pub(super) fn of_field(&self, name: &str) -> &[Value] {
        let former = self.0.get(name).and_then(Value::as_array);
        former.map_or(&[], Vec::as_slice)
    }

    /// Adds a former value of a field. `now_ms` is when another value has replaced it.
    pub(super) fn add(&mut self, name: &str, value: Value, source: Option<Value>, now_ms: i64) {
        if !has_value(&value) || value.to_string().len() > MAX_CANDIDATE_BYTES {
            return;
        }
        let mut former = Map::from_iter([("value".to_owned(), value)]);
        if let Some(Value::Object(source)) = source {
            former.extend(source);
        }
        former.shift_remove(PARTS);
        former.insert("until".to_owned(), iso_time(now_ms).into());
        let history = self.0.entry(name).or_insert_with(|| json!([]));
        if let Value::Array(history) = history {
            history.push(Value::Object(former));
            if history.len() > MAX_HISTORY {
                // The history is full: the oldest value of a page is dropped, because the user's values are kept
                // longer.
                let by_page = history.iter().position(|former| !former["url"].is_null());
                history.remove(by_page.unwrap_or(0));
            }
        }
    }

    /// Removes the last former value of a field if it equals the present value.
    pub(super) fn remove_if_current(&mut self, name: &str, value: &Value) {
        if let Some(Value::Array(history)) = self.0.get_mut(name) {
            history.pop_if(|former| former["value"] == *value);
            if history.is_empty() {
                self.0.shift_remove(name);
            }
        }
    }

    /// Removes the last former value of a field, and returns it.
    pub(super) fn take_last(&mut self, name: &str) -> Option<Value> {
        let history = self.0.get_mut(name)?.as_array_mut()?;
        let last = history.pop();
        if history.is_empty() {
            self.0.shift_remove(name);
        }
        last
    }

    /// Removes the values of one fetch of a page from all fields.
    pub(super) fn retract(&mut self, is_of_fetch: impl Fn(&Value) -> bool) {
        retract_from_lists(&mut self.0, is_of_fetch);
    }
}

impl Deref for History {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl From<Map<String, Value>> for History {
    fn from(history: Map<String, Value>) -> History {
        History(history)
    }
}
