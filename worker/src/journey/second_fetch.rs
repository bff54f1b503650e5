//! The second fetch: a page that is compared by its text is fetched twice when it is new, and whenever it differs from
//! its stored versions. Differences between the two fetches (ads, counters) are ignored from then on. If the page shows a
//! clock, the second fetch waits until it has moved.
//!
//! It is a further request of the same task: after the site's delay, under the same permission, turn and gate.
//! Meanwhile the result of the first fetch waits without its body, within a budget. Whatever happens to the second
//! one, the first one counts. If the process dies in between, the task starts over.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use webfill_changes::{PageVersions, SiteBlocks};
use webfill_store::{page_id, site_versions_id};
use webfill_urls::Url;
use webfill_wire::{CrawlSettings, Feature, Lane, Outcome, Task};

use super::answered::Request;
use super::state::Journey;
use super::turns::TakenTurn;
use crate::extract::{FetchedPage, Work};
use crate::fetch::PageRequest;
use crate::fetch_permits::FetchPermit;
use crate::now::Now;
use crate::permission::Permission;
use crate::permits::{Denied, Permit};
use crate::sites::Turn;
use crate::snapshot::{self, KnownVersions, Recheck};
use crate::task_result::TaskResult;

/// How a page is compared with its earlier versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckKind {
    /// The page is fetched once: it is not compared, or only in its rendered form.
    Only,
    /// The page has no earlier version to compare with, so it is fetched twice.
    First,
    Later,
}

/// If the site asks for a longer pause than this beyond its delay (`Retry-After`), the first fetch must suffice.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);

impl Journey {
    /// Whether the crawl compares pages, and has versions of this one. Rendered pages are fetched once.
    pub(super) async fn load_check_kind(&self, task: &Task, crawl: &CrawlSettings) -> CheckKind {
        if !crawl.has(Feature::Changes) || crawl.lane != Lane::Http || task.unreachable.is_some() {
            return CheckKind::Only;
        }
        let id = page_id(&crawl.app_id, &crawl.crawl_id, &task.url);
        match self.stored_pages.has_versions(id).await {
            Some(false) => CheckKind::First,
            Some(true) => CheckKind::Later,
            None => CheckKind::Only,
        }
    }

    /// Passes on a page that is compared, after a second fetch if needed.
    pub(super) async fn check_twice(
        &self,
        check: CheckKind,
        page: FetchedPage,
        (slot, place): (Option<TakenTurn<'_>>, Option<FetchPermit<'_>>),
        url: &Url,
        request: Request,
        permit: &Permit,
    ) {
        if !has_text(&page) {
            return self.send_to_extraction(page).await;
        }
        // Without room for its result, which is hardly longer than its body, the first fetch must suffice.
        let Some(mut held) = self.held.try_take(page.body.len()) else {
            let waiting = (slot, place);
            return match page.is_candidate {
                true => {
                    self.read_and_render(page, waiting, url, request, permit)
                        .await
                }
                false => self.send_to_extraction(page).await,
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
        if first.mapping.is_none() && first.snapshot.is_some() {
            self.recheck_page(check, &mut first, url, permit).await;
            let turn = Turn::Page(first.delay.unwrap_or(self.politeness.delay()));
            first.next_start = self.sites.borrow().next_start(&first.task.site, turn);
        }
        self.send_to_saver(first).await;
    }

    /// Fetches a page again if it is new or differs from its known versions, and notes the parts that differ at each
    /// fetch.
    async fn recheck_page(
        &self,
        check: CheckKind,
        first: &mut TaskResult,
        url: &Url,
        permit: &Permit,
    ) {
        let Some(recheck) = self.wanted_recheck(check, first).await else {
            return;
        };
        let site = &*first.task.site;
        if check == CheckKind::Later && !self.rechecks.borrow_mut().are_worth_it(site) {
            return;
        }
        if !self.wait_for_clock(recheck.wait, permit).await {
            return;
        }
        let Some(second) = self.refetch_page(first, url, permit).await else {
            return;
        };
        let is_unsteady = note_second(first, second).await;
        if check == CheckKind::Later {
            let mut rechecks = self.rechecks.borrow_mut();
            rechecks.note_result(&first.task.site, is_unsteady);
        }
    }

    async fn wanted_recheck(&self, check: CheckKind, first: &TaskResult) -> Option<Recheck> {
        let seen = first.snapshot.clone()?;
        let (crawl, task) = (&first.crawl, &first.task);
        let of_site = site_versions_id(&crawl.app_id, &crawl.crawl_id, &task.site);
        let site = self.stored_pages.versions_of(of_site).await;
        let page = match check {
            CheckKind::Later => {
                let id = page_id(&crawl.app_id, &crawl.crawl_id, &task.url);
                Some(self.stored_pages.versions_of(id).await?)
            }
            CheckKind::First | CheckKind::Only => None,
        };
        let at_ms = first.started_at_ms;
        // Off the main thread, because it compares thousands of texts.
        let compare = move || {
            let known = KnownVersions {
                page: page.and_then(|state| PageVersions::unpack(&state).ok()),
                site: site
                    .and_then(|state| SiteBlocks::unpack(&state).ok())
                    .unwrap_or_default(),
            };
            snapshot::needed_recheck(&seen, at_ms, &known)
        };
        tokio::task::spawn_blocking(compare).await.ok()?
    }

    /// Waits until a clock shown on the page has moved. False if the task is called back meanwhile.
    async fn wait_for_clock(&self, wait: Duration, permit: &Permit) -> bool {
        let until = tokio::time::Instant::now() + wait;
        while tokio::time::Instant::now() < until && !permit.is_recalled() && !self.draining.get() {
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = self.called_back.notified() => {}
            }
        }
        !permit.is_recalled() && !self.draining.get()
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

    /// The result of another request for the page. `None` if there was none, or it returned no page.
    async fn refetch_page(
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
        let request = Request::now(url, delay);
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
        // The page was requested, whatever the outcome of this request.
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
        let mut page = self.build_page(task, crawl, url, request, fetched, memory);
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
        sites.note_cut_short(site, delay, Now::read());
    }
}

/// Notes where the second fetch differs, on a thread of its own: it compares thousands of texts. Returns whether it
/// does.
async fn note_second(first: &mut TaskResult, second: TaskResult) -> bool {
    if second.mapping.is_some() {
        return false;
    }
    let (Some(one), Some(other)) = (first.snapshot.clone(), second.snapshot) else {
        return false;
    };
    let compared = tokio::task::spawn_blocking(move || snapshot::with_second(&one, &other)).await;
    let Some((seen, is_unsteady)) = compared.ok().flatten() else {
        return false;
    };
    first.snapshot = Some(seen);
    is_unsteady
}

fn has_text(page: &FetchedPage) -> bool {
    page.result.outcome == Outcome::Ok
        && !page.body.is_empty()
        && page.document.is_none()
        && !page.is_rendered
}
