//! Tests backups: a backup is made while the fleet works, and another dispatcher starts from it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use webfill_test_mongod::{Mongod, ReplicaSet};
use webfill_test_needs::needs;
use webfill_tests::documents::Documents;
use webfill_tests::run::Run;
use webfill_tests::site::page;

use crate::fleet::{APP, Fleet, request, wait_for};

const SITES: usize = 4;
const PAGES: usize = 14;
const DELAY: Duration = Duration::from_millis(400);

/// Settings that make the tests short. A dispatcher that starts from a backup waits for a lease and for the longest
/// time of a request, because requests may still be in progress.
pub(crate) const QUICK: [(&str, &str); 6] = [
    ("POLITENESS_DELAY", "0.4"),
    ("DISPATCHER_LEASE", "1"),
    ("FETCH_CONNECT_TIMEOUT", "1"),
    ("FETCH_HEAD_TIMEOUT", "1"),
    ("FETCH_BODY_TIMEOUT", "1"),
    ("FETCH_TOTAL_TIMEOUT", "2"),
];

/// Changes all times in the backup so that it looks an hour older.
fn make_an_hour_old(frontier: &Path) {
    let db = rusqlite::Connection::open(frontier).expect("a frontier");
    db.execute_batch(
        "UPDATE meta SET value = value - 3600000 WHERE name LIKE '%_at_ms';
         UPDATE sites SET due_at_ms = due_at_ms - 3600000, last_start_ms = last_start_ms - 3600000;
         UPDATE epochs SET epoch = epoch - 3600000;",
    )
    .expect("its tables");
}

/// Removes the mark that identifies the file as a backup, so that it looks like an ordinary copy.
fn remove_backup_mark(frontier: &Path) {
    let db = rusqlite::Connection::open(frontier).expect("a frontier");
    let sql = "DELETE FROM meta WHERE name = 'backup_made_at_ms'";
    assert_eq!(db.execute(sql, []).expect("its tables"), 1);
}

#[test]
fn what_came_after_a_backup_is_fetched_again_politely() {
    check_that_the_rest_is_fetched_again(|fleet, backup| fleet.start_restored(backup));
}

#[needs(birth_time)]
#[test]
fn what_came_after_an_undeclared_copy_is_fetched_again_politely() {
    check_that_the_rest_is_fetched_again(|fleet, backup| {
        let frontier = backup.join("dispatcher.db");
        remove_backup_mark(&frontier);
        fleet.copy_elsewhere(&frontier);
        // Other programs may open the copy first. The dispatcher must wait nevertheless.
        let prune =
            Run::new(["prune", APP, "--older-than", "1s", "--state"]).arg(&fleet.dispatcher_state);
        prune.finish().expect_code(0);
        fleet.start_dispatcher_of_a_copy();
    });
}

/// A service unit always has the same command line, so it declares the backup by an environment variable. At later
/// starts, the variable must have no effect.
#[test]
fn the_environment_allows_a_start_from_a_backup_and_delays_no_other_start() {
    let mut fleet = Fleet::start_with(&QUICK);
    let backup = fleet.back_up();
    fleet.kill_all();
    fleet.copy_elsewhere(&backup.join("dispatcher.db"));
    let refused = fleet.dispatcher_role().finish().expect_code(2);
    let names = "WEBFILL_DISPATCHER_RESTORED";
    assert!(refused.stderr.contains(names), "{}", refused.stderr);
    fleet.set_env("DISPATCHER_RESTORED", "true");
    let waits = "no supervisor is admitted";
    fleet.start_dispatcher();
    let output = fleet.dispatcher().stderr_so_far();
    assert!(output.contains(waits), "{output}");
    fleet.add_supervisor("one");
    // If the variable is still set at the next start, the dispatcher does not wait again.
    fleet.kill_dispatcher();
    fleet.start_dispatcher();
    let output = fleet.dispatcher().stderr_so_far();
    assert!(!output.contains(waits), "{output}");
}

#[test]
fn a_backup_is_for_its_owner_alone_and_a_mistyped_store_leaves_none() {
    let fleet = Fleet::start_with(&[]);
    let folder = fleet.work.path("prepared");
    fs::create_dir(&folder).expect("our own");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("our own");
    let back_up = |store: &str| {
        Run::new(["backup", "--store", store])
            .arg("--state")
            .arg(&fleet.dispatcher_state)
            .arg(&folder)
            .finish()
    };
    let missing = fleet.work.path("stroe.db");
    let refused = back_up(&format!("sqlite:{}", missing.display())).expect_code(2);
    assert!(refused.stderr.contains("stroe.db"), "{}", refused.stderr);
    assert!(!missing.exists());
    back_up(&fleet.store_uri()).expect_code(0);
    let mode = fs::metadata(&folder).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
}

/// Checks that a dispatcher continues politely from a backup that is an hour old: what came after the backup is fetched
/// again.
fn check_that_the_rest_is_fetched_again(start_from: impl FnOnce(&mut Fleet, &Path)) {
    let mut fleet = Fleet::start_with(&QUICK);
    feed_and_wait(&fleet);
    let pages = |fleet: &Fleet| fleet.web.visits().pages().len();
    let before_backup = pages(&fleet);
    let backup = fleet.back_up();
    let after_backup = pages(&fleet);
    wait_for_pages(&fleet, SITES * 7);
    let lost = pages(&fleet);
    make_an_hour_old(&backup.join("dispatcher.db"));
    // The supervisor keeps running, and has tasks in its queue.
    fleet.kill_dispatcher();
    start_from(&mut fleet, &backup);
    let began = fleet.web.visits().pages().len();
    fleet.add_supervisor("two");
    fleet.wait_until_done("c");

    let visits = fleet.web.visits();
    assert_eq!(visits.overlaps(), [""; 0]);
    for number in 0..SITES {
        let gaps = visits
            .for_host(&format!("s{number}.example"))
            .pages()
            .gaps();
        assert!(gaps.iter().all(|gap| *gap >= DELAY), "{gaps:?}");
    }
    let stored = fleet.work.stored().pages();
    assert_eq!(stored.len(), SITES * PAGES);
    assert!(stored.values().all(|page| page.outcome == "ok"));
    let again = visits.pages().len() - SITES * PAGES;
    // Pages are fetched again for two reasons: they were fetched after the backup, or they were in progress when it was
    // made.
    assert!(
        again >= lost - after_backup && again <= began - before_backup + SITES,
        "{again}, of {before_backup}, {after_backup}, {lost}, {began}"
    );
    let info = fleet.info("c");
    assert_eq!(info["state"], Value::from("finished"));
}

/// Feeds many pages of some sites, and waits until some of the pages are fetched.
fn feed_and_wait(fleet: &Fleet) {
    let mut requests = Vec::new();
    for number in 0..SITES {
        let site = fleet.web.site(&format!("s{number}.example"));
        site.serve_otherwise(|request| page(&request.path).field("name", "a name").into());
        requests.extend((0..PAGES).map(|n| request(&site.url(&format!("/{n}")), "c")));
    }
    fleet.feed(&requests);
    wait_for_pages(fleet, SITES * 3);
}

fn wait_for_pages(fleet: &Fleet, count: usize) {
    wait_for("more pages", || {
        (fleet.web.visits().pages().len() >= count).then_some(())
    });
}

/// Follows the recipe in `docs/how-to/mongodb-fleet.md` for users without `mongodump`.
#[needs(mongod)]
#[test]
fn a_fleet_continues_from_the_files_of_a_secondary_of_mongodb() {
    let set = ReplicaSet::start(3);
    let mut fleet = Fleet::unstarted_fleet(&QUICK);
    fleet.store = Some(set.uri("webfill"));
    fleet.start_dispatcher();
    fleet.add_supervisor("one");
    feed_and_wait(&fleet);

    let backup = fleet.back_up();
    let before = Documents::open(&set.uri("webfill"));
    let before = ["pages", "page_log"].map(|name| before.all_documents(name));
    let secondary = &set.members[(set.primary() + 1) % 3];
    let files = backup.join("store");
    secondary.copy_files_to(&files);
    wait_for_pages(&fleet, SITES * 7);
    fleet.kill_all();
    drop(set);

    let restored = Mongod::restore(&files);
    let documents = Documents::open(&restored.uri("webfill"));
    for (name, before) in ["pages", "page_log"].into_iter().zip(&before) {
        let after = documents.all_documents(name);
        assert!(!before.is_empty(), "{name}");
        let lost: Vec<&Value> = before.iter().filter(|one| !after.contains(one)).collect();
        assert_eq!(lost, [&Value::Null; 0], "{name}");
    }
    assert!(documents.pages().len() < SITES * PAGES, "they are of then");

    fleet.store = Some(restored.uri("webfill"));
    fleet.start_restored(&backup);
    fleet.add_supervisor("two");
    fleet.wait_until_done("c");
    let pages = documents.pages();
    assert_eq!(pages.len(), SITES * PAGES);
    assert!(pages.values().all(|page| page.outcome == "ok"));
    let visits = fleet.web.visits();
    assert_eq!(visits.overlaps(), [""; 0]);
    visits.assert_polite(DELAY);
}

/// `webfill backup --follow` copies the files continuously, so its copies are only a moment old when the machine is
/// lost. A dispatcher can start from them.
#[needs(birth_time)]
#[test]
fn a_continuous_backup_has_what_was_accepted_seconds_before() {
    let mut fleet = Fleet::start_with(&QUICK);
    for site in 0..SITES {
        let site = fleet.web.site(&format!("s{site}.example"));
        site.serve_otherwise(|_| page("P").into());
    }
    let copies = fleet.work.path("copies");
    let follower = Run::new([
        "backup",
        "--follow",
        "--store",
        &fleet.store_uri(),
        "--state",
    ])
    .arg(&fleet.dispatcher_state)
    .arg(&copies)
    .start();
    wait_for("both files are copied", || {
        let names = ["dispatcher.db", "store.db"].map(|name| copies.join(name));
        names.iter().all(|name| name.exists()).then_some(())
    });
    let feed = |crawl: &str| {
        let urls = (0..SITES).flat_map(|site| (0..PAGES).map(move |page| (site, page)));
        let requests: Vec<Value> = urls
            .map(|(site, page)| request(&format!("http://s{site}.example/{crawl}/{page}"), crawl))
            .collect();
        fleet.feed(&requests);
    };
    feed("first");
    fleet.wait_until_done("first");
    feed("second");
    // Reading would change the copies, so copies of the copies are read.
    let read = |name: &str, sql: &str| -> i64 {
        let folder = fleet.work.path("read");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        for ending in ["", "-wal"] {
            let file = format!("{name}{ending}");
            // A checkpoint of the database may remove the copy of the write-ahead log at this moment.
            let _ = fs::copy(copies.join(&file), folder.join(&file));
        }
        let db = rusqlite::Connection::open(folder.join(name)).expect("a copy");
        db.query_row(sql, [], |row| row.get(0)).unwrap_or(0)
    };
    let all = (SITES * PAGES) as i64;
    wait_for("the copy has what was fed", || {
        let tasks = read("dispatcher.db", "SELECT count(*) FROM tasks");
        let pages = read("store.db", "SELECT count(*) FROM pages");
        (tasks == 2 * all && pages >= all).then_some(())
    });
    // The whole machine is lost, together with the follower.
    follower.signal(webfill_tests::Signal::KILL);
    fleet.kill_all();
    follower.finish();
    fleet.copy_elsewhere(&copies.join("dispatcher.db"));
    let log = copies.join("dispatcher.db-wal");
    if log.exists() {
        fs::copy(log, fleet.dispatcher_state.join("dispatcher.db-wal")).expect("a copy");
    }
    fleet.start_dispatcher_of_a_copy();
    fleet.add_supervisor("two");
    fleet.wait_until_done("second");
    assert_eq!(fleet.pending_tasks("first"), 0);
}
