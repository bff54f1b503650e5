//! Ends tasks: a page goes to the extraction, or a result goes directly to the saver.

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
        // Sending cannot fail: the channel closes only after the last runner of a site is done.
        let _ = self.extraction.send(Work::Page(Box::new(page))).await;
    }

    /// Lets the extraction thread read a page, and returns the result; `None` if this process ends. The turn at the
    /// site ends as soon as the page is in the thread's queue.
    pub(super) async fn extract(
        &self,
        mut page: FetchedPage,
        turn: Option<TakenTurn<'_>>,
    ) -> Option<TaskResult> {
        let (answer, read) = oneshot::channel();
        page.answer = Some(answer);
        // Sending cannot fail: the channel closes only after the last runner of a site is done.
        let _ = self.extraction.send(Work::Page(Box::new(page))).await;
        drop(turn);
        read.await.ok()
    }

    /// Ends a task whose page may not be fetched. If the reason is a failed request for robots.txt, that failure is the
    /// evidence.
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

    /// Ends the task of a robots.txt: its result lists the sitemaps of the origin.
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
