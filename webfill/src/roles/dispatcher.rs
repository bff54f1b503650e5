//! Runs `webfill dispatcher`: turns flags and settings into the setup of the dispatcher.

use std::path::Path;
use std::sync::Arc;

use webfill_dashboard::DashboardSetup;
use webfill_dispatcher::{DispatcherConfig, DispatcherSetup, Endpoints, FeederSetup, JournalSetup};
use webfill_mapping::MappingSet;
use webfill_notifications::Permissions;
use webfill_scheduler::frontier::{Backups, Restoring};
use webfill_scheduler::{GroupBounds, Mappings};
use webfill_service::disk::Disks;
use webfill_service::http::Protection;
use webfill_service::state::{StateFolder, socket_folder};
use webfill_service::{ExitStatus, Fault, log, signals};
use webfill_store::{MongoUri, StoreUri};
use webfill_urls::DroppedParameters;
use webfill_wire::MappingSource;
use webfill_wire::keys::ServerKeys;
use webfill_worker::{MappingSetRules, PolitenessConfig};

use super::process::{
    count_start_unless_local, host_name, install_signal_handlers, load_keys, load_settings,
    log_fault, replace_if_some,
};
use crate::cli::DispatcherOptions;
use crate::keys::{KeyFolder, check_reach};
use crate::mapping_command::DashboardHost;
use crate::mapping_files::load_mappings;
use crate::reload;
use crate::settings::Settings;
use crate::stdout::print;

/// The checked settings of a dispatcher.
pub fn dispatcher_settings(options: &DispatcherOptions) -> Result<Settings, Fault> {
    let options = options.clone();
    let mut settings = load_settings(options.config.as_deref(), options.local)?;
    replace_if_some(&mut settings.dispatcher.listen, options.listen);
    replace_if_some(&mut settings.dispatcher.port, options.port);
    replace_if_some(&mut settings.dispatcher.http, options.http);
    replace_if_some(&mut settings.state, options.state);
    replace_if_some(&mut settings.mappings, options.mappings);
    replace_if_some(&mut settings.store, options.store);
    settings.cache = options.cache.or(settings.cache);
    settings.keys = options.keys.or(settings.keys);
    settings.dispatcher.journal |= options.standby;
    settings.validate()?;
    Ok(settings)
}

pub fn run_dispatcher(options: DispatcherOptions) -> Result<ExitStatus, Fault> {
    let settings = dispatcher_settings(&options)?;
    if options.hand_over {
        return hand_over(&settings);
    }
    let keys = load_keys(&settings, options.local, KeyFolder::server_keys)?;
    let ports = Endpoints::tcp(&settings.dispatcher.listen, settings.dispatcher.port);
    if !options.local {
        check_reach(&ports.tasks, keys.is_some())?;
    }
    let protection = load_protection(&settings, options.local)?;
    let mappings = Arc::new(load_mappings(&settings.mappings)?);
    let state = StateFolder::open(&settings.state, "dispatcher")?;
    install_signal_handlers(options.local);
    if !options.local {
        signals::reload_on_hangup();
    }
    let _log = log::start(&settings.log_folder(), "dispatcher", &settings.log)?;
    let read_again = reload::reloader(options.clone(), settings.clone(), !mappings.is_empty());
    let sent = to_distributed_mappings(&mappings);
    let setup = dispatcher_setup(&options, settings, &state, mappings, keys, protection)?;
    log_fault(webfill_dispatcher::run(setup, sent, read_again))
}

/// Reads the certificate and the tokens that protect HTTP requests. The dispatcher of `webfill crawl` serves no HTTP,
/// so it has none.
fn load_protection(settings: &Settings, is_local: bool) -> Result<Protection, Fault> {
    match is_local {
        true => Ok(Protection::default()),
        false => {
            let files = settings.dispatcher.http_files();
            files.map_err(Fault::usage)?.read()
        }
    }
}

fn dispatcher_setup(
    options: &DispatcherOptions,
    settings: Settings,
    state: &StateFolder,
    mappings: Arc<MappingSet>,
    keys: Option<ServerKeys>,
    protection: Protection,
) -> Result<DispatcherSetup, Fault> {
    let config = &settings.dispatcher;
    let endpoints = match options.local {
        true => Endpoints::ipc(&socket_folder(state.path())?),
        false => Endpoints::tcp(&config.listen, config.port),
    };
    let http = config.http_address().map_err(Fault::usage)?;
    let metrics = settings.metrics.dispatcher_address();
    let metrics = metrics.map_err(Fault::usage)?;
    let probes = settings.probes.dispatcher_address();
    let probes = probes.map_err(Fault::usage)?;
    let disks = Disks::new(settings.written_folders()?, &settings.disk);
    let (feeders, audit) = match options.local {
        true => (None, None),
        false => (
            Some(feeder_setup(&settings, state)?),
            Some(log::open_audit(&settings.log_folder(), &settings.log)?),
        ),
    };
    Ok(DispatcherSetup {
        feeders,
        journal: journal_setup(&settings, state, options)?,
        ends_alone: !options.local,
        restoring: restoring_setup(&settings, options.restored, options.local),
        endpoints,
        // `webfill crawl` uses Unix sockets in a folder, so HTTP and metrics have no address.
        http: http.filter(|_| !options.local),
        metrics: metrics.filter(|_| !options.local),
        starts: count_start_unless_local(state, "dispatcher", options.local),
        probes: probes.filter(|_| !options.local),
        protection,
        dashboard: dashboard_setup(options.config.as_deref(), &settings, state)?,
        keys,
        state: state.path().to_owned(),
        audit,
        store: settings.store_uri()?,
        cache: settings.cache_uri()?,
        retention: settings.retention,
        default_delay_ms: default_delay_ms(&settings.politeness),
        group_bounds: group_bounds(&settings.politeness),
        retries: settings.retries,
        backoff: settings.backoff,
        applications: settings.applications,
        disks,
        mapping_rules: Arc::new(MappingSetRules(mappings)),
        config: settings.dispatcher,
    })
}

/// The setup of the journal, which lets a second dispatcher take over; `None` if the settings want no journal.
/// `webfill crawl` has one dispatcher, which needs none.
fn journal_setup(
    settings: &Settings,
    state: &StateFolder,
    options: &DispatcherOptions,
) -> Result<Option<JournalSetup>, Fault> {
    if options.local || !settings.dispatcher.journal {
        return Ok(None);
    }
    Ok(Some(JournalSetup {
        store: journal_store(settings)?,
        instance: state.instance()?,
        name: dispatcher_name(&settings.dispatcher)?,
        only_stands_by: options.standby,
        seen_memory_bytes: settings.dispatcher.seen_memory_mib << 20,
        dropped_parameters: DroppedParameters::new(&settings.dispatcher.drop_parameters)
            .map_err(|why| Fault::usage(format!("dispatcher.drop_parameters: {why}")))?,
        kept_bytes: (settings.dispatcher.journal_mib as u64) << 20,
    }))
}

/// The dispatcher's name within its fleet: the address where it listens. An address of all interfaces is refused,
/// because it identifies no machine.
fn dispatcher_name(config: &DispatcherConfig) -> Result<String, Fault> {
    let is_any = ["0.0.0.0", "::", "[::]", "*"].contains(&config.listen.as_str());
    let host = match is_any {
        true => host_name()?,
        false => config.listen.clone(),
    };
    Ok(format!("{host}:{}", config.port))
}

/// Makes the serving dispatcher hand over to a dispatcher that stands by, and waits until that dispatcher serves.
fn hand_over(settings: &Settings) -> Result<ExitStatus, Fault> {
    let next = webfill_dispatcher::hand_over(&journal_store(settings)?)?;
    print(format_args!("{next} serves"))?;
    Ok(ExitStatus::Done)
}

fn journal_store(settings: &Settings) -> Result<MongoUri, Fault> {
    match settings.store_uri()? {
        StoreUri::MongoDb(store) => Ok(store),
        StoreUri::Sqlite(_) => Err(Fault::usage(
            "dispatcher.journal: other dispatchers cannot read a store in a file: use a store in MongoDB, or leave \
             the journal off",
        )),
    }
}

/// The setup of the dashboard that the dispatcher serves.
fn dashboard_setup(
    config: Option<&Path>,
    settings: &Settings,
    state: &StateFolder,
) -> Result<DashboardSetup, Fault> {
    let keys = settings.keys.as_deref();
    Ok(DashboardSetup {
        store: Some(settings.store_uri()?),
        cache: settings.cache_uri()?,
        mappings: Some(settings.mappings.clone()),
        state: Some(state.path().to_owned()),
        tables: Vec::new(),
        logs: Some(settings.log_folder()),
        keys_audit: keys.map(|keys| KeyFolder::new(keys).audit_file()),
        host: Some(Arc::new(DashboardHost::new(config))),
        filler: None,
    })
}

/// The setup of feeders, which feed the runs of watches: a socket beside the dispatcher's own, and the settings in
/// force, including flags.
fn feeder_setup(settings: &Settings, state: &StateFolder) -> Result<FeederSetup, Fault> {
    let config_file = state.path().join("feeders.toml");
    let mut settings = settings.clone();
    state.path().clone_into(&mut settings.state);
    settings.write(&config_file)?;
    let sockets = socket_folder(state.path())?;
    Ok(FeederSetup {
        endpoint: format!("ipc://{}/dispatcher-feeders", sockets.display()),
        config_file,
        sources: settings.watch_sources()?,
        notifications: Permissions::for_fleet(settings.notifications),
    })
}

/// The mappings as they are sent to supervisors.
pub fn to_distributed_mappings(mappings: &MappingSet) -> Mappings {
    let sources = mappings.sources().iter().map(|source| MappingSource {
        name: source.name.clone(),
        text: source.text.clone(),
    });
    Mappings {
        version: mappings.version(),
        sources: sources.collect(),
    }
}

/// How the dispatcher treats a state folder that was restored from a backup. Nobody starts the dispatcher of `webfill
/// crawl` by hand, so it never has the flag `--restored`.
fn restoring_setup(settings: &Settings, is_declared: bool, is_local: bool) -> Restoring {
    let longest_request = webfill_worker::longest_request(&settings.fetch);
    Restoring {
        lease_ms: settings.dispatcher.lease_ms(),
        longest_request_ms: longest_request.as_millis() as u64,
        default_delay_ms: default_delay_ms(&settings.politeness),
        backups: match (is_local, is_declared) {
            (true, _) => Backups::Taken,
            (false, true) => Backups::Declared,
            (false, false) if settings.dispatcher.restored => Backups::Taken,
            (false, false) => Backups::Refused,
        },
    }
}

fn default_delay_ms(politeness: &PolitenessConfig) -> u32 {
    (politeness.delay * 1_000.0).ceil() as u32
}

fn group_bounds(politeness: &PolitenessConfig) -> GroupBounds {
    let is_set = politeness.address_delay.is_some() || politeness.address_in_flight.is_some();
    GroupBounds {
        delay_ms: (politeness.address_delay() * 1_000.0).ceil() as u32,
        in_flight: politeness.address_in_flight(),
        of_private: is_set,
    }
}
