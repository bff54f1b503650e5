//! Tests answers that violate the standards. They are read as browsers and curl read them, or rejected as a whole. No
//! part of a rejected answer is read as a page.

use std::collections::BTreeSet;

use webfill_tests::site::odd_answers::{TITLE, odd_answers};
use webfill_tests::site::{Web, status};
use webfill_tests::workplace::Workplace;

#[test]
fn every_odd_answer_is_read_whole_or_refused() {
    let web = Web::start();
    let work = Workplace::new();
    let answers = odd_answers();
    let names: BTreeSet<&str> = answers.iter().map(|answer| answer.name).collect();
    assert_eq!(names.len(), answers.len(), "each has a host of its own");
    let mut urls = Vec::new();
    for answer in &answers {
        let site = web.site(&answer.host());
        // The connection is closed after each answer, so each page is fetched on a new connection.
        site.serve("/robots.txt", status(404).header("connection", "close"));
        site.serve("/", answer.reply.clone());
        urls.push(site.url("/"));
    }
    let seeds = work.write("seeds.txt", urls.join("\n"));
    let run = work.crawl(&web).replace_flag("--delay", "0.01");
    run.arg("--seeds").arg(seeds).finish().expect_code(0);
    let pages = work.stored().pages();
    let mut faults = Vec::new();
    for answer in &answers {
        let page = &pages[&format!("http://{}/", answer.host())];
        let title = page.fields.get("title").and_then(|title| title.as_str());
        let expected = (answer.outcome == "ok").then_some(TITLE);
        if page.outcome != answer.outcome || title != expected {
            faults.push(format!(
                "{}: {} with {title:?}, right: {}",
                answer.name, page.outcome, answer.outcome
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
