//! Tests the overview while a crawl runs.

use serde_json::Value;
use webfill_test_browser::Browser;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

use crate::fleet::{Fleet, wait_for};
use crate::http::Visitor;

#[test]
fn a_crawl_whose_process_was_killed_is_not_shown_as_running() {
    let (work, web) = (Workplace::new(), Web::start());
    let site = web.site("langsam.example");
    site.serve_otherwise(|_| page("Langsam").into());
    let urls: Vec<String> = (0..60).map(|n| site.url(&format!("/{n}"))).collect();
    let seeds = work.write("seeds.txt", urls.join("\n"));
    let mut crawl = work
        .crawl_without_delay(&web)
        .args(["--delay", "1", "--seeds"])
        .arg(seeds)
        .start();
    crawl.wait_until("some pages were fetched", |_| {
        site.visits().pages().len() > 2
    });
    // This kills all processes of the crawl.
    drop(crawl);

    let [.., high, low] = std::process::id().to_be_bytes();
    let place = format!("127.149.{high}.{low}:8081");
    let store = format!("sqlite:{}", work.path("store.db").display());
    let mut dashboard = Run::new(["dashboard", "--store", &store, "--listen", &place]).start();
    dashboard.wait_for_stderr("ready");
    let visitor = Visitor::of(&place);
    wait_for("the dead process is noticed", || {
        let overview = visitor.get("/dashboard/").body;
        assert!(!overview.contains("All clear"), "{overview}");
        overview
            .contains("its process has died or hangs")
            .then_some(())
    });
    for path in ["/dashboard/crawl/local/test", "/dashboard/crawls"] {
        let body = visitor.get(path).body;
        assert!(body.contains("state warn\">interrupted<"), "{path}: {body}");
        assert!(!body.contains("state live\">running<"), "{path}: {body}");
    }
}

#[test]
fn a_mapping_with_too_few_pages_is_not_shown_as_all_clear() {
    let fleet = Fleet::unstarted();
    let site = fleet.web.site("people.example");
    site.serve("/ada", page("Ada").field("name", "Ada Lovelace"));
    let record =
        serde_json::json!({"id": "1", "urls": [site.url("/ada")], "fields": {"name": null}});
    fleet.crawl_records("first", "people", &[record]);
    let (_dashboard, visitor) = crate::records::start_dashboard(&fleet);
    let overview = wait_for("the store is read", || {
        let overview = visitor.get("/dashboard/").body;
        overview.contains("profile").then_some(overview)
    });
    let said = "<strong>No alerts.</strong> Not known yet: <a href=\"/dashboard/mappings\">1 mapping</a> (too few pages read).";
    assert!(overview.replace("&#x2f;", "/").contains(said), "{overview}");
    for green in ["All clear", "message good", "state good"] {
        assert!(!overview.contains(green), "{green}: {overview}");
    }
}

#[test]
fn an_empty_store_is_not_shown_as_all_clear() {
    let fleet = Fleet::start();
    let (_dashboard, visitor) = crate::records::start_dashboard(&fleet);
    wait_for("the store is read", || {
        let overview = visitor.get("/dashboard/").body;
        assert!(!overview.contains("message good"), "{overview}");
        overview.contains("Nothing to judge yet").then_some(())
    });
}

/// The events named `snapshot` in a stream of events: their numbers and contents.
fn parse_snapshots(text: &str) -> Vec<(u64, Value)> {
    let events = text
        .split("\n\n")
        .filter(|event| event.contains("event: snapshot"));
    let snapshot = |event: &str| {
        let line = |name: &str| {
            let mut lines = event.lines().filter_map(|line| line.strip_prefix(name));
            lines.next().map(str::to_owned)
        };
        let number = line("id: ")?.parse().ok()?;
        Some((number, serde_json::from_str(&line("data: ")?).ok()?))
    };
    events.filter_map(snapshot).collect()
}

fn snapshot_contains(snapshot: &Value, text: &str) -> bool {
    snapshot["html"]
        .as_str()
        .is_some_and(|html| html.contains(text))
}

#[test]
fn a_listener_gets_the_whole_content_as_it_changes() {
    let fleet = Fleet::start();
    fleet.feed_pages("a.example", "monday", 60);
    let visitor = fleet.visitor();
    let reported = visitor.listen("/dashboard/live", |text| {
        let mut snapshots = parse_snapshots(text);
        snapshots.retain(|(_, snapshot)| snapshot_contains(snapshot, "testapp / monday"));
        (snapshots.len() >= 3).then_some(snapshots)
    });
    for pair in reported.windows(2) {
        assert!(pair[0].0 < pair[1].0, "events are numbered upwards");
        assert_ne!(
            pair[0].1["html"], pair[1].1["html"],
            "and say something new"
        );
    }
    for (_, snapshot) in &reported {
        let html = snapshot["html"].as_str().expect("markup");
        assert!(
            html.contains("testapp / monday") && html.contains("id=\"pages\""),
            "{html}"
        );
        assert!(!html.contains("<script"), "{html}");
    }
    // A visitor that connects later, or again, immediately gets a complete snapshot.
    let again = visitor.listen("/dashboard/live", |text| {
        parse_snapshots(text).into_iter().next()
    });
    assert!(
        again.1["html"]
            .as_str()
            .expect("markup")
            .contains("testapp / monday")
    );
}

#[test]
fn listeners_beyond_the_limit_are_refused_until_others_leave() {
    let fleet = Fleet::start();
    let visitor = fleet.visitor();
    let listening: Vec<_> = (0..24)
        .map(|_| visitor.open_stream("/dashboard/live"))
        .collect();
    wait_for("no place is left", || {
        (visitor.get("/dashboard/live").status == 503).then_some(())
    });
    assert_eq!(
        visitor.get("/dashboard/").status,
        200,
        "pages are shown all the same"
    );
    drop(listening);
    wait_for("a place is free again", || {
        let mut text = String::new();
        visitor.listen("/dashboard/live", |so_far| {
            so_far.clone_into(&mut text);
            so_far.contains("\r\n\r\n").then_some(())
        });
        text.starts_with("HTTP/1.1 200").then_some(())
    });
}

#[test]
fn metrics_over_time_outlive_the_dispatcher() {
    let mut fleet = Fleet::start();
    fleet.feed_pages("a.example", "monday", 150);
    let visitor = fleet.visitor();
    let noted = || {
        wait_for("a sample is noted", || {
            let metrics = visitor.get("/dashboard/charts?hours=3").body;
            let metrics: Value = serde_json::from_str(&metrics).ok()?;
            (!metrics["at"].as_array()?.is_empty()).then_some(metrics)
        })
    };
    let before = noted();
    // The first point in time has only rates, so only the last values are checked.
    let last = |list: &Value| list.as_array().and_then(|all| all.last().cloned());
    for figure in [
        last(&before["queued"]),
        last(&before["pages_per_second"]),
        last(&before["ended"]["ok"]),
    ] {
        let figure = figure.and_then(|figure| figure.as_f64());
        assert!(figure > Some(0.0), "{before}");
    }
    // The chart already contains the present counts, which are written to the history a moment later.
    let history = fleet.work.path("state/dispatcher/dashboard-history.jsonl");
    wait_for("a sample is recorded", || {
        let recorded = std::fs::read_to_string(&history).unwrap_or_default();
        recorded.contains('\n').then_some(())
    });
    fleet.kill_dispatcher();
    fleet.start_dispatcher();
    assert_eq!(noted()["at"][0], before["at"][0]);
}

#[needs(chromedriver)]
#[test]
fn the_page_changes_by_itself_and_says_when_it_is_not_live() {
    let mut fleet = Fleet::start();
    fleet.feed_pages("a.example", "monday", 300);
    let browser = Browser::start();
    browser.set_time_zone("Asia/Tokyo");
    browser.open(&fleet.url("/"));
    assert_eq!(browser.address(), fleet.url("/dashboard/"));
    let pages = || {
        let shown = browser.text_at("#pages")?;
        shown.replace('\u{a0}', "").parse::<u64>().ok()
    };
    let first = browser.wait_until("pages are counted", || pages().filter(|pages| *pages > 0));
    browser.wait_until("the figure changes", || {
        pages().filter(|pages| *pages > first)
    });
    browser.wait_until("it is live", || {
        browser.page_text().contains("Live.").then_some(())
    });
    assert!(
        browser.page_text().contains("Asia/Tokyo"),
        "{}",
        browser.page_text()
    );
    browser.wait_until("charts are drawn", || browser.find("#charts canvas"));
    browser.screenshot("first-snapshot");
    browser.set_prefers_dark(true);
    browser.screenshot("first-snapshot-dark");

    // The focused element keeps the focus while the page changes.
    browser.run_script(
        "document.querySelector('#snapshot h3 a').focus()",
        serde_json::json!([]),
    );
    let before = pages();
    browser.wait_until("the figure changes again", || {
        pages().filter(|pages| Some(*pages) > before)
    });
    let focused = browser.run_script(
        "return document.activeElement.textContent",
        serde_json::json!([]),
    );
    assert_eq!(focused, "testapp / monday");

    fleet.kill_dispatcher();
    browser.wait_until("it says that it is not live", || {
        browser.page_text().contains("Not live").then_some(())
    });
    fleet.start_dispatcher();
    browser.wait_until("it is live again", || {
        browser.page_text().contains("Live.").then_some(())
    });

    let asked = browser.requested_urls();
    let foreign = asked
        .iter()
        .filter(|url| !url.starts_with(&fleet.url("/")) && !url.starts_with("data:"));
    assert_eq!(foreign.collect::<Vec<_>>(), Vec::<&String>::new());
    let faults: Vec<String> = browser
        .take_console()
        .into_iter()
        .filter(|said| said.contains("Content Security Policy") || said.contains("Uncaught"))
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
}

/// The first and the last time of the charts, as the browser shows them.
fn shown_span(browser: &Browser) -> [f64; 2] {
    let read =
        "return (document.getElementById('charts').dataset.shown ?? '').split(' ').map(Number)";
    let both = browser.run_script(read, serde_json::json!([]));
    serde_json::from_value(both).expect("two times")
}

#[needs(chromedriver)]
#[test]
fn a_brush_over_one_chart_zooms_into_all() {
    let fleet = Fleet::start();
    fleet.feed_pages("a.example", "monday", 300);
    let browser = Browser::start();
    browser.set_size(1440, 900);
    browser.open(&fleet.url("/dashboard/"));
    browser.wait_until("two charts have something to draw", || {
        (browser.find_all("#charts .u-over").len() > 1).then_some(())
    });
    let whole = shown_span(&browser);
    let place = "const over = document.querySelectorAll('#charts .u-over')[arguments[0]];
        over.scrollIntoView({block: 'center'}); const box = over.getBoundingClientRect();
        return [box.left, box.top, box.width, box.height];";
    let place = |chart: u32| -> [f64; 4] {
        let place = browser.run_script(place, serde_json::json!([chart]));
        serde_json::from_value(place).expect("a box")
    };
    let [left, top, width, height] = place(0);
    let at = |share: f64| ((left + share * width) as i64, (top + height / 2.0) as i64);
    browser.drag(at(0.25), at(0.75));
    browser.wait_for("#unzoom:not([hidden])");
    let [from, to] = shown_span(&browser);
    let part = (to - from) / (whole[1] - whole[0]);
    assert!((0.4..0.6).contains(&part), "{whole:?}, then {from} to {to}");
    // The other charts show the same span now. Dragging over one of them narrows the span again.
    let [left, top, width, height] = place(1);
    let at = |share: f64| ((left + share * width) as i64, (top + height / 2.0) as i64);
    browser.drag(at(0.0), at(0.5));
    browser.wait_until("it is narrower", || {
        let [again_from, again_to] = shown_span(&browser);
        let is_part = (again_from - from).abs() < part * 20.0 && again_to < to - 1.0;
        is_part.then_some(())
    });
    browser.wait_and_click("#unzoom");
    browser.wait_until("the whole span", || {
        let [from, to] = shown_span(&browser);
        (to - from >= whole[1] - whole[0]).then_some(())
    });
    assert!(browser.find("#unzoom[hidden]").is_some());
}

#[test]
fn the_charts_of_a_run_begin_with_it() {
    let fleet = Fleet::start();
    fleet.feed_pages("a.example", "short", 5);
    let visitor = fleet.visitor();
    let path = format!("/dashboard/crawl/{}/short", crate::fleet::APP);
    let chart = wait_for("the run is over, and in its charts", || {
        let text = visitor.get(&format!("{path}/charts")).body;
        let chart: Value = serde_json::from_str(&text).ok()?;
        let pages = chart["ended"]["ok"].as_array()?.last()?.as_f64()?;
        (pages > 0.0).then_some(chart)
    });
    let began = webfill_tests::stored::Stored::open(&fleet.work.path("store.db")).query_number(
        "SELECT CAST(strftime('%s', started_at) AS INTEGER) FROM crawls WHERE crawl_id = 'short'",
    );
    assert_eq!(chart["at"][0], began, "{chart}");
}

#[test]
fn the_timeline_of_a_site_begins_with_its_first_page() {
    let fleet = Fleet::start();
    fleet.feed_pages("a.example", "monday", 5);
    let visitor = fleet.visitor();
    wait_for("its pages are stored", || {
        let page = visitor.get("/dashboard/site/a.example").body;
        let (_, timeline) = page.split_once("id=\"timeline\"")?;
        let timeline = timeline.split("</section>").next()?;
        (timeline.contains("open") && timeline.contains("<time")).then_some(())
    });
}
