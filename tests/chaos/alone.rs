//! Tests with one kind of fault at a time, on each store.

use webfill_test_needs::needs;
use webfill_tests::isolation::run_isolated;

use crate::plan::{Fault, Kind, Point, plan_of};
use crate::round::{self, Round, Store};
use crate::trouble::Trouble;

/// Runs a small crawl for each kind of fault, with a few faults of that kind. The crawls run in parallel.
fn run_each_alone(store: Store, rounds: &[(Kind, Fault)]) {
    std::thread::scope(|threads| {
        for (kind, fault) in rounds {
            threads.spawn(|| run_alone(store, *kind, *fault));
        }
    });
}

fn run_alone(store: Store, kind: Kind, fault: Fault) {
    let round = Round {
        gives_up: false,
        kind,
        store,
        sites: 4,
        // Because of the delays of the sites, these pages take so long that the first fault comes before the end, even
        // on a busy machine.
        pages: 12,
        seed: 1,
        plan: plan_of(fault, 2, 800),
    };
    let report = round::run(&round);
    let wrong = &report.wrong;
    assert!(
        wrong.is_empty(),
        "{kind:?}, {store:?}, {fault:?}: {}",
        wrong.join("\n")
    );
    let injected: usize = report.faults.values().sum();
    assert!(
        injected > 0,
        "{kind:?}, {store:?}: over before the first {fault:?}"
    );
}

/// One round with a crawl and one with a fleet, both with the same fault.
fn crawl_and_fleet_rounds(fault: Fault) -> [(Kind, Fault); 2] {
    [(Kind::Crawl, fault), (Kind::Fleet, fault)]
}

/// Makes two tests from the same faults, one for each store.
macro_rules! on_each_store {
    ($($name:ident $(needs $needed:ident)?: $rounds:expr;)+) => {$(
        mod $name {
            use super::*;

            $(#[needs($needed)])?
            #[test]
            fn on_sqlite() {
                run_each_alone(Store::Sqlite, &$rounds);
            }

            #[needs(mongod $(, $needed)?)]
            #[test]
            fn on_mongodb() {
                run_each_alone(Store::Mongodb, &$rounds);
            }
        }
    )+};
}

on_each_store! {
    who_stood_still_for_longer_than_the_lease_comes_back:
        ["supervisor", "dispatcher", "worker"].map(|role| (Kind::Fleet, Fault::Stop(role, 2_500)));
    a_dispatcher_is_restarted_under_a_fleet: [(Kind::Fleet, Fault::Kill("dispatcher"))];
    a_supervisor_may_be_cut_off_or_hear_nothing_or_hear_it_late:
        [Fault::Cut(2_500), Fault::Silence(2_500), Fault::Slow(2_500)]
            .map(|fault| (Kind::Fleet, fault));
    messages_may_come_twice_and_overtake_each_other:
        [Fault::Twice(4_000), Fault::Swap(4_000)].map(|fault| (Kind::Fleet, fault));
    a_second_supervisor_of_the_same_id_harms_nobody: [(Kind::Fleet, Fault::SameId(2_500))];
    a_second_dispatcher_on_the_same_state_is_refused: [(Kind::Fleet, Fault::SecondDispatcher)];
    the_wall_clock_may_jump_an_hour_forth_and_back needs libfaketime:
        [crawl_and_fleet_rounds(Fault::Clock(1)), crawl_and_fleet_rounds(Fault::Clock(-1))].concat();
    what_was_leased_and_not_sent_is_sent_again: crawl_and_fleet_rounds(Fault::KillAt(Point::AfterLease));
    a_site_in_trouble_loses_nothing:
        [Trouble::Fails(403), Trouble::Fails(503), Trouble::Blocks, Trouble::Resets]
            .map(|trouble| (Kind::Crawl, Fault::Site(trouble, 2_500)));
    a_commit_that_was_cut_short_is_undone: crawl_and_fleet_rounds(Fault::KillAt(Point::DuringCommit));
}

// The next two tests read the file of SQLite to find the right moment for a kill, so they do not exist for MongoDB.

#[test]
fn a_page_fetched_but_not_saved_is_fetched_again() {
    run_each_alone(
        Store::Sqlite,
        &crawl_and_fleet_rounds(Fault::KillAt(Point::BeforeSave)),
    );
}

#[test]
fn a_page_saved_but_not_acknowledged_is_not_stored_twice() {
    run_each_alone(
        Store::Sqlite,
        &crawl_and_fleet_rounds(Fault::KillAt(Point::BeforeAck)),
    );
}

#[needs(namespaces)]
#[test]
fn a_machine_that_loses_its_route_loses_no_page() {
    run_isolated(
        "alone::a_machine_that_loses_its_route_loses_no_page",
        || {
            run_each_alone(
                Store::Sqlite,
                &crawl_and_fleet_rounds(Fault::LosesWay(4_500)),
            );
        },
    );
}

#[test]
fn without_faults_nothing_is_requested_twice() {
    for kind in [Kind::Crawl, Kind::Fleet] {
        let round = Round {
            gives_up: false,
            kind,
            store: Store::Sqlite,
            sites: 3,
            pages: 5,
            seed: 5,
            plan: Vec::new(),
        };
        let report = round::run(&round);
        assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
        assert_eq!((report.repeated, report.robots), (0, 3));
    }
}
