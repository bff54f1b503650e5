//! Tests sequences of pages of one site: which pages give a sign of a block, and the number of the page where it is
//! given.

use std::fs;
use std::path::Path;

use reqwest::header::HeaderMap;
use webfill_urls::Url;

use super::*;
use crate::blocks::Sample;

const CHALLENGE: &str = "<p>Hold on.</p><script>document.cookie = run()</script>";

/// Notes a page. Returns `None` if it gives no sign of a block; otherwise whether the sign proves a block.
fn note_page(pages: &mut RepeatedPages, site: &str, path: &str, body: &str) -> Option<bool> {
    let url = Url::parse(&format!("https://{site}/{path}")).unwrap();
    let response = Response {
        status: 200,
        headers: &HeaderMap::new(),
        url: &url,
        redirect: None,
        body,
        is_html: true,
    };
    let sign = pages.note_answer(site, &Inspected::new(&response), true)?;
    Some(sign.grade == Grade::Statistical)
}

const SUSPECTED: Option<bool> = Some(false);
const BLOCKED: Option<bool> = Some(true);

/// For each body of a sequence, whether its page looks like a repeated block page. Each body is served for a URL of its
/// own.
fn block_signs(bodies: &[&str]) -> Vec<Option<bool>> {
    let mut pages = RepeatedPages::default();
    let numbered = bodies.iter().enumerate();
    let noted =
        numbered.map(|(n, body)| note_page(&mut pages, "site.example", &n.to_string(), body));
    noted.collect()
}

#[test]
fn one_page_for_every_url_with_nothing_for_readers_is_recognised_at_the_second() {
    let expected = [SUSPECTED, BLOCKED, BLOCKED, BLOCKED];
    let filled = format!("{CHALLENGE:.<900}");
    let script = format!("{CHALLENGE}<script>{}</script>", "x".repeat(40_000));
    for body in [
        CHALLENGE,
        &filled,
        &script,
        "<p>Hold on.</p><script src=/challenge.js></script>",
        "<title>Just a moment...</title><p>Hold on.</p>",
        "<script>location.href='/_sec/verify?t=1'</script>",
        "<script>eval(atob('x'))</script>",
        "<script>location='/?c=8f3a2b1c'</script>",
        "<script>location='/?c='+run()</script>",
        "<html><head><script src='/x8f3a.js'></script></head><body></body></html>",
        "<script>history.go(0)</script>",
        "<script>cookieStore.set('k', 'v')</script>",
        "<script>window[\"location\"][\"reload\"]()</script>",
    ] {
        assert_eq!(block_signs(&[body; 4]), expected, "{body}");
    }
}

#[test]
fn one_page_for_every_url_that_readers_may_want_is_recognised_at_the_fifth() {
    let expected = [None, None, None, None, BLOCKED, BLOCKED];
    for more in [
        "<a href=/help>Help</a>",
        "<img src=/logo.png>",
        "<script>location.href='/shop'</script>",
        "<script>location.href='/?lang=en'</script>",
    ] {
        let body = format!("{CHALLENGE}{more}");
        assert_eq!(block_signs(&[body.as_str(); 6]), expected, "{more}");
    }
}

#[test]
fn tokens_do_not_make_a_challenge_another_page() {
    let tokens = ["a1b2", "c3d4e5", "99"];
    let bodies = tokens.map(|token| format!("<script>document.cookie='t={token}'</script>"));
    let bodies = bodies.each_ref().map(String::as_str);
    assert_eq!(block_signs(&bodies), [SUSPECTED, BLOCKED, BLOCKED]);
}

#[test]
fn any_other_page_ends_the_run_and_acquits_the_suspected_one() {
    let long = "<p>words of a page ".repeat(200);
    for other in ["<p>Sold out", &long, ""] {
        let bodies = [CHALLENGE, other, CHALLENGE, other, CHALLENGE, CHALLENGE];
        let expected = [SUSPECTED, None, None, None, None, None];
        assert_eq!(block_signs(&bodies), expected, "{other}");
    }
}

#[test]
fn a_site_of_short_pages_is_suspected_a_few_times_only() {
    let numbered: Vec<String> = (0..20)
        .map(|n| format!("<p>Item {n}<script>document.cookie = run()</script>"))
        .collect();
    let numbered: Vec<&str> = numbered.iter().map(String::as_str).collect();
    let found = block_signs(&numbered);
    assert!(!found.contains(&BLOCKED), "{found:?}");
    let suspected = found.iter().filter(|found| **found == SUSPECTED);
    assert_eq!(suspected.count(), MOST_ACQUITTALS as usize);
    let long = "<p>words of a page ".repeat(200);
    assert_eq!(block_signs(&[long.as_str(); 9]), [None; 9]);
}

#[test]
fn one_url_asked_for_again_and_again_is_one_url() {
    let mut pages = RepeatedPages::default();
    let paths = ["", "index.html", "", "", "index.php"];
    let noted = paths.map(|path| note_page(&mut pages, "site.example", path, CHALLENGE));
    assert_eq!(noted, [SUSPECTED, None, None, None, None]);
}

#[test]
fn a_task_that_may_not_wait_gets_its_page() {
    let mut pages = RepeatedPages::default();
    let url = Url::parse("https://site.example/1").unwrap();
    let response = Response {
        status: 200,
        headers: &HeaderMap::new(),
        url: &url,
        redirect: None,
        body: CHALLENGE,
        is_html: true,
    };
    assert_eq!(
        pages.note_answer("site.example", &Inspected::new(&response), false),
        None
    );
    assert_eq!(
        note_page(&mut pages, "site.example", "2", CHALLENGE),
        BLOCKED
    );
}

#[test]
fn redirects_to_names_of_challenges_are_recognised_at_the_second() {
    let redirected = |targets: [&str; 3]| {
        let mut pages = RepeatedPages::default();
        let mut paths = 0..;
        targets.map(|target| {
            let path = paths.next().unwrap_or(0);
            let url = Url::parse(&format!("https://www.site.example/{path}")).unwrap();
            let response = Response {
                status: 302,
                headers: &HeaderMap::new(),
                url: &url,
                redirect: Some(target),
                body: "",
                is_html: false,
            };
            let sign = pages.note_answer("site.example", &Inspected::new(&response), true)?;
            Some(sign.grade == Grade::Statistical)
        })
    };
    let gate = "https://sec.site.example/check?u=";
    let targets = [gate, "https://sec.site.example/check?u=2", gate];
    assert_eq!(redirected(targets), [SUSPECTED, BLOCKED, BLOCKED]);
    for gate in [
        "https://ddos-guard.example/check?u=",
        "https://anti.site.example/",
        "https://captcha.vendor.example/",
        "https://challenge.example/?u=",
    ] {
        assert_eq!(
            redirected([gate; 3]),
            [SUSPECTED, BLOCKED, BLOCKED],
            "{gate}"
        );
    }
    // A redirect that names no challenge does not end the run of redirects to the challenge.
    assert_eq!(redirected([gate, "/new", gate]), [SUSPECTED, None, BLOCKED]);
    for healthy in [
        "https://login.site.example/?next=1",
        "https://shop.other.example/",
        "https://consent.site.example/",
        "/captcha-and-you",
    ] {
        assert_eq!(redirected([healthy; 3]), [None; 3], "{healthy}");
    }
}

#[test]
fn pages_that_healthy_sites_serve_for_many_urls_never_count() {
    for body in [
        "<div id=root></div><script src=/app.js></script>",
        "<my-shop></my-shop><script src=/app.js></script>",
        "<title>Shop</title><script src=/app.js></script>",
        "<head><link rel=icon href=/i.png><script src=/app.js></script></head><body></body>",
        "<script type=module src=/main.js></script>",
        "<frameset><frame src=https://elsewhere.example/></frameset>",
        "<form><input name=user><input type=password name=password></form>",
        "<meta http-equiv=refresh content='0; url=/'>Moved.",
        "<title>404</title><p>Nothing here.",
        "<h1>Page Not Found</h1><script>count()</script>",
        "<h1>Tandem</h1><p>Sold out.<script src=/count.js></script>",
        "<h1>1</h1><script>document.querySelector('h1').textContent = 2</script>",
    ] {
        assert_eq!(block_signs(&[body; 9]), [None; 9], "{body}");
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
        assert_eq!(block_signs(&[sample.body.as_str(); 9]), [None; 9], "{name}");
    }
}

#[test]
fn sites_are_kept_apart_and_their_number_is_bounded() {
    let mut pages = RepeatedPages::default();
    for path in ["1", "2"] {
        note_page(&mut pages, "first.example", path, CHALLENGE);
    }
    let others = (0..MOST_SITES).map(|n| format!("{n}.example"));
    for site in others {
        assert_eq!(note_page(&mut pages, &site, "1", CHALLENGE), SUSPECTED);
    }
    assert_eq!(
        note_page(&mut pages, "first.example", "9", CHALLENGE),
        BLOCKED
    );
    let others = (0..5 * MOST_SITES).map(|n| format!("{n}.test"));
    for site in others {
        assert_eq!(note_page(&mut pages, &site, "1", CHALLENGE), SUSPECTED);
        assert!(pages.recent.len() <= MOST_SITES && pages.older.len() <= MOST_SITES);
    }
    assert_eq!(
        note_page(&mut pages, "first.example", "10", CHALLENGE),
        SUSPECTED
    );
}
