//! The end of the dispatcher process. Committed results are sent, stored pages are judged for a while (their changes
//! and health), and then the threads end.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use webfill_service::{ExitStatus, Fault};

use super::Process;
use super::events::Event;
use super::opening::frontier_fault;

/// How long an ending dispatcher continues to judge stored pages: on one machine after the crawl is over, so that its
/// changes are reported with its end; on one machine after an interruption; and in a fleet, where the next dispatcher
/// judges the rest and waits for the ports.
const LAST_READ_OF_CRAWL: Duration = Duration::from_secs(60);
const LAST_READ: Duration = Duration::from_secs(10);
const LAST_READ_OF_FLEET: Duration = Duration::from_millis(300);

/// The threads of a fleet's dispatcher end within this time, even if the store is slow or away, because the fleet waits
/// for the next dispatcher. That one stores what is left, as after a crash.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// How long an ending dispatcher waits until its last commit is in the journal. If it does not get there, none of the
/// commit's effects are carried out.
const LAST_COMMIT_WITHIN: Duration = Duration::from_secs(5);

/// How long an ending dispatcher waits until its lease (the right to serve) is given up. If that fails, the next
/// dispatcher waits until the lease expires.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(2);

impl Process {
    /// Ends between two turns: [`Process::close`] commits and sends the applied changes. The supervisors finish their
    /// fetches, keep the outcomes and wait for the next dispatcher.
    pub(super) fn end_without_supervisors(&self) -> Result<ExitStatus, Fault> {
        tracing::info!(
            event = "ending_alone",
            supervisors = self.core.supervisor_count(),
            "the dispatcher stops, the supervisors wait for the next one"
        );
        Ok(ExitStatus::Done)
    }

    /// Sends the final counters and the final states of the crawls, and ends the threads. If the frontier has failed,
    /// nothing can be committed, and so nothing is sent.
    pub(super) fn close(mut self, arrived: &mpsc::Receiver<Event>) -> Result<(), Fault> {
        let until = self.ends_alone.then(|| Instant::now() + ENDS_WITHIN);
        // Workers store a page before they report it, so every reported page can be judged.
        if let Some(content_changes) = self.content_changes.take() {
            content_changes.finish(self.last_read_duration(), until);
        }
        let now_ms = self.clock.now_ms();
        let checks = arrived.try_iter().filter_map(|event| match event {
            Event::PageChecks(checks) => Some(checks),
            _ => None,
        });
        let mut counted_checks = checks.map(|checks| self.core.on_pages_checked(&checks, now_ms));
        let closed = counted_checks.try_for_each(|counted| counted);
        drop(counted_checks);
        let closed = closed.and_then(|()| self.core.close(now_ms));
        let last = closed.map_err(|error| {
            tracing::warn!(event = "crawls_not_written", %error, "cannot report the state of the crawls");
            frontier_fault(error)
        });
        let journalled_until = Instant::now() + LAST_COMMIT_WITHIN;
        let closed = last.and_then(|last| self.finish_last_commit(last, journalled_until));
        // The metrics read the frontier's file, so they end before it is closed.
        drop(self.metrics.take());
        self.answering.finish();
        self.pending_requests.cancel_all();
        self.store_writer.finish(until);
        // The last pages, and the states of their sites, are stored by now.
        let patience = match self.ends_alone {
            true => LAST_READ_OF_FLEET,
            false => LAST_READ,
        };
        self.extraction_health.finish(patience, until);
        self.firehose.finish(until);
        if let Some(journalled) = self.journalled.take() {
            journalled.hand_over(Instant::now() + HANDED_OVER_WITHIN);
        }
        closed
    }

    /// How long changed pages are still judged. In a fleet, the crawls may not be over, so this is short.
    fn last_read_duration(&self) -> Duration {
        match self.ends_alone {
            true => LAST_READ_OF_FLEET,
            false if self.core.is_drained() => LAST_READ_OF_CRAWL,
            false => LAST_READ,
        }
    }
}
