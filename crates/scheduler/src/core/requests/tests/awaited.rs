//! Tests of `info` about tasks that are leased, and about tasks that make no progress.

use super::*;

fn app_info_request() -> Value {
    json!({"action": "info", "appid": "app"})
}

#[test]
fn an_application_counts_crawls_whose_requests_are_leased() {
    let mut fixture = fixture();
    fixture.join_supervisor();
    fixture.ask_and_expect_success(&request_with(json!({})));
    let task = fixture.take_tasks().remove(0);
    let info = fixture.ask_and_expect_success(&app_info_request());
    assert_eq!(
        (
            &info["total_crawlids"],
            &info["total_pending"],
            &info["leased"]
        ),
        (&json!(1), &json!(0), &json!(1)),
        "{info}"
    );
    assert_eq!(
        info["crawlids"]["c1"],
        json!({"total": 0, "low_priority": null, "high_priority": null, "leased": 1})
    );
    assert_eq!(info.get("waiting_for"), None, "{info}");
    fixture.report_outcomes(|outcomes| outcomes.done.push(done_task(&task, &[])));
    let info = fixture.ask_and_expect_success(&app_info_request());
    assert_eq!(
        (&info["total_crawlids"], &info["leased"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn info_explains_why_pending_tasks_make_no_progress() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&json!([
        request_with(json!({})),
        request_with(json!({"url": "http://a.org/2"}))
    ]));
    let waits = |fixture: &mut Fixture, expected: Option<&str>| {
        for question in [action("info"), app_info_request()] {
            let info = fixture.ask_and_expect_success(&question);
            let reported = info.get("waiting_for").and_then(Value::as_str);
            assert_eq!(reported, expected, "{info}");
        }
    };
    waits(&mut fixture, Some("a supervisor"));
    fixture.ask(&json!({"action": "site", "site": "a.org", "limit": 1}));
    fixture.join_supervisor();
    let task = fixture.take_tasks().remove(0);
    let limit = "a higher limit of a.org: 1 of 1 pages (--limit): \
                 `webfill site a.org --limit N` allows N further pages";
    waits(&mut fixture, Some(limit));
    fixture.report_outcomes(|outcomes| outcomes.done.push(done_task(&task, &[])));
    waits(&mut fixture, Some(limit));

    let until = NOW_MS / 1_000 + 60;
    let rule = json!({"action": "site", "site": "a.org", "limit": null, "block_until": until});
    fixture.ask(&rule);
    waits(&mut fixture, Some("the end of the block of a.org"));
    // The state of a paused crawl already explains its wait, so no reason is added; an application has no state.
    fixture.ask(&action("pause"));
    let info = fixture.ask_and_expect_success(&action("info"));
    assert_eq!(
        (&info["state"], info.get("waiting_for")),
        (&json!("paused"), None)
    );
    let info = fixture.ask_and_expect_success(&app_info_request());
    assert_eq!(info["waiting_for"], "the resumption of c1");
    fixture.ask_and_expect_success(&request_with(json!({"crawlid": "c2"})));
    let info = fixture.ask_and_expect_success(&app_info_request());
    let both = "the resumption of c1; the end of the block of a.org";
    assert_eq!(info["waiting_for"], both);
}
