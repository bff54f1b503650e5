//! Sequences of pages: which of them give a sign, and at which page.

use std::fs;
use std::path::Path;

use reqwest::header::HeaderMap;
use webfill_urls::Url;

use super::*;
use crate::blocks::Sample;

const CHALLENGE: &str = "<p>Hold on.</p><script>document.cookie = run()</script>";

fn note(pages: &mut RepeatedPages, site: &str, path: &str, body: &str) -> bool {
    let url = Url::parse(&format!("https://{site}/{path}")).unwrap();
    let response = Response {
        status: 200,
        headers: &HeaderMap::new(),
        url: &url,
        redirect: None,
        body,
        is_html: true,
    };
    pages.note(site, &response).is_some()
}

/// Which of the bodies give a sign, each served for a URL of its own.
fn signs(bodies: &[&str]) -> Vec<bool> {
    let mut pages = RepeatedPages::default();
    let numbered = bodies.iter().enumerate();
    let noted = numbered.map(|(n, body)| note(&mut pages, "site.example", &n.to_string(), body));
    noted.collect()
}

#[test]
fn one_short_page_for_every_url_is_recognised_at_the_fifth() {
    let expected = [false, false, false, false, true, true, true];
    assert_eq!(signs(&[CHALLENGE; 7]), expected);
    let filled = format!("{CHALLENGE:.<900}");
    assert_eq!(
        signs(&[filled.as_str(); 7]),
        expected,
        "much text on 900 bytes"
    );
    let script = format!("{CHALLENGE}<script>{}</script>", "x".repeat(40_000));
    assert_eq!(
        signs(&[script.as_str(); 7]),
        expected,
        "little text on much source"
    );
    let loaded = "<p>Hold on.</p><script src=/challenge.js></script>";
    assert_eq!(signs(&[loaded; 7]), expected, "the name of its script");
    let words = "<title>Just a moment...</title><p>Hold on.</p>";
    assert_eq!(signs(&[words; 7]), expected, "no script, but words");
}

#[test]
fn any_other_page_ends_the_run() {
    let long = "<p>words of a page ".repeat(200);
    for other in ["<p>Sold out", &long, ""] {
        let bodies = [[CHALLENGE; 4].as_slice(), &[other], &[CHALLENGE; 4]].concat();
        assert_eq!(signs(&bodies), [false; 9], "{other}");
    }
}

#[test]
fn pages_that_differ_or_are_long_give_no_sign() {
    let numbered: Vec<String> = (0..20)
        .map(|n| format!("<p>Item {n}<script>document.cookie = run()</script>"))
        .collect();
    let numbered: Vec<&str> = numbered.iter().map(String::as_str).collect();
    assert_eq!(signs(&numbered), [false; 20]);
    let long = "<p>words of a page ".repeat(200);
    assert_eq!(signs(&[long.as_str(); 9]), [false; 9]);
}

#[test]
fn one_url_asked_for_again_and_again_is_one_url() {
    let mut pages = RepeatedPages::default();
    let noted = (0..9).filter(|_| note(&mut pages, "site.example", "7", CHALLENGE));
    assert_eq!(noted.count(), 0);
}

#[test]
fn pages_that_healthy_sites_serve_for_many_urls_never_count() {
    for body in [
        "<div id=root></div><script src=/app.js></script>",
        "<my-shop></my-shop><script src=/app.js></script>",
        "<script type=module src=/main.js></script>",
        "<frameset><frame src=https://elsewhere.example/></frameset>",
        "<form><input name=user><input type=password name=password></form>",
        "<meta http-equiv=refresh content='0; url=/'>Moved.",
        "<title>404</title><p>Nothing here.",
        "<h1>Page Not Found</h1><script>count()</script>",
        "<h1>Tandem</h1><p>Sold out.<script src=/count.js></script>",
        "<h1>1</h1><script>document.querySelector('h1').textContent = 2</script>",
    ] {
        assert_eq!(signs(&[body; 9]), [false; 9], "{body}");
    }
}

#[test]
fn no_healthy_sample_that_stands_for_an_application_or_a_form_counts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/blocks/samples/healthy");
    for name in [
        "application-shell",
        "application-that-reloads",
        "application-with-invisible-captcha",
        "imperva-application-shell",
        "contact-form-with-turnstile",
        "log-in-with-captcha",
        "refresh-to-another-page",
        "search-without-results",
    ] {
        let text = fs::read_to_string(folder.join(format!("{name}.http"))).unwrap();
        let sample = Sample::read(&text).unwrap();
        assert_eq!(signs(&[sample.body.as_str(); 9]), [false; 9], "{name}");
    }
}

#[test]
fn sites_are_told_apart_and_their_number_is_bounded() {
    let mut pages = RepeatedPages::default();
    for path in 0..5 {
        note(&mut pages, "first.example", &path.to_string(), CHALLENGE);
    }
    let others = (0..MOST_SITES).map(|n| format!("{n}.example"));
    for site in others {
        assert!(!note(&mut pages, &site, "1", CHALLENGE));
    }
    assert!(note(&mut pages, "first.example", "9", CHALLENGE));
    let others = (0..5 * MOST_SITES).map(|n| format!("{n}.test"));
    for site in others {
        assert!(!note(&mut pages, &site, "1", CHALLENGE));
        assert!(pages.recent.len() <= MOST_SITES && pages.older.len() <= MOST_SITES);
    }
    assert!(!note(&mut pages, "first.example", "10", CHALLENGE));
}
