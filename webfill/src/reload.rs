//! Reloads a dispatcher's mappings and settings. The settings are read with the same flags as at the start. This module
//! decides which of them may change.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use toml::{Table, Value};
use webfill_dispatcher::ReadAgain;
use webfill_scheduler::excluded_sites::ExcludedSites;
use webfill_scheduler::reload::Reloaded;
use webfill_service::Fault;
use webfill_worker::MappingSetRules;

use crate::cli::DispatcherOptions;
use crate::mapping_files::load_mappings;
use crate::roles;
use crate::settings::Settings;

/// The settings that a reload can change. An entry is a single setting or a whole section.
const CHANGEABLE: [&str; 4] = [
    "mappings",
    "dispatcher.exclude_sites",
    "retries.",
    "backoff.",
];

/// Returns a function that reads the settings and mappings of a running dispatcher again. `in_force` are the present
/// settings; `has_mappings` is whether the dispatcher has any mappings.
pub fn reloader(
    options: DispatcherOptions,
    mut in_force: Settings,
    mut has_mappings: bool,
) -> ReadAgain {
    let mut hashes = file_hashes(&in_force);
    Box::new(move || {
        let settings = roles::dispatcher_settings(&options)?;
        let mappings = load_mappings(&settings.mappings)?;
        if has_mappings && mappings.is_empty() {
            // Refuse an empty folder: somebody is more likely replacing its files than removing all mappings.
            return Err(Fault::usage(format!(
                "{}: no mappings left; if this is intended, restart the dispatcher",
                settings.mappings.display()
            )));
        }
        let excluded = match &settings.dispatcher.exclude_sites {
            Some(list) => ExcludedSites::load(list).map_err(Fault::usage)?,
            None => ExcludedSites::default(),
        };
        // Read the certificates and tokens from the files that were named at the start. New names need a restart,
        // because other files might not protect the open listeners.
        let protection = in_force.dispatcher.http_files().map_err(Fault::usage)?;
        let protection = protection.read()?;
        let differing = differing_settings(&in_force, &settings)?;
        let (mut changed, needs_restart): (Vec<String>, Vec<String>) =
            differing.into_iter().partition(|name| is_changeable(name));
        in_force.mappings.clone_from(&settings.mappings);
        let excluded_list = &settings.dispatcher.exclude_sites;
        in_force.dispatcher.exclude_sites.clone_from(excluded_list);
        in_force.retries = settings.retries.clone();
        in_force.backoff = settings.backoff.clone();
        has_mappings = !mappings.is_empty();
        let before = std::mem::replace(&mut hashes, file_hashes(&in_force));
        let others = hashes.iter().filter(|(name, content)| {
            before.get(*name) != Some(*content) && !changed.contains(*name)
        });
        let others: Vec<String> = others.map(|(name, _)| name.clone()).collect();
        changed.extend(others);
        Ok(Reloaded {
            mappings: roles::to_distributed_mappings(&mappings),
            mapping_rules: Arc::new(MappingSetRules(Arc::new(mappings))),
            retries: settings.retries,
            backoff: settings.backoff,
            excluded,
            protection,
            changed,
            needs_restart,
        })
    })
}

fn is_changeable(name: &str) -> bool {
    CHANGEABLE.iter().any(|one| match one.ends_with('.') {
        true => name.starts_with(one),
        false => name == *one,
    })
}

/// A hash of the content of each file that a setting names. Mapping files are left out, because they have their own
/// versions. An unreadable file has no hash; the code that uses it reports the fault.
fn file_hashes(settings: &Settings) -> BTreeMap<String, Option<u64>> {
    let config = &settings.dispatcher;
    let excluded = config.exclude_sites.as_deref().map(ExcludedSites::path_of);
    let files = [
        ("exclude_sites", excluded),
        ("http_certificate", config.http_certificate.as_deref()),
        ("http_key", config.http_key.as_deref()),
        ("http_tokens", config.http_tokens.as_deref()),
    ];
    let content = |(name, file): (&str, Option<&Path>)| {
        let hash = hash_file(file?).ok();
        Some((format!("dispatcher.{name}"), hash))
    };
    files.into_iter().filter_map(content).collect()
}

fn hash_file(file: &Path) -> io::Result<u64> {
    let mut reader = BufReader::new(File::open(file)?);
    let mut hasher = DefaultHasher::new();
    loop {
        let read = reader.fill_buf()?;
        if read.is_empty() {
            return Ok(hasher.finish());
        }
        hasher.write(read);
        let read = read.len();
        reader.consume(read);
    }
}

/// The names of the settings whose values differ.
fn differing_settings(before: &Settings, now: &Settings) -> Result<Vec<String>, Fault> {
    let (before, now) = (settings_by_name(before)?, settings_by_name(now)?);
    let names = before
        .keys()
        .chain(now.keys().filter(|name| !before.contains_key(*name)));
    let differing = names.filter(|name| before.get(*name) != now.get(*name));
    Ok(differing.cloned().collect())
}

/// All settings, by their full names.
fn settings_by_name(settings: &Settings) -> Result<BTreeMap<String, Value>, Fault> {
    let table = Table::try_from(settings)
        .map_err(|error| Fault::error(format!("cannot compare the settings: {error}")))?;
    let mut values = BTreeMap::new();
    flatten_table("", table, &mut values);
    Ok(values)
}

fn flatten_table(above: &str, table: Table, values: &mut BTreeMap<String, Value>) {
    for (key, value) in table {
        let name = format!("{above}{key}");
        match value {
            Value::Table(table) => flatten_table(&format!("{name}."), table, values),
            value => drop(values.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_settings_and_those_that_need_a_restart_are_named() {
        let before = Settings::default();
        let mut now = before.clone();
        now.mappings = "others".into();
        now.dispatcher.exclude_sites = Some("list".into());
        now.dispatcher.port = 1;
        let found = differing_settings(&before, &now).unwrap();
        let (changed, others): (Vec<String>, Vec<String>) =
            found.into_iter().partition(|name| is_changeable(name));
        assert_eq!(changed, ["mappings", "dispatcher.exclude_sites"]);
        assert_eq!(others, ["dispatcher.port"]);
        assert!(is_changeable("backoff.busy") && !is_changeable("retriesx"));
    }
}
