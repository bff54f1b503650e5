//! Reads typed values from a mapping's JSON. Errors are collected and reading continues, so that one
//! load reports all of them.

use serde_json::{Map, Value};

use crate::fault::{Fault, did_you_mean};
use crate::json_positions::{Positions, key_path};
use crate::source::Source;

/// A value, and the path that leads to it.
#[derive(Debug, Clone)]
pub(crate) struct ValueAtPath<'v> {
    pub(crate) value: &'v Value,
    pub(crate) path: String,
}

/// A JSON object after its keys have been checked.
#[derive(Debug, Clone)]
pub(crate) struct Object<'v> {
    members: &'v Map<String, Value>,
    pub(crate) path: String,
}

impl<'v> Object<'v> {
    pub(crate) fn get(&self, key: &str) -> Option<ValueAtPath<'v>> {
        self.members.get(key).map(|value| ValueAtPath {
            value,
            path: key_path(&self.path, key),
        })
    }
}

/// A key that an object of a mapping file may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
}

/// Reads a mapping file, and collects its faults and warnings.
pub(crate) struct Reader<'s> {
    source: &'s Source,
    positions: Positions,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

impl<'s> Reader<'s> {
    /// The version of the mappings in the file: a hash of its text.
    pub(crate) fn version(&self) -> String {
        webfill_urls::page_hash(&self.source.text)
    }

    /// Parses the JSON of the file. Fails only if it is invalid.
    pub(crate) fn parse(source: &'s Source) -> Result<(Reader<'s>, Value), Fault> {
        let value = serde_json::from_str(&source.text).map_err(|error| Fault {
            source: source.name.clone(),
            line: Some(error.line()),
            column: Some(error.column()),
            path: String::new(),
            message: format!("not valid JSON: {}", without_place(&error)),
        })?;
        let mut reader = Reader {
            source,
            positions: Positions::from_text(&source.text),
            faults: Vec::new(),
            warnings: Vec::new(),
        };
        for path in std::mem::take(&mut reader.positions.duplicates) {
            reader.add_fault(&path, "duplicate key");
        }
        Ok((reader, value))
    }

    pub(crate) fn add_fault(&mut self, path: &str, message: impl Into<String>) {
        let fault = self.new_fault(path, message.into());
        self.faults.push(fault);
    }

    /// Warns of something that is probably wrong. The file can still be used.
    pub(crate) fn warn(&mut self, path: &str, message: impl Into<String>) {
        let warning = self.new_fault(path, message.into());
        self.warnings.push(warning);
    }

    fn new_fault(&self, path: &str, message: String) -> Fault {
        Fault {
            source: self.source.name.clone(),
            line: self.positions.line(path),
            column: None,
            path: path.to_owned(),
            message,
        }
    }

    pub(crate) fn fault_count(&self) -> usize {
        self.faults.len()
    }

    /// Returns the collected faults, and the warnings.
    pub(crate) fn into_findings(self) -> (Vec<Fault>, Vec<Fault>) {
        (self.faults, self.warnings)
    }

    /// Reads an object. A missing required key and any key that is not among `keys` are faults.
    pub(crate) fn read_object<'v>(
        &mut self,
        at: &ValueAtPath<'v>,
        keys: &[Key],
    ) -> Option<Object<'v>> {
        let Value::Object(members) = at.value else {
            self.report_wrong_type(at, "an object");
            return None;
        };
        self.check_keys(members, &at.path, keys);
        Some(Object {
            members,
            path: at.path.clone(),
        })
    }

    /// Reports the keys of `members` that are not among `keys`, and the required ones it lacks.
    pub(crate) fn check_keys(&mut self, members: &Map<String, Value>, path: &str, keys: &[Key]) {
        for key in members.keys() {
            if !keys.iter().any(|known| known.name == key) {
                let meant = did_you_mean(key, keys.iter().map(|known| known.name));
                self.add_fault(&key_path(path, key), format!("unknown key `{key}`{meant}"));
            }
        }
        for key in keys.iter().filter(|key| key.required) {
            if !members.contains_key(key.name) {
                self.add_fault(path, format!("the key `{}` is missing", key.name));
            }
        }
    }

    /// Reads a text. Any other value is a fault.
    pub(crate) fn read_text<'v>(&mut self, at: &ValueAtPath<'v>) -> Option<&'v str> {
        match at.value {
            Value::String(text) => Some(text),
            _ => {
                self.report_wrong_type(at, "a text");
                None
            }
        }
    }

    /// Reads the text under `key`, if the key is there.
    pub(crate) fn read_text_of<'v>(&mut self, object: &Object<'v>, key: &str) -> Option<&'v str> {
        object.get(key).and_then(|at| self.read_text(&at))
    }

    pub(crate) fn read_boolean_of(&mut self, object: &Object<'_>, key: &str) -> Option<bool> {
        let at = object.get(key)?;
        let value = at.value.as_bool();
        if value.is_none() {
            self.report_wrong_type(&at, "true or false");
        }
        value
    }

    /// Reads the entries of a list. Any other value is a fault.
    pub(crate) fn read_list<'v>(&mut self, at: &ValueAtPath<'v>) -> Vec<ValueAtPath<'v>> {
        let Value::Array(entries) = at.value else {
            self.report_wrong_type(at, "a list");
            return Vec::new();
        };
        entries
            .iter()
            .enumerate()
            .map(|(index, value)| ValueAtPath {
                value,
                path: format!("{}[{index}]", at.path),
            })
            .collect()
    }

    /// Reads the entries of the list under `key`; none if the key is not there.
    pub(crate) fn read_list_of<'v>(
        &mut self,
        object: &Object<'v>,
        key: &str,
    ) -> Vec<ValueAtPath<'v>> {
        match object.get(key) {
            Some(at) => self.read_list(&at),
            None => Vec::new(),
        }
    }

    pub(crate) fn report_wrong_type(&mut self, at: &ValueAtPath<'_>, expected: &str) {
        let found = type_name(at.value);
        self.add_fault(&at.path, format!("expected {expected}, found {found}"));
    }
}

/// The name of a value's type in messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The message of a JSON error without its line and column, which `serde_json` puts at the end. A [`Fault`] shows them
/// at its beginning.
fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}
