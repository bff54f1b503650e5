//! Tests sites with an endless number of URLs: session ids, links relative to the wrong folder, parameters that only
//! show where a link was shared, and routes in fragments.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, document, page};
use webfill_tests::workplace::Workplace;

use self::table::{HONEST, Row, SITES, TRAPS};

mod table;

fn deep_crawl(work: &Workplace, web: &Web) -> Run {
    work.crawl_without_delay(web)
        .args(["--delay", "0.01", "--depth", "1000", "--follow", "all"])
}

/// The number at the end of a request's query, for example 7 in `?sid=7`.
fn number_after_last_equals(path: &str) -> u32 {
    let digits = path.rsplit('=').next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[test]
fn pages_that_only_repeat_themselves_are_crawled_more_slowly() {
    let web = Web::start();
    let session = web.site("session.example");
    session.serve_otherwise(|request| {
        let sid = number_after_last_equals(&request.path);
        let links = format!(
            "<p>Welcome, {sid}</p><a href='/p?sid={}'>on</a> <a href='/q?sid={}'>on</a>",
            2 * sid + 1,
            2 * sid + 2
        );
        page("Shop").html(links).into()
    });
    let folders = web.site("folders.example");
    folders.serve_otherwise(|request| {
        let text = format!("<p>{} bytes</p><a href='next/'>on</a>", request.path.len());
        page("Not here").html(text).into()
    });
    let work = Workplace::new();
    let run = deep_crawl(&work, &web)
        .args([session.url("/p?sid=0"), folders.url("/next/")])
        .finish()
        .expect_code(0);
    let summary = run.summary();
    let fetched = [&session, &folders].map(|site| site.visits().pages().len());
    assert!(fetched[0] < 60 && fetched[1] < 20, "{fetched:?}");
    assert!(
        summary.skipped_count("repeated_page") > 1,
        "{}",
        summary.json
    );
    let repeating = &summary.json["repeating"];
    assert_eq!(repeating["sites"], 2, "{repeating}");
    let of_session = repeating["first"].as_array().and_then(|first| {
        first
            .iter()
            .find(|reported| reported["site"] == "session.example")
    });
    let of_session = of_session.expect("the site is named");
    let url = of_session["url"].as_str().unwrap_or_default();
    assert!(url.starts_with("http://session.example/") && of_session["skipped"].as_u64() > Some(0));
    let logs = work.logs();
    for host in ["session.example", "folders.example"] {
        let mut lines = logs.values().flatten();
        let is_said = lines.any(|line| line["event"] == "branch_slowed" && line["site"] == host);
        assert!(is_said, "{host}");
    }
}

/// Serves the site of each row on a separate host. Returns the URL where the crawl of each site starts.
fn serve_rows(web: &Web, rows: &[Row]) -> Vec<String> {
    let serve = |(host, start, shows): &Row| {
        let site = web.site(&format!("{host}.example"));
        site.serve_robots("User-agent: *\nDisallow: /denied/");
        let (visits, shows) = (AtomicU64::new(0), *shows);
        site.serve_otherwise(move |request| {
            let visit = visits.fetch_add(1, Ordering::SeqCst) + 1;
            // The HTML contains only what the table row shows for this path, without a menu or footer that all pages
            // would share.
            let html = shows(&request.path, visit);
            document("text/html", format!("<!DOCTYPE html><body>{html}")).into()
        });
        site.url(start)
    };
    rows.iter().map(serve).collect()
}

/// The number of fetched pages of each host.
fn count_fetched(web: &Web, rows: &[Row]) -> Vec<(&'static str, usize)> {
    let visits = web.visits().pages();
    let of = |(host, ..): &Row| {
        let name = format!("{host}.example");
        let pages = visits.0.iter().filter(|visit| visit.host == name);
        (*host, pages.count())
    };
    rows.iter().map(of).collect()
}

#[test]
fn traps_whose_pages_are_never_equal_are_slowed_down() {
    let web = Web::start();
    let work = Workplace::new();
    let run = deep_crawl(&work, &web)
        .args(serve_rows(&web, &TRAPS))
        .args(["--max-time", "40s"])
        .finish();
    let fetched = count_fetched(&web, &TRAPS);
    let endless: Vec<_> = fetched.iter().filter(|(_, pages)| *pages > 170).collect();
    assert!(endless.is_empty(), "{endless:?} of {fetched:?}");
    let summary = run.expect_code(0).summary();
    assert_eq!(summary.json["repeating"]["sites"], TRAPS.len());
}

#[test]
fn honest_sites_that_resemble_traps_are_fetched_to_their_end() {
    let web = Web::start();
    let work = Workplace::new();
    let run = deep_crawl(&work, &web)
        .args(serve_rows(&web, &SITES))
        .finish()
        .expect_code(0);
    let fetched = count_fetched(&web, &SITES);
    let short: Vec<_> = fetched
        .iter()
        .filter(|(host, pages)| *host != "tree" && *pages < HONEST as usize - 1)
        .collect();
    assert!(short.is_empty(), "{short:?} of {fetched:?}");
    assert_eq!(
        run.summary().skipped_count("repeated_page"),
        0,
        "{fetched:?}"
    );
}

#[test]
fn lists_calendars_and_comics_are_followed_to_their_end() {
    let web = Web::start();
    let (list, strips) = (web.site("list.example"), web.site("strips.example"));
    list.serve_otherwise(|request| {
        let at = number_after_last_equals(&request.path);
        let items = format!("<p>Items {at} to {}</p>", at + 10);
        let next = format!("<a href='/list?page={}'>next</a>", at + 1);
        page("List")
            .html(items)
            .html(if at < 40 { next } else { String::new() })
            .into()
    });
    strips.serve_otherwise(|request| {
        let at = number_after_last_equals(&request.path);
        let next = format!(
            "<img src='/{at}.png'><a href='/strip?n={}'>next</a>",
            at + 1
        );
        page("Strip")
            .html(if at < 40 { next } else { String::new() })
            .into()
    });
    let work = Workplace::new();
    let run = deep_crawl(&work, &web)
        .args([list.url("/list?page=0"), strips.url("/strip?n=0")])
        .finish()
        .expect_code(0);
    assert_eq!(
        run.summary().outcome_count("ok"),
        82,
        "{}",
        run.summary().json
    );
    assert_eq!(run.summary().skipped_count("repeated_page"), 0);
}

#[test]
fn urls_that_differ_only_in_dropped_parameters_are_one_url() {
    let web = Web::start();
    let site = web.site("shared.example");
    let links = ["/a?utm_source=x", "/a?utm_medium=y&utm_source=z", "/a"];
    let others = ["/b?ref=1&id=2", "/b?id=2"];
    let mut home = page("Home");
    for link in links.iter().chain(&others) {
        home = home.link(link);
    }
    site.serve("/", home);
    site.serve_otherwise(|request| page(&request.path).into());
    let fetched = |names: Option<&str>| {
        let before = site.visits().pages().len();
        let work = Workplace::new();
        let mut crawl = work
            .crawl(&web)
            .args(["--follow", "all", "--depth", "1"])
            .arg(site.url("/"));
        if let Some(names) = names {
            crawl = crawl.env("WEBFILL_DISPATCHER_DROP_PARAMETERS", names);
        }
        crawl.finish().expect_code(0);
        let visits = site.visits().pages();
        let paths = visits.0[before..].iter().map(|visit| visit.path.clone());
        paths.filter(|path| path != "/").collect::<Vec<_>>()
    };
    // The URLs are requested as they were found.
    assert_eq!(
        fetched(None),
        ["/a?utm_source=x", "/b?ref=1&id=2", "/b?id=2"]
    );
    let by_ref = [
        "/a?utm_source=x",
        "/a?utm_medium=y&utm_source=z",
        "/a",
        "/b?ref=1&id=2",
    ];
    assert_eq!(fetched(Some("ref")), by_ref);
}

#[test]
fn an_invalid_parameter_name_is_refused() {
    let web = Web::start();
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .arg("http://a.example/")
        .env("WEBFILL_DISPATCHER_DROP_PARAMETERS", "u*m")
        .finish()
        .expect_code(2);
    assert!(
        run.stderr.contains("dispatcher.drop_parameters: `u*m`"),
        "{}",
        run.stderr
    );
}

/// Writes the records of two people of a web application. The part after `#` in a URL selects the person who is shown.
fn write_two_people(work: &Workplace, root: &str) -> std::path::PathBuf {
    let record = |n: u32| {
        json!({
            "id": n.to_string(), "urls": [format!("{root}#/user/{n}")], "fields": {"name": null},
        })
    };
    work.write_lines("people.jsonl", &[record(1), record(2)])
}

#[test]
fn a_route_in_a_fragment_is_refused_without_a_browser() {
    let web = Web::start();
    let site = web.site("app.example");
    site.serve(
        "/",
        page("App")
            .field("name", "Nobody")
            .link("#/user/3")
            .link("#!")
            .link("/team#/user/4")
            .link("/team#/user/5"),
    )
    .serve(
        "/team",
        page("Team").field("name", "Nobody").link("/imprint"),
    )
    .serve("/imprint", page("Imprint"));
    let work = Workplace::new();
    let seeds = write_two_people(&work, &site.url("/"));
    let run = work
        .crawl(&web)
        .args(["--follow", "all", "--depth", "2"])
        .arg("--seeds")
        .arg(seeds)
        .arg(site.url("/#top"))
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(
        summary.skipped_count("fragment_route"),
        5,
        "{}",
        summary.json
    );
    assert_eq!(
        summary.records(),
        (2, 0),
        "no record gets the landing page's value"
    );
    let mut fetched = site.visits().pages().paths();
    fetched.sort();
    let expected = ["/", "/imprint", "/team"].map(|path| format!("app.example{path}"));
    assert_eq!(
        fetched, expected,
        "the pages of routes are pages, once each"
    );
}

#[needs(chromium)]
#[test]
fn a_route_in_a_fragment_is_a_page_of_its_own_in_the_browser() {
    let web = Web::start();
    let site = web.site("app.example");
    let script = "<p class=name></p><script>
        document.querySelector('.name').textContent = 'Person ' + location.hash.split('/')[2]</script>";
    site.serve("/", page("App").html(script));
    let work = Workplace::new();
    let seeds = write_two_people(&work, &site.url("/"));
    let run = work
        .crawl(&web)
        .args(["--lane", "browser"])
        .replace_flag("--workers", "1")
        .env("WEBFILL_BROWSER_SANDBOX", "false")
        .time_limit(Duration::from_secs(120))
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().records(), (2, 2), "{}", run.summary().json);
    for id in ["1", "2"] {
        assert_eq!(
            work.stored().record(id).fields["name"],
            format!("Person {id}")
        );
    }
}
