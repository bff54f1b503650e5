//! The simulated operator: pauses and stops crawls, sets delays and limits of sites, blocks sites, and repeats each
//! order until it is answered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use webfill_wire::CrawlKey;

use crate::client::CRAWLS;
use crate::orders::Order;
use crate::shared_servers::site_name;
use crate::world::{Event, World};

/// An unanswered order is repeated after this long, and not before the leases of stopped supervisors have expired.
const AGAIN_AFTER_MS: u64 = 3_000;
const AGAIN_AFTER_LEASES: u64 = 2;

/// The orders given so far, and the requests that they rule out.
#[derive(Debug, Default)]
pub(crate) struct Operator {
    answered: BTreeSet<usize>,
    /// When each order was first given.
    given_ms: BTreeMap<usize, u64>,
    /// Orders whose answers show nothing, because a later order may have changed their effect.
    overtaken: BTreeSet<usize>,
    paused: BTreeSet<CrawlKey>,
    stopped: BTreeSet<CrawlKey>,
    /// Blocked sites, with the end of the block.
    blocked: BTreeMap<usize, u64>,
}

impl Operator {
    /// Whether the answers so far permit a request for a page.
    pub(crate) fn permits(&self, crawl: CrawlKey, site: usize, now_ms: u64) -> bool {
        let is_blocked = self.blocked.get(&site).is_some_and(|until| now_ms < *until);
        !is_blocked && !self.paused.contains(&crawl) && !self.stopped.contains(&crawl)
    }

    /// Whether an order was answered, so that nobody waits for it any more.
    pub(crate) fn is_answered(&self, number: u64) -> bool {
        self.answered.contains(&(number as usize))
    }
}

impl World {
    pub(crate) fn give_order(&mut self, number: usize) {
        if self.operator.answered.contains(&number) {
            return;
        }
        let again_ms = AGAIN_AFTER_MS.max(AGAIN_AFTER_LEASES * self.plan.lease_ms);
        self.schedule_in(again_ms, Event::OperatorActs(number));
        let order = self.plan.orders[number].1;
        if order
            .crawl()
            .is_some_and(|crawl| !self.client.has_opened(crawl))
        {
            // The order was not meant for a crawl that is opened later.
            return;
        }
        let now_ms = self.now_ms;
        self.operator.given_ms.entry(number).or_insert(now_ms);
        if let Order::Forget { site } = order {
            self.web.judge.void_back_off(site);
        }
        match order {
            Order::Resume { crawl } => {
                self.operator.paused.remove(&key(crawl));
                self.mark_overtaken(
                    number,
                    |other| matches!(other, Order::Pause { crawl: paused, .. } if paused == crawl),
                );
            }
            Order::Block { site, .. } | Order::Unblock { site } | Order::Forget { site } => {
                self.operator.blocked.remove(&site);
                self.mark_overtaken(
                    number,
                    |other| matches!(other, Order::Block { site: blocked, .. } if blocked == site),
                );
            }
            // From now on the delay may be as short as that.
            Order::Delay { site, delay_ms } => self.web.judge.allow_delay(site, delay_ms),
            _ => {}
        }
        let question = self.request_for(order).to_string();
        self.send_operator_request(number as u64, question.as_bytes());
    }

    /// Notes that the answers to other orders given so far show nothing any more.
    fn mark_overtaken(&mut self, number: usize, changes: impl Fn(Order) -> bool) {
        let orders = self.plan.orders.iter().enumerate();
        let given = &self.operator.given_ms;
        let others = orders
            .filter(|(other, _)| *other != number && given.contains_key(other))
            .filter(|(_, (_, order))| changes(*order))
            .map(|(other, _)| other);
        self.operator.overtaken.extend(others);
    }

    fn request_for(&self, order: Order) -> Value {
        let act = |action: &str, crawl: usize| {
            let app = self.plan.app(crawl);
            json!({"action": action, "appid": app, "crawlid": CRAWLS[crawl]})
        };
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

    /// Handles the answer to an order. The order is in force from now on, and is reverted later.
    pub(crate) fn handle_operator_answer(&mut self, number: usize, answer: &Value) {
        if !self.operator.answered.insert(number) {
            return;
        }
        let is_done = answer.get("error").is_none() && !self.operator.overtaken.contains(&number);
        let given_ms = self.operator.given_ms.get(&number).copied();
        let taken_back_by = Event::OperatorActs(number + 1);
        match self.plan.orders[number].1 {
            Order::Pause { crawl, for_ms } => {
                if is_done {
                    self.operator.paused.insert(key(crawl));
                }
                self.schedule_in(for_ms, taken_back_by);
            }
            Order::Stop { crawl } if is_done => drop(self.operator.stopped.insert(key(crawl))),
            Order::Block { site, for_ms } => {
                // The block ends by the wall clock, so it is not judged if that is set.
                if is_done && !self.plan.has_clock_fault() {
                    let until_ms = given_ms.unwrap_or(0) + for_ms / 2;
                    self.operator.blocked.insert(site, until_ms);
                }
                self.schedule_in(for_ms / 2, taken_back_by);
            }
            Order::Limit { for_ms, .. } => self.schedule_in(for_ms, taken_back_by),
            _ => {}
        }
    }

    /// Judges a request for a page by the orders that are in force.
    pub(crate) fn check_orders(&mut self, crawl: CrawlKey, site: usize, who: &str) {
        if !self.operator.permits(crawl, site, self.now_ms) {
            let fault = format!("against orders: site {site} for crawl {crawl} by {who}");
            self.faults.push(fault);
        }
    }
}

/// The key of a crawl. The client opens the crawls in order.
fn key(crawl: usize) -> CrawlKey {
    crawl as CrawlKey + 1
}
