//! Tests TLS: certificates, and servers without TLS.

use std::time::Duration;

use webfill_tests::site::{Certificates, Web, page};
use webfill_tests::workplace::Workplace;

use crate::patience;

#[test]
fn certificates_are_checked() {
    let web = Web::start_tls(&["right.example"]);
    for host in ["right.example", "wrong.example"] {
        web.site(host).serve_otherwise(|_| page("T").into());
    }
    let urls = ["https://right.example/", "https://wrong.example/"];
    let trusting = Workplace::new();
    trusting.crawl(&web).args(urls).finish().expect_code(0);
    let outcomes = trusting.stored().outcomes();
    assert_eq!(outcomes["https://right.example/"], "ok");
    assert_eq!(
        outcomes["https://wrong.example/"], "tls_error",
        "the name is not in the certificate"
    );

    let stranger = Certificates::make(&["right.example"]);
    let distrusting = Workplace::new();
    // The crawl trusts another authority than the one that has signed the server's certificate.
    let run = distrusting
        .plain_crawl()
        .args(["--allow-private-networks", "--delay", "0.2", "--resolve"])
        .arg(format!("*:443:127.0.0.1:{}", web.tls_address().port()))
        .arg("--ca-file")
        .arg(stranger.authority())
        .arg(urls[0]);
    run.finish().expect_code(0);
    assert_eq!(distrusting.stored().outcomes()[urls[0]], "tls_error");
}

#[test]
fn a_server_that_speaks_no_tls_is_a_tls_error() {
    let web = Web::start();
    web.site("plain.example").serve("/", page("T"));
    let work = Workplace::new();
    let resolve = format!("*:443:127.0.0.1:{}", web.plain_address().port());
    work.crawl(&web)
        .args(["--resolve", &resolve, "https://plain.example/"])
        .finish()
        .expect_code(0);
    assert_eq!(
        work.stored().outcomes()["https://plain.example/"],
        "tls_error"
    );
}

/// A certificate that is not valid rarely becomes valid soon. So all pages of the site end at once, without any wait.
#[test]
fn a_site_whose_certificate_is_not_valid_ends_in_that_outcome() {
    let web = Web::start_tls(&["right.example"]);
    let right = web.site("right.example");
    right.serve_otherwise(|_| page("T").into());
    let pages = |host: &str| {
        (0..8)
            .map(|n| format!("https://{host}/{n}"))
            .collect::<Vec<_>>()
    };
    let work = Workplace::new();
    let run = patience::crawl_command(&work, &web, "2m")
        .args(pages("right.example"))
        .args(pages("wrong.example"))
        // The time limit is shorter than the patience of two minutes, so the crawl must not wait for the site.
        .time_limit(Duration::from_secs(80));
    run.finish().expect_code(0);
    let outcomes = work.stored().outcomes();
    for (host, outcome) in [("right.example", "ok"), ("wrong.example", "tls_error")] {
        for url in pages(host) {
            assert_eq!(outcomes[&url], outcome, "{url}");
        }
    }
}
