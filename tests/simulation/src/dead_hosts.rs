//! Worlds with dead hosts, which never answer. The crawls of these hosts have several priorities and are held back:
//! paused, limited, in another lane, or expired. They are fed at different times, so that newer tasks precede older
//! ones.

use webfill_scheduler::ApplicationLimits;
use webfill_wire::Lane;

use crate::dice::Dice;
use crate::drawn_orders::{self, pause_order};
use crate::names::CRAWLS;
use crate::plan::{DeadHosts, Plan};
use crate::robots::RobotsPlan;
use crate::settings::REST_S;

/// Adds dead hosts to some worlds, as the last change of the plan. Worlds where machines lose their connection to the
/// web are skipped, because these losses could make sites unreachable, too.
pub(crate) fn add_dead_hosts_sometimes(plan: &mut Plan, dice: &mut Dice) {
    if dice.once_in(4) && plan.backoff && !plan.loses_egress() {
        add_dead_hosts(plan, dice);
    }
}

pub(crate) fn add_dead_hosts(plan: &mut Plan, dice: &mut Dice) {
    let lane = |dice: &mut Dice, plan: &Plan| match plan.lanes.concat().contains(&Lane::Browser) {
        true => dice.one_of(&[Lane::Http, Lane::Browser]),
        false => Lane::Http,
    };
    while plan.priorities.len() < CRAWLS.len() {
        plan.priorities.push(dice.one_of(&[15, 30, 50, 60, 90]));
        plan.crawl_lanes.push(lane(dice, plan));
        plan.records.push(0);
    }
    for site in &mut plan.sites {
        if dice.once_in(2) {
            site.robots = RobotsPlan::always_failing(dice);
            site.blocks = None;
        }
    }
    // The time from the first failure of a host until it is unreachable.
    let most_backoffs = dice.between(1, 2) as usize;
    let unreachable_ms = (most_backoffs as f64 * REST_S * 1e3) as u64 + 2 * plan.longest_request_ms;
    let later = |dice: &mut Dice| dice.between(0, 2 * unreachable_ms);
    for crawl in 0..CRAWLS.len() {
        if dice.once_in(2) {
            let (at_ms, for_ms) = (later(dice), dice.log_uniform(1_000, 4 * unreachable_ms));
            let (order, taken_back_by) = pause_order(crawl, for_ms);
            drawn_orders::push_order(plan, at_ms, order, taken_back_by);
        }
    }
    let feeds_at_ms = (0..CRAWLS.len()).map(|crawl| match crawl {
        0 => 0,
        _ => later(dice),
    });
    let feeds_at_ms = feeds_at_ms.collect();
    let expires = |dice: &mut Dice| dice.once_in(5).then(|| later(dice));
    plan.dead_hosts = Some(DeadHosts {
        most_backoffs,
        feeds_at_ms,
        expires_at_ms: (0..CRAWLS.len()).map(|_| expires(dice)).collect(),
        limits: ApplicationLimits {
            max_sites: dice.one_of(&[None, Some(1), Some(2)]),
            pages_per_second: dice.one_of(&[None, Some(0.5), Some(5.0)]),
            ..ApplicationLimits::default()
        },
    });
}
