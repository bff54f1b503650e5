//! The simulated operator. It pauses and stops crawls, sets delays and limits of sites, and blocks sites. Each order is
//! repeated until it is answered.

use serde_json::{Value, json};
use webfill_wire::CrawlKey;

use crate::event::Event;
use crate::names::{CRAWLS, site_name};
use crate::orders::Order;
use crate::world::World;

/// An unanswered order is repeated after this many milliseconds, or after this many leases if that is longer.
const AGAIN_AFTER_MS: u64 = 3_000;
const AGAIN_AFTER_LEASES: u64 = 2;

/// Gives an order to the dispatcher. Returns the request; `None` if the order was already answered or cannot be given
/// yet.
pub(crate) fn give_order(world: &mut World, number: usize) -> Option<String> {
    if world.operator.answered.contains(&number) {
        return None;
    }
    let again_ms = AGAIN_AFTER_MS.max(AGAIN_AFTER_LEASES * world.plan.lease_ms);
    world.schedule_in(again_ms, Event::OperatorActs(number));
    let order = world.plan.orders[number].1;
    if order
        .crawl()
        .is_some_and(|crawl| !world.client.has_opened(crawl))
    {
        // The crawl of this order is not open yet, so the order would have no effect.
        return None;
    }
    let now_ms = world.now_ms;
    world.operator.given_ms.entry(number).or_insert(now_ms);
    if let Order::Forget { site } = order {
        world.web.judge.void_back_off(site);
    }
    match order {
        Order::Resume { crawl } => {
            world.operator.paused.remove(&crawl_key(crawl));
            mark_overtaken(
                world,
                number,
                |other| matches!(other, Order::Pause { crawl: paused, .. } if paused == crawl),
            );
        }
        Order::Block { site, .. } | Order::Unblock { site } | Order::Forget { site } => {
            world.operator.blocked.remove(&site);
            mark_overtaken(
                world,
                number,
                |other| matches!(other, Order::Block { site: blocked, .. } if blocked == site),
            );
        }
        // From now on, the site may be requested at this delay.
        Order::Delay { site, delay_ms } => world.web.judge.allow_delay(site, delay_ms),
        _ => {}
    }
    Some(request_for(world, order).to_string())
}

/// Marks earlier orders as overtaken if this order changes their effect. The answer to an overtaken order does not show
/// whether the order is in force.
fn mark_overtaken(world: &mut World, number: usize, changes: impl Fn(Order) -> bool) {
    let orders = world.plan.orders.iter().enumerate();
    let given = &world.operator.given_ms;
    let others = orders
        .filter(|(other, _)| *other != number && given.contains_key(other))
        .filter(|(_, (_, order))| changes(*order))
        .map(|(other, _)| other);
    world.operator.overtaken.extend(others);
}

fn request_for(world: &World, order: Order) -> Value {
    let act = |action: &str, crawl: usize| {
        let app = world.plan.app(crawl);
        json!({"action": action, "appid": app, "crawlid": CRAWLS[crawl]})
    };
    let set = |site: usize, key: &str, value: Value| json!({"action": "site", "site": site_name(site), key: value});
    match order {
        Order::Pause { crawl, .. } => act("pause", crawl),
        Order::Resume { crawl } => act("resume", crawl),
        Order::Stop { crawl } => act("stop", crawl),
        Order::Delay { site, delay_ms } => set(site, "delay", json!(delay_ms as f64 / 1e3)),
        Order::Block { site, for_ms } => {
            let until_ms = world.coordinator.wall_ms(world.now_ms) + for_ms as i64;
            set(site, "block_until", json!(until_ms as f64 / 1e3))
        }
        Order::Unblock { site } => set(site, "block_until", Value::Null),
        Order::Limit { site, pages, .. } => set(site, "limit", json!(pages)),
        Order::NoLimit { site } => set(site, "limit", Value::Null),
        Order::Forget { site } => set(site, "forget", json!(true)),
    }
}

/// Handles the answer to an order. From now on the order is in force. The order that reverts it is given later.
pub(crate) fn handle_operator_answer(world: &mut World, number: usize, answer: &Value) {
    if !world.operator.answered.insert(number) {
        return;
    }
    let is_done = answer.get("error").is_none() && !world.operator.overtaken.contains(&number);
    let given_ms = world.operator.given_ms.get(&number).copied();
    let taken_back_by = Event::OperatorActs(number + 1);
    match world.plan.orders[number].1 {
        Order::Pause { crawl, for_ms } => {
            if is_done {
                world.operator.paused.insert(crawl_key(crawl));
            }
            world.schedule_in(for_ms, taken_back_by);
        }
        Order::Stop { crawl } if is_done => drop(world.operator.stopped.insert(crawl_key(crawl))),
        Order::Block { site, for_ms } => {
            // The block ends by the wall clock. If that clock is set, the block is not judged.
            if is_done && !world.plan.has_clock_fault() {
                let until_ms = given_ms.unwrap_or(0) + for_ms / 2;
                world.operator.blocked.insert(site, until_ms);
            }
            world.schedule_in(for_ms / 2, taken_back_by);
        }
        Order::Limit { for_ms, .. } => world.schedule_in(for_ms, taken_back_by),
        _ => {}
    }
}

/// The key of a crawl, which follows from its position because the client opens the crawls in order.
fn crawl_key(crawl: usize) -> CrawlKey {
    crawl as CrawlKey + 1
}
