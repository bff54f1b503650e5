//! Crawl requests: a batch is judged by the state of the crawls that it names, then its URLs are queued.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use webfill_wire::{CrawlKey, Outcome, Reason};

use crate::control::{Batch, Order, Refusal, Seed};
use crate::core::Core;
use crate::crawl_spec::CrawlSpec;
use crate::frontier::{AttrsId, Candidate, FrontierError};

/// How a crawl of a batch is to be created or changed.
struct Plan {
    known: Option<CrawlKey>,
    /// The crawl's new spec, if it differs from the stored one.
    spec: Option<CrawlSpec>,
}

/// Why a crawl takes no further requests.
struct Closed {
    key: &'static str,
    why: &'static str,
}

impl Core {
    /// Takes in a batch. `whole`: one refused crawl refuses the batch; otherwise only the refused
    /// crawl's requests are left out.
    pub(super) fn take_batch(
        &mut self,
        batch: Batch,
        whole: bool,
        now_ms: i64,
    ) -> Result<Value, FrontierError> {
        let mut refused = Vec::new();
        let mut planned = Vec::new();
        for order in &batch.crawls {
            match self.plan(order, now_ms)? {
                Ok(plan) => planned.push((order, plan)),
                Err(closed) if whole => {
                    let place = order.seeds.first().map_or(0, |seed| seed.place);
                    let path = format!("{}.{}", batch.path(place), closed.key);
                    return Ok(Refusal::new(&path, closed.why).answer());
                }
                Err(closed) => refused.extend(order.seeds.iter().map(|seed| {
                    let path = format!("$.{}", closed.key);
                    json!({"line": seed.place, "path": path, "message": closed.why})
                })),
            }
        }
        let mut skipped = BTreeMap::new();
        for (order, plan) in planned {
            for (reason, n) in self.take_order(order, plan, now_ms)? {
                *skipped.entry(reason).or_insert(0) += n;
            }
        }
        let mut answer = json!({"accepted": batch.len() - refused.len()});
        if !skipped.is_empty() {
            answer["skipped"] = json!(skipped);
        }
        if !refused.is_empty() {
            answer["refused"] = refused.into();
        }
        Ok(answer)
    }

    /// Plans what a request does to its crawl, without changing anything.
    fn plan(&mut self, order: &Order, now_ms: i64) -> Result<Result<Plan, Closed>, FrontierError> {
        let known = self.frontier.find_crawl(&order.app_id, &order.crawl_id)?;
        let Some(crawl) = known else {
            let mut spec = CrawlSpec::on_demand(&order.app_id, &order.crawl_id);
            order.changes.apply(&mut spec);
            let spec = Some(spec);
            return Ok(Ok(Plan { known, spec }));
        };
        if self.frontier.crawl_end(crawl)? == Some(Outcome::Stopped) {
            return Ok(Err(Closed {
                key: "crawlid",
                why: "the crawl was stopped, and its id is not taken again",
            }));
        }
        let current = self.frontier.spec(crawl)?;
        let mut spec = current.clone();
        order.changes.apply(&mut spec);
        let spec = (spec != *current).then_some(spec);
        let asked_for = spec.as_ref().unwrap_or(current);
        let is_over = asked_for
            .expires_at_ms
            .is_some_and(|at| at as i64 <= now_ms);
        if is_over || self.closing_crawls.contains(crawl) {
            return Ok(Err(Closed {
                key: "crawlid",
                why: "the crawl has expired; it goes on if `expires` is set anew",
            }));
        }
        Ok(Ok(Plan { known, spec }))
    }

    /// Returns what did not become a task, by reason.
    fn take_order(
        &mut self,
        order: &Order,
        plan: Plan,
        now_ms: i64,
    ) -> Result<BTreeMap<Reason, u64>, FrontierError> {
        let crawl = match (plan.known, plan.spec) {
            (Some(crawl), None) => crawl,
            (known, spec) => {
                let spec = spec.expect("a crawl of new ids has its first spec");
                let crawl = self.frontier.upsert_crawl(known, spec)?;
                // Supervisors are sent the new settings with the crawl's next task.
                self.dispatch.forget_crawl(crawl);
                self.next_expiry_ms = self.frontier.next_expiry_ms()?;
                crawl
            }
        };
        let attrs = self.keep_attrs(&order.seeds)?;
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
        let tally = self.frontier.feed(crawl, &candidates, now_ms)?;
        let skipped = tally.skipped.clone();
        self.apply_feed_tally(crawl, tally, now_ms)?;
        Ok(skipped)
    }

    /// Stores the `attrs` of each seed; neighbours that share one object share one row.
    fn keep_attrs(&mut self, seeds: &[Seed]) -> Result<Vec<Option<AttrsId>>, FrontierError> {
        let mut last: Option<(&Arc<str>, AttrsId)> = None;
        let mut kept = Vec::with_capacity(seeds.len());
        for seed in seeds {
            let Some(attrs) = &seed.attrs else {
                kept.push(None);
                continue;
            };
            let id = match last {
                Some((same, id)) if Arc::ptr_eq(same, attrs) => id,
                _ => self.frontier.keep_attrs(attrs)?,
            };
            last = Some((attrs, id));
            kept.push(Some(id));
        }
        Ok(kept)
    }
}
