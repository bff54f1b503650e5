//! Rendering: some pages are opened in Chromium before their extraction. These are the pages of a crawl in the lane
//! `browser`, pages where a mapping or a setting requires it, and pages that show nothing without their scripts
//! ([`scripted`](super::scripted)).
//!
//! The subresources that a page's scripts request (scripts, data) are fetched here, one after another. The same rules
//! apply to them as to the page: robots.txt, the delay of the site, and the gate.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use webfill_service::Fault;
use webfill_wire::{CrawlSettings, Outcome, Task};

use super::giving_back::GivenBack;
use super::turns::Turns;
use super::visit::{Reading, Request, Visit};
use crate::block_outcome;
use crate::blocks::Sign;
use crate::browser::{
    Answer, Browser, Page, PageFault, ReadError, RenderError, Rendered, Subresource,
    SubresourceRequest, fresh_duration, is_received_header,
};
use crate::charset::{self, Kind};
use crate::extract::FetchedPage;
use crate::fetch::Fetched;
use crate::fetch_permits::FetchPermit;
use crate::permission::Permission;
use crate::permits::Denied;
use crate::politeness::{self, Answered};
use crate::sites::Turn;

/// If a site demands a pause (`Retry-After`) that exceeds its usual delay by more than this, the subresource is
/// refused, and the page is rendered without it.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);

/// If the browser dies at an earlier delivery (hand-out) of a task than this one, the task is retried. From this
/// delivery on, the task ends as `crashed`.
const MAX_DELIVERIES: u32 = 8;

/// Waits until the site may be requested and the name of its host is looked up, then for a tab of the browser. So the
/// number of tabs bounds the bodies that wait to be rendered. `None` if the task is recalled or the worker drains.
pub(super) async fn take_tab<'b>(
    turns: &Turns,
    browser: &'b Browser,
    turn: Turn,
    visit: &Visit<'_>,
) -> Option<FetchPermit<'b>> {
    let permit = visit.permit;
    turns.wait_for_clock(turn, visit.site, permit).await;
    turns.look_up_host(visit.url, permit).await;
    let tab = browser.take_tab(permit.priority());
    turns.interrupt.wait_unless_called_back(permit, tab).await
}

impl Reading<'_> {
    /// Renders a page and replaces its body with the document after its scripts ran.
    pub(super) async fn render(
        &self,
        browser: &Browser,
        mut page: FetchedPage,
    ) -> Result<FetchedPage, GivenBack> {
        let (journey, request) = (self.journey, self.request);
        let content_type = page.result.content_type.as_deref();
        let text = charset::decode(&page.body, content_type, Kind::Html).into_owned();
        page.body = Vec::new();
        // The number of tabs already bounds the texts of pages being rendered. If pages kept their memory permits while
        // their subresources wait for permits, they could wait for each other forever.
        drop(page.memory.take());
        let subresource_bytes = Cell::new(0);
        let rendered = {
            let (task, crawl) = (&page.result.task, &page.result.crawl);
            let user_agent = journey.politeness.user_agent_of(crawl.useragent.as_deref());
            let view = Page {
                url: self.visit.url,
                site: &task.site,
                text: &text,
                user_agent: &user_agent,
            };
            let fetch = async |request: SubresourceRequest| {
                self.fetch_subresource(browser, (task, crawl), request, &subresource_bytes)
                    .await
            };
            browser.render(&view, fetch).await
        };
        let result = &mut page.result;
        let block = self.find_late_block(&rendered);
        result.body_bytes += subresource_bytes.get();
        result.elapsed = request.started.instant.elapsed();
        let turn = Turn::Page(request.delay);
        result.next_start = journey.sites.borrow().next_start(&result.task.site, turn);
        if let Some(sign) = block {
            block_outcome::end_as_blocked(result, &sign);
            return Ok(page);
        }
        match rendered {
            Ok(Rendered::Text(text)) => {
                page.body = text.into_bytes();
                page.memory.set(page.body.capacity());
                page.is_rendered = true;
                // The rendered document may change although the page has not, so a 304 would prove nothing.
                page.result.validators = None;
                Ok(page)
            }
            Ok(Rendered::MovedTo(target)) => {
                result.redirect = Some(target);
                Ok(end_page(
                    page,
                    Outcome::Redirected,
                    "its scripts went to another page",
                ))
            }
            Err(why) => self.result_of_error(page, why),
        }
    }

    /// Recognises a page that turned out to be a block in the browser. The site's delay was counted as for a served
    /// page, so it is now counted again as for a block.
    fn find_late_block(&self, rendered: &Result<Rendered, RenderError>) -> Option<Sign> {
        let Reading {
            journey,
            visit: Visit { site, url, .. },
            request,
        } = *self;
        let sign = match rendered {
            Ok(Rendered::Text(document)) => block_outcome::find_block_in_document(url, document),
            Ok(Rendered::MovedTo(target)) => block_outcome::find_block_in_navigation(url, target),
            Err(_) => None,
        }?;
        let overloaded = politeness::Answer::Overloaded { retry_after: None };
        let pace = journey.politeness.pace(request.delay);
        let answered = Answered {
            started: request.started,
            at: Instant::now(),
            answer: overloaded,
            page: Some(request.page),
        };
        journey
            .sites
            .borrow_mut()
            .note_page_answer(site, answered, pace);
        Some(sign)
    }

    fn result_of_error(
        &self,
        page: FetchedPage,
        why: RenderError,
    ) -> Result<FetchedPage, GivenBack> {
        match why {
            RenderError::Read(ReadError::Page(fault)) => {
                let (outcome, reason) = match fault {
                    PageFault::Crashed => (Outcome::Crashed, "its tab crashed"),
                    PageFault::TookTooLong => {
                        (Outcome::ExtractError, "its scripts ran for too long")
                    }
                    PageFault::TooLarge => (Outcome::TooLarge, "its scripts made it too large"),
                };
                Ok(end_page(page, outcome, reason))
            }
            RenderError::Read(ReadError::BrowserGone)
                if page.result.task.delivery.number >= MAX_DELIVERIES =>
            {
                Ok(end_page(
                    page,
                    Outcome::Crashed,
                    "the browser died repeatedly",
                ))
            }
            RenderError::Read(ReadError::BrowserGone | ReadError::Denied) => {
                Err(GivenBack(page.result.task.into()))
            }
            RenderError::NoBrowser(why) if !self.journey.needs_browser => {
                tracing::warn!(
                    event = "no_browser",
                    why,
                    "the browser does not start: pages that need it are kept as they come"
                );
                self.journey.scripted_pages.borrow_mut().note_broken(why);
                Err(GivenBack(page.result.task.into()))
            }
            RenderError::NoBrowser(why) => {
                // If the channel is full, another fault was reported before, and the process is already ending.
                let _ = self.journey.broken.try_send(Fault::error(why));
                Err(GivenBack(page.result.task.into()))
            }
        }
    }

    /// Fetches a subresource, or takes it from the cache.
    async fn fetch_subresource(
        &self,
        browser: &Browser,
        (task, crawl): (&Task, &CrawlSettings),
        request: SubresourceRequest,
        bytes: &Cell<u64>,
    ) -> Result<Subresource, Denied> {
        if let Some(cached) = browser.cached_answer(&request) {
            return Ok(cached);
        }
        let (journey, permit, site) = (self.journey, self.visit.permit, &*task.site);
        let (permission, _) = journey.check_permission(task, &request.url, permit).await;
        let (delay, turn) = match permission {
            Permission::Allowed { delay, turn } => (delay, turn),
            Permission::Refused { .. } => return Ok(Subresource::None),
            Permission::NotAsked => return Err(Denied::NotStarted),
            Permission::CutShort => return Err(Denied::CutShort),
        };
        let next = journey.sites.borrow().next_start(site, turn);
        if next.is_some_and(|next| next > Instant::now() + delay + LONGEST_BACK_OFF) {
            return Ok(Subresource::None);
        }
        let turn = journey.turns.take(turn, site, &request.url, permit).await;
        let mut turn = turn.ok_or(Denied::NotStarted)?;
        let asked = Request::begin(&request.url, delay);
        let agent = journey.user_agent_of(crawl);
        let asking =
            journey
                .gate
                .fetch_subresource(permit, &request, agent.as_deref(), &mut turn.memory);
        let mut fetched = asking.await?;
        journey.archive(fetched.exchange.take()).await;
        drop(turn);
        journey.note_answer(site, asked, &fetched);
        journey.turns.end(site).await;
        tracing::debug!(
            event = "part",
            url = request.url.as_str(),
            crawl_id = crawl.crawl_id,
            outcome = %fetched.outcome,
            "a subresource of a page was answered"
        );
        bytes.set(bytes.get() + fetched.body.len() as u64);
        Ok(cache_subresource(browser, &request, fetched))
    }
}

fn cache_subresource(
    browser: &Browser,
    request: &SubresourceRequest,
    fetched: Fetched,
) -> Subresource {
    let Some(status) = fetched.status_code.filter(|_| has_answer(&fetched)) else {
        return Subresource::None;
    };
    let text = |name: &str| {
        fetched
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let fresh_for = fresh_duration(status, text("cache-control"), request.is_script);
    let headers = fetched.headers.iter().filter_map(|(name, value)| {
        let value = value
            .to_str()
            .ok()
            .filter(|_| is_received_header(name.as_str()))?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    let answer = Rc::new(Answer {
        status,
        headers: headers.collect(),
        fresh_for,
        body: fetched.body,
    });
    browser.cache(request, &answer);
    Subresource::Answer(answer)
}

/// Whether a page can be rendered: only HTML pages with the outcome `ok` are.
pub(super) fn is_rendered_in_browser(page: &FetchedPage) -> bool {
    page.result.outcome == Outcome::Ok
        && charset::content_kind(page.result.content_type.as_deref(), &page.body) == Kind::Html
}

/// Whether the server's response is complete.
fn has_answer(fetched: &Fetched) -> bool {
    use Outcome::{HttpError, NotModified, Ok, Redirected};
    matches!(fetched.outcome, Ok | NotModified | Redirected | HttpError)
}

fn end_page(mut page: FetchedPage, outcome: Outcome, reason: &str) -> FetchedPage {
    page.result.outcome = outcome;
    page.result.error = Some(reason.into());
    page
}
