//! Opens the core before the sockets are opened, and turns its errors into faults of the process.

use std::path::Path;

use webfill_scheduler::Mappings;
use webfill_scheduler::Patience;
use webfill_scheduler::excluded_sites::ExcludedSites;
use webfill_scheduler::frontier::{self, Frontier, FrontierConfig, FrontierError};
use webfill_scheduler::{Core, CoreSettings};
use webfill_service::Fault;
use webfill_urls::DroppedParameters;

use crate::clock::SteadyClock;
use crate::config::DispatcherSetup;

pub(super) fn open_core(
    setup: &DispatcherSetup,
    mappings: Mappings,
    clock: SteadyClock,
) -> Result<Core, Fault> {
    let excluded = match &setup.config.exclude_sites {
        Some(list) => ExcludedSites::load(list).map_err(Fault::usage)?,
        None => ExcludedSites::default(),
    };
    let seen_memory_bytes = setup.config.seen_memory_mib << 20;
    let config = FrontierConfig {
        seen_memory_bytes,
        page_cache_bytes: frontier::page_cache_bytes(seen_memory_bytes),
        excluded,
        dropped_parameters: DroppedParameters::new(&setup.config.drop_parameters)
            .map_err(|why| Fault::usage(format!("dispatcher.drop_parameters: {why}")))?,
        retries: setup.retries.clone(),
        backoff: setup.backoff.clone(),
        patience: setup.config.patience.map(|seconds| Patience {
            ms: (seconds * 1_000.0) as i64,
            default_delay_ms: setup.default_delay_ms,
        }),
        applications: setup.applications.clone(),
        restoring: Some(setup.restoring),
        journalled: setup.journal.is_some(),
    };
    let settings = CoreSettings {
        default_delay_ms: setup.default_delay_ms,
        lease_ms: setup.config.lease_ms(),
        window_sites: setup.config.window_sites,
        group_bounds: Some(setup.group_bounds),
    };
    let mut core = Frontier::open(&setup.state, config, clock.now_ms())
        .and_then(|frontier| Core::open(frontier, settings, mappings, clock.now_ms()))
        .map_err(frontier_fault)?;
    if let Some(feeders) = &setup.feeders {
        core.start_watches(feeders.sources.clone(), clock.now_ms())
            .and_then(|()| core.start_notifications(feeders.notifications.clone(), clock.now_ms()))
            .map_err(frontier_fault)?;
    }
    Ok(core)
}

/// If no supervisor is admitted yet, logs why.
pub(super) fn log_admission_wait(core: &Core, state: &Path, now_ms: i64) {
    let wait_s = core.seconds_until_admission(now_ms);
    if wait_s == 0 {
        return;
    }
    if core.is_copy() {
        tracing::warn!(
            event = "copied_state",
            state = %state.display(),
            wait_s,
            "the state folder is a copy, or was moved from another disk"
        );
        webfill_service::say!(
            "{} is a copy, or was moved here from another disk: never start a dispatcher on the original again",
            state.display()
        );
    }
    webfill_service::say!(
        "no supervisor is admitted for {wait_s} s: requests of the former fleet may be in flight"
    );
}

pub(super) fn frontier_fault(error: FrontierError) -> Fault {
    match error {
        FrontierError::Foreign { .. }
        | FrontierError::OtherFormat { .. }
        | FrontierError::Backup { .. }
        | FrontierError::Scope(_) => Fault::usage(error),
        other => Fault::fatal(other),
    }
}
