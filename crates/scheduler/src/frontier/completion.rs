//! Completes tasks: an outcome is counted together with its results (links, redirect, resolved records), in one
//! transaction. An outcome whose lease is not in force changes nothing.

use rusqlite::{Connection, OptionalExtension, Result};
use webfill_urls::Url;
use webfill_wire::{
    LinkKind, NO_RECORD, Outcome, TaskDone, is_repetition, is_unmatched, parse_row_link,
};

use super::backoff::Disposition;
use super::context::Context;
use super::feed::FeedBatch;
use super::model::{Completion, CompletionTally, FeedTally, LinkContext, TaskId};
use super::parts::Tasks;
use super::records::{ServedRecord, records_served_by};
use super::task_rows::{HeldPage, HeldTask, find_held_task};
use super::{
    FrontierError, attempts, browser_handover, closing, crawl_rows, feed, page_checks, releasing,
    resolved, retrying, suspected_pages, trickles, unlinked,
};

/// The difference between the priority of a page and the lower priority of its links.
const PRIORITY_LOST: u8 = 10;

impl Tasks<'_> {
    /// Counts an outcome. The records that it has completed need no further page, and the task is done. Its links are
    /// judged one level deeper, and its redirect at the same level; they serve the page's records that are still
    /// incomplete. An outcome whose lease is not in force changes nothing.
    pub fn complete(
        &mut self,
        report: &TaskDone,
        now_ms: i64,
    ) -> Result<Completion, FrontierError> {
        self.0.run("count an outcome", |cx| {
            let Some(task) = find_held_task(&cx.db, report.task, report.delivery)? else {
                return Ok(Completion::Stale);
            };
            for record in &report.resolved {
                resolved::mark_resolved(cx, record, now_ms)?;
            }
            cx.holding.note_task_end(task.site, report.task);
            let disposition =
                match suspected_pages::decide_suspected_block(cx, &task, report, now_ms)? {
                    Some(disposition) => disposition,
                    None => attempts::apply_attempt(cx, &task, report, now_ms)?,
                };
            if report.outcome == Outcome::Blocked
                && matches!(
                    disposition,
                    Disposition::SiteBackoffs(_) | Disposition::Ends
                )
            {
                suspected_pages::requeue_doubtful_pages(cx, task.site, report)?;
            }
            match disposition {
                Disposition::SiteBackoffs(turn) => return Ok(Completion::SiteBackoffs(turn)),
                Disposition::Waits => return Ok(Completion::WillRetry),
                Disposition::Own if retrying::requeue_if_allowed(cx, &task, report, now_ms)? => {
                    return Ok(Completion::WillRetry);
                }
                Disposition::Own | Disposition::Ends => {}
            }
            if browser_handover::note_scripts_and_decide_handover(cx, &task, report, now_ms)? {
                retrying::requeue_leased(cx, &task, report.task, task.priority, now_ms + 1)?;
                return Ok(Completion::HandedOn);
            }
            closing::end_task(
                cx,
                task.crawl,
                report.task,
                report.outcome,
                report.status_code,
                now_ms,
            )?;
            add_page_counts(cx, &task, report)?;
            suspected_pages::update_doubtful_pages(cx, task.site, report)?;
            let page = HeldPage {
                crawl: task.crawl,
                site: task.site,
                url: &task.url,
            };
            page_checks::count_watched_page(cx, &page, report, now_ms)?;
            unlinked::schedule_unlinked_check(cx, &page, report, now_ms)?;
            releasing::note_lease_end(cx, task.crawl, task.site, report.status_code.is_some());
            let served = records_served_by(&cx.db, report.task)?;
            let of_rows = reopen_linked_records(cx, report)?;
            let links = feed_links(cx, &task, report, &served, &of_rows, now_ms)?;
            let backfilled = served
                .into_iter()
                .filter(|record| record.needs_backfill && !record.resolved);
            Ok(Completion::Counted(CompletionTally {
                crawl: task.crawl,
                url: task.url,
                depth: task.depth,
                backfill_records: backfilled.map(|record| record.name).collect(),
                links,
            }))
        })
    }
}

/// Adds the worker's counts to the counters. They come from another process, so whatever they are, the sums must not
/// overflow.
fn add_page_counts(cx: &mut Context, task: &HeldTask, report: &TaskDone) -> Result<()> {
    let status = &mut crawl_rows::load_known_crawl(cx, task.crawl)?.status;
    status.leased -= 1;
    status.pages += u64::from(report.status_code.is_some());
    status.unmatched += u64::from(is_unmatched(report));
    status.fields += u64::from(report.fields);
    status.rows += u64::from(report.rows);
    status.rows_stored += u64::from(report.rows_stored);
    status.links += report.links.len() as u64;
    status.bytes = status
        .bytes
        .saturating_add(report.body_bytes)
        .min(i64::MAX as u64);
    Ok(())
}

/// The links in a page's rows (the entries of its lists), each with the record that the row belongs to, if there is
/// one. These records become unresolved, even if an earlier crawl has resolved them.
fn reopen_linked_records<'r>(
    cx: &mut Context,
    report: &'r TaskDone,
) -> Result<Vec<(Option<i64>, &'r str)>> {
    let sql = "UPDATE records SET resolved = 0 WHERE id = ?1 AND resolved = 1";
    let mut of_rows = Vec::new();
    for (record, url) in report.links.iter().filter_map(|text| parse_row_link(text)) {
        if record == NO_RECORD {
            of_rows.push((None, url));
            continue;
        }
        let record = cx.records.id_or_insert(&cx.db, &record)?;
        cx.db.prepare_cached(sql)?.execute([record])?;
        of_rows.push((Some(record), url));
    }
    Ok(of_rows)
}

fn feed_links(
    cx: &mut Context,
    task: &HeldTask,
    report: &TaskDone,
    served: &[ServedRecord],
    of_rows: &[(Option<i64>, &str)],
    now_ms: i64,
) -> Result<FeedTally> {
    let unresolved = served.iter().filter(|record| !record.resolved);
    let unresolved: Vec<i64> = unresolved.map(|record| record.id).collect();
    let base = Url::parse(&task.url).ok();
    let redirect = LinkContext {
        kind: LinkKind::Link,
        depth: task.depth,
        priority: task.priority,
        redirects: task.redirects.saturating_add(1),
        parent: Some(report.task),
        base: base.as_ref(),
        records: &unresolved,
        attrs: task.attrs,
        is_of_repetition: false,
    };
    let is_of_repetition = is_repetition(report);
    let priority = match is_of_repetition {
        true => trickles::PRIORITY,
        false => task.priority.saturating_sub(PRIORITY_LOST).max(1),
    };
    let link = LinkContext {
        depth: task.depth.saturating_add(1),
        priority,
        redirects: 0,
        is_of_repetition,
        ..redirect
    };
    // A sitemap's pages count as reached by a redirect: they are no level deeper.
    let listed = LinkContext {
        records: &[],
        ..redirect
    };
    let mut batch = feed::begin_feed(cx, task.crawl, now_ms);
    // The URLs that a sitemap lists serve no record, so they are wanted even if all records are complete.
    let unwanted = batch.is_unwanted(served.len(), &unresolved);
    let unlisted = batch.is_unwanted(0, &[]);
    let kind = batch.kind_of_redirect(report, &task.url, base.as_ref())?;
    if let Some(url) = &report.redirect {
        batch.feed_url_unless(unwanted, url, None, &LinkContext { kind, ..redirect })?;
    }
    // The links are judged again here: the worker knew only the crawl's settings at the hand-out, which may have
    // changed since.
    let links = || {
        let links = report
            .links
            .iter()
            .filter(|text| parse_row_link(text).is_none());
        links.map(|text| LinkKind::parse(text))
    };
    let keys = match unwanted || !batch.allows_depth_and_redirects(&link) {
        true => Vec::new(),
        false => batch.compute_link_keys(links().map(|(_, url)| url)),
    };
    let keys = keys.into_iter().map(Some).chain(std::iter::repeat(None));
    for ((kind, url), key) in links().zip(keys) {
        match kind {
            LinkKind::Link => batch.feed_url_unless(unwanted, url, key, &link)?,
            _ => batch.feed_url_unless(unlisted, url, key, &LinkContext { kind, ..listed })?,
        }
    }
    for (record, url) in of_rows {
        let records = record.as_slice();
        batch.feed_url_unless(unlisted, url, None, &LinkContext { records, ..link })?;
    }
    batch.write_sums()
}

impl FeedBatch<'_> {
    /// Judges a URL that was found on a page, or only counts it if it is unwanted.
    fn feed_url_unless(
        &mut self,
        is_unwanted: bool,
        url: &str,
        key: Option<u64>,
        context: &LinkContext<'_>,
    ) -> Result<()> {
        if is_unwanted {
            self.tally.unwanted += 1;
        } else {
            self.feed_url(url, key, context)?;
        }
        Ok(())
    }

    /// The kind of a redirect's target: if the redirect is a sitemap, so is its target. It is not stored which tasks
    /// are sitemaps. They are those that a robots.txt or, recently, an index has led to, and those that are out of the
    /// scope of pages.
    fn kind_of_redirect(
        &mut self,
        report: &TaskDone,
        from: &str,
        from_url: Option<&Url>,
    ) -> Result<LinkKind> {
        if report.redirect.is_none() || !self.crawl.spec.sitemaps {
            return Ok(LinkKind::Link);
        }
        let is_page = from_url.is_none_or(|url| self.crawl.scope.check_page(url).is_ok());
        let is_sitemap = !is_page
            || self.was_listed_as_sitemap(from)
            || is_named_by_robots_txt(self.db, report.task)?;
        match is_sitemap {
            true => Ok(LinkKind::Sitemap),
            false => Ok(LinkKind::Link),
        }
    }
}

fn is_named_by_robots_txt(db: &Connection, task: TaskId) -> Result<bool> {
    let sql = "SELECT url FROM tasks WHERE id = (SELECT parent FROM tasks WHERE id = ?1)";
    let mut select = db.prepare_cached(sql)?;
    let parent = select
        .query_row([task as i64], |row| row.get::<_, String>(0))
        .optional()?;
    Ok(parent
        .and_then(|url| Url::parse(&url).ok())
        .is_some_and(|url| url.path() == "/robots.txt"))
}
