//! Tests addresses that the crawler must not connect to. Servers at these addresses record every connection.

use webfill_test_needs::needs;
use webfill_tests::isolation::{add_address, run_isolated};
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page, redirect};
use webfill_tests::workplace::Workplace;

const CONTACT: [&str; 2] = ["--contact", "https://crawler.example/about"];

fn public_crawl(work: &Workplace) -> Run {
    work.plain_crawl().args(["--delay", "0.2"]).args(CONTACT)
}

#[test]
fn loopback_is_refused_in_every_spelling() {
    let web = Web::start();
    let site = web.site_at("127.0.0.1");
    site.serve_otherwise(|_| page("T").into());
    let port = site.url("").rsplit_once(':').expect("a port").1.to_string();
    let spellings = [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "localhost",
        "１２７.0.0.1",
        "0",
        "0.0.0.0",
        "[::]",
        "[64:ff9b::7f00:1]",
        "[::127.0.0.1]",
    ];
    let work = Workplace::new();
    let urls = spellings
        .iter()
        .enumerate()
        .map(|(number, host)| format!("http://{host}:{port}/{number}"));
    let run = public_crawl(&work).args(urls).finish().expect_code(0);
    assert_eq!(
        web.connection_count(),
        0,
        "asked: {:?}",
        web.visits().paths()
    );
    let summary = run.summary();
    assert_eq!(
        summary.outcome_count("unsafe_address"),
        spellings.len() as u64,
        "{}",
        summary.json
    );
    assert_eq!(summary.pages(), 0);
}

#[test]
fn a_name_that_leads_to_loopback_is_refused() {
    let web = Web::start();
    web.site("innocent.example")
        .serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    public_crawl(&work)
        .args(web.resolve_args())
        .arg("http://innocent.example/")
        .finish()
        .expect_code(0);
    assert_eq!(
        work.stored().outcomes()["http://innocent.example/"],
        "unsafe_address"
    );
    assert_eq!(web.connection_count(), 0);
}

#[needs(namespaces)]
#[test]
fn private_addresses_are_contacted_only_with_the_flag() {
    run_isolated(
        "addresses::private_addresses_are_contacted_only_with_the_flag",
        || {
            let addresses = [
                "10.1.2.3",
                "172.16.9.9",
                "192.168.7.7",
                "169.254.169.254",
                "100.64.0.1",
                "fd00::7",
            ];
            for address in addresses {
                add_address(address);
            }
            let web = Web::start();
            let urls: Vec<String> = addresses
                .iter()
                .map(|address| {
                    let site = web.site_at(address);
                    site.serve_otherwise(|_| page("T").into());
                    site.url("/")
                })
                .collect();
            let careful = Workplace::new();
            let run = public_crawl(&careful).args(&urls).finish().expect_code(0);
            assert_eq!(
                run.summary().outcome_count("unsafe_address"),
                addresses.len() as u64
            );
            assert_eq!(web.connection_count(), 0);

            let reported = Workplace::new();
            let run = reported.crawl(&web).args(&urls).finish().expect_code(0);
            assert_eq!(
                run.summary().outcome_count("ok"),
                addresses.len() as u64,
                "{:?}",
                reported.stored().outcomes()
            );
        },
    );
}

#[needs(namespaces)]
#[test]
fn a_public_page_cannot_redirect_into_the_private_network() {
    run_isolated(
        "addresses::a_public_page_cannot_redirect_into_the_private_network",
        || {
            add_address("93.184.216.34");
            add_address("10.1.2.3");
            let web = Web::start_on("93.184.216.34".parse().expect("an address"));
            let inside = web.site_at("10.1.2.3");
            inside.serve_otherwise(|_| page("secret").into());
            let site = web.site("public.example");
            site.serve("/", redirect(&inside.url("/secret")));
            site.serve("/link", page("T").mapped_link(&inside.url("/linked")));
            let work = Workplace::new();
            let urls = [site.url("/"), site.url("/link")];
            public_crawl(&work)
                .args(web.resolve_args())
                .args(urls)
                .finish()
                .expect_code(0);
            let outcomes = work.stored().outcomes();
            assert_eq!(outcomes["http://public.example/"], "redirected");
            assert_eq!(outcomes["http://public.example/link"], "ok");
            assert_eq!(outcomes[&inside.url("/secret")], "unsafe_address");
            assert_eq!(outcomes[&inside.url("/linked")], "unsafe_address");
            assert!(inside.visits().is_empty());
        },
    );
}

#[needs(namespaces)]
#[test]
fn robots_files_cannot_redirect_into_the_private_network() {
    run_isolated(
        "addresses::robots_files_cannot_redirect_into_the_private_network",
        || {
            add_address("93.184.216.34");
            add_address("10.1.2.3");
            let web = Web::start_on("93.184.216.34".parse().expect("an address"));
            let inside = web.site_at("10.1.2.3");
            inside.serve_otherwise(|_| page("secret").into());
            let site = web.site("public.example");
            site.serve("/robots.txt", redirect(&inside.url("/rules")))
                .serve("/", page("T"));
            let work = Workplace::new();
            public_crawl(&work)
                .args(web.resolve_args())
                .arg(site.url("/"))
                .finish()
                .expect_code(0);
            assert!(inside.visits().is_empty(), "{:?}", inside.visits().paths());
            assert_ne!(work.stored().outcomes()["http://public.example/"], "ok");
        },
    );
}

#[needs(namespaces)]
#[test]
fn public_addresses_are_asked_only_with_a_contact() {
    run_isolated(
        "addresses::public_addresses_are_asked_only_with_a_contact",
        || {
            add_address("93.184.216.34");
            let web = Web::start_on("93.184.216.34".parse().expect("an address"));
            let site = web.site("public.example");
            site.serve("/", page("T"));
            let nameless = Workplace::new();
            // `--allow-private-networks` requires no contact, because it is for the user's own machines.
            nameless
                .crawl(&web)
                .arg(site.url("/"))
                .finish()
                .expect_code(0);
            assert_eq!(
                nameless.stored().outcomes()[&site.url("/")],
                "unsafe_address"
            );
            assert_eq!(web.connection_count(), 0);

            let named = Workplace::new();
            public_crawl(&named)
                .args(web.resolve_args())
                .arg(site.url("/"))
                .finish()
                .expect_code(0);
            assert_eq!(named.stored().outcomes()[&site.url("/")], "ok");
            let agent = site.visits().0[0].header("user-agent").map(str::to_string);
            assert!(agent.is_some_and(|agent| agent.contains("(+https://crawler.example/about)")));
        },
    );
}

#[test]
fn links_and_redirects_bring_neither_bad_ports_nor_credentials() {
    let web = Web::start();
    let (site, odd) = (web.site("links.example"), web.site("odd.example"));
    let lost = web.site("lost.example");
    lost.serve("/robots.txt", redirect("http://odd.example:25/robots.txt"));
    site.serve(
        "/",
        page("T")
            .mapped_link("http://links.example:6667/")
            .mapped_link("http://me:hidden@links.example/linked"),
    )
    .serve("/linked", redirect("http://me:hidden@links.example/next"))
    .serve("/next", redirect("http://odd.example:25/"));
    odd.serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .args(["--resolve", &format!("*:25:{}", web.plain_address())])
        .args(["--resolve", &format!("*:6667:{}", web.plain_address())])
        .arg(site.url("/"))
        .arg(lost.url("/"))
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(summary.skipped_count("invalid_url"), 2, "{}", summary.json);
    let outcomes = work.stored().outcomes();
    assert_eq!(outcomes[&site.url("/linked")], "redirected", "{outcomes:?}");
    assert_eq!(outcomes[&site.url("/next")], "redirected", "{outcomes:?}");
    assert_eq!(
        outcomes[&lost.url("/")],
        "robots_unreachable",
        "{outcomes:?}"
    );
    assert!(odd.visits().is_empty(), "{:?}", odd.visits().paths());
    for visit in &web.visits().0 {
        assert_eq!(visit.header("authorization"), None, "{visit:?}");
        assert!(!visit.host_header.contains("6667"), "{visit:?}");
    }
    let logs = format!("{:?}", work.logs());
    assert!(!logs.contains("hidden"), "{logs}");
}
