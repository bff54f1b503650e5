//! `webfill watch run FILE`: runs a watch on one machine, without a fleet. Each run is `webfill crawl` with the
//! settings of the watch, in a process of its own.
//!
//! The times of runs are computed from the records of earlier runs in the state folder. If runs were missed while no
//! process was waiting, one run makes up for all of them. A killed run is resumed. Notifications that a run could not
//! deliver are retried until the next run.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use webfill_api::{Refusal, Watch, WatchRun};
use webfill_notifications::retry_wait_ms;
use webfill_service::signals::{self, SignalRequest};
use webfill_service::state::StateFolder;
use webfill_service::{ExitStatus, Fault, child};

use super::RunOptions;
use crate::cli::{ProgressStyle, parse_options, usage_sentence};
use crate::crawl::{self, Crawl, CrawlOptions, RunFile, RunNotifications, WatchedRun};
use crate::feeding::now_ms;

/// How often to check whether the next run is due.
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// How long to wait after a run that could not begin.
const TRY_AGAIN_AFTER_MS: i64 = 30_000;

pub fn run(file: &Path, options: &RunOptions) -> Result<ExitStatus, Fault> {
    let (watch, file) = read_watch(file)?;
    let config = options.connection.config.as_deref();
    let config = config.map(make_absolute).transpose()?;
    enter_folder(&file)?;
    let mut crawl = crawl_options(&watch, options, &file)?;
    crawl.config = crawl.config.or(config);
    match options.once {
        true => crawl::run(crawl),
        false => WatchRunner::begin(watch, crawl, file, options)?.run_until_stopped(),
    }
}

/// Reads a watch. Also returns the absolute path of its file.
fn read_watch(file: &Path) -> Result<(Watch, PathBuf), Fault> {
    let in_file = |why: &dyn std::fmt::Display| Fault::usage(format!("{}: {why}", file.display()));
    let text = std::fs::read(file)
        .map_err(|error| Fault::usage(format!("cannot read {}: {error}", file.display())))?;
    let refused = |refusal: Refusal| match refusal.path.as_str() {
        "$" => in_file(&refusal.message),
        path => in_file(&format!("{path}: {}", refusal.message)),
    };
    let value = webfill_api::parse(&text).map_err(refused)?;
    let watch = Watch::parse(value).map_err(refused)?;
    let file = file.canonicalize().map_err(|error| in_file(&error))?;
    Ok((watch, file))
}

/// Makes a path absolute. Call this before the working folder changes, because the path is relative to it.
fn make_absolute(path: &Path) -> Result<PathBuf, Fault> {
    let found = path.canonicalize();
    found.map_err(|error| Fault::usage(format!("{}: {error}", path.display())))
}

/// Makes the folder of the watch's file the working folder, because relative paths in the file begin there. It does not
/// matter where cron starts the command.
fn enter_folder(file: &Path) -> Result<(), Fault> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    std::env::set_current_dir(folder)
        .map_err(|error| Fault::usage(format!("{}: {error}", folder.display())))
}

/// The flags of `webfill crawl` that a watch stands for.
pub fn crawl_options_of(watch: &Watch) -> Result<CrawlOptions, Fault> {
    parse_options(watch.arguments()).map_err(|error| Fault::usage(usage_sentence(&error)))
}

fn crawl_options(watch: &Watch, options: &RunOptions, file: &Path) -> Result<CrawlOptions, Fault> {
    let in_file = |fault: Fault| Fault::usage(format!("{}: {fault}", file.display()));
    let mut crawl = crawl_options_of(watch).map_err(in_file)?;
    crawl.summary = options.summary;
    crawl.progress = options.progress;
    crawl.watched_run = Some(WatchedRun {
        watch: watch.clone(),
        due_ms: options.due_ms,
    });
    Ok(crawl)
}

/// Waits for due times, and runs the watch at each.
struct WatchRunner {
    watch: Watch,
    file: PathBuf,
    runs: RunFile,
    last: Option<WatchRun>,
    arguments: Vec<String>,
    prints: bool,
    since_ms: i64,
    /// No run begins before this time, in milliseconds since the epoch. It is set after a run that could not begin.
    not_before_ms: i64,
    left: RemainingNotifications,
    /// A lock, so that only one process waits for runs of a watch.
    _lock: StateFolder,
}

impl WatchRunner {
    fn begin(
        watch: Watch,
        crawl: CrawlOptions,
        file: PathBuf,
        options: &RunOptions,
    ) -> Result<WatchRunner, Fault> {
        let config = crawl.config.as_ref();
        let config = config.map(|config| format!("--config={}", config.display()));
        let prepared = Crawl::prepare(crawl)?;
        let lock = StateFolder::open(prepared.state_folder(), "watch")?;
        signals::install_handlers();
        let mut arguments = vec![
            format!("--summary={}", flag_value(&options.summary)),
            format!("--progress={}", flag_value(&options.progress)),
        ];
        arguments.extend(config);
        let runs = RunFile::new(lock.path(), &watch.name);
        Ok(WatchRunner {
            last: runs.last_run()?,
            runs,
            arguments,
            prints: options.progress != ProgressStyle::None,
            watch,
            file,
            since_ms: now_ms(),
            not_before_ms: 0,
            left: RemainingNotifications::new(prepared.notifications()),
            _lock: lock,
        })
    }

    fn run_until_stopped(mut self) -> Result<ExitStatus, Fault> {
        let mut printed_ms = None;
        loop {
            if signals::received_request() >= SignalRequest::Drain {
                return Ok(ExitStatus::Done);
            }
            let Some(due_ms) = self.next_due_ms() else {
                if self.last.is_some() {
                    return Ok(ExitStatus::Done);
                }
                return Err(Fault::usage("the schedule has no further time"));
            };
            if due_ms.max(self.not_before_ms) > now_ms() {
                if printed_ms.replace(due_ms) != Some(due_ms) {
                    self.print(&format!("next run at {}", webfill_store::iso_time(due_ms)));
                }
                if self.last.is_some() {
                    let due_ms = due_ms.max(self.not_before_ms);
                    self.left.retry_if_due(|| due_ms <= now_ms());
                }
                std::thread::sleep(CHECK_EVERY);
                continue;
            }
            let status = self.run_once(due_ms)?;
            if signals::received_request() >= SignalRequest::Drain || status == ExitStatus::Usage {
                return Ok(status);
            }
        }
    }

    /// When the next run is due, in milliseconds since the epoch. A run that was killed is due again at its former
    /// time, so it starts immediately.
    fn next_due_ms(&self) -> Option<i64> {
        match &self.last {
            Some(run) if run.ended_ms.is_none() => Some(run.due_ms),
            Some(run) => self
                .watch
                .schedule
                .next_due_ms(run.times().as_ref(), self.since_ms),
            None => self.watch.schedule.next_due_ms(None, self.since_ms),
        }
    }

    fn run_once(&mut self, due_ms: i64) -> Result<ExitStatus, Fault> {
        let ended = |run: &WatchRun| run.ended_ms.map(|ended_ms| (run.number, ended_ms));
        let before = self.last.as_ref().and_then(ended);
        let mut run = self.start_run(due_ms)?;
        let status = wait_for_end(&mut run);
        self.last = self.runs.last_run()?;
        self.left.note_run_end();
        let last = self.last.as_ref();
        let last = last.filter(|run| ended(run).is_some_and(|run| Some(run) != before));
        match last {
            Some(run) if run.skipped > 0 => self.print(&format!(
                "run {} took longer than its schedule: {} due times were skipped",
                run.number, run.skipped
            )),
            Some(_) => {}
            None => self.not_before_ms = now_ms() + TRY_AGAIN_AFTER_MS,
        }
        Ok(status)
    }

    /// Starts a run as a child process. If this process is killed, the child is killed, too, and the next process
    /// resumes the run.
    fn start_run(&self, due_ms: i64) -> Result<Child, Fault> {
        let cannot = |error| Fault::error(format!("cannot start a run: {error}"));
        let mut command = child::own_program();
        command
            .args(["watch", "run", "--once", &format!("--due-ms={due_ms}")])
            .args(&self.arguments)
            .arg("--")
            .arg(&self.file)
            .stdin(Stdio::null())
            // In its own process group, the child gets no Ctrl-C from the terminal. This process passes it on instead.
            .process_group(0);
        child::kill_with_parent(&mut command);
        command.spawn().map_err(cannot)
    }

    fn print(&self, what: &str) {
        if self.prints {
            webfill_service::say!("webfill: {}: {what}", self.watch.name);
        }
    }
}

/// Notifications that a run may have left undelivered.
struct RemainingNotifications {
    notifications: Option<RunNotifications>,
    failures: u32,
    /// When to try the delivery of notifications again; `None` if all are delivered.
    try_at: Option<Instant>,
}

impl RemainingNotifications {
    fn new(notifications: Option<RunNotifications>) -> RemainingNotifications {
        RemainingNotifications {
            notifications,
            failures: 0,
            try_at: Some(Instant::now()),
        }
    }

    fn note_run_end(&mut self) {
        self.failures = 0;
        self.try_at = Some(Instant::now());
    }

    /// Tries to deliver the remaining notifications if the wait is over. After each failure, the next wait is longer.
    fn retry_if_due(&mut self, is_due: impl Fn() -> bool) {
        let (Some(notifications), Some(try_at)) = (&self.notifications, self.try_at) else {
            return;
        };
        if Instant::now() < try_at {
            return;
        }
        let is_left = notifications
            .deliver_remaining(|| is_due() || signals::received_request() >= SignalRequest::Drain);
        self.failures += 1;
        let wait = Duration::from_millis(retry_wait_ms(self.failures).unsigned_abs());
        self.try_at = is_left.then(|| Instant::now() + wait);
    }
}

/// The name of the value on the command line.
fn flag_value(value: &impl ValueEnum) -> String {
    let name = value.to_possible_value();
    name.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Waits for the end of a run. Signals to this process are passed on to the run.
fn wait_for_end(run: &mut Child) -> ExitStatus {
    let mut passed_on = SignalRequest::Nothing;
    loop {
        match run.try_wait() {
            Ok(Some(status)) => return exit_status_of(status, passed_on),
            Err(_) => return ExitStatus::Error,
            Ok(None) => {}
        }
        let asked = signals::received_request();
        if asked > passed_on {
            child::request_drain(run);
            passed_on = match passed_on {
                SignalRequest::Nothing => SignalRequest::Drain,
                _ => SignalRequest::Stop,
            };
        }
        std::thread::sleep(CHECK_EVERY / 4);
    }
}

fn exit_status_of(status: std::process::ExitStatus, passed_on: SignalRequest) -> ExitStatus {
    // A run that receives a signal before it handles signals is killed by it. Such a run had not begun, so it counts as
    // interrupted.
    if passed_on > SignalRequest::Nothing && status.signal() == Some(libc::SIGTERM) {
        return ExitStatus::Interrupted;
    }
    let is_this = |known: &ExitStatus| status.code() == Some(known.code().into());
    let found = ExitStatus::ALL.into_iter().find(is_this);
    found.unwrap_or(ExitStatus::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_killed_by_a_forwarded_signal_counts_as_interrupted() {
        let of =
            |raw, passed_on| exit_status_of(std::process::ExitStatus::from_raw(raw), passed_on);
        assert_eq!(
            of(libc::SIGTERM, SignalRequest::Drain),
            ExitStatus::Interrupted
        );
        assert_eq!(of(libc::SIGTERM, SignalRequest::Nothing), ExitStatus::Error);
        assert_eq!(of(libc::SIGKILL, SignalRequest::Drain), ExitStatus::Error);
        assert_eq!(of(12 << 8, SignalRequest::Drain), ExitStatus::Limit);
    }
}
