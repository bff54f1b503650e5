//! How tasks end: outcomes and what they lead to, leases given back, stored pages applied to
//! further records.

use webfill_wire::{CrawlKey, ReturnCause, SupervisorOutcomes, TaskDone, TaskReturned};

use super::Core;
use crate::crawl_registry::crashed_page;
use crate::dispatch::LastRequest;
use crate::firehose::FinishedPage;
use crate::frontier::{
    Backfill, Candidate, Completion, FeedTally, FrontierError, GivenBack, TaskSketch,
};
use crate::outgoing::OutgoingMessage;
use crate::store_writer::{BackfillWrite, StoreWrite};

/// A page that killed its workers is kept by us alone, after the commit; how long it may have been on
/// its way to a store that was away.
const STORE_AWAY_AT_MOST_MS: i64 = 7 * 86_400_000;

impl Core {
    pub fn handle_outcomes(
        &mut self,
        outcomes: SupervisorOutcomes,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        for done in &outcomes.done {
            self.complete_task(done, now_ms)?;
        }
        for returned in outcomes.returned {
            self.take_returned(returned, now_ms)?;
        }
        self.note_recalled(&outcomes.recalled, &outcomes.supervisor);
        self.dispatch
            .note_outcomes(&outcomes.supervisor, outcomes.session, outcomes.number);
        Ok(())
    }

    fn complete_task(&mut self, done: &TaskDone, now_ms: i64) -> Result<(), FrontierError> {
        let counted = match self.frontier.complete(done, now_ms)? {
            Completion::Counted(counted) => counted,
            Completion::WillRetry { .. } => return self.end_lease(done, now_ms),
            Completion::Stale => {
                tracing::info!(
                    event = "stale_outcome",
                    task = done.task,
                    attempt = done.delivery,
                    "an outcome came too late and changed nothing"
                );
                return Ok(());
            }
        };
        self.end_lease(done, now_ms)?;
        for record in counted.backfill_records {
            let page = Backfill {
                task: done.task,
                url: counted.url.clone(),
                depth: counted.depth,
                record,
            };
            self.queue_backfill(counted.crawl, page)?;
        }
        self.announce_finished(counted.crawl, counted.url)?;
        self.apply_feed_tally(counted.crawl, counted.links, now_ms)
    }

    /// A page will not be fetched again for now: whoever listens may hear of it.
    fn announce_finished(&mut self, crawl: CrawlKey, url: String) -> Result<(), FrontierError> {
        let spec = self.frontier.spec(crawl)?;
        self.outgoing
            .push(OutgoingMessage::FinishedPage(FinishedPage {
                app_id: spec.app_id.clone(),
                crawl_id: spec.crawl_id.clone(),
                body: spec.body,
                url,
            }));
        Ok(())
    }

    fn end_lease(&mut self, done: &TaskDone, now_ms: i64) -> Result<(), FrontierError> {
        if let Some((site, clock)) = self.dispatch.ended(done.task, done.clock, now_ms) {
            self.frontier.save_clock(site, &clock)?;
        }
        Ok(())
    }

    /// A lease comes back without an outcome.
    pub(super) fn take_returned(
        &mut self,
        returned: TaskReturned,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let blamed = returned.cause == ReturnCause::KilledWorker;
        let given_back =
            self.frontier
                .give_back(returned.task, returned.delivery, blamed, now_ms)?;
        if given_back == GivenBack::Stale {
            return Ok(());
        }
        let request = match (returned.cause, returned.clock) {
            (ReturnCause::Unstarted, None) => LastRequest::None,
            (ReturnCause::Unstarted | ReturnCause::CutShort, Some(clock)) => {
                LastRequest::Known(clock)
            }
            _ => LastRequest::PossiblyUntilNow,
        };
        let requeued = match given_back {
            GivenBack::Requeued(turn) => Some(turn),
            _ => None,
        };
        let moved = self
            .dispatch
            .returned(returned.task, requeued, request, now_ms);
        if let Some((site, clock)) = moved {
            self.frontier.save_clock(site, &clock)?;
        }
        if given_back == GivenBack::Quarantined {
            self.note_crashed(&returned, now_ms)?;
        }
        Ok(())
    }

    /// The page that killed three workers has no worker left to save it.
    fn note_crashed(&mut self, returned: &TaskReturned, now_ms: i64) -> Result<(), FrontierError> {
        let Some(task) = self.frontier.task(returned.task)? else {
            return Ok(());
        };
        tracing::error!(
            event = "quarantined",
            url = task.url,
            "a page has killed three workers and is not fetched again"
        );
        self.announce_finished(task.crawl, task.url.clone())?;
        self.store_crashed_page(task, returned.delivery, now_ms)
    }

    /// Those that may have been on their way to the store when we ended last. A page that is there
    /// already does not change.
    pub(super) fn store_recent_crashed_pages(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        let since_ms = now_ms - STORE_AWAY_AT_MOST_MS;
        for (task, delivery, at_ms) in self.frontier.crashed_since(since_ms)? {
            if let Some(task) = self.frontier.task(task)? {
                self.store_crashed_page(task, delivery, at_ms)?;
            }
        }
        Ok(())
    }

    fn store_crashed_page(
        &mut self,
        task: TaskSketch,
        delivery: u32,
        at_ms: i64,
    ) -> Result<(), FrontierError> {
        let spec = self.frontier.spec(task.crawl)?;
        let page = crashed_page(spec, task, delivery, at_ms);
        self.store_writes.push(StoreWrite::Page(Box::new(page)));
        Ok(())
    }

    /// What judged links led to beside new tasks.
    pub(super) fn apply_feed_tally(
        &mut self,
        crawl: CrawlKey,
        tally: FeedTally,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.wake(tally.woken);
        if tally.accepted > 0 {
            self.next_site_ms = Some(now_ms);
            self.underserved.add(crawl);
        }
        for page in tally.backfills {
            self.queue_backfill(crawl, page)?;
        }
        Ok(())
    }

    /// A stored page serves a further record.
    pub(super) fn queue_backfill(
        &mut self,
        crawl: CrawlKey,
        page: Backfill,
    ) -> Result<(), FrontierError> {
        let crawl_id = self.frontier.spec(crawl)?.crawl_id.clone();
        self.crawls.backfill_queued(crawl);
        self.store_writes.push(StoreWrite::Backfill(BackfillWrite {
            crawl,
            crawl_id,
            page,
        }));
        Ok(())
    }

    /// The store has applied a page to a record, which is complete now, or whose links go on.
    pub fn backfill_applied(
        &mut self,
        backfill: &BackfillWrite,
        resolved: bool,
        links: &[String],
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.crawls.backfill_applied(backfill.crawl);
        let page = &backfill.page;
        self.frontier.backfill_applied(page.task, &page.record)?;
        if resolved {
            return self.frontier.record_resolved(&page.record, now_ms);
        }
        let records = std::slice::from_ref(&page.record);
        let candidates: Vec<Candidate<'_>> = links
            .iter()
            .map(|url| Candidate {
                url,
                depth: page.depth.saturating_add(1),
                priority: None,
                parent: Some(page.task),
                records,
                attrs: None,
            })
            .collect();
        let tally = self.frontier.feed(backfill.crawl, &candidates, now_ms)?;
        self.apply_feed_tally(backfill.crawl, tally, now_ms)
    }
}
