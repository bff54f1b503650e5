//! Tests redirects: each target is judged like a link.

use std::time::Duration;

use webfill_tests::site::{Web, document, page, redirect, script};
use webfill_tests::workplace::Workplace;

#[test]
fn a_target_is_fetched_as_a_task_of_its_own() {
    let web = Web::start();
    let site = web.site("old.example");
    for (path, code) in [
        ("/301", 301),
        ("/302", 302),
        ("/303", 303),
        ("/307", 307),
        ("/308", 308),
    ] {
        site.serve(path, redirect(&format!("/new{path}")).status(code));
        site.serve(&format!("/new{path}"), page(path));
    }
    site.serve("/away", redirect("//new.example/there"));
    web.site("new.example").serve("/there", page("there"));
    let work = Workplace::new();
    let urls = ["/301", "/302", "/303", "/307", "/308", "/away"].map(|path| site.url(path));
    let run = work
        .crawl(&web)
        .args(["--depth", "0"])
        .args(urls)
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(
        (
            summary.outcome_count("redirected"),
            summary.outcome_count("ok")
        ),
        (6, 6),
        "{}",
        summary.json
    );
    let pages = work.stored().pages();
    let there = &pages["http://new.example/there"];
    assert_eq!(
        (there.depth, there.outcome.as_str()),
        (0, "ok"),
        "a redirect costs no depth"
    );
    assert_eq!(pages["http://old.example/302"].status_code, Some(302));
    web.visits().assert_polite(Duration::from_millis(200));
    assert_eq!(
        web.visits().for_host("new.example").robots().len(),
        1,
        "judged by its own robots.txt"
    );
}

#[test]
fn loops_and_long_chains_end() {
    let web = Web::start();
    let site = web.site("loop.example");
    site.serve("/self", redirect("/self"));
    site.serve("/ping", redirect("/pong"))
        .serve("/pong", redirect("/ping"));
    site.serve_otherwise(|request| {
        let hop: u32 = request
            .path
            .trim_start_matches("/chain/")
            .parse()
            .unwrap_or(0);
        redirect(&format!("/chain/{}", hop + 1)).into()
    });
    let work = Workplace::new();
    let urls = ["/self", "/ping", "/chain/1"].map(|path| site.url(path));
    let run = work.crawl(&web).args(urls).finish().expect_code(0);
    let summary = run.summary();
    assert_eq!(summary.outcome_count("http_error"), 1, "the one to itself");
    assert_eq!(summary.skipped_count("duplicate"), 1, "{}", summary.json);
    assert_eq!(summary.skipped_count("too_deep"), 1, "{}", summary.json);
    let chain = site
        .visits()
        .0
        .iter()
        .filter(|visit| visit.path.starts_with("/chain/"))
        .count();
    assert!((5..=7).contains(&chain), "{chain} hops");
    assert!(site.visits().counts().values().all(|count| *count == 1));
}

#[test]
fn a_target_is_judged_by_robots_scope_and_scheme() {
    let web = Web::start();
    let site = web.site("from.example");
    site.serve_robots("User-agent: *\nDisallow: /closed\n");
    let targets = [
        ("/to-closed", "/closed"),
        ("/to-outside", "http://outside.example/"),
        ("/to-bad-url", "http://[:::/"),
        ("/to-file", "file:///etc/passwd"),
        ("/to-port", "http://from.example:99999/"),
    ];
    for (path, target) in targets {
        site.serve(path, redirect(target));
    }
    site.serve("/closed", page("closed"));
    web.site("outside.example").serve("/", page("outside"));
    let work = Workplace::new();
    let urls = targets.map(|(path, _)| site.url(path));
    let run = work
        .crawl(&web)
        .args(["--allowed-domains", "from.example"])
        .args(urls)
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(summary.outcome_count("redirected"), 5, "{}", summary.json);
    assert_eq!(summary.outcome_count("disallowed"), 1);
    assert_eq!(summary.skipped_count("out_of_domain"), 1);
    assert_eq!(summary.skipped_count("invalid_url"), 2);
    assert_eq!(summary.skipped_count("unsupported_scheme"), 1);
    assert!(web.visits().for_path("/closed").is_empty());
    assert!(web.visits().for_host("outside.example").is_empty());
}

#[test]
fn a_redirect_location_is_understood_in_any_form() {
    let web = Web::start();
    let site = web.site("forms.example");
    site.serve("/dir/relative", redirect("../target"));
    site.serve(
        "/utf-8",
        script().send("HTTP/1.1 302 Found\r\nlocation: /ziel-ü\r\ncontent-length: 0\r\n\r\n"),
    );
    site.serve("/spaced", redirect("  /sp ace "));
    for path in ["/target", "/ziel-%C3%BC", "/sp%20ace"] {
        site.serve(path, page(path));
    }
    let work = Workplace::new();
    let urls = ["/dir/relative", "/utf-8", "/spaced"].map(|path| site.url(path));
    let run = work.crawl(&web).args(urls).finish().expect_code(0);
    assert_eq!(
        run.summary().outcome_count("ok"),
        3,
        "{:?}",
        site.visits().paths()
    );
}

#[test]
fn the_record_of_a_page_follows_its_redirect() {
    let web = Web::start();
    let site = web.site("moved.example");
    site.serve("/ada", redirect("http://home.example/ada"));
    web.site("home.example")
        .serve("/ada", page("Ada").field("name", "Ada"));
    let work = Workplace::new();
    let record =
        serde_json::json!({"id": "1", "urls": [site.url("/ada")], "fields": {"name": null}});
    let seeds = work.write_lines("seeds.jsonl", &[record]);
    work.crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    assert_eq!(work.stored().record("1").fields["name"], "Ada");
}

#[test]
fn a_target_in_another_encoding_is_requested_as_it_was_sent() {
    let web = Web::start();
    let site = web.site("old.example");
    let moved = |target: &[u8]| {
        let head = [
            b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: ",
            target,
            b"\r\n\r\n",
        ];
        script().send(head.concat())
    };
    site.serve("/latin", moved(b"/gr\xf6\xdfe?q=\xf6"));
    site.serve("/utf-8", moved("/größe?q=ö".as_bytes()));
    let targets = ["/gr%F6%DFe?q=%F6", "/gr%C3%B6%C3%9Fe?q=%C3%B6"];
    for target in targets {
        site.serve(target, page("T"));
    }
    let work = Workplace::new();
    let urls = ["/latin", "/utf-8"].map(|path| site.url(path));
    work.crawl(&web).args(urls).finish().expect_code(0);
    let outcomes = work.stored().outcomes();
    for target in targets {
        assert_eq!(
            outcomes.get(&site.url(target)).map(String::as_str),
            Some("ok"),
            "{outcomes:?}"
        );
    }
}

/// A page that sends browsers to another page within seconds counts as a redirect. A page with content for readers
/// counts as a page.
#[test]
fn a_page_that_only_forwards_its_readers_is_a_redirect() {
    let web = Web::start();
    let site = web.site("moved.example");
    let meta = |content: &str| format!("<meta http-equiv=\"refresh\" content=\"{content}\">");
    let target = |n: usize| format!("/target/{n}");
    let sent_on = [
        document("text/html", meta("0;url=/target/0")),
        document("text/html", meta("3; URL='../target/1?a=1&amp;b=2'")),
        document("text/html", "Moved.").header("refresh", "0; url=/target/2"),
        document("text/html", "").header("refresh", "5;/target/3"),
        document(
            "text/html",
            format!("{}{}", meta("0; url=/target/4"), "<p>words ".repeat(90)),
        ),
        document(
            "text/html",
            format!("<noscript>{}</noscript>", meta("0; url=/target/5")),
        ),
    ];
    let urls: Vec<String> = (0..sent_on.len())
        .map(|n| site.url(&format!("/old/{n}")))
        .collect();
    for (n, reply) in sent_on.into_iter().enumerate() {
        site.serve(&format!("/old/{n}"), reply);
        let path = match n {
            1 => "/target/1?a=1&b=2".to_owned(),
            n => target(n),
        };
        site.serve(&path, page("There").field("name", &format!("Ada {n}")));
    }
    let stays = [
        ("/news", page("News").html(meta("300; url=/news/2"))),
        (
            "/read",
            page("Read")
                .field("name", "Bob")
                .html(meta("0; url=/elsewhere")),
        ),
        (
            "/full",
            page("Full")
                .html(format!("<noscript>{}</noscript>", meta("0; url=/plain")))
                .html("<p>words ".repeat(90)),
        ),
    ];
    for (path, reply) in stays.clone() {
        site.serve(path, reply);
    }
    let work = Workplace::new();
    let records: Vec<_> = urls
        .iter()
        .enumerate()
        .map(|(n, url)| {
            serde_json::json!({"id": n.to_string(), "urls": [url], "fields": {"name": null}})
        })
        .collect();
    let seeds = work.write_lines("seeds.jsonl", &records);
    let run = work
        .crawl(&web)
        .args(stays.each_ref().map(|(path, _)| site.url(path)))
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    let summary = run.summary();
    let counts = ["redirected", "ok"].map(|outcome| summary.outcome_count(outcome));
    assert_eq!(counts, [6, 9], "{}", summary.json);
    let pages = work.stored().pages();
    for (n, url) in urls.iter().enumerate() {
        assert_eq!(pages[url].outcome, "redirected", "{url}");
        let name = work.stored().record(&n.to_string()).fields["name"].clone();
        assert_eq!(name, format!("Ada {n}"), "{url}");
    }
    for (path, _) in stays {
        assert_eq!(pages[&site.url(path)].outcome, "ok", "{path}");
    }
    assert!(site.visits().for_path("/elsewhere").is_empty());
    assert!(site.visits().counts().values().all(|count| *count == 1));
}

#[test]
fn a_refresh_is_judged_like_any_redirect() {
    let web = Web::start();
    let site = web.site("from.example");
    site.serve_robots("User-agent: *\nDisallow: /closed\n");
    let refresh = |target: &str| {
        let meta = format!("<meta http-equiv=refresh content='0; url={target}'>");
        document("text/html", meta)
    };
    site.serve("/to-closed", refresh("/closed"));
    site.serve("/to-outside", refresh("http://outside.example/"));
    site.serve("/ping", refresh("/pong"))
        .serve("/pong", refresh("/ping"));
    site.serve_otherwise(move |request| {
        let hop: u32 = request
            .path
            .trim_start_matches("/chain/")
            .parse()
            .unwrap_or(0);
        refresh(&format!("/chain/{}", hop + 1)).into()
    });
    let work = Workplace::new();
    let urls = ["/to-closed", "/to-outside", "/ping", "/chain/1"].map(|path| site.url(path));
    let run = work
        .crawl(&web)
        .args(["--allowed-domains", "from.example"])
        .args(urls)
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(summary.outcome_count("ok"), 0, "{}", summary.json);
    let reasons =
        ["out_of_domain", "duplicate", "too_deep"].map(|reason| summary.skipped_count(reason));
    assert_eq!(reasons, [1, 1, 1], "{}", summary.json);
    assert_eq!(summary.outcome_count("disallowed"), 1);
    assert!(web.visits().for_path("/closed").is_empty());
}

#[test]
fn a_crawl_of_redirects_only_ends_with_exit_code_1_and_the_reason() {
    let web = Web::start();
    let site = web.site("away.example");
    site.serve_otherwise(|_| redirect("http://elsewhere.example/").into());
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .replace_flag("--fail-on", "nothing-fetched")
        .args(["--allowed-domains", "away.example"])
        .args([site.url("/1"), site.url("/2")])
        .finish()
        .expect_code(1);
    assert!(
        run.stderr.contains("all 2 URLs only redirect"),
        "{}",
        run.stderr
    );
    assert_eq!(run.summary().skipped_count("out_of_domain"), 2);
}
