//! `webfill mapping test` on URLs: fetched politely, once, and kept.

use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Site, Web, page, redirect, status};
use webfill_tests::workplace::Workplace;

/// `webfill mapping test` with the mapping of the tests.
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

fn privately(work: &Workplace, web: &Web, arguments: &[&str]) -> Finished {
    let run = try_pages(work, web, arguments).arg("--allow-private-networks");
    run.finish()
}

fn people(web: &Web) -> Site {
    let site = web.site("people.example");
    site.robots("User-agent: *\nDisallow: /private\n");
    site.serve("/ada", page("Ada").field("name", "Ada Lovelace"));
    site.serve("/bob", page("Bob"));
    site.serve("/moved", redirect("/ada"));
    site
}

/// The paths that were asked for at the site of these tests.
fn asked_for(web: &Web) -> Vec<String> {
    let visits = web.visits().of_host("people.example").paths();
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
    let site = people(&web);
    let url = site.url("/ada");
    for _ in 0..2 {
        let run = privately(&work, &web, &[&url]).expect(0);
        let result: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(result["fields"]["name"], "Ada Lovelace");
        assert_eq!(asked_for(&web), ["/robots.txt", "/ada"]);
        assert!(run.stderr.contains("mappings/pages/"), "{}", run.stderr);
    }
    privately(&work, &web, &[&url, "--again"]).expect(0);
    let paths = ["/robots.txt", "/ada", "/robots.txt", "/ada"];
    assert_eq!(asked_for(&web), paths);
    web.visits().assert_polite(Duration::from_millis(500));
    for visit in web.visits().0 {
        let agent = visit.header("user-agent").unwrap_or_default();
        assert!(agent.starts_with("webfill/"), "{agent}");
    }
}

#[test]
fn kept_pages_are_tried_as_a_folder_without_a_request() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = people(&web);
    let (ada, bob) = (site.url("/ada"), site.url("/bob"));
    let run = privately(&work, &web, &[&ada, &bob, "--keep", "kept"]).expect(0);
    let name = json!({"filled": 1, "empty": 1, "share": 0.5, "empty_on": [bob]});
    assert_eq!(
        last_line(&run)["mappings"]["profile"]["fields"]["name"],
        name
    );
    assert_eq!(asked_for(&web), ["/robots.txt", "/ada", "/bob"]);
    web.visits().assert_polite(Duration::from_millis(500));
    let again = privately(&work, &web, &["kept"]).expect(0);
    assert_eq!(last_line(&again), last_line(&run));
    assert_eq!(web.visits().len(), 3);
}

#[test]
fn a_redirect_is_followed_and_its_target_names_the_page() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = people(&web);
    let moved = site.url("/moved");
    let run = privately(&work, &web, &[&moved, &moved]).expect(0);
    assert_eq!(asked_for(&web), ["/robots.txt", "/moved", "/ada"]);
    web.visits().assert_polite(Duration::from_millis(500));
    let first: Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["url"], site.url("/ada").as_str());
    privately(&work, &web, &[&site.url("/ada")]).expect(0);
    let kept = privately(&work, &web, &["mappings/pages"]).expect(0);
    assert_eq!(last_line(&kept)["pages"], 1, "it is one page by two URLs");
}

#[test]
fn the_delay_of_a_site_holds_between_commands_also_behind_redirects() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = people(&web);
    site.serve("/broken", status(500));
    let leading = web.site("leading.example");
    for path in ["/ada", "/broken", "/bob"] {
        leading.serve(path, redirect(&site.url(path)));
        // What fails was asked as well.
        privately(&work, &web, &[&leading.url(path)]);
    }
    assert_eq!(web.visits().of_host("people.example").pages().len(), 3);
    web.visits().assert_polite(Duration::from_millis(500));
}

#[test]
fn what_may_not_be_fetched_is_refused_in_words() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = people(&web);
    site.serve("/gone", status(404));
    for (path, told) in [
        ("/private", "robots.txt of people.example does not allow it"),
        ("/gone", "the answer was 404"),
    ] {
        let run = privately(&work, &web, &[&site.url(path)]).expect(1);
        assert!(run.stderr.contains(told), "{}", run.stderr);
    }
    assert_eq!(web.visits().of_path("/private").len(), 0);
    web.visits().assert_polite(Duration::from_millis(500));
    let closed = web.site("closed.example");
    closed.serve("/robots.txt", status(503));
    let run = privately(&work, &web, &[&closed.url("/")]).expect(1);
    assert!(run.stderr.contains("cannot be had"), "{}", run.stderr);
    assert_eq!(closed.visits().pages().len(), 0);
}

#[test]
fn private_addresses_are_guarded_and_a_contact_is_required() {
    let (web, work) = (Web::start(), Workplace::new());
    let url = people(&web).url("/ada");
    let contact = ["--contact", "https://example.org/crawler"];
    let run = try_pages(&work, &web, &[&url])
        .args(contact)
        .finish()
        .expect(1);
    assert!(
        run.stderr.contains("--allow-private-networks"),
        "{}",
        run.stderr
    );
    let run = try_pages(&work, &web, &[&url]).finish().expect(2);
    assert!(run.stderr.contains("--contact"), "{}", run.stderr);
    assert!(web.visits().is_empty());
    assert!(!work.path("mappings/pages").exists());
}

#[test]
fn excluded_sites_are_not_asked_not_even_by_a_redirect() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = people(&web);
    let leading = web.site("leading.example");
    leading.serve("/", redirect(&site.url("/ada")));
    let list = work.write("excluded.txt", "people.example\n");
    for url in [site.url("/ada"), leading.url("/")] {
        let run = try_pages(&work, &web, &[&url]).arg("--allow-private-networks");
        let run = run.env("WEBFILL_DISPATCHER_EXCLUDE_SITES", &list).finish();
        let told = run.expect(1).stderr;
        assert!(told.contains("`dispatcher.exclude_sites`"), "{told}");
    }
    assert_eq!(asked_for(&web), [""; 0]);
}
