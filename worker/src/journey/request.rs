//! Requests a page, and processes the answer: recognises blocks, sets the time of the site's next request, and puts the
//! fetched data into the result.

use std::sync::Arc;

use webfill_urls::Url;
use webfill_wire::{CrawlSettings, Feature, Lane, Outcome, Task};

use super::redirects;
use super::state::Journey;
use super::turns::TakenTurn;
use super::visit::{Request, Visit};
use crate::archive::Exchange;
use crate::block_outcome::{self, EarlierAnswers};
use crate::blocks::Sign;
use crate::conditions;
use crate::extract::FetchedPage;
use crate::fetch::{Fetched, PageRequest};
use crate::memory::MemoryPermit;
use crate::permits::Denied;
use crate::politeness::Answered;
use crate::sites::Turn;
use crate::task_result::TaskResult;

/// How many times a task is retried because its answer may be a block. Without this bound, a site that answers
/// differently each time would cause endless retries.
const MOST_SUSPICIONS: usize = 3;

impl Journey {
    /// Requests a page, now that it is the site's turn.
    pub(super) async fn request_page(
        &self,
        visit: &Visit<'_>,
        request: Request,
        (task, crawl): (&Task, &CrawlSettings),
        conditions: &[(String, String)],
        turn: &mut TakenTurn<'_>,
    ) -> Result<Fetched, Denied> {
        let user_agent = self.user_agent_of(crawl);
        let headers = self.extra_headers(visit.url, conditions);
        let asked = PageRequest {
            url: visit.url,
            user_agent: user_agent.as_deref(),
            headers: &headers,
            sitemaps: crawl.needs_feature(Feature::Sitemaps),
            is_named_sitemap: crate::sitemaps::is_named(task, crawl),
            next_after: request.delay,
        };
        self.gate
            .fetch_page(visit.permit, asked, &mut turn.memory)
            .await
    }

    /// Builds the page from its answer, allows the next request to the site, and waits until request and answer are
    /// archived.
    pub(super) async fn take_answer(
        &self,
        url: &Url,
        request: Request,
        (task, crawl): (Task, Arc<CrawlSettings>),
        mut fetched: Fetched,
        turn: &mut TakenTurn<'_>,
    ) -> FetchedPage {
        let memory = turn.memory.take();
        let exchange = fetched.exchange.take();
        let mut page = self.build_page(task, crawl, url, request, fetched, memory);
        self.turns.end(&page.result.task.site).await;
        if self.archive(exchange).await {
            page.memory.set(page.body.capacity());
        }
        page
    }

    fn build_page(
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
        let likeness = self.repeated_pages.borrow().challenge_like_answer(&site);
        let mut result = TaskResult::of_unfetched(task, crawl, Outcome::NetworkError);
        result.likeness = likeness.filter(|_| is_compared);
        result.started_at_ms = request.started.wall_ms;
        self.note_answer(&site, request, &fetched);
        result.elapsed = request.started.instant.elapsed();
        let turn = Turn::Page(request.delay);
        result.next_start = self.sites.borrow().next_start(&site, turn);
        let spacing = self.sites.borrow().spacing(&site, request.delay);
        result.delay = Some(spacing);
        let asked_with = self.headers.as_text(url);
        let documents = self.documents.as_ref();
        result.validators =
            conditions::response_validators(&fetched, &result, documents, &asked_with);
        let mut result = result.with_fetched(&mut fetched);
        self.counts
            .note_page_fetched(&result, request.started.instant);
        if let Some(sign) = &block {
            block_outcome::end_as_blocked(&mut result, sign);
        }
        if let Some(target) = result.redirect.take() {
            redirects::note_redirect(&mut result, url, &target);
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

    /// Recognises a block. This must come before the time of the site's next request is set, because a block delays it.
    fn recognise_block(
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
            // Pages for the browser are not compared: many applications serve browsers the same short page for all
            // URLs.
            compares_pages: lane == Lane::Http,
            may_wait: blocks.count() < MOST_SUSPICIONS,
        };
        block_outcome::find_block_in_response(fetched, url, Some(before))
    }

    /// Sets the time of the site's next request after an answer.
    pub(super) fn note_answer(&self, site: &str, request: Request, fetched: &Fetched) {
        // A request to an unsafe address is refused before it is sent.
        if fetched.outcome == Outcome::UnsafeAddress {
            return;
        }
        self.turns.note_use(site);
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

    /// Waits until a request and its answer are archived. Returns false if nothing is to be archived.
    pub(super) async fn archive(&self, exchange: Option<Box<Exchange>>) -> bool {
        let (Some(archive), Some(exchange)) = (&self.archive, exchange) else {
            return false;
        };
        archive.write_exchange(exchange).await;
        true
    }

    /// The user agent of the crawl, if the crawl adds a text of its own to it.
    pub(super) fn user_agent_of(&self, crawl: &CrawlSettings) -> Option<String> {
        let wanted = crawl.useragent.as_deref()?;
        Some(self.politeness.user_agent_of(Some(wanted)))
    }

    /// The headers sent with a page's request in addition to those of its site: its mapping's headers and the given
    /// conditions.
    fn extra_headers(&self, url: &Url, conditions: &[(String, String)]) -> Vec<(String, String)> {
        let mappings = self.mappings.borrow();
        let of_mapping = mappings
            .as_ref()
            .map(|mappings| mappings.find_headers(url.as_str()));
        let mut headers = of_mapping.unwrap_or_default().to_vec();
        headers.extend_from_slice(conditions);
        headers
    }
}
