//! Tests of crawls that need browsers, from the point of view of their applications.

use super::*;

fn browser_request(change: Value) -> Value {
    let mut request = request_with(json!({"crawlid": "scripts", "spiderid": "browser"}));
    for (key, value) in change.as_object().unwrap() {
        request[key] = value.clone();
    }
    request
}

fn action_on_crawl(action: &str, crawl: &str) -> Value {
    json!({"action": action, "appid": "app", "crawlid": crawl})
}

/// The crawls whose settings were sent, with their lanes.
fn sent_crawls(fixture: &Fixture) -> Vec<(String, Lane)> {
    let sent = fixture.outgoing.iter().filter_map(|message| match message {
        OutgoingMessage::ToSupervisor(_, DispatcherToSupervisor::Tasks { crawls, .. }) => {
            Some(crawls)
        }
        _ => None,
    });
    sent.flatten()
        .map(|crawl| (crawl.crawl_id.clone(), crawl.lane))
        .collect()
}

fn urls(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.url.as_str()).collect()
}

#[test]
fn a_crawl_that_needs_a_browser_waits_for_one_and_says_so() {
    let mut fixture = fixture();
    fixture.join_supervisor();
    fixture.ask_and_expect_success(&browser_request(json!({})));
    fixture.ask_and_expect_success(&request_with(json!({"url": "http://a.org/plain"})));
    let plain = fixture.take_tasks();
    assert_eq!(urls(&plain), ["http://a.org/plain"]);
    fixture.report_outcomes(|outcomes| outcomes.done.push(done_task(&plain[0], &[])));
    let info = fixture.ask_and_expect_success(&action_on_crawl("info", "scripts"));
    assert_eq!(info["waiting_for"], "a supervisor of lane browser");
    assert_eq!(
        (&info["spiderid"], &info["state"]),
        (&json!("browser"), &json!("running"))
    );
    assert_eq!(
        fixture
            .ask_and_expect_success(&action_on_crawl("info", "c1"))
            .get("waiting_for"),
        None
    );

    fixture.join_supervisor_as(Lane::Browser, 2);
    fixture.run_turn();
    assert_eq!(
        sent_crawls(&fixture),
        [("scripts".to_owned(), Lane::Browser)]
    );
    assert_eq!(urls(&fixture.take_tasks()), ["http://a.org/"]);
    let info = fixture.ask_and_expect_success(&action_on_crawl("info", "scripts"));
    assert_eq!(info.get("waiting_for"), None);
    let status = fixture.ask_and_expect_success(&json!({"action": "status"}));
    let supervisor = &status["supervisors"][0];
    assert_eq!(
        (
            &supervisor["id"],
            &supervisor["lane"],
            &supervisor["egress"]
        ),
        (&json!("s"), &json!("browser"), &json!("open"))
    );
}

#[test]
fn the_pages_of_a_supervisor_since_it_joined_are_shown() {
    let mut fixture = fixture();
    fixture.join_supervisor();
    let reported = |fixture: &mut Fixture| {
        let status = fixture.ask_and_expect_success(&json!({"action": "status"}));
        (
            status["supervisors"][0]["pages"].clone(),
            status["messages"].clone(),
        )
    };
    let (brought, before) = reported(&mut fixture);
    assert_eq!(brought, 0);
    let failing = json!({"url": "http://b.org/", "crawlid": "failing"});
    fixture.ask_and_expect_success(&request_with(failing));
    let tasks = fixture.take_tasks();
    fixture.report_outcomes(|outcomes| {
        outcomes.done.push(webfill_wire::TaskDone {
            outcome: webfill_wire::Outcome::Disallowed,
            ..done_task(&tasks[0], &[])
        });
    });
    let (brought, before_page) = reported(&mut fixture);
    assert_eq!(brought, 0, "what brings no page is none");
    let more = before_page["received"].as_u64() > before["received"].as_u64();
    assert!(more, "{before} {before_page}");
    let before = before_page;
    fixture.ask_and_expect_success(&request_with(json!({"url": "http://a.org/"})));
    let tasks = fixture.take_tasks();
    fixture.report_outcomes(|outcomes| outcomes.done.push(done_task(&tasks[0], &[])));
    let (brought, after) = reported(&mut fixture);
    assert_eq!(brought, 1);
    let more = |key: &str| after[key].as_u64().unwrap() - before[key].as_u64().unwrap();
    assert_eq!(more("received"), 1);
    assert!(more("sent") >= 1, "{before} {after}");
    fixture.join_supervisor_as(Lane::Http, 2);
    assert_eq!(reported(&mut fixture).0, 0, "it has joined again");
}

#[test]
fn a_clock_that_differs_is_shown() {
    let mut fixture = fixture();
    fixture.join_supervisor();
    let ahead = |fixture: &mut Fixture| {
        let status = fixture.ask_and_expect_success(&json!({"action": "status"}));
        status["supervisors"][0]["clock_ahead_s"].clone()
    };
    assert_eq!(ahead(&mut fixture), json!(0.0));
    assert!(fixture.send_heartbeat(1));
    assert_eq!(ahead(&mut fixture), json!(60.0));
}

#[test]
fn a_crawl_is_held_again_when_the_last_browser_has_left() {
    let mut fixture = fixture();
    fixture.join_supervisor_as(Lane::Browser, 1);
    fixture.handle_message(SupervisorToDispatcher::Goodbye {
        session: 1,
        outcomes_sent: 0,
    });
    fixture.ask_and_expect_success(&browser_request(json!({})));
    fixture.join_supervisor_as(Lane::Http, 2);
    assert!(fixture.take_tasks().is_empty());
    let info = fixture.ask_and_expect_success(&action_on_crawl("info", "scripts"));
    assert_eq!(info["waiting_for"], "a supervisor of lane browser");
    fixture.ask_and_expect_success(&action_on_crawl("resume", "scripts"));
    fixture.run_turn();
    assert!(fixture.take_tasks().is_empty(), "it was not paused");
    fixture.restart();
    fixture.join_supervisor_as(Lane::Http, 3);
    fixture.run_turn();
    assert!(fixture.take_tasks().is_empty(), "also after a restart");
    fixture.join_supervisor_as(Lane::Browser, 4);
    fixture.run_turn();
    assert_eq!(fixture.take_tasks().len(), 1);
}

#[test]
fn a_later_request_changes_the_lane_and_workers_hear_of_it() {
    let mut fixture = fixture();
    fixture.join_supervisor_as(Lane::Browser, 1);
    fixture.ask_and_expect_success(&browser_request(json!({})));
    let next = |path: &str| json!({"url": format!("http://b.org/{path}")});
    let mut unsaid = browser_request(next("1"));
    unsaid.as_object_mut().unwrap().remove("spiderid");
    fixture.ask_and_expect_success(&unsaid);
    assert_eq!(
        sent_crawls(&fixture),
        [("scripts".to_owned(), Lane::Browser)]
    );
    assert_eq!(fixture.take_tasks().len(), 2);
    let mut plain = browser_request(json!({"url": "http://c.org/"}));
    plain["spiderid"] = "link".into();
    fixture.ask_and_expect_success(&plain);
    assert_eq!(sent_crawls(&fixture), [("scripts".to_owned(), Lane::Http)]);
    let info = fixture.ask_and_expect_success(&action_on_crawl("info", "scripts"));
    assert_eq!(info["spiderid"], "link");
}

#[test]
fn an_answer_has_the_crawls_own_spider_or_the_named_one() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&browser_request(json!({})));
    fixture.ask_and_expect_success(&request_with(json!({})));
    let spider = |fixture: &mut Fixture, mut question: Value, named: Option<&str>| {
        if let Some(named) = named {
            question["spiderid"] = named.into();
        }
        fixture.ask_and_expect_success(&question)["spiderid"].clone()
    };
    for named in [None, Some("link"), Some("browser")] {
        for action in ["info", "pause", "resume"] {
            let question = action_on_crawl(action, "scripts");
            assert_eq!(spider(&mut fixture, question, named), "browser", "{action}");
        }
        assert_eq!(
            spider(&mut fixture, action_on_crawl("info", "c1"), named),
            "link"
        );
        let backfill = json!({"action": "info", "appid": "app"});
        let answered = spider(&mut fixture, backfill, named);
        assert_eq!(answered, named.unwrap_or("link"));
    }
    assert_eq!(
        spider(&mut fixture, action_on_crawl("stop", "scripts"), None),
        "browser"
    );
}

#[test]
fn an_expired_crawl_is_reported_with_its_own_spider() {
    let mut fixture = fixture();
    let expires = fixture.now_ms / 1_000 + 10;
    fixture.ask_and_expect_success(&browser_request(json!({"expires": expires})));
    fixture.now_ms += 10_001;
    fixture.run_turn();
    let notifications = fixture.take_notifications();
    assert_eq!(notifications[0]["action"], "expired");
    assert_eq!(notifications[0]["spiderid"], "browser");
}
