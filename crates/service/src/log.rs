//! Each process has one log, `ROLE[-ID].log`, in JSON lines. A new file begins each day and when one is full, and a
//! limited number of files is kept ([`file`]).
//!
//! `ROLE[-ID].log` is a symbolic link to the newest of `ROLE[-ID].DATE.log`. A separate thread writes the lines from a
//! bounded buffer: a slow disk loses log lines, but never delays pages.
//!
//! A line that is logged while a task is processed has the key `span`, an object with the number of the task and the id
//! of its crawl ([`task_span`]): `grep '"task":17[,}]'` finds all lines about task 17.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tracing::Span;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use self::audit::AuditFile;
use self::file::LogFiles;
use crate::disk::is_full;
use crate::exit::Fault;
use crate::terminal::Printable;

pub mod audit;
mod file;

/// How much is logged and how long it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// The folder of the log files; `logs` in the state folder if unset.
    pub folder: Option<PathBuf>,
    /// `error`, `warn`, `info`, `debug`, `trace`, or directives such as `info,webfill_worker=debug`.
    pub level: String,
    /// Files kept per process, the current one included.
    pub keep: usize,
    /// The largest size of a log file in MiB.
    pub max_mib: u64,
    /// Files kept of the audit log, the current one included.
    pub audit_keep: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig {
            folder: None,
            level: "info".into(),
            keep: 7,
            max_mib: 100,
            audit_keep: 400,
        }
    }
}

/// The tracing span around all work on a task. Lines logged within it contain the task's number and its crawl's id. The
/// level of the span is `ERROR`, so that no configured level disables it.
pub fn task_span(task: u64, crawl_id: &str) -> Span {
    tracing::error_span!("task", task, crawl_id)
}

/// How many lines wait for a slow disk before further lines are dropped.
const BUFFERED_LINES: usize = 8_192;

/// Checks the settings before the process opens anything.
pub fn check_config(config: &LogConfig) -> Result<(), Fault> {
    parse_filter(config).map(drop)
}

fn parse_filter(config: &LogConfig) -> Result<EnvFilter, Fault> {
    let wrong = |reason: &str| Fault::usage(format!("log.level = \"{}\": {reason}", config.level));
    // `EnvFilter` would take a mistyped level for the name of a module, and log only that module.
    let says_a_level = |directive: &str| {
        let level = directive.rsplit('=').next().unwrap_or_default().trim();
        !level.is_empty() && level.parse::<LevelFilter>().is_ok()
    };
    if !config.level.split(',').all(says_a_level) {
        return Err(wrong(
            "must be error, warn, info, debug, trace or off, or MODULE=LEVEL, separated by commas",
        ));
    }
    EnvFilter::try_new(&config.level).map_err(|error| wrong(&error.to_string()))
}

/// Starts logging to `folder/NAME.log`. When the guard is dropped, the lines that still wait are written.
pub fn start(folder: &Path, name: &str, config: &LogConfig) -> Result<WorkerGuard, Fault> {
    let filter = parse_filter(config)?;
    let unwritable = |error: io::Error| match is_full(&error) {
        true => Fault::unwritable(folder, &error),
        false => Fault::usage(format!("cannot log to {}: {error}", folder.display())),
    };
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    let max_bytes = config.max_mib << 20;
    let files = LogFiles::open(folder, name, max_bytes, config.keep.max(1)).map_err(unwritable)?;
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(BUFFERED_LINES)
        .thread_name("log")
        // Control characters are escaped, because the log may be shown on a terminal.
        .finish(Printable::new(files));
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_env_filter(filter)
        .with_writer(writer)
        .try_init()
        .map_err(|error| Fault::error(format!("logging was started twice: {error}")))?;
    Ok(guard)
}

/// Opens the audit log of a dispatcher, in the folder of its logs.
pub fn open_audit(folder: &Path, config: &LogConfig) -> Result<AuditFile, Fault> {
    AuditFile::open(folder, config.max_mib, config.audit_keep).map_err(|error| {
        Fault::usage(format!(
            "cannot write the audit log in {}: {error}",
            folder.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_level_is_refused() {
        let with = |level: &str| LogConfig {
            level: level.into(),
            ..LogConfig::default()
        };
        for good in ["info", "WARN", "off", "info,webfill_worker=debug"] {
            assert!(check_config(&with(good)).is_ok(), "{good}");
        }
        for wrong in ["", "loud", "info,", "info,webfill_worker", "webfill=loud"] {
            assert!(check_config(&with(wrong)).is_err(), "{wrong}");
        }
    }
}
