//! A fleet with content for every view, over eight generated sites. One site is ordinary. Each of the others has one
//! difficulty: it has dead links, blocks, is dead, changes, needs scripts, is closed by robots.txt, or is slow. There
//! are running and ended crawls, sites in trouble, complete and incomplete records, and changes. Some names are German
//! and very long, and some texts try to be markup.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use webfill_tests::site::{page, script, status};

use crate::fleet::{APP, Fleet, wait_for};

pub(crate) const LONG: &str =
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft";
/// The id of a crawl that ends during the tests.
pub(crate) const CRAWL: &str = "Übersicht-über-außergewöhnlich-lange-Wörter";
/// The id of a crawl that runs for longer than any test.
pub(crate) const LONG_CRAWL: &str = "läuft";
/// The id of the crawl with records.
pub(crate) const RECORDS_CRAWL: &str = "Vereinsregister-2026";
pub(crate) const DATASET: &str = "Vereinsmitglieder";
pub(crate) const WATCH: &str = "Preisbeobachtung-der-Donaudampfschifffahrtsgesellschaft";
/// The site of the crawl that does not end, läuft.example, in its ASCII form.
pub(crate) const LONG_SITE: &str = "xn--luft-loa.example";
pub(crate) const BLOCKS: &str = "blocks.example";
/// A site that resets all connections.
pub(crate) const DEAD: &str = "abgeschaltet.example";
/// A site whose pages are empty without their scripts.
pub(crate) const SCRIPTED: &str = "skripte.example";
/// A site whose robots.txt disallows two of its four pages.
pub(crate) const CLOSED: &str = "privat.example";
/// A text that would run scripts, reverse the reading direction, or be cut off, if it was shown unescaped.
pub(crate) const HOSTILE: &str =
    "<script>window.wasRun = 1</script><img src=x onerror='window.wasRun = 1'>\u{202e}txt.exe\u{0}";

pub(crate) struct Scene {
    pub(crate) fleet: Fleet,
    /// A switch: whether `blocks.example` refuses requests.
    pub(crate) refuses: Arc<AtomicBool>,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let mut fleet = Fleet::unstarted();
        fleet.set_setting("BACKOFF_BLOCKED", "3600");
        let refuses = serve_pages(&fleet);
        fleet.start_dispatcher();
        fleet.start_supervisor();
        let scene = Scene { fleet, refuses };
        scene.begin_watch();
        scene.crawl_records();
        scene.feed_crawls();
        scene.change_and_watch_again();
        scene
    }

    /// Sends an action to the fleet. Returns the answer.
    pub(crate) fn run_action(&self, action: Value) -> Value {
        self.fleet.run_action(&action)
    }

    fn feed_crawls(&self) {
        let site = self.fleet.web.site("vereine.example");
        let request = |url: String, crawl: &str| json!({"url": url, "appid": APP, "crawlid": crawl, "maxdepth": 1, "allowed_domains": ["vereine.example", BLOCKS, DEAD, SCRIPTED, CLOSED]});
        let mut requests: Vec<Value> = (0..12)
            .map(|n| request(site.url(&format!("/{n}")), CRAWL))
            .collect();
        requests.push(request(
            site.url(&format!("/{}?name={LONG}", "Straße/".repeat(40))),
            CRAWL,
        ));
        let blocks = self.fleet.web.site(BLOCKS);
        requests.extend((0..6).map(|n| request(blocks.url(&format!("/{n}")), "blockiert")));
        for (host, crawl) in [
            (DEAD, "abgeschaltet"),
            (SCRIPTED, "Skripte"),
            (CLOSED, "privat"),
        ] {
            let site = self.fleet.web.site(host);
            requests.extend((0..4).map(|n| request(site.url(&format!("/{n}")), crawl)));
        }
        self.fleet.feed(&requests);
        self.fleet.feed_pages(LONG_SITE, LONG_CRAWL, 2_000);
        wait_for("the first crawl waits for nothing", || {
            let info = self.run_action(json!({"action": "info", "appid": APP, "crawlid": CRAWL}));
            (info["state"] == "finished").then_some(())
        });
        wait_for("a site rests", || {
            let sites = self.run_action(json!({"action": "sites", "backing_off": true}));
            let mut listed = sites["sites"].as_array()?.iter();
            listed.any(|one| one["site"] == BLOCKS).then_some(())
        });
    }

    fn begin_watch(&self) {
        let site = self.fleet.web.site("preise.example");
        let urls: Vec<String> = (0..3).map(|n| site.url(&format!("/{n}"))).collect();
        let watch = json!({"name": WATCH, "app": APP, "urls": urls, "schedule": "0 3 1 1 *",
            "time_zone": "Europe/Berlin", "notify": [{"firehose": true, "about": ["changes", "runs"]}]});
        let added = self.run_action(json!({"action": "watch_add", "watch": watch}));
        assert_eq!(added["name"], WATCH, "{added}");
        self.run_watch(1);
    }

    fn change_and_watch_again(&self) {
        let site = self.fleet.web.site("preise.example");
        let price = format!("{LONG} <b>kostet</b> {HOSTILE}");
        site.serve("/0", page("Dampfer").field("name", &escape_html(&price)));
        self.run_watch(2);
        let store = self.fleet.work.path("store.db");
        wait_for("a change is stored", || {
            let changes = "SELECT count(*) FROM page_changes WHERE kind = 'changed'";
            (webfill_tests::stored::Stored::open(&store).query_number(changes) > 0).then_some(())
        });
    }

    fn run_watch(&self, number: u64) {
        self.run_action(json!({"action": "watch_run", "name": WATCH}));
        wait_for("the watch has run", || {
            let answer = self.run_action(json!({"action": "watch_show", "name": WATCH}));
            let run = &answer["runs"][0];
            (run["run"] == number && !run["ended"].is_null()).then_some(())
        });
    }

    /// Crawls records by a separate `webfill crawl` into the fleet's store.
    fn crawl_records(&self) {
        let record = |id: &str, path: &str, fields: Value| json!({"id": id, "urls": [format!("http://mitglieder.example/{path}")], "fields": fields});
        let mut records = vec![
            record("1815", "ada", json!({"name": null, "location": null})),
            record("nirgends", "fort", json!({"name": LONG, "email": null})),
            record(
                &format!("{LONG}/{LONG} & Söhne?"),
                "leer",
                json!({"name": null, "schuhgröße": null}),
            ),
            record(
                "feindlich",
                "feindlich",
                json!({"name": null, "bemerkung": HOSTILE}),
            ),
        ];
        records.extend((0..60).map(|n| record(&format!("m{n:04}"), "ada", json!({"name": null}))));
        self.fleet.crawl_records(RECORDS_CRAWL, DATASET, &records);
    }
}

/// Serves the web of the scene. Returns a switch that makes `blocks.example` refuse requests.
fn serve_pages(fleet: &Fleet) -> Arc<AtomicBool> {
    let site = fleet.web.site("vereine.example");
    site.serve_otherwise(|request| match request.path.as_str() {
        "/1" | "/2" => status(404).into(),
        "/3" => status(410).into(),
        path => page(&format!("Verein {path}"))
            .field("name", LONG)
            .field("location", "Köln-Müngersdorf")
            .field("email", &escape_html(HOSTILE))
            .mapped_link("/weiter")
            .mapped_link("http://fremd.example/")
            .mapped_link("/bild.jpg")
            .into(),
    });
    let refuses = Arc::new(AtomicBool::new(true));
    let still = Arc::clone(&refuses);
    fleet
        .web
        .site(BLOCKS)
        .serve_otherwise(move |_| match still.load(Ordering::SeqCst) {
            true => status(403).into(),
            false => page("frei").into(),
        });
    fleet
        .web
        .site(DEAD)
        .serve_otherwise(|_| script().reset().into());
    fleet.web.site(SCRIPTED).serve_otherwise(|_| {
        let html = "<html><head><title>Lädt …</title></head><body><div id=root></div><script>document.getElementById('root').textContent = 'da'</script></body></html>";
        status(200).header("content-type", "text/html; charset=utf-8").body(html).into()
    });
    let closed = fleet.web.site(CLOSED);
    closed.serve_robots("User-agent: *\nDisallow: /1\nDisallow: /2\n");
    closed.serve_otherwise(|_| page("Offen").into());
    let members = fleet.web.site("mitglieder.example");
    members.serve(
        "/ada",
        page("Ada")
            .field("name", "Ada Lovelace")
            .field("location", "London"),
    );
    members.serve("/leer", page("Leer"));
    members.serve("/feindlich", page("F").field("name", &escape_html(HOSTILE)));
    members.serve("/fort", status(404));
    let prices = fleet.web.site("preise.example");
    for n in 0..3 {
        prices.serve(
            &format!("/{n}"),
            page("Dampfer").field("name", "Dampfer für 10 €"),
        );
    }
    refuses
}

/// Escapes a text for use in an HTML page.
fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\0', "")
}
