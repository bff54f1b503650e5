//! Tests of the states of crawls and sites, and of how they are written to the store.

use webfill_store::CrawlState;

use super::*;

#[test]
fn a_paused_crawl_waits_through_a_restart_until_it_is_resumed() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&requests("c1", 3));
    fixture.join_supervisor();
    let tasks = fixture.take_tasks();
    assert_eq!(fixture.ask(&action("pause")), None);
    let paused = fixture.asked;
    let recalls = fixture.sent_recalls();
    fixture.report_outcomes(|outcomes| {
        outcomes.returned.extend(tasks.iter().map(unstarted_task));
        outcomes.recalled = recalls;
    });
    let answer = fixture.action_answer(paused).expect("all has come back");
    assert_eq!(
        (&answer["state"], &answer["total_pending"]),
        (&json!("paused"), &json!(3))
    );
    fixture.ask_and_expect_success(&request_with(json!({})));
    assert!(fixture.take_tasks().is_empty());
    fixture.restart();
    fixture.join_supervisor();
    assert!(fixture.take_tasks().is_empty());
    let answer = fixture.ask_and_expect_success(&action("resume"));
    assert_eq!(
        (&answer["action"], &answer["state"]),
        (&json!("resume"), &json!("running"))
    );
    fixture.run_turn();
    assert_eq!(fixture.take_tasks().len(), 4);
}

#[test]
fn a_site_rule_holds_until_the_site_is_forgotten() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&requests("a", 1));
    let ask = json!({"action": "site", "site": "a0.org"});
    let nothing = json!({"action": "site", "site": "a0.org", "delay": null, "block_until": null, "limit": null, "lane": "auto", "queued": 1, "state": "open"});
    assert_eq!(fixture.ask_and_expect_success(&ask), nothing);
    let until = NOW_MS / 1_000 + 60;
    fixture.ask_and_expect_success(
        &json!({"action": "site", "site": "a0.org", "block_until": until, "delay": 2.5}),
    );
    fixture.restart();
    let held = fixture.ask_and_expect_success(&ask);
    assert_eq!(
        (&held["delay"], &held["block_until"]),
        (&json!(2.5), &json!(until as f64))
    );
    fixture.join_supervisor();
    assert!(fixture.take_tasks().is_empty(), "blocked");
    fixture.ask(&json!({"action": "site", "site": "a0.org", "forget": true}));
    let mut leased = nothing;
    leased["queued"] = 0.into();
    assert_eq!(fixture.ask_and_expect_success(&ask), leased);
    fixture.run_turn();
    assert_eq!(fixture.take_tasks().len(), 1);
    assert_eq!(
        fixture.ask_and_expect_refusal(&json!({"action": "site", "site": "www.a0.org"})),
        "$.site"
    );
}

#[test]
fn a_crawl_on_demand_is_finished_whenever_nothing_is_left() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&request_with(json!({})));
    fixture.join_supervisor();
    let tasks = fixture.take_tasks();
    let state = |fixture: &mut Fixture| {
        fixture.now_ms += 5_000;
        fixture.run_turn();
        fixture.run_turn();
        let store_writes = std::mem::take(&mut fixture.store_writes);
        let mut states = store_writes.iter().filter_map(|write| match write {
            StoreWrite::Crawl(write) => Some(write.crawl.state.as_str()),
            _ => None,
        });
        states.next_back()
    };
    assert_eq!(state(&mut fixture), Some("running"));
    fixture.report_outcomes(|outcomes| outcomes.done.push(done_task(&tasks[0], &[])));
    assert_eq!(state(&mut fixture), Some("finished"));
    assert_eq!(state(&mut fixture), None, "nothing has changed");
    fixture.ask_and_expect_success(&request_with(json!({"url": "http://a.org/more"})));
    assert_eq!(state(&mut fixture), Some("running"));
}

/// The crawls that are written to the store within the next seconds: for each, the number of its note in the frontier,
/// its state, and when it ended.
fn take_written_crawls(fixture: &mut Fixture) -> Vec<(Option<i64>, CrawlState, Option<i64>)> {
    fixture.now_ms += 5_000;
    fixture.run_turn();
    fixture.run_turn();
    let writes = std::mem::take(&mut fixture.store_writes);
    let crawls = writes.into_iter().filter_map(|write| match write {
        StoreWrite::Crawl(write) => {
            Some((write.note, write.crawl.state, write.crawl.finished_at_ms))
        }
        _ => None,
    });
    crawls.collect()
}

#[test]
fn the_end_of_a_crawl_is_written_after_each_start_until_it_is_saved() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&request_with(json!({})));
    fixture.join_supervisor();
    let tasks = fixture.take_tasks();
    assert!(
        take_written_crawls(&mut fixture)
            .iter()
            .all(|(note, ..)| note.is_none())
    );
    fixture.report_outcomes(|outcomes| outcomes.done.push(done_task(&tasks[0], &[])));
    fixture.run_turn();
    let ended_ms = Some(fixture.now_ms);
    // The dispatcher dies before it passes the crawl's end to the store, and again before the store has it.
    for _ in 0..2 {
        fixture.restart();
        let ends = take_written_crawls(&mut fixture);
        assert!(ends[0].0.is_some());
        assert_eq!((ends[0].1, ends[0].2), (CrawlState::Finished, ended_ms));
        assert_eq!(take_written_crawls(&mut fixture), [], "once for each start");
    }
    // The crawl continues and ends again. The note of its first end (that the store lacks it) does not count for the
    // second.
    fixture.restart();
    let first = take_written_crawls(&mut fixture)[0].0.unwrap();
    fixture.ask_and_expect_success(&request_with(json!({"url": "http://a.org/more"})));
    fixture.join_supervisor();
    let tasks = fixture.take_tasks();
    fixture.report_outcomes(|outcomes| outcomes.done.push(done_task(&tasks[0], &[])));
    let second = take_written_crawls(&mut fixture).last().unwrap().0.unwrap();
    fixture.core().on_crawl_saved(first).unwrap();
    fixture.restart();
    assert_eq!(take_written_crawls(&mut fixture).len(), 1);
    fixture.core().on_crawl_saved(second).unwrap();
    fixture.run_turn();
    fixture.restart();
    assert_eq!(take_written_crawls(&mut fixture), []);
}

#[test]
fn features_that_a_crawl_needs_are_sent_with_its_settings() {
    let mut fixture = fixture();
    let mut spec = webfill_api::CrawlSpec::on_demand("app", "c1");
    spec.sitemaps = true;
    fixture.core().cx.frontier.crawls().open(&spec).unwrap();
    fixture.ask_and_expect_success(&request_with(json!({})));
    fixture.join_supervisor();
    let asked =
        std::mem::take(&mut fixture.outgoing)
            .into_iter()
            .find_map(|message| match message {
                OutgoingMessage::ToSupervisor(_, DispatcherToSupervisor::Tasks { crawls, .. }) => {
                    Some(crawls[0].features.clone())
                }
                _ => None,
            });
    assert_eq!(asked, Some(vec![webfill_wire::Feature::Sitemaps]));
}

#[test]
fn a_supervisor_forgets_crawls_before_they_are_too_many() {
    let mut fixture = fixture();
    let one = |n: u32| {
        request_with(
            json!({"crawlid": format!("c{n}"), "url": format!("http://a{}.org/{n}", n % 500)}),
        )
    };
    let list: Value = (0..11_000).map(one).collect();
    fixture.ask_and_expect_success(&list);
    fixture.join_supervisor();
    let (mut reported, mut most, mut forgotten) = (0, 0, 0);
    while forgotten == 0 {
        let mut tasks = Vec::new();
        for message in std::mem::take(&mut fixture.outgoing) {
            match message {
                OutgoingMessage::ToSupervisor(
                    _,
                    DispatcherToSupervisor::ForgetCrawls { session: 1 },
                ) => {
                    (reported, forgotten) = (0, forgotten + 1);
                }
                OutgoingMessage::ToSupervisor(
                    _,
                    DispatcherToSupervisor::Tasks {
                        crawls,
                        tasks: more,
                        ..
                    },
                ) => {
                    reported += crawls.len();
                    tasks.extend(more);
                }
                _ => {}
            }
            most = most.max(reported);
        }
        assert!(forgotten > 0 || !tasks.is_empty(), "{reported} sent");
        fixture.grant_credit(10_000_000);
        fixture.report_outcomes(|outcomes| {
            outcomes
                .done
                .extend(tasks.iter().map(|task| done_task(task, &[])))
        });
    }
    assert!((10_000..10_100).contains(&most), "{most}");
}

/// This test shows that the number of crawls in memory is bounded; the benchmark measures the speed.
#[test]
fn a_hundred_thousand_small_crawls_are_not_kept_in_memory() {
    let mut fixture = fixture();
    for part in 0..100 {
        let one = |n: u32| {
            let id = part * 1_000 + n;
            request_with(
                json!({"crawlid": format!("c{id}"), "url": format!("http://a{}.org/{id}", id % 50)}),
            )
        };
        let list: Value = (0..1_000).map(one).collect();
        assert_eq!(
            fixture.ask_and_expect_success(&list),
            json!({"accepted": 1_000})
        );
        fixture.outgoing.clear();
        fixture.store_writes.clear();
    }
    assert!(fixture.core().cx.frontier.crawls().count_in_memory() <= 20_000);
    let status = fixture.ask_and_expect_success(&json!({"action": "status"}));
    assert_eq!(
        (&status["crawls"]["known"], &status["total_pending"]),
        (&json!(100_000), &json!(100_000))
    );
}
