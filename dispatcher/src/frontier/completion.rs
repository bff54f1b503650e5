//! The completion of a task: its outcome is counted together with what it led to (links, redirect,
//! resolved records), in one transaction. An outcome changes nothing if its lease is not in force.

use rusqlite::Result;
use webfill_urls::Url;
use webfill_wire::{LinkKind, TaskDone};

use super::answers::{Completion, CompletionTally, FeedTally};
use super::feed::LinkContext;
use super::give_back::{HeldTask, held_task};
use super::resolved::{Served, served_by};
use super::rests::Disposition;
use super::{Frontier, FrontierError};

/// By how much a link's priority is lower than its page's.
const PRIORITY_LOST: u8 = 10;

impl Frontier {
    /// Counts an outcome: the records it resolved are closed, the task is done, its links are
    /// judged one level deeper and its redirect at its own level, for those of its records that
    /// are still unresolved. An outcome of a lease that is not in force changes nothing.
    pub fn complete(
        &mut self,
        report: &TaskDone,
        now_ms: i64,
    ) -> Result<Completion, FrontierError> {
        self.guarded("count an outcome", |frontier| {
            let Some(task) = held_task(&frontier.db, report.task, report.delivery)? else {
                return Ok(Completion::Stale);
            };
            for record in &report.resolved {
                frontier.resolve(record, now_ms)?;
            }
            frontier.holding.note_end(task.site, report.task);
            match frontier.judge_site(&task, report, now_ms)? {
                Disposition::SiteRests(turn) => return Ok(Completion::SiteRests(turn)),
                Disposition::Waits => return Ok(Completion::WillRetry),
                Disposition::Own if frontier.retry(&task, report, now_ms)? => {
                    return Ok(Completion::WillRetry);
                }
                Disposition::Own | Disposition::Ends => {}
            }
            frontier.close(
                task.crawl,
                report.task,
                report.outcome,
                report.status_code,
                now_ms,
            )?;
            frontier.count_page(&task, report)?;
            frontier.note_lease_over(task.crawl, task.site, report.status_code.is_some());
            let served = served_by(&frontier.db, report.task)?;
            let links = frontier.feed_links(&task, report, &served, now_ms)?;
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

    /// Adds the worker's figures to the counters. They come from another process: whatever they
    /// are, the sums must not overflow.
    fn count_page(&mut self, task: &HeldTask, report: &TaskDone) -> Result<()> {
        let status = &mut self.known_crawl(task.crawl)?.status;
        status.leased -= 1;
        status.pages += u64::from(report.status_code.is_some());
        status.fields += u64::from(report.fields);
        status.links += report.links.len() as u64;
        status.bytes = status
            .bytes
            .saturating_add(report.body_bytes)
            .min(i64::MAX as u64);
        Ok(())
    }

    fn feed_links(
        &mut self,
        task: &HeldTask,
        report: &TaskDone,
        served: &[Served],
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
        };
        let link = LinkContext {
            depth: task.depth.saturating_add(1),
            priority: task.priority.saturating_sub(PRIORITY_LOST).max(1),
            redirects: 0,
            ..redirect
        };
        // A sitemap leads to its pages as a redirect does, and as few steps are taken.
        let listed = LinkContext {
            records: &[],
            ..redirect
        };
        let mut batch = self.begin_feed(task.crawl, now_ms);
        if batch.is_unwanted(served.len(), &unresolved) {
            batch.tally.unwanted = (report.links.len() + report.redirect.iter().len()) as u64;
            return batch.finish();
        }
        if let Some(url) = &report.redirect {
            batch.judge(url, &redirect)?;
        }
        let has_sitemaps = batch.crawl.spec.sitemaps;
        for text in &report.links {
            let (kind, url) = match has_sitemaps {
                true => LinkKind::of(text),
                false => (LinkKind::Link, text.as_str()),
            };
            match kind {
                LinkKind::Link => batch.judge(url, &link)?,
                kind => batch.judge(url, &LinkContext { kind, ..listed })?,
            };
        }
        batch.finish()
    }
}
