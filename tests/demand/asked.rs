//! Tests questions of operators: which of very many crawls has a URL, which outcomes a crawl has, and which limits
//! apply to it.

use serde_json::{Value, json};
use webfill_tests::site::{page, status};

use crate::fleet::{APP, Fleet, request, request_with, wait_for};

#[test]
fn why_finds_a_url_in_any_of_more_crawls_than_one_answer_is_for() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let of_crawl = |number: usize| {
        let host = if number == 0 { "first" } else { "other" };
        request(
            &format!("http://{host}.example/{number}"),
            &format!("c{number}"),
        )
    };
    let requests: Vec<Value> = (0..10_500).map(of_crawl).collect();
    requests.chunks(1_500).for_each(|some| fleet.feed(some));
    // The answer names the crawl that was opened before all other crawls.
    let answer = fleet.run_json(&["why", "http://first.example/0"]);
    assert_eq!(answer["crawls"][0]["crawlid"], "c0", "{answer}");
    assert_eq!(
        answer["crawls"].as_array().map(Vec::len),
        Some(1),
        "{answer}"
    );
    assert_eq!(
        (&answer["crawls_checked"], &answer["next"]),
        (&json!(10_500), &Value::Null)
    );
    let said = fleet
        .run(&["why", "http://first.example/0"])
        .expect_code(0)
        .stdout;
    assert!(
        said.starts_with(&format!("{APP}/c0: it is queued")),
        "{said}"
    );
    // No crawl has this URL. After all crawls were searched, some of them judge whether they would accept it.
    let answer = fleet.run_json(&["why", "http://nobody.example/"]);
    assert_eq!(
        answer["crawls"].as_array().map(Vec::len),
        Some(10),
        "{answer}"
    );
    assert_eq!(answer["crawls"][0]["state"], "unknown", "{answer}");
    assert_eq!(answer["crawls_checked"], 10_500, "{answer}");
}

#[test]
fn why_lists_all_crawls_that_know_a_url_however_many() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let of_crawl = |number: usize| request("http://shared.example/", &format!("c{number}"));
    let requests: Vec<Value> = (0..50).map(of_crawl).collect();
    fleet.feed(&requests);
    let answer = fleet.run_json(&["why", "http://shared.example/"]);
    let crawls = answer["crawls"].as_array().expect("a list");
    let names: Vec<&str> = crawls
        .iter()
        .filter_map(|answer| answer["crawlid"].as_str())
        .collect();
    let expected: Vec<String> = (0..50).rev().map(|number| format!("c{number}")).collect();
    assert_eq!(names, expected);
}

#[test]
fn info_says_how_urls_have_ended_and_why_links_were_not_followed() {
    let fleet = Fleet::start();
    let site = fleet.web.site("a.example");
    site.serve_otherwise(|request| match request.path.as_str() {
        "/" => page("T").link("/gone").link("/picture.png").into(),
        _ => status(404).into(),
    });
    let more = json!({"maxdepth": 1});
    fleet.feed(&[request_with(&site.url("/"), "c", more)]);
    fleet.wait_until_done("c");
    let output = fleet.run(&["info", APP, "c"]).expect_code(0).stdout;
    for (key, value) in [
        ("outcomes", "ok 1, http_error 1"),
        ("done", "2"),
        ("pages", "2"),
    ] {
        let is_reported = |line: &str| line.starts_with(key) && line.ends_with(value);
        assert!(output.lines().any(is_reported), "{key}: {output}");
    }
    let skipped = output
        .lines()
        .find(|line| line.starts_with("skipped links"));
    let skipped = skipped.unwrap_or_default();
    assert!(skipped.contains("denied_extension 1"), "{output}");
}

#[test]
fn a_limit_is_shown_with_its_number_its_fill_and_how_to_raise_it() {
    let fleet = Fleet::start_with_config_file(&format!("[applications.{APP}]\nmax_pages = 2\n"));
    let site = fleet.web.site("a.example");
    site.serve_otherwise(|_| page("T").into());
    let requests: Vec<Value> = (0..5)
        .map(|number| request(&site.url(&format!("/{number}")), "c"))
        .collect();
    fleet.feed(&requests);
    let limit = format!(
        "2 of 2 pages (applications.{APP}.max_pages): raise it in the dispatcher's settings"
    );
    let info = wait_for("the limit is reached", || {
        let info = fleet.info("c");
        let waits_for = info["waiting_for"].as_str()?;
        waits_for.contains(&limit).then_some(info)
    });
    let reported = &info["limits"][0];
    assert_eq!(
        (&reported["most"], &reported["used"]),
        (&json!(2.0), &json!(2)),
        "{info}"
    );
    for command in [&["info", APP, "c"] as &[&str], &["status"]] {
        let said = fleet.run(command).expect_code(0).stdout;
        assert!(said.contains(&limit), "{command:?}: {said}");
    }
    let reported = fleet.run_json(&["why", &site.url("/4")]);
    let text = reported["crawls"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains(&limit), "{reported}");
}
