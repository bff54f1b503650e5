//! Turns crawl requests into tasks: each is checked against the state of its crawl, the crawl's settings are updated,
//! and its URL is queued.
//!
//! Requests of `webfill crawl` take the same path. A request cannot contain all settings of a crawl; crawls of such
//! requests take the other settings from the command's own crawl.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use webfill_api::{Batch, CrawlOrder, CrawlSpec, Refusal, Seed};
use webfill_wire::{CrawlKey, Lane, Outcome, Reason};

use crate::core::context::Context;
use crate::core::outcomes;
use crate::core::requests::closing::ClosingCrawls;
use crate::frontier::{AttrsId, Candidate, FrontierError};

/// The effect that an order (the requests for one crawl) will have on its crawl.
pub(super) struct OrderPlan {
    /// The key of the crawl, if it exists.
    known: Option<CrawlKey>,
    /// The crawl's new settings; `None`: unchanged.
    spec: Option<CrawlSpec>,
}

/// Why a crawl takes no further requests.
pub(super) struct ClosedReason {
    pub(super) key: &'static str,
    pub(super) why: &'static str,
}

impl ClosedReason {
    /// The refusal of a batch that has requests for this crawl.
    pub(super) fn refusal(&self, batch: &Batch, order: &CrawlOrder) -> Refusal {
        let place = order.seeds.first().map_or(0, |seed| seed.place);
        let path = format!("{}.{}", batch.request_path(place), self.key);
        Refusal::new(&path, self.why)
    }
}

/// The crawls of a batch that were planned up to now.
#[derive(Default)]
pub(super) struct PlannedBatch<'a> {
    open: Vec<(&'a CrawlOrder, OrderPlan)>,
    closed: Vec<(&'a CrawlOrder, ClosedReason)>,
}

/// The result of feeding a batch.
#[derive(Default)]
pub(super) struct FedBatch {
    /// The crawls of the accepted requests.
    pub(super) crawls: Vec<CrawlKey>,
    pub(super) accepted: usize,
    /// URLs of accepted requests that did not become tasks, by reason.
    skipped: BTreeMap<Reason, u64>,
    /// Refused requests: `line`, `path`, `message`.
    refused: Vec<Value>,
}

impl FedBatch {
    pub(super) fn into_answer(self) -> Value {
        let mut answer = json!({"accepted": self.accepted});
        if !self.skipped.is_empty() {
            answer["skipped"] = json!(self.skipped);
        }
        if !self.refused.is_empty() {
            answer["refused"] = self.refused.into();
        }
        answer
    }

    pub(super) fn refuse_order(&mut self, order: &CrawlOrder, closed: &ClosedReason) {
        let refusal = Refusal::new(&format!("$.{}", closed.key), closed.why);
        for seed in &order.seeds {
            self.add_refusal(seed.place, &refusal);
        }
    }

    pub(super) fn add_refusal(&mut self, line: u64, refusal: &Refusal) {
        let (path, message) = (&refusal.path, &refusal.message);
        self.refused
            .push(json!({"line": line, "path": path, "message": message}));
    }
}

/// Feeds a batch of crawl requests. `whole`: if the requests of one crawl are refused, all are.
pub(super) fn feed_batch(
    cx: &mut Context,
    closing: &mut ClosingCrawls,
    batch: Batch,
    whole: bool,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let planned = plan_batch(cx, closing, &batch, None, now_ms)?;
    if whole && let Some((order, closed)) = planned.closed.first() {
        return Ok(closed.refusal(&batch, order).to_answer());
    }
    let fed = feed_planned(cx, closing, planned, now_ms)?;
    Ok(fed.into_answer())
}

/// Plans every crawl of a batch, without changing anything. `command`: the settings of the `webfill crawl` that sent
/// the requests.
pub(super) fn plan_batch<'a>(
    cx: &mut Context,
    closing: &ClosingCrawls,
    batch: &'a Batch,
    command: Option<&CrawlSpec>,
    now_ms: i64,
) -> Result<PlannedBatch<'a>, FrontierError> {
    let mut planned = PlannedBatch::default();
    for order in &batch.crawls {
        match plan_order(cx, closing, order, command, now_ms)? {
            Ok(plan) => planned.open.push((order, plan)),
            Err(closed) => planned.closed.push((order, closed)),
        }
    }
    Ok(planned)
}

/// Feeds the requests of all crawls that are not closed, and lists the requests of closed crawls as refused.
pub(super) fn feed_planned(
    cx: &mut Context,
    closing: &mut ClosingCrawls,
    planned: PlannedBatch<'_>,
    now_ms: i64,
) -> Result<FedBatch, FrontierError> {
    let mut fed = FedBatch::default();
    for (order, closed) in planned.closed {
        fed.refuse_order(order, &closed);
    }
    for (order, plan) in planned.open {
        let crawl = feed_order(cx, closing, order, plan, &mut fed, now_ms)?;
        fed.crawls.push(crawl);
    }
    Ok(fed)
}

/// Feeds the requests of a crawl.
pub(super) fn feed_order(
    cx: &mut Context,
    closing: &mut ClosingCrawls,
    order: &CrawlOrder,
    plan: OrderPlan,
    fed: &mut FedBatch,
    now_ms: i64,
) -> Result<CrawlKey, FrontierError> {
    let crawl = open_or_update_crawl(cx, closing, plan)?;
    fed.accepted += order.seeds.len();
    for (reason, n) in queue_seeds(cx, crawl, order, now_ms)? {
        *fed.skipped.entry(reason).or_insert(0) += n;
    }
    Ok(crawl)
}

/// Decides the effect of an order on its crawl, without changing anything.
pub(super) fn plan_order(
    cx: &mut Context,
    closing: &ClosingCrawls,
    order: &CrawlOrder,
    command: Option<&CrawlSpec>,
    now_ms: i64,
) -> Result<Result<OrderPlan, ClosedReason>, FrontierError> {
    let known = cx.frontier.crawls().find(&order.app_id, &order.crawl_id)?;
    let Some(crawl) = known else {
        let mut spec = CrawlSpec::on_demand(&order.app_id, &order.crawl_id);
        copy_command_settings(command, &mut spec);
        order.changes.apply(&mut spec);
        let spec = Some(spec);
        return Ok(Ok(OrderPlan { known, spec }));
    };
    if cx.frontier.crawls().end_outcome(crawl)? == Some(Outcome::Stopped) {
        return Ok(Err(ClosedReason {
            key: "crawlid",
            why: "the crawl was stopped; its id cannot be used again until `webfill prune` frees it",
        }));
    }
    let current = cx.frontier.crawls().spec(crawl)?;
    let mut spec = current.clone();
    copy_command_settings(command, &mut spec);
    order.changes.apply(&mut spec);
    let spec = (spec != *current).then_some(spec);
    let asked_for = spec.as_ref().unwrap_or(current);
    let is_over = asked_for
        .expires_at_ms
        .is_some_and(|at| at as i64 <= cx.wall_ms(now_ms));
    if is_over || closing.contains(crawl) {
        return Ok(Err(ClosedReason {
            key: "crawlid",
            why: "the crawl has expired; a new `expires` continues it",
        }));
    }
    Ok(Ok(OrderPlan { known, spec }))
}

/// Opens the crawl, or changes its settings.
fn open_or_update_crawl(
    cx: &mut Context,
    closing: &mut ClosingCrawls,
    plan: OrderPlan,
) -> Result<CrawlKey, FrontierError> {
    match (plan.known, plan.spec) {
        (Some(crawl), None) => Ok(crawl),
        (known, spec) => {
            let spec = spec.expect("a crawl of new ids has its first spec");
            let crawl = cx.frontier.crawls().upsert(known, spec)?;
            // Workers get the new settings with the crawl's next task.
            cx.dispatch.fleet.forget_crawl(crawl);
            closing.next_expiry_ms = cx.frontier.crawls().next_expiry_ms()?;
            Ok(crawl)
        }
    }
}

/// Queues the URLs of an order. Returns how many did not become tasks, by reason.
fn queue_seeds(
    cx: &mut Context,
    crawl: CrawlKey,
    order: &CrawlOrder,
    now_ms: i64,
) -> Result<BTreeMap<Reason, u64>, FrontierError> {
    let attrs = store_attrs(cx, &order.seeds)?;
    let seeds = order.seeds.iter().zip(attrs);
    let candidates: Vec<Candidate<'_>> = seeds
        .map(|(seed, attrs)| Candidate {
            url: &seed.url,
            depth: 0,
            priority: Some(seed.priority),
            parent: None,
            records: &[],
            attrs,
        })
        .collect();
    let tally = cx.frontier.tasks().feed(crawl, &candidates, now_ms)?;
    let skipped = tally.skipped.clone();
    outcomes::apply_feed_tally(cx, crawl, tally, now_ms)?;
    Ok(skipped)
}

/// Stores the attributes of each seed. Attributes that consecutive seeds share are stored once.
fn store_attrs(cx: &mut Context, seeds: &[Seed]) -> Result<Vec<Option<AttrsId>>, FrontierError> {
    let mut last: Option<(&Arc<str>, AttrsId)> = None;
    let mut kept = Vec::with_capacity(seeds.len());
    for seed in seeds {
        let Some(attrs) = &seed.attrs else {
            kept.push(None);
            continue;
        };
        let id = match last {
            Some((same, id)) if Arc::ptr_eq(same, attrs) => id,
            _ => cx.frontier.crawls().insert_attrs(attrs)?,
        };
        last = Some((attrs, id));
        kept.push(Some(id));
    }
    Ok(kept)
}

/// Takes the settings that no request can contain from the command line of `webfill crawl`: which links are followed,
/// how fresh pages must be, and whether there are browsers. Such a crawl ends when the command's seeds do, and retries
/// failures only if the command's own crawl does.
fn copy_command_settings(command: Option<&CrawlSpec>, spec: &mut CrawlSpec) {
    let Some(command) = command else { return };
    spec.follow = command.follow;
    spec.refresh_after_ms = command.refresh_after_ms;
    spec.on_demand = command.on_demand;
    spec.retry = command.retry;
    // An earlier run with browsers may have set the lane, but this run has no browsers.
    if command.lane == Lane::Http {
        spec.lane = Lane::Http;
    }
}
