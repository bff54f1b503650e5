//! Worlds with unreachable hosts, while crawls of several priorities are held back at them: paused, limited, in
//! another lane, or expired. The crawls are fed at different times, so that newer tasks precede older ones.

use webfill_scheduler::ApplicationLimits;
use webfill_wire::Lane;

use crate::client::CRAWLS;
use crate::dice::Dice;
use crate::orders::pause;
use crate::plan::{Plan, REST_S};
use crate::robots::RobotsPlan;

/// The first of the crawls that belong to an application with limits.
const FIRST_LIMITED: usize = 2;

#[derive(Debug)]
pub(crate) struct DeadHosts {
    /// A site is unreachable after this many consecutive backoffs.
    pub(crate) most_backoffs: usize,
    /// When each crawl is fed. All are opened at the beginning.
    pub(crate) feeds_at_ms: Vec<u64>,
    /// When each crawl expires; `None`: it does not.
    pub(crate) expires_at_ms: Vec<Option<u64>>,
    pub(crate) limits: ApplicationLimits,
}

impl Plan {
    /// Adds dead hosts to some worlds. Must be called last. Skips worlds where machines lose their ways out, because
    /// their failures would make sites unreachable.
    pub(crate) fn add_dead_hosts_sometimes(&mut self, dice: &mut Dice) {
        if dice.once_in(4) && self.backoff && !self.loses_egress() {
            self.have_dead_hosts(dice);
        }
    }

    pub(crate) fn have_dead_hosts(&mut self, dice: &mut Dice) {
        let lane = |dice: &mut Dice, plan: &Plan| match plan.lanes.concat().contains(&Lane::Browser)
        {
            true => dice.one_of(&[Lane::Http, Lane::Browser]),
            false => Lane::Http,
        };
        while self.priorities.len() < CRAWLS.len() {
            self.priorities.push(dice.one_of(&[15, 30, 50, 60, 90]));
            self.crawl_lanes.push(lane(dice, self));
            self.records.push(0);
        }
        for site in &mut self.sites {
            if dice.once_in(2) {
                site.robots = RobotsPlan::always_failing(dice);
                site.blocks = None;
            }
        }
        // The time from the first failure of a host until it is unreachable.
        let most_backoffs = dice.between(1, 2) as usize;
        let unreachable_ms =
            (most_backoffs as f64 * REST_S * 1e3) as u64 + 2 * self.longest_request_ms;
        let later = |dice: &mut Dice| dice.between(0, 2 * unreachable_ms);
        for crawl in 0..CRAWLS.len() {
            if dice.once_in(2) {
                let (at_ms, for_ms) = (later(dice), dice.log_uniform(1_000, 4 * unreachable_ms));
                let (order, taken_back_by) = pause(crawl, for_ms);
                self.push_order(at_ms, order, taken_back_by);
            }
        }
        let feeds_at_ms = (0..CRAWLS.len()).map(|crawl| match crawl {
            0 => 0,
            _ => later(dice),
        });
        let feeds_at_ms = feeds_at_ms.collect();
        let expires = |dice: &mut Dice| dice.once_in(5).then(|| later(dice));
        self.dead_hosts = Some(DeadHosts {
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

    /// The application of a crawl.
    pub(crate) fn app(&self, crawl: usize) -> &'static str {
        match crawl < FIRST_LIMITED {
            true => "app",
            false => "limited",
        }
    }

    pub(crate) fn feeds_at_ms(&self, crawl: usize) -> u64 {
        let dead_hosts = self.dead_hosts.as_ref();
        dead_hosts.map_or(0, |dead_hosts| dead_hosts.feeds_at_ms[crawl])
    }

    pub(crate) fn expires_at_ms(&self, crawl: usize) -> Option<u64> {
        self.dead_hosts.as_ref()?.expires_at_ms[crawl]
    }

    /// Whether a crawl ends before everything in it was tried.
    pub(crate) fn ends_early(&self, crawl: usize) -> bool {
        self.has_stop_of(crawl) || self.expires_at_ms(crawl).is_some()
    }
}
