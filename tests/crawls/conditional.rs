//! Tests conditional requests for pages, with both stores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Reply, Request, Site, Web, document, page, status};
use webfill_tests::workplace::Workplace;

const LIST: &str = "http://people.example/list";
const ADA: &str = "http://people.example/ada";

/// The `ETag` header that Apache's `mod_deflate` sends with a compressed page.
const ETAG: &str = "W/\"one-gzip\"";

/// The same tag without Apache's suffix `-gzip`. Apache adds the suffix after it has compared tags, so the condition
/// must contain this form, too.
const UNMARKED: &str = "W/\"one\"";

/// Answers with status 304 if the client already has the page.
fn conditional_reply(request: &Request, found: webfill_tests::site::Page) -> Reply {
    let tags = request.header("if-none-match").unwrap_or_default();
    match tags.split(", ").any(|tag| tag == UNMARKED) && tags.contains(ETAG) {
        true => status(304).header("ETag", ETAG).into(),
        false => found.header("ETag", ETAG).into(),
    }
}

struct Checks {
    web: Web,
    work: Workplace,
    store: String,
}

impl Checks {
    fn new(store: Option<&str>) -> Checks {
        let (web, work) = (Web::start(), Workplace::new());
        let file = format!("sqlite:{}", work.path("store.db").display());
        let site = web.site("people.example");
        site.serve_with("/list", |request| {
            conditional_reply(request, page("List").mapped_link("/ada"))
        });
        site.serve_with("/ada", |request| {
            conditional_reply(request, page("Ada").field("name", "Ada Byron"))
        });
        let store = store.map_or(file, str::to_owned);
        Checks { web, work, store }
    }

    fn site(&self) -> Site {
        self.web.site("people.example")
    }

    fn check_run(&self) -> Run {
        let crawl = self
            .work
            .crawl(&self.web)
            .replace_flag("--store", &self.store);
        crawl.args(["--refresh-after", "0s"]).arg(LIST)
    }

    /// The stored pages, sorted by their URLs.
    fn pages(&self) -> Vec<Value> {
        let export = Run::new(["export", "pages", "--store", &self.store]).finish();
        let lines = export.expect_code(0).stdout;
        let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        let mut pages: Vec<Value> = lines.lines().map(read).collect();
        pages.sort_by_key(|page| page["url"].to_string());
        pages
    }

    /// The number of requests for a page, and the number of those that were conditional.
    fn count_requests(&self, path: &str) -> (usize, usize) {
        let visits = self.web.visits().pages().for_path(path);
        let on_condition = visits
            .0
            .iter()
            .filter(|visit| visit.header("if-none-match").is_some());
        (visits.len(), on_condition.count())
    }
}

/// The columns of a stored page that stay the same if a check finds the page unchanged.
const KEPT: [&str; 9] = [
    "fields",
    "links",
    "mapping",
    "mapping_version",
    "template",
    "content_type",
    "content_hash",
    "bytes",
    "records",
];

fn assert_unchanged_pages_keep_their_data(store: Option<&str>) {
    let checks = Checks::new(store);
    checks.check_run().finish().expect_code(0);
    let first = checks.pages();
    assert_eq!(first[0]["fields"]["name"], "Ada Byron", "{first:?}");
    for check in 2..=3 {
        checks.check_run().finish().expect_code(0);
        let again = checks.pages();
        assert_eq!(again.len(), 2);
        for (before, after) in first.iter().zip(&again) {
            assert_eq!(after["outcome"], "not_modified", "{after}");
            assert_eq!(after["status_code"], 304);
            for name in KEPT {
                assert_eq!(after[name], before[name], "{name}");
            }
            assert!(after["started_at"].as_str() > before["started_at"].as_str());
        }
        // The list page is unchanged, but its link is still followed.
        assert_eq!(checks.count_requests("/list"), (check, check - 1));
        assert_eq!(checks.count_requests("/ada"), (check, check - 1));
    }
}

#[test]
fn unchanged_pages_keep_their_data_in_a_file() {
    assert_unchanged_pages_keep_their_data(None);
}

#[needs(mongod)]
#[test]
fn unchanged_pages_keep_their_data_in_mongodb() {
    let database = fresh_database();
    assert_unchanged_pages_keep_their_data(Some(database.uri()));
}

#[test]
fn a_page_that_has_changed_is_read() {
    let checks = Checks::new(None);
    checks.check_run().finish().expect_code(0);
    checks.site().serve(
        "/ada",
        page("Ada")
            .field("name", "Ada King")
            .header("ETag", "\"two\""),
    );
    checks.check_run().finish().expect_code(0);
    let ada = &checks.pages()[0];
    assert_eq!(
        (&ada["outcome"], &ada["fields"]["name"]),
        (&json!("ok"), &json!("Ada King"))
    );
    let sent = checks.web.visits().pages().for_path("/ada");
    let sent: Vec<Option<&str>> = sent
        .0
        .iter()
        .map(|visit| visit.header("if-none-match"))
        .collect();
    let both = format!("{ETAG}, {UNMARKED}");
    assert_eq!(
        sent,
        [None, Some(both.as_str())],
        "as it came, and as it was"
    );
}

#[test]
fn records_are_filled_from_a_page_that_has_not_changed() {
    let checks = Checks::new(None);
    checks.check_run().finish().expect_code(0);
    let record = json!({"id": "1", "urls": [ADA], "fields": {"name": null}});
    let seeds = checks.work.write_lines("people.jsonl", &[record]);
    checks
        .check_run()
        .arg("--seeds")
        .arg(&seeds)
        .finish()
        .expect_code(0);
    let records = checks.work.stored().records();
    assert_eq!(records["1"].fields["name"], "Ada Byron");
}

#[test]
fn a_page_is_asked_for_without_conditions_after_thirty_days_or_with_another_mapping() {
    let checks = Checks::new(None);
    checks.check_run().finish().expect_code(0);
    let db = rusqlite::Connection::open(checks.work.path("store.db")).unwrap();
    let age = |days: i64| {
        let older = format!(
            "UPDATE pages SET validators = json_set(validators, '$.fetched_at_ms',
                 json_extract(validators, '$.fetched_at_ms') - {days} * 86400000)"
        );
        db.execute_batch(&older).unwrap();
    };
    age(29);
    checks.check_run().finish().expect_code(0);
    assert_eq!(checks.count_requests("/ada"), (2, 1));
    age(2);
    checks.check_run().finish().expect_code(0);
    assert_eq!(checks.count_requests("/ada"), (3, 1), "31 days");
    assert_eq!(checks.pages()[0]["outcome"], "ok");

    let mapping = checks.work.path("mappings/profile.json");
    let text = std::fs::read_to_string(&mapping).unwrap();
    std::fs::write(&mapping, format!("{text}\n")).unwrap();
    checks.check_run().finish().expect_code(0);
    assert_eq!(
        checks.count_requests("/ada"),
        (4, 1),
        "the mapping has another version"
    );
    checks.check_run().finish().expect_code(0);
    assert_eq!(checks.count_requests("/ada"), (5, 2));
    checks
        .check_run()
        .args(["--conditional", "false"])
        .finish()
        .expect_code(0);
    assert_eq!(checks.count_requests("/ada"), (6, 2));
}

#[test]
fn a_page_that_cannot_be_read_from_the_store_keeps_its_fields_and_is_asked_for_again() {
    let checks = Checks::new(None);
    let check = || {
        let crawl = checks.work.crawl(&checks.web);
        crawl.args(["--refresh-after", "0s"]).arg(ADA)
    };
    check().finish().expect_code(0);
    let before = checks.pages();
    let file = checks.work.path("store.db");
    let asked = AtomicUsize::new(0);
    // The server answers that the page has not changed. But the store has meanwhile lost its pages, so the page must be
    // requested again.
    checks.site().serve_with("/ada", move |request| {
        let db = rusqlite::Connection::open(&file).unwrap();
        db.busy_timeout(Duration::from_secs(10)).unwrap();
        let rename = match asked.fetch_add(1, Ordering::SeqCst) {
            0 => "ALTER TABLE pages RENAME TO lost",
            1 => "ALTER TABLE lost RENAME TO pages",
            _ => "",
        };
        db.execute_batch(rename).unwrap();
        conditional_reply(request, page("Ada").field("name", "Ada Byron"))
    });
    check().finish().expect_code(0);
    assert!(checks.work.has_logged("stored_page_lost"));
    let after = checks.pages();
    let outcome = after[0]["outcome"].as_str().unwrap();
    // Without stored pages, the second request has no condition.
    assert!(["ok", "not_modified"].contains(&outcome), "{}", after[0]);
    for name in KEPT {
        assert_eq!(after[0][name], before[0][name], "{name}");
    }
    assert_eq!(checks.count_requests("/ada").0, 3);
    checks
        .web
        .visits()
        .assert_polite(Duration::from_millis(200));
}

#[test]
fn a_document_that_could_not_be_read_is_asked_for_whole_by_another_reader() {
    let checks = Checks::new(None);
    // No mapping matches this document. If a matching mapping had never been applied to it, each fetch would be
    // unconditional.
    let papers = checks.web.site("papers.test");
    papers.serve_with("/torn.pdf", |request| {
        conditional_reply(
            request,
            document("application/pdf", &b"%PDF-1.4\nand nothing more"[..]),
        )
    });
    let check = || {
        let crawl = checks.work.crawl(&checks.web).arg("--documents");
        crawl
            .args(["--refresh-after", "0s"])
            .arg(papers.url("/torn.pdf"))
    };
    check().finish().expect_code(0);
    check().finish().expect_code(0);
    let stored = &checks.pages()[0];
    assert_eq!(
        (&stored["outcome"], &stored["document"]["status"]),
        (&json!("not_modified"), &json!("broken"))
    );
    assert_eq!(checks.count_requests("/torn.pdf"), (2, 1));
    let larger = check().env("WEBFILL_DOCUMENTS_MEMORY_MIB", "300");
    larger.finish().expect_code(0);
    assert_eq!(
        checks.count_requests("/torn.pdf"),
        (3, 1),
        "it may take more"
    );
    check().finish().expect_code(0);
    assert_eq!(checks.count_requests("/torn.pdf"), (4, 1), "and less again");
    check().finish().expect_code(0);
    assert_eq!(checks.count_requests("/torn.pdf"), (5, 2));
    let db = rusqlite::Connection::open(checks.work.path("store.db")).unwrap();
    let older = "UPDATE pages SET validators = json_set(validators, '$.read_as',
        '0.0.1' || substr(json_extract(validators, '$.read_as'), 6))";
    db.execute_batch(older).unwrap();
    check().finish().expect_code(0);
    assert_eq!(
        checks.count_requests("/torn.pdf"),
        (6, 2),
        "another version of webfill"
    );
    assert_eq!(checks.pages()[0]["outcome"], "ok");
}

#[test]
fn an_unrequested_304_is_an_error() {
    let checks = Checks::new(None);
    checks.site().serve("/ada", status(304));
    checks.check_run().finish().expect_code(0);
    let ada = &checks.pages()[0];
    assert_eq!(
        (&ada["outcome"], &ada["status_code"]),
        (&json!("http_error"), &json!(304))
    );
}

#[test]
fn a_page_is_asked_for_without_conditions_in_another_language() {
    let checks = Checks::new(None);
    let in_language = |headers: &str| {
        let check = checks.check_run().env("WEBFILL_FETCH_HEADERS", headers);
        check.finish().expect_code(0);
        checks.count_requests("/ada")
    };
    assert_eq!(in_language(""), (1, 0));
    assert_eq!(in_language(""), (2, 1));
    let german = "people.example Accept-Language: de-DE, de;q=0.8\nother.example DNT: 1";
    assert_eq!(in_language(german), (3, 1));
    assert_eq!(in_language(german), (4, 2));
    assert_eq!(in_language("* Accept-Language: de-DE, de;q=0.8"), (5, 3));
    assert_eq!(in_language("* Accept-Language: fr"), (6, 3));
    assert_eq!(in_language(""), (7, 3));
    let sent = checks.web.visits().pages().for_path("/ada");
    let sent: Vec<Option<&str>> = sent
        .0
        .iter()
        .map(|visit| visit.header("accept-language"))
        .collect();
    let german = Some("de-DE, de;q=0.8");
    assert_eq!(sent, [None, None, german, german, german, Some("fr"), None]);
}

#[test]
fn headers_of_sites_and_mappings_are_sent_with_pages_and_no_others() {
    let (web, work) = (Web::start(), Workplace::new());
    for host in ["people.example", "other.example"] {
        web.site(host).serve_otherwise(|_| page("P").into());
    }
    let mapping = json!({
        "name": "french",
        "url_patterns": [{"type": "prefix", "pattern": "http://people.example/fr/"}],
        "headers": {"Accept-Language": "fr", "X-Requested-With": "XMLHttpRequest"},
    });
    work.write_json("mappings/a-french.json", &mapping);
    let headers = "* Accept-Language: en\nexample Save-Data: on\npeople.example Accept-Language: de, en;q=0.5";
    let urls = [
        "people.example/ada",
        "people.example/fr/ada",
        "other.example/",
    ];
    let run = work.crawl(&web).env("WEBFILL_FETCH_HEADERS", headers);
    run.args(urls.map(|url| format!("http://{url}")))
        .finish()
        .expect_code(0);
    for (url, language, with) in [
        (urls[0], Some("de, en;q=0.5"), None),
        (urls[1], Some("fr"), Some("XMLHttpRequest")),
        (urls[2], Some("en"), None),
        ("people.example/robots.txt", None, None),
    ] {
        let visits = web.visits();
        let of_url =
            |visit: &&webfill_tests::site::Visit| format!("{}{}", visit.host, visit.path) == url;
        let visit = visits
            .0
            .iter()
            .find(of_url)
            .unwrap_or_else(|| panic!("{url}"));
        let sent = (
            visit.header("accept-language"),
            visit.header("x-requested-with"),
        );
        assert_eq!(sent, (language, with), "{url}");
        let is_page = language.is_some();
        assert_eq!(visit.header("save-data"), is_page.then_some("on"), "{url}");
        assert!(
            visit
                .header("accept")
                .is_some_and(|accept| accept.contains("text/html"))
        );
    }
    for wrong in [
        "* Cookie: a=b",
        "* User-Agent: x",
        "* Accept-Language",
        "people.example Range: bytes=0-",
    ] {
        let run = work.crawl(&web).env("WEBFILL_FETCH_HEADERS", wrong);
        let refused = run.arg("http://people.example/").finish().expect_code(2);
        assert!(
            refused.one_sentence().contains("fetch.headers"),
            "{}",
            refused.stderr
        );
    }
    let mut mapping = mapping;
    mapping["headers"] = json!({"Host": "x", "DNT": ""});
    work.write_json("mappings/a-french.json", &mapping);
    let checked = Run::new(["mapping", "check"])
        .arg(work.path("mappings"))
        .finish();
    for part in ["headers", "Host", "DNT"] {
        assert!(
            checked.stderr.contains(part) || checked.stdout.contains(part),
            "{}",
            checked.stderr
        );
    }
}
