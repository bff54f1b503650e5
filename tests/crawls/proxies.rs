//! Tests crawls through a proxy. The proxy connects to any address, so webfill must refuse forbidden addresses before.
//! The proxy's password must not be shown anywhere.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use webfill_tests::site::{Web, page, redirect};
use webfill_tests::socks::{ProxyLog, SocksProxy};
use webfill_tests::workplace::{Workplace, files_under};

const SECRET: &str = "hidden-word";

#[test]
fn a_proxy_gets_no_requests_that_are_refused_without_one() {
    let proxy = Web::start();
    let site = proxy.site("public.example");
    site.serve("/", page("T"))
        .serve("/inside", redirect("http://10.1.2.3/secret"))
        .serve("/named", redirect("http://inner.example/secret"));
    let refused = [
        "http://127.0.0.1/",
        "http://2130706433:8080/",
        "http://10.1.2.3/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:10.1.2.3]/",
        "http://localhost/",
        "http://inner.example/",
    ];
    let work = Workplace::new();
    let run = work
        .plain_crawl()
        .args(["--delay", "0.05", "--contact", "https://crawler.example/"])
        .args(["--proxy", &format!("http://{}", proxy.plain_address())])
        .args(["--resolve", "public.example:80:93.184.216.34"])
        .args(["--resolve", "inner.example:80:10.1.2.3"])
        .args(["/", "/inside", "/named"].map(|path| site.url(path)))
        .args(refused)
        .finish()
        .expect_code(0);
    let outcomes = work.stored().outcomes();
    assert_eq!(outcomes[&site.url("/")], "ok", "{outcomes:?}");
    assert_eq!(outcomes[&site.url("/inside")], "redirected");
    // Two redirects lead to refused URLs, too, so there are two more outcomes than refused seeds.
    assert_eq!(
        run.summary().outcome_count("unsafe_address"),
        refused.len() as u64 + 2,
        "{outcomes:?}"
    );
    let hosts = proxy.visits().hosts();
    assert_eq!(hosts.into_iter().collect::<Vec<_>>(), ["public.example"]);
}

#[test]
fn the_password_of_a_proxy_is_used_and_shown_nowhere() {
    let proxy = Web::start();
    proxy.site("quick.example").serve("/", page("T"));
    // The processes are inspected while this slow page is being fetched.
    let busy = proxy.site("busy.example");
    busy.serve("/", page("T").latency(Duration::from_secs(2)));
    let work = Workplace::new();
    let address = format!("http://me:{SECRET}@{}", proxy.plain_address());
    let crawl = work
        .plain_crawl()
        .args(["--delay", "0.05", "--contact", "https://crawler.example/"])
        .args(["--resolve", "*:80:93.184.216.34"])
        .args(["http://quick.example/", "http://busy.example/"])
        .env("WEBFILL_FETCH_PROXY", &address)
        .env("WEBFILL_LOG_LEVEL", "debug");
    let mut running = crawl.start();
    running.wait_for_role("worker", 2);
    for process in running.processes() {
        assert!(!process.arguments.concat().contains(SECRET), "{process:?}");
    }
    let run = running.finish().expect_code(0);
    assert_eq!(work.stored().outcomes()["http://quick.example/"], "ok");
    let sent = proxy.visits().0[0]
        .header("proxy-authorization")
        .map(str::to_owned);
    assert!(sent.is_some_and(|value| value.starts_with("Basic ")));
    assert!(!run.stdout.contains(SECRET) && !run.stderr.contains(SECRET));
    for path in files_under(&work.path("state")) {
        // Some files are sockets and cannot be read.
        let Ok(content) = std::fs::read(&path) else {
            continue;
        };
        let text = String::from_utf8_lossy(&content);
        // This file passes the settings, with the password, to the other processes. Only its owner may read it.
        if path.extension().is_some_and(|kind| kind == "toml") {
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", path.display());
        } else {
            assert!(!text.contains(SECRET), "{}", path.display());
        }
    }
}

#[test]
fn a_proxy_that_refuses_is_reported_without_its_password() {
    let work = Workplace::new();
    // No process listens on port 1.
    let run = work
        .plain_crawl()
        .args(["--delay", "0.05", "--contact", "https://crawler.example/"])
        .args(["--resolve", "*:80:93.184.216.34", "http://a.example/"])
        .env(
            "WEBFILL_FETCH_PROXY",
            format!("http://me:{SECRET}@127.0.0.1:1"),
        )
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 0);
    let logs = format!("{:?}", work.logs());
    assert!(!logs.contains(SECRET) && !run.stderr.contains(SECRET));

    let wrong = work
        .plain_crawl()
        .arg("http://a.example/")
        .env("WEBFILL_FETCH_PROXY", format!("http://me:{SECRET}@:3128"))
        .finish()
        .expect_code(2);
    assert!(
        wrong.one_sentence().contains("empty host"),
        "{}",
        wrong.stderr
    );
    assert!(!wrong.stderr.contains(SECRET));
}

/// Crawls one page at a public address and two pages at a private address through a SOCKS5 proxy. Returns the log of
/// the proxy.
fn crawl_through_socks(scheme: &str) -> ProxyLog {
    let web = Web::start();
    web.site("public.example").serve("/", page("T"));
    let proxy = SocksProxy::start(web.plain_address());
    let work = Workplace::new();
    let run = work
        .plain_crawl()
        .args(["--delay", "0.05", "--contact", "https://crawler.example/"])
        .args(["--resolve", "public.example:80:93.184.216.34"])
        .args(["--resolve", "inner.example:80:10.1.2.3"])
        .args(["http://public.example/", "http://inner.example/"])
        .arg("http://10.1.2.3/")
        .env(
            "WEBFILL_FETCH_PROXY",
            format!("{scheme}://me:{SECRET}@{}", proxy.address()),
        )
        .finish()
        .expect_code(0);
    assert_eq!(work.stored().outcomes()["http://public.example/"], "ok");
    assert_eq!(run.summary().outcome_count("unsafe_address"), 2);
    assert!(!format!("{:?}", work.logs()).contains(SECRET));
    proxy.proxy_log()
}

#[test]
fn a_socks_proxy_gets_the_address_that_was_judged() {
    let noted = crawl_through_socks("socks5");
    assert!(!noted.targets.is_empty());
    for target in &noted.targets {
        assert_eq!(target, "93.184.216.34:80");
    }
    assert!(noted.logins.contains(&format!("me:{SECRET}")));
}

#[test]
fn a_socks_proxy_that_resolves_names_gets_only_names_that_were_judged() {
    let noted = crawl_through_socks("socks5h");
    assert!(!noted.targets.is_empty());
    for target in &noted.targets {
        assert_eq!(target, "public.example:80");
    }
}
