//! Reads members of a JSON object leniently: a member of the wrong type counts as absent. The keys and types have been
//! checked before.

use serde_json::{Map, Value};

use crate::refusal::Refusal;

pub(super) fn expect_object<'m>(
    value: &'m Value,
    path: &str,
) -> Result<&'m Map<String, Value>, Refusal> {
    let members = value.as_object();
    members.ok_or_else(|| Refusal::new(path, "expected an object"))
}

pub(super) fn get_text(members: &Map<String, Value>, key: &str) -> Option<String> {
    let text = members.get(key).and_then(Value::as_str);
    text.map(str::to_owned)
}

pub(super) fn get_texts(members: &Map<String, Value>, key: &str) -> Vec<String> {
    let list = members.get(key).and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

pub(super) fn get_duration_ms(members: &Map<String, Value>, key: &str) -> Option<i64> {
    crate::duration_ms(members.get(key)?.as_str()?).ok()
}
