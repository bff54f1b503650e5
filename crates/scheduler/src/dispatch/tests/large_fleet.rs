//! How the sites are shared in fleets of many machines, after a rolling restart and when a machine joins late.

use super::machines::hand_out_all;
use super::*;

const DELAY_MS: i64 = 15_000;

/// A fleet of machines that fetch pages, with its clock.
struct Warm {
    dispatch: Dispatch,
    names: Vec<String>,
    now_ms: i64,
}

impl Warm {
    /// A fleet with this many sites on each machine.
    fn new(machines: i64, sites_each: i64) -> Warm {
        let mut warm = Warm {
            dispatch: dispatch(&[]),
            names: Vec::new(),
            now_ms: NOW,
        };
        (0..machines).for_each(|number| warm.join_machine(&format!("machine-{number:03}")));
        (1..=machines * sites_each).for_each(|id| warm.dispatch.schedule.add(site(id, NOW, None)));
        warm.fetch_rounds(1);
        warm
    }

    fn join_machine(&mut self, name: &str) {
        let hello = Hello {
            credit: credit(1_000_000),
            ..hello(name, 1)
        };
        self.dispatch.join(&hello, peer(name), self.now_ms);
        self.names.push(name.to_owned());
    }

    /// Makes a machine leave that has nothing leased.
    fn remove_machine(&mut self, name: &str) {
        self.dispatch
            .fleet
            .begin_leaving(&peer(name), 1, 0, self.now_ms);
        assert_eq!(
            self.dispatch.fleet.departed_supervisors(self.now_ms),
            [name]
        );
        assert_eq!(self.dispatch.remove_supervisor(name), []);
        self.names.retain(|other| other != name);
    }

    /// Fetches this many pages of each site.
    fn fetch_rounds(&mut self, rounds: usize) {
        for _ in 0..rounds {
            for _ in 0..DELAY_MS / 5_000 {
                self.now_ms += 5_000;
                for name in &self.names {
                    let beat = heartbeat(1, 0, 1_000_000);
                    self.dispatch.on_heartbeat(&peer(name), &beat, self.now_ms);
                }
            }
            for (task, _) in hand_out_all(&mut self.dispatch, self.now_ms) {
                let clock = SiteClock {
                    next_in_ms: DELAY_MS as u32,
                    delay_ms: Some(DELAY_MS as u32),
                };
                self.dispatch.end_lease(task, clock, self.now_ms);
            }
        }
    }

    /// The number of sites of each machine.
    fn site_counts(&self) -> Vec<usize> {
        let sites = |name: &String| self.dispatch.schedule.count_owned_by(name);
        self.names.iter().map(sites).collect()
    }
}

fn is_even(shares: &[usize]) -> bool {
    let even = shares.iter().sum::<usize>() as f64 / shares.len() as f64;
    let off = |share: &usize| (*share as f64 - even).abs();
    shares.iter().all(|share| off(share) <= even / 5.0)
}

#[test]
fn after_a_rolling_restart_of_all_each_machine_has_its_share() {
    for (machines, sites_each) in [(3, 20), (20, 100), (100, 20)] {
        let mut warm = Warm::new(machines, sites_each);
        for name in warm.names.clone() {
            warm.remove_machine(&name);
            warm.fetch_rounds(1);
            warm.join_machine(&name);
            warm.fetch_rounds(1);
        }
        warm.fetch_rounds(1);
        let shares = warm.site_counts();
        assert_eq!(shares.iter().sum::<usize>() as i64, machines * sites_each);
        assert!(is_even(&shares), "{shares:?}");
    }
}

#[test]
fn a_machine_that_joins_a_large_fleet_late_gets_its_share() {
    let mut warm = Warm::new(50, 40);
    warm.join_machine("late");
    warm.fetch_rounds(2);
    assert!(is_even(&warm.site_counts()), "{:?}", warm.site_counts());
}

/// The sites are not in memory any more, but their owners are stored.
#[test]
fn a_late_machine_gets_its_share_of_sites_that_were_finished_when_it_joined() {
    let mut warm = Warm::new(20, 50);
    let finished: Vec<SiteDue> = (1..=1_000)
        .map(|id| site(id, NOW, warm.dispatch.owner_of(SiteId(id)).as_deref()))
        .collect();
    warm.dispatch = dispatch(&[]);
    for name in std::mem::take(&mut warm.names) {
        warm.join_machine(&name);
    }
    warm.join_machine("late");
    for site in finished {
        assert!(site.clock.owner.is_some());
        warm.dispatch.schedule.add(site);
    }
    warm.fetch_rounds(2);
    assert!(is_even(&warm.site_counts()), "{:?}", warm.site_counts());
}

/// Sites come and go all the time, so shares are never quite even. Sites must not move without need, because a site
/// that moves starts over with its robots.txt.
#[test]
fn few_sites_move_in_a_fleet_that_is_nearly_even() {
    let mut warm = Warm::new(20, 100);
    let owners = |warm: &Warm| -> Vec<_> {
        let owner = |id| warm.dispatch.owner_of(SiteId(id));
        (1..=2_000).map(owner).collect()
    };
    let before = owners(&warm);
    // Seven machines have some more sites now, all others some fewer.
    for id in (1..=2_000).step_by(23) {
        warm.dispatch
            .schedule
            .set_owner(SiteId(id), Some(warm.names[id as usize % 7].clone()));
    }
    let changed = owners(&warm);
    assert_ne!(before, changed);
    warm.fetch_rounds(3);
    let moved = changed
        .iter()
        .zip(owners(&warm))
        .filter(|(before, after)| **before != *after);
    assert_eq!(moved.count(), 0, "{:?}", warm.site_counts());
}
