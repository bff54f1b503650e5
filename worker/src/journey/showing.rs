//! A page is shown in the browser before it is read, if its crawl wants that. What it asks for then is
//! asked of its site like the page itself: robots.txt, the site's clock, the gate.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use webfill_startup::Fault;
use webfill_urls::Url;
use webfill_wire::{CrawlSettings, Lane, Outcome, Task};

use super::{Journey, Request};
use crate::browser::{
    self, Answer, Browser, Page, Part, PartRequest, Rendered, Unread, Unrendered, fresh_for,
    is_received,
};
use crate::charset::{self, Kind};
use crate::extract::FetchedPage;
use crate::fetch::Fetched;
use crate::permission::Permission;
use crate::permits::{Denied, Permit};
use crate::sites::Turn;
use crate::slots::Slot;

/// Beyond its delay a site may want to be left alone (`Retry-After`); a page does without what it would
/// have to wait for longer than this.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);

/// A page that was handed out so often, and whose browser was gone again, is to blame.
const MOST_DELIVERIES: u32 = 8;

/// The task must be given back: it was called back, or its browser is gone.
pub(super) struct GivenBack(pub Box<Task>);

impl Journey {
    /// The browser, if a crawl's pages are shown in one.
    pub(super) fn browser_for(&self, crawl: &CrawlSettings) -> Option<&Browser> {
        let browser = self.browser.as_ref();
        browser.filter(|_| crawl.lane == Lane::Browser)
    }

    /// Waits until the site may be asked, and then for a place in the browser, which bounds how many
    /// bodies wait to be shown. `None` if the task is called back.
    pub(super) async fn take_place<'a>(
        &self,
        browser: &'a Browser,
        turn: Turn,
        site: &str,
        permit: &Permit,
    ) -> Option<Slot<'a>> {
        self.wait_for(turn, site, permit).await;
        let mut place = std::pin::pin!(browser.place(permit.priority()));
        while !self.is_called_back(permit) {
            tokio::select! {
                place = &mut place => return (!self.is_called_back(permit)).then_some(place),
                () = self.called_back.notified() => {}
            }
        }
        None
    }

    /// Shows a page, and goes on with what its scripts have made of it.
    pub(super) async fn show(
        &self,
        browser: &Browser,
        mut page: FetchedPage,
        url: &Url,
        request: Request,
        permit: &Permit,
    ) -> Result<FetchedPage, GivenBack> {
        let content_type = page.ending.content_type.as_deref();
        let text = charset::decode(&page.body, content_type, Kind::Html).into_owned();
        page.body = Vec::new();
        let part_bytes = Cell::new(0);
        let rendered = {
            let (task, crawl) = (&page.ending.task, &page.ending.crawl);
            let own_agent = self.politeness.user_agent();
            let view = Page {
                url,
                site: &task.site,
                text: &text,
                user_agent: crawl.useragent.as_deref().unwrap_or(&own_agent),
            };
            let fetch = async |request: PartRequest| {
                self.part(browser, task, crawl, permit, request, &part_bytes)
                    .await
            };
            browser.render(&view, fetch).await
        };
        let ending = &mut page.ending;
        ending.body_bytes += part_bytes.get();
        ending.elapsed = request.started_at.elapsed();
        ending.next_start = self
            .sites
            .borrow()
            .next_start(&ending.task.site, Turn::Page(request.delay));
        match rendered {
            Ok(Rendered::Text(text)) => {
                page.body = text.into_bytes();
                page.is_rendered = true;
                Ok(page)
            }
            Ok(Rendered::MovedTo(target)) => {
                ending.redirect = Some(target);
                Ok(ended(
                    page,
                    Outcome::Redirected,
                    "its scripts went to another page",
                ))
            }
            Err(why) => self.not_shown(page, why),
        }
    }

    fn not_shown(&self, page: FetchedPage, why: Unrendered) -> Result<FetchedPage, GivenBack> {
        match why {
            Unrendered::Unread(Unread::Page(fault)) => {
                let (outcome, reason) = match fault {
                    browser::Fault::Crashed => (Outcome::Crashed, "its tab crashed"),
                    browser::Fault::TookTooLong => {
                        (Outcome::ExtractError, "its scripts ran for too long")
                    }
                    browser::Fault::TooLarge => {
                        (Outcome::TooLarge, "its scripts made it too large")
                    }
                };
                Ok(ended(page, outcome, reason))
            }
            Unrendered::Unread(Unread::BrowserGone)
                if page.ending.task.delivery >= MOST_DELIVERIES =>
            {
                Ok(ended(
                    page,
                    Outcome::Crashed,
                    "the browser was gone, again and again",
                ))
            }
            Unrendered::Unread(Unread::BrowserGone | Unread::Denied) => {
                Err(GivenBack(page.ending.task.into()))
            }
            Unrendered::NoBrowser(why) => {
                // It is said once; the process ends with it.
                let _ = self.broken.try_send(Fault::error(why));
                Err(GivenBack(page.ending.task.into()))
            }
        }
    }

    /// Gets what a page asks for.
    async fn part(
        &self,
        browser: &Browser,
        task: &Task,
        crawl: &CrawlSettings,
        permit: &Permit,
        request: PartRequest,
        bytes: &Cell<u64>,
    ) -> Result<Part, Denied> {
        if let Some(part) = browser.kept(&request) {
            return Ok(part);
        }
        let site = &task.site;
        let (delay, turn) = match self.permission(task, &request.url, permit).await {
            Permission::Allowed { delay, turn } => (delay, turn),
            Permission::Refused(_) => return Ok(Part::None),
            Permission::NotAsked => return Err(Denied::NotStarted),
            Permission::CutShort => return Err(Denied::CutShort),
        };
        let next = self.sites.borrow().next_start(site, turn);
        if next.is_some_and(|next| next > Instant::now() + delay + LONGEST_BACK_OFF) {
            return Ok(Part::None);
        }
        let slot = self.take_turn(turn, site, permit).await;
        let slot = slot.ok_or(Denied::NotStarted)?;
        let asked = Request::now(delay);
        let agent = crawl.useragent.as_deref();
        let fetched = self.gate.part(permit, &request, agent).await?;
        drop(slot);
        self.note_answer(site, asked, &fetched);
        self.end_turn(site).await;
        tracing::debug!(
            event = "part",
            url = request.url.as_str(),
            crawl_id = crawl.crawl_id,
            outcome = %fetched.outcome,
            "a page got what it asked for"
        );
        bytes.set(bytes.get() + fetched.body.len() as u64);
        Ok(self.answer(browser, &request, fetched))
    }

    fn answer(&self, browser: &Browser, request: &PartRequest, fetched: Fetched) -> Part {
        let Some(status) = fetched.status_code.filter(|_| has_answer(&fetched)) else {
            return Part::None;
        };
        let text = |name: &str| {
            fetched
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        let fresh_for = fresh_for(status, text("cache-control"), request.is_script);
        let headers = fetched.headers.iter().filter_map(|(name, value)| {
            let value = value.to_str().ok().filter(|_| is_received(name.as_str()))?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        let answer = Rc::new(Answer {
            status,
            headers: headers.collect(),
            fresh_for,
            body: fetched.body,
        });
        browser.keep(request, &answer);
        Part::Answer(answer)
    }
}

/// Whether a page is shown: HTML that came as it should.
pub(super) fn is_shown(page: &FetchedPage) -> bool {
    page.ending.outcome == Outcome::Ok
        && charset::media_type(page.ending.content_type.as_deref(), &page.body) == Kind::Html
}

/// Whether the server's answer is the whole one.
fn has_answer(fetched: &Fetched) -> bool {
    use Outcome::{HttpError, NotModified, Ok, Redirected};
    matches!(fetched.outcome, Ok | NotModified | Redirected | HttpError)
}

fn ended(mut page: FetchedPage, outcome: Outcome, reason: &str) -> FetchedPage {
    page.ending.outcome = outcome;
    page.ending.error = Some(reason.into());
    page
}
