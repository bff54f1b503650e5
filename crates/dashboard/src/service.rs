//! The state of the dashboard, shared by all requests.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::Environment;
use tokio::sync::Semaphore;
use webfill_service::Fault;
use webfill_service::http::body::MOST_LARGE;
use webfill_service::http::{SharedProtection, WrongTokens};
use webfill_store::StoreUri;
use webfill_wire::RefusalLog;

use crate::assets::Assets;
use crate::editor::Editor;
use crate::editor::host::Host;
use crate::extractions::Extractions;
use crate::filler::Filler;
use crate::fleet::Fleet;
use crate::grid::building::remove_incomplete_indexes;
use crate::grid::jobs::Jobs;
use crate::guard::Guard;
use crate::health_log::HealthLog;
use crate::history::{Counters, History};
use crate::mapping_files::MappingFiles;
use crate::messages::Messages;
use crate::project_stores::ProjectStores;
use crate::secrets::new_secret;
use crate::sessions::Sessions;
use crate::site_log::SiteLog;
use crate::snapshot::Snapshots;
use crate::store_access::StoreAccess;
use crate::tables::Tables;
use crate::templates;

/// How many listeners may follow live pages at a time.
const MOST_LISTENERS: usize = 24;

/// How many downloads may run at a time.
const MOST_DOWNLOADS: usize = 4;

/// Settings and services that a dashboard is created with.
#[derive(Debug, Clone, Default)]
pub struct DashboardSetup {
    pub store: Option<StoreUri>,
    /// The cache of robots.txt files and of the times when sites may be requested. `None` means that it is in the
    /// store.
    pub cache: Option<StoreUri>,
    /// The folder of mapping files.
    pub mappings: Option<PathBuf>,
    /// Project folders of `webfill fill`, or folders that contain such folders.
    pub tables: Vec<PathBuf>,
    /// The folder for metrics over time. `None` means that they are kept in memory only.
    pub state: Option<PathBuf>,
    /// The folder of logs, including the audit log. It is created by the first entry.
    pub logs: Option<PathBuf>,
    /// The audit log of changes to the dispatcher's keys.
    pub keys_audit: Option<PathBuf>,
    /// Services of the surrounding program that the mapping editor needs. `None` means that there is no mapping editor.
    pub host: Option<Arc<dyn Host>>,
    /// Runs `webfill fill` on tables that visitors upload. `None` means that none can be uploaded.
    pub filler: Option<Arc<dyn Filler>>,
}

/// A dashboard with its state. See the crate's documentation.
pub struct Dashboard {
    pub(crate) setup: DashboardSetup,
    pub(crate) fleet: Option<Arc<dyn Fleet>>,
    pub(crate) store: StoreAccess,
    pub(crate) mapping_files: MappingFiles,
    pub(crate) tables: Tables,
    /// The open stores of the tables that `webfill fill` completes.
    pub(crate) project_stores: ProjectStores,
    /// Background jobs that make the indexes of tables.
    pub(crate) table_jobs: Jobs,
    /// The tables that visitors have uploaded since the dashboard was started.
    dropped: Mutex<Vec<PathBuf>>,
    /// The permits for uploading a table.
    pub(crate) uploads: Semaphore,
    /// The permits for downloads. Each running download has a thread.
    pub(crate) downloads: Arc<Semaphore>,
    pub(crate) extractions: Extractions,
    pub(crate) protection: SharedProtection,
    pub(crate) templates: Environment<'static>,
    pub(crate) assets: Assets,
    pub(crate) guard: Guard,
    pub(crate) sessions: Sessions,
    pub(crate) wrong_tokens: WrongTokens,
    pub(crate) messages: Messages,
    pub(crate) editor: Option<Editor>,
    pub(crate) snapshots: Snapshots,
    /// The permits for listeners of live pages.
    pub(crate) listeners: Arc<Semaphore>,
    history: Mutex<History>,
    /// The counters when the last sample of the history was taken.
    counters: Mutex<Counters>,
    site_log: Mutex<SiteLog>,
    health_log: Mutex<HealthLog>,
    refusals: Mutex<RefusalLog>,
    pub(crate) large_bodies: Semaphore,
}

impl Dashboard {
    pub fn new(
        setup: DashboardSetup,
        fleet: Option<Arc<dyn Fleet>>,
        protection: SharedProtection,
    ) -> Result<Arc<Dashboard>, Fault> {
        let secret = new_secret()
            .map_err(|error| Fault::error(format!("cannot read random bytes: {error}")))?;
        let assets = Assets::new();
        let bench = setup.mappings.as_deref().zip(setup.host.clone());
        let editor =
            bench.map(|(mappings, host)| Editor::new(mappings, setup.state.as_ref(), host));
        let history = History::open(setup.state.as_deref());
        let site_log = SiteLog::open(setup.state.as_deref());
        let health_log = HealthLog::open(setup.state.as_deref());
        let tables = Tables::new(setup.tables.clone());
        for project in tables.all() {
            remove_incomplete_indexes(project.folder());
        }
        Ok(Arc::new(Dashboard {
            store: StoreAccess::new(setup.store.clone(), setup.cache.clone()),
            mapping_files: MappingFiles::new(setup.mappings.clone()),
            tables,
            project_stores: ProjectStores::default(),
            table_jobs: Jobs::default(),
            dropped: Mutex::default(),
            uploads: Semaphore::new(1),
            downloads: Arc::new(Semaphore::new(MOST_DOWNLOADS)),
            extractions: Extractions::default(),
            setup,
            fleet,
            protection,
            templates: templates::environment(&assets),
            assets,
            guard: Guard::new(secret),
            sessions: Sessions::default(),
            wrong_tokens: WrongTokens::default(),
            messages: Messages::default(),
            editor,
            snapshots: Snapshots::default(),
            listeners: Arc::new(Semaphore::new(MOST_LISTENERS)),
            history: Mutex::new(history),
            counters: Mutex::default(),
            site_log: Mutex::new(site_log),
            health_log: Mutex::new(health_log),
            refusals: Mutex::default(),
            large_bodies: Semaphore::new(MOST_LARGE),
        }))
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn dropped_tables(&self) -> Vec<PathBuf> {
        let dropped = self.dropped.lock();
        dropped.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note_dropped_table(&self, table: PathBuf) {
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        dropped.retain(|known| *known != table);
        dropped.push(table);
    }

    pub(crate) fn site_log(&self) -> MutexGuard<'_, SiteLog> {
        self.site_log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn health_log(&self) -> MutexGuard<'_, HealthLog> {
        let log = self.health_log.lock();
        log.unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs that a wrong token was used. For one address, this is logged at most once a minute.
    pub(crate) fn log_refused_token(&self, from: IpAddr) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.record_if_new(&format!("token {from}")) {
            tracing::warn!(
                event = "token_refused",
                address = %from,
                "dashboard login refused: unknown token"
            );
        }
    }
}
