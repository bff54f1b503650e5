//! All settings. A flag overrides an environment variable, which overrides the settings file, which overrides the
//! default. The settings of each part are a struct beside the code that they configure.

mod file;
pub mod limits;
mod names;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Table;
use webfill_dispatcher::DispatcherConfig;
use webfill_notifications::NotificationsConfig;
use webfill_scheduler::{ApplicationLimits, BackoffTable, RetryTable, WatchSources, WatchesConfig};
use webfill_service::Fault;
use webfill_service::disk::{DiskConfig, is_full};
use webfill_service::log::LogConfig;
use webfill_service::metrics::{MetricsConfig, ProbesConfig};
use webfill_store::{BodiesConfig, DatasetName, RetentionConfig, StoreUri};
use webfill_supervisor::SupervisorConfig;
use webfill_wire::Lane;
use webfill_worker::{
    ArchiveConfig, BrowserConfig, BrowserUse, DocumentsConfig, FetchConfig, PolitenessConfig,
    WorkerConfig,
};

use self::file::SettingsFile;
use self::names::{apply_variables, suggest_key};
pub use self::table::{SECTIONS, SETTINGS, Section, Setting};
use crate::seeds::ListSeparator;

/// The content of `webfill.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where records, pages and crawls are kept.
    pub store: String,
    /// Where robots.txt files and site clocks are kept. By default this is the store.
    pub cache: Option<String>,
    /// The dataset that the records of `webfill crawl` belong to. By default it has the name of the records' source.
    pub dataset: Option<String>,
    /// The separator between list entries in a cell of a seeds file. By default, each cell is one text.
    pub list_separator: Option<String>,
    /// The folder of the dispatcher's files, sockets and logs.
    pub state: PathBuf,
    /// The folder of mapping files.
    pub mappings: PathBuf,
    /// The folder of keys; without it, webfill only communicates within this machine.
    pub keys: Option<PathBuf>,
    pub dispatcher: DispatcherConfig,
    /// The sources that watches of a fleet may read.
    pub watches: WatchesConfig,
    /// How notifications of watches are sent, and which resources of this machine they may use.
    pub notifications: NotificationsConfig,
    /// Where metrics are served to Prometheus.
    pub metrics: MetricsConfig,
    /// Where probes are answered.
    pub probes: ProbesConfig,
    pub supervisor: SupervisorConfig,
    pub worker: WorkerConfig,
    pub politeness: PolitenessConfig,
    pub fetch: FetchConfig,
    /// Whether and where fetches are archived.
    pub archive: ArchiveConfig,
    /// Whether documents (PDF, ...) are read.
    pub documents: DocumentsConfig,
    /// The limits for keeping the bodies of pages, in crawls that keep them.
    pub bodies: BodiesConfig,
    /// The browser, and which pages need it.
    pub browser: BrowserConfig,
    /// Which failed tasks are retried, and when.
    pub retries: RetryTable,
    /// How long failing sites back off.
    pub backoff: BackoffTable,
    /// The limits of applications, by name; they can only be set in the file.
    pub applications: BTreeMap<String, ApplicationLimits>,
    /// How long pages are kept.
    pub retention: RetentionConfig,
    pub disk: DiskConfig,
    pub log: LogConfig,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            store: "sqlite:webfill.db".into(),
            cache: None,
            dataset: None,
            list_separator: None,
            state: ".webfill".into(),
            mappings: "etl-mappings".into(),
            keys: None,
            dispatcher: DispatcherConfig::default(),
            watches: WatchesConfig::default(),
            notifications: NotificationsConfig::default(),
            metrics: MetricsConfig::default(),
            probes: ProbesConfig::default(),
            supervisor: SupervisorConfig::default(),
            worker: WorkerConfig::default(),
            politeness: PolitenessConfig::default(),
            fetch: FetchConfig::default(),
            archive: ArchiveConfig::default(),
            documents: DocumentsConfig::default(),
            bodies: BodiesConfig::default(),
            browser: BrowserConfig::default(),
            retries: RetryTable::default(),
            backoff: BackoffTable::default(),
            applications: BTreeMap::new(),
            retention: RetentionConfig::default(),
            disk: DiskConfig::default(),
            log: LogConfig::default(),
        }
    }
}

impl Settings {
    /// Loads the settings from the file, if there is one, and from the environment.
    pub fn load(file: Option<&Path>) -> Result<Settings, Fault> {
        let file = file.map(SettingsFile::read).transpose()?;
        let mut table = match &file {
            Some(file) => file.parse_table()?,
            None => Table::new(),
        };
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        apply_variables(&mut table, variables)?;
        Settings::from_table(table, |fault| match &file {
            Some(file) => file.place_of_fault(fault),
            None => "the environment".into(),
        })
    }

    /// Reads a file that a parent process wrote. It already includes the environment and the flags. The environment is
    /// not read again, because it would override the flags.
    pub fn load_written(file: &Path) -> Result<Settings, Fault> {
        let table = SettingsFile::read(file)?.parse_table()?;
        Settings::from_table(table, |_| file.display().to_string())
    }

    fn from_table(
        table: Table,
        place_of: impl FnOnce(&toml::de::Error) -> String,
    ) -> Result<Settings, Fault> {
        table.clone().try_into().map_err(|error| {
            let reason = suggest_key(&table, &error).unwrap_or_else(|| one_line(&error));
            Fault::usage(format!("{}: {reason}", place_of(&error)))
        })
    }

    /// The files and stores that watches may read on this machine.
    pub fn watch_sources(&self) -> Result<WatchSources, Fault> {
        Ok(WatchSources::new(&self.watches, &self.store_uri()?))
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
            .mode(webfill_service::state::PRIVATE)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| match is_full(&error) {
                true => Fault::unwritable(path, &error),
                false => Fault::usage(format!("cannot write {}: {error}", path.display())),
            })
    }

    /// Refuses a crawl without `--contact`, unless private networks are allowed. Without either, no address may be
    /// fetched.
    pub fn require_contact(&self) -> Result<(), Fault> {
        if self.politeness.contact.is_some() || self.politeness.allow_private_networks {
            return Ok(());
        }
        Err(Fault::usage(
            "--contact URL is missing: give the URL of a page that explains your crawl to webmasters; deploy/crawler-page.html is a template (a site on this machine or network needs only --allow-private-networks)",
        ))
    }

    /// Checks everything that can be checked before anything is opened.
    pub fn validate(&self) -> Result<(), Fault> {
        self.store_uri()?;
        self.cache_uri()?;
        self.dataset()?;
        self.list_separator()?;
        limits::check(self)?;
        webfill_worker::check_fetch(&self.fetch, &self.politeness)?;
        webfill_worker::check_archive(&self.archive)?;
        webfill_worker::check_documents(&self.documents)?;
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

    pub fn dataset(&self) -> Result<Option<DatasetName>, Fault> {
        let dataset = self.dataset.as_deref().map(str::parse).transpose();
        dataset.map_err(|refusal| Fault::usage(format!("dataset: {refusal}")))
    }

    pub fn list_separator(&self) -> Result<Option<ListSeparator>, Fault> {
        let separator = self.list_separator.as_deref().map(str::parse).transpose();
        separator.map_err(|refusal| Fault::usage(format!("list_separator: {refusal}")))
    }

    /// The number of worker processes: the configured number, or one per core. The default in the lane `browser` is
    /// one, because a browser keeps all cores busy.
    pub fn workers(&self) -> u16 {
        match self.supervisor.workers {
            0 if self.has_browsers() => 1,
            0 => {
                std::thread::available_parallelism().map_or(1, |cores| cores.get().min(999) as u16)
            }
            workers => workers,
        }
    }

    /// Which pages a worker renders in a browser. A worker of `webfill crawl` has a browser ready if this machine has
    /// one.
    pub fn browser_use(&self, is_local: bool) -> BrowserUse {
        match self.has_browsers() {
            true => BrowserUse::Lane,
            false if is_local && webfill_worker::check_browser(&self.browser).is_ok() => {
                BrowserUse::AtHand
            }
            false => BrowserUse::None,
        }
    }

    /// Whether pages are rendered in browsers.
    pub fn has_browsers(&self) -> bool {
        self.supervisor.lane == Lane::Browser
    }

    /// The most pages that the workers process at a time.
    pub fn max_pages_in_flight(&self) -> u32 {
        let per_worker = match self.has_browsers() {
            true => self.browser.tabs,
            false => self.worker.concurrency,
        };
        u32::from(self.workers()).saturating_mul(u32::try_from(per_worker).unwrap_or(u32::MAX))
    }

    /// The folders whose disks must have free space. Logs do not count: without space, log lines are dropped.
    pub fn written_folders(&self) -> Result<Vec<PathBuf>, Fault> {
        let mut folders = vec![self.state.clone()];
        for uri in [Some(self.store_uri()?), self.cache_uri()?]
            .into_iter()
            .flatten()
        {
            if let StoreUri::Sqlite(file) = uri {
                let folder = file
                    .parent()
                    .filter(|folder| !folder.as_os_str().is_empty());
                folders.push(folder.map_or_else(|| PathBuf::from("."), PathBuf::from));
            }
        }
        folders.extend(self.archive.warc.clone());
        folders.extend(self.documents.keep.clone());
        Ok(folders)
    }

    pub fn log_folder(&self) -> PathBuf {
        let folder = self.log.folder.clone();
        folder.unwrap_or_else(|| self.state.join("logs"))
    }
}

fn one_line(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('|'));
    lines.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
