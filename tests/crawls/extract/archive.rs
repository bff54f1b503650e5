//! Tests `webfill extract` with pages from an archive, and with documents.

use serde_json::json;
use webfill_tests::office;
use webfill_tests::site::document;
use webfill_tests::site::encodings::encoded_page;

use super::{HOST, Kept, ada_page, change_mapping, parse_report, try_and_apply_changed_mapping};

#[test]
fn an_archive_is_read_again_without_a_request() {
    let kept = Kept::new();
    let archive = kept.work.path("archive");
    let warc = ["--warc", archive.to_str().unwrap()];
    try_and_apply_changed_mapping(&kept, &warc, &warc);
}

#[test]
fn codings_repeated_bodies_and_a_torn_end_of_an_archive_are_read() {
    let kept = Kept::new();
    let site = kept.web.site(HOST);
    site.serve("/gzip", encoded_page("Gzip", "gzip"));
    site.serve("/br", encoded_page("Br", "br"));
    site.serve("/first", ada_page("Ockham"));
    site.serve("/second", ada_page("Ockham"));
    let urls = ["/gzip", "/br", "/first", "/second"].map(|path| site.url(path));
    let archive = kept.work.path("archive");
    let crawl = kept
        .crawl()
        .replace_flag("--workers", "1")
        .arg("--warc")
        .arg(&archive);
    crawl.args(urls).finish().expect_code(0);
    change_mapping(&kept.work);
    let file = std::fs::read_dir(&archive)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = std::fs::read(&file).unwrap();
    let torn = bytes[..40].to_vec();
    bytes.extend(torn);
    std::fs::write(&file, bytes).unwrap();
    let warc = archive.to_str().unwrap();
    let read = kept.run_extract(&["--warc", warc]);
    assert_eq!(read["pages"]["written"], 4, "{read:#}");
    assert_eq!(read["torn_files"].as_array().unwrap().len(), 1, "{read:#}");
    for path in ["/first", "/second"] {
        assert_eq!(kept.page(path)["fields"]["location"], "Ockham", "{path}");
    }
    let text = kept
        .extract()
        .args(["--warc", warc])
        .finish()
        .expect_code(0)
        .stdout;
    assert!(text.contains("truncated, read up to there"), "{text}");
    assert!(text.contains("0 pages written, 4 unchanged"), "{text}");
}

#[test]
fn documents_are_read_again_by_their_readers() {
    let kept = Kept::new();
    let site = kept.web.site(HOST);
    // The text is so long that no reader can finish within the deadline set below.
    let text = format!("Contract 4711 of Ockham{}", " and so on".repeat(10_000));
    let pdf = office::pdf("Report", &text);
    site.serve("/report.pdf", document("application/pdf", pdf));
    let regex = |pattern: &str| {
        json!({"name": "documents", "url_patterns": [{"type": "prefix", "pattern": site.url("/")}],
        "fields": [{"name": "number", "processors": [{"type": "regex", "parameters": {"pattern": pattern}}]}]})
    };
    kept.work
        .write_json("mappings/profile.json", &regex("Contract number (\\d+)"));
    let folder = kept.work.path("papers");
    let crawl = kept
        .crawl()
        .args(["--documents", "--keep-bodies", "--keep-documents"])
        .arg(&folder);
    crawl.arg(site.url("/report.pdf")).finish().expect_code(0);
    assert_eq!(kept.page("/report.pdf")["document"]["status"], "text");
    kept.work
        .write_json("mappings/profile.json", &regex("Contract (\\d+)"));
    let folder = folder.to_str().unwrap();
    let tried = kept.run_extract(&["--dry-run", "--kept-documents", folder]);
    assert_eq!(
        tried["mappings"]["documents"]["fields"]["number"]["new"], 1,
        "{tried:#}"
    );
    let visits = kept.web.visits().0.len();
    let before = kept.page("/report.pdf");
    for folder in [&[][..], &["--kept-documents", folder]] {
        let run = kept.extract().args(folder).arg("--json");
        let read = parse_report(run.env("WEBFILL_DOCUMENTS_DEADLINE", "0.001").finish());
        assert_eq!(read["pages"]["failed"], 1, "{read:#}");
        assert_eq!(kept.page("/report.pdf"), before, "a reader was cut off");
    }
    let read = kept.run_extract(&[]);
    assert_eq!(read["pages"]["written"], 1, "{read:#}");
    assert_eq!(kept.page("/report.pdf")["fields"]["number"], "4711");
    let read = kept.run_extract(&["--kept-documents", folder]);
    assert_eq!(read["pages"]["unchanged"], 1, "{read:#}");
    assert_eq!(kept.web.visits().0.len(), visits);
}

/// The archive has all versions of a page, but only the version that belongs to the stored page is read.
#[test]
fn the_stored_version_of_a_page_archived_twice_is_read() {
    let kept = Kept::new();
    let site = kept.web.site(HOST);
    let archive = kept.work.path("archive");
    for town in ["Rome", "Ockham"] {
        site.serve("/ada", ada_page(town));
        let crawl = kept.crawl().args(["--refresh-after", "1ms", "--warc"]);
        crawl
            .arg(&archive)
            .arg(site.url("/ada"))
            .finish()
            .expect_code(0);
    }
    assert_eq!(kept.web.visits().pages().len(), 2);
    change_mapping(&kept.work);
    let read = kept.run_extract(&["--warc", archive.to_str().unwrap()]);
    assert_eq!(read["pages"]["written"], 1, "{read:#}");
    assert_eq!(read["pages"]["of_another_fetch"], 1, "{read:#}");
    let fields = &read["mappings"]["profile"]["fields"];
    assert_eq!(fields["name"]["same"], 1, "{read:#}");
    assert_eq!(kept.page("/ada")["fields"]["location"], "Ockham");
}
