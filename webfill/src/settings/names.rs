//! The names of all settings: their keys in the file and their environment variables, how the text of
//! a variable is read, and which name a misspelt one stands for.

use std::collections::BTreeSet;

use toml::{Table, Value};
use webfill_api::nearest;
use webfill_service::Fault;

/// The type of a setting, for reading it from an environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Whole,
    Number,
    Switch,
    /// Separated by commas.
    List,
    /// One per line: they may hold commas.
    Lines,
    Numbers,
}

/// Every setting, by its path in the file. Its environment variable is `WEBFILL_` and the path in
/// capitals.
pub(super) const SETTINGS: &[(&str, Kind)] = &[
    ("store", Kind::Text),
    ("cache", Kind::Text),
    ("dataset", Kind::Text),
    ("list_separator", Kind::Text),
    ("state", Kind::Text),
    ("mappings", Kind::Text),
    ("keys", Kind::Text),
    ("dispatcher.listen", Kind::Text),
    ("dispatcher.port", Kind::Whole),
    ("dispatcher.http", Kind::Text),
    ("dispatcher.http_certificate", Kind::Text),
    ("dispatcher.http_key", Kind::Text),
    ("dispatcher.http_tokens", Kind::Text),
    ("dispatcher.window_sites", Kind::Whole),
    ("dispatcher.seen_memory_mib", Kind::Whole),
    ("dispatcher.lease", Kind::Number),
    ("dispatcher.exclude_sites", Kind::Text),
    ("dispatcher.restored", Kind::Switch),
    ("dispatcher.patience", Kind::Number),
    ("dispatcher.drop_parameters", Kind::List),
    ("watches.seeds_dir", Kind::Text),
    ("watches.records", Kind::List),
    ("notices.smtp", Kind::Text),
    ("notices.smtp_user", Kind::Text),
    ("notices.smtp_password_file", Kind::Text),
    ("notices.mail_from", Kind::Text),
    ("notices.mail_to", Kind::List),
    ("notices.commands", Kind::List),
    ("notices.files_dir", Kind::Text),
    ("notices.secrets_dir", Kind::Text),
    ("notices.allow_private_webhooks", Kind::Switch),
    ("notices.ca_file", Kind::Text),
    ("notices.undelivered_after", Kind::Number),
    ("metrics.dispatcher", Kind::Text),
    ("metrics.supervisor", Kind::Text),
    ("metrics.allow_network", Kind::Switch),
    ("probes.dispatcher", Kind::Text),
    ("probes.supervisor", Kind::Text),
    ("probes.allow_network", Kind::Switch),
    ("supervisor.dispatcher", Kind::Text),
    ("supervisor.id", Kind::Text),
    ("supervisor.lane", Kind::Text),
    ("supervisor.workers", Kind::Whole),
    ("supervisor.queue", Kind::Whole),
    ("supervisor.queue_url_bytes", Kind::Whole),
    ("worker.concurrency", Kind::Whole),
    ("worker.memory_mib", Kind::Whole),
    ("worker.page_deadline", Kind::Number),
    ("politeness.delay", Kind::Number),
    ("politeness.max_delay", Kind::Number),
    ("politeness.address_delay", Kind::Number),
    ("politeness.address_in_flight", Kind::Whole),
    ("politeness.contact", Kind::Text),
    ("politeness.useragent_replaces_name", Kind::Switch),
    ("politeness.ignore_robots", Kind::Switch),
    ("politeness.allow_private_networks", Kind::Switch),
    ("politeness.adaptive", Kind::Switch),
    ("politeness.clock", Kind::Text),
    ("fetch.lookup_timeout", Kind::Number),
    ("fetch.connect_timeout", Kind::Number),
    ("fetch.head_timeout", Kind::Number),
    ("fetch.body_timeout", Kind::Number),
    ("fetch.total_timeout", Kind::Number),
    ("fetch.max_body_bytes", Kind::Whole),
    ("fetch.proxy", Kind::Text),
    ("fetch.resolve", Kind::List),
    ("fetch.ca_file", Kind::Text),
    ("fetch.headers", Kind::Lines),
    ("archive.warc", Kind::Text),
    ("archive.warc_mib", Kind::Whole),
    ("documents.read", Kind::Switch),
    ("documents.keep", Kind::Text),
    ("documents.readers", Kind::Whole),
    ("documents.deadline", Kind::Number),
    ("documents.memory_mib", Kind::Whole),
    ("bodies.max_mib", Kind::Whole),
    ("bodies.max_body_mib", Kind::Whole),
    ("browser.command", Kind::Text),
    ("browser.sandbox", Kind::Switch),
    ("browser.tabs", Kind::Whole),
    ("browser.settle", Kind::Number),
    ("browser.page_deadline", Kind::Number),
    ("browser.max_requests", Kind::Whole),
    ("browser.memory_mib", Kind::Whole),
    ("browser.pages", Kind::Whole),
    ("browser.auto", Kind::Switch),
    ("browser.sites", Kind::List),
    ("browser.not_sites", Kind::List),
    ("retries.timeout", Kind::Numbers),
    ("retries.network_error", Kind::Numbers),
    ("retries.dns_error", Kind::Numbers),
    ("retries.tls_error", Kind::Numbers),
    ("retries.robots_unreachable", Kind::Numbers),
    ("retries.http_429", Kind::Numbers),
    ("retries.http_500", Kind::Numbers),
    ("retries.http_502", Kind::Numbers),
    ("retries.http_503", Kind::Numbers),
    ("retries.http_504", Kind::Numbers),
    ("rests.robots", Kind::Numbers),
    ("rests.unreachable", Kind::Numbers),
    ("rests.dns", Kind::Numbers),
    ("rests.busy", Kind::Numbers),
    ("rests.blocked", Kind::Numbers),
    ("retention.pages_days", Kind::Whole),
    ("retention.log_days", Kind::Whole),
    ("retention.samples_mib", Kind::Whole),
    ("disk.floor_mib", Kind::Whole),
    ("log.folder", Kind::Text),
    ("log.level", Kind::Text),
    ("log.keep", Kind::Whole),
    ("log.max_mib", Kind::Whole),
    ("log.audit_keep", Kind::Whole),
];

pub(super) const PREFIX: &str = "WEBFILL_";

/// An unknown name is answered with a known one that is at most this many edits away.
const MAX_SLIPS: usize = 3;

/// Environment variables that correspond to a flag, not to a setting.
const OF_FLAGS: [&str; 1] = ["RECORDS"];

/// Overrides the file's settings with environment variables.
pub(super) fn overlay(
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
        let known = SETTINGS.iter().find(|(path, _)| variable_of(path) == name);
        let Some((path, kind)) = known else {
            return Err(unknown_variable(&variable, name));
        };
        let value = value_of(&text, *kind)
            .ok_or_else(|| Fault::usage(format!("{variable}={text}: {}", expected(*kind))))?;
        put(table, path, value);
    }
    Ok(())
}

/// Names the key that a misspelt one of the file stands for, if that is the fault and one is near.
pub(super) fn misspelt_key(table: &Table, fault: &toml::de::Error) -> Option<String> {
    let unknown = fault.message().strip_prefix("unknown field `")?;
    let unknown = unknown.split('`').next()?;
    for (name, value) in table {
        let within = format!("{name}.");
        let is_section = SETTINGS.iter().any(|(path, _)| path.starts_with(&within));
        let keys: Vec<String> = match value {
            Value::Table(section) if is_section => {
                section.keys().map(|key| format!("{within}{key}")).collect()
            }
            _ => vec![name.clone()],
        };
        for key in keys.iter().filter(|key| last_of(key) == unknown) {
            if let Some(nearest) = nearest_unless_known(key, known_keys().into_iter()) {
                return Some(format!("{key}: unknown key, did you mean {nearest}?"));
            }
        }
    }
    None
}

/// Every key of the file: the settings by their paths, and the names of the sections.
fn known_keys() -> BTreeSet<&'static str> {
    let paths = SETTINGS.iter().map(|(path, _)| *path);
    let sections = paths.clone().filter_map(|path| path.split_once('.'));
    let sections = sections.map(|(section, _)| section);
    paths.chain(sections).chain(["applications"]).collect()
}

fn last_of(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// A longer name may have more slips and still be recognised.
fn nearest_unless_known<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let slips = (last_of(name).len() / 3).clamp(1, MAX_SLIPS);
    nearest(name, known, slips).filter(|nearest| *nearest != name)
}

/// Names the variable that a misspelt one stands for, if one is near.
fn unknown_variable(variable: &str, name: &str) -> Fault {
    let known: Vec<String> = SETTINGS.iter().map(|(path, _)| variable_of(path)).collect();
    let flags = OF_FLAGS.into_iter();
    let known = known.iter().map(String::as_str).chain(flags);
    let hint = nearest_unless_known(name, known)
        .map(|nearest| format!(", did you mean {PREFIX}{nearest}?"))
        .unwrap_or_default();
    Fault::usage(format!("{variable}: no setting has this variable{hint}"))
}

pub(super) fn variable_of(path: &str) -> String {
    path.replace('.', "_").to_uppercase()
}

fn value_of(text: &str, kind: Kind) -> Option<Value> {
    Some(match kind {
        Kind::Text => Value::String(text.to_owned()),
        Kind::Whole => Value::Integer(text.parse().ok()?),
        Kind::Number => Value::Float(text.parse().ok()?),
        Kind::Switch => Value::Boolean(text.parse().ok()?),
        Kind::Numbers => {
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

fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::List | Kind::Lines => "not text",
        Kind::Whole => "not a whole number",
        Kind::Number => "not a number",
        Kind::Numbers => "not numbers with commas between them",
        Kind::Switch => "neither true nor false",
    }
}

fn put(table: &mut Table, path: &str, value: Value) {
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
