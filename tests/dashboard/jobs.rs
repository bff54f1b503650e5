//! Tests what people do with the dashboard, by keys alone in a real Chromium. The results are checked in the store and
//! in the access log. Each test prints the numbers of steps and keys, and the time. For doubts of tables, see
//! `tests/fill/review.rs`; for the repair of a mapping, see `editor/repairing.rs`.

use webfill_test_browser::{Browser, Keyboard};
use webfill_test_needs::needs;
use webfill_tests::stored::Stored;

use crate::fleet::{APP, DELAY, wait_for};
use crate::scene::{DATASET, LONG_CRAWL, LONG_SITE, Scene};

#[needs(chromedriver)]
#[test]
fn people_find_out_by_keys_why_a_record_is_incomplete() {
    let scene = Scene::new();
    let browser = Browser::start();
    browser.set_size(1440, 900);
    browser.open(&scene.fleet.url("/dashboard/"));
    let by = Keyboard::new(&browser);
    by.tab_to_and_enter("Data");
    by.wait_for_page("Records");
    by.skip_to_content();
    by.tab_to_and_enter(DATASET);
    by.wait_for_page("Records of");
    by.skip_to_content();
    by.tab_to("Id begins with");
    by.type_text("nirgends");
    by.press_as_step(&[webfill_test_browser::ENTER]);
    browser.wait_until("the list is searched", || {
        browser.address().contains("id=nirgends").then_some(())
    });
    by.skip_to_content();
    by.tab_to_and_enter("nirgends");
    browser.wait_for("#missing");
    by.print_report("find why a record is incomplete");
    let stored = Stored::open(&scene.fleet.work.path("store.db"));
    let outcome = stored.query_texts("SELECT outcome FROM pages WHERE url LIKE '%/fort'");
    let text = browser.page_text();
    assert_eq!(outcome, ["http_error"]);
    assert!(
        text.contains("ended in http_error") && text.contains("404"),
        "{text}"
    );
    assert!(text.contains("email"), "the missing field: {text}");
}

#[needs(chromedriver)]
#[test]
fn people_see_by_keys_why_a_crawl_is_slow() {
    let scene = Scene::new();
    let browser = Browser::start();
    browser.set_size(1440, 900);
    browser.open(&scene.fleet.url("/dashboard/"));
    browser.wait_until("the overview has the crawl", || {
        browser.page_text().contains(LONG_CRAWL).then_some(())
    });
    let by = Keyboard::new(&browser);
    by.skip_to_content();
    by.tab_to_and_enter(&format!("{APP} / {LONG_CRAWL}"));
    by.wait_for_page(LONG_CRAWL);
    // The page's headline names the only site of the crawl.
    browser.wait_until("the reason", || {
        let said = browser.text_at(".headline p")?;
        said.contains(LONG_SITE).then_some(())
    });
    by.skip_to_content();
    by.tab_to_and_enter(LONG_SITE);
    by.wait_for_page(LONG_SITE);
    by.print_report("see why a crawl is slow");
    let shown = format!("{} s", DELAY.as_secs_f64());
    browser.wait_until("the pace of the site", || {
        browser.reload();
        browser.page_text().contains(&shown).then_some(())
    });
    // The access log confirms that the crawl is slow because of the delay of this site.
    let site = scene.fleet.web.site(LONG_SITE);
    wait_for("some gaps", || (site.visits().len() > 5).then_some(()));
    site.visits().assert_polite(DELAY);
    let stored = Stored::open(&scene.fleet.work.path("store.db"));
    let sites = stored.query_texts(&format!(
        "SELECT DISTINCT site FROM pages WHERE crawl_id = '{LONG_CRAWL}'"
    ));
    assert_eq!(sites, [LONG_SITE]);
}
