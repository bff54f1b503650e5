use super::*;

#[test]
fn due_times_follow_the_wall_clock_even_if_it_is_set() {
    let mut world = World::new("0 2 * * *");
    assert!(world.tick(HOUR_MS).is_empty());
    // The machine has slept for an hour, which only the wall clock counts.
    world.core.set_wall_ahead(HOUR_MS);
    assert_eq!(world.tick(HOUR_MS + 1_000), [1]);
    world.end_seeds_of_run(1, HOUR_MS + 2_000);
    world.core.set_wall_ahead(0);
    assert!(world.tick(HOUR_MS + 3_000).is_empty(), "set back");
    assert!(world.tick(2 * HOUR_MS).is_empty(), "it was run already");
    assert_eq!(world.tick(26 * HOUR_MS), [2]);
}

#[test]
fn a_window_is_over_by_either_clock() {
    for (ahead_ms, now_ms) in [(-2 * HOUR_MS, 4 * HOUR_MS), (HOUR_MS, 2 * HOUR_MS + 1_000)] {
        let mut world = World::new("0 2 * * *");
        let mut watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "0 2 * * *"});
        watch["window"] = json!("1h");
        world.ask(json!({"action": "watch_add", "watch": watch}), 0);
        assert_eq!(world.tick(2 * HOUR_MS), [1]);
        feed_seed(&mut world, 1, 2 * HOUR_MS);
        world.core.set_wall_ahead(ahead_ms);
        world.tick(now_ms);
        world.tick(now_ms);
        assert_eq!(world.runs(now_ms)[0]["how"], "window", "{ahead_ms}");
    }
}
