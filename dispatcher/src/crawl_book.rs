//! The crawls that were asked for since the start: what workers must know of them, when they are
//! finished, how far their page limits reach.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Map, Value, json};
use webfill_store::{Crawl, CrawlId, CrawlState, Page};
use webfill_wire::{CrawlKey, CrawlSettings, Outcome};

use crate::crawl_spec::CrawlSpec;
use crate::frontier::{CrawlStatus, Frontier, FrontierError, TaskSketch};

/// An open crawl.
#[derive(Debug)]
struct OpenCrawl {
    opened_at_ms: i64,
    /// Stored pages that are being applied to further records.
    applying: u64,
}

/// All open crawls.
#[derive(Debug, Default)]
pub(crate) struct CrawlBook {
    open: BTreeMap<CrawlKey, OpenCrawl>,
}

impl CrawlBook {
    /// Returns false if it was open already.
    pub(crate) fn open(&mut self, crawl: CrawlKey, now_ms: i64) -> bool {
        let opened = OpenCrawl {
            opened_at_ms: now_ms,
            applying: 0,
        };
        match self.open.entry(crawl) {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                vacant.insert(opened);
                true
            }
        }
    }

    pub(crate) fn applying(&mut self, crawl: CrawlKey) {
        if let Some(open) = self.open.get_mut(&crawl) {
            open.applying += 1;
        }
    }

    pub(crate) fn applied(&mut self, crawl: CrawlKey) {
        if let Some(open) = self.open.get_mut(&crawl) {
            open.applying = open.applying.saturating_sub(1);
        }
    }

    pub(crate) fn is_finished(&self, crawl: CrawlKey, status: &CrawlStatus) -> bool {
        let nothing_left = status.queued == 0 && status.leased == 0;
        let open = self.open.get(&crawl);
        nothing_left && status.seeds_ended && open.is_some_and(|open| open.applying == 0)
    }

    /// How many tasks may be handed out before a page limit is reached: unlimited as soon as one
    /// crawl is.
    pub(crate) fn page_budget(&self, frontier: &mut Frontier) -> Result<u64, FrontierError> {
        let mut budget = 0u64;
        for crawl in self.open.keys() {
            let Some(left) = pages_left(frontier, *crawl)? else {
                return Ok(u64::MAX);
            };
            let leased = frontier.crawl_status(*crawl)?.leased;
            budget = budget.saturating_add(left.saturating_sub(leased));
        }
        Ok(if self.open.is_empty() {
            u64::MAX
        } else {
            budget
        })
    }

    /// The crawl's page limit is reached, and nothing of it is under way.
    pub(crate) fn is_limit_reached(
        &self,
        frontier: &mut Frontier,
        crawl: CrawlKey,
    ) -> Result<bool, FrontierError> {
        let leased = frontier.crawl_status(crawl)?.leased;
        Ok(leased == 0 && pages_left(frontier, crawl)? == Some(0))
    }

    /// What workers must know of a crawl.
    pub(crate) fn settings(
        &self,
        frontier: &mut Frontier,
        crawl: CrawlKey,
    ) -> Result<CrawlSettings, FrontierError> {
        let spec = frontier.spec(crawl)?;
        Ok(CrawlSettings {
            key: crawl,
            app_id: spec.app_id.clone(),
            crawl_id: spec.crawl_id.clone(),
            max_depth: spec.max_depth,
            follow: spec.follow,
            useragent: spec.useragent.clone(),
            attrs: spec.attrs.as_ref().map(Value::to_string),
        })
    }

    /// The open crawls as the store keeps them. `going_on`: what is not finished is being worked
    /// on; otherwise it was interrupted.
    pub(crate) fn rows(
        &self,
        frontier: &mut Frontier,
        going_on: bool,
        now_ms: i64,
    ) -> Result<Vec<Crawl>, FrontierError> {
        let mut rows = Vec::new();
        for (crawl, open) in &self.open {
            let status = frontier.crawl_status(*crawl)?;
            let limit_reached = self.is_limit_reached(frontier, *crawl)?;
            let finished = self.is_finished(*crawl, &status);
            let state = match (finished, limit_reached) {
                (true, _) => CrawlState::Finished,
                (false, true) => CrawlState::LimitReached,
                (false, false) if going_on => CrawlState::Running,
                (false, false) => CrawlState::Interrupted,
            };
            let spec = frontier.spec(*crawl)?;
            rows.push(Crawl {
                id: CrawlId::new(&spec.app_id, &spec.crawl_id),
                request: serde_json::to_value(spec).unwrap_or_default(),
                state,
                counts: counts(&status),
                started_at_ms: open.opened_at_ms,
                updated_at_ms: now_ms,
                finished_at_ms: finished.then_some(now_ms),
            });
        }
        Ok(rows)
    }
}

fn pages_left(frontier: &mut Frontier, crawl: CrawlKey) -> Result<Option<u64>, FrontierError> {
    let pages = frontier.crawl_status(crawl)?.pages;
    let limit = frontier.spec(crawl)?.max_pages;
    Ok(limit.map(|limit| limit.saturating_sub(pages)))
}

fn counts(status: &CrawlStatus) -> Map<String, Value> {
    let counts = json!({
        "pages": status.pages,
        "queued": status.queued,
        "leased": status.leased,
        "done": status.done,
        "outcomes": status.outcomes,
        "skipped": status.skipped,
        "fields": status.fields,
        "links": status.links,
        "bytes": status.bytes,
        "sites": status.sites,
    });
    match counts {
        Value::Object(counts) => counts,
        _ => Map::new(),
    }
}

/// The page of a task that has no worker left to save it.
pub(crate) fn crashed_page(spec: &CrawlSpec, task: TaskSketch, attempt: u32, now_ms: i64) -> Page {
    Page {
        app_id: spec.app_id.clone(),
        crawl_id: spec.crawl_id.clone(),
        url: task.url,
        final_url: None,
        site: task.site,
        depth: task.depth,
        parent: None,
        outcome: Outcome::Crashed,
        status_code: None,
        mapping: None,
        fields: Map::new(),
        links: Vec::new(),
        content_type: None,
        bytes: 0,
        content_hash: None,
        started_at_ms: now_ms,
        elapsed_ms: 0,
        attempts: attempt,
        worker: "dispatcher".into(),
        attrs: spec.attrs.clone(),
    }
}
