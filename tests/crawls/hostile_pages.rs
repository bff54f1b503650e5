//! Tests hostile pages: each ends with its expected outcome, the crawl ends, and all other pages are fetched.

use std::time::Duration;

use webfill_test_needs::needs;
use webfill_tests::isolation::run_isolated;
use webfill_tests::site::hostile::{HostilePage, hostile_pages};
use webfill_tests::site::{ConnectionPolicy, Web, page, script, status};
use webfill_tests::workplace::Workplace;

const MIB: u64 = 1 << 20;

#[needs(namespaces)]
#[test]
fn every_hostile_page_ends_in_its_outcome() {
    // The network is isolated, because some pages name addresses that this machine must not contact.
    run_isolated(
        "hostile_pages::every_hostile_page_ends_in_its_outcome",
        || {
            let web = Web::start();
            let work = Workplace::new();
            let pages = hostile_pages();
            let mut urls: Vec<String> = pages.iter().map(HostilePage::url).collect();
            for hostile in &pages {
                let site = web.site(&hostile.host());
                // The connection is closed after each answer, so no request is repeated because a kept-alive connection
                // was lost.
                site.serve("/robots.txt", status(404).header("connection", "close"));
                site.serve("/", hostile.reply.clone());
            }
            let good = web.site("good.example");
            good.serve_otherwise(|_| page("leaf").into());
            good.serve(
                "/",
                (0..10).fold(page("root"), |page, leaf| {
                    page.mapped_link(&format!("/{leaf}"))
                }),
            );
            urls.push(good.url("/"));
            let seeds = work.write("seeds.txt", urls.join("\n"));
            let mut run = work
                .crawl(&web)
                .arg("--config")
                .arg(work.write_short_timeouts())
                .args(["--depth", "1"])
                .arg("--seeds")
                .arg(seeds)
                .start();
            let workers = run.wait_for_role("worker", 2);
            let peak = std::cell::Cell::new(0);
            run.wait_until("every hostile page was asked", |_| {
                peak.set(peak.get().max(peak_memory(&workers)));
                web.visits().pages().hosts().len() > pages.len()
            });
            peak.set(peak.get().max(peak_memory(&workers)));
            let run = run.finish().expect_code(0);

            let stored = work.stored().pages();
            let mut faults = Vec::new();
            for hostile in &pages {
                let Some(page) = stored.get(&hostile.url()) else {
                    faults.push(format!("{}: not stored", hostile.name));
                    continue;
                };
                let right_status = hostile
                    .status_code
                    .is_none_or(|status| page.status_code == Some(status));
                if !hostile.outcomes.contains(&page.outcome.as_str()) || !right_status {
                    let (outcome, status) = (&page.outcome, page.status_code);
                    faults.push(format!(
                        "{}: {outcome} ({status:?}), right: {:?}",
                        hostile.name, hostile.outcomes
                    ));
                }
            }
            assert!(faults.is_empty(), "{}", faults.join("\n"));
            let good_pages = stored.values().filter(|page| page.site == "good.example");
            assert_eq!(good_pages.filter(|page| page.outcome == "ok").count(), 11);
            assert_eq!(run.summary().tasks(), stored.len() as u64);
            let peak_mib = peak.get() / MIB;
            assert!(peak_mib < 400, "a worker took {peak_mib} MiB");

            let visits = web.visits();
            visits.pages().assert_polite(Duration::from_millis(200));
            let unread = visits.for_host("unsupported-and-endless.example").pages();
            assert!(
                unread.0[0].sent_bytes < 16 * MIB,
                "the body of an unsupported type is not read"
            );
            let restarted = work
                .stored()
                .query_number("SELECT count(*) FROM pages WHERE outcome = 'crashed'");
            assert_eq!(restarted, 0, "no page kills a worker");
        },
    );
}

fn peak_memory(processes: &[webfill_tests::process::Process]) -> u64 {
    processes
        .iter()
        .map(|process| process.peak_bytes())
        .max()
        .unwrap_or(0)
}

#[test]
fn a_server_that_drops_every_connection_is_an_outcome() {
    let web = Web::start();
    let closing = web.site_with_policy("127.0.11.1", ConnectionPolicy::Close);
    let resetting = web.site_with_policy("127.0.11.2", ConnectionPolicy::Reset);
    let work = Workplace::new();
    // If robots.txt gets no answer, the pages of the site are not requested.
    let urls = [closing.url("/"), resetting.url("/")];
    let run = work.crawl(&web).args(&urls).finish().expect_code(0);
    assert_eq!(run.summary().outcome_count("robots_unreachable"), 2);
    let unasked = work
        .crawl(&web)
        .replace_flag("--crawl", "without")
        .arg("--ignore-robots")
        .args(&urls)
        .finish()
        .expect_code(0);
    assert_eq!(unasked.summary().outcome_count("network_error"), 2);
    assert_eq!(unasked.summary().pages(), 0);
}

#[test]
fn a_refused_connection_is_an_outcome() {
    let web = Web::start();
    let listener = std::net::TcpListener::bind("127.0.11.3:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .args(["--ignore-robots", &format!("http://{address}/")])
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("network_error"), 1);
}

#[test]
fn bytes_after_a_body_that_is_too_long_are_not_taken_for_an_answer() {
    let web = Web::start();
    let site = web.site("smuggle.example");
    let evil =
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<h1>evil</h1>";
    let first =
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 14\r\n\r\n<h1>first</h1>";
    site.serve(
        "/first",
        script().send(format!("{first}{evil}")).hold_open(),
    );
    site.serve("/second", page("second"));
    let work = Workplace::new();
    work.crawl(&web)
        .args([site.url("/first"), site.url("/second")])
        .finish()
        .expect_code(0);
    let pages = work.stored().pages();
    assert_eq!(
        pages["http://smuggle.example/first"].fields["title"],
        "first"
    );
    assert_eq!(
        pages["http://smuggle.example/second"].fields["title"],
        "second"
    );
}

#[test]
fn two_hundred_thousand_links_are_judged_and_counted() {
    let web = Web::start();
    let site = web.site("links.example");
    let links: String = (0..200_000)
        .map(|n| format!("<a href=/{n}>n</a>"))
        .collect();
    site.serve("/", page("T").html(links));
    let work = Workplace::new();
    let args = ["--follow", "all", "--deny-regex", "/[0-9]+$"];
    let run = work
        .crawl(&web)
        .args(args)
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert!(summary.links() >= 1_000, "{}", summary.json);
    assert_eq!(
        summary.skipped_count("denied_pattern"),
        summary.links(),
        "{}",
        summary.json
    );
    assert_eq!(web.visits().pages().len(), 1);
}

#[test]
fn text_of_a_page_is_stored_as_it_is_and_never_obeyed() {
    let web = Web::start();
    let site = web.site("names.example");
    let name = "'; DROP TABLE pages; -- $where {\"$ne\": null} \u{1F600} \u{202E}abc";
    site.serve("/", page("T").field("name", &name.replace('<', "&lt;")));
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/")).finish().expect_code(0);
    assert_eq!(
        work.stored().pages()["http://names.example/"].fields["name"],
        name
    );
}
