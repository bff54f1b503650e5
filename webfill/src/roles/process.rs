//! Shared by the processes of all roles: they load settings and keys, handle signals, and log how they end.

use std::path::Path;

use webfill_service::starts::count_start;
use webfill_service::state::StateFolder;
use webfill_service::{ExitStatus, Fault, signals};

use crate::keys::KeyFolder;
use crate::settings::Settings;

/// Counts this start for the metrics. Processes of `webfill crawl` have no metrics, so their starts are not counted.
pub(super) fn count_start_unless_local(state: &StateFolder, role: &str, is_local: bool) -> u64 {
    match is_local {
        true => 0,
        false => count_start(state.path(), role),
    }
}

/// The keys of a fleet's process. The processes of `webfill crawl` need none, because their sockets
/// are in a folder that only their owner can access.
pub(super) fn load_keys<K>(
    settings: &Settings,
    local: bool,
    read: impl FnOnce(&KeyFolder) -> Result<K, Fault>,
) -> Result<Option<K>, Fault> {
    match &settings.keys {
        Some(folder) if !local => read(&KeyFolder::new(folder)).map(Some),
        _ => Ok(None),
    }
}

/// Loads the settings. A process of `webfill crawl` uses only the file that its parent wrote.
pub(super) fn load_settings(file: Option<&Path>, local: bool) -> Result<Settings, Fault> {
    match (file, local) {
        (Some(file), true) => Settings::load_written(file),
        _ => Settings::load(file),
    }
}

/// Installs the handling of signals. A process of a fleet drains at an interrupt. A process of `webfill crawl` ignores
/// interrupts, because its parent handles them.
pub(super) fn install_signal_handlers(local: bool) {
    signals::install_handlers();
    if local {
        signals::ignore_interrupts();
    }
}

/// Logs the fault that ends the process; it is also printed on standard error.
pub(super) fn log_fault(ended: Result<ExitStatus, Fault>) -> Result<ExitStatus, Fault> {
    match &ended {
        Ok(_) => tracing::info!(event = "ended_process", "ended"),
        Err(fault) => tracing::error!(event = "fault", fault = fault.message, "ended by a fault"),
    }
    ended
}

pub(super) fn replace_if_some<T>(setting: &mut T, flag: Option<T>) {
    if let Some(flag) = flag {
        *setting = flag;
    }
}

pub(super) fn host_name() -> Result<String, Fault> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").map_err(|error| {
        Fault::error(format!(
            "cannot read the host name, name the supervisor with --id: {error}"
        ))
    })?;
    Ok(name.trim().to_owned())
}
