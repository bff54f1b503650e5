//! Runs `webfill supervisor`: turns flags and settings into the setup of the supervisor.

use webfill_dispatcher::Endpoints;
use webfill_service::claim_file::ClaimFile;
use webfill_service::disk::Disks;
use webfill_service::state::{StateFolder, socket_folder};
use webfill_service::{ExitStatus, Fault, log};
use webfill_supervisor::{DispatcherSockets, SupervisorSetup};
use webfill_wire::keys::Role;

use super::process::{
    count_start_unless_local, host_name, install_signal_handlers, load_keys, load_settings,
    log_fault, replace_if_some,
};
use crate::cli::SupervisorOptions;
use crate::endpoints::endpoints_of_list;
use crate::keys::check_reach;
use crate::settings::Settings;

/// The name of the only supervisor of a `webfill crawl`.
const LOCAL_SUPERVISOR: &str = "local";

/// The checked settings of a supervisor.
fn supervisor_settings(options: SupervisorOptions) -> Result<Settings, Fault> {
    let mut settings = load_settings(options.config.as_deref(), options.local)?;
    replace_if_some(&mut settings.supervisor.dispatcher, options.dispatcher);
    replace_if_some(&mut settings.supervisor.lane, options.lane);
    replace_if_some(&mut settings.supervisor.workers, options.workers);
    replace_if_some(&mut settings.supervisor.queue, options.queue);
    replace_if_some(&mut settings.state, options.state);
    replace_if_some(&mut settings.store, options.store);
    settings.supervisor.id = options.id.or(settings.supervisor.id);
    settings.cache = options.cache.or(settings.cache);
    settings.keys = options.keys.or(settings.keys);
    settings.archive.warc = options.warc.or(settings.archive.warc);
    settings.documents.read |= options.documents;
    settings.documents.keep = options.keep_documents.or(settings.documents.keep);
    settings.validate()?;
    Ok(settings)
}

pub fn run_supervisor(options: SupervisorOptions) -> Result<ExitStatus, Fault> {
    let is_local = options.local;
    let mut settings = supervisor_settings(options)?;
    let keys = load_keys(&settings, is_local, |folder| {
        folder.client_keys(Role::Supervisor)
    })?;
    let ports = endpoints_of_list(&settings.supervisor.dispatcher)?;
    for ports in ports.iter().filter(|_| !is_local) {
        check_reach(&ports.tasks, keys.is_some())?;
    }
    let id = match (&settings.supervisor.id, is_local) {
        (Some(id), _) => id.clone(),
        (None, true) => LOCAL_SUPERVISOR.to_owned(),
        (None, false) => host_name()?,
    };
    let state = StateFolder::open(&settings.state, "supervisor")?;
    install_signal_handlers(is_local);
    let _log = log::start(
        &settings.log_folder(),
        &format!("supervisor-{id}"),
        &settings.log,
    )?;
    let sockets = socket_folder(state.path())?;
    let endpoints = match is_local {
        true => vec![Endpoints::ipc(&sockets)],
        false => ports,
    };
    let dispatchers = endpoints.into_iter().map(|endpoints| DispatcherSockets {
        tasks: endpoints.tasks,
        outcomes: endpoints.outcomes,
    });
    settings.supervisor.id = Some(id.clone());
    state.path().clone_into(&mut settings.state);
    webfill_worker::prepare_archive(&settings.archive)?;
    webfill_worker::prepare_documents(&settings.documents)?;
    let config_file = state.path().join("supervisor.toml");
    settings.write(&config_file)?;
    let workers = settings.workers();
    let in_flight = settings.max_pages_in_flight();
    let disks = Disks::new(settings.written_folders()?, &settings.disk);
    let longest_request = webfill_worker::longest_request(&settings.fetch);
    let metrics = settings.metrics.supervisor_address();
    let metrics = metrics.map_err(Fault::usage)?;
    let probes = settings.probes.supervisor_address();
    let probes = probes.map_err(Fault::usage)?;
    let ended = log_fault(webfill_supervisor::run(SupervisorSetup {
        id,
        // `webfill crawl` has only one supervisor, because its state folder is locked, so its number is always 0.
        instance: if is_local { 0 } else { state.instance()? },
        is_local,
        claim: is_local.then(|| ClaimFile::in_folder(&settings.state)),
        metrics: metrics.filter(|_| !is_local),
        starts: count_start_unless_local(&state, "supervisor", is_local),
        probes: probes.filter(|_| !is_local),
        lane: settings.supervisor.lane,
        longest_request_ms: longest_request.as_millis() as u64,
        workers,
        queue: match settings.supervisor.queue {
            0 => in_flight.saturating_mul(4),
            queue => queue,
        },
        queue_url_bytes: settings.supervisor.queue_url_bytes,
        dispatchers: dispatchers.collect(),
        keys,
        disks,
        sockets,
        config_file,
    }));
    // A worker recovers the archive files of a killed predecessor. The last workers have no successor, so recover their
    // files here.
    if let Some(folder) = &settings.archive.warc {
        webfill_worker::recover_archive(folder);
    }
    ended
}
