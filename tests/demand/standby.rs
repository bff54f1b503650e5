//! Tests two dispatchers with one journal (a record of all changes). Whichever is lost, the other one continues.
//! Nothing that was accepted is lost, fetched twice, or fetched too soon.

use std::collections::BTreeMap;

use serde_json::json;
use webfill_test_mongod::{Mongod, fresh_database};
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::documents::Documents;
use webfill_tests::run::{Finished, Run, Running};
use webfill_tests::site::page;

use crate::clients::Pipeline;
use crate::fleet::{DELAY, Fleet, action, request, wait_for};
use crate::metrics::documented::OF_A_JOURNAL;
use crate::metrics::{DISPATCHER, scrape};

const SITES: usize = 4;
const PAGES: usize = 30;

/// Starts a second dispatcher on the same machine, with its own state folder. It listens on the addresses of the first
/// dispatcher as soon as the first one is gone.
fn start_standby(fleet: &Fleet, state: &str) -> Running {
    let folder = fleet.work.path(state);
    let role = fleet.dispatcher_role();
    let role = role.replace_flag("--state", folder);
    let mut running = role.start();
    running.wait_for_stderr("stands by");
    running
}

fn feed_all(fleet: &Fleet, crawl_id: &str) {
    let pages = (0..SITES).flat_map(|site| (0..PAGES).map(move |page| (site, page)));
    let requests: Vec<_> = pages
        .map(|(site, page)| request(&format!("http://s{site}.test/{crawl_id}/{page}"), crawl_id))
        .collect();
    fleet.feed(&requests);
}

/// Checks that each page was requested once, and that no gap between requests to a site was shorter than the delay.
fn assert_fetched_once(fleet: &Fleet, crawls: &[&str]) {
    let visits = fleet.web.visits().pages();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for visit in &visits.0 {
        *counts
            .entry(format!("{}{}", visit.host, visit.path))
            .or_default() += 1;
    }
    for crawl in crawls {
        for site in 0..SITES {
            for page in 0..PAGES {
                let url = format!("s{site}.test/{crawl}/{page}");
                assert_eq!(counts.get(&url), Some(&1), "{url}");
            }
        }
    }
    for site in 0..SITES {
        let host = format!("s{site}.test");
        visits.for_host(&host).assert_polite(DELAY);
    }
}

/// A fleet whose dispatcher has a journal in this database. Several such fleets stand for the machines of several
/// dispatchers.
pub(crate) fn fleet_with_journal(store: &str) -> Fleet {
    let mut fleet = Fleet::unstarted_fleet(&[("DISPATCHER_JOURNAL", "true")]);
    fleet.store = Some(store.to_owned());
    fleet
}

#[needs(mongod)]
#[test]
fn a_dispatcher_that_is_killed_is_replaced_and_nothing_is_lost() {
    let database = fresh_database();
    let mut first = fleet_with_journal(database.uri());
    let second = fleet_with_journal(database.uri());
    for site in 0..SITES {
        let site = first.web.site(&format!("s{site}.test"));
        site.serve_otherwise(|_| page("P").into());
    }
    first.start_dispatcher();
    let both = format!("{},{}", first.endpoint(), second.endpoint());
    let supervisor = first.supervisor_role("one", &[]);
    first.add_supervisor_role("one", supervisor.replace_flag("--dispatcher", &both));
    let mut next = second.dispatcher_role().start();
    next.wait_for_stderr("stands by");
    feed_all(&first, "first");
    wait_for("pages are fetched", || {
        (first.web.visits().pages().len() > SITES * PAGES / 4).then_some(())
    });
    // These requests are accepted a moment before the dispatcher is killed.
    feed_all(&first, "second");
    first.kill_dispatcher();
    next.wait_for_stderr("ready");
    second.wait_until_done("first");
    second.wait_until_done("second");
    assert_fetched_once(&first, &["first", "second"]);
    let status = Run::new(["status", "--json", "--dispatcher", &both]);
    status.finish().expect_code(0);
    // The first dispatcher is started again. It stands by, and takes over when the second one ends.
    let mut former = first.dispatcher_role().start();
    former.wait_for_stderr("stands by");
    feed_all(&second, "third");
    next.signal(Signal::TERM);
    next.finish().expect_code(0);
    former.wait_for_stderr("ready");
    first.wait_until_done("third");
    assert_fetched_once(&first, &["first", "second", "third"]);
    former.signal(Signal::TERM);
    former.finish().expect_code(0);
}

/// A dispatcher is suspended for longer than its lease, and continues when another one already serves. It must accept
/// nothing more, and end.
#[needs(mongod)]
#[test]
fn a_dispatcher_that_wakes_up_after_it_was_replaced_ends() {
    let database = fresh_database();
    let mut first = fleet_with_journal(database.uri());
    first.start_dispatcher();
    first.feed(&[request("http://s0.test/1", "kept")]);
    let second = fleet_with_journal(database.uri());
    let mut running = second.dispatcher_role().start();
    running.wait_for_stderr("stands by");
    first.dispatcher().signal(Signal::STOP);
    let late = Pipeline::connect(&first.control_endpoint());
    late.send(&json!([request("http://s0.test/2", "late")]));
    running.wait_for_stderr("ready");
    assert_eq!(
        second.pending_tasks("kept"),
        1,
        "what was accepted is there"
    );
    first.dispatcher().signal(Signal::CONT);
    let said = first.wait_until_dispatcher_ended(1);
    assert!(said.contains("another dispatcher has taken over"), "{said}");
    let unknown = second.client().ask(&action("info", Some("late")));
    assert!(unknown.get("error").is_some(), "{unknown}");
    running.signal(Signal::TERM);
    running.finish().expect_code(0);
}

/// Turns the failures of `update` commands on or off: the store takes no data, but the journal takes records.
fn refuse_updates(documents: &Documents, mode: &str) {
    documents.run_in(
        "admin",
        bson::doc! {
            "configureFailPoint": "failCommand", "mode": mode,
            "data": {"failCommands": ["update"], "errorCode": 50},
        },
    );
}

/// A dispatcher has data on its way to the store when it is suspended. It continues when another one has written to the
/// store, and changes nothing there any more.
#[needs(mongod)]
#[test]
fn a_dispatcher_that_wakes_up_late_writes_nothing_to_the_store() {
    let mongod = Mongod::start();
    let uri = mongod.uri("late");
    let documents = Documents::open(&uri);
    let mut first = fleet_with_journal(&uri);
    first.start_dispatcher();
    let second = fleet_with_journal(&uri);
    let mut next = second.dispatcher_role().start();
    next.wait_for_stderr("of the journal is applied");
    refuse_updates(&documents, "alwaysOn");
    first.feed(&[request("http://s0.test/1", "over")]);
    first.client().ask(&action("stop", Some("over")));
    assert_eq!(first.info("over")["state"], "stopped");
    assert_eq!(documents.count("crawls"), 0, "its end is on its way");
    first.dispatcher().signal(Signal::STOP);
    refuse_updates(&documents, "off");
    next.wait_for_stderr("ready");
    wait_for("the second one has stored the end", || {
        (documents.count("crawls") == 1).then_some(())
    });
    // From now on, a late write would be seen, even if it has the same content.
    documents.run(bson::doc! {"delete": "crawls", "deletes": [{"q": {}, "limit": 0}]});
    first.dispatcher().signal(Signal::CONT);
    let said = first.wait_until_dispatcher_ended(1);
    assert!(said.contains("another dispatcher has taken over"), "{said}");
    for collection in ["crawls", "pages", "records", "site_states"] {
        assert_eq!(documents.count(collection), 0, "{collection}");
    }
    next.signal(Signal::TERM);
    next.finish().expect_code(0);
}

/// The journal must be in a database that other machines can reach, so a store in a file is refused.
#[test]
fn a_journal_needs_a_store_in_mongodb() {
    let fleet = Fleet::unstarted_fleet(&[("DISPATCHER_JOURNAL", "true")]);
    let refused = fleet.dispatcher_role().finish().expect_code(2);
    let stderr = &refused.stderr;
    assert!(stderr.contains("dispatcher.journal"), "{stderr}");
    assert!(stderr.contains("MongoDB"), "{stderr}");
}

/// A fleet whose dispatcher has first served without a journal, and now has one. The journal lacks the requests that
/// were fed before.
fn fleet_with_late_journal(database: &str) -> Fleet {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    fleet.store = Some(database.to_owned());
    fleet.start_dispatcher();
    fleet.feed(&[request("http://s0.test/1", "before")]);
    fleet.kill_dispatcher();
    fleet.set_env("DISPATCHER_JOURNAL", "true");
    fleet
}

/// Kills the first dispatcher, waits until the second one serves, and checks that it knows all pending tasks.
fn check_takeover(first: &mut Fleet, mut next: Running, second: &Fleet, pending: &[(&str, u64)]) {
    first.kill_dispatcher();
    next.wait_for_stderr("ready");
    for (crawl, pending) in pending {
        assert_eq!(second.pending_tasks(crawl), *pending, "{crawl}");
    }
    next.signal(Signal::TERM);
    next.finish().expect_code(0);
}

#[needs(mongod)]
#[test]
fn a_new_dispatcher_begins_with_a_snapshot_and_no_copied_file() {
    let database = fresh_database();
    let mut first = fleet_with_late_journal(database.uri());
    first.start_dispatcher();
    let second = fleet_with_journal(database.uri());
    let mut next = second.dispatcher_role().start();
    next.wait_for_stderr("begins with the snapshot");
    next.wait_for_stderr("of the journal is applied");
    // This request is fed after the snapshot was taken, so it is only in the journal.
    first.feed(&[request("http://s0.test/2", "after")]);
    check_takeover(&mut first, next, &second, &[("before", 1), ("after", 1)]);
}

/// The number of the oldest record that the journal still has.
fn first_record_number(documents: &Documents) -> i64 {
    let first = documents.aggregate(
        "dispatcher_journal",
        vec![
            bson::doc! {"$sort": {"_id": 1}},
            bson::doc! {"$limit": 1},
            bson::doc! {"$project": {"number": "$_id.number"}},
        ],
    );
    first[0]["number"].as_i64().expect("a number")
}

#[needs(mongod)]
#[test]
fn a_dispatcher_that_has_missed_more_than_the_journal_has_begins_again_with_a_snapshot() {
    let database = fresh_database();
    let mut first = fleet_with_journal(database.uri());
    first.set_env("DISPATCHER_JOURNAL_MIB", "1");
    first.start_dispatcher();
    first.feed(&[request("http://s0.test/1", "early")]);
    let second = fleet_with_journal(database.uri());
    let mut missing = second.dispatcher_role().start();
    missing.wait_for_stderr("of the journal is applied");
    missing.signal(Signal::TERM);
    missing.finish().expect_code(0);
    let documents = Documents::open(database.uri());
    let last = documents.count("dispatcher_journal") as i64;
    assert_eq!(first_record_number(&documents), 1);
    let mut fed = 0;
    wait_for(
        "the journal has lost what the second one has not read",
        || {
            let batch: Vec<_> = (0..2_000)
                .map(|page| request(&format!("http://s{fed}.test/late/{page}"), "late"))
                .collect();
            first.feed(&batch);
            fed += 1;
            (first_record_number(&documents) > last + 1).then_some(())
        },
    );
    // The journal contains at most 1 MiB, the records since the last snapshot, and the requests that were fed
    // meanwhile.
    let stats = documents.run(bson::doc! {"collStats": "dispatcher_journal"});
    let fed_bytes = stats.get_i32("size").map_or(i64::MAX, i64::from);
    assert!(fed_bytes < 64 << 20, "{fed_bytes}");
    let mut next = second.dispatcher_role().start();
    next.wait_for_stderr("begins with the snapshot");
    next.wait_for_stderr("of the journal is applied");
    check_takeover(
        &mut first,
        next,
        &second,
        &[("early", 1), ("late", 2_000 * fed)],
    );
}

#[needs(mongod)]
#[test]
fn with_standby_a_dispatcher_waits_for_the_journal_of_another_one() {
    let database = fresh_database();
    let mut first = fleet_with_late_journal(database.uri());
    let mut second = Fleet::unstarted_fleet(&[]);
    second.store = Some(database.uri().to_owned());
    // Without `--standby`, the dispatcher would serve immediately, although it knows no tasks.
    let mut next = second.dispatcher_role().arg("--standby").start();
    next.wait_for_stderr("no dispatcher has begun a journal");
    first.start_dispatcher();
    next.wait_for_stderr("begins with the snapshot");
    next.wait_for_stderr("of the journal is applied");
    check_takeover(&mut first, next, &second, &[("before", 1)]);
}

fn hand_over(fleet: &Fleet) -> Finished {
    let store = fleet.store_uri();
    Run::new(["dispatcher", "--hand-over", "--store", &store]).finish()
}

#[needs(mongod)]
#[test]
fn a_dispatcher_hands_over_when_it_is_asked_and_another_one_stands_by() {
    let database = fresh_database();
    let mut first = fleet_with_journal(database.uri());
    let nobody = hand_over(&first).expect_code(1).stderr;
    assert!(nobody.contains("no dispatcher with a journal"), "{nobody}");
    let mut second = fleet_with_journal(database.uri());
    for site in 0..SITES {
        let site = first.web.site(&format!("s{site}.test"));
        site.serve_otherwise(|_| page("P").into());
    }
    first.set_env(
        "METRICS_DISPATCHER",
        &format!("{}:{DISPATCHER}", first.host),
    );
    first.start_dispatcher();
    let alone = hand_over(&first).expect_code(1).stderr;
    assert!(alone.contains("no other dispatcher stands by"), "{alone}");
    let both = format!("{},{}", first.endpoint(), second.endpoint());
    let supervisor = first.supervisor_role("one", &[]);
    first.add_supervisor_role("one", supervisor.replace_flag("--dispatcher", &both));
    second.start_standby();
    let name = format!("{}:5555", second.host);
    let standby = wait_for("it is seen", || {
        let journal = first.run_json(&["status"])["journal"].clone();
        let standby = journal["standbys"][0].clone();
        (standby["name"] == name.as_str() && standby["record"].as_u64() > Some(0))
            .then_some(standby)
    });
    assert!(
        standby["behind_s"].as_f64().expect("a time") < 60.0,
        "{standby}"
    );
    let shown = first.run(&["status"]).expect_code(0).stdout;
    assert!(shown.contains(&format!("{name} stands by")), "{shown}");
    let metrics = scrape(&first, DISPATCHER);
    for series in OF_A_JOURNAL {
        assert!(metrics.get(series).is_some(), "{series}");
    }
    assert_eq!(metrics.get("webfill_standbys"), Some(1.0));
    feed_all(&first, "first");
    wait_for("pages are fetched", || {
        (first.web.visits().pages().len() > SITES * PAGES / 4).then_some(())
    });
    let handed_over = hand_over(&first).expect_code(0).stdout;
    assert_eq!(handed_over.trim(), format!("{name} serves"));
    let said = first.wait_until_dispatcher_ended(1);
    assert!(said.contains("handed over"), "{said}");
    second.wait_until_done("first");
    assert_fetched_once(&first, &["first"]);
    second.dispatcher().signal(Signal::TERM);
    second.wait_until_dispatcher_ended(0);
}

/// A dispatcher whose state folder has crawls of another fleet must not continue this fleet's journal.
#[needs(mongod)]
#[test]
fn a_folder_of_another_fleet_is_refused() {
    let database = fresh_database();
    let mut fleet = Fleet::unstarted_fleet(&[]);
    fleet.store = Some(database.uri().to_owned());
    // The dispatcher first serves without a journal, so its folder has crawls.
    fleet.start_dispatcher();
    fleet.kill_dispatcher();
    fleet.set_env("DISPATCHER_JOURNAL", "true");
    let own = fleet.dispatcher_state.clone();
    fleet.dispatcher_state = fleet.work.path("state/dispatcher-new");
    fleet.start_dispatcher();
    let refused = fleet.dispatcher_role().replace_flag("--state", own);
    let refused = refused.finish().expect_code(2);
    let stderr = &refused.stderr;
    assert!(stderr.contains("does not continue the journal"), "{stderr}");
    // A dispatcher that starts from a backup of the serving dispatcher may continue the journal.
    let backup = fleet.back_up();
    let state = fleet.work.path("state/dispatcher-copy");
    std::fs::create_dir_all(&state).expect("a folder");
    std::fs::copy(backup.join("dispatcher.db"), state.join("dispatcher.db")).expect("a copy");
    let mut next = start_standby(&fleet, "state/dispatcher-copy");
    fleet.feed(&[request("http://s0.test/1", "kept")]);
    fleet.kill_dispatcher();
    next.wait_for_stderr("ready");
    assert_eq!(fleet.pending_tasks("kept"), 1);
    next.signal(Signal::TERM);
    next.finish().expect_code(0);
}
