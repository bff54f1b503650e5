use super::*;

fn watch_with(change: Value) -> Value {
    let mut watch = json!({"name": "news", "urls": ["http://a.org/"], "schedule": "0 2 * * *"});
    for (key, value) in change.as_object().unwrap() {
        watch[key] = value.clone();
    }
    watch
}

fn expect_refusal(change: Value) -> Refusal {
    Watch::parse(watch_with(change.clone())).expect_err(&change.to_string())
}

#[test]
fn a_refusal_names_the_path_and_the_allowed_values() {
    for (change, path, why) in [
        (
            json!({"shedule": "x"}),
            "$.shedule",
            "did you mean `schedule`?",
        ),
        (
            json!({"crawl": {"dept": 1}}),
            "$.crawl.dept",
            "did you mean `depth`?",
        ),
        (
            json!({"crawl": {"follow": "some"}}),
            "$.crawl.follow",
            "`mapped` or `all` or `none`",
        ),
        (
            json!({"crawl": {"depth": -1}}),
            "$.crawl.depth",
            "from 0 to 65535",
        ),
        (
            json!({"crawl": {"deny_regex": ["("]}}),
            "$.crawl.deny_regex[0]",
            "unclosed group",
        ),
        (
            json!({"crawl": {"allowed_domains": ["a/b"]}}),
            "$.crawl.allowed_domains[0]",
            "not a domain",
        ),
        (json!({"crawl": 7}), "$.crawl", "expected an object"),
        (
            json!({"budget": {"pages": 0}}),
            "$.budget.pages",
            "from 1 to",
        ),
        (
            json!({"budget": {"bytes": 1}}),
            "$.budget.bytes",
            "known are pages",
        ),
        (
            json!({"name": "a b"}),
            "$.name",
            "letters, digits, or - _ . :",
        ),
        (
            json!({"name": "../x"}),
            "$.name",
            "letters, digits, or - _ . :",
        ),
        (
            json!({"schedule": "0 25 * * *"}),
            "$.schedule",
            "hour `25`: allowed are 0 to 23",
        ),
        (json!({"schedule": "hourly"}), "$.schedule", "five fields"),
        (
            json!({"time_zone": "Berlin"}),
            "$.time_zone",
            "`Europe/Berlin`",
        ),
        (json!({"window": "long"}), "$.window", "such as `90s`"),
        (json!({"window": "0s"}), "$.window", "from 1s on"),
        (json!({"urls": ["x"]}), "$.urls[0]", ""),
        (json!({"urls": []}), "$", "`urls`, `seeds` or `records`"),
        (json!({"seeds": "-"}), "$.seeds", "expected a file"),
        (
            json!({"records": {"uri": "mongodb://h/d"}}),
            "$.records.collection",
            "required",
        ),
        (
            json!({"seeds": "s", "records": {"uri": "mongodb://h/d", "collection": "c"}}),
            "$.records",
            "exclude each other",
        ),
    ] {
        let refusal = expect_refusal(change.clone());
        assert_eq!(refusal.path, path, "{change}: {}", refusal.message);
        assert!(
            refusal.message.contains(why),
            "{change}: {}",
            refusal.message
        );
    }
    assert_eq!(Watch::parse(json!([])).unwrap_err().path, "$");
    let missing = Watch::parse(json!({"name": "a", "urls": ["http://a.org/"]}));
    assert_eq!(missing.unwrap_err().path, "$.schedule");
}

#[test]
fn a_watch_is_the_command_line_of_its_runs() {
    let watch = Watch::parse(json!({
        "name": "news",
        "records": {"uri": "mongodb://h/d", "collection": "c", "query": {"open": true}},
        "urls": ["--store=elsewhere.org"],
        "schedule": "every 6h",
        "budget": {"pages": 7},
        "crawl": {"depth": 2, "allowed_domains": ["a.org", "b.org"], "refresh": true,
                  "ignore_robots": false, "delay": 0.5, "contact": "https://a.org/crawler"},
    }));
    let refusal = watch.unwrap_err();
    assert_eq!(refusal.path, "$.urls[0]", "a URL is no flag");
    let watch = Watch::parse(json!({
        "name": "news",
        "records": {"uri": "mongodb://h/d", "collection": "c", "query": {"open": true}},
        "urls": ["http://a.org/"],
        "schedule": "every 6h",
        "budget": {"pages": 7},
        "crawl": {"depth": 2, "allowed_domains": ["a.org", "b.org"], "refresh": true,
                  "ignore_robots": false, "delay": 0.5},
    }));
    let expected = "--crawl=news --app=watches --max-pages=7 --records=mongodb://h/d \
                    --records-collection=c --records-query={\"open\":true} --depth=2 \
                    --allowed-domains=a.org --allowed-domains=b.org --refresh --delay=0.5 \
                    --changes -- http://a.org/";
    assert_eq!(watch.unwrap().arguments().join(" "), expected);
}

#[test]
fn a_watch_of_a_fleet_must_not_set_flags_of_machines() {
    let refusal = |change| {
        let watch = Watch::parse(watch_with(change)).unwrap();
        watch.check_for_fleet("$.watch").unwrap_err()
    };
    let machine = refusal(json!({"crawl": {"depth": 1, "store": "sqlite:x.db"}}));
    assert_eq!(machine.path, "$.watch.crawl.store");
    let fine = Watch::parse(watch_with(
        json!({"seeds": "urls.txt", "crawl": {"depth": 1}}),
    ));
    assert_eq!(fine.unwrap().check_for_fleet("$"), Ok(()));
}
