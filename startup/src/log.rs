//! One log file per process: `ROLE[-ID].log`, JSON lines, rotated daily, a bounded number kept.
//!
//! `ROLE[-ID].log` is a symbolic link to the newest of `ROLE[-ID].DATE.log` beside it. A separate thread writes
//! the lines from a bounded buffer: a slow disk loses log lines, but never delays pages.
//!
//! A line that is logged while a task is worked on has the key `span`, an object with the task's
//! number and its crawl's id ([`task_span`]): `grep '"task":17[,}]'` finds all lines about task 17.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tracing::Span;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

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

/// The span around all work on one task: lines logged within it carry the task's number and its
/// crawl's id. Its level is `ERROR`, so that no configured level switches it off.
pub fn task_span(task: u64, crawl_id: &str) -> Span {
    tracing::error_span!("task", task, crawl_id)
}

/// Lines buffered for a slow disk before further ones are dropped.
const BUFFERED_LINES: usize = 8_192;

/// Checks the settings before anything is opened.
pub fn check(config: &LogConfig) -> Result<(), Fault> {
    filter(config).map(drop)
}

fn filter(config: &LogConfig) -> Result<EnvFilter, Fault> {
    let wrong = |reason: &str| Fault::usage(format!("log.level = \"{}\": {reason}", config.level));
    // The filter would take a mistyped level for a module's name, and log nothing else.
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

/// Starts logging to `folder/NAME.log`. Lines still buffered are written when the guard is dropped.
pub fn start(folder: &Path, name: &str, config: &LogConfig) -> Result<WorkerGuard, Fault> {
    let filter = filter(config)?;
    fs::create_dir_all(folder).map_err(|error| {
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
        .finish(LinkedLog::new(appender, folder.join(format!("{name}.log"))));
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

/// The log file, and the link to it. The link that the appender makes holds the folder's path as it
/// was given, which leads nowhere from another folder; it is replaced by one relative to its folder.
struct LinkedLog {
    appender: RollingFileAppender,
    link: PathBuf,
    /// The day, counted from the epoch, whose file is linked.
    day: u64,
}

impl LinkedLog {
    fn new(appender: RollingFileAppender, link: PathBuf) -> LinkedLog {
        make_relative(&link);
        LinkedLog {
            appender,
            link,
            day: today(),
        }
    }
}

impl Write for LinkedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let day = today();
        let written = self.appender.write(bytes);
        if day != self.day {
            // The appender has begun a new file.
            make_relative(&self.link);
            self.day = day;
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.appender.flush()
    }
}

/// Days since the epoch, by UTC as the appender counts them.
fn today() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs() / 86_400
}

/// Best effort: without the link, the files are there all the same.
fn make_relative(link: &Path) {
    let Some(name) = fs::read_link(link)
        .ok()
        .and_then(|target| Some(target.file_name()?.to_owned()))
    else {
        return;
    };
    let mut new = link.as_os_str().to_owned();
    new.push(format!(".{}", std::process::id()));
    if symlink(name, &new).is_ok() && fs::rename(&new, link).is_err() {
        let _ = fs::remove_file(&new);
    }
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
            assert!(check(&with(good)).is_ok(), "{good}");
        }
        for wrong in ["", "loud", "info,", "info,webfill_worker", "webfill=loud"] {
            assert!(check(&with(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_link_leads_to_the_file_beside_it_from_whatever_folder() {
        let folder = std::env::temp_dir().join(format!("webfill-link-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let link = folder.join("crawl.log");
        make_relative(&link);
        assert!(fs::read_link(&link).is_err(), "there was none");
        symlink("state/logs/crawl.2026-01-01.log", &link).unwrap();
        make_relative(&link);
        let target = fs::read_link(&link).unwrap();
        assert_eq!(target, Path::new("crawl.2026-01-01.log"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
