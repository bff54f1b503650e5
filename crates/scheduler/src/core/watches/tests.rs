mod clock;
mod first_run;

use serde_json::{Value, json};
use tempfile::TempDir;
use webfill_api::{Action, parse_action};
use webfill_wire::keys::Rights;

use crate::control;
use crate::core::Core;
use crate::core::context::CoreSettings;
use crate::effects::{Client, FeederOrder, OutgoingMessage};
use crate::frontier::{Frontier, FrontierConfig, StoredWatch};
use crate::mappings::Mappings;
use crate::watch_sources::WatchSources;

const HOUR_MS: i64 = 3_600_000;

/// A core without supervisors: the test feeds the seeds, and no page is ever fetched.
struct World {
    folder: TempDir,
    core: Core,
    /// Orders to start feeders.
    orders: Vec<FeederOrder>,
}

fn open_core(folder: &TempDir, now_ms: i64) -> Core {
    let frontier = Frontier::open(folder.path(), FrontierConfig::default(), now_ms).unwrap();
    let settings = CoreSettings {
        default_delay_ms: 1_000,
        lease_ms: 10_000,
        window_sites: 100,
        group_bounds: None,
    };
    let mut core = Core::open(frontier, settings, Mappings::default(), now_ms).unwrap();
    core.start_watches(WatchSources::default(), now_ms).unwrap();
    core
}

impl World {
    fn get_run(&mut self, run: u64) -> Value {
        let core = &mut self.core;
        core.watches.run_for_feeder(&mut core.cx, "w", run).unwrap()
    }

    fn with_core(core: Core, folder: TempDir) -> World {
        World {
            folder,
            core,
            orders: Vec::new(),
        }
    }

    fn new(schedule: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        let core = open_core(&folder, 0);
        let mut world = World::with_core(core, folder);
        let watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": schedule});
        let added = world.ask(json!({"action": "watch_add", "watch": watch}), 0);
        assert_eq!(added.get("error"), None, "{added}");
        world
    }

    fn ask(&mut self, action: Value, now_ms: i64) -> Value {
        let Ok(Action::Watch(action)) = parse_action(action) else {
            panic!("it is one of watches")
        };
        let core = &mut self.core;
        let answer = core
            .watches
            .act_on_watches(
                &mut core.cx,
                &mut core.notifications,
                action,
                &Rights::ALL,
                now_ms,
            )
            .unwrap();
        self.commit(now_ms);
        answer
    }

    fn commit(&mut self, now_ms: i64) {
        let committed = self.core.commit(now_ms).unwrap();
        self.orders.extend(committed.feeder_orders);
    }

    /// Runs a turn of the loop. Returns the runs whose feeders are to be started.
    fn tick(&mut self, now_ms: i64) -> Vec<u64> {
        self.core.watches.check_at_ms = now_ms;
        self.core.on_tick(now_ms).unwrap();
        self.commit(now_ms);
        let orders = std::mem::take(&mut self.orders);
        orders.iter().map(|order| order.run).collect()
    }

    /// Ends the seeds of a run without feeding any, so that the run has no tasks.
    fn end_seeds_of_run(&mut self, run: u64, now_ms: i64) {
        let answer = self.get_run(run);
        let crawl = answer["crawl"]
            .as_u64()
            .unwrap_or_else(|| panic!("{answer}"));
        self.core
            .cx
            .frontier
            .crawls()
            .end_seeds(crawl as u32)
            .unwrap();
        assert_eq!(self.tick(now_ms), Vec::<u64>::new());
        assert_eq!(self.core.run_state("w", run)["over"], true);
        self.core.on_feeder_ended("w", run, None).unwrap();
    }

    fn runs(&mut self, now_ms: i64) -> Vec<Value> {
        let shown = self.ask(json!({"action": "watch_show", "name": "w"}), now_ms);
        shown["runs"].as_array().cloned().unwrap_or_default()
    }

    fn kill_and_restart(self, now_ms: i64) -> World {
        let World { folder, core, .. } = self;
        drop(core);
        let core = open_core(&folder, now_ms);
        World::with_core(core, folder)
    }
}

#[test]
fn a_run_begins_when_it_is_due_and_not_before() {
    let mut world = World::new("0 2 * * *");
    assert!(world.tick(HOUR_MS).is_empty());
    assert_eq!(world.tick(2 * HOUR_MS), [1]);
    world.end_seeds_of_run(1, 2 * HOUR_MS + 1_000);
    assert!(world.tick(3 * HOUR_MS).is_empty());
    assert_eq!(world.tick(26 * HOUR_MS), [2]);
    let runs = world.runs(26 * HOUR_MS);
    assert_eq!(
        (&runs[1]["how"], &runs[1]["missed"]),
        (&json!("finished"), &json!(0))
    );
}

#[test]
fn a_watch_never_has_two_runs_and_due_times_during_a_run_are_skipped() {
    let mut world = World::new("0 * * * *");
    assert_eq!(world.tick(HOUR_MS), [1]);
    for hour in 2..=4 {
        assert!(world.tick(hour * HOUR_MS).is_empty());
    }
    let asked = world.ask(json!({"action": "watch_run", "name": "w"}), 4 * HOUR_MS);
    assert_eq!(asked["error"]["path"], "$.name");
    world.end_seeds_of_run(1, 4 * HOUR_MS + 1_000);
    assert_eq!(world.runs(5 * HOUR_MS)[0]["skipped"], 3);
    assert!(world.tick(4 * HOUR_MS + 2_000).is_empty());
    assert_eq!(world.tick(5 * HOUR_MS), [2]);
}

#[test]
fn a_run_waits_for_the_feeder_of_the_one_before() {
    let mut world = World::new("0 * * * *");
    assert_eq!(world.tick(HOUR_MS), [1]);
    let crawl = world.get_run(1)["crawl"].as_u64().unwrap();
    world
        .core
        .cx
        .frontier
        .crawls()
        .end_seeds(crawl as u32)
        .unwrap();
    assert!(world.tick(HOUR_MS + 1_000).is_empty());
    assert!(world.tick(2 * HOUR_MS).is_empty(), "it might still feed");
    world.core.on_feeder_ended("w", 1, None).unwrap();
    assert_eq!(world.tick(2 * HOUR_MS + 1_000), [2]);
}

#[test]
fn one_run_makes_up_for_all_that_was_missed() {
    let mut world = World::new("0 2 * * *");
    assert_eq!(world.tick(2 * HOUR_MS), [1]);
    world.end_seeds_of_run(1, 3 * HOUR_MS);
    let mut world = world.kill_and_restart(100 * HOUR_MS);
    assert_eq!(world.tick(100 * HOUR_MS), [2]);
    assert_eq!(world.runs(100 * HOUR_MS)[0]["missed"], 3);
    world.end_seeds_of_run(2, 101 * HOUR_MS);
    assert!(world.tick(102 * HOUR_MS).is_empty(), "once");
    assert_eq!(world.tick(122 * HOUR_MS), [3]);
}

#[test]
fn a_current_run_continues_after_a_kill_and_is_fed_again() {
    let mut world = World::new("every 6h");
    assert_eq!(world.tick(1_000), [1], "the first one is due at once");
    let began = world.get_run(1)["began_ms"].clone();
    let mut world = world.kill_and_restart(20 * HOUR_MS);
    assert_eq!(world.tick(20 * HOUR_MS), [1]);
    assert_eq!(world.get_run(1)["began_ms"], began);
    world.end_seeds_of_run(1, 21 * HOUR_MS);
    let runs = world.runs(21 * HOUR_MS);
    assert_eq!((runs.len(), &runs[0]["skipped"]), (1, &json!(3)));
}

#[test]
fn a_paused_watch_runs_only_on_request() {
    let mut world = World::new("0 * * * *");
    world.ask(json!({"action": "watch_pause", "name": "w"}), 0);
    let mut world = world.kill_and_restart(HOUR_MS);
    assert!(world.tick(HOUR_MS).is_empty(), "a restart knows it");
    world.ask(json!({"action": "watch_run", "name": "w"}), HOUR_MS);
    assert_eq!(world.tick(HOUR_MS + 1_000), [1]);
    world.end_seeds_of_run(1, HOUR_MS + 2_000);
    assert!(world.tick(2 * HOUR_MS).is_empty());
    world.ask(json!({"action": "watch_resume", "name": "w"}), 2 * HOUR_MS);
    assert_eq!(
        world.tick(2 * HOUR_MS + 1_000),
        [2],
        "what was missed, once"
    );
}

#[test]
fn a_run_that_was_asked_for_begins_once_also_after_a_kill() {
    let mut world = World::new("0 2 * * *");
    world.ask(json!({"action": "watch_run", "name": "w"}), 0);
    let mut world = world.kill_and_restart(HOUR_MS);
    assert_eq!(world.tick(HOUR_MS), [1], "it was accepted");
    world.end_seeds_of_run(1, HOUR_MS + 1_000);
    let mut world = world.kill_and_restart(HOUR_MS + 2_000);
    assert!(world.tick(HOUR_MS + 2_000).is_empty(), "it has begun");
}

#[test]
fn a_removed_watch_stops_and_its_records_stay() {
    let mut world = World::new("0 * * * *");
    assert_eq!(world.tick(HOUR_MS), [1]);
    world.ask(
        json!({"action": "watch_remove", "name": "w"}),
        HOUR_MS + 1_000,
    );
    assert_eq!(world.core.run_state("w", 1)["over"], true);
    assert!(world.tick(2 * HOUR_MS).is_empty());
    world.core.on_feeder_ended("w", 1, None).unwrap();
    let watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "0 * * * *"});
    world.ask(
        json!({"action": "watch_add", "watch": watch}),
        2 * HOUR_MS + 1_000,
    );
    assert_eq!(world.runs(2 * HOUR_MS)[0]["how"], "stopped");
    assert_eq!(world.tick(3 * HOUR_MS), [2], "numbers continue");
}

#[test]
fn a_feeder_that_fails_fails_its_run() {
    let mut world = World::new("0 * * * *");
    assert_eq!(world.tick(HOUR_MS), [1]);
    let why = Some(String::from("no such file"));
    world.core.on_feeder_ended("w", 1, why).unwrap();
    assert!(world.tick(HOUR_MS + 1_000).is_empty());
    let run = world.runs(HOUR_MS + 1_000).remove(0);
    assert_eq!(
        (&run["how"], &run["why"]),
        (&json!("failed"), &json!("no such file"))
    );
    assert_eq!(world.tick(2 * HOUR_MS), [2]);
}

/// Feeds to a run a seed that is never fetched. Returns the run's crawl.
fn feed_seed(world: &mut World, run: u64, now_ms: i64) -> u32 {
    let answer = world.get_run(run);
    let crawl = answer["crawl"]
        .as_u64()
        .unwrap_or_else(|| panic!("{answer}")) as u32;
    let asked = json!({"action": "feed_seeds", "crawl": crawl, "seeds": [{"url": "http://a.org/"}], "fed_lines": 1});
    let asked = control::parse_request(asked.to_string().as_bytes(), now_ms);
    let feeder = Client::Feeder(vec![1]);
    world.core.handle_request(feeder, asked, now_ms).unwrap();
    drop(world.core.commit(now_ms).unwrap());
    crawl
}

#[test]
fn a_watch_that_is_changed_during_a_run_changes_from_the_next_one_on() {
    let mut world = World::new("0 * * * *");
    assert_eq!(world.tick(HOUR_MS), [1]);
    feed_seed(&mut world, 1, HOUR_MS);
    let changed = json!({
        "name": "w", "urls": ["http://b.org/"], "schedule": "0 * * * *", "window": "1s",
        "crawl": {"patience": "1s"},
    });
    let added = world.ask(json!({"action": "watch_add", "watch": changed}), HOUR_MS);
    assert_eq!(added["changed"], true, "{added}");
    for _ in 0..2 {
        let answer = world.get_run(1);
        assert_eq!(
            answer["watch"]["urls"],
            json!(["http://a.org/"]),
            "{answer}"
        );
        world.tick(HOUR_MS + 60_000);
        assert_eq!(world.core.run_state("w", 1)["over"], false, "its window");
        world = world.kill_and_restart(HOUR_MS + 60_000);
        world.tick(HOUR_MS + 60_000);
    }
    world
        .core
        .on_feeder_ended("w", 1, Some("as a test".into()))
        .unwrap();
    assert_eq!(world.tick(HOUR_MS + 61_000), Vec::<u64>::new());
    assert_eq!(world.tick(2 * HOUR_MS), [2]);
    let answer = world.get_run(2);
    assert_eq!(
        answer["watch"]["urls"],
        json!(["http://b.org/"]),
        "{answer}"
    );
    world.tick(2 * HOUR_MS + 2_000);
    world.tick(2 * HOUR_MS + 2_000);
    assert_eq!(world.runs(2 * HOUR_MS + 2_000)[0]["how"], "window");
}

#[test]
fn a_run_that_was_ending_ends_after_a_kill_as_it_would_have() {
    let mut world = World::new("0 * * * *");
    assert_eq!(world.tick(HOUR_MS), [1]);
    feed_seed(&mut world, 1, HOUR_MS);
    let why = Some(String::from("no such file"));
    world.core.on_feeder_ended("w", 1, why).unwrap();
    drop(world.core.commit(HOUR_MS).unwrap());
    let mut world = world.kill_and_restart(HOUR_MS + 1_000);
    world.tick(HOUR_MS + 2_000);
    let run = world.runs(HOUR_MS + 2_000).remove(0);
    assert_eq!(
        (&run["how"], &run["why"]),
        (&json!("failed"), &json!("no such file"))
    );
    assert_eq!(
        world
            .core
            .cx
            .frontier
            .watches()
            .run_under_way("w", 1)
            .unwrap(),
        None
    );
}

#[test]
fn a_watch_that_cannot_be_read_is_removed_by_its_name() {
    let mut world = World::new("0 * * * *");
    let kept = StoredWatch {
        json: r#"{"name": "other", "records": {"uri": "mongodb://me:secret@db/x"}}"#.into(),
        paused: false,
        since_ms: 0,
        asked: false,
    };
    world
        .core
        .cx
        .frontier
        .watches()
        .save("other", &kept)
        .unwrap();
    drop(world.core.commit(0).unwrap());
    let mut world = world.kill_and_restart(HOUR_MS);
    let remove = json!({"action": "watch_remove", "name": "other"});
    assert_eq!(world.ask(remove.clone(), HOUR_MS)["name"], "other");
    assert_eq!(world.ask(remove, HOUR_MS)["error"]["path"], "$.name");
    assert_eq!(world.core.cx.frontier.watches().all().unwrap().len(), 1);
}

#[test]
fn a_watch_of_files_or_databases_that_are_not_allowed_is_refused() {
    let mut world = World::new("0 * * * *");
    let records = json!({"uri": "mongodb://me:secret@db/x", "collection": "c"});
    for (key, value, path, setting) in [
        (
            "seeds",
            json!("/etc/passwd"),
            "$.watch.seeds",
            "watches.seeds_dir",
        ),
        ("records", records, "$.watch.records.uri", "watches.records"),
    ] {
        let mut watch = json!({"name": "x", "schedule": "0 * * * *"});
        watch[key] = value;
        let refused = world.ask(json!({"action": "watch_add", "watch": watch}), 0);
        let refusal = refused["error"].to_string();
        assert_eq!(refused["error"]["path"], path, "{refused}");
        assert!(
            refusal.contains(setting) && !refusal.contains("secret"),
            "{refusal}"
        );
    }
}

#[test]
fn runs_that_fail_wait_longer_each_time_also_after_a_kill() {
    let mut world = World::new("every 2s");
    let mut now_ms = 1_000;
    for (run, wait_ms) in (1..).zip([60_000, 120_000, 240_000, 480_000]) {
        assert_eq!(world.tick(now_ms), [run]);
        world
            .core
            .on_feeder_ended("w", run, Some("no".into()))
            .unwrap();
        world.tick(now_ms + 1);
        if run == 3 {
            world = world.kill_and_restart(now_ms + 2);
        }
        assert!(world.tick(now_ms + wait_ms - 100).is_empty());
        now_ms += wait_ms + 2_000;
    }
}

#[test]
fn a_window_that_passed_while_nothing_ran_is_made_up_for() {
    let mut world = World::new("0 2 * * *");
    let mut watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "0 2 * * *"});
    watch["window"] = json!("1h");
    world.ask(json!({"action": "watch_add", "watch": watch}), 0);
    assert_eq!(world.tick(2 * HOUR_MS), [1]);
    feed_seed(&mut world, 1, 2 * HOUR_MS);
    let mut world = world.kill_and_restart(27 * HOUR_MS);
    world.tick(27 * HOUR_MS);
    let run = world.runs(27 * HOUR_MS).remove(0);
    assert_eq!(
        (&run["how"], &run["skipped"]),
        (&json!("window"), &json!(0))
    );
    assert!(run["ended"].as_f64().unwrap() < 3.1 * 3_600.0, "{run}");
    world.core.on_feeder_ended("w", 1, None).unwrap();
    assert_eq!(
        world.tick(27 * HOUR_MS + 1),
        [2],
        "the one of the second day"
    );
}

#[test]
fn a_thousand_records_of_runs_are_kept() {
    let mut world = World::new("0 2 * * *");
    for number in 1..=1_005 {
        let run = webfill_api::WatchRun::new(number, 0, 0);
        world
            .core
            .cx
            .frontier
            .watches()
            .record_run("w", &run, None)
            .unwrap();
    }
    let runs = world
        .core
        .cx
        .frontier
        .watches()
        .list_runs("w", 2_000)
        .unwrap();
    assert_eq!((runs.len(), runs[0].number), (1_000, 1_005));
}

#[test]
fn only_feeders_get_runs_and_count_them() {
    let mut world = World::new("0 * * * *");
    assert_eq!(world.tick(HOUR_MS), [1]);
    let counts = json!({"action": "count_run", "watch": "w", "run": 1, "counts": {"pages": 7}});
    for question in [
        json!({"action": "get_run", "watch": "w", "run": 1}),
        json!({"action": "get_run_state", "watch": "w", "run": 1}),
        counts,
    ] {
        for client in [Client::Socket(vec![1].into()), Client::Http(1.into())] {
            let asked = control::parse_request(question.to_string().as_bytes(), HOUR_MS);
            world.core.handle_request(client, asked, HOUR_MS).unwrap();
            let answers = world.core.commit(HOUR_MS).unwrap().outgoing;
            let [OutgoingMessage::ToClient(_, answer)] = &*answers else {
                panic!("{answers:?}")
            };
            assert_eq!(answer["error"]["path"], "$.action", "{question}: {answer}");
        }
    }
    let asked =
        control::parse_request(br#"{"action": "get_run", "watch": "w", "run": 1}"#, HOUR_MS);
    let feeder = Client::Feeder(vec![1]);
    world.core.handle_request(feeder, asked, HOUR_MS).unwrap();
    let answers = world.core.commit(HOUR_MS).unwrap().outgoing;
    assert!(
        matches!(&*answers, [OutgoingMessage::ToClient(_, answer)] if answer["watch"]["name"] == "w"),
        "{answers:?}"
    );
}

#[test]
fn the_dispatcher_of_a_crawl_has_no_watches() {
    let mut world = World::new("0 * * * *");
    world.core.watches.are_attended = false;
    let refused = world.ask(json!({"action": "watch_list"}), 0);
    assert_eq!(refused["error"]["path"], "$.action");
}
