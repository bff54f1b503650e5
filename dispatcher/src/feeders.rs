//! Feeders: processes (`webfill watch feed`) that read the seeds of the runs of watches, one for each run. A feeder
//! that dies is restarted and continues at the position that the dispatcher has stored. Feeders die with the
//! dispatcher, and the next dispatcher starts them again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use webfill_notifications::Permissions;
use webfill_scheduler::WatchSources;
use webfill_scheduler::effects::FeederOrder;
use webfill_service::child::{self, BackOff};
use webfill_service::{ExitStatus as Code, Fault};

/// After more early deaths than this, a feeder is not restarted. A death is early within a minute of the start.
const MOST_EARLY_DEATHS: u32 = 5;

/// How long a feeder may still write values back and report counts after the end of its run.
const GRACE: Duration = Duration::from_secs(30);

/// How feeders are started.
#[derive(Debug, Clone)]
pub struct FeederSetup {
    /// The socket for the feeders' requests; only this machine's user can reach it.
    pub endpoint: String,
    /// The configuration file with the settings of the running dispatcher.
    pub config_file: PathBuf,
    /// The sources that watches may read.
    pub sources: WatchSources,
    /// The resources that notifications of watches may use.
    pub notifications: Permissions,
}

/// A feeder that has ended and is not started again.
pub(crate) struct EndedFeeder {
    pub(crate) watch: String,
    pub(crate) run: u64,
    /// The reason of the failure; `None` if it did not fail.
    pub(crate) why: Option<String>,
}

pub(crate) struct Feeders {
    setup: Option<FeederSetup>,
    /// The feeders, by watch and run.
    by_run: BTreeMap<(String, u64), Feeder>,
}

struct Feeder {
    child: Option<Child>,
    back_off: BackOff,
    start_at: Instant,
    /// When it became known that the feeder's run is over; `None` while the run lasts.
    over_since: Option<Instant>,
}

impl Feeders {
    pub(crate) fn new(setup: Option<FeederSetup>) -> Feeders {
        Feeders {
            setup,
            by_run: BTreeMap::new(),
        }
    }

    /// Starts the feeders that are ordered, restarts dead ones, and ends those that outlive their run for too long.
    /// Returns those that have ended permanently. Must be called by a thread that lives as long as the process.
    pub(crate) fn start_and_reap(
        &mut self,
        orders: Vec<FeederOrder>,
        is_over: impl Fn(&str, u64) -> bool,
    ) -> Vec<EndedFeeder> {
        let now = Instant::now();
        for order in orders {
            let feeder = Feeder {
                child: None,
                back_off: BackOff::starting_at(now),
                start_at: now,
                over_since: None,
            };
            self.by_run.insert((order.watch, order.run), feeder);
        }
        let Some(setup) = &self.setup else {
            return Vec::new();
        };
        let mut ended = Vec::new();
        self.by_run.retain(|(watch, run), feeder| {
            if is_over(watch, *run) && feeder.over_since.is_none() {
                feeder.over_since = Some(now);
            }
            let why = match feeder.advance(setup, (watch, *run), now) {
                State::GoesOn => return true,
                State::Ended => None,
                State::Failed(why) => Some(why),
            };
            ended.push(EndedFeeder {
                watch: watch.clone(),
                run: *run,
                why,
            });
            false
        });
        ended
    }
}

impl Drop for Feeders {
    fn drop(&mut self) {
        for feeder in self.by_run.values_mut() {
            feeder.kill();
        }
    }
}

enum State {
    GoesOn,
    Ended,
    Failed(String),
}

impl Feeder {
    fn advance(&mut self, setup: &FeederSetup, run: (&str, u64), now: Instant) -> State {
        let over_for = self
            .over_since
            .map(|since| now.saturating_duration_since(since));
        match &mut self.child {
            None if over_for.is_some() => State::Ended,
            None if now < self.start_at => State::GoesOn,
            None => match start_feeder_process(setup, run) {
                Ok(child) => {
                    self.child = Some(child);
                    self.back_off.note_restart(now);
                    State::GoesOn
                }
                Err(fault) => State::Failed(fault.message),
            },
            Some(child) => match child.try_wait() {
                Ok(None) if over_for.is_some_and(|over_for| over_for > GRACE) => {
                    self.kill();
                    let (watch, run) = run;
                    let what = "the feeder of a run that is over was ended: it took too long";
                    tracing::warn!(event = "feeder_ended", watch, run, "{what}");
                    State::Ended
                }
                Ok(None) => State::GoesOn,
                Ok(Some(status)) if status.success() => State::Ended,
                Ok(Some(status)) => self.on_death(run, status, now),
                Err(error) => State::Failed(error.to_string()),
            },
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // An error means that the feeder has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn on_death(&mut self, (watch, run): (&str, u64), status: ExitStatus, now: Instant) -> State {
        let last_line = match self.child.take() {
            Some(mut child) => child::last_stderr_line(&mut child),
            None => String::new(),
        };
        let why = match last_line.is_empty() {
            true => format!("the process that feeds it ended: {status}"),
            false => last_line,
        };
        tracing::warn!(event = "feeder_died", watch, run, why, "a feeder has ended");
        let is_final = [Code::Usage, Code::Fatal].map(|code| Some(i32::from(code.code())));
        self.start_at = self.back_off.note_death(now);
        match is_final.contains(&status.code()) || self.back_off.early_deaths() > MOST_EARLY_DEATHS
        {
            true => State::Failed(why),
            false => State::GoesOn,
        }
    }
}

fn start_feeder_process(setup: &FeederSetup, (watch, run): (&str, u64)) -> Result<Child, Fault> {
    let arguments = [
        "watch".to_owned(),
        "feed".to_owned(),
        format!("--config={}", setup.config_file.display()),
        format!("--endpoint={}", setup.endpoint),
        format!("--run={run}"),
        format!("--watch={watch}"),
    ];
    child::spawn(&arguments, Stdio::piped())
        .map_err(|error| Fault::error(format!("cannot start a feeder: {error}")))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_feeder_that_outlives_its_run_is_ended() {
        let begun = Instant::now();
        let setup = FeederSetup {
            endpoint: String::new(),
            config_file: PathBuf::new(),
            sources: WatchSources::default(),
            notifications: Permissions::for_fleet(
                webfill_notifications::NotificationsConfig::default(),
            ),
        };
        let mut feeder = Feeder {
            child: Command::new("sleep").arg("1000").spawn().ok(),
            back_off: BackOff::starting_at(begun),
            start_at: begun,
            over_since: None,
        };
        let advanced = |feeder: &mut Feeder, s| {
            let now = begun + Duration::from_secs(s);
            matches!(feeder.advance(&setup, ("w", 1), now), State::Ended)
        };
        assert!(!advanced(&mut feeder, 3_600), "its run continues");
        feeder.over_since = Some(begun);
        assert!(!advanced(&mut feeder, 29));
        assert!(advanced(&mut feeder, 31));
        assert!(feeder.child.is_none());
    }
}
