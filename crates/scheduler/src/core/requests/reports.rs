//! Reports that cost too much to be made for each request: a report is kept for a moment and shared by all requests.
//! Actions that change something drop all reports; feeds drop only the totals.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use webfill_wire::CrawlKey;

use super::awaited::MOST_SITES;
use super::crawl_answers::state_name;
use super::{awaited, crawl_report};
use crate::core::context::Context;
use crate::frontier::{CappedCount, FrontierError, FrontierTally};

/// How long each kind of report is kept.
const APPLICATIONS_FOR_MS: i64 = 2_000;
const TALLY_FOR_MS: i64 = 250;
const UNFINISHED_FOR_MS: i64 = 2_000;

/// The maximum numbers of applications and of crawls whose reports are kept.
const MOST_APPLICATIONS: usize = 100;
const MOST_CRAWLS: usize = 1_000;

/// The maximum number of unfinished crawls to list; the latest opened ones are chosen.
const MOST_UNFINISHED: usize = 20;

/// A crawl with at most this many queued and leased tasks is small: its report is made for each request.
const LARGE_CRAWL: u64 = 1_000;

/// This many reports on large crawls check up to [`MOST_SITES`] sites each. Further ones check only
/// [`SITES_OF_FURTHER`], so that asking about many crawls costs little more than asking about a few.
const MOST_CHECKED_FULLY: usize = 10;
const SITES_OF_FURTHER: usize = 500;

#[derive(Debug, Default)]
pub(in crate::core) struct ReportCache {
    /// The list of unfinished crawls that `status` last made, and when.
    pub(super) unfinished: Option<(i64, Vec<Value>)>,
    tally: Option<(i64, FrontierTally)>,
    applications: BTreeMap<String, (i64, ApplicationSites)>,
    /// Reports on large crawls. Feeds do not drop them, because feeds arrive all the time.
    crawls: BTreeMap<CrawlKey, (i64, Value)>,
}

/// The part of an application's answer that requires checking many sites.
#[derive(Debug, Clone)]
pub(super) struct ApplicationSites {
    pub(super) sites: CappedCount,
    pub(super) waiting_for: Option<String>,
}

impl ReportCache {
    /// Drops the cached counters of all crawls after a feed.
    pub(super) fn clear_totals(&mut self) {
        self.tally = None;
        self.applications.clear();
    }

    /// Drops all reports after any other change.
    pub(super) fn clear(&mut self) {
        *self = ReportCache::default();
    }
}

fn is_recent(at_ms: i64, for_ms: i64, now_ms: i64) -> bool {
    (0..for_ms).contains(&(now_ms - at_ms))
}

impl ReportCache {
    /// The counters of all crawls, read again only if those kept are too old.
    pub(super) fn cached_tally(
        &mut self,
        cx: &mut Context,
        now_ms: i64,
    ) -> Result<FrontierTally, FrontierError> {
        if let Some((at_ms, tally)) = self.tally
            && is_recent(at_ms, TALLY_FOR_MS, now_ms)
        {
            return Ok(tally);
        }
        let tally = cx.frontier.counts().count_all()?;
        self.tally = Some((now_ms, tally));
        Ok(tally)
    }

    /// The part of a crawl's answer that requires checking its sites and leases.
    pub(super) fn crawl_report(
        &mut self,
        cx: &mut Context,
        crawl: CrawlKey,
        now_ms: i64,
    ) -> Result<Value, FrontierError> {
        let status = cx.frontier.crawls().status(crawl)?;
        let is_large = status.queued + status.leased > LARGE_CRAWL;
        if !is_large {
            return crawl_report::crawl_report(cx, crawl, MOST_SITES, now_ms);
        }
        let is_kept = |at_ms: i64| is_recent(at_ms, APPLICATIONS_FOR_MS, now_ms);
        let kept = &mut self.crawls;
        if let Some((at_ms, report)) = kept.get(&crawl)
            && is_kept(*at_ms)
        {
            return Ok(report.clone());
        }
        let recent = kept.values().filter(|(at_ms, _)| is_kept(*at_ms)).count();
        let most_sites = match recent < MOST_CHECKED_FULLY {
            true => MOST_SITES,
            false => SITES_OF_FURTHER,
        };
        if kept.len() >= MOST_CRAWLS {
            kept.retain(|_, (at_ms, _)| is_kept(*at_ms));
        }
        let report = crawl_report::crawl_report(cx, crawl, most_sites, now_ms)?;
        if self.crawls.len() < MOST_CRAWLS {
            let kept = &mut self.crawls;
            kept.insert(crawl, (now_ms, report.clone()));
        }
        Ok(report)
    }

    pub(super) fn application_sites(
        &mut self,
        cx: &mut Context,
        app_id: &str,
        now_ms: i64,
    ) -> Result<ApplicationSites, FrontierError> {
        if let Some((at_ms, report)) = self.applications.get(app_id)
            && is_recent(*at_ms, APPLICATIONS_FOR_MS, now_ms)
        {
            return Ok(report.clone());
        }
        let report = ApplicationSites {
            sites: cx.frontier.counts().count_pending_sites(app_id)?,
            waiting_for: awaited::explain_application_wait(cx, app_id, now_ms)?,
        };
        let kept = &mut self.applications;
        if kept.len() >= MOST_APPLICATIONS {
            kept.clear();
        }
        kept.insert(app_id.to_owned(), (now_ms, report.clone()));
        Ok(report)
    }

    /// The crawls that are not finished, the latest opened ones first.
    pub(super) fn unfinished_crawls(
        &mut self,
        cx: &mut Context,
        now_ms: i64,
    ) -> Result<Vec<Value>, FrontierError> {
        if let Some((at_ms, reports)) = &self.unfinished
            && (0..UNFINISHED_FOR_MS).contains(&(now_ms - at_ms))
        {
            return Ok(reports.clone());
        }
        let crawls = cx.frontier.reports().unfinished_crawls(MOST_UNFINISHED)?;
        let mut oldest = crawl_report::oldest_leases(cx, &crawls);
        let most_sites = MOST_SITES / crawls.len().max(1);
        let mut reports = Vec::with_capacity(crawls.len());
        for crawl in crawls {
            let status = cx.frontier.crawls().status(crawl)?;
            let spec = cx.frontier.crawls().spec(crawl)?;
            let mut one = json!({
                "appid": spec.app_id,
                "crawlid": spec.crawl_id,
                "pending": status.queued,
                "leased": status.leased,
                "done": status.done,
                "rows_stored": status.rows_stored,
            });
            one["state"] = state_name(cx, crawl, now_ms)?.into();
            crawl_report::add_progress(cx, &mut one, crawl, most_sites, now_ms)?;
            crawl_report::add_oldest_lease(cx, &mut one, oldest.remove(&crawl))?;
            reports.push(one);
        }
        self.unfinished = Some((now_ms, reports.clone()));
        Ok(reports)
    }
}
