//! Tests the recognition of sites that block the crawler. The answer of such a site is not a page, and webfill makes no
//! attempt to get past it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::Run;
use webfill_tests::site::{Page, Site, Web, document, page, redirect, status};
use webfill_tests::workplace::Workplace;

mod retraction;

/// A challenge page. It has a field, a link that the mapping selects, and a script that loads the page again.
fn challenge_page() -> Page {
    page("Just a moment")
        .field("name", "Nobody")
        .mapped_link("/behind")
        .html("<script>document.cookie = 'token=1'; location.reload();</script>")
}

/// A challenge page that only a header identifies as such.
fn challenge_by_header() -> Page {
    page("Home")
        .status(403)
        .header("cf-mitigated", "challenge")
        .field("name", "Nobody")
}

/// A refusal of the crawler that only its body identifies as such.
fn refusal_page() -> Page {
    status(403)
        .header("content-type", "text/html")
        .body("<title>Attention Required! | Cloudflare</title><h1>Sorry</h1>")
}

/// A harmless log-in form with a captcha.
fn log_in_form() -> Page {
    page("Log in")
        .field("name", "Ada")
        .mapped_link("/inside")
        .html(
        "<script src='https://www.google.com/recaptcha/api.js' async></script><form method=post>
        <input name=user><input type=password name=password><div class=g-recaptcha></div></form>",
    )
}

/// Redirects every request to a captcha, as one of the large search engines does.
fn redirect_all_to(site: &Site, captcha: &'static str) {
    site.serve_otherwise(move |request| match request.path.starts_with("/sorry") {
        true => page("captcha").into(),
        false => redirect(captcha).into(),
    });
}

/// A challenge page of some 900 bytes that no signature matches.
fn unknown_challenge() -> Page {
    page("Please hold on")
        .field("name", "Nobody")
        .html("<script>document.cookie = run()</script>")
        .html(" ".repeat(700))
}

/// For each blocked URL, the signature (the known mark of a block) and the grade in its warning.
fn block_warnings(work: &Workplace) -> BTreeMap<String, (String, String)> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let logs = work.logs();
    let blocked = logs.values().flatten().filter(|line| {
        let is_whole = line["crawl_id"] == "test" && line["evidence"].is_string();
        line["event"] == "blocked" && line["level"] == "WARN" && is_whole
    });
    let entry = |line| {
        (
            text(line, "url"),
            (text(line, "signature"), text(line, "grade")),
        )
    };
    blocked.map(entry).collect()
}

#[test]
fn a_block_is_an_outcome_without_fields_links_or_redirect() {
    let web = Web::start();
    let blocked = [
        (
            "challenge.example",
            200,
            "short-page-reloads-itself",
            "structural",
        ),
        ("header.example", 403, "cloudflare-mitigated", "certain"),
        ("refusal.example", 403, "cloudflare-refusal", "certain"),
        ("sorry.example", 302, "sent-to-sorry-page", "certain"),
        ("plain.sorry.test", 302, "sent-to-plain-sorry", "certain"),
    ];
    web.site("challenge.example").serve("/", challenge_page());
    web.site("header.example").serve("/", challenge_by_header());
    web.site("refusal.example").serve("/", refusal_page());
    let with_way_back = "/sorry/index?continue=http://sorry.example/&q=abc";
    redirect_all_to(&web.site("sorry.example"), with_way_back);
    redirect_all_to(&web.site("plain.sorry.test"), "/sorry");
    web.site("login.example")
        .serve("/", log_in_form())
        .serve("/inside", page("inside"));
    web.site("plain.example")
        .serve("/", page("Forbidden").status(403));
    let work = Workplace::new();
    let urls = blocked.map(|(host, ..)| format!("http://{host}/"));
    let run = work
        .crawl(&web)
        .args(&urls)
        .args(["http://login.example/", "http://plain.example/"])
        .env("WEBFILL_BACKOFF_BLOCKED", "3600")
        .finish()
        .expect_code(0);

    // The backoff of the blocking sites would last longer than the crawl's patience, so their pages end as blocked.
    let summary = run.summary();
    let counts =
        ["blocked", "ok", "http_error", "redirected"].map(|code| summary.outcome_count(code));
    assert_eq!(counts, [5, 2, 1, 0], "{}", summary.json);
    assert_eq!(summary.json["backing_off"], 0);
    assert_eq!(summary.json["queued"], 0);
    let (pages, warnings) = (work.stored().pages(), block_warnings(&work));
    assert_eq!(warnings.len(), blocked.len(), "{warnings:?}");
    for (url, (host, status, signature, grade)) in urls.iter().zip(blocked) {
        let page = &pages[url];
        assert_eq!(page.outcome, "blocked", "{host}");
        assert_eq!(page.status_code, Some(status), "{host}");
        assert!(page.fields.is_empty() && page.links.is_empty(), "{page:?}");
        assert_eq!(warnings[url], (signature.into(), grade.into()), "{host}");
        let visits = web.visits().for_host(host).pages();
        // Only one request was sent. The challenge caused no further request.
        assert_eq!(visits.paths(), [format!("{host}/")]);
        let cookie = visits.0[0].header("cookie");
        assert_eq!(cookie, None, "{host}");
    }
    assert_eq!(pages["http://login.example/"].fields["name"], "Ada");
    assert_eq!(pages["http://login.example/inside"].outcome, "ok");
    assert_eq!(pages["http://plain.example/"].outcome, "http_error");
}

#[test]
fn a_site_that_blocks_is_asked_more_and_more_slowly() {
    let web = Web::start();
    let sites = ["header.example", "served.example"].map(|host| web.site(host));
    sites[0].serve_otherwise(|_| challenge_by_header().into());
    sites[1].serve_otherwise(|_| challenge_page().into());
    let work = Workplace::new();
    let urls = sites
        .iter()
        .flat_map(|site| ["/1", "/2", "/3"].map(|path| site.url(path)));
    let run = work.crawl(&web).args(urls);
    run.finish().expect_code(0);
    assert!(
        work.stored()
            .outcomes()
            .values()
            .all(|outcome| outcome == "blocked")
    );
    for site in sites {
        let gaps = site.visits().pages().gaps();
        let least = [1, 2].map(Duration::from_secs);
        assert!(
            gaps.len() == 2 && gaps.iter().zip(least).all(|(gap, least)| *gap >= least),
            "{}: the delay is 0.2 s, the back-off 1 s and twice as long each time: {gaps:?}",
            site.host()
        );
    }
}

/// An [`unknown_challenge`] is never accepted as a page, not even at its first URL.
#[test]
fn one_short_page_for_every_url_is_a_block_from_the_second_on() {
    let web = Web::start();
    let (blocking, shell) = (web.site("same.example"), web.site("shell.example"));
    blocking.serve_otherwise(|_| unknown_challenge().into());
    shell.serve_otherwise(|_| {
        document(
            "text/html",
            "<div id=root></div><script src=/app.js></script>",
        )
        .into()
    });
    let work = Workplace::new();
    let urls = |site: &Site| (1..=4).map(|n| site.url(&format!("/{n}"))).collect();
    let (blocked, healthy): (Vec<String>, Vec<String>) = (urls(&blocking), urls(&shell));
    work.crawl(&web)
        .args(&blocked)
        .args(&healthy)
        .finish()
        .expect_code(0);
    let pages = work.stored().pages();
    for url in &blocked {
        let page = &pages[url];
        assert_eq!(page.outcome, "blocked", "{url}");
        assert!(page.fields.is_empty() && page.links.is_empty(), "{page:?}");
    }
    let gaps = blocking.visits().pages().gaps();
    assert!(gaps[1] >= Duration::from_secs(1), "{gaps:?}");
    assert!(healthy.iter().all(|url| pages[url].outcome == "ok"));
    assert_eq!(shell.visits().pages().len(), 4);
}

/// Crawls sites whose block is recognised at the second URL. Checks that nothing more is requested, and that no answer
/// is accepted as a page.
fn assert_blocked_at_the_second(web: &Web, sites: &[Site]) {
    const PAGES: usize = 12;
    let work = Workplace::new();
    let urls_of = |site: &Site| (0..PAGES).map(|n| site.url(&format!("/{n}"))).collect();
    let urls: Vec<Vec<String>> = sites.iter().map(urls_of).collect();
    let run = work
        .crawl(web)
        .args(urls.iter().flatten())
        .env("WEBFILL_BACKOFF_BLOCKED", "3600")
        .finish()
        .expect_code(0);
    let pages = work.stored().pages();
    for site in sites {
        let paths = site.visits().pages().paths();
        assert_eq!(paths.len(), 2, "{}: {paths:?}", site.host());
    }
    let json = run.summary().json;
    assert!(
        pages.values().all(|page| page.outcome == "blocked"),
        "{json}"
    );
    assert_eq!(pages.len(), PAGES * sites.len());
}

/// A blocking site redirects every request to another host, whose name shows that it serves challenges.
#[test]
fn redirects_to_another_host_that_is_named_like_a_challenge_are_a_block_from_the_second_on() {
    let web = Web::start();
    let gates = [
        ("www.gated.example", "sec.gated.example"),
        ("www.guarded.example", "ddos-guard.test"),
        ("www.anti.example", "anti.vendor.test"),
        ("www.solved.example", "captcha.test"),
        ("www.asked.example", "challenge.test"),
    ];
    let sites = gates.map(|(host, gate)| {
        let site = web.site(host);
        site.serve_otherwise(move |request| {
            redirect(&format!("http://{gate}/?u={}", request.path)).into()
        });
        let held = page("Please hold on").field("name", "Nobody");
        web.site(gate).serve_otherwise(move |_| held.clone().into());
        site
    });
    assert_blocked_at_the_second(&web, &sites);
    for (_, gate) in gates {
        let visits = web.visits().for_host(gate);
        assert!(visits.is_empty(), "{:?}", visits.paths());
    }
}

/// The pages have a single line and no visible text.
#[test]
fn scripts_alone_are_a_block_from_the_second_on() {
    let web = Web::start();
    let pages = [
        (
            "token.example",
            "<script>location='/?c=8f3a2b1c9d'</script>",
        ),
        ("sum.example", "<script>location.href='/?c='+f()</script>"),
        (
            "bare.example",
            "<html><head><script src='/8f3a.js'></script></head><body></body></html>",
        ),
    ];
    let sites = pages.map(|(host, html)| {
        let site = web.site(host);
        site.serve_otherwise(move |_| document("text/html", html).into());
        site
    });
    assert_blocked_at_the_second(&web, &sites);
}

/// A shop redirects requests to a log-in page, to another shop, to a consent page, and to a host for one language.
#[test]
fn redirects_of_healthy_sites_to_one_place_are_no_block() {
    let web = Web::start();
    let site = web.site("www.shop.example");
    let targets = [
        "http://login.shop.example/?next=",
        "http://new.other.example/?from=",
        "http://consent.shop.example/verify?u=",
        "http://de.shop.example",
    ];
    for (n, target) in targets.into_iter().enumerate() {
        for path in 0..3 {
            let path = format!("/{n}/{path}");
            site.serve(&path, redirect(&format!("{target}{path}")));
        }
    }
    for host in ["login.shop", "new.other", "consent.shop", "de.shop"] {
        let host = web.site(&format!("{host}.example"));
        host.serve_otherwise(|request| page(&request.path).into());
    }
    let work = Workplace::new();
    let urls = (0..12).map(|n| site.url(&format!("/{}/{}", n / 3, n % 3)));
    let run = work.crawl(&web).args(urls).finish().expect_code(0);
    let summary = run.summary();
    let counts = ["redirected", "ok", "blocked"].map(|outcome| summary.outcome_count(outcome));
    assert_eq!(counts, [12, 12, 0], "{}", summary.json);
}

/// A page that resembles a challenge counts as a page if its site also serves other pages. It is fetched once more
/// before that.
#[test]
fn a_short_page_that_was_suspected_is_a_page_when_others_are_served() {
    let web = Web::start();
    let site = web.site("short.example");
    site.serve("/1", unknown_challenge());
    site.serve_otherwise(|_| page("T").field("name", "Ada").link("/1").into());
    let alone = web.site("alone.example");
    alone.serve("/", unknown_challenge());
    let work = Workplace::new();
    let urls = (1..=4).map(|n| site.url(&format!("/{n}")));
    let run = work
        .crawl(&web)
        .args(urls)
        .arg(alone.url("/"))
        .env("WEBFILL_BACKOFF_BLOCKED", "3600")
        .finish()
        .expect_code(0);
    assert_eq!(
        run.summary().outcome_count("ok"),
        5,
        "{}",
        run.summary().json
    );
    for (site, path) in [(&site, "/1"), (&alone, "/")] {
        assert_eq!(site.visits().for_path(path).len(), 2, "{path}");
        assert_eq!(
            work.stored().pages()[&site.url(path)].fields["name"],
            "Nobody"
        );
    }
}

/// `webfill site` finds the crawl by its state folder. It works both while the crawl runs and after its end.
#[test]
fn a_site_of_a_local_crawl_is_woken_by_a_command() {
    let web = Web::start();
    let site = web.site("blocks.example");
    let is_open = Arc::new(AtomicBool::new(false));
    let open = Arc::clone(&is_open);
    site.serve_otherwise(move |_| match open.load(Ordering::SeqCst) {
        true => page("T").field("name", "Ada").into(),
        false => challenge_by_header().into(),
    });
    let work = Workplace::new();
    let wake = || {
        let state = work.path("state");
        Run::new(["site", "blocks.example", "--wake", "--state"])
            .arg(&state)
            .finish()
            .expect_code(0)
    };
    let crawl = || {
        work.crawl(&web)
            .arg(site.url("/"))
            .args(["--patience", "6h"])
            .env("WEBFILL_BACKOFF_BLOCKED", "3600,3600,3600")
            .start()
    };
    let blocks = |times: usize| {
        let logs = work.logs();
        let lines = logs.values().flatten();
        lines.filter(|line| line["event"] == "site_blocks").count() >= times
    };
    let mut running = crawl();
    running.wait_until("the site backs off", |_| blocks(1));
    running.signal(Signal::INT);
    running.finish().expect_code(11);
    let answer = wake();
    assert!(
        answer.stdout.contains("requests one of its pages first"),
        "{}",
        answer.stdout
    );
    let mut running = crawl();
    running.wait_until("the second request", |_| site.visits().pages().len() == 2);
    is_open.store(true, Ordering::SeqCst);
    running.wait_until("the site backs off again", |_| blocks(2));
    wake();
    let run = running.finish().expect_code(0);
    assert_eq!(
        run.summary().outcome_count("ok"),
        1,
        "{}",
        run.summary().json
    );
    assert_eq!(site.visits().pages().len(), 3);

    let unknown = Run::new(["site", "other.example", "--wake", "--state"]);
    let unknown = unknown.arg(work.path("state")).finish().expect_code(1);
    assert!(
        unknown
            .one_sentence()
            .contains("unknown site `other.example`")
    );
}

#[needs(chromium)]
#[test]
fn a_challenge_is_not_shown_to_the_browser() {
    let web = Web::start();
    let site = web.site("challenge.example");
    site.serve(
        "/",
        challenge_page().html("<script>fetch('/token')</script>"),
    );
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .args(["--lane", "browser"])
        .replace_flag("--workers", "1")
        .env("WEBFILL_BROWSER_SANDBOX", "false")
        .time_limit(Duration::from_secs(120))
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    assert_eq!(
        run.summary().outcome_count("blocked"),
        1,
        "{}",
        run.summary().json
    );
    assert_eq!(site.visits().pages().paths(), ["challenge.example/"]);
}
