//! Prunes crawls on request: those that are over and have nothing in progress are detached immediately. Their rows
//! are deleted in slices of a few milliseconds, alternating with other work. The answer does not wait for the
//! deletion, which continues even after a crash.

use std::collections::BTreeSet;

use serde_json::json;
use webfill_api::{PruneAction, Refusal, Spider};
use webfill_wire::CrawlKey;

use super::crawl_answers::{action_answer, unknown_crawl_refusal};
use super::reply::Reply;
use crate::core::{Core, crawl_writes};
use crate::frontier::FrontierError;

impl Core {
    pub(super) fn prune(
        &mut self,
        action: &PruneAction,
        now_ms: i64,
    ) -> Result<Reply, FrontierError> {
        let subject = &action.subject;
        let crawl_id = subject.crawl_id.as_deref();
        if let Some(refusal) = self.prepare_pruning(&subject.app_id, crawl_id, now_ms)? {
            return Ok(refusal.into());
        }
        let older_ms = i64::try_from(action.older_than_s.saturating_mul(1_000));
        let since_ms = now_ms.saturating_sub(older_ms.unwrap_or(i64::MAX));
        let in_use = self.crawls_in_use();
        let detached = self.cx.frontier.pruning().detach_crawls(
            &subject.app_id,
            crawl_id,
            since_ms,
            &in_use,
        )?;
        for crawl in &detached.crawls {
            self.cx.crawls.unregister(*crawl);
        }
        if !detached.crawls.is_empty() {
            // One walk deletes both these crawls and those whose deletion has already begun.
            self.pruning = self.cx.frontier.pruning().begin_walk()?;
        }
        let more = json!({
            "server_time": self.cx.wall_ms(now_ms) / 1_000,
            "total_crawls": detached.crawls.len(),
            "total_tasks": detached.tasks,
            "has_more": detached.has_more,
        });
        let spider = subject.spider.unwrap_or(Spider::Link);
        Ok(Reply::Now(action_answer("prune", subject, spider, more)))
    }

    /// Returns why a named crawl cannot be pruned. If it can, queues a last write of its state to the store.
    fn prepare_pruning(
        &mut self,
        app_id: &str,
        crawl_id: Option<&str>,
        now_ms: i64,
    ) -> Result<Option<Refusal>, FrontierError> {
        let Some(crawl_id) = crawl_id else {
            return Ok(None);
        };
        let Some(crawl) = self.cx.frontier.crawls().find(app_id, crawl_id)? else {
            return unknown_crawl_refusal(&mut self.cx, app_id, crawl_id).map(Some);
        };
        if let Some(why) = self.in_use_reason(crawl) {
            return Ok(Some(Refusal::temporary("$.crawlid", why)));
        }
        let status = self.cx.frontier.crawls().status(crawl)?;
        let left = status.queued + status.leased;
        if left > 0 {
            let why =
                format!("{left} of its URLs are not done: wait for them, or stop the crawl first");
            return Ok(Some(Refusal::new("$.crawlid", why)));
        }
        crawl_writes::queue_crawl_write(&mut self.cx, crawl, now_ms)?;
        Ok(None)
    }

    /// Crawls with operations in progress that use their keys. They are not pruned until the operations are done.
    fn crawls_in_use(&self) -> BTreeSet<CrawlKey> {
        let closing = self.closing.crawls();
        let reopening = self.reopening.crawls();
        let in_use = closing
            .chain(reopening)
            .chain(self.waiting.crawls_being_paused());
        in_use.chain(self.watches.crawls_under_way()).collect()
    }

    fn in_use_reason(&self, crawl: CrawlKey) -> Option<&'static str> {
        let is_it = |other: CrawlKey| other == crawl;
        if self.closing.contains(crawl) {
            return Some("being closed: try again later");
        }
        if self.reopening.crawls().any(is_it) {
            return Some("finished tasks are being re-queued: try again later");
        }
        if self.waiting.crawls_being_paused().any(is_it) {
            return Some("being paused: try again later");
        }
        let is_running = self.watches.crawls_under_way().any(is_it);
        is_running.then_some("a run of its watch is in progress: try again when it has ended")
    }

    /// Deletes the next part of the rows of crawls that are being pruned.
    pub(in crate::core) fn advance_pruning(&mut self) -> Result<(), FrontierError> {
        let Some(walk) = &mut self.pruning else {
            return Ok(());
        };
        self.cx.frontier.pruning().delete_slice(walk)?;
        if walk.is_over() {
            tracing::info!(event = "pruned", "crawls pruned");
            self.pruning = self.cx.frontier.pruning().begin_walk()?;
        }
        Ok(())
    }
}
