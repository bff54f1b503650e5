//! The lines that are sent to each intake (each way to feed requests), with their expected results.

use serde_json::{Value, json};

/// The expected result of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fate {
    Accepted,
    /// The line is refused for a fault at this JSON path.
    Refused(&'static str),
}
use Fate::{Accepted, Refused};

/// A line with a request for one page. Both its path and its crawl are called `name`, and it has these additional keys.
pub(super) fn request_line(name: &str, keys: Value) -> String {
    let mut request =
        json!({"url": format!("http://a.example/{name}"), "appid": "app", "crawlid": name});
    for (key, value) in keys.as_object().expect("keys") {
        request[key] = value.clone();
    }
    request.to_string()
}

fn request_without(key: &str) -> String {
    let mut request = json!({"url": "http://a.example/no", "appid": "app", "crawlid": "no"});
    request.as_object_mut().expect("an object").remove(key);
    request.to_string()
}

/// All lines. Each key of a request has good and bad values.
pub(super) fn table() -> Vec<(String, Fate)> {
    let good = |name: &str, keys: Value| (request_line(name, keys), Accepted);
    let bad = |keys: Value, path| (request_line("no", keys), Refused(path));
    let mut table = vec![
        good("bare", json!({})),
        good("body", json!({"body": true})),
        good("no-body", json!({"body": false})),
        good("expires", json!({"expires": 1_999_999_999.5})),
        good("expires-0", json!({"expires": 0})),
        good(
            "nulls",
            json!({"expires": null, "attrs": null, "useragent": null, "spiderid": null,
                "allowed_domains": null, "domain_max_pages": null, "priority": null}),
        ),
        good("expires-whole", json!({"expires": 4_102_444_800_u64})),
        good(
            "agent",
            json!({"useragent": "shopbot/2.0 (+http://shop.example/)"}),
        ),
        good("attrs", json!({"attrs": {"k": [1, "two", null]}})),
        good(
            "depth",
            json!({"maxdepth": 1, "spiderid": "link", "deny_regex": ["/denied"]}),
        ),
        good(
            "domains",
            json!({"maxdepth": 1, "allowed_domains": ["A.example"], "domain_max_pages": 1}),
        ),
        good(
            "patterns",
            json!({"allow_regex": ["/patterns$"], "deny_extensions": [".PDF", "x"]}),
        ),
        good("priority-90", json!({"priority": 90})),
        good("priority-1", json!({"priority": 1})),
        good("priority-100", json!({"priority": 100})),
        // Later lines of a crawl change only the settings that they contain.
        good(
            "update",
            json!({"priority": 30, "useragent": "first/1", "attrs": {"n": 1}, "maxdepth": 3}),
        ),
        (
            request_line(
                "update",
                json!({"url": "http://a.example/update/2", "priority": 95,
            "useragent": "second/2", "maxdepth": 0, "body": true}),
            ),
            Accepted,
        ),
        (
            request_line(
                "update",
                json!({"url": "http://a.example/update/3", "attrs": {"n": 3}}),
            ),
            Accepted,
        ),
        // These lines are accepted, but lead to no page: one URL was requested before, and the other one is out of its
        // crawl's scope.
        good("bare", json!({})),
        (
            request_line("patterns", json!({"url": "http://a.example/elsewhere"})),
            Accepted,
        ),
        (r#"{"url": "http://a.example/""#.to_owned(), Refused("$")),
        ("{}".to_owned(), Refused("$.url")),
        (request_without("url"), Refused("$.url")),
        (request_without("appid"), Refused("$.appid")),
        (request_without("crawlid"), Refused("$.crawlid")),
    ];
    table.extend([
        bad(json!({"maxdept": 1}), "$.maxdept"),
        bad(json!({"colour": "red"}), "$.colour"),
        // This key is nearly `fields`, which records have. The other keys show that the line is a request, so it is
        // refused.
        bad(json!({"fieldss": {}}), "$.fieldss"),
        bad(json!({"my key": 1}), r#"$["my key"]"#),
        bad(json!({"url": "ftp://a.example/"}), "$.url"),
        bad(json!({"url": 7}), "$.url"),
        bad(
            json!({"url": format!("http://a.example/{}", "x".repeat(5_000))}),
            "$.url",
        ),
        bad(json!({"appid": "a/b"}), "$.appid"),
        bad(json!({"appid": null}), "$.appid"),
        bad(json!({"crawlid": "a/b"}), "$.crawlid"),
        bad(json!({"crawlid": "x".repeat(201)}), "$.crawlid"),
        bad(json!({"spiderid": "wandering"}), "$.spiderid"),
        bad(json!({"maxdepth": 65_536}), "$.maxdepth"),
        bad(json!({"maxdepth": 1.5}), "$.maxdepth"),
        bad(json!({"priority": 0}), "$.priority"),
        bad(json!({"priority": "90"}), "$.priority"),
        bad(
            json!({"allowed_domains": ["b.example", "http://a.example/"]}),
            "$.allowed_domains[1]",
        ),
        bad(json!({"allow_regex": "one"}), "$.allow_regex"),
        bad(
            json!({"allow_regex": ["fine", "(open"]}),
            "$.allow_regex[1]",
        ),
        bad(
            json!({"deny_regex": ["(\\w{100}){100}"]}),
            "$.deny_regex[0]",
        ),
        bad(json!({"deny_extensions": [7]}), "$.deny_extensions[0]"),
        bad(json!({"expires": 1_423_591_888}), "$.expires"),
        bad(json!({"expires": 1e300}), "$.expires"),
        bad(json!({"useragent": "a\nb"}), "$.useragent"),
        bad(json!({"attrs": []}), "$.attrs"),
        bad(json!({"attrs": {"k": "x".repeat(65_536)}}), "$.attrs"),
        bad(json!({"domain_max_pages": 0}), "$.domain_max_pages"),
        bad(json!({"domain_max_pages": u64::MAX}), "$.domain_max_pages"),
        bad(json!({"body": "yes"}), "$.body"),
    ]);
    table
}
