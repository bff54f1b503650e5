//! The second fetch: a page that is compared by its text is fetched twice when it is new, and whenever it differs from
//! its stored versions. Differences between the two fetches (ads, counters) are ignored from then on. If the page shows
//! a clock, the second fetch waits until it has moved.
//!
//! The second fetch belongs to the same task. It keeps the site's delay, and needs the same permissions as the first.
//! Meanwhile the result of the first fetch waits without its body, within a limit of memory. Whatever happens to the
//! second fetch, the result of the first one counts. If the process dies in between, the task starts over.

use std::time::{Duration, Instant};

use webfill_changes::{PageVersions, SiteBlocks};
use webfill_store::{page_id, site_versions_id};
use webfill_wire::Outcome;

use super::document;
use super::plan::CheckKind;
use super::visit::{HeldPermits, Reading, Request, Visit};
use crate::extract::FetchedPage;
use crate::permission::Permission;
use crate::permits::Denied;
use crate::sites::Turn;
use crate::snapshot::{self, KnownVersions, Recheck};
use crate::task_result::TaskResult;

/// If a site demands a pause (`Retry-After`) that exceeds its usual delay by more than this, there is no second fetch.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);

impl Reading<'_> {
    /// Passes on a page whose text is compared with earlier versions, after a second fetch if one is needed.
    pub(super) async fn check_twice(&self, page: FetchedPage, held: HeldPermits<'_>) {
        let journey = self.journey;
        if !has_text(&page) {
            return journey.send_to_extraction(page).await;
        }
        // If the result of the first fetch finds no memory to wait in, there is no second fetch. A result is hardly
        // longer than its body.
        let Some(mut memory) = journey.held.try_take(page.body.len()) else {
            return match page.is_candidate {
                true => self.read_and_render(page, held).await,
                false => journey.send_to_extraction(page).await,
            };
        };
        let Some(mut first) = journey.extract(page, held.turn).await else {
            return;
        };
        if let Some(unread) = first.unread.take() {
            drop(memory);
            return self.render_unread(first, unread, held.tab).await;
        }
        memory.set(first.memory_bytes());
        if first.mapping.is_none() && first.snapshot.is_some() {
            self.recheck_page(&mut first).await;
            let turn = Turn::Page(first.delay.unwrap_or(journey.politeness.delay()));
            first.next_start = journey.sites.borrow().next_start(&first.task.site, turn);
        }
        journey.send_to_saver(first).await;
    }

    /// Fetches a page again if it is new or differs from its known versions, and notes the parts that differ at each
    /// fetch.
    async fn recheck_page(&self, first: &mut TaskResult) {
        let Some(recheck) = self.plan_recheck(first).await else {
            return;
        };
        let Reading { journey, visit, .. } = *self;
        let is_later = visit.plan.check == CheckKind::Later;
        let site = &*first.task.site;
        if is_later && !journey.rechecks.borrow_mut().allow_recheck(site) {
            return;
        }
        // Wait until a clock that the page shows has moved.
        let clock = tokio::time::sleep(recheck.wait);
        let waited = journey
            .interrupt
            .wait_unless_called_back(visit.permit, clock)
            .await;
        if waited.is_none() {
            return;
        }
        let Some(second) = self.refetch_page(first).await else {
            return;
        };
        let is_unsteady = note_differences(first, second).await;
        if is_later {
            let mut rechecks = journey.rechecks.borrow_mut();
            rechecks.note_result(&first.task.site, is_unsteady);
        }
    }

    async fn plan_recheck(&self, first: &TaskResult) -> Option<Recheck> {
        let seen = first.snapshot.clone()?;
        let (crawl, task) = (&first.crawl, &first.task);
        let of_site = site_versions_id(&crawl.app_id, &crawl.crawl_id, &task.site);
        let site = self.journey.stored_pages.versions_of(of_site).await;
        let page = match self.visit.plan.check {
            CheckKind::Later => {
                let id = page_id(&crawl.app_id, &crawl.crawl_id, &task.url);
                Some(self.journey.stored_pages.versions_of(id).await?)
            }
            CheckKind::First | CheckKind::Only => None,
        };
        let at_ms = first.started_at_ms;
        // This runs on another thread, because it compares thousands of texts.
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

    /// The result of another request for the page. `None` if there was none, or it returned no page.
    async fn refetch_page(&self, first: &TaskResult) -> Option<TaskResult> {
        let Reading { journey, visit, .. } = *self;
        let Visit { url, permit, .. } = *visit;
        let (task, site) = (&first.task, &*first.task.site);
        let (permission, _) = journey.check_permission(task, url, permit).await;
        let (delay, turn) = match permission {
            Permission::Allowed { delay, turn } => (delay, turn),
            Permission::Refused { .. } | Permission::NotAsked => return None,
            Permission::CutShort => {
                let delay = journey.politeness.delay();
                journey.turns.note_cut_short(site, delay);
                return None;
            }
        };
        let next = journey.sites.borrow().next_start(site, turn);
        if next.is_some_and(|next| next > Instant::now() + delay + LONGEST_BACK_OFF) {
            return None;
        }
        let mut turn = journey.turns.take(turn, site, url, permit).await?;
        let request = Request::begin(url, delay);
        let asking = journey.request_page(visit, request, (task, &first.crawl), &[], &mut turn);
        let asked = asking.await;
        // The page counts as requested, whatever the outcome of this second request.
        permit.note_request(true);
        let fetched = match asked {
            Ok(fetched) => fetched,
            Err(Denied::NotStarted) => return None,
            Err(Denied::CutShort) => {
                journey.turns.note_cut_short(site, delay);
                return None;
            }
        };
        let of = (task.clone(), first.crawl.clone());
        let answer = journey.take_answer(url, request, of, fetched, &mut turn);
        let page = answer.await;
        if !has_text(&page) || document::reader_for(journey, &page).is_some() {
            return None;
        }
        journey.extract(page, Some(turn)).await
    }
}

/// Notes where the texts of the two fetches differ, and returns whether they do. Runs on a thread of its own, because
/// it compares thousands of texts.
async fn note_differences(first: &mut TaskResult, second: TaskResult) -> bool {
    if second.mapping.is_some() {
        return false;
    }
    let (Some(one), Some(other)) = (first.snapshot.clone(), second.snapshot) else {
        return false;
    };
    let compared =
        tokio::task::spawn_blocking(move || snapshot::mark_differences(&one, &other)).await;
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
