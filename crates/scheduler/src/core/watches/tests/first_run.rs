//! All pages are new to the first run of a watch, so they are not reported as new.

use super::*;
use crate::effects::StoreWrite;

/// Begins a run, and returns two times from the crawl that is written then: the beginning of the run, and that of the
/// crawl.
fn begin_run(world: &mut World, now_ms: i64) -> (i64, i64) {
    world.core.watches.check_at_ms = now_ms;
    world.core.on_tick(now_ms).unwrap();
    let writes = world.core.commit(now_ms).unwrap().store_writes.into_iter();
    let mut crawls = writes.filter_map(|write| match write {
        StoreWrite::Crawl(write) => Some(write.crawl),
        _ => None,
    });
    let crawl = crawls.next().expect("the crawl is written");
    (
        crawl.request["run_began_ms"].as_i64().unwrap(),
        crawl.started_at_ms,
    )
}

#[test]
fn the_first_run_of_a_crawl_is_known_by_when_both_began() {
    let mut world = World::new("0 2 * * *");
    // A run counts as the first one if it began no later than the crawl.
    let (run_ms, crawl_ms) = begin_run(&mut world, 2 * HOUR_MS);
    assert!(run_ms <= crawl_ms, "{run_ms} {crawl_ms}");
    world.end_seeds_of_run(1, 2 * HOUR_MS + 1_000);
    let (second_ms, _) = begin_run(&mut world, 26 * HOUR_MS);
    assert!(second_ms > crawl_ms, "the store keeps when the crawl began");
}
