//! The requests of `webfill crawl` to the dispatcher that it started: open a crawl, feed seeds, read
//! counters, drain.

use serde_json::Value;
use webfill_wire::CrawlKey;

use crate::control::{self, Request, SeedUrl};
use crate::core::Core;
use crate::crawl_spec::CrawlSpec;
use crate::frontier::{Candidate, CrawlStatus, FrontierError};

impl Core {
    pub(super) fn carry_out_local(
        &mut self,
        request: Request,
        now_ms: i64,
    ) -> Result<Value, FrontierError> {
        match request {
            Request::OpenCrawl { spec } => self.open_crawl(&spec, now_ms),
            Request::FeedSeeds {
                crawl,
                seeds,
                fed_lines,
            } => self.feed_seeds(crawl, &seeds, fed_lines, now_ms),
            Request::EndOfSeeds { crawl } => {
                self.frontier.end_seeds(crawl)?;
                Ok(serde_json::json!({"accepted": 1}))
            }
            Request::CrawlStatus { crawls } | Request::Drain { crawls } => {
                self.crawl_status(&crawls, now_ms)
            }
        }
    }

    fn open_crawl(&mut self, spec: &CrawlSpec, now_ms: i64) -> Result<Value, FrontierError> {
        let crawl = self.frontier.open_crawl(spec)?;
        self.dispatch.forget_crawl(crawl);
        self.register_crawl(crawl, now_ms)?;
        // Records refer to the crawl's document in the store.
        self.write_crawl(crawl, now_ms)?;
        let fed_lines = self.frontier.crawl_status(crawl)?.fed_lines;
        Ok(serde_json::json!({"crawl": crawl, "fed_lines": fed_lines}))
    }

    /// Registers a crawl, new or from before the start, and queues its pending backfills.
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
        let answer = control::fed(&tally);
        self.apply_feed_tally(crawl, tally, now_ms)?;
        Ok(answer)
    }

    pub(in crate::core) fn crawl_status(
        &mut self,
        crawls: &[CrawlKey],
        now_ms: i64,
    ) -> Result<Value, FrontierError> {
        let mut total = CrawlStatus::default();
        let mut finished = true;
        let mut limit_reached = false;
        for crawl in crawls {
            // After a restart a crawl may have nothing left but backfills, and is not registered yet.
            self.register_crawl(*crawl, now_ms)?;
            let status = self.frontier.crawl_status(*crawl)?;
            finished &= self.crawls.is_finished(*crawl, &status);
            limit_reached |= self.crawls.is_limit_reached(&mut self.frontier, *crawl)?;
            total.add(&status);
        }
        let supervisors = self.dispatch.supervisor_count();
        Ok(control::status(
            &total,
            finished,
            limit_reached,
            supervisors,
        ))
    }
}
