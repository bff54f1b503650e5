//! Watches a running crawl: shows its progress, sees its end coming, and lets it come.

use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use webfill_dispatcher::control::Request;
use webfill_startup::signals::{self, Asked};
use webfill_startup::{ExitStatus, Fault};
use webfill_store::{CrawlId, RecordCounts, Store};

use super::write_back::WritingBack;
use crate::control_client::ControlClient;
use crate::feeding::{self, Crawls, Feeding};
use crate::fleet::Fleet;
use crate::progress::Progress;
use crate::summary::{Counters, WrittenBack};

/// How often the crawl is looked at, and its records counted.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const COUNT_EVERY: Duration = Duration::from_secs(2);

/// Of so many parts of the time, one at most is spent on counting.
const COUNT_SHARE: u32 = 20;

/// How long what has begun may take to come to its end.
const DRAIN_PATIENCE: Duration = Duration::from_secs(120);

/// Why the crawl ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Finished,
    Interrupted,
    Limit(&'static str),
}

impl End {
    /// Why it ends before it is finished.
    pub fn before_time(self) -> Option<&'static str> {
        match self {
            End::Finished => None,
            End::Interrupted => Some("interrupted"),
            End::Limit(limit) => Some(limit),
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

/// Looks at a running crawl until it ends.
pub struct Watch {
    /// The command's own crawl, and those that its seeds name.
    pub crawls: Crawls,
    pub id: CrawlId,
    pub store: Arc<dyn Store>,
    pub runtime: tokio::runtime::Runtime,
    pub progress: Progress,
    pub deadline: Option<Instant>,
    pub counters: Counters,
    pub records: RecordCounts,
    pub count_at: Instant,
    /// What goes back into the dataset, if anything does.
    pub writing_back: Option<WritingBack>,
}

impl Watch {
    fn crawls(&self) -> Vec<u32> {
        let crawls = self.crawls.lock();
        crawls.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Until it is finished, interrupted, or at a limit.
    pub fn until_the_end(
        &mut self,
        client: &mut ControlClient,
        fleet: &mut Fleet,
        feeding: &mut Feeding,
    ) -> Result<End, Fault> {
        loop {
            fleet.look_after()?;
            feeding.check()?;
            if let Some(writing_back) = &mut self.writing_back {
                writing_back.check()?;
            }
            self.look(client, fleet)?;
            if self.counters.finished {
                return Ok(End::Finished);
            }
            if signals::asked() >= Asked::Drain {
                return Ok(End::Interrupted);
            }
            if self.counters.limit_reached {
                return Ok(End::Limit("reached --max-pages"));
            }
            if self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
            {
                return Ok(End::Limit("reached --max-time"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn look(&mut self, client: &mut ControlClient, fleet: &mut Fleet) -> Result<(), Fault> {
        let request = Request::CrawlStatus {
            crawls: self.crawls(),
        };
        self.counters = client.ask(&request, || fleet.look_after())?;
        if Instant::now() >= self.count_at {
            let began = Instant::now();
            let deadline = self.deadline;
            let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            self.count_records(&|| signals::asked() >= Asked::Drain || is_over())?;
            // A large store takes its time to count: it must not be busy with that.
            self.count_at = Instant::now() + COUNT_EVERY.max(began.elapsed() * COUNT_SHARE);
        }
        self.progress.show(&self.counters, self.records);
        Ok(())
    }

    /// A store that is away takes its time to say so: whoever wants to stop does not wait for it.
    fn count_records(&mut self, give_up: &impl Fn() -> bool) -> Result<(), Fault> {
        let counts = self.runtime.block_on(async {
            let mut counting = pin!(self.store.record_counts(&self.id));
            loop {
                match tokio::time::timeout(LOOK_EVERY, &mut counting).await {
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

    /// Lets what has begun come to its end; a second signal stops at once.
    pub fn drain(&mut self, client: &mut ControlClient, fleet: &mut Fleet) -> Result<(), Fault> {
        let patience = Instant::now() + DRAIN_PATIENCE;
        let give_up = || signals::asked() >= Asked::Stop || Instant::now() > patience;
        let crawls = self.crawls();
        // Answered when everything is back: nobody is started again from here on.
        match client.ask_until(&Request::Drain { crawls }, &give_up)? {
            Some(counters) => self.counters = counters,
            None => fleet.stop(),
        }
        self.count_records(&give_up)?;
        fleet.wait(&give_up)
    }

    /// Writes back what the drained fleet has left; a second signal stops it at once.
    pub fn finish_writing_back(&mut self) -> Result<Option<WrittenBack>, Fault> {
        let give_up = || signals::asked() >= Asked::Stop;
        let writing_back = self.writing_back.take();
        writing_back.map(|last| last.finish(&give_up)).transpose()
    }
}
