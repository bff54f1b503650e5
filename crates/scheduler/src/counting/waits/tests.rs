use std::collections::BTreeSet;

use super::*;
use crate::frontier::{FILE_NAME, Frontier, FrontierConfig};

const NOW_MS: i64 = 100_000;

fn frontier_database(rows: &str) -> (tempfile::TempDir, Connection) {
    let folder = tempfile::tempdir().unwrap();
    Frontier::open(folder.path(), FrontierConfig::default(), 0).unwrap();
    let db = Connection::open(folder.path().join(FILE_NAME)).unwrap();
    db.execute_batch(rows).unwrap();
    (folder, db)
}

fn conditions_with_http() -> HoldConditions {
    HoldConditions {
        serves_http: true,
        ..HoldConditions::default()
    }
}

/// Makes one complete walk through all crawls.
fn count_all_waits(
    db: &Connection,
    conditions: &HoldConditions,
    before: &WaitStarts,
    now_ms: i64,
) -> WaitTotals {
    let counter = WaitCounter {
        db,
        conditions,
        before,
        now_ms,
    };
    let (mut sum, mut after) = (WaitTotals::default(), (0, 0));
    while let Some(next) = counter.count_slice(after, &mut sum).unwrap() {
        assert!(next > after, "it continues");
        after = next;
    }
    sum
}

/// The number of tasks that wait for each reason. Reasons without tasks are left out.
fn nonzero_waits(sum: &WaitTotals) -> Vec<(&'static str, u64)> {
    let all = WaitReason::ALL.into_iter();
    all.map(|waits_for| (waits_for.as_str(), sum.total_for_reason(waits_for).tasks))
        .filter(|(_, tasks)| *tasks > 0)
        .collect()
}

/// The crawl has 3 tasks at one site. Each case changes one condition.
#[test]
fn each_queued_task_is_counted_by_what_holds_it() {
    let spent = HoldConditions {
        spent: BTreeSet::from(["a".into()]),
        ..conditions_with_http()
    };
    let paced = HoldConditions {
        paced: BTreeSet::from(["a".into()]),
        ..conditions_with_http()
    };
    let held = HoldConditions {
        is_held: true,
        ..conditions_with_http()
    };
    let away = HoldConditions {
        is_store_away: true,
        ..conditions_with_http()
    };
    let browser = HoldConditions {
        serves_browser: true,
        ..HoldConditions::default()
    };
    let retried = "UPDATE crawl_sites SET top_priority = 0;
         INSERT INTO task_rows (crawl, site, priority, depth, rank, url, not_before_ms)
             VALUES (1, 1, 50, 0, 0, 'u', 200000);";
    let leased = "UPDATE sites SET in_window = 1;
         INSERT INTO task_rows (crawl, site, priority, depth, rank, url, state)
             VALUES (1, 1, 50, 0, 0, 'u', 1);";
    let scripts = "UPDATE crawls SET spec = '{\"lane\": \"browser\"}'";
    let limited = "UPDATE crawls SET spec = '{\"max_pages\": 5}', pages = 4, leased = 1";
    let backing_off = "UPDATE sites SET backoff_until_ms = 100001;
         INSERT INTO site_states (site, reason, failures, backoff_index, since_ms, url, sign)
             VALUES (1, 'dns', 0, 0, 40000, '', '');";
    for (change, conditions, expected) in [
        ("", conditions_with_http(), "turn"),
        ("", away.clone(), "store"),
        ("", spent.clone(), "limit"),
        ("", paced, "delay"),
        ("", held, "pause"),
        ("", HoldConditions::default(), "lane"),
        ("", browser.clone(), "turn"),
        (scripts, conditions_with_http(), "lane"),
        (scripts, browser, "turn"),
        (
            "UPDATE crawls SET paused = 1",
            conditions_with_http(),
            "pause",
        ),
        (
            "UPDATE crawls SET ended = 'stopped'",
            conditions_with_http(),
            "",
        ),
        (limited, conditions_with_http(), "limit"),
        (
            "UPDATE sites SET pages_left = 0",
            conditions_with_http(),
            "limit",
        ),
        (
            "UPDATE sites SET pages_left = 1",
            conditions_with_http(),
            "turn",
        ),
        (
            "UPDATE sites SET block_until_ms = 100001",
            conditions_with_http(),
            "pause",
        ),
        (
            "UPDATE sites SET block_until_ms = 100000",
            conditions_with_http(),
            "turn",
        ),
        (backing_off, away, "backoff"),
        (retried, conditions_with_http(), "backoff"),
        (
            "UPDATE sites SET due_at_ms = 100001",
            conditions_with_http(),
            "delay",
        ),
        (leased, conditions_with_http(), "delay"),
    ] {
        let (_folder, db) = frontier_database(
            "INSERT INTO crawls (app_id, crawl_id, spec, queued) VALUES ('a', '1', '{}', 3);
             INSERT INTO sites (id, name, top_priority, queued) VALUES (1, 'a', 50, 3);
             INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority) VALUES (1, 1, 3, 3, 50);",
        );
        db.execute_batch(change).unwrap();
        let sum = count_all_waits(&db, &conditions, &WaitStarts::new(), NOW_MS);
        let expected: Vec<_> = [(expected, 3)]
            .into_iter()
            .filter(|(name, _)| !name.is_empty())
            .collect();
        assert_eq!(nonzero_waits(&sum), expected, "{change}, {conditions:?}");
    }
}

#[test]
fn the_age_is_that_of_the_crawl_that_has_waited_longest_without_a_pause() {
    let (_folder, db) = frontier_database(
        "INSERT INTO crawls (app_id, crawl_id, spec, queued) VALUES
             ('a', '1', '{\"lane\": \"browser\"}', 3), ('a', '2', '{}', 1);
         INSERT INTO sites (id, name, top_priority, queued) VALUES (1, 'a', 50, 1);
         INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority) VALUES (2, 1, 1, 1, 50);",
    );
    let mut since = WaitStarts::new();
    let mut next = |conditions: &HoldConditions, now_ms: i64| {
        let mut sum = count_all_waits(&db, conditions, &since, now_ms);
        since = sum.take_starts();
        let since_ms = |waits_for| sum.total_for_reason(waits_for).since_ms;
        (since_ms(WaitReason::Lane), since_ms(WaitReason::Turn))
    };
    assert_eq!(
        next(&conditions_with_http(), 1_000),
        (Some(1_000), Some(1_000))
    );
    assert_eq!(
        next(&conditions_with_http(), 9_000),
        (Some(1_000), Some(1_000))
    );
    let browser = HoldConditions {
        serves_browser: true,
        ..conditions_with_http()
    };
    assert_eq!(next(&browser, 10_000).0, None, "somebody serves it");
    assert_eq!(
        next(&conditions_with_http(), 20_000).0,
        Some(20_000),
        "it begins anew"
    );
    db.execute_batch("UPDATE sites SET due_at_ms = 25000")
        .unwrap();
    assert_eq!(
        next(&conditions_with_http(), 30_000),
        (Some(20_000), Some(25_000))
    );
}

/// The crawl has a task at each of five sites. One site waits outside memory. Two have nothing to hand out, and one
/// of them is parked. One is parked and not due. One is parked because its task is retried later.
#[test]
fn sites_of_an_unserved_lane_are_counted_if_they_are_due() {
    let (_folder, db) = frontier_database(
        "INSERT INTO crawls (app_id, crawl_id, spec, queued) VALUES ('a', '1', '{\"lane\": \"browser\"}', 4);
         INSERT INTO sites (id, name, top_priority, queued, in_window, due_at_ms) VALUES
             (1, 'a', 50, 1, 0, 0), (2, 'b', 0, 1, 2, 100000), (3, 'c', 0, 1, 2, 100001), (4, 'd', 0, 1, 2, 0),
             (5, 'e', 0, 1, 0, 0);
         INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority) VALUES
             (1, 1, 1, 1, 50), (1, 2, 1, 1, 0), (1, 3, 1, 1, 0), (1, 4, 1, 1, 0), (1, 5, 1, 1, 0);
         INSERT INTO task_rows (crawl, site, priority, depth, rank, url, not_before_ms) VALUES
             (1, 1, 50, 0, 0, 'u', 0), (1, 2, 50, 0, 0, 'u', 0), (1, 3, 50, 0, 0, 'u', 0), (1, 4, 50, 0, 0, 'u', 1),
             (1, 5, 50, 0, 0, 'u', 0);",
    );
    let unserved = |conditions: &HoldConditions| {
        count_all_waits(&db, conditions, &WaitStarts::new(), NOW_MS).unserved_sites
    };
    assert_eq!(unserved(&conditions_with_http()), 2);
    let browser = HoldConditions {
        serves_browser: true,
        ..HoldConditions::default()
    };
    assert_eq!(unserved(&browser), 0);
}

#[test]
fn a_crawl_with_many_sites_is_counted_in_slices() {
    let (_folder, db) = frontier_database(
        "INSERT INTO crawls (app_id, crawl_id, spec, queued) VALUES ('a', '1', '{}', 12001), ('a', '2', '{}', 1);
         WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 12001)
             INSERT INTO sites (id, name, top_priority, queued) SELECT n, n, 50, 1 FROM n;
         INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority) SELECT 1, id, 1, 1, 50 FROM sites;
         INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority) VALUES (2, 7, 1, 1, 50);",
    );
    let sum = count_all_waits(&db, &conditions_with_http(), &WaitStarts::new(), NOW_MS);
    assert_eq!(nonzero_waits(&sum), [("turn", 12_002)]);
}
