//! Tests that flags override the environment, and that the environment overrides the file, in every process of a crawl.

use std::time::Duration;

use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

/// The delay in the settings that must not take effect.
const OTHER_DELAY: Duration = Duration::from_secs(30);

/// Serves a site of two pages, so that the time between two requests can be measured.
fn serve_pair(web: &Web) {
    let site = web.site("a.example");
    site.serve("/", page("first").mapped_link("/second"));
    site.serve("/second", page("second"));
}

fn gap_between_pages(web: &Web) -> Duration {
    let gaps = web.visits().pages().gaps();
    assert_eq!(gaps.len(), 1, "two pages were fetched");
    gaps[0]
}

#[test]
fn flags_win_over_the_environment_and_the_environment_over_the_file() {
    let settings = "[politeness]\ndelay = 30.0\n";
    let others = |work: &Workplace| format!("sqlite:{}", work.path("other.db").display());

    let (web, work) = (Web::start(), Workplace::new());
    serve_pair(&web);
    let file = work.write("webfill.toml", settings);
    work.crawl(&web)
        .arg("http://a.example/")
        .arg("--config")
        .arg(file)
        .env("WEBFILL_STORE", others(&work))
        .env("WEBFILL_POLITENESS_DELAY", "30")
        .finish()
        .expect_code(0);
    assert!(gap_between_pages(&web) < OTHER_DELAY, "--delay counts");
    assert_eq!(work.stored().pages().len(), 2, "--store counts");
    assert!(!work.path("other.db").exists());

    let (web, work) = (Web::start(), Workplace::new());
    serve_pair(&web);
    let file = work.write("webfill.toml", settings);
    work.crawl_without_delay(&web)
        .arg("http://a.example/")
        .arg("--config")
        .arg(file)
        .env("WEBFILL_POLITENESS_DELAY", "0.2")
        .finish()
        .expect_code(0);
    assert!(gap_between_pages(&web) < OTHER_DELAY, "the variable counts");
}
