//! The values in JSON: of pages, of scripts, and of linked data.

use serde_json::Value;

use super::{LONGEST_KIND, MOST_BYTES, MOST_PLACES, PlaceKind, Places};

impl<'d> Places<'d> {
    pub(super) fn read_json(&mut self, text: &str) {
        if text.len() > MOST_BYTES {
            return;
        }
        if let Ok(value) = serde_json::from_str::<Value>(text.trim()) {
            self.read_members(&value, "$", 0, &|path| PlaceKind::Json(path));
        }
    }

    /// Reads the linked-data objects that have a type, each with its own members.
    pub(super) fn read_linked_data(&mut self, value: &Value, depth: usize) {
        if depth > 16 {
            return;
        }
        match value {
            Value::Array(items) => items
                .iter()
                .for_each(|item| self.read_linked_data(item, depth + 1)),
            Value::Object(object) => {
                let kind = match object.get("@type") {
                    Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
                    Some(kind) => kind.as_str(),
                    None => None,
                };
                if let Some(kind) = kind.filter(|kind| kind.len() <= LONGEST_KIND) {
                    let kind = kind
                        .rsplit([':', '/', '#'])
                        .next()
                        .unwrap_or(kind)
                        .to_owned();
                    *self.linked.entry(kind.clone()).or_default() += 1;
                    self.read_members(value, "$", 0, &|path| PlaceKind::JsonLd(kind.clone(), path));
                }
                let nested = object.values().filter(|member| !member.is_string());
                nested.for_each(|member| self.read_linked_data(member, depth + 1));
            }
            _ => {}
        }
    }

    pub(super) fn read_members(
        &mut self,
        value: &Value,
        path: &str,
        depth: usize,
        at: &dyn Fn(String) -> PlaceKind<'d>,
    ) {
        if depth > 12 || self.all.len() >= MOST_PLACES || self.bytes >= MOST_BYTES {
            return;
        }
        match value {
            Value::String(text) => {
                self.add(at(path.to_owned()), text);
            }
            Value::Number(number) => {
                self.add(at(path.to_owned()), &number.to_string());
            }
            Value::Array(items) => {
                // Each item of a list gets a path by its number, and one by its name. Below an item with a name, only
                // numbers are used, because each level would double the paths.
                let naming = match path.contains("[?") {
                    true => None,
                    false => naming_member(items),
                };
                for (index, item) in items.iter().enumerate().take(1_000) {
                    self.read_members(item, &format!("{path}[{index}]"), depth + 1, at);
                    if let Some(filter) = naming.and_then(|member| filter_by_name(item, member)) {
                        self.read_members(item, &format!("{path}{filter}"), depth + 1, at);
                    }
                }
            }
            Value::Object(object) => {
                for (name, member) in object.iter().take(1_000) {
                    if name.starts_with('@') || name.len() > 60 {
                        continue;
                    }
                    if let Some(step) = member_path(path, name) {
                        self.read_members(member, &step, depth + 1, at);
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// The member that names each object of a list: `name` in `[{"name": "Weight", "value": "12 kg"}]`.
fn naming_member(items: &[Value]) -> Option<&'static str> {
    const MEMBERS: [&str; 8] = [
        "name",
        "label",
        "key",
        "title",
        "k",
        "property",
        "attribute",
        "code",
    ];
    const LONGEST_NAME: usize = 40;
    let names = |member: &str| {
        let name = |item: &Value| {
            let name = item.get(member)?.as_str()?;
            let is_name = name.len() <= LONGEST_NAME && !name.contains(['\'', '\\', '[', ']']);
            is_name.then(|| name.to_owned())
        };
        let names: Option<Vec<String>> = items.iter().take(200).map(name).collect();
        names.is_some_and(|mut names| {
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            all > 1 && names.len() == all
        })
    };
    let has_values = items
        .iter()
        .all(|item| item.as_object().is_some_and(|item| item.len() > 1));
    MEMBERS
        .into_iter()
        .find(|member| has_values && names(member))
}

fn filter_by_name(item: &Value, member: &str) -> Option<String> {
    let name = item.get(member)?.as_str()?;
    Some(format!("[?(@.{member}=='{name}')]"))
}

/// The JSONPath of an object's member; `None` if its name cannot be written in a path.
pub(crate) fn member_path(path: &str, name: &str) -> Option<String> {
    match name.contains(['\'', '\\']) {
        _ if is_plain(name) => Some(format!("{path}.{name}")),
        true => None,
        false => Some(format!("{path}['{name}']")),
    }
}

fn is_plain(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
