//! How leases end: outcomes and what they lead to, tasks that come back without an outcome, and
//! backfills (stored pages that are applied to further records).

use serde_json::json;
use webfill_wire::{
    BackoffReason, CrawlKey, Delivery, Evidence, Outcome, RecallScope, ReturnCause,
    SupervisorOutcomes, TaskDone, TaskReturned,
};

use super::Core;
use crate::crawl_registry::crashed_page;
use crate::dispatch::LastRequest;
use crate::effects::FinishedPage;
use crate::effects::OutgoingMessage;
use crate::effects::{BackfillWrite, StoreWrite};
use crate::frontier::{
    Backfill, BackoffBegun, Candidate, Completion, FeedTally, FrontierError, GivenBack, TaskId,
    TaskSketch, Turn, if_pruned,
};
use crate::site_state::until_seconds;

mod steps;
mod taking_back;

/// The dispatcher itself writes pages that killed their workers, after the commit. A crash before
/// the write loses it, so after a start all such pages of this period are written again.
const CRASHED_PAGES_REWRITTEN_MS: i64 = 7 * 86_400_000;

impl Core {
    pub fn handle_outcomes(
        &mut self,
        outcomes: SupervisorOutcomes,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.messages.received += 1;
        let mut pages = 0;
        for done in &outcomes.done {
            let counts = self.complete_task(done, now_ms)?;
            pages += u64::from(counts && done.outcome == Outcome::Ok);
        }
        for returned in outcomes.returned {
            self.take_returned(returned, now_ms)?;
        }
        self.note_recalled(&outcomes.recalled, &outcomes.supervisor);
        let (session, number) = (outcomes.session, outcomes.number);
        self.dispatch
            .note_outcomes(&outcomes.supervisor, session, number, pages);
        Ok(())
    }

    /// Ends a task's lease. Returns whether the outcome is the task's last.
    fn complete_task(&mut self, done: &TaskDone, now_ms: i64) -> Result<bool, FrontierError> {
        if self.is_machines_failure(done, now_ms)? {
            return Ok(false);
        }
        let counted = match self.frontier.complete(done, now_ms)? {
            Completion::Counted(counted) => {
                self.log_end(done, "counted", "the outcome counts")?;
                counted
            }
            Completion::WillRetry => {
                self.counters.retried += 1;
                self.log_end(done, "will_retry", "it failed and is tried again later")?;
                self.end_lease(done, now_ms)?;
                return Ok(false);
            }
            Completion::HandedOn => {
                self.log_end(
                    done,
                    "handed_on",
                    "it says nothing without its scripts, and goes to a browser",
                )?;
                self.end_lease(done, now_ms)?;
                return Ok(false);
            }
            Completion::SiteBackoffs(turn) => {
                self.counters.retried += 1;
                self.log_end(done, "put_back", "its site backs off, it is queued again")?;
                self.end_lease_at_backing_off_site(done, turn, now_ms)?;
                self.begin_backoffs(now_ms)?;
                return Ok(false);
            }
            Completion::Stale => {
                self.log_stale(done)?;
                return Ok(false);
            }
        };
        self.end_lease(done, now_ms)?;
        self.begin_backoffs(now_ms)?;
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
        self.apply_feed_tally(counted.crawl, counted.links, now_ms)?;
        Ok(true)
    }

    /// Logs an outcome whose lease was not in force.
    fn log_stale(&mut self, done: &TaskDone) -> Result<(), FrontierError> {
        self.counters.stale += 1;
        let task = self.frontier.task(done.task)?;
        let crawl_id = match &task {
            Some(task) => {
                let spec = self.frontier.spec(task.crawl);
                if_pruned(spec.map(|spec| Some(spec.crawl_id.clone())), None)?
            }
            None => None,
        };
        tracing::info!(
            event = "stale_outcome",
            task = done.task,
            crawl_id,
            url = task.as_ref().map(|task| task.url.as_str()),
            attempt = done.delivery.number,
            "an outcome came too late and changed nothing"
        );
        Ok(())
    }

    /// A page has its final outcome: it is announced on the firehose.
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
        let mut told = done.clock;
        let site = self.dispatch.site_of(done.task);
        if site.is_some_and(|site| self.frontier.ends_without_requests(site)) {
            // What is queued need not wait until the site may be requested again, which its worker and the
            // cache know.
            told.next_in_ms = 0;
        }
        if let Some((site, clock)) = self.dispatch.end_lease(done.task, told, now_ms) {
            self.frontier.save_clock(site, &clock)?;
        }
        Ok(())
    }

    /// The task of a lease that has ended is queued again.
    fn end_lease_at_backing_off_site(
        &mut self,
        done: &TaskDone,
        turn: Turn,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let request = LastRequest::Known(done.clock);
        let moved = self
            .dispatch
            .return_lease(done.task, Some(turn), request, now_ms);
        if let Some((site, clock)) = moved {
            self.frontier.save_clock(site, &clock)?;
        }
        Ok(())
    }

    /// Sites have begun to rest: what of them is leased and has not started is recalled.
    /// Tasks that failed just before, as it turns out because of the site, are queued again.
    fn begin_backoffs(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        let suspects = self.frontier.take_suspects();
        if !suspects.is_empty() {
            let woken = self.frontier.reopen(&suspects, now_ms)?;
            self.wake(woken);
            self.next_site_ms = Some(now_ms);
        }
        self.take_back_false_pages(now_ms)?;
        for rest in self.frontier.take_begun_backoffs() {
            if rest.until_ms.is_some() {
                *self.counters.backoff.entry(rest.reason).or_default() += 1;
            }
            if let Some(holder) = self.dispatch.holder_of(rest.site) {
                let scope = RecallScope {
                    site: Some(rest.name.clone()),
                    ..RecallScope::default()
                };
                self.recall_from(&holder, &scope);
            }
            self.report_backoff(&rest)?;
        }
        Ok(())
    }

    /// A backoff is logged. A block is a warning, and the application is told.
    fn report_backoff(&mut self, rest: &BackoffBegun) -> Result<(), FrontierError> {
        let spec = self.frontier.spec(rest.crawl)?;
        let (app_id, crawl_id) = (spec.app_id.clone(), spec.crawl_id.clone());
        let Evidence {
            url,
            status_code,
            sign,
            ..
        } = &rest.evidence;
        let Some(until_ms) = rest.until_ms else {
            tracing::warn!(event = "site_unreachable", site = rest.name, reason = %rest.reason, url, status_code, sign, crawl_id, "a site is unreachable: its URLs end without a request");
            return Ok(());
        };
        if rest.reason != BackoffReason::Blocked {
            tracing::info!(event = "site_backs_off", site = rest.name, reason = %rest.reason, until_ms, url, status_code, sign, crawl_id, "a site backs off");
            return Ok(());
        }
        tracing::warn!(
            event = "site_blocks",
            site = rest.name,
            until_ms,
            url,
            status_code,
            sign,
            crawl_id,
            "a site has refused the crawler and backs off"
        );
        let notification = json!({
            "action": "site_backs_off",
            "appid": app_id,
            "crawlid": crawl_id,
            "site": rest.name,
            "reason": rest.reason,
            "until": until_seconds(until_ms),
            "evidence": {"url": url, "status_code": status_code, "sign": sign},
        });
        self.notify(&app_id, &notification);
        Ok(())
    }

    /// Takes back a lease that has no outcome: the task is queued again, unless it has killed three
    /// workers or its crawl is over.
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
        self.counters.returned += 1;
        self.log_returned(&returned, given_back)?;
        if let Some(address) = returned.address {
            self.dispatch.note_address(returned.task, address);
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
            .return_lease(returned.task, requeued, request, now_ms);
        if let Some((site, clock)) = moved {
            self.frontier.save_clock(site, &clock)?;
        }
        if given_back == GivenBack::Quarantined {
            self.note_crashed(&returned, now_ms)?;
        }
        Ok(())
    }

    /// Stores the page of a quarantined task: it has no worker that could save it.
    fn note_crashed(&mut self, returned: &TaskReturned, now_ms: i64) -> Result<(), FrontierError> {
        let Some(task) = self.frontier.task(returned.task)? else {
            return Ok(());
        };
        tracing::error!(
            event = "quarantined",
            task = returned.task,
            crawl_id = self.frontier.spec(task.crawl)?.crawl_id,
            url = task.url,
            attempt = returned.delivery.number,
            "a page has killed three workers and is not fetched again"
        );
        self.announce_finished(task.crawl, task.url.clone())?;
        self.store_crashed_page((returned.task, returned.delivery), task, now_ms)
    }

    /// After a start: stores the recent pages of quarantined tasks again, because the write may
    /// have been lost. A page that is stored already does not change.
    pub(super) fn store_recent_crashed_pages(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        let since_ms = now_ms - CRASHED_PAGES_REWRITTEN_MS;
        for (id, delivery, at_ms) in self.frontier.crashed_since(since_ms)? {
            if let Some(task) = self.frontier.task(id)? {
                if_pruned(self.store_crashed_page((id, delivery), task, at_ms), ())?;
            }
        }
        Ok(())
    }

    fn store_crashed_page(
        &mut self,
        lease: (TaskId, Delivery),
        task: TaskSketch,
        at_ms: i64,
    ) -> Result<(), FrontierError> {
        let spec = self.frontier.spec(task.crawl)?;
        let page = crashed_page(spec, lease, task, at_ms);
        self.store_writes.push(StoreWrite::Page(Box::new(page)));
        Ok(())
    }

    /// Applies what a batch of judged URLs led to beside new tasks: sites in the window that got
    /// tasks, backfills.
    pub(in crate::core) fn apply_feed_tally(
        &mut self,
        crawl: CrawlKey,
        tally: FeedTally,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.wake(tally.woken);
        self.counters.accepted += tally.accepted;
        if tally.accepted + tally.requeued > 0 {
            self.next_site_ms = Some(now_ms);
            self.underserved.add(crawl);
        }
        for page in tally.backfills {
            self.queue_backfill(crawl, page)?;
        }
        Ok(())
    }

    /// Queues the application of a stored page to a further record.
    pub(super) fn queue_backfill(
        &mut self,
        crawl: CrawlKey,
        page: Backfill,
    ) -> Result<(), FrontierError> {
        let spec = self.frontier.spec(crawl)?;
        let backfill = BackfillWrite {
            crawl,
            app_id: spec.app_id.clone(),
            crawl_id: spec.crawl_id.clone(),
            page,
        };
        self.crawls.backfill_queued(crawl);
        self.store_writes.push(StoreWrite::Backfill(backfill));
        Ok(())
    }

    /// The store has applied a page to a record. If the record is complete, its queued tasks are
    /// closed; otherwise the page's links are fed for it.
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
        if_pruned(self.feed(backfill.crawl, &candidates, now_ms), ())
    }

    /// The store has dropped a page that a further record wants: it is fetched again, and the record
    /// travels with its task.
    pub fn fetch_dropped_page(
        &mut self,
        backfill: &BackfillWrite,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.crawls.backfill_applied(backfill.crawl);
        let page = &backfill.page;
        self.frontier.backfill_applied(page.task, &page.record)?;
        // A page that kills workers is not fetched again unless a person asks for it.
        if self.frontier.is_quarantined(page.task)? {
            return Ok(());
        }
        let woken = self.frontier.reopen(&[page.task], now_ms)?;
        self.wake(woken);
        self.next_site_ms = Some(now_ms);
        self.underserved.add(backfill.crawl);
        Ok(())
    }

    /// Judges URLs that came by another way than a request or an outcome.
    pub fn feed(
        &mut self,
        crawl: CrawlKey,
        candidates: &[Candidate<'_>],
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let tally = self.frontier.feed(crawl, candidates, now_ms)?;
        self.apply_feed_tally(crawl, tally, now_ms)
    }
}
