//! Tests a watch on documents that cannot be read: scans, broken documents, and encrypted ones. A new one is reported
//! once, like a document that can be read.

use std::fs;

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::office::{pdf, zip_package};
use webfill_tests::run::Run;
use webfill_tests::site::{Site, Web, document};
use webfill_tests::workplace::Workplace;

const HOST: &str = "regulator.test";

/// A watch (a crawl that reports changes), and its store.
struct Watched {
    web: Web,
    work: Workplace,
    store: String,
}

impl Watched {
    fn new(store: &str) -> Watched {
        Watched {
            web: Web::start(),
            work: Workplace::new(),
            store: store.to_owned(),
        }
    }

    fn site(&self) -> Site {
        self.web.site(HOST)
    }

    /// Runs the watch over these paths. Returns the counts in the record of the run, and the changes in its
    /// notification.
    fn run(&self, paths: &[&str]) -> (Value, Vec<String>) {
        let resolve = self.web.resolve_args().into_iter();
        let resolve: Vec<String> = resolve.filter(|one| one != "--resolve").collect();
        let urls: Vec<String> = paths.iter().map(|path| self.site().url(path)).collect();
        let watch = json!({
            "name": "papers", "urls": urls, "schedule": "0 2 * * *",
            "notify": [{"file": "notified.jsonl", "about": ["changes"]}],
            "crawl": {
                "store": self.store, "state": "state", "mappings": "mappings", "delay": 0.05,
                "workers": 1, "allow_private_networks": true, "resolve": resolve, "follow": "none",
            },
        });
        let file = self.work.write_json("watch.json", &watch);
        let before = self.read_lines("notified.jsonl").len();
        let run = Run::new(["watch", "run"]).arg(file).arg("--once");
        let run = run.args(["--progress", "none"]);
        run.env("WEBFILL_DOCUMENTS_READ", "true")
            .finish()
            .expect_code(0);
        let record = self.read_lines("state/runs-papers.jsonl").pop().unwrap();
        let notifications = self.read_lines("notified.jsonl").split_off(before);
        let events = notifications
            .iter()
            .flat_map(|notification| notification["events"].as_array().unwrap());
        let mut reported: Vec<String> = events
            .map(|event| event["line"].as_str().unwrap().to_owned())
            .collect();
        reported.sort();
        (record["counts"].clone(), reported)
    }

    fn read_lines(&self, file: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.work.path(file)).unwrap_or_default();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("an object"))
            .collect()
    }

    fn expected_reports(&self, kind: &str, paths: &[&str]) -> Vec<String> {
        let answer = paths.iter();
        answer
            .map(|path| format!("{kind}: {}", self.site().url(path)))
            .collect()
    }
}

fn pdf_page(text: &str) -> webfill_tests::site::Page {
    document("application/pdf", pdf("A paper", text))
}

/// An office document that requires a password.
fn locked_document() -> webfill_tests::site::Page {
    let kind = "application/vnd.oasis.opendocument.text";
    let manifest = "<manifest><encryption-data/></manifest>";
    let parts = [
        ("mimetype", kind.into()),
        ("META-INF/manifest.xml", manifest.into()),
    ];
    document(kind, zip_package(&parts))
}

fn run_four_nights(watched: &Watched) {
    let site = watched.site();
    site.serve("/paper", pdf_page("Contract 1"));
    site.serve("/old-scan", pdf_page(""));
    let (counts, reported) = watched.run(&["/paper", "/old-scan"]);
    assert_eq!(counts["documents"], 2, "{counts}");
    assert!(
        reported.is_empty(),
        "in the first run all pages are new: {reported:?}"
    );

    site.serve("/locked", locked_document());
    site.serve("/scan", pdf_page(""));
    let torn = || document("application/pdf", &b"%PDF-1.4\nand nothing more"[..]);
    site.serve("/torn", torn());
    let all = ["/paper", "/old-scan", "/locked", "/scan", "/torn"];
    let (counts, reported) = watched.run(&all);
    assert_eq!(reported, watched.expected_reports("new", &all[2..]));
    assert_eq!(counts["documents"], 3, "{counts}");
    assert_eq!(counts["changes"], json!({"new": 3}));

    site.serve("/paper", torn());
    let (counts, reported) = watched.run(&all);
    assert!(
        reported.is_empty(),
        "each is reported once, and damage is no change: {reported:?}"
    );
    assert_eq!(counts["documents"], 0, "{counts}");

    site.serve("/paper", pdf_page("Contract 1"));
    site.serve("/torn", pdf_page("Contract 2"));
    let (counts, reported) = watched.run(&all);
    let mended = watched.expected_reports("changed", &["/torn"]);
    assert_eq!(
        reported,
        [format!("{}\n+ Contract 2", mended[0])],
        "it can be read now"
    );
    assert_eq!(counts["documents"], 0, "{counts}");
}

#[test]
fn new_unreadable_documents_are_reported_once_and_counted() {
    run_four_nights(&Watched::new("sqlite:store.db"));
}

#[needs(mongod)]
#[test]
fn new_unreadable_documents_are_reported_once_with_a_store_in_mongodb() {
    let database = fresh_database();
    run_four_nights(&Watched::new(database.uri()));
}
