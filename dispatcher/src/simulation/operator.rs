//! The simulated operator: pauses and stops crawls, sets delays and limits of sites, blocks them,
//! and asks again until there is an answer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use webfill_wire::CrawlKey;

use super::client::CRAWLS;
use super::plan::Order;
use super::worker::site_name;
use super::world::{Event, World};

/// Without an answer, an order is given again after this long.
const AGAIN_AFTER_MS: u64 = 3_000;

/// What was asked for, and what therefore must not happen.
#[derive(Debug, Default)]
pub(super) struct Operator {
    answered: BTreeSet<usize>,
    paused: BTreeSet<CrawlKey>,
    stopped: BTreeSet<CrawlKey>,
    /// Sites, until when.
    blocked: BTreeMap<usize, u64>,
}

impl Operator {
    /// Whether a page may be asked for by what was answered so far.
    pub(super) fn permits(&self, crawl: CrawlKey, site: usize, now_ms: u64) -> bool {
        let is_blocked = self.blocked.get(&site).is_some_and(|until| now_ms < *until);
        !is_blocked && !self.paused.contains(&crawl) && !self.stopped.contains(&crawl)
    }
}

impl World {
    pub(super) fn let_operator_act(&mut self, number: usize) {
        if self.operator.answered.contains(&number) {
            return;
        }
        self.later(AGAIN_AFTER_MS, Event::OperatorActs(number));
        let order = self.plan.orders[number].1;
        if let Order::Resume { crawl } = order {
            self.operator.paused.remove(&key(crawl));
        }
        if let Order::Delay { site, delay_ms } = order {
            // From now on it may be as short as that.
            self.web.may_want(site, delay_ms);
        }
        if let Order::Unblock { site } | Order::Forget { site } = order {
            self.operator.blocked.remove(&site);
        }
        let question = self.question(order).to_string();
        self.ask_as(number as u64, question.as_bytes());
    }

    fn question(&self, order: Order) -> Value {
        let act = |action: &str, crawl: usize| json!({"action": action, "appid": "app", "crawlid": CRAWLS[crawl]});
        let set = |site: usize, key: &str, value: Value| json!({"action": "site", "site": site_name(site), key: value});
        match order {
            Order::Pause { crawl, .. } => act("pause", crawl),
            Order::Resume { crawl } => act("resume", crawl),
            Order::Stop { crawl } => act("stop", crawl),
            Order::Delay { site, delay_ms } => set(site, "delay", json!(delay_ms as f64 / 1e3)),
            Order::Block { site, for_ms } => {
                let until_ms = self.coordinator.wall_ms(self.now_ms) + for_ms as i64;
                set(site, "block_until", json!(until_ms as f64 / 1e3))
            }
            Order::Unblock { site } => set(site, "block_until", Value::Null),
            Order::Limit { site, pages, .. } => set(site, "limit", json!(pages)),
            Order::NoLimit { site } => set(site, "limit", Value::Null),
            Order::Forget { site } => set(site, "forget", json!(true)),
        }
    }

    /// The answer to an order: it holds from now on, and is taken back later.
    pub(super) fn take_operators_answer(&mut self, number: usize, answer: &Value) {
        if !self.operator.answered.insert(number) {
            return;
        }
        let is_done = answer.get("error").is_none();
        let taken_back_by = Event::OperatorActs(number + 1);
        match self.plan.orders[number].1 {
            Order::Pause { crawl, for_ms } => {
                if is_done {
                    self.operator.paused.insert(key(crawl));
                }
                self.later(for_ms, taken_back_by);
            }
            Order::Stop { crawl } if is_done => drop(self.operator.stopped.insert(key(crawl))),
            Order::Block { site, for_ms } => {
                // The orders for one site may overtake each other; the last one holds.
                self.operator.blocked.insert(site, self.now_ms + for_ms / 2);
                self.later(for_ms / 2, taken_back_by);
            }
            Order::Limit { for_ms, .. } => self.later(for_ms, taken_back_by),
            _ => {}
        }
    }

    /// A page is asked for, though that was ruled out. Only if nothing goes wrong has everybody
    /// heard of that.
    pub(super) fn judge_by_orders(&mut self, crawl: CrawlKey, site: usize, who: &str) {
        if self.plan.is_peaceful() && !self.operator.permits(crawl, site, self.now_ms) {
            let fault = format!("against orders: site {site} for crawl {crawl} by {who}");
            self.faults.push(fault);
        }
    }
}

/// The client opens them in order.
fn key(crawl: usize) -> CrawlKey {
    crawl as CrawlKey + 1
}
