//! Draws the orders of the simulated operator (to pause a crawl, to block a site), and their times.

use crate::dice::Dice;
use crate::faults::Fault;
use crate::orders::Order;
use crate::plan::Plan;

pub(crate) fn add_orders(plan: &mut Plan, dice: &mut Dice) {
    let most_orders = dice.one_of(&[0, 1, 6]);
    for _ in 0..dice.between(0, most_orders) {
        let at_ms = dice.between(0, plan.estimate_ms);
        let for_ms = dice.log_uniform(100, plan.estimate_ms);
        let (site, crawl) = draw_subject(plan, dice);
        add_order(plan, dice, at_ms, for_ms, site, crawl);
    }
}

/// In some worlds, the operator gives orders that supervisors or workers cannot receive, because they are stopped or
/// cut off for at most a lease. If they still started tasks, they would violate the order.
pub(crate) fn add_unreceived_orders_sometimes(plan: &mut Plan, dice: &mut Dice) {
    if dice.once_in(4) {
        add_unreceived_order(plan, dice);
    }
}

pub(crate) fn add_unreceived_order(plan: &mut Plan, dice: &mut Dice) {
    let supervisor = dice.between(0, plan.supervisors as u64 - 1) as usize;
    let slot = dice.between(0, u64::from(plan.workers) - 1) as u16;
    let at_ms = dice.between(0, plan.estimate_ms);
    let for_ms = dice.log_uniform(2_000, plan.lease_ms);
    let fault = match dice.between(0, 2) {
        0 => Fault::SupervisorStops { supervisor, for_ms },
        1 => Fault::WorkerStops {
            supervisor,
            slot,
            for_ms,
        },
        _ => Fault::Offline {
            supervisor,
            up: dice.once_in(2),
            down: true,
            for_ms,
        },
    };
    plan.faults.push((at_ms, fault));
    let ordered_at_ms = at_ms + dice.between(0, for_ms / 2);
    let holds_ms = 2 * plan.lease_ms;
    let (site, crawl) = draw_subject(plan, dice);
    let (order, taken_back_by) = match dice.between(0, 2) {
        0 => block_order(site, 2 * holds_ms),
        1 if crawl > 0 => (Order::Stop { crawl }, None),
        _ => pause_order(crawl, holds_ms),
    };
    push_order(plan, ordered_at_ms, order, taken_back_by);
}

fn draw_subject(plan: &Plan, dice: &mut Dice) -> (usize, usize) {
    let site = dice.between(0, plan.sites.len() as u64 - 1) as usize;
    let crawl = dice.between(0, plan.priorities.len() as u64 - 1) as usize;
    (site, crawl)
}

fn add_order(plan: &mut Plan, dice: &mut Dice, at_ms: u64, for_ms: u64, site: usize, crawl: usize) {
    let (order, taken_back_by) = match dice.between(0, 7) {
        0..=2 => pause_order(crawl, for_ms),
        3 if crawl > 0 => (Order::Stop { crawl }, None),
        3 | 4 => {
            let delay_ms = dice.one_of(&[0, 20, 1_000, 20_000]);
            (Order::Delay { site, delay_ms }, None)
        }
        5 => block_order(site, for_ms),
        6 => {
            let pages = dice.between(0, 3);
            let order = Order::Limit {
                site,
                pages,
                for_ms,
            };
            (order, Some(Order::NoLimit { site }))
        }
        _ => (Order::Forget { site }, None),
    };
    push_order(plan, at_ms, order, taken_back_by);
}

pub(crate) fn push_order(plan: &mut Plan, at_ms: u64, order: Order, taken_back_by: Option<Order>) {
    plan.orders.push((at_ms, order));
    plan.orders
        .extend(taken_back_by.map(|order| (at_ms, order)));
}

pub(crate) fn pause_order(crawl: usize, for_ms: u64) -> (Order, Option<Order>) {
    let order = Order::Pause { crawl, for_ms };
    (order, Some(Order::Resume { crawl }))
}

fn block_order(site: usize, for_ms: u64) -> (Order, Option<Order>) {
    let order = Order::Block { site, for_ms };
    (order, Some(Order::Unblock { site }))
}
