//! Sites whose URLs have no end: session ids, links that are relative to the wrong folder.

use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

fn deep_crawl(work: &Workplace, web: &Web) -> Run {
    work.crawl_without_delay(web)
        .args(["--delay", "0.01", "--depth", "1000", "--follow", "all"])
}

/// The number of a request's query, such as `?sid=7`.
fn number(path: &str) -> u32 {
    let digits = path.rsplit('=').next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[test]
fn a_branch_that_only_repeats_itself_is_slowed_down() {
    let web = Web::start();
    let session = web.site("session.example");
    session.otherwise(|request| {
        let sid = number(&request.path);
        let links = format!(
            "<p>Welcome, {sid}</p><a href='/p?sid={}'>on</a> <a href='/q?sid={}'>on</a>",
            2 * sid + 1,
            2 * sid + 2
        );
        page("Shop").html(links).into()
    });
    let folders = web.site("folders.example");
    folders.otherwise(|request| {
        let text = format!("<p>{} bytes</p><a href='next/'>on</a>", request.path.len());
        page("Not here").html(text).into()
    });
    let work = Workplace::new();
    let run = deep_crawl(&work, &web)
        .args([session.url("/p?sid=0"), folders.url("/next/")])
        .finish()
        .expect(0);
    let summary = run.summary();
    let fetched = [&session, &folders].map(|site| site.visits().pages().len());
    assert!(fetched[0] < 60 && fetched[1] < 20, "{fetched:?}");
    assert!(summary.reason("repeated_page") > 1, "{}", summary.json);
    let logs = work.logs();
    for host in ["session.example", "folders.example"] {
        let mut lines = logs.values().flatten();
        let is_said = lines.any(|line| line["event"] == "branch_slowed" && line["site"] == host);
        assert!(is_said, "{host}");
    }
}

#[test]
fn lists_calendars_and_comics_are_followed_to_their_end() {
    let web = Web::start();
    let (list, strips) = (web.site("list.example"), web.site("strips.example"));
    list.otherwise(|request| {
        let at = number(&request.path);
        let items = format!("<p>Items {at} to {}</p>", at + 10);
        let next = format!("<a href='/list?page={}'>next</a>", at + 1);
        page("List")
            .html(items)
            .html(if at < 40 { next } else { String::new() })
            .into()
    });
    strips.otherwise(|request| {
        let at = number(&request.path);
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
        .expect(0);
    assert_eq!(run.summary().outcome("ok"), 82, "{}", run.summary().json);
    assert_eq!(run.summary().reason("repeated_page"), 0);
}
