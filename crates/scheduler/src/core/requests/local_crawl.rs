//! Carries out the requests of `webfill crawl` to the dispatcher that it started ([`crate::local_crawl`]): opens
//! crawls, feeds seeds, reports counters.

use serde_json::{Value, json};
use webfill_api::{Batch, CrawlSpec, RequestParser};
use webfill_wire::CrawlKey;

use super::feeding::FedBatch;
use super::sites::add_site_state;
use super::{feeding, scripts};
use crate::core::context::Context;
use crate::core::requests::closing::ClosingCrawls;
use crate::core::{Core, crawl_writes, crawls, machines, outcomes};
use crate::frontier::{Candidate, CrawlStatus, FrontierError, WaitingSites};
use crate::local_crawl::{
    self, Backoffs, ChosenDataset, Limits, LineRequest, LocalRequest, SeedUrl,
};

/// How often to list the sites that back off.
const CHECK_BACKOFFS_EVERY_MS: i64 = 1_000;

/// The wait between two checks grows by one step for each group of this many sites. A check counts all sites, which
/// takes some ten milliseconds per group, and the loop waits meanwhile.
const SITES_OF_ONE_PAUSE: u64 = 10_000;

/// Sites that are due sooner than this do not count as waiting.
const SOON_MS: i64 = 5_000;

/// The maximum number of sites that back off to report.
const BACKOFFS_REPORTED: usize = 5;

/// The maximum number of sites with repeating pages to report.
const MOST_REPEATING: usize = 10;

/// The sites that back off, as of the last check.
#[derive(Debug, Default)]
pub(in crate::core) struct BackoffReport {
    /// When to check the backoffs again.
    next_ms: i64,
    sites: u64,
    first: Vec<Value>,
    least_time_left_ms: i64,
    /// The sites that cannot be requested for a while.
    waiting: WaitingSites,
}

impl Core {
    pub(super) fn carry_out_local(
        &mut self,
        request: LocalRequest,
        now_ms: i64,
    ) -> Result<Value, FrontierError> {
        match request {
            LocalRequest::OpenCrawl { spec, dataset } => {
                open_crawl(&mut self.cx, &spec, dataset.as_ref(), now_ms)
            }
            LocalRequest::NoteDataset { crawl, dataset } => {
                self.cx.frontier.crawls().set_dataset(crawl, &dataset)?;
                Ok(serde_json::json!({"accepted": 1}))
            }
            LocalRequest::FeedSeeds {
                crawl,
                seeds,
                fed_lines,
            } => feed_seeds(&mut self.cx, crawl, &seeds, fed_lines, now_ms),
            LocalRequest::FeedRequests { command, requests } => {
                feed_requests(&mut self.cx, &mut self.closing, command, requests, now_ms)
            }
            LocalRequest::EndOfSeeds { crawl } => {
                self.cx.frontier.crawls().end_seeds(crawl)?;
                Ok(serde_json::json!({"accepted": 1}))
            }
            LocalRequest::CrawlStatus { crawls, limits } => {
                crawl_status(&mut self.cx, &mut self.backoffs, &crawls, limits, now_ms)
            }
            LocalRequest::FailedUrls { crawls, after } => failed_urls(&mut self.cx, &crawls, after),
            LocalRequest::DeadRecords { crawls, after } => {
                dead_records(&mut self.cx, &crawls, after)
            }
            LocalRequest::End { crawls } => {
                crawl_status(&mut self.cx, &mut self.backoffs, &crawls, None, now_ms)
            }
            LocalRequest::GetRun { watch, run } => {
                self.watches.run_for_feeder(&mut self.cx, &watch, run)
            }
            LocalRequest::GetRunState { watch, run } => Ok(self.watches.run_state(&watch, run)),
            LocalRequest::CountRun { watch, run, counts } => {
                self.watches
                    .add_run_counts(&mut self.cx, &watch, run, counts)
            }
        }
    }
}

fn failed_urls(cx: &mut Context, crawls: &[CrawlKey], after: i64) -> Result<Value, FrontierError> {
    let (found, next) = cx.frontier.reports().failed_urls(crawls, after)?;
    let found = found.iter().map(|failed| {
        json!({
            "site": failed.site,
            "outcome": failed.outcome,
            "status_code": failed.status_code,
            "urls": failed.urls,
        })
    });
    Ok(json!({"found": found.collect::<Vec<_>>(), "next": next}))
}

fn dead_records(cx: &mut Context, crawls: &[CrawlKey], after: i64) -> Result<Value, FrontierError> {
    let (found, next) = cx.frontier.reports().dead_records(crawls, after)?;
    let found = found.iter().map(|record| {
        json!({
            "name": record.name,
            "url": record.url,
            "outcome": record.outcome,
            "status_code": record.status_code,
            "site": record.site,
            "sign": record.sign,
        })
    });
    Ok(json!({"found": found.collect::<Vec<_>>(), "next": next}))
}

impl BackoffReport {
    /// Checks the sites that back off. Done only from time to time, because they may be many, and once more at the
    /// end.
    fn check_backoffs(
        &mut self,
        cx: &mut Context,
        is_last: bool,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        if !is_last && now_ms < self.next_ms {
            return Ok(());
        }
        let (sites, first) = cx
            .frontier
            .site_states()
            .list_backing_off(BACKOFFS_REPORTED, now_ms)?;
        let first = first.iter().map(|report| {
            let mut row = serde_json::json!({"site": report.name});
            add_site_state(&mut row, Some(report), now_ms);
            row
        });
        let soon_ms = now_ms + SOON_MS;
        let mut waiting = cx.frontier.reports().waiting_sites(soon_ms)?;
        let (delayed, first_ms) = cx.dispatch.schedule.count_delayed_sites(soon_ms);
        waiting.add("delay", delayed, first_ms);
        *self = BackoffReport {
            waiting,
            next_ms: now_ms + next_check_wait_ms(sites),
            sites,
            first: first.collect(),
            least_time_left_ms: cx.dispatch.schedule.least_time_left_ms(now_ms),
        };
        Ok(())
    }
}

fn open_crawl(
    cx: &mut Context,
    spec: &CrawlSpec,
    dataset: Option<&ChosenDataset>,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let begins_run = cx.frontier.crawls().begins_run(spec)?;
    if !begins_run && let Some(message) = resume_refusal(cx, spec, dataset)? {
        let path = format!("--crawl {}", spec.crawl_id);
        return Ok(serde_json::json!({"error": {"path": path, "message": message}}));
    }
    let crawl = cx.frontier.crawls().open(spec)?;
    cx.frontier.site_states().renew_patience(now_ms)?;
    cx.window.next_site_ms = Some(now_ms);
    cx.dispatch.fleet.forget_crawl(crawl);
    crawls::register_and_backfill_crawl(cx, crawl, now_ms)?;
    // The crawl's document must be in the store, because records refer to it.
    crawl_writes::queue_crawl_write(cx, crawl, now_ms)?;
    let status = cx.frontier.crawls().status(crawl)?;
    let known = cx.frontier.crawls().dataset(crawl)?;
    let is_other = known.as_ref().zip(dataset).is_some_and(is_other_dataset);
    // The lines read so far were fed for the other dataset, so they are read again for the present one.
    let fed_lines = if is_other { 0 } else { status.fed_lines };
    let begins_again = begins_run || (fed_lines == 0 && status.done > 0);
    Ok(serde_json::json!({
        "crawl": crawl,
        "fed_lines": fed_lines,
        "begins_again": begins_again,
        "dataset": known.filter(|_| !is_other),
        "notes_dataset": true,
    }))
}

fn resume_refusal(
    cx: &mut Context,
    spec: &CrawlSpec,
    dataset: Option<&ChosenDataset>,
) -> Result<Option<String>, FrontierError> {
    let known = cx.frontier.crawls().find(&spec.app_id, &spec.crawl_id)?;
    let Some(crawl) = known else { return Ok(None) };
    if cx.frontier.crawls().status(crawl)?.discovered == 0 {
        return Ok(None);
    }
    match scope_refusal(cx, crawl, spec)? {
        // A run of a watch takes its seeds from the watch, so its dataset is not compared.
        None if spec.run_began_ms.is_some() => Ok(None),
        None => dataset_refusal(cx, crawl, dataset),
        refusal => Ok(refusal),
    }
}

/// Refuses another scope: a resumed crawl keeps its scope, because its links were judged by it.
fn scope_refusal(
    cx: &mut Context,
    crawl: CrawlKey,
    spec: &CrawlSpec,
) -> Result<Option<String>, FrontierError> {
    let differences = spec.scope_differences(cx.frontier.crawls().spec(crawl)?);
    if differences.is_empty() {
        return Ok(None);
    }
    let texts: Vec<String> = differences
        .iter()
        .map(|(flag, before, now)| format!("{flag} is `{now}` and was `{before}`"))
        .collect();
    Ok(Some(format!(
        "the crawl started with another scope ({}): give the same flags again, or another --crawl",
        texts.join(", ")
    )))
}

/// Refuses another dataset, unless a flag names it: otherwise the crawl's records from before and after the
/// interruption would be in two datasets.
fn dataset_refusal(
    cx: &mut Context,
    crawl: CrawlKey,
    chosen: Option<&ChosenDataset>,
) -> Result<Option<String>, FrontierError> {
    let known = cx.frontier.crawls().dataset(crawl)?;
    let other = known
        .as_ref()
        .zip(chosen)
        .filter(|both| is_other_dataset(*both));
    let mistaken = other.filter(|(_, chosen)| !chosen.is_given);
    Ok(mistaken.map(|(known, ChosenDataset { name, .. })| {
        format!(
            "the crawl's records are in the dataset `{known}`, these would go to `{name}`: give --dataset {known}, or --dataset {name} if they are others, or another --crawl",
        )
    }))
}

fn feed_seeds(
    cx: &mut Context,
    crawl: CrawlKey,
    seeds: &[SeedUrl],
    fed_lines: u64,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let candidates: Vec<Candidate<'_>> = seeds
        .iter()
        .map(|seed| Candidate {
            url: &seed.url,
            depth: 0,
            priority: None,
            parent: None,
            records: &seed.records,
            attrs: None,
        })
        .collect();
    let records = seeds.iter().flat_map(|seed| &seed.records);
    cx.frontier
        .records()
        .mark_unresolved(records.map(String::as_str))?;
    let tally = cx.frontier.tasks().feed(crawl, &candidates, now_ms)?;
    cx.frontier.crawls().set_fed_lines(crawl, fed_lines)?;
    let answer = local_crawl::feed_answer(&tally);
    outcomes::apply_feed_tally(cx, crawl, tally, now_ms)?;
    Ok(answer)
}

/// Feeds the crawl requests among the command's seeds. The answer is the same as for requests fed as lines, plus the
/// keys of their crawls.
fn feed_requests(
    cx: &mut Context,
    closing: &mut ClosingCrawls,
    command: CrawlKey,
    requests: Vec<LineRequest>,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let command = cx.frontier.crawls().spec(command)?.clone();
    let mut parser = RequestParser::new(now_ms);
    let mut batch = Batch::default();
    let mut refused = Vec::new();
    for LineRequest { line, request } in requests {
        match parser.parse(request, "$") {
            Ok(request) => batch.add(request, line),
            Err(refusal) => refused.push((line, refusal)),
        }
    }
    let planned = feeding::plan_batch(cx, closing, &batch, Some(&command), now_ms)?;
    let mut fed: FedBatch = feeding::feed_planned(cx, closing, planned, now_ms)?;
    for (line, refusal) in &refused {
        fed.add_refusal(*line, refusal);
    }
    for crawl in &fed.crawls {
        crawls::register_and_backfill_crawl(cx, *crawl, now_ms)?;
        cx.frontier.crawls().reopen(*crawl)?;
    }
    let crawls = serde_json::json!(fed.crawls);
    let mut answer = fed.into_answer();
    answer["crawls"] = crawls;
    Ok(answer)
}

pub(in crate::core) fn crawl_status(
    cx: &mut Context,
    backoffs: &mut BackoffReport,
    crawls: &[CrawlKey],
    limits: Option<Limits>,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let sum = queue_unlinked_and_sum(cx, crawls, limits.is_none(), now_ms)?;
    let may_back_off = sum.total.leased == 0 && sum.seeds_ended;
    let offline = machines::longest_outage_if_all_offline(cx).cloned();
    let offline_ms = offline.as_ref().map_or(0, |found| now_ms - found.since_ms);
    let all_until_ms = match limits.filter(|_| may_back_off) {
        Some(limits) if offline_ms > limits.offline_ms as i64 => Some(now_ms),
        Some(Limits {
            backoffs_ms: Some(backoffs_ms),
            ..
        }) => crawls::common_backoff_end_ms(cx, crawls, now_ms, backoffs_ms)?,
        _ => None,
    };
    let is_last = all_until_ms.is_some() || limits.is_none();
    backoffs.check_backoffs(cx, is_last, now_ms)?;
    let backoff = Backoffs {
        all_until_ms,
        sites: backoffs.sites,
        first: backoffs.first.clone(),
        least_time_left_ms: backoffs.least_time_left_ms,
        waiting: backoffs.waiting.clone(),
        offline: offline.map(|found| json!({"since_ms": found.since_ms, "sign": found.sign})),
    };
    let supervisors = cx.dispatch.fleet.connected_count();
    let (finished, limit_reached) = (sum.finished, sum.limit_reached);
    let mut answer =
        local_crawl::status_answer(&sum.total, &backoff, finished, limit_reached, supervisors);
    if let Some(shortage) = &cx.surroundings.low_disk {
        answer["paused"] = shortage.as_str().into();
    }
    answer["quiet_s"] = cx.seconds_until_admission(now_ms).into();
    answer["scripts"] = scripts::scripts_json(cx, crawls)?;
    let (sites, first) = cx
        .frontier
        .reports()
        .repeating_sites(crawls, MOST_REPEATING)?;
    answer["repeating"] = json!({"sites": sites, "first": first});
    Ok(answer)
}

/// The state of several crawls taken together.
struct CrawlSum {
    total: CrawlStatus,
    finished: bool,
    limit_reached: bool,
    seeds_ended: bool,
}

/// Sums up crawls. For a crawl that is over, or that must end, queues its unlinked pages (those that its run has not
/// found) first.
fn queue_unlinked_and_sum(
    cx: &mut Context,
    crawls: &[CrawlKey],
    must_end: bool,
    now_ms: i64,
) -> Result<CrawlSum, FrontierError> {
    let mut sum = CrawlSum {
        total: CrawlStatus::default(),
        finished: true,
        limit_reached: false,
        seeds_ended: true,
    };
    for crawl in crawls {
        // After a restart, a crawl with nothing left but backfills (stored pages to be applied to further records) is
        // not registered yet.
        crawls::register_and_backfill_crawl(cx, *crawl, now_ms)?;
        let status = cx.frontier.crawls().status(*crawl)?;
        let is_finished = cx.crawls.is_finished(*crawl, &status);
        let is_limit_reached = cx.crawls.is_limit_reached(&mut cx.frontier, *crawl)?;
        let is_over = is_finished || is_limit_reached || must_end;
        let continues = is_over && crawls::queue_unlinked_pages(cx, *crawl, now_ms)?;
        let status = cx.frontier.crawls().status(*crawl)?;
        sum.finished &= is_finished && !continues;
        sum.limit_reached |= is_limit_reached && !continues;
        sum.seeds_ended &= status.seeds_ended;
        sum.total.add(&status);
    }
    Ok(sum)
}

/// The wait before the next check, after one that found this many sites backing off.
fn next_check_wait_ms(sites: u64) -> i64 {
    CHECK_BACKOFFS_EVERY_MS * (1 + (sites / SITES_OF_ONE_PAUSE) as i64)
}

/// Whether a command's records belong to another dataset than the crawl's.
fn is_other_dataset((known, chosen): (&String, &ChosenDataset)) -> bool {
    *known != chosen.name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_sites_that_back_off_are_counted_less_often() {
        assert_eq!(next_check_wait_ms(0), 1_000);
        assert_eq!(next_check_wait_ms(9_999), 1_000);
        assert_eq!(next_check_wait_ms(300_000), 31_000);
    }
}
