//! Carries out the requests of `webfill crawl` to the dispatcher that it started
//! ([`crate::local_crawl`]): crawls are opened, seeds are fed, counters are told.

use serde_json::{Value, json};
use webfill_api::{Batch, CrawlSpec, RequestParser};
use webfill_wire::CrawlKey;

use super::feeding::FedBatch;
use super::sites::add_state;
use crate::core::Core;
use crate::frontier::{Candidate, CrawlStatus, FrontierError, WaitingSites};
use crate::local_crawl::{
    self, Backoffs, ChosenDataset, Limits, LineRequest, LocalRequest, SeedUrl,
};

/// How often the sites that back off are looked at.
const CHECK_BACKOFFS_EVERY_MS: i64 = 1_000;

/// For each time so many that back off, the pause is one longer: all of them are counted, which takes some ten
/// milliseconds, and the loop waits.
const SITES_OF_ONE_PAUSE: u64 = 10_000;

/// What is due sooner is not said to wait.
const SOON_MS: i64 = 5_000;

/// At most this many of them are told.
const BACKOFFS_REPORTED: usize = 5;

/// At most this many sites whose pages repeat others are told.
const REPEATING_TOLD: usize = 10;

/// The sites that back off, as they were looked at last.
#[derive(Debug, Default)]
pub(in crate::core) struct BackoffReport {
    /// When they are looked at again.
    next_ms: i64,
    sites: u64,
    first: Vec<Value>,
    least_time_left_ms: i64,
    /// Of which nothing can be requested for a while.
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
                self.open_crawl(&spec, dataset.as_ref(), now_ms)
            }
            LocalRequest::NoteDataset { crawl, dataset } => {
                self.frontier.set_dataset(crawl, &dataset)?;
                Ok(serde_json::json!({"accepted": 1}))
            }
            LocalRequest::FeedSeeds {
                crawl,
                seeds,
                fed_lines,
            } => self.feed_seeds(crawl, &seeds, fed_lines, now_ms),
            LocalRequest::FeedRequests { command, requests } => {
                self.feed_requests(command, requests, now_ms)
            }
            LocalRequest::EndOfSeeds { crawl } => {
                self.frontier.end_seeds(crawl)?;
                Ok(serde_json::json!({"accepted": 1}))
            }
            LocalRequest::CrawlStatus { crawls, limits } => {
                self.crawl_status(&crawls, limits, now_ms)
            }
            LocalRequest::FailedUrls { crawls, after } => {
                let (found, next) = self.frontier.failed_urls(&crawls, after)?;
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
            LocalRequest::DeadRecords { crawls, after } => {
                let (found, next) = self.frontier.dead_records(&crawls, after)?;
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
            LocalRequest::End { crawls } => self.crawl_status(&crawls, None, now_ms),
            LocalRequest::TellRun { watch, run } => self.tell_run(&watch, run),
            LocalRequest::TellRunState { watch, run } => Ok(self.tell_run_state(&watch, run)),
            LocalRequest::CountRun { watch, run, counts } => self.count_run(&watch, run, counts),
        }
    }

    fn open_crawl(
        &mut self,
        spec: &CrawlSpec,
        dataset: Option<&ChosenDataset>,
        now_ms: i64,
    ) -> Result<Value, FrontierError> {
        let begins_run = self.frontier.begins_run(spec)?;
        if !begins_run && let Some(message) = self.refusal_to_resume(spec, dataset)? {
            let path = format!("--crawl {}", spec.crawl_id);
            return Ok(serde_json::json!({"error": {"path": path, "message": message}}));
        }
        let crawl = self.frontier.open_crawl(spec)?;
        self.frontier.begin_patience(now_ms)?;
        self.next_site_ms = Some(now_ms);
        self.dispatch.forget_crawl(crawl);
        self.register_crawl(crawl, now_ms)?;
        // Records refer to the crawl's document in the store.
        self.write_crawl(crawl, now_ms)?;
        let status = self.frontier.crawl_status(crawl)?;
        let known = self.frontier.dataset(crawl)?;
        let is_other = known.as_ref().zip(dataset).is_some_and(is_another);
        // Lines that were read for another dataset are read again for this one.
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

    fn refusal_to_resume(
        &mut self,
        spec: &CrawlSpec,
        dataset: Option<&ChosenDataset>,
    ) -> Result<Option<String>, FrontierError> {
        let known = self.frontier.find_crawl(&spec.app_id, &spec.crawl_id)?;
        let Some(crawl) = known else { return Ok(None) };
        if self.frontier.crawl_status(crawl)?.discovered == 0 {
            return Ok(None);
        }
        match self.refusal_of_scope(crawl, spec)? {
            // A run of a watch reads what the watch names.
            None if spec.run_began_ms.is_some() => Ok(None),
            None => self.refusal_of_dataset(crawl, dataset),
            refusal => Ok(refusal),
        }
    }

    /// A crawl goes on under the scope that it began with: its links were judged by that.
    fn refusal_of_scope(
        &mut self,
        crawl: CrawlKey,
        spec: &CrawlSpec,
    ) -> Result<Option<String>, FrontierError> {
        let differences = spec.scope_differences(self.frontier.spec(crawl)?);
        if differences.is_empty() {
            return Ok(None);
        }
        let told: Vec<String> = differences
            .iter()
            .map(|(flag, before, now)| format!("{flag} is `{now}` and was `{before}`"))
            .collect();
        Ok(Some(format!(
            "the crawl began with another scope ({}), by which its links were judged: give the same flags again, or another --crawl",
            told.join(", ")
        )))
    }

    /// A crawl goes on with the dataset that it began with, unless a flag names another: else its records would be in
    /// one dataset up to where it was interrupted, and in another from there.
    fn refusal_of_dataset(
        &mut self,
        crawl: CrawlKey,
        chosen: Option<&ChosenDataset>,
    ) -> Result<Option<String>, FrontierError> {
        let known = self.frontier.dataset(crawl)?;
        let other = known.as_ref().zip(chosen).filter(|both| is_another(*both));
        let mistaken = other.filter(|(_, chosen)| !chosen.is_given);
        Ok(mistaken.map(|(known, ChosenDataset { name, .. })| {
            format!(
                "the crawl's records are in the dataset `{known}`, and these would be in `{name}`: give --dataset {known}, or --dataset {name} if they are others, or another --crawl",
            )
        }))
    }

    /// Registers a crawl, new or from before the start, and queues its pending backfills; what is to be taken back is waited for.
    pub(in crate::core) fn register_crawl(
        &mut self,
        crawl: CrawlKey,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.frontier.spec(crawl)?;
        if !self.crawls.open(crawl, now_ms) {
            return Ok(());
        }
        for page in self.frontier.pending_backfills(crawl)? {
            self.queue_backfill(crawl, page)?;
        }
        // The store was asked at the start.
        for page in self.frontier.false_pages()? {
            if page.crawl == crawl {
                self.crawls.backfill_queued(crawl);
            }
        }
        Ok(())
    }

    fn feed_seeds(
        &mut self,
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
        self.frontier.reopen_records(records.map(String::as_str))?;
        let tally = self.frontier.feed(crawl, &candidates, now_ms)?;
        self.frontier.set_fed(crawl, fed_lines)?;
        let answer = local_crawl::fed(&tally);
        self.apply_feed_tally(crawl, tally, now_ms)?;
        Ok(answer)
    }

    /// Feeds crawl requests that are among the command's seeds. Answered as requests fed in lines
    /// are, with the keys of their crawls in addition.
    fn feed_requests(
        &mut self,
        command: CrawlKey,
        requests: Vec<LineRequest>,
        now_ms: i64,
    ) -> Result<Value, FrontierError> {
        let command = self.frontier.spec(command)?.clone();
        let mut parser = RequestParser::new(now_ms);
        let mut batch = Batch::default();
        let mut refused = Vec::new();
        for LineRequest { line, request } in requests {
            match parser.parse(request, "$") {
                Ok(request) => batch.add(request, line),
                Err(refusal) => refused.push((line, refusal)),
            }
        }
        let planned = self.plan_batch(&batch, Some(&command), now_ms)?;
        let mut fed: FedBatch = self.feed_planned(planned, now_ms)?;
        for (line, refusal) in &refused {
            fed.refuse(*line, refusal);
        }
        for crawl in &fed.crawls {
            self.register_crawl(*crawl, now_ms)?;
            self.frontier.reopen_crawl(*crawl)?;
        }
        let crawls = serde_json::json!(fed.crawls);
        let mut answer = fed.answer();
        answer["crawls"] = crawls;
        Ok(answer)
    }

    pub(in crate::core) fn crawl_status(
        &mut self,
        crawls: &[CrawlKey],
        limits: Option<Limits>,
        now_ms: i64,
    ) -> Result<Value, FrontierError> {
        let mut total = CrawlStatus::default();
        let mut finished = true;
        let mut limit_reached = false;
        let mut seeds_ended = true;
        for crawl in crawls {
            // After a restart a crawl may have nothing left but backfills, and is not registered yet.
            self.register_crawl(*crawl, now_ms)?;
            let status = self.frontier.crawl_status(*crawl)?;
            let is_finished = self.crawls.is_finished(*crawl, &status);
            let is_limit_reached = self.crawls.is_limit_reached(&mut self.frontier, *crawl)?;
            let is_over = is_finished || is_limit_reached || limits.is_none();
            let goes_on = is_over && self.queue_unlinked(*crawl, now_ms)?;
            let status = self.frontier.crawl_status(*crawl)?;
            finished &= is_finished && !goes_on;
            limit_reached |= is_limit_reached && !goes_on;
            seeds_ended &= status.seeds_ended;
            total.add(&status);
        }
        let may_back_off = total.leased == 0 && seeds_ended;
        let cut_off = self.all_cut_off().cloned();
        let cut_off_ms = cut_off.as_ref().map_or(0, |found| now_ms - found.since_ms);
        let all_until_ms = match limits.filter(|_| may_back_off) {
            Some(limits) if cut_off_ms > limits.cut_off_ms as i64 => Some(now_ms),
            Some(Limits {
                backoffs_ms: Some(backoffs_ms),
                ..
            }) => self.all_back_off_until(crawls, now_ms, backoffs_ms)?,
            _ => None,
        };
        let is_last = all_until_ms.is_some() || limits.is_none();
        self.check_backoffs(is_last, now_ms)?;
        let backoff = Backoffs {
            all_until_ms,
            sites: self.backoff_report.sites,
            first: self.backoff_report.first.clone(),
            least_time_left_ms: self.backoff_report.least_time_left_ms,
            waiting: self.backoff_report.waiting.clone(),
            cut_off: cut_off.map(|found| json!({"since_ms": found.since_ms, "sign": found.sign})),
        };
        let supervisors = self.dispatch.supervisor_count();
        let mut answer =
            local_crawl::status(&total, &backoff, finished, limit_reached, supervisors);
        if let Some(shortage) = &self.low_disk {
            answer["paused"] = shortage.as_str().into();
        }
        answer["quiet_s"] = self.quiet_s(now_ms).into();
        answer["scripts"] = self.scripts_told(crawls)?;
        let (sites, first) = self.frontier.repeating_sites(crawls, REPEATING_TOLD)?;
        answer["repeating"] = json!({"sites": sites, "first": first});
        Ok(answer)
    }

    /// Looks at the sites that back off, now and then because they may be many, and once more at the end.
    fn check_backoffs(&mut self, is_last: bool, now_ms: i64) -> Result<(), FrontierError> {
        if !is_last && now_ms < self.backoff_report.next_ms {
            return Ok(());
        }
        let (sites, first) = self.frontier.backing_off_sites(BACKOFFS_REPORTED, now_ms)?;
        let first = first.iter().map(|report| {
            let mut told = serde_json::json!({"site": report.name});
            add_state(&mut told, Some(report), now_ms);
            told
        });
        let soon_ms = now_ms + SOON_MS;
        let mut waiting = self.frontier.waiting_sites(soon_ms)?;
        let (delayed, first_ms) = self.dispatch.sites_delayed_until(soon_ms);
        waiting.add("delay", delayed, first_ms);
        self.backoff_report = BackoffReport {
            waiting,
            next_ms: now_ms + pause_ms(sites),
            sites,
            first: first.collect(),
            least_time_left_ms: self.dispatch.least_time_left_ms(now_ms),
        };
        Ok(())
    }

    /// Until when everything that is left of the crawls rests, if that is for longer than
    /// `patience_ms`.
    pub(in crate::core) fn all_back_off_until(
        &mut self,
        crawls: &[CrawlKey],
        now_ms: i64,
        patience_ms: u64,
    ) -> Result<Option<i64>, FrontierError> {
        let horizon_ms = now_ms.saturating_add_unsigned(patience_ms);
        let mut first = None;
        for crawl in crawls {
            if self.frontier.crawl_status(*crawl)?.queued == 0 {
                continue;
            }
            match self.frontier.backoffs_beyond(*crawl, horizon_ms)? {
                None => return Ok(None),
                Some(until_ms) => {
                    first = Some(first.map_or(until_ms, |so_far: i64| so_far.min(until_ms)));
                }
            }
        }
        Ok(first)
    }
}

/// How long after a look at so many sites that back off the next one is due.
fn pause_ms(sites: u64) -> i64 {
    CHECK_BACKOFFS_EVERY_MS * (1 + (sites / SITES_OF_ONE_PAUSE) as i64)
}

/// Whether a command's records are not of the crawl's dataset.
fn is_another((known, chosen): (&String, &ChosenDataset)) -> bool {
    *known != chosen.name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_sites_that_rest_are_counted_less_often() {
        assert_eq!(pause_ms(0), 1_000);
        assert_eq!(pause_ms(9_999), 1_000);
        assert_eq!(pause_ms(300_000), 31_000);
    }
}
