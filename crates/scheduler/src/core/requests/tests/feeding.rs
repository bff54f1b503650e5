//! Tests of crawl requests, from their arrival to the tasks of their crawls.

use super::*;

#[test]
fn what_is_accepted_survives_a_restart() {
    let mut fixture = fixture();
    assert_eq!(
        fixture.ask_and_expect_success(&requests("c1", 3)),
        json!({"accepted": 3})
    );
    fixture.restart();
    let info = fixture.ask_and_expect_success(&action("info"));
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
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&request_with(json!({})));
    fixture.ask_and_expect_success(&action("stop"));
    let list = json!([
        request_with(json!({"crawlid": "c2"})),
        request_with(json!({"crawlid": "c2", "url": "http://b.org/"})),
        request_with(json!({})),
    ]);
    assert_eq!(fixture.ask_and_expect_refusal(&list), "$[2].crawlid");
    assert_eq!(
        fixture.ask_and_expect_refusal(&request_with(json!({}))),
        "$.crawlid"
    );
    let mut info = action("info");
    info["crawlid"] = json!("c2");
    assert_eq!(
        fixture.ask_and_expect_refusal(&info),
        "$.crawlid",
        "no such crawl"
    );
}

#[test]
fn the_same_crawl_again_expands_it_and_a_url_of_another_crawl_is_crawled() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&request_with(json!({"maxdepth": 2, "useragent": "me"})));
    let again = fixture.ask_and_expect_success(&request_with(json!({})));
    assert_eq!(again, json!({"accepted": 1, "skipped": {"duplicate": 1}}));
    fixture.ask_and_expect_success(&request_with(json!({"url": "http://a.org/more"})));
    fixture.ask_and_expect_success(&request_with(json!({"crawlid": "c2"})));
    let info = fixture.ask_and_expect_success(&json!({"action": "info", "appid": "app"}));
    assert_eq!(info["total_pending"], 3);
    assert_eq!(
        (&info["total_crawlids"], &info["total_domains"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        info["crawlids"]["c1"],
        json!({"total": 2, "low_priority": 50, "high_priority": 50})
    );
    let core = fixture.core();
    let crawl = core
        .cx
        .frontier
        .crawls()
        .find("app", "c1")
        .unwrap()
        .unwrap();
    let spec = core.cx.frontier.crawls().spec(crawl).unwrap();
    let kept = (spec.max_depth, spec.useragent.as_deref());
    assert_eq!(kept, (2, Some("me")), "left out, so it stays");
}

#[test]
fn the_highest_priority_goes_out_first_and_links_have_ten_less() {
    let mut fixture = fixture();
    let low = request_with(json!({"url": "http://a.org/low", "priority": 20, "maxdepth": 1}));
    let high = request_with(json!({"url": "http://a.org/high", "priority": 90}));
    fixture.ask_and_expect_success(&json!([low, high]));
    fixture.join_supervisor();
    let tasks = fixture.take_tasks();
    let first: Vec<(&str, u8)> = tasks
        .iter()
        .map(|task| (&*task.url, task.priority))
        .collect();
    assert_eq!(first, [("http://a.org/high", 90), ("http://a.org/low", 20)]);
    fixture.report_outcomes(|outcomes| {
        outcomes
            .done
            .push(done_task(&tasks[0], &["http://a.org/link"]))
    });
    let links = fixture.take_tasks();
    assert_eq!(
        (&*links[0].url, links[0].priority),
        ("http://a.org/link", 80)
    );
}

#[test]
fn attributes_go_with_their_url_and_the_pages_found_from_it() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&json!([
        request_with(json!({"url": "http://a.org/1", "attrs": {"n": 1}, "maxdepth": 1})),
        request_with(json!({"url": "http://a.org/2", "attrs": {"n": 2}})),
        request_with(json!({"url": "http://a.org/3"})),
    ]));
    fixture.restart();
    fixture.join_supervisor();
    let tasks = fixture.take_tasks();
    let attrs: Vec<Option<&str>> = tasks.iter().map(|task| task.attrs.as_deref()).collect();
    assert_eq!(attrs, [Some(r#"{"n":1}"#), Some(r#"{"n":2}"#), None]);
    fixture.report_outcomes(|outcomes| {
        let links = ["http://a.org/3", "http://a.org/4"];
        outcomes.done.push(done_task(&tasks[0], &links));
    });
    let links = fixture.take_tasks();
    assert_eq!(links.len(), 1, "the other one is known");
    assert_eq!(links[0].attrs.as_deref(), Some(r#"{"n":1}"#));
}

#[test]
fn refused_lines_are_left_out_and_reported() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&request_with(json!({})));
    fixture.ask_and_expect_success(&action("stop"));
    let mut parser = webfill_api::RequestParser::new(NOW_MS);
    let mut batch = webfill_api::Batch::default();
    for (place, crawl) in [(7, "c2"), (8, "c1"), (9, "c2")] {
        let request =
            request_with(json!({"crawlid": crawl, "url": format!("http://{place}.org/")}));
        batch.add(parser.parse(request, "$").unwrap(), place);
    }
    let core = fixture.core();
    let answer = crate::core::requests::feeding::feed_batch(
        &mut core.cx,
        &mut core.closing,
        batch,
        false,
        NOW_MS,
    )
    .unwrap();
    assert_eq!(answer["accepted"], 2);
    assert_eq!(answer["refused"][0]["line"], 8);
}
