//! How a task ends: its page goes to the extraction, or its result goes directly to the saver.

use std::sync::Arc;

use tokio::sync::oneshot;
use webfill_urls::Url;
use webfill_wire::{CrawlSettings, Evidence, Outcome, Task};

use super::sitemaps::result_with_sitemaps;
use super::state::Journey;
use super::turns::TakenTurn;
use crate::extract::{FetchedPage, Work, end_if_redirecting};
use crate::snapshot;
use crate::task_result::TaskResult;

impl Journey {
    pub(super) async fn send_to_extraction(&self, mut page: FetchedPage) {
        let is_ok = page.result.outcome == Outcome::Ok;
        if !is_ok || (page.body.is_empty() && page.document.is_none()) {
            if is_ok {
                page.result.body = page.result.crawl.body.then(|| "".into());
                // An empty body might be a sitemap that is still being written, so the page's next request must be
                // unconditional.
                page.result.validators = None;
                if let Ok(url) = Url::parse(&page.result.task.url) {
                    end_if_redirecting(&mut page.result, &url, None);
                }
            }
            page.result.snapshot = snapshot::snapshot_without_page(&page.result);
            return self.send_to_saver(page.result).await;
        }
        // The channel closes only after the last runner is done.
        let _ = self.extraction.send(Work::Page(Box::new(page))).await;
    }

    /// Has a page read by the extraction thread, which returns its result. The turn ends when the thread's queue has
    /// taken the page. `None` if this process ends.
    pub(super) async fn extract(
        &self,
        mut page: FetchedPage,
        turn: Option<TakenTurn<'_>>,
    ) -> Option<TaskResult> {
        let (answer, read) = oneshot::channel();
        page.answer = Some(answer);
        // The channel closes only after the last runner is done.
        let _ = self.extraction.send(Work::Page(Box::new(page))).await;
        drop(turn);
        read.await.ok()
    }

    /// Ends a task whose page may not be fetched. The evidence is that of a failed request for robots.txt, if there was
    /// one.
    pub(super) async fn end_refused(
        &self,
        site: &str,
        task: Task,
        crawl: Arc<CrawlSettings>,
        outcome: Outcome,
        evidence: Option<Evidence>,
    ) {
        let mut result = TaskResult::of_unfetched(task, crawl, outcome);
        result.next_start = self
            .sites
            .borrow()
            .next_start_after_refusal(site, evidence.is_some());
        result.error = evidence.as_ref().map(|evidence| evidence.sign.clone());
        result.evidence = evidence;
        self.send_to_saver(result).await;
    }

    /// Ends the task that stands for the sitemaps of an origin.
    pub(super) async fn end_with_sitemaps(
        &self,
        site: &str,
        task: Task,
        crawl: Arc<CrawlSettings>,
        named: Vec<String>,
    ) {
        let mut result = result_with_sitemaps(task, crawl, named);
        result.next_start = self.sites.borrow().next_start_after_refusal(site, false);
        self.send_to_saver(result).await;
    }

    pub(super) async fn send_to_saver(&self, mut result: TaskResult) {
        if result.memory.is_none() {
            let memory = self.results_memory.take(result.memory_bytes()).await;
            result.memory = Some(memory);
        }
        let _ = self.results.send(result).await;
    }
}
