//! Tests the lane `browser`: Chromium renders pages, and they are read after their scripts have run. The access log of
//! the site shows all requests.

use std::collections::BTreeSet;
use std::net::{TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::json;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Site, Web, document, page};
use webfill_tests::workplace::Workplace;

mod processes;

/// The delay between two requests to a site, as [`Workplace::crawl`] sets it.
const DELAY: Duration = Duration::from_millis(200);

/// A crawl in the lane `browser`. Chromium's sandbox is switched off, because it does not work for root.
fn crawl_command(work: &Workplace, web: &Web) -> Run {
    work.crawl(web)
        .args(["--lane", "browser"])
        .replace_flag("--workers", "1")
        .env("WEBFILL_BROWSER_SANDBOX", "false")
        .time_limit(Duration::from_secs(120))
}

fn page_with_script(text: &str) -> webfill_tests::site::Page {
    document(
        "text/html",
        format!("<html><body><script>{text}</script></body></html>"),
    )
}

/// A script that fills pages. They are empty until `/app.js` has requested their data.
const APP: &str = "
    const id = location.pathname.split('/').pop();
    // The polite delay before the data is fetched takes longer than this in real time.
    const hurry = setTimeout(() => document.title = 'too late', 150);
    fetch('/data/' + id + '.json').then(answer => answer.json()).then(data => {
        clearTimeout(hurry);
        setTimeout(() => {
            document.body.innerHTML = `<h1>${data.title}</h1><p class='name'>${data.name}</p>
                <a rel='me' href='${data.next}'>next</a>`;
        }, 3000);
    });";

fn serve_people(site: &Site, most: usize) {
    let shell = "<!DOCTYPE html><title>wait</title><link rel=stylesheet href=/style.css>
        <body><img src=/logo.png><p>Loading</p><script src=/app.js></script></body>";
    site.serve("/app.js", document("text/javascript", APP));
    for n in 1..=most {
        let data = json!({
            "title": format!("Person {n}"), "name": format!("Ada the {n}th"),
            "next": format!("/people/{}", n + 1),
        });
        site.serve(&format!("/people/{n}"), document("text/html", shell));
        let path = format!("/data/{n}.json");
        site.serve(&path, document("application/json", data.to_string()));
    }
}

#[needs(chromium)]
#[test]
fn a_page_that_scripts_fill_is_read_when_they_have_run() {
    let web = Web::start();
    let site = web.site("people.example");
    serve_people(&site, 3);
    let work = Workplace::new();
    let started = Instant::now();
    let run = crawl_command(&work, &web)
        .args(["--depth", "2", &site.url("/people/1")])
        .finish()
        .expect_code(0);
    assert_eq!(
        run.summary().outcome_count("ok"),
        3,
        "{}",
        run.summary().json
    );
    let pages = work.stored().pages();
    for n in 1..=3 {
        let page = &pages[&site.url(&format!("/people/{n}"))];
        let expected = json!({"title": format!("Person {n}"), "name": format!("Ada the {n}th")});
        assert_eq!(
            serde_json::Value::from(page.fields.clone()),
            expected,
            "person {n}"
        );
    }
    let visits = site.visits();
    visits.assert_polite(DELAY);
    let counts = visits.counts();
    assert_eq!(
        counts["people.example/app.js"], 1,
        "scripts are remembered: {counts:?}"
    );
    assert_eq!(counts["people.example/robots.txt"], 1);
    assert_eq!(
        visits.len(),
        1 + 3 + 1 + 3,
        "no styles, no images: {counts:?}"
    );
    // Each page sets timers of three seconds, but the browser makes its clock run faster, so nothing waits for them.
    let waits = DELAY * u32::try_from(visits.len()).unwrap();
    let rest = started.elapsed().saturating_sub(waits);
    println!("{rest:?} beside the delays");

    // Without a browser, the same pages contain no text.
    let plain = Workplace::new();
    let run = plain
        .crawl(&web)
        .args(["--depth", "2", &site.url("/people/1")]);
    run.finish().expect_code(0);
    let pages = plain.stored().pages();
    assert_eq!(pages.len(), 1);
    assert!(pages[&site.url("/people/1")].fields.is_empty());
}

#[needs(chromium)]
#[test]
fn requests_that_pages_send_in_a_browser_are_checked_like_others() {
    let web = Web::start();
    let (site, other) = (web.site("asking.example"), web.site("other.example"));
    site.serve_robots("User-agent: *\nDisallow: /secret\n");
    // No connection may arrive at these listeners, by TCP or UDP.
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp_port, udp_port) = (
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
    );
    let asking = format!(
        "const reported = [];
        const note = (name, asked) => asked.then(x => reported.push(name + ' ' + x.status))
            .catch(() => reported.push(name + ' refused'))
            .then(() => document.body.innerHTML = '<h1>' + reported.sort().join(', ') + '</h1>');
        note('data', fetch('/data.json'));
        note('moved', fetch('/moved.json'));
        note('missing', fetch('/missing.json'));
        note('secret', fetch('/secret.json'));
        note('sent', fetch('/data.json', {{method: 'POST', body: 'x'}}));
        note('other', fetch('{other}', {{mode: 'no-cors'}}));
        note('port', fetch('http://127.0.0.1:{tcp_port}/', {{mode: 'no-cors'}}));
        navigator.sendBeacon('/beacon', 'x');
        new WebSocket('ws://127.0.0.1:{tcp_port}/');
        new EventSource('http://127.0.0.1:{tcp_port}/');
        new Worker(URL.createObjectURL(new Blob([\"fetch('http://127.0.0.1:{tcp_port}/')\"])));
        const peer = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{udp_port}'}}]}});
        peer.createDataChannel('x');
        peer.createOffer().then(offer => peer.setLocalDescription(offer));
        window.open('http://127.0.0.1:{tcp_port}/');",
        other = other.url("/data.json"),
    );
    let html = format!(
        "<html><head><link rel=preconnect href='http://127.0.0.1:{tcp_port}'>
        <link rel=prefetch href=/prefetched><link rel=stylesheet href=/style.css></head>
        <body><img src=/image.png><iframe src=/frame></iframe><video src=/film.mp4></video>
        <script src='http://127.0.0.1:{tcp_port}/x.js'></script><script>{asking}</script></body></html>"
    );
    site.serve("/", document("text/html", html));
    site.serve("/data.json", document("application/json", "{}"));
    site.serve("/moved.json", webfill_tests::site::redirect("/data.json"));
    for path in [
        "/secret.json",
        "/beacon",
        "/style.css",
        "/image.png",
        "/frame",
        "/prefetched",
    ] {
        site.serve(path, page("not asked for"));
    }
    other.serve("/data.json", document("application/json", "{}"));
    let work = Workplace::new();
    crawl_command(&work, &web)
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    let reported = "data 200, missing 404, moved 200, other refused, port refused, secret refused, sent refused";
    let pages = work.stored().pages();
    assert_eq!(pages[&site.url("/")].fields["title"], reported);
    let visits = site.visits();
    visits.assert_polite(DELAY);
    let asked: BTreeSet<String> = visits.paths().into_iter().collect();
    let expected = ["", "data.json", "missing.json", "moved.json", "robots.txt"];
    assert_eq!(
        asked,
        expected.map(|path| format!("asking.example/{path}")).into()
    );
    assert!(other.visits().is_empty(), "another site has another clock");
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    assert!(tcp.accept().is_err(), "the browser itself asks nobody");
    assert!(udp.recv_from(&mut [0; 100]).is_err(), "nor by UDP");
}

#[needs(chromium)]
#[test]
fn scripts_that_go_to_another_page_are_a_redirect() {
    let web = Web::start();
    let site = web.site("going.example");
    site.serve(
        "/script",
        page_with_script("location.replace('/there-by-script')"),
    );
    site.serve(
        "/refresh",
        document(
            "text/html",
            "<meta http-equiv=refresh content='2;url=/there-by-refresh'>",
        ),
    );
    site.serve(
        "/again",
        // A nearly empty page that reloads itself would be recognised as a block.
        page("long")
            .html("text ".repeat(100))
            .html("<script>document.body.innerHTML = '<h1>again</h1>'; location.reload()</script>"),
    );
    site.serve(
        "/away",
        page_with_script(
            "location = 'ftp://going.example/x'; document.body.innerHTML = '<h1>here</h1>'",
        ),
    );
    site.serve("/there-by-script", page("there"));
    site.serve("/there-by-refresh", page("there"));
    let work = Workplace::new();
    let urls = ["/script", "/refresh", "/again", "/away"].map(|path| site.url(path));
    crawl_command(&work, &web)
        .args(["--depth", "0"])
        .args(urls)
        .finish()
        .expect_code(0);
    let outcomes = work.stored().outcomes();
    for (path, outcome) in [
        ("/script", "redirected"),
        ("/there-by-script", "ok"),
        ("/refresh", "redirected"),
        ("/there-by-refresh", "ok"),
        ("/again", "ok"),
        ("/away", "ok"),
    ] {
        assert_eq!(outcomes[&site.url(path)], outcome, "{path}");
    }
    site.visits().assert_polite(DELAY);
}

#[needs(chromium)]
#[test]
fn hostile_scripts_end_in_outcomes() {
    let web = Web::start();
    let hostile = [
        ("loop", "for (;;) {}", "extract_error"),
        (
            "memory",
            "const kept = []; for (;;) kept.push(new Array(1e6).fill(1.5))",
            "crashed",
        ),
        (
            "buffers",
            "const kept = []; for (;;) kept.push(new Uint8Array(1 << 26).fill(7))",
            "ok",
        ),
        (
            "large",
            "document.body.append(document.createComment('x'.repeat(20_000_000)))",
            "too_large",
        ),
        (
            "alert",
            "for (let n = 0; n < 50; n++) alert('stay'); confirm('here'); prompt('?')",
            "ok",
        ),
        ("close", "window.close()", "ok"),
        (
            "windows",
            "for (let n = 0; n < 50; n++) window.open('/more' + n)",
            "ok",
        ),
        (
            "timers",
            "setInterval(() => document.body.append('x'), 0)",
            "ok",
        ),
        (
            "asking",
            "let n = 0; const ask = () => fetch('/x' + n++).then(ask); ask()",
            "ok",
        ),
        (
            "flood",
            "for (let n = 0; n < 500; n++) fetch('/x' + n)",
            "ok",
        ),
        (
            "deep",
            "let at = document.body; for (let n = 0; n < 100000; n++) at = at.appendChild(document.createElement('b'))",
            "ok crashed",
        ),
    ];
    let work = Workplace::new();
    let mut run = crawl_command(&work, &web)
        .replace_flag("--delay", "0.01")
        .args(["--depth", "0"])
        .env("WEBFILL_BROWSER_PAGE_DEADLINE", "10")
        .env("WEBFILL_BROWSER_MAX_REQUESTS", "20")
        .env("WEBFILL_BROWSER_TABS", "2");
    for (name, text, _) in hostile {
        let site = web.site(&format!("{name}.example"));
        site.serve("/", page_with_script(text));
        site.serve(
            "/after",
            page_with_script("document.body.innerHTML = '<h1>fine</h1>'"),
        );
        run = run.args([site.url("/"), site.url("/after")]);
    }
    run.finish().expect_code(0);
    let pages = work.stored().pages();
    for (name, _, outcomes) in hostile {
        let site = web.site(&format!("{name}.example"));
        let outcome = &pages[&site.url("/")].outcome;
        let is_one = outcomes.split(' ').any(|expected| expected == outcome);
        assert!(is_one, "{name}: {outcome}, and not {outcomes}");
        assert_eq!(pages[&site.url("/after")].outcome, "ok", "after {name}");
    }
    for (name, _, _) in hostile {
        let site = web.site(&format!("{name}.example"));
        assert_eq!(pages[&site.url("/after")].fields["title"], "fine", "{name}");
        let asked = site.visits().pages().len();
        assert!(asked <= 2 + 20, "{name} asked {asked} times");
    }
}
