//! Tests names that resolve to private addresses, always or sometimes (DNS rebinding): the owner of a name can give
//! each DNS query another answer.

use std::net::{IpAddr, TcpListener};

use webfill_test_needs::needs;
use webfill_tests::isolation::{add_address, run_isolated};
use webfill_tests::name_server::NameServer;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

const PUBLIC: &str = "93.184.216.34";
const PRIVATE: &str = "10.1.2.3";

fn parse_ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn public_crawl(work: &Workplace) -> Run {
    work.plain_crawl().args([
        "--delay",
        "0.05",
        "--contact",
        "https://crawler.example/about",
    ])
}

/// Starts a web at the public address, and a listener at the same port of the private address, which must get no
/// connection.
fn start_web_and_listener() -> (Web, TcpListener) {
    add_address(PUBLIC);
    add_address(PRIVATE);
    let web = Web::start_on(parse_ip(PUBLIC));
    let inside = TcpListener::bind((PRIVATE, web.plain_address().port())).expect("a free port");
    inside
        .set_nonblocking(true)
        .expect("sockets can be non-blocking");
    (web, inside)
}

fn assert_no_connection(inside: &TcpListener) {
    let came = inside.accept();
    let nobody = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(came.as_ref().is_err_and(nobody), "{came:?}");
}

#[needs(namespaces)]
#[test]
fn a_name_that_changes_its_address_never_leads_to_a_private_one() {
    run_isolated(
        "changing_names::a_name_that_changes_its_address_never_leads_to_a_private_one",
        || {
            let (web, inside) = start_web_and_listener();
            let site = web.site("changing.example");
            // Close each connection after its answer, so that each request looks up the name again.
            site.serve(
                "/robots.txt",
                page("no rules").header("connection", "close"),
            );
            site.serve_otherwise(|_| page("T").header("connection", "close").into());
            let work = Workplace::new();
            // The name resolves to the public address for robots.txt and the first page. After that, every second
            // answer is the private address.
            let names = NameServer::start(&work.path(""), |_, asked| match asked {
                0 | 1 => vec![parse_ip(PUBLIC)],
                odd if odd % 2 == 1 => vec![parse_ip(PUBLIC)],
                _ => vec![parse_ip(PRIVATE)],
            });
            let port = web.plain_address().port();
            let urls = (0..8).map(|number| format!("http://changing.example:{port}/{number}"));
            let run = public_crawl(&work).args(urls).finish().expect_code(0);
            let summary = run.summary();
            assert_no_connection(&inside);
            assert!(
                names.answered_count() >= 8,
                "asked {} times",
                names.answered_count()
            );
            assert!(summary.outcome_count("ok") >= 2, "{}", summary.json);
            assert!(
                summary.outcome_count("unsafe_address") >= 2,
                "{}",
                summary.json
            );
            assert_eq!(
                summary.outcome_count("ok") + summary.outcome_count("unsafe_address"),
                8,
                "{}",
                summary.json
            );
        },
    );
}

#[needs(namespaces)]
#[test]
fn only_the_public_address_of_a_name_with_both_is_contacted() {
    run_isolated(
        "changing_names::only_the_public_address_of_a_name_with_both_is_contacted",
        || {
            let (web, inside) = start_web_and_listener();
            web.site("both.example")
                .serve_otherwise(|_| page("T").into());
            let work = Workplace::new();
            let _names = NameServer::start(&work.path(""), |_, _| {
                vec![parse_ip(PRIVATE), parse_ip(PUBLIC)]
            });
            let url = format!("http://both.example:{}/", web.plain_address().port());
            public_crawl(&work).arg(&url).finish().expect_code(0);
            assert_eq!(work.stored().outcomes()[&url], "ok");
            assert_no_connection(&inside);
        },
    );
}

#[needs(namespaces)]
#[test]
fn names_of_private_addresses_are_refused_in_every_form() {
    run_isolated(
        "changing_names::names_of_private_addresses_are_refused_in_every_form",
        || {
            let web = Web::start();
            let site = web.site_at("127.0.0.1");
            site.serve_otherwise(|_| page("T").into());
            let port = site.url("").rsplit_once(':').expect("a port").1.to_string();
            let closed = [
                "127.0.0.1",
                "127.8.8.8",
                "0.0.0.0",
                "10.1.2.3",
                "100.64.0.1",
                "169.254.169.254",
                "192.0.2.1",
                "198.18.0.1",
                "224.0.0.1",
                "240.0.0.1",
                "255.255.255.255",
                "::1",
                "::",
                "::127.0.0.1",
                "::ffff:127.0.0.1",
                "64:ff9b::127.0.0.1",
                "64:ff9b:1::127.0.0.1",
                "2002:7f00:1::",
                "2001:0:4136:e378:8000:63bf:80ff:fffe",
                "2001:db8::1",
                "fd00::7",
                "fe80::1",
                "ff02::1",
            ];
            let work = Workplace::new();
            let _names = NameServer::start(&work.path(""), move |name, _| {
                let number = name
                    .strip_prefix("host-")
                    .and_then(|rest| rest.split('.').next());
                let number: usize = number.and_then(|text| text.parse().ok()).expect("a number");
                vec![parse_ip(closed[number])]
            });
            let urls: Vec<String> = (0..closed.len())
                .map(|number| format!("http://host-{number}.example:{port}/"))
                .collect();
            public_crawl(&work).args(&urls).finish().expect_code(0);
            let outcomes = work.stored().outcomes();
            for (url, address) in urls.iter().zip(closed) {
                assert_eq!(outcomes[url], "unsafe_address", "{address}");
            }
            assert_eq!(web.connection_count(), 0);
        },
    );
}
