//! One kind of fault at a time.

use crate::plan::{Fault, Kind, only};
use crate::round::{self, Round, Store};

/// A small crawl with this one fault, a few times.
fn with_only(kind: Kind, fault: Fault, count: usize) {
    let round = Round {
        kind,
        store: Store::Sqlite,
        sites: 4,
        pages: 8,
        seed: 1,
        plan: only(fault, count, 1_200),
    };
    let report = round::run(&round).expect("SQLite is always there");
    eprintln!("{report:?}");
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    let injected: usize = report.faults.values().sum();
    assert!(injected > 0, "the crawl was over before the first fault");
}

#[test]
fn without_faults_nothing_is_asked_for_again() {
    for kind in [Kind::Crawl, Kind::Fleet] {
        let round = Round {
            kind,
            store: Store::Sqlite,
            sites: 3,
            pages: 5,
            seed: 5,
            plan: Vec::new(),
        };
        let report = round::run(&round).expect("SQLite is always there");
        assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
        assert_eq!((report.repeated, report.robots), (0, 3));
    }
}

#[test]
fn a_supervisor_stopped_for_longer_than_its_lease_comes_back() {
    with_only(Kind::Fleet, Fault::Stop("supervisor", 2_500), 2);
}

#[test]
fn a_dispatcher_stopped_for_longer_than_the_lease_comes_back() {
    with_only(Kind::Fleet, Fault::Stop("dispatcher", 2_500), 2);
}

#[test]
fn a_worker_stopped_for_longer_than_the_lease_comes_back() {
    with_only(Kind::Fleet, Fault::Stop("worker", 2_500), 2);
}

#[test]
fn a_dispatcher_is_restarted_under_a_fleet() {
    with_only(Kind::Fleet, Fault::Kill("dispatcher"), 3);
}

#[test]
fn a_supervisor_is_cut_off_and_comes_back() {
    with_only(Kind::Fleet, Fault::Cut(2_500), 2);
}

#[test]
fn a_supervisor_that_hears_nothing_fences_itself() {
    with_only(Kind::Fleet, Fault::Silence(2_500), 2);
}

#[test]
fn messages_may_come_twice() {
    with_only(Kind::Fleet, Fault::Twice(4_000), 2);
}

#[test]
fn messages_may_overtake_each_other() {
    with_only(Kind::Fleet, Fault::Swap(4_000), 2);
}

#[test]
fn a_second_supervisor_of_the_same_id_harms_nobody() {
    with_only(Kind::Fleet, Fault::SameId(2_500), 2);
}

#[test]
fn a_second_dispatcher_on_the_same_state_is_refused() {
    with_only(Kind::Fleet, Fault::SecondDispatcher, 2);
}

#[test]
fn the_wall_clock_may_jump_an_hour_forth_and_back() {
    if crate::crew::faketime().is_none() {
        eprintln!("skipped: there is no libfaketime to move a clock with");
        return;
    }
    for kind in [Kind::Crawl, Kind::Fleet] {
        with_only(kind, Fault::Clock(1), 1);
        with_only(kind, Fault::Clock(-1), 1);
    }
}
