use serde_json::{Value, json};
use tempfile::TempDir;
use webfill_wire::{
    Credit, DispatcherToSupervisor, Hello, Outcome, ReturnCause, SiteClock, SupervisorOutcomes,
    SupervisorToDispatcher, Task, TaskDone, TaskReturned,
};

use super::*;
use crate::control;
use crate::dispatcher::Terms;
use crate::frontier::{Frontier, FrontierConfig};
use crate::ledger::Entry;

const NOW_MS: i64 = 1_700_000_000_000;

/// A dispatcher with its clock in hand, and perhaps a supervisor that answers when told to.
struct Bench {
    dir: TempDir,
    dispatcher: Option<Dispatcher>,
    now_ms: i64,
    asked: u64,
    /// What has left, in order, since somebody looked.
    letters: Vec<Letter>,
    sent_outcomes: u64,
}

fn open(dir: &TempDir, now_ms: i64) -> Dispatcher {
    let terms = Terms {
        default_delay_ms: 0,
        lease_ms: 10_000,
        window_sites: 1_000,
    };
    let frontier = Frontier::open(dir.path(), FrontierConfig::default(), now_ms).unwrap();
    Dispatcher::open(frontier, terms, Vec::new(), now_ms).unwrap()
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    Bench {
        dispatcher: Some(open(&dir, NOW_MS)),
        dir,
        now_ms: NOW_MS,
        asked: 0,
        letters: Vec::new(),
        sent_outcomes: 0,
    }
}

fn request(change: Value) -> Value {
    let mut request = json!({"url": "http://a.org/", "appid": "app", "crawlid": "c1"});
    for (key, value) in change.as_object().unwrap() {
        request[key] = value.clone();
    }
    request
}

fn action(name: &str) -> Value {
    json!({"action": name, "appid": "app", "crawlid": "c1", "uuid": "u1"})
}

/// So many requests of one crawl, each for another site.
fn requests(crawl: &str, n: usize) -> Value {
    let one = |n| request(json!({"crawlid": crawl, "url": format!("http://{crawl}{n}.org/")}));
    (0..n).map(one).collect()
}

impl Bench {
    fn dispatcher(&mut self) -> &mut Dispatcher {
        self.dispatcher.as_mut().unwrap()
    }

    /// One turn of the loop.
    fn turn(&mut self) {
        let now_ms = self.now_ms;
        let dispatcher = self.dispatcher();
        dispatcher.keep_time(now_ms).unwrap();
        dispatcher.hand_out(now_ms).unwrap();
        dispatcher.commit(now_ms).unwrap();
        let letters = dispatcher.take_letters();
        self.letters.extend(letters);
    }

    /// Asks, and returns the answer if it is there after a turn.
    fn ask(&mut self, question: &Value) -> Option<Value> {
        self.asked += 1;
        let (number, now_ms) = (self.asked, self.now_ms);
        let asked = control::read(question.to_string().as_bytes(), now_ms);
        self.dispatcher()
            .ask(Client::Http(number), asked, now_ms)
            .unwrap();
        self.turn();
        self.answer_to(number)
    }

    fn answer_to(&mut self, number: u64) -> Option<Value> {
        self.letters.iter().find_map(|letter| match letter {
            Letter::ToClient(Client::Http(to), answer) if *to == number => Some(answer.clone()),
            _ => None,
        })
    }

    fn accept(&mut self, question: &Value) -> Value {
        let answer = self.ask(question).expect("the answer does not wait");
        assert_eq!(answer.get("error"), None, "{question}");
        answer
    }

    fn refused(&mut self, question: &Value) -> String {
        let answer = self.ask(question).expect("the answer does not wait");
        let path = answer["error"]["path"].as_str();
        path.unwrap_or_else(|| panic!("{question} was accepted: {answer}"))
            .to_owned()
    }

    fn notices(&mut self) -> Vec<Value> {
        let letters = std::mem::take(&mut self.letters);
        let notices = letters.into_iter().filter_map(|letter| match letter {
            Letter::Notice { app_id, notice } => {
                assert_eq!(app_id, "app");
                Some(notice)
            }
            _ => None,
        });
        notices.collect()
    }

    fn say(&mut self, message: SupervisorToDispatcher) {
        let now_ms = self.now_ms;
        self.dispatcher()
            .take_from_supervisor(&b"s".to_vec(), message, now_ms)
            .unwrap();
        self.turn();
    }

    fn join(&mut self) {
        let credit = Credit {
            tasks: 1_000,
            url_bytes: 1 << 20,
        };
        self.say(SupervisorToDispatcher::Hello(Hello {
            supervisor: "s".into(),
            home: 1,
            session: 1,
            sent_ms: 1,
            workers: 1,
            longest_request_ms: 1_000,
            credit,
            held: Vec::new(),
        }));
    }

    /// Grants so many tasks in all.
    fn credit(&mut self, tasks: u64) {
        let credit = Credit {
            tasks,
            url_bytes: 1 << 40,
        };
        self.say(SupervisorToDispatcher::Credit { session: 1, credit });
    }

    /// The tasks that were handed out since somebody looked.
    fn tasks(&mut self) -> Vec<Task> {
        let letters = std::mem::take(&mut self.letters);
        let tasks = letters.into_iter().filter_map(|letter| match letter {
            Letter::ToSupervisor(_, DispatcherToSupervisor::Tasks { tasks, .. }) => Some(tasks),
            _ => None,
        });
        tasks.flatten().collect()
    }

    /// The numbers of the recalls that were asked for, to be told as carried out.
    fn recalls(&self) -> Vec<u64> {
        let recalls = self.letters.iter().filter_map(|letter| match letter {
            Letter::ToSupervisor(_, DispatcherToSupervisor::Recall { recall, .. }) => Some(*recall),
            _ => None,
        });
        recalls.collect()
    }

    fn report(&mut self, change: impl FnOnce(&mut SupervisorOutcomes)) {
        self.sent_outcomes += 1;
        let mut outcomes = SupervisorOutcomes {
            supervisor: "s".into(),
            session: 1,
            number: self.sent_outcomes,
            done: Vec::new(),
            returned: Vec::new(),
            recalled: Vec::new(),
        };
        change(&mut outcomes);
        let now_ms = self.now_ms;
        self.dispatcher().take_outcomes(outcomes, now_ms).unwrap();
        self.turn();
    }

    fn restart(&mut self) {
        self.dispatcher = None;
        self.dispatcher = Some(open(&self.dir, self.now_ms));
        self.turn();
    }
}

fn done(task: &Task, links: &[&str]) -> TaskDone {
    TaskDone {
        task: task.task,
        attempt: task.attempt,
        outcome: Outcome::Ok,
        status_code: Some(200),
        body_bytes: 10,
        fields: 0,
        links: links.iter().map(|link| link.to_string()).collect(),
        redirect: None,
        resolved: Vec::new(),
        clock: SiteClock::default(),
    }
}

fn unstarted(task: &Task) -> TaskReturned {
    TaskReturned {
        task: task.task,
        attempt: task.attempt,
        cause: ReturnCause::Unstarted,
        clock: None,
    }
}

#[test]
fn what_is_accepted_survives_a_restart() {
    let mut bench = bench();
    assert_eq!(bench.accept(&requests("c1", 3)), json!({"accepted": 3}));
    bench.restart();
    let info = bench.accept(&action("info"));
    assert_eq!(
        (&info["total_pending"], &info["total_domains"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(
        (&info["low_priority"], &info["high_priority"]),
        (&json!(50), &json!(50))
    );
    assert_eq!(
        (&info["uuid"], &info["appid"], &info["crawlid"]),
        (&json!("u1"), &json!("app"), &json!("c1"))
    );
    assert_eq!(info["server_time"], NOW_MS / 1_000);
}

#[test]
fn a_list_with_one_refused_crawl_changes_nothing() {
    let mut bench = bench();
    bench.accept(&action("stop"));
    let list = json!([
        request(json!({"crawlid": "c2"})),
        request(json!({"crawlid": "c2", "url": "http://b.org/"})),
        request(json!({})),
    ]);
    assert_eq!(bench.refused(&list), "$[2].crawlid");
    assert_eq!(bench.refused(&request(json!({}))), "$.crawlid");
    let mut info = action("info");
    info["crawlid"] = json!("c2");
    assert_eq!(bench.refused(&info), "$.crawlid", "no such crawl");
}

#[test]
fn the_same_crawl_again_expands_it_and_a_url_of_another_crawl_is_crawled() {
    let mut bench = bench();
    bench.accept(&request(json!({"maxdepth": 2, "useragent": "me"})));
    let again = bench.accept(&request(json!({})));
    assert_eq!(again, json!({"accepted": 1, "skipped": {"duplicate": 1}}));
    bench.accept(&request(json!({"url": "http://a.org/more"})));
    bench.accept(&request(json!({"crawlid": "c2"})));
    let info = bench.accept(&json!({"action": "info", "appid": "app"}));
    assert_eq!(info["total_pending"], 3);
    assert_eq!(
        (&info["total_crawlids"], &info["total_domains"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        info["crawlids"]["c1"],
        json!({"total": 2, "low_priority": 50, "high_priority": 50})
    );
    let dispatcher = bench.dispatcher();
    let crawl = dispatcher
        .frontier
        .find_crawl("app", "c1")
        .unwrap()
        .unwrap();
    let spec = dispatcher.frontier.spec(crawl).unwrap();
    let kept = (spec.max_depth, spec.useragent.as_deref());
    assert_eq!(kept, (2, Some("me")), "left out, so it stays");
}

#[test]
fn the_highest_priority_goes_out_first_and_links_have_ten_less() {
    let mut bench = bench();
    let low = request(json!({"url": "http://a.org/low", "priority": 20, "maxdepth": 1}));
    let high = request(json!({"url": "http://a.org/high", "priority": 90}));
    bench.accept(&json!([low, high]));
    bench.join();
    let tasks = bench.tasks();
    let first: Vec<(&str, u8)> = tasks
        .iter()
        .map(|task| (&*task.url, task.priority))
        .collect();
    assert_eq!(first, [("http://a.org/high", 90), ("http://a.org/low", 20)]);
    bench.report(|outcomes| outcomes.done.push(done(&tasks[0], &["http://a.org/link"])));
    let links = bench.tasks();
    assert_eq!(
        (&*links[0].url, links[0].priority),
        ("http://a.org/link", 80)
    );
}

#[test]
fn attributes_go_with_their_url_and_with_what_follows_from_it() {
    let mut bench = bench();
    bench.accept(&json!([
        request(json!({"url": "http://a.org/1", "attrs": {"n": 1}, "maxdepth": 1})),
        request(json!({"url": "http://a.org/2", "attrs": {"n": 2}})),
        request(json!({"url": "http://a.org/3"})),
    ]));
    bench.restart();
    bench.join();
    let tasks = bench.tasks();
    let attrs: Vec<Option<&str>> = tasks.iter().map(|task| task.attrs.as_deref()).collect();
    assert_eq!(attrs, [Some(r#"{"n":1}"#), Some(r#"{"n":2}"#), None]);
    bench.report(|outcomes| {
        let links = ["http://a.org/3", "http://a.org/4"];
        outcomes.done.push(done(&tasks[0], &links));
    });
    let links = bench.tasks();
    assert_eq!(links.len(), 1, "the other one is known");
    assert_eq!(links[0].attrs.as_deref(), Some(r#"{"n":1}"#));
}

#[test]
fn stop_is_answered_when_nothing_can_start_any_more() {
    let mut bench = bench();
    bench.accept(&requests("c1", 5));
    bench.accept(&request(json!({"crawlid": "c2"})));
    bench.join();
    let tasks = bench.tasks();
    assert_eq!(tasks.len(), 6);
    let of_c1: Vec<Task> = tasks
        .into_iter()
        .filter(|task| task.url != "http://a.org/")
        .collect();
    assert_eq!(
        bench.ask(&action("stop")),
        None,
        "the supervisor has not answered"
    );
    let stopped = bench.asked;
    let recalls = bench.recalls();
    bench.report(|outcomes| {
        outcomes.done.push(done(&of_c1[0], &["http://a.org/link"]));
        outcomes.returned.extend(of_c1[2..].iter().map(unstarted));
        outcomes.recalled = recalls;
    });
    let answer = bench.answer_to(stopped).expect("all has come back");
    assert_eq!(
        answer["total_purged"], 3,
        "all but what was fetched and what is: {answer}"
    );
    assert_eq!(
        (&answer["action"], &answer["spiderid"]),
        (&json!("stop"), &json!("link"))
    );
    assert_eq!(bench.notices().last(), Some(&answer));
    let info = bench.accept(&action("info"));
    assert_eq!(
        (&info["state"], &info["total_pending"]),
        (&json!("stopped"), &json!(0))
    );
    bench.report(|outcomes| outcomes.done.push(done(&of_c1[1], &[])));
    assert!(bench.tasks().is_empty(), "nothing starts after the answer");
}

#[test]
fn who_asks_again_hears_the_same_end() {
    let mut bench = bench();
    let expires = NOW_MS / 1_000 + 1;
    bench.accept(&request(json!({"expires": expires})));
    bench.accept(&request(json!({"url": "http://b.org/"})));
    bench.join();
    let tasks = bench.tasks();
    bench.now_ms += 1_000;
    bench.turn();
    assert_eq!(bench.ask(&action("stop")), None);
    let first = bench.asked;
    assert_eq!(bench.ask(&action("stop")), None);
    let second = bench.asked;
    let recalls = bench.recalls();
    bench.report(|outcomes| {
        outcomes.returned.extend(tasks.iter().map(unstarted));
        outcomes.recalled = recalls;
    });
    let answer = bench.answer_to(first).unwrap();
    assert_eq!(answer["total_purged"], 2);
    assert_eq!(bench.answer_to(second), Some(answer));
    let told: Vec<Value> = bench.notices();
    let names: Vec<&Value> = told.iter().map(|notice| &notice["action"]).collect();
    assert_eq!(names, ["stop", "stop", "expired"]);
    assert_eq!(
        bench.refused(&request(json!({"expires": expires + 9}))),
        "$.crawlid"
    );
}

#[test]
fn a_supervisor_that_is_silent_keeps_a_stop_waiting_for_a_second() {
    let mut bench = bench();
    bench.accept(&request(json!({})));
    bench.join();
    assert_eq!(bench.ask(&action("stop")), None);
    let stopped = bench.asked;
    bench.now_ms += 999;
    bench.turn();
    assert_eq!(bench.answer_to(stopped), None);
    let now_ms = bench.now_ms;
    assert_eq!(bench.dispatcher().next_look_ms(), now_ms + 1);
    bench.now_ms += 1;
    bench.turn();
    assert_eq!(bench.answer_to(stopped).unwrap()["total_purged"], 0);
}

#[test]
fn an_id_that_was_stopped_before_it_was_used_is_refused() {
    let mut bench = bench();
    assert_eq!(bench.accept(&action("stop"))["total_purged"], 0);
    bench.restart();
    assert_eq!(bench.refused(&request(json!({}))), "$.crawlid");
    assert_eq!(bench.refused(&action("resume")), "$.crawlid");
    assert_eq!(
        bench.accept(&action("stop"))["total_purged"],
        0,
        "again does no harm"
    );
}

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
fn a_crawl_whose_time_has_come_is_purged_and_its_application_told() {
    let mut bench = bench();
    let expires = NOW_MS / 1_000 + 10;
    bench.accept(&requests("c1", 3));
    bench.accept(&request(json!({"expires": expires})));
    let info = bench.accept(&json!({"action": "info", "appid": "app"}));
    assert_eq!(info["crawlids"]["c1"]["expires"], expires);
    bench.now_ms += 9_999;
    bench.turn();
    bench.notices();
    let now_ms = bench.now_ms;
    assert_eq!(
        bench.dispatcher().next_look_ms().max(now_ms + 1),
        now_ms + 1
    );
    bench.now_ms += 1;
    bench.turn();
    let notice = json!({
        "action": "expired", "total_expired": 4, "crawlid": "c1", "spiderid": "link", "appid": "app",
    });
    assert_eq!(bench.notices(), [notice]);
    assert_eq!(bench.refused(&request(json!({}))), "$.crawlid");
    let later = request(json!({"expires": expires + 60, "url": "http://b.org/"}));
    assert_eq!(bench.accept(&later), json!({"accepted": 1}));
    bench.join();
    assert_eq!(bench.tasks().len(), 1);
}

#[test]
fn the_end_of_a_crawl_goes_on_after_a_restart() {
    let mut bench = bench();
    bench.accept(&requests("c1", 3));
    let dispatcher = bench.dispatcher();
    let crawl = dispatcher
        .frontier
        .find_crawl("app", "c1")
        .unwrap()
        .unwrap();
    dispatcher.frontier.stop_crawl(crawl).unwrap();
    dispatcher.commit(NOW_MS).unwrap();
    bench.restart();
    bench.turn();
    let info = bench.accept(&action("info"));
    assert_eq!(
        (&info["total_pending"], &info["outcomes"]["stopped"]),
        (&json!(0), &json!(3))
    );
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
fn lines_leave_out_what_is_refused_and_say_which() {
    let mut bench = bench();
    bench.accept(&action("stop"));
    let mut judge = control::Judge::new(NOW_MS);
    let mut batch = control::Batch::default();
    for (place, crawl) in [(7, "c2"), (8, "c1"), (9, "c2")] {
        let request = request(json!({"crawlid": crawl, "url": format!("http://{place}.org/")}));
        batch.add(judge.judge(request, "$").unwrap(), place);
    }
    let answer = bench.dispatcher().take_batch(batch, false, NOW_MS).unwrap();
    assert_eq!(answer["accepted"], 2);
    assert_eq!(answer["refused"][0]["line"], 8);
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
