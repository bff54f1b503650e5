//! Watches a running crawl until it ends: restarts dead processes, shows the progress, checks the
//! limits, and drains the processes at the end.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use webfill_scheduler::local_crawl::{Limits, LocalRequest};
use webfill_service::signals::{self, SignalRequest};
use webfill_service::{ExitStatus, Fault};
use webfill_store::{CrawlId, RecordCounts, Store};

use super::claim::Hold;
use super::failures;
use super::write_back::WriteBackThread;
use crate::control_client::ControlClient;
use crate::feeding::{self, Crawls, FeedThread};
use crate::fleet::Fleet;
use crate::progress::Progress;
use crate::summary::{Counters, Failures, WriteBackCounts};

/// How often the crawl's status is requested.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// The shortest time between two counts of the crawl's records.
const COUNT_EVERY: Duration = Duration::from_secs(2);

/// After the crawl's records were counted, the next count starts no sooner than this many times the duration of the
/// count.
const COUNT_SHARE: u32 = 20;

/// How long leased tasks may take to end when the crawl ends early.
const DRAIN_PATIENCE: Duration = Duration::from_secs(120);

/// How long to wait for an answer of the dispatcher after it has ended.
const ANSWER_AFTER_END: Duration = Duration::from_secs(1);

/// How the crawl ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Finished,
    Interrupted,
    Limit(Limit),
}

/// A limit that ends a crawl before it is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Pages,
    Time,
    Backoffs,
    Offline,
}

impl Limit {
    fn reason(self) -> &'static str {
        match self {
            Limit::Pages => "reached --max-pages",
            Limit::Time => "reached --max-time",
            Limit::Backoffs => "stopped: all remaining sites back off for longer than `patience`",
            Limit::Offline => "stopped: this machine has been offline for longer than --patience",
        }
    }
}

impl End {
    /// Why the crawl ends before it is finished; `None` if it is finished.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            End::Finished => None,
            End::Interrupted => Some("interrupted"),
            End::Limit(limit) => Some(limit.reason()),
        }
    }

    pub fn status(self) -> ExitStatus {
        match self {
            End::Finished => ExitStatus::Done,
            End::Interrupted => ExitStatus::Interrupted,
            End::Limit(_) => ExitStatus::Limit,
        }
    }
}

/// The state of the command while it watches its crawl.
pub struct Watch {
    /// The command's own crawl, and the crawls that its seeds name.
    pub crawls: Crawls,
    pub id: CrawlId,
    pub store: Arc<dyn Store>,
    pub runtime: Rc<tokio::runtime::Runtime>,
    pub progress: Progress,
    pub deadline: Option<Instant>,
    /// The limits on how long the crawl waits without progress. It ends when one of them is reached.
    pub limits: Limits,
    pub counters: Counters,
    pub records: RecordCounts,
    pub count_at: Instant,
    /// The thread that writes values back to the dataset, if there is one.
    pub writing_back: Option<WriteBackThread>,
    /// The claim to the crawl, and until when this process holds it.
    pub hold: Arc<Hold>,
    pub was_ours: bool,
}

impl Watch {
    fn crawls(&self) -> Vec<u32> {
        let crawls = self.crawls.lock();
        crawls.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the crawl is finished, interrupted, or has reached a limit.
    pub fn wait_for_end(
        &mut self,
        client: &mut ControlClient,
        fleet: &mut Fleet,
        feeding: &mut FeedThread,
    ) -> Result<End, Fault> {
        loop {
            fleet.restart_dead()?;
            feeding.check_thread()?;
            feeding
                .take_messages()
                .for_each(|message| self.progress.print_unless_off(&message));
            if let Some(writing_back) = &mut self.writing_back {
                writing_back.check_thread()?;
            }
            self.update_and_show(client, fleet)?;
            // Check the claim after the counters were read. If this process was suspended before it read them, another
            // process may have finished the crawl.
            let is_ours = self.hold.is_certain()?;
            self.report_claim(is_ours);
            if self.counters.finished && is_ours {
                return Ok(End::Finished);
            }
            if signals::received_request() >= SignalRequest::Drain {
                return Ok(End::Interrupted);
            }
            if self.counters.limit_reached {
                return Ok(End::Limit(Limit::Pages));
            }
            if self.counters.backoff_until_ms.is_some() {
                return Ok(End::Limit(match self.counters.offline {
                    Some(_) => Limit::Offline,
                    None => Limit::Backoffs,
                }));
            }
            if self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
            {
                return Ok(End::Limit(Limit::Time));
            }
            std::thread::sleep(CHECK_EVERY);
        }
    }

    /// Requests the crawl's status, counts its records if a count is due, and shows both.
    fn update_and_show(
        &mut self,
        client: &mut ControlClient,
        fleet: &mut Fleet,
    ) -> Result<(), Fault> {
        let request = LocalRequest::CrawlStatus {
            crawls: self.crawls(),
            limits: Some(self.limits),
        };
        let was_paused = self.counters.paused.is_some();
        let was_quiet = self.counters.quiet_s > 0;
        self.counters = client.request(&request, || fleet.restart_dead())?;
        match &self.counters.paused {
            Some(why) if !was_paused => self.progress.print(&format!("paused: {why}")),
            None if was_paused => self.progress.print("resumed: the disk has space again"),
            _ => {}
        }
        if self.counters.quiet_s > 0 && !was_quiet {
            // Do not count this waiting time against the time limit, because no request can start meanwhile.
            let wait = Duration::from_secs(self.counters.quiet_s);
            self.deadline = self.deadline.map(|deadline| deadline + wait);
            self.progress.print(&format!(
                "waiting {} s: the state folder is a backup or a copy, so requests of the former processes may be in flight",
                self.counters.quiet_s
            ));
        }
        if Instant::now() >= self.count_at {
            let began = Instant::now();
            let deadline = self.deadline;
            let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            self.count_records(&|| {
                signals::received_request() >= SignalRequest::Drain || is_over()
            })?;
            // Counting takes long in a large store. Space the counts so that they take a small part of the store's
            // time.
            self.count_at = Instant::now() + COUNT_EVERY.max(began.elapsed() * COUNT_SHARE);
        }
        self.progress.show(&self.counters, self.records);
        Ok(())
    }

    /// Reports when requests pause because the claim to the crawl is uncertain, and when they resume.
    fn report_claim(&mut self, is_ours: bool) {
        if std::mem::replace(&mut self.was_ours, is_ours) == is_ours {
            return;
        }
        match is_ours {
            true => self.progress.print("resumed: the claim to the crawl is renewed"),
            false => self.progress.print(
                "paused: cannot renew the claim to the crawl in the store, so another process could take it over; retrying",
            ),
        }
    }

    /// Counts the crawl's records. An unavailable store is slow to answer, so counting ends when `give_up` returns
    /// true.
    fn count_records(&mut self, give_up: &impl Fn() -> bool) -> Result<(), Fault> {
        let counts = self.runtime.block_on(async {
            let mut counting = pin!(self.store.record_counts(&self.id));
            loop {
                match tokio::time::timeout(CHECK_EVERY, &mut counting).await {
                    Ok(counts) => return Some(counts),
                    Err(_) if give_up() => return None,
                    Err(_) => {}
                }
            }
        });
        match counts {
            Some(Ok(counts)) => self.records = counts,
            Some(Err(error)) if !error.is_retry() => return Err(feeding::store_fault(error)),
            None | Some(Err(_)) => {}
        }
        Ok(())
    }

    /// Shows a user who has interrupted the crawl which pages are still stored before the command ends.
    pub fn report_end(&self, end: End) {
        if end != End::Interrupted {
            return;
        }
        let what = match self.counters.leased {
            0 => String::from("finished pages are"),
            1 => String::from("the page in flight is"),
            pages => format!("{pages} pages in flight are"),
        };
        self.progress.print_unless_off(&format!(
            "interrupted: {what} stored before the end; interrupt again to stop at once"
        ));
    }

    /// The final failures of the crawl, if there are any.
    pub fn failures(
        &self,
        file: Option<&Path>,
        client: &mut ControlClient,
        fleet: &mut Fleet,
    ) -> Result<Option<Failures>, Fault> {
        match self.counters.errors() > 0 || file.is_some() {
            true => failures::load_failures(&self.crawls(), file, client, fleet).map(Some),
            false => Ok(Some(Failures::default())),
        }
    }

    /// Waits for the leased tasks to end, then for the processes. A second signal stops them immediately.
    pub fn drain(&mut self, client: &mut ControlClient, fleet: &mut Fleet) -> Result<(), Fault> {
        let patience = Instant::now() + DRAIN_PATIENCE;
        let give_up =
            || signals::received_request() >= SignalRequest::Stop || Instant::now() > patience;
        let crawls = self.crawls();
        // The dispatcher answers when all leases have ended. From here on, dead processes are not restarted.
        let answer = {
            let fleet = RefCell::new(&mut *fleet);
            let ended_at = Cell::new(None);
            let is_lost = || {
                if ended_at.get().is_none() && fleet.borrow_mut().has_dispatcher_ended() {
                    ended_at.set(Some(Instant::now()));
                }
                let since_end = ended_at.get().map(|at: Instant| at.elapsed());
                since_end.is_some_and(|time| time > ANSWER_AFTER_END)
            };
            let end = LocalRequest::End { crawls };
            client.request_until(&end, &|| give_up() || is_lost())?
        };
        match answer {
            Some(counters) => {
                // The supervisor has ended, so the new counters do not say whether the machine is offline. Keep the
                // last known state.
                let offline = self.counters.offline.take();
                self.counters = Counters {
                    offline,
                    ..counters
                };
            }
            // The dispatcher ended before its answer arrived, so the earlier counters are reported.
            None if fleet.has_dispatcher_ended() => {}
            None => fleet.stop(),
        }
        self.count_records(&give_up)?;
        fleet.wait(&give_up)
    }

    /// Writes the remaining values back, after the fleet was drained. A second signal stops this immediately.
    pub fn finish_writing_back(&mut self) -> Result<Option<WriteBackCounts>, Fault> {
        let give_up = || signals::received_request() >= SignalRequest::Stop;
        let writing_back = self.writing_back.take();
        writing_back.map(|last| last.finish(&give_up)).transpose()
    }
}
