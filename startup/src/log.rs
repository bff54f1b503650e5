//! One log file per process: `ROLE[-ID].log`, JSON lines, rotated daily, a bounded number kept.
//!
//! `ROLE[-ID].log` is a link to the newest of `ROLE[-ID].DATE.log`. Lines are written by a thread
//! of their own behind a bounded buffer: a slow log disk costs lines, never pages.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;

use crate::exit::Fault;

/// How much is logged and how long it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// `error`, `warn`, `info`, `debug`, `trace`, or directives such as `info,webfill_worker=debug`.
    pub level: String,
    /// Files kept per process, the current one included.
    pub keep: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig {
            level: "info".into(),
            keep: 7,
        }
    }
}

/// Lines held for a slow disk before further ones are dropped.
const BUFFERED_LINES: usize = 8_192;

/// Starts logging to `folder/NAME.log`. Lines still buffered are written when the guard is dropped.
pub fn start(folder: &Path, name: &str, config: &LogConfig) -> Result<WorkerGuard, Fault> {
    let filter = EnvFilter::try_new(&config.level)
        .map_err(|error| Fault::usage(format!("log.level `{}`: {error}", config.level)))?;
    std::fs::create_dir_all(folder).map_err(|error| {
        Fault::usage(format!(
            "cannot create the log folder {}: {error}",
            folder.display()
        ))
    })?;
    let appender = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix(name)
        .filename_suffix("log")
        .latest_symlink(format!("{name}.log"))
        .max_log_files(config.keep.max(1))
        .build(folder)
        .map_err(|error| Fault::usage(format!("cannot log to {}: {error}", folder.display())))?;
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(BUFFERED_LINES)
        .thread_name("log")
        .finish(appender);
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_env_filter(filter)
        .with_writer(writer)
        .try_init()
        .map_err(|error| Fault::error(format!("logging was started twice: {error}")))?;
    Ok(guard)
}
