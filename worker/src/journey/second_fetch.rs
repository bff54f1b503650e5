//! The second fetch: a page that is compared by its text is fetched twice before there is a version of it. Where
//! the two differ, it differs at each fetch (ads, counters), and is not compared from then on.
//!
//! It is a further request of the same task: after the site's delay, under the same permission, turn and gate.
//! Meanwhile the result of the first fetch waits without its body, within a budget. Whatever happens to the second
//! one, the first stands; if the process dies in between, the task begins anew.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use webfill_store::page_id;
use webfill_urls::Url;
use webfill_wire::{Feature, Lane, Outcome, Task};

use super::turns::TakenTurn;
use super::{Journey, Request};
use crate::crawl::Crawl;
use crate::extract::{FetchedPage, Work};
use crate::fetch::PageRequest;
use crate::fetch_slots::FetchSlot;
use crate::look;
use crate::now::Now;
use crate::permission::Permission;
use crate::permits::{Denied, Permit};
use crate::sites::Turn;
use crate::task_result::TaskResult;

/// If the site asks for a longer pause than this beyond its delay (`Retry-After`), the first fetch has to do.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);

impl Journey {
    /// Whether the crawl looks for changes and has no version of the page. One that a browser renders is
    /// fetched once.
    pub(super) async fn is_first_look(&self, task: &Task, crawl: &Crawl) -> bool {
        if !crawl.has(Feature::Changes) || crawl.lane != Lane::Http || task.given_up.is_some() {
            return false;
        }
        let id = page_id(&crawl.app_id, &crawl.crawl_id, &task.url);
        self.stored_pages.has_versions(id).await == Some(false)
    }

    /// Hands a page on that is looked at for the first time.
    pub(super) async fn look_twice(
        &self,
        page: FetchedPage,
        (slot, place): (Option<TakenTurn<'_>>, Option<FetchSlot<'_>>),
        url: &Url,
        request: Request,
        permit: &Permit,
    ) {
        if !has_text(&page) {
            return self.hand_on(page).await;
        }
        // Without room for its result, which is hardly longer, the first fetch has to do.
        let Some(mut held) = self.held.try_take(page.body.len()) else {
            let waiting = (slot, place);
            return match page.is_candidate {
                true => {
                    self.read_and_render(page, waiting, url, request, permit)
                        .await
                }
                false => self.hand_on(page).await,
            };
        };
        let Some(mut first) = self.read(page, slot).await else {
            return;
        };
        if let Some(unread) = first.unread.take() {
            drop(held);
            return self
                .render_unread(first, unread, place, (url, request, permit))
                .await;
        }
        held.set(first.memory_bytes());
        if first.mapping.is_none() && first.look.is_some() {
            if let Some(second) = self.fetch_again(&first, url, permit).await {
                look::note_second(&mut first, &second);
            }
            let turn = Turn::Page(first.delay.unwrap_or(self.politeness.delay()));
            first.next_start = self.sites.borrow().next_start(&first.task.site, turn);
        }
        self.report(first).await;
    }

    /// Has a page read by the extraction thread. `None` if this process ends.
    pub(super) async fn read(
        &self,
        mut page: FetchedPage,
        slot: Option<TakenTurn<'_>>,
    ) -> Option<TaskResult> {
        let (answer, read) = oneshot::channel();
        page.answer = Some(answer);
        // The channel closes only after the last runner is done.
        let _ = self.extraction.send(Work::Page(Box::new(page))).await;
        drop(slot);
        read.await.ok()
    }

    /// The result of a further request for the page. `None` if there is none, or it brought no page.
    async fn fetch_again(
        &self,
        first: &TaskResult,
        url: &Url,
        permit: &Permit,
    ) -> Option<TaskResult> {
        let (task, site) = (&first.task, &*first.task.site);
        let (permission, _) = self.permission(task, url, permit).await;
        let (delay, turn) = match permission {
            Permission::Allowed { delay, turn } => (delay, turn),
            Permission::Refused { .. } | Permission::NotAsked => return None,
            Permission::CutShort => {
                self.note_cut_short(site, self.politeness.delay());
                return None;
            }
        };
        let next = self.sites.borrow().next_start(site, turn);
        if next.is_some_and(|next| next > Instant::now() + delay + LONGEST_BACK_OFF) {
            return None;
        }
        let mut slot = self.take_turn(turn, site, url, permit).await?;
        let request = Request::now(delay);
        let user_agent = self.user_agent_of(&first.crawl);
        let headers = self.headers_of(url, &[]);
        let asked = PageRequest {
            url,
            user_agent: user_agent.as_deref(),
            headers: &headers,
            sitemaps: first.crawl.has(Feature::Sitemaps),
            next_after: delay,
            is_named_sitemap: crate::sitemaps::is_named(&first.task, &first.crawl),
        };
        let asked = self.gate.page(permit, asked, &mut slot.memory).await;
        // The page was requested, whatever has become of this request.
        permit.note_request(true);
        let mut fetched = match asked {
            Ok(fetched) => fetched,
            Err(Denied::NotStarted) => return None,
            Err(Denied::CutShort) => {
                self.note_cut_short(site, delay);
                return None;
            }
        };
        let memory = slot.memory.take();
        let exchange = fetched.exchange.take();
        let (task, crawl) = (task.clone(), first.crawl.clone());
        let mut page = self.fetched(task, crawl, url, request, fetched, memory);
        self.end_turn(site).await;
        if self.archive(exchange).await {
            page.memory.set(page.body.capacity());
        }
        if !has_text(&page) || self.documents_for(&page).is_some() {
            return None;
        }
        self.read(page, Some(slot)).await
    }

    fn note_cut_short(&self, site: &str, delay: Duration) {
        self.note_use(site);
        let mut sites = self.sites.borrow_mut();
        sites.request_cut_short(site, delay, Now::read());
    }
}

fn has_text(page: &FetchedPage) -> bool {
    page.result.outcome == Outcome::Ok
        && !page.body.is_empty()
        && page.document.is_none()
        && !page.is_rendered
}
