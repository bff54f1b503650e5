//! The steps after the answer to a page's request: blocks are recognised, the site's clock moves, and the result takes
//! over the fetched data.

use std::sync::Arc;
use std::time::Duration;

use webfill_urls::Url;
use webfill_wire::{CrawlSettings, Lane, Outcome, Task};

use super::redirects;
use super::state::Journey;
use crate::archive::Exchange;
use crate::block_outcome::{self, EarlierAnswers};
use crate::blocks::Sign;
use crate::conditions;
use crate::extract::FetchedPage;
use crate::fetch::Fetched;
use crate::memory::MemoryPermit;
use crate::now::Now;
use crate::politeness::{Answered, PageKey};
use crate::sites::Turn;
use crate::task_result::TaskResult;

/// How often a task is retried because its answer may be a block. Without this bound, a site that answers differently
/// each time would cause endless retries.
const MOST_SUSPICIONS: usize = 3;

/// A request: when it started, and the delay it keeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) started: Now,
    pub(super) delay: Duration,
    pub(super) page: PageKey,
}

impl Request {
    pub(super) fn now(url: &Url, delay: Duration) -> Request {
        Request {
            started: Now::read(),
            delay,
            page: PageKey::from_url(url.as_str()),
        }
    }
}

impl Journey {
    pub(super) fn build_page(
        &self,
        task: Task,
        crawl: Arc<CrawlSettings>,
        url: &Url,
        request: Request,
        mut fetched: Fetched,
        memory: MemoryPermit,
    ) -> FetchedPage {
        let site = task.site.clone();
        let block = self.recognise_block(&mut fetched, url, &task, crawl.lane);
        let is_compared = fetched.outcome == Outcome::Ok && crawl.lane == Lane::Http;
        let likeness = self.repeated_pages.borrow().likeness(&site);
        let mut result = TaskResult::unfetched(task, crawl, Outcome::NetworkError);
        result.likeness = likeness.filter(|_| is_compared);
        result.started_at_ms = request.started.wall_ms;
        self.note_answer(&site, request, &fetched);
        result.elapsed = request.started.instant.elapsed();
        result.next_start = self
            .sites
            .borrow()
            .next_start(&site, Turn::Page(request.delay));
        let spacing = self.sites.borrow().spacing(&site, request.delay);
        result.delay = Some(spacing);
        let asked_with = self.headers.as_text(url);
        let documents = self.documents.as_ref();
        result.validators = conditions::validators(&fetched, &result, documents, &asked_with);
        let mut result = result.with_fetched(&mut fetched);
        self.counts
            .note_page_fetched(&result, request.started.instant);
        if let Some(sign) = &block {
            block_outcome::end_as_blocked(&mut result, sign);
        }
        if let Some(target) = result.redirect.take() {
            redirects::take(&mut result, url, &target);
        }
        FetchedPage {
            result,
            body: fetched.body,
            document: None,
            is_rendered: false,
            is_candidate: false,
            answer: None,
            memory,
        }
    }

    /// Recognises a block, before the site's clock moves.
    pub(super) fn recognise_block(
        &self,
        fetched: &mut Fetched,
        url: &Url,
        task: &Task,
        lane: Lane,
    ) -> Option<Sign> {
        let attempts = task.failed_attempts.iter();
        let blocks = attempts.filter(|attempt| attempt.outcome == Outcome::Blocked);
        let before = EarlierAnswers {
            repeated: &mut self.repeated_pages.borrow_mut(),
            site: &task.site,
            // Pages for the browser are not compared: many applications serve it the same short page for all URLs.
            compares_pages: lane == Lane::Http,
            may_wait: blocks.count() < MOST_SUSPICIONS,
        };
        block_outcome::find_block_in_response(fetched, url, Some(before))
    }

    /// Moves the site's clock.
    pub(super) fn note_answer(&self, site: &str, request: Request, fetched: &Fetched) {
        // A request to an unsafe address is refused before it is sent.
        if fetched.outcome == Outcome::UnsafeAddress {
            return;
        }
        self.note_use(site);
        let answered = Answered {
            started: request.started,
            at: fetched.answered_at,
            answer: fetched.answer,
            page: Some(request.page),
        };
        let pace = self.politeness.pace(request.delay);
        self.sites
            .borrow_mut()
            .note_page_answer(site, answered, pace);
    }

    /// Waits until an exchange is archived. False if there was none.
    pub(super) async fn archive(&self, exchange: Option<Box<Exchange>>) -> bool {
        let (Some(archive), Some(exchange)) = (&self.archive, exchange) else {
            return false;
        };
        archive.write_exchange(exchange).await;
        true
    }
}
