//! What holds for crawls and sites, and what is kept of them.

use super::*;

#[test]
fn a_paused_crawl_waits_through_a_restart_until_it_is_resumed() {
    let mut bench = bench();
    bench.accept(&requests("c1", 3));
    bench.join();
    let tasks = bench.tasks();
    assert_eq!(bench.ask(&action("pause")), None);
    let paused = bench.asked;
    let recalls = bench.recalls();
    bench.report(|outcomes| {
        outcomes.returned.extend(tasks.iter().map(unstarted));
        outcomes.recalled = recalls;
    });
    let answer = bench.answer_to(paused).expect("all has come back");
    assert_eq!(
        (&answer["state"], &answer["total_pending"]),
        (&json!("paused"), &json!(3))
    );
    bench.accept(&request(json!({})));
    assert!(bench.tasks().is_empty());
    bench.restart();
    bench.join();
    assert!(bench.tasks().is_empty());
    let answer = bench.accept(&action("resume"));
    assert_eq!(
        (&answer["action"], &answer["state"]),
        (&json!("resume"), &json!("running"))
    );
    bench.turn();
    assert_eq!(bench.tasks().len(), 4);
}

#[test]
fn what_is_set_for_a_site_holds_until_it_is_forgotten() {
    let mut bench = bench();
    bench.accept(&requests("a", 1));
    let ask = json!({"action": "site", "site": "a0.org"});
    let nothing = json!({"action": "site", "site": "a0.org", "delay": null, "block_until": null, "limit": null});
    assert_eq!(bench.accept(&ask), nothing);
    let until = NOW_MS / 1_000 + 60;
    bench.accept(&json!({"action": "site", "site": "a0.org", "block_until": until, "delay": 2.5}));
    bench.restart();
    let held = bench.accept(&ask);
    assert_eq!(
        (&held["delay"], &held["block_until"]),
        (&json!(2.5), &json!(until as f64))
    );
    bench.join();
    assert!(bench.tasks().is_empty(), "blocked");
    bench.ask(&json!({"action": "site", "site": "a0.org", "forget": true}));
    assert_eq!(bench.accept(&ask), nothing);
    bench.turn();
    assert_eq!(bench.tasks().len(), 1);
    assert_eq!(
        bench.refused(&json!({"action": "site", "site": "www.a0.org"})),
        "$.site"
    );
}

#[test]
fn a_crawl_on_demand_is_finished_whenever_nothing_is_left() {
    let mut bench = bench();
    bench.accept(&request(json!({})));
    bench.join();
    let tasks = bench.tasks();
    let state = |bench: &mut Bench| {
        bench.now_ms += 5_000;
        bench.turn();
        bench.turn();
        let entries = bench.dispatcher().take_entries();
        let mut states = entries.iter().filter_map(|entry| match entry {
            Entry::Crawl(crawl) => Some(crawl.state.as_str()),
            _ => None,
        });
        states.next_back()
    };
    assert_eq!(state(&mut bench), Some("running"));
    bench.report(|outcomes| outcomes.done.push(done(&tasks[0], &[])));
    assert_eq!(state(&mut bench), Some("finished"));
    assert_eq!(state(&mut bench), None, "nothing has changed");
    bench.accept(&request(json!({"url": "http://a.org/more"})));
    assert_eq!(state(&mut bench), Some("running"));
}

#[test]
fn a_supervisor_is_told_to_forget_crawls_before_they_are_too_many() {
    let mut bench = bench();
    let one = |n: u32| {
        request(json!({"crawlid": format!("c{n}"), "url": format!("http://a{}.org/{n}", n % 500)}))
    };
    let list: Value = (0..11_000).map(one).collect();
    bench.accept(&list);
    bench.join();
    let (mut told, mut most, mut forgotten) = (0, 0, 0);
    while forgotten == 0 {
        let mut tasks = Vec::new();
        for letter in std::mem::take(&mut bench.letters) {
            match letter {
                Letter::ToSupervisor(_, DispatcherToSupervisor::ForgetCrawls { session: 1 }) => {
                    (told, forgotten) = (0, forgotten + 1);
                }
                Letter::ToSupervisor(
                    _,
                    DispatcherToSupervisor::Tasks {
                        crawls,
                        tasks: more,
                        ..
                    },
                ) => {
                    told += crawls.len();
                    tasks.extend(more);
                }
                _ => {}
            }
            most = most.max(told);
        }
        assert!(forgotten > 0 || !tasks.is_empty(), "{told} told");
        bench.credit(10_000_000);
        bench.report(|outcomes| {
            outcomes
                .done
                .extend(tasks.iter().map(|task| done(task, &[])))
        });
    }
    assert!((10_000..10_100).contains(&most), "{most}");
}

/// How many crawls are in memory is bounded; how quick it is, is for the benchmark.
#[test]
fn a_hundred_thousand_small_crawls_are_not_kept_in_memory() {
    let mut bench = bench();
    for part in 0..100 {
        let one = |n: u32| {
            let id = part * 1_000 + n;
            request(
                json!({"crawlid": format!("c{id}"), "url": format!("http://a{}.org/{id}", id % 50)}),
            )
        };
        let list: Value = (0..1_000).map(one).collect();
        assert_eq!(bench.accept(&list), json!({"accepted": 1_000}));
        bench.letters.clear();
        bench.dispatcher().take_entries();
    }
    assert!(bench.dispatcher().frontier.crawls_in_memory() <= 2_001);
    let status = bench.accept(&json!({"action": "status"}));
    assert_eq!(
        (&status["crawls"]["known"], &status["total_pending"]),
        (&json!(100_000), &json!(100_000))
    );
}
