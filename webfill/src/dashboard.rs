//! `webfill dashboard`: the dashboard without a fleet, over a store, a folder of mappings, or tables.

mod filler;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hyper::Request;
use hyper::body::Incoming;
use webfill_dashboard::{Dashboard, DashboardSetup, redirect_to_start};
use webfill_service::http::{Answer, HttpFiles, Peer, RequestHandler, SharedProtection};
use webfill_service::signals::{self, SignalRequest};
use webfill_service::{ExitStatus, Fault};
use webfill_store::{StoreUri, open_existing};

use self::filler::TableFiller;
use crate::keys::KeyFolder;
use crate::mapping_command::DashboardHost;
use crate::settings::Settings;

#[derive(Debug, Args)]
pub struct DashboardOptions {
    /// Store to show; none if only --mappings or --fill is given [default: sqlite:webfill.db; without that file, the
    /// tables of the working folder]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    /// Folder of mapping files; without a store, only the mapping editor is shown [default: etl-mappings]
    #[arg(long, value_name = "DIR")]
    pub mappings: Option<PathBuf>,
    /// Project folder of `webfill fill`, such as books.webfill, or a folder of these; repeatable
    #[arg(long, value_name = "DIR")]
    pub fill: Vec<PathBuf>,
    /// Address to listen on; beyond loopback only with TLS and tokens, as set for the dispatcher
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8081")]
    pub listen: SocketAddr,
    /// State folder of the dispatcher whose audit log is shown [default: .webfill]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Settings file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The file of the store that the default settings name.
const DEFAULT_STORE: &str = "webfill.db";

/// How often to check for signals.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// Runs `webfill dashboard`.
pub fn run(options: &DashboardOptions) -> Result<ExitStatus, Fault> {
    let mut settings = Settings::load(options.config.as_deref())?;
    settings.state = options.state.clone().unwrap_or(settings.state);
    let setup = setup(options, &settings)?;
    if let Some(store) = &setup.store {
        check_store(store)?;
    }
    let files = settings.dispatcher.http_files().map_err(Fault::usage)?;
    if !files.permits_address(options.listen) {
        return Err(Fault::usage(format!(
            "--listen {}: other machines can reach it, so it needs TLS and tokens: set dispatcher.http_certificate, dispatcher.http_key and dispatcher.http_tokens, or choose a loopback address",
            options.listen
        )));
    }
    let protection = SharedProtection::new(files.read()?);
    let scheme = if files.tls.is_some() { "https" } else { "http" };
    signals::install_handlers();
    signals::reload_on_hangup();
    let dashboard = Dashboard::new(setup, None, protection.clone())?;
    let advice = "choose another --listen ADDRESS:PORT";
    let alone = Arc::new(DashboardOnly(dashboard));
    let address = webfill_service::http::start(options.listen, advice, protection.clone(), alone)?;
    webfill_service::say!("the dashboard is at {scheme}://{address}/dashboard/");
    webfill_service::say!("ready");
    while signals::received_request() == SignalRequest::Nothing {
        std::thread::sleep(POLL_EVERY);
        if signals::take_reload_request() {
            reload_protection(&files, &protection);
        }
    }
    Ok(ExitStatus::Done)
}

fn setup(options: &DashboardOptions, settings: &Settings) -> Result<DashboardSetup, Fault> {
    let is_of_files = options.mappings.is_some() || !options.fill.is_empty();
    let mut tables = options.fill.clone();
    let store = match &options.store {
        Some(store) => Some(store.parse().map_err(Fault::usage)?),
        None if is_of_files => None,
        None => match settings.store_uri()? {
            // The default store does not exist, because nothing was crawled in this folder yet.
            StoreUri::Sqlite(file) if file == Path::new(DEFAULT_STORE) && !file.exists() => {
                tables.push(PathBuf::from("."));
                None
            }
            store => Some(store),
        },
    };
    if let Some(named) = options.mappings.as_ref().filter(|named| !named.is_dir()) {
        return Err(Fault::usage(format!(
            "--mappings {}: no such folder",
            named.display()
        )));
    }
    if let Some(named) = options.fill.iter().find(|named| !named.is_dir()) {
        let why = match named.is_file() {
            true => {
                "this is a file: give the project folder beside it, whose name ends in .webfill"
            }
            false => "there is no such folder",
        };
        return Err(Fault::usage(format!("--fill {}: {why}", named.display())));
    }
    let mappings = options
        .mappings
        .clone()
        .unwrap_or(settings.mappings.clone());
    let logs = settings.log_folder();
    let keys = settings.keys.as_deref();
    Ok(DashboardSetup {
        store,
        cache: settings.cache_uri()?,
        mappings: mappings.is_dir().then_some(mappings),
        tables,
        state: None,
        logs: Some(logs),
        keys_audit: keys.map(|keys| KeyFolder::new(keys).audit_file()),
        host: Some(Arc::new(DashboardHost::new(options.config.as_deref()))),
        // A table dropped on the dashboard starts a command, which only users of this machine may do.
        filler: match options.listen.ip().is_loopback() {
            true => Some(Arc::new(TableFiller::new(options.config.clone()))),
            false => None,
        },
    })
}

/// Checks that the store can be opened, so that an error is reported at start and not on a page.
fn check_store(store: &StoreUri) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
    let opened = runtime.block_on(open_existing(store));
    opened.map(drop).map_err(Fault::usage)
}

/// Reloads the TLS certificate and the tokens while the dashboard runs. Files with errors change nothing.
fn reload_protection(files: &HttpFiles, protection: &SharedProtection) {
    match files.read() {
        Ok(read) => protection.replace(read),
        Err(fault) => webfill_service::say!("webfill: reload refused, nothing changed: {fault}"),
    }
}

/// A listener that serves nothing but the dashboard.
struct DashboardOnly(Arc<Dashboard>);

impl RequestHandler for DashboardOnly {
    async fn run_background(self: Arc<Self>) {
        Arc::clone(&self.0).record_history().await;
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>, peer: Peer) -> Answer {
        match Dashboard::owns_path(request.uri().path()) {
            true => Arc::clone(&self.0).answer(request, peer).await,
            false => redirect_to_start(),
        }
    }
}
