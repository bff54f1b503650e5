//! One kind of fault at a time, in rounds that run side by side.

use crate::crew::faketime;
use crate::plan::{Fault, Kind, Point, only};
use crate::round::{self, Round, Store};

/// For each kind of fault a small crawl of its own with some of it.
fn each_alone(rounds: &[(Kind, Fault)]) {
    std::thread::scope(|threads| {
        for (kind, fault) in rounds {
            threads.spawn(|| alone(*kind, *fault));
        }
    });
}

fn alone(kind: Kind, fault: Fault) {
    alone_on(Store::Sqlite, kind, fault);
    // These two moments are found by a look into SQLite's file.
    let needs_the_file = [Point::BeforeSave, Point::BeforeAck];
    if !needs_the_file
        .iter()
        .any(|point| fault == Fault::KillAt(*point))
    {
        alone_on(Store::Mongodb, kind, fault);
    }
}

/// Nothing, where there can be no such store.
fn alone_on(store: Store, kind: Kind, fault: Fault) {
    let round = Round {
        kind,
        store,
        sites: 4,
        pages: 8,
        seed: 1,
        plan: only(fault, 2, 1_200),
    };
    let Some(report) = round::run(&round) else {
        return;
    };
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

/// In a crawl and in a fleet.
fn both(fault: Fault) -> [(Kind, Fault); 2] {
    [(Kind::Crawl, fault), (Kind::Fleet, fault)]
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
fn who_stood_still_for_longer_than_the_lease_comes_back() {
    let roles = ["supervisor", "dispatcher", "worker"];
    each_alone(&roles.map(|role| (Kind::Fleet, Fault::Stop(role, 2_500))));
}

#[test]
fn a_dispatcher_is_restarted_under_a_fleet() {
    each_alone(&[(Kind::Fleet, Fault::Kill("dispatcher"))]);
}

#[test]
fn a_supervisor_may_be_cut_off_or_hear_nothing_or_hear_it_late() {
    let faults = [Fault::Cut(2_500), Fault::Silence(2_500), Fault::Slow(2_500)];
    each_alone(&faults.map(|fault| (Kind::Fleet, fault)));
}

#[test]
fn messages_may_come_twice_and_overtake_each_other() {
    let faults = [Fault::Twice(4_000), Fault::Swap(4_000)];
    each_alone(&faults.map(|fault| (Kind::Fleet, fault)));
}

#[test]
fn a_second_supervisor_of_the_same_id_harms_nobody() {
    each_alone(&[(Kind::Fleet, Fault::SameId(2_500))]);
}

#[test]
fn a_second_dispatcher_on_the_same_state_is_refused() {
    each_alone(&[(Kind::Fleet, Fault::SecondDispatcher)]);
}

#[test]
fn the_wall_clock_may_jump_an_hour_forth_and_back() {
    if faketime().is_none() {
        eprintln!("skipped: there is no libfaketime to move a clock with");
        return;
    }
    let [forth, back] = [1, -1].map(|hours| both(Fault::Clock(hours)));
    each_alone(&[forth, back].concat());
}

#[test]
fn what_was_leased_and_not_sent_is_sent_again() {
    each_alone(&both(Fault::KillAt(Point::AfterLease)));
}

#[test]
fn what_was_fetched_and_not_saved_is_fetched_again() {
    each_alone(&both(Fault::KillAt(Point::BeforeSave)));
}

#[test]
fn what_was_saved_and_not_acknowledged_is_not_stored_twice() {
    each_alone(&both(Fault::KillAt(Point::BeforeAck)));
}

#[test]
fn a_commit_that_was_cut_short_is_undone() {
    each_alone(&both(Fault::KillAt(Point::DuringCommit)));
}
