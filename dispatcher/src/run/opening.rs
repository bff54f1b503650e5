//! The core as it is opened, before there are sockets, and what its faults mean for the process.

use webfill_startup::Fault;

use crate::clock::SteadyClock;
use crate::config::DispatcherSetup;
use crate::core::{Core, CoreSettings};
use crate::excluded_sites::ExcludedSites;
use crate::frontier::{self, Frontier, FrontierConfig, FrontierError};
use crate::mappings::Mappings;

pub(super) fn open(
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
        retries: setup.retries.clone(),
        rests: setup.rests.clone(),
        applications: setup.applications.clone(),
        restored: setup.restored,
    };
    let settings = CoreSettings {
        default_delay_ms: setup.default_delay_ms,
        lease_ms: setup.config.lease_ms(),
        window_sites: setup.config.window_sites,
        group_bounds: Some(setup.group_bounds),
        quiet_ms: setup.restored.map_or(0, |restored| restored.quiet_ms),
    };
    Frontier::open(&setup.state, config, clock.now_ms())
        .and_then(|frontier| Core::open(frontier, settings, mappings, clock.now_ms()))
        .map_err(frontier_fault)
}

pub(super) fn frontier_fault(error: FrontierError) -> Fault {
    match error {
        FrontierError::Foreign { .. }
        | FrontierError::Newer { .. }
        | FrontierError::Backup { .. }
        | FrontierError::Scope(_) => Fault::usage(error),
        other => Fault::fatal(other),
    }
}
