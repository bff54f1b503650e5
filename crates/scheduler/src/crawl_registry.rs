//! The crawls that are not on demand (those of `webfill crawl` and of watches), with their pending backfills. Also
//! forms the data about any crawl for supervisors and for the store (its settings, its state). Crawls on demand are
//! not kept here, so their number does not matter.
//!
//! The registry is rebuilt after a crash: unfinished crawls are registered again at the start.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Map, Value};
use webfill_api::CrawlSpec;
use webfill_store::{Crawl, CrawlId, CrawlState, Page};
use webfill_wire::{CrawlKey, CrawlSettings, Delivery, Outcome};

use crate::frontier::{CrawlStatus, Frontier, FrontierError, TaskId, TaskSketch};

/// A crawl that `webfill crawl` or a watch has opened.
#[derive(Debug)]
struct OpenCrawl {
    opened_at_ms: i64,
    /// How many stored pages are being applied to further records.
    pending_backfills: u64,
}

/// All crawls that `webfill crawl` or a watch has opened.
#[derive(Debug, Default)]
pub(crate) struct CrawlRegistry {
    open: BTreeMap<CrawlKey, OpenCrawl>,
}

impl CrawlRegistry {
    /// Registers a crawl. Returns false if it was registered already.
    pub(crate) fn register(&mut self, crawl: CrawlKey, now_ms: i64) -> bool {
        let opened = OpenCrawl {
            opened_at_ms: now_ms,
            pending_backfills: 0,
        };
        match self.open.entry(crawl) {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                vacant.insert(opened);
                true
            }
        }
    }

    /// Drops a crawl that was pruned.
    pub(crate) fn unregister(&mut self, crawl: CrawlKey) {
        self.open.remove(&crawl);
    }

    pub(crate) fn on_backfill_queued(&mut self, crawl: CrawlKey) {
        if let Some(open) = self.open.get_mut(&crawl) {
            open.pending_backfills += 1;
        }
    }

    pub(crate) fn on_backfill_applied(&mut self, crawl: CrawlKey) {
        if let Some(open) = self.open.get_mut(&crawl) {
            open.pending_backfills = open.pending_backfills.saturating_sub(1);
        }
    }

    /// The crawls that `webfill crawl` or a watch has opened.
    pub(crate) fn open_crawls(&self) -> impl Iterator<Item = CrawlKey> + '_ {
        self.open.keys().copied()
    }

    /// Whether a registered crawl is finished: no seeds to come, no task left, no stored page to be applied to a
    /// record.
    pub(crate) fn is_finished(&self, crawl: CrawlKey, status: &CrawlStatus) -> bool {
        let nothing_left = status.queued == 0 && status.leased == 0;
        let open = self.open.get(&crawl);
        nothing_left && status.seeds_ended && open.is_some_and(|open| open.pending_backfills == 0)
    }

    /// The state of a crawl. `going_on`: false while the dispatcher drains, which makes a running crawl count as
    /// interrupted.
    pub(crate) fn state(
        &self,
        frontier: &mut Frontier,
        crawl: CrawlKey,
        going_on: bool,
        now_ms: i64,
    ) -> Result<CrawlState, FrontierError> {
        let status = frontier.crawls().status(crawl)?;
        let on_demand = frontier.crawls().spec(crawl)?.on_demand;
        let is_finished = match on_demand {
            true => status.queued == 0 && status.leased == 0,
            false => self.is_finished(crawl, &status),
        };
        let over = match frontier.crawls().end_outcome(crawl)? {
            Some(Outcome::Expired) => Some(CrawlState::Expired),
            Some(_) => Some(CrawlState::Stopped),
            None => None,
        };
        let spec = frontier.crawls().spec(crawl)?;
        let has_expired = spec.expires_at_ms.is_some_and(|at| at as i64 <= now_ms);
        Ok(match over {
            Some(over) => over,
            None if is_finished => CrawlState::Finished,
            None if has_expired => CrawlState::Expired,
            None if self.is_limit_reached(frontier, crawl)? => CrawlState::LimitReached,
            None if frontier.crawls().is_paused(crawl)? => CrawlState::Paused,
            None if going_on => CrawlState::Running,
            None => CrawlState::Interrupted,
        })
    }

    /// Whether the crawl's page limit is reached and none of its tasks is leased. The limit of a watch's run is also
    /// reached when all sites with remaining tasks have reached theirs.
    pub(crate) fn is_limit_reached(
        &self,
        frontier: &mut Frontier,
        crawl: CrawlKey,
    ) -> Result<bool, FrontierError> {
        let status = frontier.crawls().status(crawl)?;
        if status.leased > 0 {
            return Ok(false);
        }
        let is_reached = pages_left(frontier, crawl)? == Some(0);
        Ok(is_reached || status.seeds_ended && frontier.runs().is_beyond_budget(crawl)?)
    }

    /// The settings of a crawl that workers need.
    pub(crate) fn settings(
        &self,
        frontier: &mut Frontier,
        crawl: CrawlKey,
    ) -> Result<CrawlSettings, FrontierError> {
        let spec = frontier.crawls().spec(crawl)?;
        Ok(CrawlSettings {
            key: crawl,
            app_id: spec.app_id.clone(),
            crawl_id: spec.crawl_id.clone(),
            max_depth: spec.max_depth,
            follow: spec.follow,
            lane: spec.lane,
            useragent: spec.useragent.clone(),
            attrs: spec.attrs.as_ref().map(Value::to_string),
            headers: spec.on_demand,
            body: spec.body,
            features: spec.features(),
        })
    }

    /// The crawl's document in the store.
    pub(crate) fn crawl_document(
        &self,
        frontier: &mut Frontier,
        crawl: CrawlKey,
        going_on: bool,
        now_ms: i64,
    ) -> Result<Crawl, FrontierError> {
        let state = self.state(frontier, crawl, going_on, now_ms)?;
        let status = frontier.crawls().status(crawl)?;
        let spec = frontier.crawls().spec(crawl)?;
        let opened_at_ms = self.open.get(&crawl).map(|open| open.opened_at_ms);
        let is_over = matches!(
            state,
            CrawlState::Finished | CrawlState::Stopped | CrawlState::Expired
        );
        Ok(Crawl {
            id: CrawlId::new(&spec.app_id, &spec.crawl_id),
            request: serde_json::to_value(spec).unwrap_or_default(),
            state,
            counts: counts_with_open_tasks(&status),
            started_at_ms: opened_at_ms.unwrap_or(now_ms),
            updated_at_ms: now_ms,
            finished_at_ms: is_over.then_some(now_ms),
        })
    }
}

fn pages_left(frontier: &mut Frontier, crawl: CrawlKey) -> Result<Option<u64>, FrontierError> {
    let pages = frontier.crawls().status(crawl)?.pages;
    let limit = frontier.crawls().spec(crawl)?.max_pages;
    Ok(limit.map(|limit| limit.saturating_sub(pages)))
}

fn counts_with_open_tasks(status: &CrawlStatus) -> Map<String, Value> {
    let mut counts = status.counts();
    counts.insert("leased".into(), status.leased.into());
    counts.insert("done".into(), status.done.into());
    counts
}

/// The page to store for a task that ended in `crashed`, because no worker could save it.
pub(crate) fn crashed_page(
    spec: &CrawlSpec,
    (id, delivery): (TaskId, Delivery),
    task: TaskSketch,
    now_ms: i64,
) -> Page {
    let crawl = CrawlId::new(&spec.app_id, &spec.crawl_id);
    Page {
        depth: task.depth,
        started_at_ms: now_ms,
        task: id,
        delivery,
        worker: "dispatcher".into(),
        attrs: match task.attrs {
            Some(own) => serde_json::from_str(&own).ok(),
            None => spec.attrs.clone(),
        },
        ..Page::new(&crawl, &task.url, &task.site, Outcome::Crashed)
    }
}
