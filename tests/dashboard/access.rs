//! Tests access to the dashboard: who may log in, and what each visitor may see and do.

use serde_json::json;
use webfill_test_browser::{Browser, ENTER};
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::Run;

use crate::fleet::{APP, Fleet, sha256, wait_for};
use crate::http::Visitor;

const CHIEF: &str = "chief-0123456789abcdef0123456789abcdef";
const READER: &str = "reader-0123456789abcdef0123456789abcdef";
const SHOP: &str = "shop-0123456789abcdef0123456789abcdef";

fn guarded_fleet() -> Fleet {
    Fleet::with_tokens(&format!(
        "chief {CHIEF}\nreader sha256:{} read-only\nshop {SHOP} apps=shop\n",
        sha256(READER)
    ))
}

/// The fields of the form that a page of the dashboard sends to request an action.
fn action_form_fields<'a>(token: &'a str, crawl_id: &'a str) -> Vec<(&'static str, &'a str)> {
    vec![
        ("token", token),
        ("appid", APP),
        ("crawlid", crawl_id),
        ("back", "/dashboard/crawls"),
    ]
}

#[test]
fn browsers_are_led_to_the_dashboard_and_programs_are_answered_as_before() {
    let fleet = Fleet::start();
    let visitor = fleet.visitor();
    let led = visitor.get_with("/", &[("Accept", "text/html,application/xhtml+xml")]);
    assert_eq!(
        (led.status, led.header("location")),
        (303, Some("/dashboard/"))
    );
    let program = visitor.get("/");
    assert_eq!(program.status, 404);
    assert!(program.body.contains("GET /status"), "{}", program.body);
    assert_eq!(visitor.get("/status").status, 200);
    let page = visitor.get("/dashboard/");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    for path in [
        "/dashboard/nowhere",
        "/dashboard/assets/0/secret",
        "/dashboard/%00%ff/..",
        "/dashboard/do/pause",
    ] {
        assert_eq!(visitor.get(path).status, 404, "{path}");
    }
}

#[test]
fn requests_from_foreign_pages_are_refused() {
    let fleet = Fleet::start();
    let visitor = fleet.visitor();
    let host = [("Host", "evil.example:8080")];
    assert_eq!(visitor.get_with("/dashboard/", &host).status, 403);
    let loaded = [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "no-cors"),
    ];
    assert_eq!(visitor.get_with("/dashboard/", &loaded).status, 403);

    fleet.feed_pages("a.example", "c", 300);
    fleet.wait_until_listed(&visitor, "c");
    let token = visitor.get("/dashboard/crawls").form_token();
    let own = fleet.url("");
    for (why, fields, headers, expected) in [
        (
            "a foreign origin",
            action_form_fields(&token, "c"),
            vec![("Origin", "http://evil.example")],
            403,
        ),
        (
            "a hidden origin",
            action_form_fields(&token, "c"),
            vec![("Origin", "null")],
            403,
        ),
        (
            "a foreign site",
            action_form_fields(&token, "c"),
            vec![("Sec-Fetch-Site", "cross-site")],
            403,
        ),
        (
            "no token",
            action_form_fields("", "c"),
            vec![("Origin", own.as_str())],
            403,
        ),
        (
            "another token",
            action_form_fields("0123", "c"),
            vec![("Origin", own.as_str())],
            403,
        ),
    ] {
        let answer = visitor.post_with("/dashboard/do/pause", &fields, &headers);
        assert_eq!(answer.status, expected, "{why}: {}", answer.body);
    }
    assert!(
        fleet
            .audit_log()
            .iter()
            .all(|line| line["action"] != "pause")
    );
    let answer = visitor.post("/dashboard/do/pause", &action_form_fields(&token, "c"));
    assert_eq!(answer.status, 303, "{}", answer.body);
    let long = "x".repeat(100_000);
    let answer = visitor.post(
        "/dashboard/do/pause",
        &[("token", &token), ("appid", &long)],
    );
    assert_eq!(answer.status, 413);
}

#[test]
fn only_visitors_with_a_token_see_anything() {
    let fleet = guarded_fleet();
    let mut visitor = fleet.visitor();
    for path in [
        "/dashboard/",
        "/dashboard/crawls",
        "/dashboard/live",
        "/dashboard/nowhere",
        "/dashboard/audit",
    ] {
        let answer = visitor.get(path);
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, Some("/dashboard/login")),
            "{path}"
        );
    }
    let form = visitor.get("/dashboard/login");
    assert_eq!(form.status, 200);
    assert!(!form.body.contains("testapp"), "{}", form.body);
    let wrong = visitor.post("/dashboard/login", &[("token", "wrong")]);
    assert_eq!((wrong.status, wrong.cookie()), (401, None));
    visitor.cookie = Some("webfill-dashboard-8080=0123456789abcdef".into());
    assert_eq!(
        visitor.get("/dashboard/").status,
        303,
        "a cookie of somebody's own making"
    );

    let answer = visitor.post("/dashboard/login", &[("token", CHIEF)]);
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some("/dashboard/"))
    );
    let cookie = answer.header("set-cookie").expect("a session").to_owned();
    for part in ["httponly", "samesite=strict", "path=/dashboard"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!answer.head.contains("chief-0123"), "{}", answer.head);
    visitor.cookie = answer.cookie();
    let page = visitor.get("/dashboard/");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("chief") && !page.body.contains(CHIEF));

    // Another session's form token is refused.
    let other = fleet.log_in(CHIEF);
    let answer = other.post("/dashboard/logout", &[("token", &page.form_token())]);
    assert_eq!(answer.status, 403);
    let answer = visitor.post("/dashboard/logout", &[("token", &page.form_token())]);
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some("/dashboard/login"))
    );
    assert_eq!(
        visitor.get("/dashboard/").status,
        303,
        "the session is over"
    );
    assert_eq!(other.get("/dashboard/").status, 200, "the other one is not");
}

#[test]
fn tokens_cannot_be_guessed_and_one_taken_off_the_list_is_shut_out_at_once() {
    let mut fleet = guarded_fleet();
    let chief = fleet.log_in(CHIEF);
    let reader = fleet.log_in(READER);
    let guesser = fleet.visitor();
    let tries: Vec<u16> = (0..12)
        .map(|n| {
            guesser
                .post("/dashboard/login", &[("token", &format!("guess {n}"))])
                .status
        })
        .collect();
    assert_eq!(tries[..10], [401; 10]);
    assert_eq!(tries[10..], [429; 2]);
    let right = guesser.post("/dashboard/login", &[("token", CHIEF)]);
    assert_eq!(
        (right.status, right.header("retry-after")),
        (429, Some("60"))
    );
    assert_eq!(chief.get("/dashboard/").status, 200, "who is in stays in");

    fleet.write_tokens(&format!("chief {CHIEF}\n"));
    fleet.dispatcher().signal(Signal::HUP);
    wait_for("the token is of no use any more", || {
        (reader.get("/dashboard/").status == 303).then_some(())
    });
    assert_eq!(chief.get("/dashboard/").status, 200);
}

#[test]
fn a_visitor_can_do_permitted_actions_and_the_audit_log_has_them() {
    let fleet = guarded_fleet();
    fleet.feed_pages("a.example", "c", 300);
    let [chief, reader, shop] = [CHIEF, READER, SHOP].map(|token| fleet.log_in(token));
    fleet.wait_until_listed(&chief, "c");
    let token_of = |visitor: &Visitor| visitor.get("/dashboard/").form_token();

    let seen = chief.get("/dashboard/crawls").body;
    assert!(seen.contains("/dashboard/do/pause"), "{seen}");
    let seen = reader.get("/dashboard/crawls").body;
    assert!(
        seen.contains("testapp") && !seen.contains("/dashboard/do/pause"),
        "{seen}"
    );
    for path in ["/dashboard/", "/dashboard/crawls"] {
        let seen = shop.get(path).body;
        assert!(
            !seen.contains("testapp") && !seen.contains("a.example"),
            "{seen}"
        );
    }
    for path in ["/dashboard/machines", "/dashboard/audit"] {
        assert_eq!(shop.get(path).status, 403, "{path}");
        assert_eq!(reader.get(path).status, 200, "{path}");
    }

    for (visitor, name) in [(&reader, "reader"), (&shop, "shop")] {
        let answer = visitor.post(
            "/dashboard/do/pause",
            &action_form_fields(&token_of(visitor), "c"),
        );
        let back = answer.header("location").expect("a way back").to_owned();
        let reported = visitor.get(&back).body;
        assert!(reported.contains("Nothing changed"), "{name}: {reported}");
        let refused = |line: &serde_json::Value| line["who"] == name && line["result"] == "refused";
        assert!(
            fleet.audit_log().iter().any(refused),
            "{name}: {:?}",
            fleet.audit_log()
        );
    }

    let answer = chief.post(
        "/dashboard/do/pause",
        &action_form_fields(&token_of(&chief), "c"),
    );
    let back = answer.header("location").expect("a way back").to_owned();
    assert!(back.starts_with("/dashboard/crawls?message="), "{back}");
    let reported = chief.get(&back).body;
    assert!(reported.contains("Crawl paused"), "{reported}");
    let paused = fleet.web.site("a.example").visits().len();
    let audit = fleet.audit_log();
    let line = audit
        .iter()
        .rfind(|line| line["action"] == "pause" && line["who"] == "chief");
    let line = line.unwrap_or_else(|| panic!("{audit:?}"));
    let expected = [
        json!("dashboard"),
        json!(APP),
        json!("c"),
        json!("127.0.0.1"),
    ];
    let reported = ["by", "appid", "crawlid", "address"].map(|key| line[key].clone());
    assert_eq!(reported, expected);
    assert!(paused < 300, "it was paused before its end");
    let page = chief.get("/dashboard/audit").body;
    assert!(page.contains("chief") && page.contains("pause"), "{page}");

    // The page of the paused crawl has a button that resumes it.
    let answer = chief.post(
        "/dashboard/do/resume",
        &action_form_fields(&token_of(&chief), "c"),
    );
    assert_eq!(answer.status, 303);
    let site = fleet.web.site("a.example");
    wait_for("the crawl continues", || {
        (site.visits().len() > paused + 3).then_some(())
    });
}

#[needs(chromedriver)]
#[test]
fn an_operator_logs_in_by_tls_and_pauses_a_crawl() {
    let fleet = Fleet::with_tls(&format!("chief {CHIEF}\n"));
    fleet.feed_pages("a.example", "c", 1_000);
    let browser = Browser::start();
    browser.open(&fleet.url("/dashboard/crawls"));
    assert_eq!(browser.address(), fleet.url("/dashboard/login"));
    browser.screenshot("login");
    let field = browser.wait_for("#token");
    browser.fill(&field, "wrong");
    browser.press(&[ENTER]);
    browser.wait_until("it is refused", || browser.find("[role=alert]"));
    browser.fill(&browser.wait_for("#token"), CHIEF);
    browser.wait_and_click("button");
    browser.wait_until("the visitor is in", || {
        (browser.address() == fleet.url("/dashboard/")).then_some(())
    });
    let cookies = browser.run_devtools_command("Network.getAllCookies", json!({}));
    let cookie = &cookies["cookies"][0];
    let protected = ["secure", "httpOnly"].map(|key| cookie[key].clone());
    assert_eq!(protected, [true, true], "{cookie}");
    assert_eq!(cookie["sameSite"], "Strict");

    browser.wait_until("the crawl is listed", || {
        browser.open(&fleet.url("/dashboard/crawls"));
        browser.find("form[action='/dashboard/do/pause'] button")
    });
    browser.wait_and_click("form[action='/dashboard/do/pause'] button");
    browser.wait_until("it is reported", || {
        browser.page_text().contains("Crawl paused").then_some(())
    });
    browser.wait_for("form[action='/dashboard/do/resume'] button");
    browser.screenshot("crawls");
    let site = fleet.web.site("a.example");
    let paused = site.visits().len();
    assert!(paused < 1_000);
    browser.wait_and_click("form[action='/dashboard/do/resume'] button");
    wait_for("the crawl continues", || {
        (site.visits().len() > paused + 3).then_some(())
    });
    for place in ["machines", "audit"] {
        browser.open(&fleet.url(&format!("/dashboard/{place}")));
        browser.screenshot(place);
    }
    assert!(
        browser.page_text().contains("chief"),
        "{}",
        browser.page_text()
    );
    browser.wait_and_click("form[action='/dashboard/logout'] button");
    browser.wait_until("the visitor is out", || {
        (browser.address() == fleet.url("/dashboard/login")).then_some(())
    });
}

#[test]
fn a_dashboard_without_a_fleet_is_for_this_machine_unless_it_is_protected() {
    let fleet = Fleet::start();
    fleet.feed_pages("a.example", "c", 3);
    fleet.wait_until_listed(&fleet.visitor(), "c");
    let store = fleet.store_uri();
    let refused = Run::new(["dashboard", "--store", &store, "--listen", "0.0.0.0:8081"]);
    let refused = refused.finish().expect_code(2);
    assert!(
        refused.stderr.contains("TLS and tokens"),
        "{}",
        refused.stderr
    );
    let missing = Run::new(["dashboard", "--store", "sqlite:/nowhere/webfill.db"])
        .finish()
        .expect_code(2);
    assert!(
        missing.stderr.contains("/nowhere/webfill.db"),
        "{}",
        missing.stderr
    );

    let place = format!("127.249.{}.1:8081", std::process::id() % 250);
    let mut dashboard = Run::new(["dashboard", "--store", &store, "--listen", &place]).start();
    dashboard.wait_for_stderr("ready");
    let visitor = Visitor::of(&place);
    let page = visitor.get("/dashboard/");
    assert_eq!(page.status, 200, "{}", page.body);
    assert_eq!(visitor.get("/").header("location"), Some("/dashboard/"));
    assert_eq!(
        visitor
            .get_with("/dashboard/", &[("Host", "evil.example")])
            .status,
        403
    );
    let token = visitor.get("/dashboard/crawls").body;
    assert!(
        token.contains("testapp") && !token.contains("/dashboard/do/"),
        "{token}"
    );
    dashboard.signal(Signal::TERM);
    dashboard.finish().expect_code(0);
}
