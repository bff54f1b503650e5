//! Tests a fleet of many machines: a dispatcher, supervisors in network namespaces that are joined by a bridge, and a
//! MongoDB server. The fleet crawls generated sites. Meanwhile the dispatcher is restarted, all supervisors are
//! replaced by `deploy/roll`, and a tenth of them is killed again and again. The access log of the sites and the store
//! show whether the fleet keeps its promises. The costs of the fleet are printed (`make fleet`, tests/fleet/README.md).

mod failover;
mod load;
mod machines;
mod metrics;
mod phases;
mod ratings;
mod scaling;
mod witness;

use std::time::Duration;

use webfill_test_needs::needs;
use webfill_tests::isolation::run_isolated_if_possible;

use crate::phases::{Plan, run_phases};

/// The number in an environment variable; `None` if the variable is missing or empty.
fn env_number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number")),
    )
}

#[needs(mongod, namespaces)]
#[test]
fn twelve_machines_keep_what_a_large_fleet_promises() {
    run_isolated_if_possible("twelve_machines_keep_what_a_large_fleet_promises", || {
        run_phases(&Plan {
            machines: 12,
            delay: Duration::from_secs(6),
            measured_for: Duration::from_secs(8),
            killed_for: Duration::from_secs(20),
            killed_every: Duration::from_secs(8),
            // Other tests run at the same time, so this limit is long.
            longest_pause: Duration::from_secs(6),
        });
    });
}

#[needs(mongod, namespaces)]
#[test]
fn machines_are_started_and_drained_as_sites_become_due() {
    run_isolated_if_possible(
        "machines_are_started_and_drained_as_sites_become_due",
        || scaling::run_scaled(4),
    );
}

#[needs(mongod, namespaces)]
#[test]
fn machines_share_sites_of_ratings() {
    run_isolated_if_possible("machines_share_sites_of_ratings", || {
        ratings::run_shared(4, 12, 3)
    });
}

#[needs(mongod, namespaces)]
#[test]
fn another_dispatcher_serves_however_the_first_is_lost() {
    run_isolated_if_possible(
        "another_dispatcher_serves_however_the_first_is_lost",
        || failover::run_failovers(6),
    );
}

#[test]
#[ignore = "takes many minutes: make failover"]
fn another_dispatcher_serves_as_often_as_the_first_is_lost() {
    run_isolated_if_possible(
        "another_dispatcher_serves_as_often_as_the_first_is_lost",
        || {
            failover::run_failovers(env_number("FAILOVER_KILLS").unwrap_or(1_000) as usize);
        },
    );
}

#[test]
#[ignore = "takes many minutes: make fleet"]
fn a_large_fleet_shares_two_hundred_sites_of_ratings() {
    run_isolated_if_possible("a_large_fleet_shares_two_hundred_sites_of_ratings", || {
        let machines = env_number("FLEET_MACHINES").unwrap_or(126) as u16;
        ratings::run_shared(machines, 200, 10);
    });
}

#[test]
#[ignore = "takes many minutes: make fleet"]
fn a_large_fleet_keeps_its_promises() {
    run_isolated_if_possible("a_large_fleet_keeps_its_promises", || {
        run_phases(&Plan {
            machines: env_number("FLEET_MACHINES").unwrap_or(126) as u16,
            delay: Duration::from_secs(12),
            measured_for: Duration::from_secs(60),
            killed_for: Duration::from_secs(60 * env_number("FLEET_MINUTES").unwrap_or(10)),
            killed_every: Duration::from_secs(60),
            longest_pause: Duration::from_secs(2),
        });
    });
}
