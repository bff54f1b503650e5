//! All settings. In descending priority, a setting comes from a flag, an environment variable, the
//! settings file, or its default. The settings of each part are a struct beside the code that they
//! configure.

pub mod limits;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use webfill_api::nearest;
use webfill_dispatcher::{ApplicationLimits, DispatcherConfig, RestTable, RetryTable};
use webfill_startup::Fault;
use webfill_startup::log::LogConfig;
use webfill_store::StoreUri;
use webfill_supervisor::SupervisorConfig;
use webfill_wire::Lane;
use webfill_worker::{BrowserConfig, FetchConfig, PolitenessConfig, WorkerConfig};

/// The content of `webfill.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where records, pages and crawls are kept.
    pub store: String,
    /// Where robots.txt files and site clocks are kept; the store if left out.
    pub cache: Option<String>,
    /// The folder of the dispatcher's files, sockets and logs.
    pub state: PathBuf,
    /// The folder of mapping files.
    pub mappings: PathBuf,
    /// The folder of keys; without it, webfill only communicates within this machine.
    pub keys: Option<PathBuf>,
    pub dispatcher: DispatcherConfig,
    pub supervisor: SupervisorConfig,
    pub worker: WorkerConfig,
    pub politeness: PolitenessConfig,
    pub fetch: FetchConfig,
    /// The settings of the lane `browser`.
    pub browser: BrowserConfig,
    /// Which failed tasks are retried, and when.
    pub retries: RetryTable,
    /// For how long sites in trouble rest.
    pub rests: RestTable,
    /// The limits of applications, by name; they can only be set in the file.
    pub applications: BTreeMap<String, ApplicationLimits>,
    pub log: LogConfig,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            store: "sqlite:webfill.db".into(),
            cache: None,
            state: ".webfill".into(),
            mappings: "etl-mappings".into(),
            keys: None,
            dispatcher: DispatcherConfig::default(),
            supervisor: SupervisorConfig::default(),
            worker: WorkerConfig::default(),
            politeness: PolitenessConfig::default(),
            fetch: FetchConfig::default(),
            browser: BrowserConfig::default(),
            retries: RetryTable::default(),
            rests: RestTable::default(),
            applications: BTreeMap::new(),
            log: LogConfig::default(),
        }
    }
}

/// The type of a setting, for reading it from an environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Whole,
    Number,
    Switch,
    /// Separated by commas.
    List,
    Numbers,
}

/// Every setting, by its path in the file. Its environment variable is `WEBFILL_` and the path in
/// capitals.
const SETTINGS: &[(&str, Kind)] = &[
    ("store", Kind::Text),
    ("cache", Kind::Text),
    ("state", Kind::Text),
    ("mappings", Kind::Text),
    ("keys", Kind::Text),
    ("dispatcher.listen", Kind::Text),
    ("dispatcher.port", Kind::Whole),
    ("dispatcher.http", Kind::Text),
    ("dispatcher.window_sites", Kind::Whole),
    ("dispatcher.seen_memory_mib", Kind::Whole),
    ("dispatcher.lease", Kind::Number),
    ("dispatcher.exclude_sites", Kind::Text),
    ("supervisor.dispatcher", Kind::Text),
    ("supervisor.id", Kind::Text),
    ("supervisor.lane", Kind::Text),
    ("supervisor.workers", Kind::Whole),
    ("supervisor.queue", Kind::Whole),
    ("supervisor.queue_url_bytes", Kind::Whole),
    ("worker.concurrency", Kind::Whole),
    ("worker.page_deadline", Kind::Number),
    ("politeness.delay", Kind::Number),
    ("politeness.max_delay", Kind::Number),
    ("politeness.contact", Kind::Text),
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
    ("browser.command", Kind::Text),
    ("browser.sandbox", Kind::Switch),
    ("browser.tabs", Kind::Whole),
    ("browser.settle", Kind::Number),
    ("browser.page_deadline", Kind::Number),
    ("browser.max_requests", Kind::Whole),
    ("browser.memory_mib", Kind::Whole),
    ("browser.pages", Kind::Whole),
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
    ("log.level", Kind::Text),
    ("log.keep", Kind::Whole),
];

const PREFIX: &str = "WEBFILL_";

/// An unknown name is answered with a known one that is at most this many edits away.
const MAX_SLIPS: usize = 3;

/// Environment variables that correspond to a flag, not to a setting.
const OF_FLAGS: [&str; 1] = ["RECORDS"];

impl Settings {
    /// Reads the file, if there is one, and the environment.
    pub fn load(file: Option<&Path>) -> Result<Settings, Fault> {
        let mut table = match file {
            Some(path) => read_file(path)?,
            None => Table::new(),
        };
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        overlay(&mut table, variables)?;
        let place = file.map_or("the environment".into(), |path| path.display().to_string());
        Settings::from_table(table, &place)
    }

    /// Reads the file that a parent process wrote. It contains the environment and the flags already,
    /// so the environment is not read again: it would override the flags.
    pub fn written(file: &Path) -> Result<Settings, Fault> {
        let table = read_file(file)?;
        Settings::from_table(table, &file.display().to_string())
    }

    fn from_table(table: Table, place: &str) -> Result<Settings, Fault> {
        table.clone().try_into().map_err(|error| {
            let reason = misspelt_key(&table).unwrap_or_else(|| one_line(&error));
            Fault::usage(format!("{place}: {reason}"))
        })
    }

    /// Writes the settings for child processes. Only the owner may read the file, because it may
    /// contain passwords of a proxy or a store.
    pub fn write(&self, path: &Path) -> Result<(), Fault> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let text = toml::to_string(self)
            .map_err(|error| Fault::error(format!("cannot write the settings: {error}")))?;
        std::fs::OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::StorageFull => Fault::fatal(format!(
                    "no space left for {}: free some and run the same command again",
                    path.display()
                )),
                _ => Fault::usage(format!("cannot write {}: {error}", path.display())),
            })
    }

    /// Checks everything that can be checked before anything is opened.
    pub fn validate(&self) -> Result<(), Fault> {
        self.store_uri()?;
        self.cache_uri()?;
        limits::check(self)?;
        webfill_worker::check_fetch(&self.fetch, &self.politeness)?;
        if self.has_browsers() {
            webfill_worker::check_browser(&self.browser).map_err(Fault::usage)?;
        }
        Ok(())
    }

    pub fn store_uri(&self) -> Result<StoreUri, Fault> {
        self.store.parse().map_err(Fault::usage)
    }

    pub fn cache_uri(&self) -> Result<Option<StoreUri>, Fault> {
        let cache = self.cache.as_deref();
        cache
            .map(|uri| uri.parse().map_err(Fault::usage))
            .transpose()
    }

    /// The number of worker processes: as set, or one per core; with browsers only one, because a
    /// browser keeps all cores busy.
    pub fn workers(&self) -> u16 {
        match self.supervisor.workers {
            0 if self.has_browsers() => 1,
            0 => {
                std::thread::available_parallelism().map_or(1, |cores| cores.get().min(999) as u16)
            }
            workers => workers,
        }
    }

    /// Whether pages are rendered in browsers.
    pub fn has_browsers(&self) -> bool {
        self.supervisor.lane == Lane::Browser
    }

    /// The most pages that the workers process at the same time.
    pub fn in_flight(&self) -> u32 {
        let per_worker = match self.has_browsers() {
            true => self.browser.tabs,
            false => self.worker.concurrency,
        };
        u32::from(self.workers()).saturating_mul(u32::try_from(per_worker).unwrap_or(u32::MAX))
    }

    pub fn log_folder(&self) -> PathBuf {
        self.state.join("logs")
    }
}

fn read_file(path: &Path) -> Result<Table, Fault> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Fault::usage(format!("cannot read {}: {error}", path.display())))?;
    text.parse().map_err(|error: toml::de::Error| {
        // The error's `Display` repeats the line, which may contain a password.
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = 1 + before.unwrap_or_default().matches('\n').count();
        let reason = error.message().lines().collect::<Vec<_>>().join(" ");
        Fault::usage(format!("{}: line {line}: {reason}", path.display()))
    })
}

fn one_line(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('|'));
    lines.collect::<Vec<_>>().join(" ")
}

/// Overrides the file's settings with environment variables.
fn overlay(
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

/// Names the key that a misspelt one of the file stands for, if one is near.
fn misspelt_key(table: &Table) -> Option<String> {
    for (name, value) in table {
        let within = format!("{name}.");
        let is_section = SETTINGS.iter().any(|(path, _)| path.starts_with(&within));
        let keys: Vec<String> = match value {
            Value::Table(section) if is_section => {
                section.keys().map(|key| format!("{within}{key}")).collect()
            }
            _ => vec![name.clone()],
        };
        for key in keys {
            if let Some(nearest) = nearest_unless_known(&key, known_keys().into_iter()) {
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

/// A longer name may have more slips and still be recognised.
fn nearest_unless_known<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let key = name.rsplit('.').next().unwrap_or(name);
    let slips = (key.len() / 3).clamp(1, MAX_SLIPS);
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

fn variable_of(path: &str) -> String {
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
        Kind::Text | Kind::List => "not text",
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<Table, Fault> {
        let mut table = Table::new();
        let owned = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        overlay(&mut table, owned).map(|()| table)
    }

    #[test]
    fn every_setting_has_its_variable() {
        let written = toml::to_string(&Settings::default()).unwrap();
        let table: Table = written.parse().unwrap();
        for (name, value) in &table {
            let paths: Vec<String> = match value {
                Value::Table(section) => {
                    section.keys().map(|key| format!("{name}.{key}")).collect()
                }
                _ => vec![name.clone()],
            };
            for path in paths {
                assert!(
                    SETTINGS.iter().any(|(known, _)| *known == path),
                    "{path} is not listed"
                );
            }
        }
        for (path, kind) in SETTINGS {
            let example = match (*path, kind) {
                ("politeness.clock", _) => "shared",
                ("supervisor.lane", _) => "browser",
                (_, Kind::Text | Kind::List) => "x",
                (_, Kind::Whole | Kind::Number | Kind::Numbers) => "7",
                (_, Kind::Switch) => "true",
            };
            let table = with(&[(&format!("{PREFIX}{}", variable_of(path)), example)]).unwrap();
            let read: Result<Settings, _> = table.try_into();
            assert!(read.is_ok(), "{path}: {read:?}");
        }
    }

    #[test]
    fn variables_win_over_the_file() {
        let mut table: Table = "[politeness]\ndelay = 3.0".parse().unwrap();
        let variable = ("WEBFILL_POLITENESS_DELAY".to_owned(), "0.5".to_owned());
        overlay(&mut table, std::iter::once(variable)).unwrap();
        let settings: Settings = table.try_into().unwrap();
        assert_eq!(settings.politeness.delay, 0.5);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused_by_line_and_shows_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("webfill.toml");
        for wrong in [
            "proxy = http://me:hidden@proxy",
            "proxy = \"http://me:hidden@proxy",
            "proxy \"http://me:hidden@proxy\"",
        ] {
            std::fs::write(&file, format!("state = \"s\"\n[fetch]\n{wrong}\n")).unwrap();
            let refusal = read_file(&file).unwrap_err().message;
            assert!(refusal.contains("webfill.toml: line 3: "), "{refusal}");
            assert!(!refusal.contains("hidden"), "{refusal}");
        }
    }

    #[test]
    fn an_unknown_variable_is_answered_with_the_setting_that_was_meant() {
        let message = |name: &str| with(&[(name, "1")]).unwrap_err().message;
        assert_eq!(
            message("WEBFILL_POLITNESS_DELAY"),
            "WEBFILL_POLITNESS_DELAY: no setting has this variable, did you mean WEBFILL_POLITENESS_DELAY?"
        );
        assert_eq!(
            message("WEBFILL_RECORD"),
            "WEBFILL_RECORD: no setting has this variable, did you mean WEBFILL_RECORDS?"
        );
        assert_eq!(
            message("WEBFILL_COLOUR"),
            "WEBFILL_COLOUR: no setting has this variable"
        );
    }

    #[test]
    fn an_unknown_key_of_the_file_is_answered_with_the_key_that_was_meant() {
        let message = |text: &str| {
            let table: Table = text.parse().unwrap();
            Settings::from_table(table, "webfill.toml")
                .unwrap_err()
                .message
        };
        assert_eq!(
            message("[politeness]\ndelai = 1.0"),
            "webfill.toml: politeness.delai: unknown key, did you mean politeness.delay?"
        );
        assert_eq!(
            message("[politness]\ndelay = 1.0"),
            "webfill.toml: politness: unknown key, did you mean politeness?"
        );
        let far = message("[politeness]\ncolour = \"red\"");
        assert!(far.contains("colour") && far.contains("max_delay"), "{far}");
        let wrong_type = message("[politeness]\ndelay = \"long\"");
        assert!(wrong_type.contains("\"long\""), "{wrong_type}");
    }

    #[test]
    fn unknown_names_and_wrong_values_are_refused() {
        assert!(with(&[("WEBFILL_POLITENESS_DELY", "1")]).is_err());
        let wrong = with(&[("WEBFILL_WORKER_CONCURRENCY", "many")]).unwrap_err();
        assert!(wrong.message.contains("many") && wrong.message.contains("whole number"));
        assert!(
            "polite = 1"
                .parse::<Table>()
                .unwrap()
                .try_into::<Settings>()
                .is_err()
        );
    }
}
