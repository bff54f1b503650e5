//! The environment variables of settings, how their texts are parsed, and suggestions for misspelt names.

use std::collections::BTreeSet;

use toml::{Table, Value};
use webfill_api::nearest_known_name;
use webfill_service::Fault;

use super::table::{Kind, SETTINGS};

pub(super) const PREFIX: &str = "WEBFILL_";

/// The error about an unknown name suggests a known name that is at most this many edits away.
const MAX_SLIPS: usize = 3;

/// Environment variables that belong to a flag, not to a setting.
const OF_FLAGS: [&str; 1] = ["RECORDS"];

/// The keys and kinds of all settings that have an environment variable. The limits of applications have none.
pub(super) fn settings_with_variables() -> impl Iterator<Item = (&'static str, Kind)> + Clone {
    let settings = SETTINGS.iter().map(|setting| (setting.key, setting.kind));
    settings.filter(|(key, _)| !key.starts_with("applications."))
}

/// Overrides the file's settings with environment variables.
pub(super) fn apply_variables(
    table: &mut Table,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<(), Fault> {
    for (variable, text) in variables {
        let Some(name) = variable.strip_prefix(PREFIX) else {
            continue;
        };
        if OF_FLAGS.contains(&name) {
            continue;
        }
        let known = settings_with_variables().find(|(key, _)| variable_name(key) == name);
        let Some((key, kind)) = known else {
            return Err(unknown_variable_fault(&variable, name));
        };
        let value = parse_value(&text, kind).ok_or_else(|| {
            Fault::usage(format!("{variable}={text}: {}", describe_expected(kind)))
        })?;
        insert_at_path(table, key, value);
    }
    Ok(())
}

/// A suggestion, if the fault is an unknown key and a known key is similar.
pub(super) fn suggest_key(table: &Table, fault: &toml::de::Error) -> Option<String> {
    let unknown = fault.message().strip_prefix("unknown field `")?;
    let unknown = unknown.split('`').next()?;
    for (name, value) in table {
        let within = format!("{name}.");
        let is_section = settings_with_variables().any(|(key, _)| key.starts_with(&within));
        let keys: Vec<String> = match value {
            Value::Table(section) if is_section => {
                section.keys().map(|key| format!("{within}{key}")).collect()
            }
            _ => vec![name.clone()],
        };
        for key in keys.iter().filter(|key| last_part(key) == unknown) {
            if let Some(nearest) = nearest_unless_known(key, known_keys().into_iter()) {
                return Some(format!("{key}: unknown key, did you mean {nearest}?"));
            }
        }
    }
    None
}

/// Every key of the file: the settings by their paths, and the names of the sections.
fn known_keys() -> BTreeSet<&'static str> {
    let paths = settings_with_variables().map(|(key, _)| key);
    let sections = paths.clone().filter_map(|path| path.split_once('.'));
    let sections = sections.map(|(section, _)| section);
    paths.chain(sections).chain(["applications"]).collect()
}

fn last_part(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The most similar known name. `None` if the name itself is known. The longer the name, the more edits are allowed.
fn nearest_unless_known<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let slips = (last_part(name).len() / 3).clamp(1, MAX_SLIPS);
    nearest_known_name(name, known, slips).filter(|nearest| *nearest != name)
}

/// The fault of an unknown variable, with a suggestion if a known one is similar.
fn unknown_variable_fault(variable: &str, name: &str) -> Fault {
    let known: Vec<String> = settings_with_variables()
        .map(|(key, _)| variable_name(key))
        .collect();
    let flags = OF_FLAGS.into_iter();
    let known = known.iter().map(String::as_str).chain(flags);
    let hint = nearest_unless_known(name, known)
        .map(|nearest| format!(", did you mean {PREFIX}{nearest}?"))
        .unwrap_or_default();
    Fault::usage(format!("{variable}: unknown variable{hint}"))
}

pub(super) fn variable_name(path: &str) -> String {
    path.replace('.', "_").to_uppercase()
}

fn parse_value(text: &str, kind: Kind) -> Option<Value> {
    Some(match kind {
        Kind::Text => Value::String(text.to_owned()),
        Kind::Whole(..) => Value::Integer(text.parse().ok()?),
        Kind::Number | Kind::Wait | Kind::Timeout => Value::Float(text.parse().ok()?),
        Kind::Switch => Value::Boolean(text.parse().ok()?),
        Kind::Waits => {
            let items = text.split(',').filter(|item| !item.trim().is_empty());
            let numbers = items.map(|item| item.trim().parse().map(Value::Float));
            Value::Array(numbers.collect::<Result<_, _>>().ok()?)
        }
        Kind::Lines => {
            let items = text.lines().filter(|item| !item.trim().is_empty());
            Value::Array(items.map(|item| Value::String(item.to_owned())).collect())
        }
        Kind::List => {
            let items = text.split(',').filter(|item| !item.is_empty());
            Value::Array(
                items
                    .map(|item| Value::String(item.trim().to_owned()))
                    .collect(),
            )
        }
    })
}

fn describe_expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::List | Kind::Lines => "not text",
        Kind::Whole(..) => "not a whole number",
        Kind::Number | Kind::Wait | Kind::Timeout => "not a number",
        Kind::Waits => "expected numbers separated by commas",
        Kind::Switch => "neither true nor false",
    }
}

fn insert_at_path(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            table.insert(path.to_owned(), value);
        }
        Some((section, key)) => {
            let section = table
                .entry(section)
                .or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(section) = section {
                section.insert(key.to_owned(), value);
            }
        }
    }
}
