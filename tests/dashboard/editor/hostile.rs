//! Tests the mapping editor with hostile pages in a real browser. Their requests are monitored: only the dashboard may
//! get any.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use webfill_test_browser::Browser;
use webfill_test_needs::needs;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::bench::Bench;

/// The server that all foreign URLs in the hostile pages lead to. It counts its visitors.
struct Watcher {
    port: u16,
    came: Arc<AtomicUsize>,
}

impl Watcher {
    fn start() -> Watcher {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let came = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&came);
        std::thread::spawn(move || {
            for visitor in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                // The test itself visits the watcher at the end, so there must be an answer.
                let _ = visitor.and_then(answer_visitor);
            }
        });
        Watcher { port, came }
    }

    fn visit_count(&self) -> usize {
        self.came.load(Ordering::SeqCst)
    }
}

fn answer_visitor(mut visitor: TcpStream) -> io::Result<()> {
    visitor.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut request = [0; 4_096];
    let _some = visitor.read(&mut request)?;
    visitor.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nseen")
}

/// Pages that try to run scripts, load resources, send data or navigate. `EVIL` is replaced by the address of the
/// watcher.
fn hostile_pages() -> Vec<(String, String)> {
    let pages = [
        (
            "scripts",
            "<script src=http://EVIL/a></script><script>new Image().src='http://EVIL/b'; fetch('http://EVIL/c'); parent.postMessage({right:[1]}, '*'); top.location='http://EVIL/d'</script><body onload=\"fetch('http://EVIL/e')\"><img src=x onerror=\"fetch('http://EVIL/f')\"><h1 onclick=\"fetch('http://EVIL/g')\">hostile</h1>",
        ),
        (
            "loads",
            "<img src=http://EVIL/a><img srcset='http://EVIL/b 1x'><iframe src=http://EVIL/c></iframe><object data=http://EVIL/d></object><embed src=http://EVIL/e><video src=http://EVIL/f poster=http://EVIL/g></video><audio src=http://EVIL/h></audio><picture><source srcset=http://EVIL/i><img></picture><input type=image src=http://EVIL/j><body background=http://EVIL/k><h1>hostile</h1>",
        ),
        (
            "styles",
            "<link rel=stylesheet href=http://EVIL/a><link rel=preload as=image href=http://EVIL/b><link rel=dns-prefetch href=http://EVIL><link rel=prefetch href=http://EVIL/c><style>@import url(http://EVIL/d); @font-face{font-family:x;src:url(http://EVIL/e)} h1{font-family:x;background:url(http://EVIL/f)}</style><h1 style=\"background:url(http://EVIL/g)\">hostile</h1>",
        ),
        (
            "leaves",
            "<meta http-equiv=refresh content='0;url=http://EVIL/a'><base href=http://EVIL/><form action=/b><input autofocus name=q><button>go</button></form><a href=c ping=http://EVIL/d target=_top>link</a><h1>hostile</h1>",
        ),
        (
            "svg",
            "<h1>hostile</h1><svg onload=\"fetch('http://EVIL/a')\"><image href=http://EVIL/b /><script>fetch('http://EVIL/c')</script><foreignObject><img src=http://EVIL/d></foreignObject><use href=http://EVIL/e#x /></svg><math><mtext><img src=http://EVIL/f onerror=alert(1)></mtext></math>",
        ),
        (
            "mutations",
            "<h1>hostile</h1><form><math><mtext></form><form><mglyph><style></math><img src=http://EVIL/a onerror=alert(1)></style></mglyph></form><svg></p><style><a id=\"</style><img src=http://EVIL/b onerror=alert(1)>\"></style></svg><noscript><p title=\"</noscript><img src=http://EVIL/c onerror=alert(1)>\"></noscript><template><img src=http://EVIL/d></template><textarea></textarea><img src=http://EVIL/e></textarea>",
        ),
    ];
    let mut pages: Vec<(String, String)> = pages
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into();
    let nested = format!(
        "<h1>hostile</h1>{}<img src=http://EVIL/a>",
        "<div>".repeat(200_000)
    );
    pages.push(("nested".to_owned(), nested));
    let long = "<p class=x>and so on<img src=http://EVIL/a></p>".repeat((10 << 20) / 47);
    pages.push(("long".to_owned(), format!("<h1>hostile</h1>{long}")));
    pages
}

#[needs(chromedriver)]
#[test]
fn a_hostile_page_reaches_nothing() {
    let (work, web, watcher) = (Workplace::new(), Web::start(), Watcher::start());
    let evil = format!("evil.example:{}", watcher.port);
    let bench = Bench::start(&work, &web, &[]);
    let draft = bench.begin_draft("", "hostile");
    for (name, text) in hostile_pages() {
        let added = bench.upload(
            &draft,
            &format!("{name}.html"),
            &text.replace("EVIL", &evil),
        );
        assert_eq!(added.status, 200, "{name}: {}", added.body);
    }
    let browser = Browser::start_with(&["--host-resolver-rules=MAP evil.example 127.0.0.1"]);
    browser.open(&bench.url(&draft));
    // The editor rebuilds the list of pages after each trial, so every page is selected anew.
    for page in 1..=hostile_pages().len() {
        browser.wait_and_click(&format!("#page-choice option:nth-child({page})"));
        browser.enter_frame(&browser.wait_for("#frame"));
        browser.wait_until("the copy", || {
            let script = "return document.readyState === 'complete' && document.querySelector('h1')?.textContent";
            let text = browser.run_script(script, json!([]));
            (text == "hostile").then_some(())
        });
        browser.wait_and_click("h1");
        assert_frame_isolated(&browser, &evil);
        browser.leave_frames();
        let address = browser.address();
        assert_eq!(address, bench.url(&draft), "the page stays where it is");
    }
    browser.screenshot("editor-hostile");
    let own = bench.url("/dashboard/");
    let foreign: Vec<String> = browser
        .requested_urls()
        .into_iter()
        .filter(|url| {
            !url.starts_with(&own) && !url.starts_with("about:") && !url.starts_with("data:")
        })
        .collect();
    // The browser also lists the requests that this test has tried in the frame, although they were not sent.
    let of_pages: Vec<&String> = foreign
        .iter()
        .filter(|url| !url.ends_with("/by-the-test"))
        .collect();
    assert_eq!(of_pages, Vec::<&String>::new());
    assert_eq!(watcher.visit_count(), 0, "somebody came");
    // The test visits the watcher itself, to show that the watcher notices visitors.
    browser.open(&format!("http://{evil}/"));
    browser.wait_until("the watcher", || (watcher.visit_count() > 0).then_some(()));
}

/// Checks that a script that runs in the frame has no access to the dashboard or to the network.
fn assert_frame_isolated(browser: &Browser, evil: &str) {
    let tried = |script: &str| browser.run_script(script, json!([]));
    let denied = "try { SCRIPT; return 'done' } catch (error) { return error.name }";
    for script in [
        "parent.document.title",
        "document.cookie",
        "localStorage.length",
        "top.location.href",
        "top.document.forms",
    ] {
        let name = tried(&denied.replace("SCRIPT", script));
        assert_eq!(name, "SecurityError", "{script}");
    }
    assert_eq!(tried("return self.origin"), "null");
    let script = format!(
        "const [done] = arguments; fetch('http://{evil}/by-the-test', {{mode: 'no-cors'}}).then(() => done('sent'), () => done('refused'))"
    );
    assert_eq!(browser.run_and_wait(&script, json!([])), "refused");
    let script =
        "const element = document.createElement('script'); element.textContent = 'window.ran = 1';
        document.body.append(element); element.remove(); return window.ran || 'refused'";
    assert_eq!(tried(script), "refused");
}
