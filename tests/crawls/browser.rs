//! The lane `browser`: pages are rendered in Chromium, and read when their scripts have run. The site's
//! access log records their requests.

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::Run;
use webfill_tests::site::{Site, Web, document, page, script};
use webfill_tests::workplace::Workplace;

/// The delay of [`Workplace::crawl`].
const DELAY: Duration = Duration::from_millis(200);

/// A crawl in the lane `browser`. The tests run as root, where Chromium's sandbox does not work.
fn crawl(work: &Workplace, web: &Web) -> Run {
    work.crawl(web)
        .args(["--lane", "browser"])
        .instead("--workers", "1")
        .env("WEBFILL_BROWSER_SANDBOX", "false")
        .time_limit(Duration::from_secs(120))
}

fn scripted(text: &str) -> webfill_tests::site::Page {
    document(
        "text/html",
        format!("<html><body><script>{text}</script></body></html>"),
    )
}

/// Pages that are empty until `/app.js` has asked for their data.
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
    let run = crawl(&work, &web)
        .args(["--depth", "2", &site.url("/people/1")])
        .finish()
        .expect(0);
    assert_eq!(run.summary().outcome("ok"), 3, "{}", run.summary().json);
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
    // Three seconds of each page's timers are no time at all.
    let waits = DELAY * u32::try_from(visits.len()).unwrap();
    let rest = started.elapsed().saturating_sub(waits);
    println!("{rest:?} beside the delays");

    // The same pages as the server sends them say nothing.
    let plain = Workplace::new();
    let run = plain
        .crawl(&web)
        .args(["--depth", "2", &site.url("/people/1")]);
    run.finish().expect(0);
    let pages = plain.stored().pages();
    assert_eq!(pages.len(), 1);
    assert!(pages[&site.url("/people/1")].fields.is_empty());
}

#[needs(chromium)]
#[test]
fn what_a_page_asks_for_is_judged_like_any_request() {
    let web = Web::start();
    let (site, other) = (web.site("asking.example"), web.site("other.example"));
    site.robots("User-agent: *\nDisallow: /secret\n");
    // No connection may arrive here, by any protocol.
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp_port, udp_port) = (
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
    );
    let asking = format!(
        "const told = [];
        const tell = (name, asked) => asked.then(x => told.push(name + ' ' + x.status))
            .catch(() => told.push(name + ' refused'))
            .then(() => document.body.innerHTML = '<h1>' + told.sort().join(', ') + '</h1>');
        tell('data', fetch('/data.json'));
        tell('moved', fetch('/moved.json'));
        tell('missing', fetch('/missing.json'));
        tell('secret', fetch('/secret.json'));
        tell('sent', fetch('/data.json', {{method: 'POST', body: 'x'}}));
        tell('other', fetch('{other}', {{mode: 'no-cors'}}));
        tell('port', fetch('http://127.0.0.1:{tcp_port}/', {{mode: 'no-cors'}}));
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
    crawl(&work, &web).arg(site.url("/")).finish().expect(0);
    let told = "data 200, missing 404, moved 200, other refused, port refused, secret refused, sent refused";
    let pages = work.stored().pages();
    assert_eq!(pages[&site.url("/")].fields["title"], told);
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
    site.serve("/script", scripted("location.replace('/there-by-script')"));
    site.serve(
        "/refresh",
        document(
            "text/html",
            "<meta http-equiv=refresh content='2;url=/there-by-refresh'>",
        ),
    );
    site.serve(
        "/again",
        // A page that shows next to nothing and reloads itself would be a block.
        page("long")
            .html("text ".repeat(100))
            .html("<script>document.body.innerHTML = '<h1>again</h1>'; location.reload()</script>"),
    );
    site.serve(
        "/away",
        scripted("location = 'ftp://going.example/x'; document.body.innerHTML = '<h1>here</h1>'"),
    );
    site.serve("/there-by-script", page("there"));
    site.serve("/there-by-refresh", page("there"));
    let work = Workplace::new();
    let urls = ["/script", "/refresh", "/again", "/away"].map(|path| site.url(path));
    crawl(&work, &web)
        .args(["--depth", "0"])
        .args(urls)
        .finish()
        .expect(0);
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
            "for (let n = 0; n < 2000; n++) fetch('/x' + n)",
            "ok",
        ),
        (
            "deep",
            "let at = document.body; for (let n = 0; n < 100000; n++) at = at.appendChild(document.createElement('b'))",
            "ok crashed",
        ),
    ];
    let work = Workplace::new();
    let mut run = crawl(&work, &web)
        .instead("--delay", "0.01")
        .args(["--depth", "0"])
        .env("WEBFILL_BROWSER_PAGE_DEADLINE", "10")
        .env("WEBFILL_BROWSER_MAX_REQUESTS", "20")
        .env("WEBFILL_BROWSER_TABS", "2");
    for (name, text, _) in hostile {
        let site = web.site(&format!("{name}.example"));
        site.serve("/", scripted(text));
        site.serve(
            "/after",
            scripted("document.body.innerHTML = '<h1>fine</h1>'"),
        );
        run = run.args([site.url("/"), site.url("/after")]);
    }
    run.finish().expect(0);
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

/// Processes of browsers that keep their profiles below this folder.
fn browsers_of(folder: &Path) -> Vec<u32> {
    let folder = folder.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(&format!("--user-data-dir={folder}"))
    })
    .collect()
}

/// The first of them: the others are its children.
fn browser_of(folder: &Path) -> Option<u32> {
    let is_main = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        !String::from_utf8_lossy(&line).contains("--type=")
    };
    browsers_of(folder).into_iter().find(is_main)
}

fn assert_no_browser_is_left(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !browsers_of(folder).is_empty() {
        assert!(Instant::now() < deadline, "left: {:?}", browsers_of(folder));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[needs(chromium)]
#[test]
fn a_browser_that_dies_costs_no_page() {
    let web = Web::start();
    let site = web.site("people.example");
    serve_people(&site, 12);
    let work = Workplace::new();
    let state = work.path("state");
    let urls = (1..=12).map(|n| site.url(&format!("/people/{n}")));
    let mut run = crawl(&work, &web)
        .args(["--depth", "0"])
        .env("WEBFILL_BROWSER_PAGES", "5")
        .args(urls)
        .start();
    for kills in 0..2 {
        let seen = site.visits().pages().len();
        run.wait_until("it goes on", |_| site.visits().pages().len() > seen + 4);
        run.wait_until("there is a browser", |_| browser_of(&state).is_some());
        if let Some(pid) = browser_of(&state) {
            webfill_tests::process::send_signal(pid, Signal::KILL);
        }
        println!("killed {}", kills + 1);
    }
    let run = run.finish().expect(0);
    assert_eq!(run.summary().outcome("ok"), 12, "{}", run.summary().json);
    let pages = work.stored().pages();
    assert_eq!(pages.len(), 12);
    for n in 1..=12 {
        let page = &pages[&site.url(&format!("/people/{n}"))];
        assert_eq!(page.fields["title"], format!("Person {n}"));
    }
    site.visits().assert_polite(DELAY);
    let logs = work.logs();
    let started = logs
        .values()
        .flatten()
        .filter(|line| line["event"] == "browser_started");
    assert!(
        started.count() >= 4,
        "killed twice, and replaced after five pages"
    );
    assert_no_browser_is_left(&state);
}

#[needs(chromium)]
#[test]
fn no_browser_outlives_its_crawl() {
    let web = Web::start();
    let site = web.site("slow.example");
    site.serve("/", scripted("fetch('/never')"));
    site.serve("/never", script().hold_open());
    let work = Workplace::new();
    let state = work.path("state");
    let mut run = crawl(&work, &web).arg(site.url("/")).start();
    run.wait_until("a page is shown", |_| {
        site.visits().of_path("/never").len() == 1
    });
    assert!(browser_of(&state).is_some());
    run.signal(Signal::KILL);
    run.finish();
    assert_no_browser_is_left(&state);
}

#[needs(chromium)]
#[test]
fn a_browser_that_cannot_be_had_is_told_at_once() {
    let web = Web::start();
    let site = web.site("a.example");
    let work = Workplace::new();
    let run = crawl(&work, &web)
        .arg(site.url("/"))
        .env("WEBFILL_BROWSER_COMMAND", "no-such-browser")
        .finish()
        .expect(2);
    let sentence = run.one_sentence();
    assert!(
        sentence.contains("browser.command") && sentence.contains("no-such-browser"),
        "{sentence}"
    );
    let run = crawl(&work, &web)
        .arg(site.url("/"))
        .env("WEBFILL_BROWSER_SANDBOX", "true");
    let run = run.finish().expect(2);
    assert!(
        run.one_sentence().contains("browser.sandbox"),
        "{}",
        run.one_sentence()
    );
    assert!(site.visits().is_empty());
    assert!(!work.path("state").exists(), "nothing was opened");

    let requests = [
        json!({"url": site.url("/shown"), "appid": "app", "crawlid": "c1", "spiderid": "browser"}),
        json!({"url": site.url("/plain"), "appid": "app", "crawlid": "c2", "spiderid": "link"}),
    ];
    let seeds = work.write_lines("seeds.jsonl", &requests);
    site.serve("/plain", page("plain"));
    let run = work
        .crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect(0);
    let json = run.summary().json.to_string();
    assert!(json.contains("--lane browser"), "{json}");
    assert_eq!(site.visits().pages().paths(), ["a.example/plain"]);
}
