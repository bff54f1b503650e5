//! The parameters of one processor. They are checked against its declaration first, so that reading them cannot fail.

use serde_json::{Map, Value};

use crate::entry::{Entry, Kind, Parameter, Presence};
use crate::reader::{Key, Reader, ValueAtPath, type_name};

/// The parameters of a processor, after their names and types have been checked.
pub(crate) struct Parameters<'v> {
    entry: &'static Entry,
    given: &'v Map<String, Value>,
}

impl<'v> Parameters<'v> {
    /// Checks the names and types of parameters. Errors are reported to `reader`.
    pub(crate) fn read(
        entry: &'static Entry,
        given: &'v Map<String, Value>,
        path: &str,
        reader: &mut Reader<'_>,
    ) -> Option<Parameters<'v>> {
        let keys: Vec<Key> = entry
            .parameters
            .iter()
            .map(|parameter| Key {
                name: parameter.name,
                required: matches!(parameter.presence, Presence::Required),
            })
            .collect();
        let before = reader.fault_count();
        reader.check_keys(given, path, &keys);
        for parameter in entry.parameters {
            if let Some(value) = given.get(parameter.name) {
                let path = crate::json_positions::key_path(path, parameter.name);
                check_kind(parameter.kind, &ValueAtPath { value, path }, reader);
            }
        }
        (reader.fault_count() == before).then_some(Parameters { entry, given })
    }

    /// The text of a parameter that is declared as required or with a default.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.optional_text(name)
            .expect("the table declares this text as required or with a default")
    }

    pub(crate) fn optional_text(&self, name: &str) -> Option<&str> {
        match self.given.get(name) {
            Some(value) => value.as_str(),
            None => match self.declared_parameter(name).presence {
                Presence::Text(default) => Some(default),
                _ => None,
            },
        }
    }

    /// The value of a flag; false if it is neither given nor has a declared default.
    pub(crate) fn boolean(&self, name: &str) -> bool {
        match self.given.get(name) {
            Some(value) => value.as_bool().unwrap_or_default(),
            None => matches!(
                self.declared_parameter(name).presence,
                Presence::Boolean(true)
            ),
        }
    }

    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        self.declared_parameter(name);
        self.given.get(name).and_then(Value::as_i64)
    }

    /// The value of a count or size. Its declared bounds exclude negative numbers.
    pub(crate) fn size(&self, name: &str) -> Option<usize> {
        self.integer(name)
            .and_then(|value| usize::try_from(value).ok())
    }

    /// The texts of a list; none if the parameter is not given.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        self.declared_parameter(name);
        let entries = self.given.get(name).and_then(Value::as_array);
        entries
            .map(|entries| entries.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    }

    /// Keys and values of an object whose values are texts.
    pub(crate) fn table(&self, name: &str) -> Vec<(&str, &str)> {
        self.declared_parameter(name);
        let members = self.given.get(name).and_then(Value::as_object);
        members
            .map(|members| {
                let entry =
                    |(key, value): (&'v String, &'v Value)| Some((key.as_str(), value.as_str()?));
                members.iter().filter_map(entry).collect()
            })
            .unwrap_or_default()
    }

    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    fn declared_parameter(&self, name: &str) -> &'static Parameter {
        self.entry
            .parameters
            .iter()
            .find(|parameter| parameter.name == name)
            .expect("a processor reads only parameters that its entry declares")
    }
}

/// The type of a parameter in messages and in the manual.
pub(crate) fn describe_kind(kind: Kind) -> String {
    match kind {
        Kind::Text => "a text".to_owned(),
        Kind::Integer(min, max) => format!("a whole number from {min} to {max}"),
        Kind::Boolean => "true or false".to_owned(),
        Kind::TextList => "a list of texts".to_owned(),
        Kind::TextTable => "an object of texts".to_owned(),
        Kind::Choice(choices) => format!("one of {}", choices.join(", ")),
        Kind::Group => "the number or the name of a group".to_owned(),
    }
}

fn check_kind(kind: Kind, at: &ValueAtPath<'_>, reader: &mut Reader<'_>) {
    match (kind, at.value) {
        (Kind::TextList, Value::Array(entries)) => {
            for (index, value) in entries.iter().enumerate() {
                let path = format!("{}[{index}]", at.path);
                check_kind(Kind::Text, &ValueAtPath { value, path }, reader);
            }
        }
        (Kind::TextTable, Value::Object(members)) => {
            for (key, value) in members {
                let path = crate::json_positions::key_path(&at.path, key);
                check_kind(Kind::Text, &ValueAtPath { value, path }, reader);
            }
        }
        (kind, value) if is_of_kind(kind, value) => {}
        (kind, value) => {
            let found = match value {
                Value::String(_) | Value::Number(_) => value.to_string(),
                other => type_name(other).to_owned(),
            };
            reader.add_fault(
                &at.path,
                format!("expected {}, found {found}", describe_kind(kind)),
            );
        }
    }
}

fn is_of_kind(kind: Kind, value: &Value) -> bool {
    match kind {
        Kind::Text => value.is_string(),
        Kind::Integer(min, max) => value
            .as_i64()
            .is_some_and(|number| (min..=max).contains(&number)),
        Kind::Boolean => value.is_boolean(),
        Kind::Choice(choices) => value.as_str().is_some_and(|text| choices.contains(&text)),
        Kind::Group => value.is_string() || value.as_u64().is_some(),
        Kind::TextList | Kind::TextTable => false,
    }
}
