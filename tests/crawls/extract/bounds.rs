//! Tests how many bodies of pages a store keeps, and for how long.

use rusqlite::Connection;
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::page;
use webfill_tests::workplace::Workplace;

use super::{HOST, Kept, ada_page};

#[test]
fn the_oldest_bodies_are_removed_if_there_are_too_many() {
    let kept = Kept::new();
    let site = kept.web.site(HOST);
    let noise = |seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        let letters = std::iter::repeat_with(|| random.alphanumeric());
        letters.take(300_000).collect::<String>()
    };
    let urls: Vec<String> = (0..12)
        .map(|number| {
            let path = format!("/{number}");
            site.serve(&path, page("Noise").html(noise(number)));
            site.url(&path)
        })
        .collect();
    let crawl = kept
        .crawl()
        .arg("--keep-bodies")
        .args(urls)
        .env("WEBFILL_BODIES_MAX_MIB", "1");
    crawl.finish().expect_code(0);
    assert!(kept.work.has_logged("bodies_dropped"));
    let bodies = Connection::open(kept.work.path("store.db.bodies")).unwrap();
    let number = |sql: &str| {
        bodies
            .query_row(sql, (), |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let held = number("SELECT sum(length(body)) FROM bodies");
    assert!((600_000..=1 << 20).contains(&held), "{held}");
    assert!(number("SELECT size FROM total") <= 1 << 20);
    let read = kept.run_extract(&["--dry-run"]);
    let kept_bodies = number("SELECT count(*) FROM bodies");
    assert_eq!(read["pages"]["read"], kept_bodies, "{read:#}");
    // The pages that have no body must be older than the oldest stored body.
    let oldest: String = bodies
        .query_row("SELECT min(at) FROM bodies", (), |row| row.get(0))
        .unwrap();
    let pages = kept.exported_lines("pages");
    let newer = pages
        .iter()
        .filter(|page| page["started_at"].as_str().unwrap() >= oldest.as_str());
    assert_eq!(newer.count() as i64, kept_bodies);
}

#[test]
fn bodies_are_removed_with_their_pages() {
    let kept = Kept::new();
    kept.web.site(HOST).serve("/ada", ada_page("Ockham"));
    let url = kept.web.site(HOST).url("/ada");
    kept.crawl()
        .args(["--keep-bodies", &url])
        .finish()
        .expect_code(0);
    let bodies = Connection::open(kept.work.path("store.db.bodies")).unwrap();
    let count = || {
        bodies
            .query_row("SELECT count(*) FROM bodies", (), |row| {
                row.get::<_, i64>(0)
            })
            .unwrap()
    };
    assert_eq!(count(), 1);
    Run::new(["prune", "--store", &kept.store, "--older-than", "0s"])
        .finish()
        .expect_code(0);
    assert_eq!(count(), 0);
}

#[needs(mongod)]
#[test]
fn bodies_in_mongodb_are_removed_with_their_pages_and_when_there_are_too_many() {
    let database = fresh_database();
    let kept = Kept::with_store(Workplace::new(), database.uri());
    let site = kept.web.site(HOST);
    let mut random = fastrand::Rng::with_seed(7);
    let urls: Vec<String> = (0..12)
        .map(|number| {
            let letters = std::iter::repeat_with(|| random.alphanumeric());
            let path = format!("/{number}");
            site.serve(
                &path,
                page("Noise").html(letters.take(300_000).collect::<String>()),
            );
            site.url(&path)
        })
        .collect();
    let crawl = kept
        .crawl()
        .arg("--keep-bodies")
        .args(urls)
        .env("WEBFILL_BODIES_MAX_MIB", "1");
    crawl.finish().expect_code(0);
    let read = kept.run_extract(&["--dry-run"]);
    let pages = read["pages"]["read"].as_u64().unwrap();
    assert!((1..12).contains(&pages), "{read:#}");
    Run::new(["prune", "--store", &kept.store, "--older-than", "0s"])
        .finish()
        .expect_code(0);
    let reported = kept.extract().finish().expect_code(1);
    assert!(reported.one_sentence().contains("has no kept bodies"));
}
