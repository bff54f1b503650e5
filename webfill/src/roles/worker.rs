//! Runs `webfill worker`, and `webfill read-document`, the process that reads a document for a worker.

use webfill_service::state::socket_folder;
use webfill_service::{ExitStatus, Fault, log, signals};
use webfill_worker::WorkerSetup;

use super::process::log_fault;
use crate::cli::{ReadDocumentOptions, WorkerOptions};
use crate::memory;
use crate::settings::Settings;

pub fn run_worker(options: WorkerOptions) -> Result<ExitStatus, Fault> {
    let settings = Settings::load_written(&options.config)?;
    signals::ignore_interrupts_and_terminations();
    let name = format!("worker-{:03}", options.worker_index);
    let browser_use = settings.browser_use(options.local);
    let _log = log::start(&settings.log_folder(), &name, &settings.log)?;
    log_fault(webfill_worker::run(WorkerSetup {
        worker_index: options.worker_index,
        incarnation: options.incarnation,
        supervisor: settings.supervisor.id.clone().unwrap_or_default(),
        workers: settings.workers(),
        sockets: socket_folder(&settings.state)?,
        store: settings.store_uri()?,
        cache: settings.cache_uri()?,
        worker: settings.worker,
        politeness: settings.politeness,
        archive: settings.archive,
        documents: settings.documents,
        keeps_samples: settings.retention.samples_mib > 0,
        bodies: settings.bodies,
        browser: settings.browser,
        browser_use,
        fetch: settings.fetch,
        release_memory: memory::release_unused_memory,
    }))
}

pub fn read_document(options: &ReadDocumentOptions) -> Result<ExitStatus, Fault> {
    let limits = webfill_reader::Limits {
        memory_bytes: options.memory_bytes,
        cpu_seconds: options.cpu_seconds,
        input_bytes: options.input_bytes,
        text_bytes: options.text_bytes,
    };
    webfill_reader::process::run(limits)
        .map_err(|error| Fault::error(format!("cannot read a document: {error}")))?;
    Ok(ExitStatus::Done)
}
