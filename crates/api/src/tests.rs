use std::time::Instant;

use serde_json::{Value, json};
use webfill_wire::{Lane, Outcome};

use super::crawl_request::KEYS;
use super::*;

const NOW_MS: i64 = 1_700_000_000_000;

fn expect_refusal(text: &str) -> Refusal {
    parse_question(text.as_bytes(), NOW_MS).unwrap_err()
}

fn expect_batch(request: Value) -> Batch {
    match parse_question(request.to_string().as_bytes(), NOW_MS) {
        Ok(Question::Feed(batch)) => batch,
        other => panic!("{request}: {other:?}"),
    }
}

fn request_with(change: Value) -> Value {
    let mut request = json!({"url": "http://a.org/", "appid": "app", "crawlid": "c1"});
    for (key, value) in change.as_object().unwrap() {
        request[key] = value.clone();
    }
    request
}

#[test]
fn texts_that_are_no_message_are_refused_with_a_reason() {
    for text in [
        "", "{", "[", "[1]", "\u{0}", "7", "null", "[[]]", "[{},", "\"url\"",
    ] {
        let refusal = expect_refusal(text);
        assert!(!refusal.message.is_empty(), "{text}");
        assert!(refusal.path.starts_with('$'), "{text}");
    }
    assert!(parse_question(&[0xff, b'{'], NOW_MS).is_err());
}

#[test]
fn a_refusal_names_the_place_of_the_fault() {
    for (change, path) in [
        (json!({"depth": 1}), "$.depth"),
        (json!({"my key": 1}), r#"$["my key"]"#),
        (json!({"maxdepth": -1}), "$.maxdepth"),
        (json!({"maxdepth": 1.5}), "$.maxdepth"),
        (json!({"maxdepth": 65_536}), "$.maxdepth"),
        (json!({"maxdepth": "1"}), "$.maxdepth"),
        (json!({"priority": 0}), "$.priority"),
        (json!({"priority": 101}), "$.priority"),
        (json!({"url": "ftp://a.org/"}), "$.url"),
        (json!({"url": "/relative"}), "$.url"),
        (json!({"url": 7}), "$.url"),
        (json!({"appid": ""}), "$.appid"),
        (json!({"appid": "a/b"}), "$.appid"),
        (json!({"crawlid": "a b"}), "$.crawlid"),
        (json!({"crawlid": "x".repeat(201)}), "$.crawlid"),
        (json!({"spiderid": "wandering"}), "$.spiderid"),
        (json!({"allowed_domains": "a.org"}), "$.allowed_domains"),
        (
            json!({"allowed_domains": ["a.org", "http://b.org/"]}),
            "$.allowed_domains[1]",
        ),
        (json!({"allow_regex": ["fine", ""]}), "$.allow_regex[1]"),
        (json!({"deny_regex": ["fine", "(open"]}), "$.deny_regex[1]"),
        (
            json!({"deny_regex": ["(\\w{100}){100}"]}),
            "$.deny_regex[0]",
        ),
        (json!({"deny_extensions": [7]}), "$.deny_extensions[0]"),
        (json!({"expires": 1_699_999_999}), "$.expires"),
        (json!({"expires": "tomorrow"}), "$.expires"),
        (json!({"useragent": "a\r\nX: y"}), "$.useragent"),
        (json!({"attrs": [1]}), "$.attrs"),
        (json!({"url": null}), "$.url"),
        (json!({"expires": -1}), "$.expires"),
        (json!({"colour": null}), "$.colour"),
        (json!({"domain_max_pages": 0}), "$.domain_max_pages"),
        (json!({"body": 1}), "$.body"),
    ] {
        let refusal = expect_refusal(&request_with(change.clone()).to_string());
        assert_eq!(refusal.path, path, "{change}: {}", refusal.message);
    }
    for missing in ["url", "appid", "crawlid"] {
        let mut request = request_with(json!({}));
        request.as_object_mut().unwrap().remove(missing);
        assert_eq!(
            expect_refusal(&request.to_string()).path,
            format!("$.{missing}")
        );
    }
}

#[test]
fn an_unknown_key_is_answered_with_the_nearest_known_one() {
    let message = |key: &str| expect_refusal(&request_with(json!({key: 1})).to_string()).message;
    assert_eq!(message("maxdept"), "unknown key, did you mean `maxdepth`?");
    assert!(message("colour").starts_with("unknown key, known are url, appid, crawlid, "));
}

#[test]
fn a_list_is_refused_by_the_place_of_its_first_fault() {
    let list = json!([
        request_with(json!({})),
        request_with(json!({"maxdepth": "deep"})),
        7
    ]);
    let answer = expect_refusal(&list.to_string()).to_answer();
    assert_eq!(answer["error"]["path"], "$[1].maxdepth");
    let action = json!([{"action": "stop", "appid": "app", "crawlid": "c1"}]);
    assert_eq!(expect_refusal(&action.to_string()).path, "$[0].action");
}

#[test]
fn requests_are_grouped_by_crawl_and_later_settings_win() {
    let batch = expect_batch(json!([
        request_with(json!({"maxdepth": 1, "priority": 90})),
        request_with(json!({"crawlid": "c2", "body": true})),
        request_with(json!({"url": "http://b.org/", "maxdepth": 2})),
        request_with(json!({"url": "http://c.org/"})),
    ]));
    assert_eq!(batch.len(), 4);
    let [first, second] = &batch.crawls[..] else {
        panic!("{batch:?}");
    };
    let seeds = |order: &CrawlOrder| -> Vec<(String, u8, u64)> {
        let seed = |seed: &Seed| (seed.url.clone(), seed.priority, seed.place);
        order.seeds.iter().map(seed).collect()
    };
    let expected = [
        ("http://a.org/".into(), 90, 0),
        ("http://b.org/".into(), 50, 2),
        ("http://c.org/".into(), 50, 3),
    ];
    assert_eq!(seeds(first), expected);
    assert_eq!(second.crawl_id, "c2");
    let mut spec = CrawlSpec::on_demand("app", "c1");
    first.changes.apply(&mut spec);
    assert_eq!((spec.max_depth, spec.body), (2, false));
}

#[test]
fn settings_that_a_request_leaves_out_stay() {
    let mut spec = CrawlSpec::on_demand("app", "c1");
    let all = json!({
        "maxdepth": 3, "allowed_domains": ["a.org"], "allow_regex": ["a"], "deny_regex": ["b"],
        "deny_extensions": [], "expires": 1_800_000_000.5, "useragent": "me", "attrs": {"a": 1},
        "domain_max_pages": 5, "body": true, "spiderid": "link",
    });
    expect_batch(request_with(all)).crawls[0]
        .changes
        .apply(&mut spec);
    let expected = CrawlSpec {
        max_depth: 3,
        allowed_domains: vec!["a.org".into()],
        allow_regex: vec!["a".into()],
        deny_regex: vec!["b".into()],
        deny_extensions: Some(Vec::new()),
        expires_at_ms: Some(1_800_000_000_500),
        useragent: Some("me".into()),
        attrs: Some(json!({"a": 1})),
        domain_max_pages: Some(5),
        body: true,
        ..CrawlSpec::on_demand("app", "c1")
    };
    assert_eq!(spec, expected);
    let bare = expect_batch(request_with(json!({})));
    assert_eq!(bare.crawls[0].changes, SpecChanges::default());
    bare.crawls[0].changes.apply(&mut spec);
    assert_eq!(spec, expected);
}

/// Null and 0 are the defaults in the schema of Scrapy Cluster.
#[test]
fn null_and_an_expiry_of_0_count_as_left_out() {
    let nothing: Vec<Value> = KEYS
        .iter()
        .filter(|key| !key.required)
        .map(|key| json!({key.name: null}))
        .chain([json!({"expires": 0}), json!({"expires": 0.0})])
        .collect();
    for change in nothing {
        let read = expect_batch(request_with(change.clone()));
        assert_eq!(read.crawls[0].changes, SpecChanges::default(), "{change}");
    }
}

#[test]
fn each_request_has_its_own_attributes() {
    let batch = expect_batch(json!([
        request_with(json!({"attrs": {"a": 1}})),
        request_with(json!({"attrs": {"a": 1}})),
        request_with(json!({})),
        request_with(json!({"attrs": {"b": [null]}})),
    ]));
    let seeds = &batch.crawls[0].seeds;
    let attrs: Vec<Option<&str>> = seeds.iter().map(|seed| seed.attrs.as_deref()).collect();
    let (a, b) = (r#"{"a":1}"#, r#"{"b":[null]}"#);
    assert_eq!(attrs, [Some(a), Some(a), None, Some(b)]);
}

#[test]
fn no_number_of_attrs_loses_digits() {
    for (number, kept) in [
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551616", "\"18446744073709551616\""),
        ("-9223372036854775809", "\"-9223372036854775809\""),
        ("12345678901234567.89", "\"12345678901234567.89\""),
        ("0.30000000000000004", "0.30000000000000004"),
        ("1.5", "1.5"),
    ] {
        let one = format!(
            r#"{{"url": "http://a.org/", "appid": "a", "crawlid": "c", "attrs": {{"n": {number}}}}}"#
        );
        for text in [one.clone(), format!("[{one}, {one}]")] {
            let Question::Feed(batch) = parse_question(text.as_bytes(), 0).unwrap() else {
                panic!("{text}");
            };
            let seeds = batch.crawls.iter().flat_map(|crawl| &crawl.seeds);
            for seed in seeds {
                let attrs = seed.attrs.as_deref().unwrap();
                assert_eq!(attrs, format!("{{\"n\":{kept}}}"), "{text}");
            }
        }
    }
}

#[test]
fn actions_are_read_by_their_names() {
    let read_action = |text: Value| match parse_question(text.to_string().as_bytes(), NOW_MS) {
        Ok(Question::Act(action)) => action,
        other => panic!("{text}: {other:?}"),
    };
    let subject = Subject {
        app_id: "app".into(),
        crawl_id: Some("c1".into()),
        uuid: Some("u".into()),
        spider: Some(Spider::Link),
    };
    for (name, action) in [
        (
            "info",
            Action::Info(InfoQuestion {
                subject: subject.clone(),
                after: None,
            }),
        ),
        ("stop", Action::Stop(subject.clone())),
        ("pause", Action::Pause(subject.clone())),
        ("resume", Action::Resume(subject.clone())),
    ] {
        let asked = json!({"action": name, "appid": "app", "crawlid": "c1", "uuid": "u", "spiderid": "link"});
        assert_eq!(read_action(asked), action);
    }
    let retry = json!({
        "action": "retry", "appid": "app", "crawlid": "c1", "uuid": "u", "spiderid": "link",
        "outcome": ["http_error", "timeout"], "status": [503, 999], "site": "a.org",
    });
    let expected = RetryAction {
        subject,
        outcomes: vec![Outcome::HttpError, Outcome::Timeout],
        status_codes: Some(vec![503, 999]),
        site: Some("a.org".into()),
    };
    assert_eq!(read_action(retry), Action::Retry(expected));
    let site = read_action(json!({
        "action": "site", "site": "a.org", "delay": 2.5, "limit": null, "lane": "browser",
    }));
    let expected = SiteAction {
        site: "a.org".into(),
        uuid: None,
        delay_ms: Some(Some(2_500)),
        block_until_ms: None,
        limit: Some(None),
        lane: Some(Some(Lane::Browser)),
        forget: false,
        wake: false,
    };
    assert_eq!(site, Action::Site(expected));
    assert_eq!(
        read_action(json!({"action": "status"})),
        Action::Status { uuid: None }
    );
}

#[test]
fn faulty_actions_are_refused_by_the_place_of_the_fault() {
    for (action, path) in [
        (json!({"action": "dance"}), "$.action"),
        (json!({"action": 7}), "$.action"),
        (json!({"action": "info"}), "$.appid"),
        (json!({"action": "stop", "appid": "app"}), "$.crawlid"),
        (json!({"action": "pause", "appid": "app"}), "$.crawlid"),
        (
            json!({"action": "info", "appid": "app", "spiderid": "wandering"}),
            "$.spiderid",
        ),
        (
            json!({"action": "info", "appid": "app", "all": true}),
            "$.all",
        ),
        (json!({"action": "status", "appid": "app"}), "$.appid"),
        (json!({"action": "site"}), "$.site"),
        (
            json!({"action": "site", "site": "a.org", "delay": -1}),
            "$.delay",
        ),
        (
            json!({"action": "site", "site": "a.org", "limit": 1.5}),
            "$.limit",
        ),
        (
            json!({"action": "site", "site": "a.org", "forget": 1}),
            "$.forget",
        ),
    ] {
        assert_eq!(expect_refusal(&action.to_string()).path, path, "{action}");
    }
}

#[test]
fn faulty_retries_are_refused_by_the_place_of_the_fault() {
    for (more, path, part) in [
        (json!({}), "$.outcome", "required"),
        (json!({"outcome": "timeout"}), "$.outcome", "a list"),
        (json!({"outcome": []}), "$.outcome", "1 to"),
        (json!({"outcome": ["timeout", 7]}), "$.outcome[1]", "name"),
        (
            json!({"outcome": ["timout"]}),
            "$.outcome[0]",
            "did you mean `timeout`?",
        ),
        (
            json!({"outcome": ["fine"]}),
            "$.outcome[0]",
            "known are ok, ",
        ),
        (json!({"outcome": ["ok"], "status": []}), "$.status", "1 to"),
        (
            json!({"outcome": ["ok"], "status": [503, 99]}),
            "$.status[1]",
            "from 100 to 999",
        ),
        (
            json!({"outcome": ["ok"], "site": ""}),
            "$.site",
            "characters",
        ),
        (
            json!({"outcome": ["ok"], "sites": "a.org"}),
            "$.sites",
            "`site`",
        ),
        (
            json!({"outcome": ["ok"], "crawlid": null}),
            "$.crawlid",
            "text",
        ),
    ] {
        let mut action = json!({"action": "retry", "appid": "app", "crawlid": "c1"});
        for (key, value) in more.as_object().unwrap() {
            action[key] = value.clone();
        }
        let refusal = expect_refusal(&action.to_string());
        assert_eq!(refusal.path, path, "{action}");
        assert!(refusal.message.contains(part), "{}", refusal.message);
    }
    let nowhere = json!({"action": "retry", "appid": "app", "outcome": ["ok"]});
    assert_eq!(expect_refusal(&nowhere.to_string()).path, "$.crawlid");
}

/// Takes the limits from the published schema alone, and tries values just inside and just outside them.
#[test]
fn the_limits_of_the_schema_are_enforced() {
    let published = crawl_request_schema();
    let properties = published["properties"].as_object().unwrap();
    assert_eq!(properties.len(), KEYS.len());
    for (key, schema) in properties {
        for (value, is_inside) in values_around_limits(schema) {
            let asked = request_with(json!({key: value}));
            let refused = parse_question(asked.to_string().as_bytes(), NOW_MS).err();
            let refused = refused.map(|refusal| refusal.message);
            // Invalid URLs, domains and patterns, and past times, are refused for that reason.
            let by_limit = refused
                .as_deref()
                .is_some_and(|why| why.starts_with("expected"));
            assert_eq!(!by_limit, is_inside, "{key}: {asked:.200} {refused:?}");
        }
    }
}

fn values_around_limits(schema: &Value) -> Vec<(Value, bool)> {
    let text = |n: &Value| json!("x".repeat(n.as_u64().unwrap() as usize));
    let more = |n: &Value| json!(n.as_u64().unwrap() + 1);
    let kind = schema["type"].as_str().or(schema["type"][0].as_str());
    match kind {
        Some("string") => {
            let most = &schema["maxLength"];
            vec![
                (json!(""), false),
                (text(most), true),
                (text(&more(most)), false),
                (json!(1), false),
            ]
        }
        Some("integer" | "number") => {
            let (least, most) = (&schema["minimum"], &schema["maximum"]);
            let (below, above) = (least.as_f64().unwrap() - 1.0, most.as_f64().unwrap() * 2.0);
            let outside = vec![
                (json!(below), false),
                (json!(above), false),
                (json!("1"), false),
            ];
            [vec![(least.clone(), true), (most.clone(), true)], outside].concat()
        }
        Some("array") => {
            let (most, item) = (&schema["maxItems"], &schema["items"]["maxLength"]);
            let list = |n: &Value| json!(vec!["x"; n.as_u64().unwrap() as usize]);
            vec![
                (list(most), true),
                (list(&more(most)), false),
                (json!([text(item)]), true),
                (json!([text(&more(item))]), false),
                (json!(["x", 1]), false),
            ]
        }
        Some("object") => vec![(json!({"any": 1}), true), (json!([]), false)],
        Some("boolean") => vec![(json!(true), true), (json!(0), false)],
        _ => {
            let words = schema["enum"].as_array().expect("a list of words");
            let words = words.iter().map(|word| (word.clone(), true));
            words.chain([(json!("other"), false)]).collect()
        }
    }
}

#[test]
fn fifty_thousand_requests_are_read_in_a_moment() {
    let many: Vec<Value> = (0..50_000)
        .map(|n| {
            request_with(json!({
                "url": format!("http://site{n}.org/"), "maxdepth": 1, "allow_regex": ["^http"],
            }))
        })
        .collect();
    let text = serde_json::to_vec(&many).unwrap();
    let begin = Instant::now();
    let Ok(Question::Feed(batch)) = parse_question(&text, NOW_MS) else {
        panic!("it was refused");
    };
    assert_eq!((batch.len(), batch.crawls.len()), (50_000, 1));
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}
