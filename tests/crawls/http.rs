//! Tests HTTP: versions, encodings, charsets, content types, and proxies.

use std::time::Duration;

use webfill_test_needs::needs;
use webfill_tests::isolation::run_isolated;
use webfill_tests::site::encodings::{encoded_page, gzip};
use webfill_tests::site::{Page, Visit, Web, document, page, script, status};
use webfill_tests::workplace::Workplace;

#[test]
fn every_content_encoding_is_decoded() {
    let web = Web::start();
    let site = web.site("encoded.example");
    let encodings = ["gzip", "deflate", "br", "zstd"];
    for encoding in encodings {
        site.serve(&format!("/{encoding}"), encoded_page(encoding, encoding));
    }
    let work = Workplace::new();
    work.crawl(&web)
        .args(encodings.map(|encoding| site.url(&format!("/{encoding}"))))
        .finish()
        .expect_code(0);
    let pages = work.stored().pages();
    for encoding in encodings {
        let page = &pages[&site.url(&format!("/{encoding}"))];
        assert_eq!(
            (page.outcome.as_str(), &page.fields["title"]),
            ("ok", &encoding.into())
        );
    }
    for visit in &web.visits().pages().0 {
        let accepted = visit
            .header("accept-encoding")
            .expect("it names what it can decode");
        assert!(
            encodings.iter().all(|encoding| accepted.contains(encoding)),
            "{accepted}"
        );
    }
}

/// HTML bytes: an ASCII head, followed by an `<h1>` whose text may be in any charset.
fn html_with_heading(head: &str, text: &[u8]) -> Vec<u8> {
    [head.as_bytes(), b"<h1>", text, b"</h1>"].concat()
}

fn charset_cases() -> Vec<(&'static str, Page, &'static str)> {
    let privet = b"\xcf\xf0\xe8\xe2\xe5\xf2";
    let nihon = b"\x93\xfa\x96\x7b";
    let utf_16: Vec<u8> = "\u{feff}<h1>naïve</h1>"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    let http_equiv = "<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>";
    vec![
        (
            "/header",
            document(
                "text/html; charset=windows-1251",
                html_with_heading("", privet),
            ),
            "Привет",
        ),
        (
            "/quoted-header",
            document(
                "text/html;charset=\"Windows-1251\"",
                html_with_heading("", privet),
            ),
            "Привет",
        ),
        (
            "/meta",
            document(
                "text/html",
                html_with_heading("<meta charset=shift_jis>", nihon),
            ),
            "日本",
        ),
        (
            "/http-equiv",
            document("text/html", html_with_heading(http_equiv, privet)),
            "Привет",
        ),
        (
            "/header-wins-over-meta",
            document(
                "text/html; charset=utf-8",
                html_with_heading("<meta charset=shift_jis>", "é".as_bytes()),
            ),
            "é",
        ),
        (
            "/bom-wins",
            document("text/html; charset=windows-1251", utf_16),
            "naïve",
        ),
        (
            "/no-charset-utf-8",
            document("text/html", html_with_heading("", "Zoë".as_bytes())),
            "Zoë",
        ),
        (
            "/no-charset-latin",
            document("text/html", html_with_heading("", b"Zo\xeb \x80")),
            "Zoë €",
        ),
        (
            "/wrong-charset",
            document("text/html; charset=utf-8", html_with_heading("", b"Zo\xeb")),
            "Zoë",
        ),
        (
            "/wrong-charset-latin",
            document(
                "text/html; charset=iso-8859-1",
                html_with_heading("", "Zoë".as_bytes()),
            ),
            "Zoë",
        ),
        (
            "/damaged-utf-8",
            document(
                "text/html; charset=utf-8",
                html_with_heading("", b"Zo\xc3\xab \xeb"),
            ),
            "Zoë \u{fffd}",
        ),
        (
            "/xhtml",
            document(
                "application/xhtml+xml",
                html_with_heading("", "ok".as_bytes()),
            ),
            "ok",
        ),
        (
            "/list-of-types",
            document(
                "text/html; charset=windows-1251, text/html",
                html_with_heading("", privet),
            ),
            "Привет",
        ),
        (
            "/two-headers",
            document(
                "text/html; charset=windows-1251",
                html_with_heading("", privet),
            )
            .header("content-type", "text/html"),
            "Привет",
        ),
        (
            "/declared-in-a-script",
            document(
                "text/html",
                html_with_heading("<script>w('<meta charset=shift_jis>')</script>", b"Zo\xeb"),
            ),
            "Zoë",
        ),
        (
            "/late-and-7-bit",
            document(
                "text/html",
                html_with_heading(
                    &format!("{}<meta charset=iso-2022-jp>", " ".repeat(2000)),
                    b"\x1b$B$\"\x1b(B",
                ),
            ),
            "あ",
        ),
    ]
}

#[test]
fn charsets_come_from_the_bom_the_header_or_the_page() {
    let web = Web::start();
    let site = web.site("charset.example");
    let cases = charset_cases();
    for (path, page, _) in &cases {
        site.serve(path, page.clone());
    }
    let work = Workplace::new();
    let urls: Vec<String> = cases.iter().map(|(path, ..)| site.url(path)).collect();
    work.crawl(&web)
        .replace_flag("--delay", "0.01")
        .args(urls)
        .finish()
        .expect_code(0);
    let pages = work.stored().pages();
    for (path, _, expected) in &cases {
        assert_eq!(
            pages[&site.url(path)].fields.get("title"),
            Some(&(*expected).into()),
            "{path}"
        );
    }
}

#[test]
fn http_2_is_spoken_where_the_server_offers_it() {
    let web = Web::start_tls(&["two.example", "*.three.example"]);
    let site = web.site("two.example");
    site.serve("/", page("two").mapped_link("/next"))
        .serve("/next", encoded_page("next", "br"));
    web.site("www.three.example").serve("/", page("three"));
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .args([site.https_url("/"), "https://www.three.example/".into()])
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 3);
    let visits = web.visits();
    assert!(
        visits
            .0
            .iter()
            .all(|visit| visit.tls && visit.version == "HTTP/2"),
        "{visits:#?}"
    );
    visits.assert_polite(Duration::from_millis(200));
    assert_eq!(
        work.stored().pages()["https://two.example/next"].fields["title"],
        "next"
    );
}

/// Real response heads may be that long, because of security policies, cookies and reports.
#[test]
fn long_heads_are_read_in_both_versions() {
    for (version, protocol) in [("HTTP/2", "h2"), ("HTTP/1.1", "http/1.1")] {
        let web = Web::start().with_tls(&["long.example"], &[protocol]);
        let site = web.site("long.example");
        let urls: Vec<String> = [(20, 1_000), (70, 2_000), (300, 1_000)]
            .into_iter()
            .map(|(headers, bytes)| {
                let path = format!("/{headers}");
                let long = (0..headers).fold(page("long"), |page, number| {
                    page.header(&format!("x-{number}"), "v".repeat(bytes))
                });
                site.serve(&path, long);
                site.https_url(&path)
            })
            .collect();
        let work = Workplace::new();
        work.crawl(&web).args(&urls).finish().expect_code(0);
        let pages = work.stored().pages();
        for url in &urls {
            assert_eq!(pages[url].outcome, "ok", "{url} by {version}");
            assert_eq!(pages[url].fields["title"], "long", "{url} by {version}");
        }
        let visits = web.visits().pages();
        assert!(visits.0.iter().all(|visit| visit.version == version));
    }
}

#[test]
fn http_1_1_is_spoken_where_the_server_offers_nothing_else() {
    let web = Web::start().with_tls(&["one.example"], &["http/1.1"]);
    let site = web.site("one.example");
    site.serve("/", page("one"));
    let work = Workplace::new();
    work.crawl(&web)
        .arg(site.https_url("/"))
        .finish()
        .expect_code(0);
    assert_eq!(web.visits().pages().0[0].version, "HTTP/1.1");
    assert_eq!(work.stored().pages()["https://one.example/"].outcome, "ok");
}

#[test]
fn bodies_of_other_types_are_not_read() {
    let web = Web::start();
    let site = web.site("types.example");
    let types = [
        "video/mp4",
        "application/pdf",
        "application/octet-stream",
        "image/svg",
        "font/woff2",
    ];
    for (number, kind) in types.iter().enumerate() {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: 67108864\r\n\r\n");
        site.serve(
            &format!("/{number}"),
            script().send(head).send(vec![0; 64 << 20]),
        );
    }
    let work = Workplace::new();
    let urls = (0..types.len()).map(|number| site.url(&format!("/{number}")));
    let run = work.crawl(&web).args(urls).finish().expect_code(0);
    assert_eq!(
        run.summary().outcome_count("unsupported_type"),
        types.len() as u64
    );
    for visit in &web.visits().pages().0 {
        assert!(
            visit.cut_short && visit.sent_bytes < 16 << 20,
            "{} bytes of {}",
            visit.sent_bytes,
            visit.path
        );
    }
}

#[test]
fn json_xml_and_text_are_read() {
    let web = Web::start();
    let site = web.site("kinds.example");
    let kinds = [
        ("/json", "application/json", "{\"a\": 1}"),
        ("/ld", "application/ld+json; charset=utf-8", "{\"a\": 1}"),
        ("/xml", "application/xml", "<a>1</a>"),
        ("/atom", "application/atom+xml", "<feed/>"),
        ("/text", "text/plain", "hello"),
        ("/csv", "text/csv", "a,b"),
    ];
    for (path, kind, body) in kinds {
        site.serve(path, document(kind, body));
    }
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .args(kinds.map(|(path, ..)| site.url(path)))
        .finish()
        .expect_code(0);
    assert_eq!(
        run.summary().outcome_count("ok"),
        kinds.len() as u64,
        "{:?}",
        work.stored().outcomes()
    );
}

#[test]
fn the_body_cap_counts_decoded_bytes() {
    let web = Web::start();
    let site = web.site("caps.example");
    let sized = |mebibytes: usize| {
        let body = [b"<h1>T</h1>".as_slice(), &vec![b' '; mebibytes << 20]].concat();
        gzip(&body)
    };
    for (path, mebibytes) in [("/below", 7), ("/above", 9)] {
        let page = document("text/html", sized(mebibytes)).header("content-encoding", "gzip");
        site.serve(path, page);
    }
    let work = Workplace::new();
    work.crawl(&web)
        .args([site.url("/below"), site.url("/above")])
        .finish()
        .expect_code(0);
    let outcomes = work.stored().outcomes();
    assert_eq!(outcomes["http://caps.example/below"], "ok");
    assert_eq!(outcomes["http://caps.example/above"], "too_large");
}

#[test]
fn proxies_are_taken_from_the_flag_and_never_from_the_environment() {
    let web = Web::start();
    web.site("direct.example").serve("/", page("direct"));
    let work = Workplace::new();
    let mut run = work.crawl(&web).arg("http://direct.example/");
    for name in [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "all_proxy",
        "ALL_PROXY",
    ] {
        run = run.env(name, "http://127.0.0.1:1/");
    }
    run.finish().expect_code(0);
    assert_eq!(work.stored().outcomes()["http://direct.example/"], "ok");
    assert!(web.visits().0.iter().all(|visit| !visit.proxied));

    let proxy = Web::start();
    proxy.site("behind.example").serve("/", page("behind"));
    let work = Workplace::new();
    let address = format!("http://{}", proxy.plain_address());
    let run = work.plain_crawl().args([
        "--allow-private-networks",
        "--contact",
        "https://crawler.example/",
    ]);
    run.args([
        "--delay",
        "0.2",
        "--proxy",
        &address,
        "http://behind.example/",
    ])
    .finish()
    .expect_code(0);
    assert_eq!(work.stored().outcomes()["http://behind.example/"], "ok");
    assert!(
        proxy.visits().0.iter().all(|visit| visit.proxied),
        "{:?}",
        proxy.visits()
    );
}

#[needs(namespaces)]
#[test]
fn a_name_that_does_not_resolve_is_a_dns_error() {
    // Names in `.invalid` never resolve (RFC 6761). The network is isolated, so that no DNS server is contacted.
    run_isolated("http::a_name_that_does_not_resolve_is_a_dns_error", || {
        let work = Workplace::new();
        let run = work.plain_crawl().args([
            "--contact",
            "https://crawler.example/",
            "http://no.invalid/",
        ]);
        run.finish().expect_code(0);
        assert_eq!(work.stored().outcomes()["http://no.invalid/"], "dns_error");
    });
}

#[test]
fn any_status_is_an_outcome_with_its_number() {
    let web = Web::start();
    let site = web.site("status.example");
    let statuses = [400, 401, 403, 404, 410, 418, 451, 500, 502, 599];
    for code in statuses {
        site.serve(&format!("/{code}"), page("sorry").status(code));
    }
    site.serve("/304", status(304));
    site.serve("/999", page("sorry").status(999));
    let work = Workplace::new();
    let urls = statuses.map(|code| site.url(&format!("/{code}")));
    work.crawl(&web)
        .replace_flag("--delay", "0.01")
        .args(urls)
        .args([site.url("/304"), site.url("/999")])
        .finish()
        .expect_code(0);
    let pages = work.stored().pages();
    for code in statuses {
        let page = &pages[&site.url(&format!("/{code}"))];
        assert_eq!(
            (page.outcome.as_str(), page.status_code),
            ("http_error", Some(code))
        );
        assert!(page.fields.is_empty(), "an error page is no profile");
    }
    // The server answers 304 although the request had no condition.
    let unasked = &pages[&site.url("/304")];
    assert_eq!(
        (unasked.outcome.as_str(), unasked.status_code),
        ("http_error", Some(304))
    );
    // Only sites that refuse robots use status 999.
    let refused = &pages[&site.url("/999")];
    assert_eq!(
        (refused.outcome.as_str(), refused.status_code),
        ("blocked", Some(999))
    );
}

#[test]
fn a_crawl_of_many_sites_keeps_few_connections_open() {
    let web = Web::start();
    let urls: Vec<String> = (0..30)
        .map(|number| {
            let site = web.site(&format!("site-{number}.example"));
            site.serve("/", page("A page"));
            site.url("/")
        })
        .collect();
    let crawl = |urls: &[String]| {
        let work = Workplace::new();
        let crawl = work.crawl(&web).replace_flag("--workers", "1");
        crawl.args(urls).finish().expect_code(0);
        let asked_to_close = |visit: &&Visit| visit.header("connection") == Some("close");
        let visits = web.visits().pages().0;
        visits.iter().filter(asked_to_close).count()
    };
    assert_eq!(crawl(&urls[..16]), 0);
    assert_eq!(crawl(&urls), 30 - 16);
}
