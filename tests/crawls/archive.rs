//! Tests the archive (`--warc`): it contains every exchange of the access log as it was sent, whatever process is
//! killed, and other programs can read it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::isolation::{mount_small_disk, run_isolated};
use webfill_tests::run::Run;
use webfill_tests::site::encodings::encoded_page;
use webfill_tests::site::{Page, Site, Visit, Web, document, page, script, status};
use webfill_tests::warc::{WarcRecord, read_archive, warc_files};
use webfill_tests::workplace::Workplace;

use crate::wide_web::{PAGES_PER_SITE, SITES, assert_complete, serve_wide_web};

const HOST: &str = "kept.example";
const MOST_BODY_BYTES: usize = 20_000;

fn crawl_command(work: &Workplace, web: &Web) -> Run {
    work.crawl(web)
        .arg("--warc")
        .arg(work.path("archive"))
        .env("WEBFILL_FETCH_MAX_BODY_BYTES", MOST_BODY_BYTES.to_string())
}

/// The answers of the test site, by path.
fn answers_by_path() -> Vec<(&'static str, Page)> {
    let moved = status(302)
        .header("location", "/gzip")
        .body("It is elsewhere.");
    let twice = page("Ada").header("x-twice", "1").header("x-twice", "2");
    vec![
        (
            "/robots.txt",
            document("text/plain", "User-agent: *\nAllow: /\n"),
        ),
        ("/plain?a=b", twice),
        ("/gzip", encoded_page("Packed", "gzip")),
        ("/br", encoded_page("Packed", "br")),
        ("/zstd", encoded_page("Packed", "zstd")),
        ("/moved", moved),
        ("/missing", page("Nothing here").status(404)),
        ("/teapot", page("A reason of its own").status(418)),
        ("/binary", document("application/pdf", vec![7; 3_000])),
        (
            "/large",
            page("Large").html("x".repeat(2 * MOST_BODY_BYTES)),
        ),
        ("/unchanged", status(304)),
        ("/empty", document("text/html", "")),
    ]
}

fn serve_answers(site: &Site) {
    for (path, answer) in answers_by_path() {
        site.serve(path, answer);
    }
}

fn page_urls(site: &Site) -> Vec<String> {
    let pages = answers_by_path().into_iter().skip(1);
    pages.map(|(path, _)| site.url(path)).collect()
}

/// The only archived answer from a URL.
fn answer_of<'a>(records: &'a [WarcRecord], url: &str) -> &'a WarcRecord {
    let mut found = records
        .iter()
        .filter(|record| record.is_answer() && record.url() == url);
    let answer = found.next().unwrap_or_else(|| panic!("no answer of {url}"));
    assert!(found.next().is_none(), "{url} was fetched once");
    answer
}

/// The head of a request as the server received it.
fn request_head(visit: &Visit) -> String {
    let headers = visit.headers.iter();
    let lines: String = headers
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!("{} {} HTTP/1.1\r\n{lines}\r\n", visit.method, visit.path)
}

#[test]
fn every_exchange_is_archived_as_it_was_sent() {
    let web = Web::start();
    let site = web.site(HOST);
    serve_answers(&site);
    let work = Workplace::new();
    crawl_command(&work, &web)
        .args(page_urls(&site))
        .finish()
        .expect_code(0);

    let records = read_archive(&work.path("archive"));
    for (path, answer) in answers_by_path() {
        let url = site.url(path);
        let record = answer_of(&records, &url);
        assert_eq!(record.head(), answer.head(), "{url}");
        let kept = answer.body.len().min(MOST_BODY_BYTES);
        assert_eq!(record.payload(), &answer.body[..kept], "{url}");
        let is_cut = kept < answer.body.len();
        assert_eq!(record.field("WARC-Truncated"), is_cut.then_some("length"));
        assert_eq!(record.field("WARC-IP-Address"), Some("127.0.0.1"));
        assert_eq!(record.field("WARC-Protocol"), Some("http/1.1"));
        let kind = if answer.status == 304 {
            "revisit"
        } else {
            "response"
        };
        assert_eq!(record.kind(), kind, "{url}");
    }
    assert_requests_are_those_of_the_log(&records, &web);
}

/// Checks that the archive has one request record for each visit, and that it belongs to the visit's answer.
fn assert_requests_are_those_of_the_log(records: &[WarcRecord], web: &Web) {
    let mut archived: Vec<String> = Vec::new();
    for request in records.iter().filter(|record| record.kind() == "request") {
        let answer = answer_of(records, request.url());
        let concurrent = request.field("WARC-Concurrent-To");
        assert_eq!(concurrent, answer.field("WARC-Record-ID"));
        archived.push(request.head());
    }
    let mut visited: Vec<String> = web.visits().0.iter().map(request_head).collect();
    archived.sort();
    visited.sort();
    assert_eq!(archived, visited);
}

#[test]
fn transfer_codings_are_undone_and_broken_bodies_are_marked() {
    let web = Web::start();
    let site = web.site(HOST);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n";
    let chunked = script()
        .send(format!("{head}transfer-encoding: chunked\r\n\r\n"))
        .send_chunk(b"<p>one</p>")
        .send_chunk(b"<p>two</p>")
        .send("0\r\n\r\n");
    let broken = script()
        .send(format!("{head}content-length: 100\r\n\r\n<p>half"))
        .reset();
    site.serve("/chunked", chunked).serve("/broken", broken);
    let work = Workplace::new();
    let urls = [site.url("/chunked"), site.url("/broken")];
    crawl_command(&work, &web)
        .args(&urls)
        .finish()
        .expect_code(0);

    let records = read_archive(&work.path("archive"));
    let chunked = answer_of(&records, &urls[0]);
    assert_eq!(chunked.payload(), b"<p>one</p><p>two</p>");
    let expected = format!("{head}x-crawl-transfer-encoding: chunked\r\n\r\n");
    assert_eq!(chunked.head(), expected);
    let broken = answer_of(&records, &urls[1]);
    assert_eq!(broken.payload(), b"<p>half");
    assert_eq!(broken.field("WARC-Truncated"), Some("disconnect"));
}

#[test]
fn http_2_is_archived_as_http_1_1_under_its_own_name() {
    let web = Web::start_tls(&[HOST]);
    let site = web.site(HOST);
    site.serve("/", page("Two").status(404));
    let work = Workplace::new();
    crawl_command(&work, &web)
        .arg(site.https_url("/"))
        .finish()
        .expect_code(0);
    let records = read_archive(&work.path("archive"));
    let answer = answer_of(&records, &site.https_url("/"));
    assert_eq!(answer.field("WARC-Protocol"), Some("h2"));
    assert!(
        answer.head().starts_with("HTTP/1.1 404 \r\n"),
        "{}",
        answer.head()
    );
    assert_eq!(answer.payload(), page("Two").body);
    let requests = records.iter().filter(|record| record.kind() == "request");
    for request in requests {
        assert!(
            request.head().contains("\r\nhost: kept.example\r\n"),
            "{}",
            request.head()
        );
    }
}

/// A document that cannot be compressed. Its content depends on the length of the path.
fn incompressible_page(path: &str) -> Page {
    let mut random = fastrand::Rng::with_seed(path.len() as u64);
    let body: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
        .take(19_000)
        .collect();
    document("application/octet-stream", body)
}

#[test]
fn a_file_that_is_full_is_followed_by_another_and_a_body_is_kept_once() {
    let web = Web::start();
    let site = web.site(HOST);
    site.serve_otherwise(|request| {
        // `/again/x` has the same document as `/x`, so the archive must contain its body only once.
        incompressible_page(request.path.trim_start_matches("/again")).into()
    });
    let work = Workplace::new();
    let paths = (1..=60).map(|length| format!("/{}", "x".repeat(length)));
    let urls = paths.chain(["/again/x".into()]).map(|path| site.url(&path));
    crawl_command(&work, &web)
        .replace_flag("--delay", "0.01")
        .env("WEBFILL_ARCHIVE_WARC_MIB", "1")
        .args(urls)
        .finish()
        .expect_code(0);
    let folder = work.path("archive");
    assert_eq!(warc_files(&folder).len(), 2);
    let records = read_archive(&folder);
    let again = answer_of(&records, &site.url("/again/x"));
    assert_eq!(again.kind(), "revisit");
    let original = again
        .field("WARC-Refers-To-Target-URI")
        .expect("it is known");
    let original = answer_of(&records, original);
    assert_eq!(
        again.field("WARC-Refers-To"),
        original.field("WARC-Record-ID")
    );
    assert_eq!(
        again.field("WARC-Refers-To-Date"),
        original.field("WARC-Date")
    );
}

#[test]
fn an_archive_needs_a_folder() {
    let work = Workplace::new();
    let file = work.write("input", "a file");
    let run = || {
        let run = work.plain_crawl().arg("--allow-private-networks");
        run.arg("http://a.example/")
    };
    let named = run().arg("--warc").arg(file).finish().expect_code(2);
    let sentence = named.one_sentence();
    assert!(sentence.ends_with("not a folder"), "{sentence}");
    let empty = run()
        .env("WEBFILL_ARCHIVE_WARC", "")
        .finish()
        .expect_code(2);
    let sentence = empty.one_sentence();
    assert!(
        sentence.contains("archive.warc") && sentence.ends_with("is empty"),
        "{sentence}"
    );
    assert!(!work.path("state").exists(), "nothing was opened");
}

#[needs(namespaces)]
#[test]
fn without_room_for_the_archive_the_crawl_ends_and_continues_later() {
    run_isolated(
        "archive::without_room_for_the_archive_the_crawl_ends_and_continues_later",
        || {
            let web = Web::start();
            let site = web.site(HOST);
            site.serve_otherwise(|request| incompressible_page(&request.path).into());
            let work = Workplace::new();
            let folder = work.path("archive");
            std::fs::create_dir(&folder).expect("it is new");
            mount_small_disk(&folder, 256, false);
            let urls: Vec<String> = (1..=30)
                .map(|length| site.url(&format!("/{}", "x".repeat(length))))
                .collect();
            let crawl = || {
                crawl_command(&work, &web)
                    .replace_flag("--delay", "0.01")
                    .env("WEBFILL_DISK_FLOOR_MIB", "0")
                    .args(&urls)
            };
            let run = crawl().finish().expect_code(17);
            let sentence = run.one_sentence();
            assert!(
                sentence.contains("no space left for the archive"),
                "{sentence}"
            );
            mount_small_disk(&folder, 4 << 10, true);
            crawl().finish().expect_code(0);
            let records = read_archive(&folder);
            assert_stored_pages_are_archived(&work, &records, urls.len());
        },
    );
}

/// Crawls a web while its workers are killed, and returns the archive's folder.
fn crawl_with_killed_workers(work: &Workplace) -> PathBuf {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let mut running = crawl_command(work, &web).args(&roots).start();
    for round in 1..=3 {
        web.log()
            .wait_until("it continues", |visits| visits.pages().len() > round * 12);
        for worker in running.wait_for_role("worker", 1) {
            worker.signal(Signal::KILL);
        }
    }
    running.finish().expect_code(0);
    assert_complete(work);
    work.path("archive")
}

#[test]
fn killed_workers_leave_whole_records_and_every_stored_page_is_archived() {
    let work = Workplace::new();
    let records = read_archive(&crawl_with_killed_workers(&work));
    assert_stored_pages_are_archived(&work, &records, SITES * PAGES_PER_SITE);
}

/// Checks that each stored page is in the archive. It may be there several times, if it was fetched again after a
/// fault.
fn assert_stored_pages_are_archived(work: &Workplace, records: &[WarcRecord], count: usize) {
    let pages = work.stored().pages();
    assert_eq!(pages.len(), count);
    for url in pages.keys() {
        let mut answers = records
            .iter()
            .filter(|record| record.is_answer() && record.url() == url);
        assert!(answers.next().is_some(), "{url} is stored and not archived");
    }
}

fn warc_tool(name: &str) -> Command {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/warc-tools/venv/bin");
    Command::new(folder.join(name))
}

/// Checks an archive with `warcio check`, which reads every record and verifies its digests.
fn assert_warcio_finds_nothing(folder: &Path) {
    let mut check = warc_tool("warcio");
    let output = check.arg("check").args(warc_files(folder)).output();
    let output = output.expect("warcio starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}

#[needs(warc_tools)]
#[test]
fn warcio_finds_no_faults_in_files_of_killed_workers() {
    assert_warcio_finds_nothing(&crawl_with_killed_workers(&Workplace::new()));
}

#[needs(warc_tools)]
#[test]
fn pywb_replays_every_page_byte_for_byte() {
    let web = Web::start();
    let site = web.site(HOST);
    serve_answers(&site);
    site.serve("/same", encoded_page("Packed", "gzip"));
    let work = Workplace::new();
    let urls = page_urls(&site).into_iter().chain([site.url("/same")]);
    crawl_command(&work, &web)
        .args(urls)
        .finish()
        .expect_code(0);
    let folder = work.path("archive");
    assert_warcio_finds_nothing(&folder);

    let replayed = [
        "/plain?a=b",
        "/gzip",
        "/moved",
        "/missing",
        "/binary",
        "/same",
    ];
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("warc/replay.py");
    let mut replay = warc_tool("python");
    let urls = replayed.map(|path| site.url(path));
    let output = replay.arg(script).arg(&folder).args(urls).output();
    let output = output.expect("python starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines = String::from_utf8(output.stdout).expect("it is JSON");
    assert_eq!(lines.lines().count(), replayed.len(), "{said}");
    for (line, path) in lines.lines().zip(replayed) {
        let answer: Value = serde_json::from_str(line).expect("it is JSON");
        let path = if path == "/same" { "/gzip" } else { path };
        let served = answers_by_path()
            .into_iter()
            .find(|(served, _)| *served == path);
        let (_, page) = served.expect("it is one of them");
        assert_eq!(answer["status"], page.status, "{line}");
        let hex: String = page.body.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(answer["body"], hex.as_str(), "{path}");
    }
}
