//! Tests crawls in the lane `http` with pages that are empty without their scripts. The access log of the site shows
//! which pages were rendered, because only a browser requests a page's script.

use std::time::Duration;

use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Page, Site, Web, document, page};
use webfill_tests::stored::Stored;
use webfill_tests::workplace::{Workplace, profile_mapping};

/// The delay between two requests to a site in [`Workplace::crawl`].
const DELAY: Duration = Duration::from_millis(200);

/// A page of an application. Without its scripts it contains only their empty root element.
const SHELL: &str = "<!doctype html><html><head><title>Shop</title></head><body>
    <noscript>You need to enable JavaScript to run this app.</noscript>
    <div id=root></div><script src=/app.js></script></body></html>";

/// The script that fills the page. It reads the data of `/people/N` from `/data/N.json`.
const APP: &str = "const id = location.pathname.split('/').pop();
    fetch('/data/' + id + '.json').then(answer => answer.json()).then(data => {
        document.getElementById('root').innerHTML =
            `<h1>${data.title}</h1><p class=name>${data.name}</p><a rel=me href='${data.next}'>next</a>`;
    });";

/// A crawl in the lane `http` on a machine with a browser. Chromium's sandbox is off, because it does not work for
/// root.
fn crawl_command(work: &Workplace, web: &Web) -> Run {
    work.crawl(web)
        .env("WEBFILL_BROWSER_SANDBOX", "false")
        .replace_flag("--workers", "1")
        .time_limit(Duration::from_secs(240))
}

fn html_page(text: impl Into<String>) -> Page {
    document("text/html", text.into())
}

/// Serves pages about this many people that are filled by a script. Each page links to the next one.
fn serve_application(site: &Site, people: usize) {
    site.serve("/app.js", document("text/javascript", APP));
    for n in 1..=people {
        let data = json!({
            "title": format!("Person {n}"), "name": format!("Ada the {n}th"),
            "next": format!("/people/{}", n % people + 1),
        });
        site.serve(&format!("/people/{n}"), html_page(SHELL));
        let path = format!("/data/{n}.json");
        site.serve(&path, document("application/json", data.to_string()));
    }
}

/// Serves pages of the same content as [`serve_application`], but made by the server. Their script only counts readers.
fn serve_pages(site: &Site, people: usize) {
    for n in 1..=people {
        let next = n % people + 1;
        let text = format!(
            "<body><div id=root><h1>Person {n}</h1><p class=name>Ada the {n}th</p>
            <p>Nobody knows how old she is, nor where she lives, though many have asked her for it, and still do.</p>
            <a rel=me href='/people/{next}'>next</a></div><script src=/app.js></script></body>"
        );
        site.serve(&format!("/people/{n}"), html_page(text));
    }
    site.serve("/app.js", document("text/javascript", "fetch('/count')"));
}

/// The number of requests to the site that came from a browser.
fn count_browser_requests(site: &Site) -> usize {
    let visits = site.visits();
    visits
        .paths()
        .iter()
        .filter(|path| !path.contains("/people/") && !path.ends_with("robots.txt"))
        .count()
}

fn assert_filled(work: &Workplace, site: &Site, people: usize) {
    let pages = work.stored().pages();
    for n in 1..=people {
        let page = &pages[&site.url(&format!("/people/{n}"))];
        let expected = json!({"title": format!("Person {n}"), "name": format!("Ada the {n}th")});
        let fields = Value::from(page.fields.clone());
        assert_eq!(
            (&*page.outcome, fields),
            ("ok", expected),
            "{} {n}",
            site.url("")
        );
    }
}

#[needs(chromium)]
#[test]
fn pages_that_scripts_make_are_rendered_and_no_others() {
    let web = Web::start();
    let (made, served) = (web.site("made.example"), web.site("served.example"));
    serve_application(&made, 4);
    serve_pages(&served, 4);
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .args([
            "--depth",
            "4",
            &made.url("/people/1"),
            &served.url("/people/1"),
        ])
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(summary.outcome_count("ok"), 8, "{}", summary.json);
    assert_eq!(
        summary.tasks(),
        8,
        "each page is counted once: {}",
        summary.json
    );
    assert_eq!(summary.fields(), 16);
    assert_filled(&work, &made, 4);
    assert_filled(&work, &served, 4);
    assert_eq!(
        count_browser_requests(&served),
        0,
        "{:?}",
        served.visits().counts()
    );
    let visits = made.visits();
    visits.assert_polite(DELAY);
    let counts = visits.counts();
    for n in 1..=4 {
        assert_eq!(counts[&format!("made.example/people/{n}")], 1, "{counts:?}");
        assert_eq!(
            counts[&format!("made.example/data/{n}.json")],
            1,
            "{counts:?}"
        );
    }
    let reported = &summary.json["scripts"]["rendered"];
    assert_eq!(
        (&reported["sites"], &reported["first"][0]["site"]),
        (&json!(1), &json!("made.example"))
    );
    let seen = reported["first"][0]["seen"].as_str().unwrap();
    assert!(
        seen.contains("#root") && seen.contains("scripts fill title, name"),
        "{seen}"
    );
    assert_eq!(summary.json["scripts"]["needs_browser"]["sites"], 0);
}

#[needs(chromium)]
#[test]
fn pages_that_are_empty_in_a_browser_too_are_rendered_only_as_a_sample() {
    let web = Web::start();
    let site = web.site("mute.example");
    let text = "<body><p>A text in which the mapping finds nothing at all.</p><script src=/app.js></script></body>";
    for n in 1..=8 {
        site.serve(&format!("/people/{n}"), html_page(text));
    }
    let counting = "fetch('/count/' + location.pathname.split('/').pop())";
    site.serve("/app.js", document("text/javascript", counting));
    site.serve("/shell", html_page(SHELL));
    let work = Workplace::new();
    let urls = (1..=8).map(|n| site.url(&format!("/people/{n}")));
    let run = crawl_command(&work, &web)
        .args(["--depth", "0"])
        .args(urls)
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 8);
    let tried = site
        .visits()
        .paths()
        .iter()
        .filter(|path| path.contains("/count/"))
        .count();
    assert_eq!(tried, 3, "{:?}", site.visits().counts());
    site.visits().assert_polite(DELAY);
    let scripts = &run.summary().json["scripts"];
    assert_eq!(
        (
            &scripts["rendered"]["sites"],
            &scripts["needs_browser"]["sites"]
        ),
        (&json!(0), &json!(0))
    );
}

#[needs(chromium)]
#[test]
fn a_mapping_or_a_setting_takes_precedence_over_detection() {
    let web = Web::start();
    let names = [
        "mapped.example",
        "never.example",
        "rule.example",
        "not.example",
        "off.example",
    ];
    let sites = names.map(|name| web.site(name));
    for site in &sites {
        serve_application(site, 1);
    }
    let run = |work: &Workplace, auto: &str, sites: &[&Site]| {
        let urls = sites.iter().map(|site| site.url("/people/1"));
        crawl_command(work, &web)
            .args(["--depth", "0"])
            .args(urls)
            .env("WEBFILL_BROWSER_AUTO", auto)
            .env("WEBFILL_BROWSER_SITES", "rule.example")
            .env("WEBFILL_BROWSER_NOT_SITES", "not.example")
            .finish()
            .expect_code(0);
    };
    let work = Workplace::new();
    let with_lane = |name: &str, host: &str, lane: &str| {
        let mut mapping = profile_mapping();
        mapping["name"] = name.into();
        mapping["lane"] = lane.into();
        mapping["url_patterns"] = json!([{"type": "host", "pattern": host}]);
        mapping
    };
    work.write_json(
        "mappings/a.json",
        &with_lane("a", "mapped.example", "browser"),
    );
    work.write_json("mappings/b.json", &with_lane("b", "never.example", "http"));
    let [mapped, never, rule, not, off] = &sites;
    run(&work, "true", &[mapped, never, rule, not]);
    for site in [mapped, rule] {
        assert_filled(&work, site, 1);
    }
    for site in [never, not] {
        assert_eq!(count_browser_requests(site), 0);
        assert!(
            work.stored().pages()[&site.url("/people/1")]
                .fields
                .is_empty()
        );
    }
    let switched_off = Workplace::new();
    run(&switched_off, "false", &[off, rule]);
    assert_eq!(count_browser_requests(off), 0);
    assert_filled(&switched_off, rule, 1);
}

#[test]
fn without_a_browser_the_summary_says_which_sites_need_one() {
    let web = Web::start();
    let (made, served) = (web.site("made.example"), web.site("served.example"));
    serve_application(&made, 3);
    serve_pages(&served, 3);
    let work = Workplace::new();
    let urls = (1..=3).flat_map(|n| [&made, &served].map(|site| site.url(&format!("/people/{n}"))));
    let run = work
        .crawl(&web)
        .env("WEBFILL_BROWSER_COMMAND", "/no/such/browser")
        .args(["--depth", "0"])
        .args(urls)
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(
        (summary.outcome_count("ok"), summary.tasks()),
        (6, 6),
        "{}",
        summary.json
    );
    assert_eq!(count_browser_requests(&made), 0);
    let reported = &summary.json["scripts"]["needs_browser"];
    assert_eq!(
        (&reported["sites"], &reported["first"][0]["site"]),
        (&json!(1), &json!("made.example"))
    );
    assert_filled(&work, &served, 3);
}

#[needs(chromium)]
#[test]
fn a_browser_that_does_not_start_loses_no_page() {
    let web = Web::start();
    let site = web.site("made.example");
    serve_application(&site, 3);
    let work = Workplace::new();
    let urls = (1..=3).map(|n| site.url(&format!("/people/{n}")));
    let run = crawl_command(&work, &web)
        .env("WEBFILL_BROWSER_COMMAND", "/bin/false")
        .args(["--depth", "0"])
        .args(urls)
        .finish()
        .expect_code(0);
    assert_eq!(
        run.summary().outcome_count("ok"),
        3,
        "{}",
        run.summary().json
    );
    assert_eq!(run.summary().json["scripts"]["needs_browser"]["sites"], 1);
}

#[needs(chromium)]
#[test]
fn the_stored_body_of_a_page_is_the_rendered_one() {
    let web = Web::start();
    let site = web.site("made.example");
    serve_application(&site, 2);
    let work = Workplace::new();
    let urls = (1..=2).map(|n| site.url(&format!("/people/{n}")));
    let run = crawl_command(&work, &web)
        .args(["--depth", "0", "--changes", "--keep-bodies"])
        .args(urls)
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().tasks(), 2, "{}", run.summary().json);
    assert_filled(&work, &site, 2);
    let counts = site.visits().counts();
    for n in 1..=2 {
        assert_eq!(counts[&format!("made.example/people/{n}")], 1, "{counts:?}");
    }
    let bodies = Stored::open(&work.path("store.db.bodies"));
    let kept = |is_rendered| {
        let sql = format!("SELECT count(*) FROM bodies WHERE is_rendered = {is_rendered}");
        bodies.query_number(&sql)
    };
    assert_eq!((kept(1), kept(0)), (2, 0));
}

/// This test prints measurements, which `tests/bench/run.sh scripts` shows.
#[needs(chromium)]
#[test]
fn of_twenty_sites_only_the_six_that_scripts_make_are_rendered() {
    const PEOPLE: usize = 6;
    let web = Web::start();
    let made: Vec<Site> = (0..6)
        .map(|n| web.site(&format!("made{n}.example")))
        .collect();
    let served: Vec<Site> = (0..14)
        .map(|n| web.site(&format!("served{n}.example")))
        .collect();
    for site in &made {
        serve_application(site, PEOPLE);
    }
    for (n, site) in served.iter().enumerate() {
        serve_pages(site, PEOPLE);
        if n % 2 == 0 {
            // This page stays empty, whether its script runs or not.
            site.serve("/people/7", page("").html("<script src=/app.js></script>"));
        }
    }
    let work = Workplace::new();
    let all = made.iter().chain(&served);
    let urls = all.flat_map(|site| (1..=PEOPLE + 1).map(|n| site.url(&format!("/people/{n}"))));
    let run = crawl_command(&work, &web)
        .args(["--depth", "0"])
        .args(urls)
        .finish()
        .expect_code(0);
    for site in made.iter().chain(&served) {
        assert_filled(&work, site, PEOPLE);
        site.visits().assert_polite(DELAY);
    }
    let asked: Vec<usize> = served.iter().map(count_browser_requests).collect();
    // A page that is rendered as a sample requests its script and then the counter of readers: two requests.
    let expected: Vec<usize> = (0..14).map(|n| if n % 2 == 0 { 2 } else { 0 }).collect();
    assert_eq!(asked, expected);
    let values = run.summary().fields();
    println!(
        "scripts: {values} values of {} pages; requests of a browser at the 14 sites: {}, at the 6: {}",
        run.summary().outcome_count("ok"),
        asked.iter().sum::<usize>(),
        made.iter().map(count_browser_requests).sum::<usize>(),
    );
    assert_eq!(values as usize, 20 * PEOPLE * 2);
}

/// `webfill site` sets the lane in the state folder of a local crawl, between two runs of the crawl.
#[needs(chromium)]
#[test]
fn a_lane_that_is_set_for_a_site_holds_for_the_next_run() {
    let web = Web::start();
    let made = web.site("made.example");
    serve_application(&made, 4);
    let work = Workplace::new();
    let run = |n: usize| {
        crawl_command(&work, &web)
            .args(["--depth", "0", &made.url(&format!("/people/{n}"))])
            .finish()
            .expect_code(0);
        let page = &work.stored().pages()[&made.url(&format!("/people/{n}"))];
        !page.fields.is_empty()
    };
    let set = |lane: &str| {
        let site = Run::new(["site", "made.example", "--json", "--lane", lane, "--state"]);
        let site = site.arg(work.path("state")).finish().expect_code(0);
        let answer: Value = serde_json::from_str(&site.stdout).unwrap();
        assert_eq!(answer["lane"], lane, "{answer}");
    };
    assert!(run(1), "an unread page is rendered");
    let before = count_browser_requests(&made);
    set("http");
    assert!(!run(2), "none of its pages is rendered");
    assert_eq!(count_browser_requests(&made), before);
    set("browser");
    assert!(run(3), "each of its pages is");
    set("auto");
    assert!(run(4), "it is known that scripts fill them");
}

#[needs(chromium)]
#[test]
fn a_run_that_is_resumed_renders_no_new_sample() {
    let web = Web::start();
    let empty = web.site("empty.example");
    empty.serve_otherwise(|request| match request.path.as_str() {
        "/app.js" => document("text/javascript", "1")
            .header("cache-control", "no-store")
            .into(),
        _ => html_page(SHELL).into(),
    });
    let work = Workplace::new();
    let run = |pages: std::ops::Range<usize>| {
        let urls: Vec<String> = pages.map(|n| empty.url(&format!("/people/{n}"))).collect();
        crawl_command(&work, &web)
            .args(["--depth", "0"])
            .args(&urls)
            .finish()
            .expect_code(0);
        count_browser_requests(&empty)
    };
    assert_eq!(run(0..1), 1);
    assert_eq!(run(1..6), 3, "the sample of three continues");
    assert_eq!(run(6..9), 3, "and is over");
}
