//! Tests `webfill mapping test` with URLs: the pages are fetched politely and once, and are stored.

use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::office::{docx, pdf};
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Site, Web, document, page, redirect, status};
use webfill_tests::workplace::Workplace;

/// A run of `webfill mapping test` with the mapping of the tests.
fn try_pages(work: &Workplace, web: &Web, arguments: &[&str]) -> Run {
    let resolve: Vec<String> = web.resolve_args();
    let resolve: Vec<&str> = resolve
        .iter()
        .map(String::as_str)
        .filter(|argument| *argument != "--resolve")
        .collect();
    Run::new(["mapping", "test", "mappings/profile.json"])
        .args(arguments)
        .in_folder(work.path("."))
        .env("WEBFILL_FETCH_RESOLVE", resolve.join(","))
        .env("WEBFILL_POLITENESS_DELAY", "0.5")
}

fn try_private_pages(work: &Workplace, web: &Web, arguments: &[&str]) -> Finished {
    let run = try_pages(work, web, arguments).arg("--allow-private-networks");
    run.finish()
}

fn serve_people(web: &Web) -> Site {
    let site = web.site("people.example");
    site.serve_robots("User-agent: *\nDisallow: /private\n");
    site.serve("/ada", page("Ada").field("name", "Ada Lovelace"));
    site.serve("/bob", page("Bob"));
    site.serve("/moved", redirect("/ada"));
    site
}

/// The paths that were requested from the test site.
fn requested_paths(web: &Web) -> Vec<String> {
    let visits = web.visits().for_host("people.example").paths();
    let path = |visit: &String| visit.replacen("people.example", "", 1);
    visits.iter().map(path).collect()
}

fn last_line(run: &Finished) -> Value {
    serde_json::from_str(run.stdout.lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("not JSON ({error}): {}", run.stdout))
}

#[test]
fn a_page_is_fetched_once_with_its_robots_txt_and_kept() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = serve_people(&web);
    let url = site.url("/ada");
    for _ in 0..2 {
        let run = try_private_pages(&work, &web, &[&url]).expect_code(0);
        let result: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(result["fields"]["name"], "Ada Lovelace");
        assert_eq!(requested_paths(&web), ["/robots.txt", "/ada"]);
        assert!(run.stderr.contains("mappings/pages/"), "{}", run.stderr);
    }
    try_private_pages(&work, &web, &[&url, "--again"]).expect_code(0);
    let paths = ["/robots.txt", "/ada", "/robots.txt", "/ada"];
    assert_eq!(requested_paths(&web), paths);
    web.visits().assert_polite(Duration::from_millis(500));
    for visit in web.visits().0 {
        let agent = visit.header("user-agent").unwrap_or_default();
        assert!(agent.starts_with("webfill/"), "{agent}");
    }
}

#[test]
fn kept_pages_are_tried_as_a_folder_without_a_request() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = serve_people(&web);
    let (ada, bob) = (site.url("/ada"), site.url("/bob"));
    let run = try_private_pages(&work, &web, &[&ada, &bob, "--keep", "kept"]).expect_code(0);
    let name = json!({"filled": 1, "empty": 1, "share": 0.5, "empty_on": [bob]});
    assert_eq!(
        last_line(&run)["mappings"]["profile"]["fields"]["name"],
        name
    );
    assert_eq!(requested_paths(&web), ["/robots.txt", "/ada", "/bob"]);
    web.visits().assert_polite(Duration::from_millis(500));
    let again = try_private_pages(&work, &web, &["kept"]).expect_code(0);
    assert_eq!(last_line(&again), last_line(&run));
    assert_eq!(web.visits().len(), 3);
}

#[test]
fn a_redirect_is_followed_and_its_target_names_the_page() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = serve_people(&web);
    let moved = site.url("/moved");
    let run = try_private_pages(&work, &web, &[&moved, &moved]).expect_code(0);
    assert_eq!(requested_paths(&web), ["/robots.txt", "/moved", "/ada"]);
    web.visits().assert_polite(Duration::from_millis(500));
    let first: Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["url"], site.url("/ada").as_str());
    try_private_pages(&work, &web, &[&site.url("/ada")]).expect_code(0);
    let kept = try_private_pages(&work, &web, &["mappings/pages"]).expect_code(0);
    assert_eq!(last_line(&kept)["pages"], 1, "it is one page by two URLs");
}

#[test]
fn the_delay_of_a_site_holds_between_commands_also_behind_redirects() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = serve_people(&web);
    site.serve("/broken", status(500));
    let leading = web.site("leading.example");
    for path in ["/ada", "/broken", "/bob"] {
        leading.serve(path, redirect(&site.url(path)));
        // The page `/broken` answers with an error. It counts as requested, too, so the delay applies after it.
        try_private_pages(&work, &web, &[&leading.url(path)]);
    }
    assert_eq!(web.visits().for_host("people.example").pages().len(), 3);
    web.visits().assert_polite(Duration::from_millis(500));
}

#[test]
fn forbidden_pages_are_refused_with_a_reason() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = serve_people(&web);
    site.serve("/gone", status(404));
    for (path, reported) in [
        ("/private", "disallowed by the robots.txt of people.example"),
        ("/gone", "the server returned 404"),
    ] {
        let run = try_private_pages(&work, &web, &[&site.url(path)]).expect_code(1);
        assert!(run.stderr.contains(reported), "{}", run.stderr);
    }
    assert_eq!(web.visits().for_path("/private").len(), 0);
    web.visits().assert_polite(Duration::from_millis(500));
    let closed = web.site("closed.example");
    closed.serve("/robots.txt", status(503));
    let run = try_private_pages(&work, &web, &[&closed.url("/")]).expect_code(1);
    assert!(
        run.stderr.contains("unavailable, nothing allowed"),
        "{}",
        run.stderr
    );
    assert_eq!(closed.visits().pages().len(), 0);
}

#[test]
fn private_addresses_are_guarded_and_a_contact_is_required() {
    let (web, work) = (Web::start(), Workplace::new());
    let url = serve_people(&web).url("/ada");
    let contact = ["--contact", "https://example.org/crawler"];
    let run = try_pages(&work, &web, &[&url])
        .args(contact)
        .finish()
        .expect_code(1);
    assert!(
        run.stderr.contains("--allow-private-networks"),
        "{}",
        run.stderr
    );
    let run = try_pages(&work, &web, &[&url]).finish().expect_code(2);
    assert!(run.stderr.contains("--contact"), "{}", run.stderr);
    assert!(web.visits().is_empty());
    assert!(!work.path("mappings/pages").exists());
}

#[test]
fn excluded_sites_are_not_asked_not_even_by_a_redirect() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = serve_people(&web);
    let leading = web.site("leading.example");
    leading.serve("/", redirect(&site.url("/ada")));
    let list = work.write("excluded.txt", "people.example\n");
    for url in [site.url("/ada"), leading.url("/")] {
        let run = try_pages(&work, &web, &[&url]).arg("--allow-private-networks");
        let run = run.env("WEBFILL_DISPATCHER_EXCLUDE_SITES", &list).finish();
        let output = run.expect_code(1).stderr;
        assert!(output.contains("`dispatcher.exclude_sites`"), "{output}");
    }
    assert_eq!(requested_paths(&web), [""; 0]);
}

/// Writes a mapping that reads the text of a document, and its metadata.
fn write_papers_mapping(work: &Workplace) {
    let step =
        |kind: &str, name: &str, value: &str| json!([{"type": kind, "parameters": {name: value}}]);
    let mapping = json!({
        "name": "papers",
        "url_patterns": [{"type": "host", "pattern": "people.example"}],
        "fields": [
            {"name": "number", "processors": step("regex", "pattern", "number (\\d+)")},
            {"name": "title", "processors": step("meta", "name", "title")},
        ],
    });
    work.write_json("mappings/profile.json", &mapping);
}

#[test]
fn a_document_is_tried_as_a_crawl_reads_it() {
    let (web, work) = (Web::start(), Workplace::new());
    write_papers_mapping(&work);
    let paper = pdf("A paper", "Contract number 4711");
    let letter = "<w:p><w:r><w:t>Contract number 4712</w:t></w:r></w:p>";
    let site = web.site("people.example");
    site.serve("/paper", document("application/pdf", paper.clone()));
    work.write("saved/paper.pdf", &paper);
    work.write("saved/letter.docx", docx(letter));
    let url = site.url("/paper");
    let fields = |run: &Finished| -> Value {
        let output: Value = serde_json::from_str(&run.stdout).expect("JSON");
        output["fields"].clone()
    };
    let as_crawled = json!({"number": "4711", "title": "A paper"});
    let saved = try_private_pages(&work, &web, &["saved/paper.pdf"]).expect_code(0);
    assert_eq!(fields(&saved), as_crawled);
    for _ in 0..2 {
        let fetched = try_private_pages(&work, &web, &[&url]).expect_code(0);
        assert_eq!(fields(&fetched), as_crawled);
        assert_eq!(requested_paths(&web), ["/robots.txt", "/paper"]);
        assert!(fetched.stderr.contains(".pdf"), "{}", fetched.stderr);
    }
    let traced = try_private_pages(
        &work,
        &web,
        &["saved/paper.pdf", "--trace", "--format", "json"],
    );
    assert!(traced.expect_code(0).stdout.contains("4711"));
    let several = last_line(&try_private_pages(&work, &web, &["saved"]).expect_code(0));
    assert_eq!(
        several["mappings"]["papers"]["fields"]["number"]["filled"],
        2
    );
    let crawl = work.crawl(&web).args(["--documents", &url]);
    crawl.finish().expect_code(0);
    let crawled = &work.stored().pages()[&url];
    assert_eq!(Value::Object(crawled.fields.clone()), as_crawled);
}

#[test]
fn a_document_without_a_mapping_is_reported_with_its_status() {
    let (web, work) = (Web::start(), Workplace::new());
    write_papers_mapping(&work);
    work.write("torn.pdf", b"%PDF-1.4\nand nothing more");
    work.write("scan.pdf", pdf("A scan", ""));
    let torn = try_private_pages(&work, &web, &["torn.pdf"]).expect_code(1);
    assert!(
        torn.one_sentence().contains("torn.pdf: no mapping applies"),
        "{}",
        torn.stderr
    );
    assert!(
        torn.stderr.contains("because it is broken"),
        "{}",
        torn.stderr
    );
    let scan = try_private_pages(&work, &web, &["scan.pdf"]).expect_code(0);
    assert!(
        scan.stderr.contains("no text in this document"),
        "{}",
        scan.stderr
    );
    let output: Value = serde_json::from_str(&scan.stdout).expect("JSON");
    assert_eq!(output["fields"], json!({"title": "A scan"}));
}
