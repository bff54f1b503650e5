//! Renders unread pages ([`crate::scripts`]): pages of the lane `http` that show nothing without their scripts. A page
//! is rendered after it was read, if pages of its kind are to be tried.
//!
//! The page is not requested again: the browser gets the fetched body. Meanwhile the result of the first reading waits,
//! and the better of the two results is stored. If the task is given back meanwhile, it starts over.

use webfill_wire::{Finding, Outcome};

use super::giving_back::GivenBack;
use super::rendering::is_rendered_in_browser;
use super::visit::{HeldPermits, Reading};
use crate::browser::Browser;
use crate::extract::FetchedPage;
use crate::fetch_permits::FetchPermit;
use crate::scripts::{self, PageKind, Rendering, UnreadPage};
use crate::sites::Turn;
use crate::task_result::TaskResult;

/// Whether the page, once read, may turn out to need its scripts.
pub(super) fn is_candidate(page: &FetchedPage, rendering: Rendering) -> bool {
    rendering == Rendering::IfUnread
        && page.document.is_none()
        && is_rendered_in_browser(page)
        && scripts::has_scripts(&page.body)
}

/// Notes that a page should be rendered in any case, but there is no browser. The page is kept as the server sent it,
/// and the lack of a browser is reported.
pub(super) fn note_no_browser(page: &mut FetchedPage) {
    if is_rendered_in_browser(page) {
        let kind = PageKind {
            mapping: String::new(),
            layout: String::from(Finding::SET),
        };
        let seen = "a mapping or a setting requires a browser";
        scripts::report_finding(&mut page.result, Finding::Wanted, (&kind, true), seen);
    }
}

impl Reading<'_> {
    /// Reads a page that may need its scripts. Renders it if it shows nothing without them and pages of its kind are to
    /// be tried.
    pub(super) async fn read_and_render(&self, page: FetchedPage, held: HeldPermits<'_>) {
        let Some(mut first) = self.journey.extract(page, held.turn).await else {
            return;
        };
        match first.unread.take() {
            Some(unread) => self.render_unread(first, unread, held.tab).await,
            None => self.journey.send_to_saver(first).await,
        }
    }

    /// Renders a page that showed nothing without its scripts, if pages of its kind are to be tried.
    pub(super) async fn render_unread(
        &self,
        mut first: TaskResult,
        mut unread: UnreadPage,
        tab: Option<FetchPermit<'_>>,
    ) {
        let (journey, delay) = (self.journey, self.request.delay);
        let site = first.task.site.clone();
        let (kind, is_shell) = (&unread.kind, unread.is_shell);
        if !journey
            .scripted_pages
            .borrow()
            .may_try(&site, kind, is_shell)
        {
            // The page may come from a worker without a browser. Report that pages of this kind are not tried.
            if journey.browser.is_some()
                && !journey
                    .scripted_pages
                    .borrow()
                    .has_rendered_kind(&site, kind)
            {
                let seen = format!(
                    "{}; not tried, because similar pages were empty in a browser, too",
                    unread.seen
                );
                scripts::report_finding(&mut first, Finding::Empty, (kind, is_shell), &seen);
            }
            return journey.send_to_saver(first).await;
        }
        let is_broken = journey.scripted_pages.borrow().is_broken();
        let Some(browser) = journey.browser.as_ref().filter(|_| !is_broken) else {
            scripts::report_finding(&mut first, Finding::Wanted, (kind, is_shell), &unread.seen);
            // Without validators, a later crawl with a browser fetches the page in full.
            first.validators = None;
            return journey.send_to_saver(first).await;
        };
        let tab = match tab {
            Some(tab) => Some(tab),
            None => self.wait_for_tab_with_body(&mut unread, browser).await,
        };
        if tab.is_none() {
            return journey.return_cut_short(&site, &first.task, delay);
        }
        let (body, memory) = (std::mem::take(&mut unread.body), unread.memory.take());
        let page = FetchedPage {
            body,
            ..FetchedPage::for_rereading(first.copy_for_rereading(), memory)
        };
        let second = match self.render(browser, page).await {
            Ok(page) if page.result.outcome == Outcome::Ok => journey.extract(page, None).await,
            Ok(page) => Some(page.result),
            Err(GivenBack(task)) => return journey.return_cut_short(&site, &task, delay),
        };
        drop(tab);
        if let Some(second) = second {
            self.report_better(first, second, &unread).await;
        }
    }

    /// Waits for a tab. Meanwhile the body counts against the memory for held results, because pages with tabs may be
    /// waiting for the memory for bodies. `None` if that memory is full, the task is recalled, or the worker drains.
    async fn wait_for_tab_with_body<'b>(
        &self,
        unread: &mut UnreadPage,
        browser: &'b Browser,
    ) -> Option<FetchPermit<'b>> {
        let _held = self.journey.held.try_take(unread.body.len())?;
        drop(unread.memory.take());
        let permit = self.visit.permit;
        let tab = browser.take_tab(permit.priority());
        self.journey
            .interrupt
            .wait_unless_called_back(permit, tab)
            .await
    }

    /// Reports the better of two results of a page. The browser's result counts if it has more, or if only scripts fill
    /// pages of this kind; then its failure must not be hidden.
    async fn report_better(&self, mut first: TaskResult, second: TaskResult, unread: &UnreadPage) {
        let journey = self.journey;
        let UnreadPage {
            kind,
            is_shell,
            seen,
            ..
        } = unread;
        let gain = match second.outcome {
            Outcome::Ok => scripts::describe_gain(&first, &second),
            Outcome::Redirected => Some(String::from("its scripts lead to another page")),
            _ => None,
        };
        let site = first.task.site.clone();
        let found =
            journey
                .scripted_pages
                .borrow_mut()
                .note_result(&site, kind, *is_shell, gain.is_some());
        let fills = journey.scripted_pages.borrow().has_filled_kind(&site, kind);
        let is_failure = !matches!(second.outcome, Outcome::Ok | Outcome::Redirected);
        let is_second =
            gain.is_some() || second.outcome == Outcome::Blocked || (is_failure && fills);
        // The requests of the page's scripts have moved the time of the site's next request.
        let turn = Turn::Page(self.request.delay);
        let next_start = journey.sites.borrow().next_start(&site, turn);
        if !is_second {
            first.body_bytes = second.body_bytes;
            first.elapsed = second.elapsed;
        }
        let mut better = if is_second { second } else { first };
        better.next_start = next_start;
        if let Some(finding) = found {
            let seen = format!(
                "{seen}; {}",
                gain.as_deref().unwrap_or("it is empty in a browser, too")
            );
            tracing::info!(
                event = "scripts_tried",
                url = better.task.url,
                crawl_id = better.crawl.crawl_id,
                finding = finding.as_str(),
                mapping = kind.mapping,
                seen,
                "a kind of pages was tried in the browser"
            );
            scripts::report_finding(&mut better, finding, (kind, *is_shell), &seen);
        }
        journey.send_to_saver(better).await;
    }
}
