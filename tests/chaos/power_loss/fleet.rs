//! A fleet whose writes are recorded. It starts with an empty disk or with the disk after a power loss, and runs until
//! its crawl is finished.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

use super::disk::{Disk, Notes};

const SITES: usize = 6;
/// The number of pages of each site that are fed, and the number of links on each of these pages.
const FED: usize = 5;
const LINKED: usize = 2;
/// The number of requests in one list.
const LIST: usize = 3;

const POLL: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(150);

/// A URL, and the time of an event by the clock of the notes (see [`Clock`]).
pub(crate) type Dated = (String, u64);

/// The recording of a fleet's run, from an empty disk or the disk after a power loss until the end of the crawl.
pub(crate) struct Recording {
    /// The disk at the beginning of the run.
    pub(crate) base: Disk,
    pub(crate) notes: Notes,
    /// The URLs that the dispatcher has accepted, with the times of its answers.
    pub(crate) accepted: Vec<Dated>,
    /// The requested URLs, with the times of the requests.
    pub(crate) requested: Vec<Dated>,
    pub(crate) work: Workplace,
}

/// The files of the frontier and of the store, relative to the recorded folder.
pub(crate) const FRONTIER: &str = "dispatcher/dispatcher.db";
pub(crate) const STORE: &str = "store/store.db";

/// The expected URLs, each with the title of its page.
pub(crate) fn expected_titles() -> Vec<(String, String)> {
    let linked = |site, fed| (0..LINKED).map(move |n| (site, format!("{fed}-{n}")));
    let with_links =
        move |site, fed: usize| std::iter::once((site, fed.to_string())).chain(linked(site, fed));
    let pages = (0..SITES).flat_map(|site| (0..FED).flat_map(move |fed| with_links(site, fed)));
    pages
        .map(|(site, name)| (page_url(site, &name), page_title(&name)))
        .collect()
}

fn page_url(site: usize, name: &str) -> String {
    format!("http://power{site}.example/{name}")
}

fn page_title(name: &str) -> String {
    format!("page {name}")
}

impl Recording {
    /// Runs a fleet until it has crawled all pages that `base` lacks.
    pub(crate) fn run(base: Disk, recorder: &Path) -> Recording {
        let (web, work) = (Web::start(), Workplace::new());
        let disk = work.path("disk");
        fs::create_dir_all(disk.join("store")).expect("our own folder");
        base.write_to(&disk);
        let clock = Clock(work.write("notes/clock", 1_u64.to_le_bytes()));
        let requested = serve_sites(&web, &clock);
        let fleet = Fleet::start(&web, &work, recorder);
        let accepted = fleet.feed(&clock);
        fleet.wait_until_done();
        fleet.end();
        let requested = std::mem::take(&mut *requested.lock().expect("no panic while held"));
        Recording {
            base,
            notes: Notes::read(&work.path("notes"), &disk),
            accepted,
            requested,
            work,
        }
    }
}

/// The clock of the notes, which is stored in a file.
#[derive(Clone)]
struct Clock(PathBuf);

impl Clock {
    fn now(&self) -> u64 {
        let bytes = fs::read(&self.0).expect("our own file");
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}

/// Serves the web. Each request for a page is recorded with its time.
fn serve_sites(web: &Web, clock: &Clock) -> Arc<Mutex<Vec<Dated>>> {
    let requested: Arc<Mutex<Vec<Dated>>> = Arc::default();
    for number in 0..SITES {
        let (requested, clock) = (Arc::clone(&requested), clock.clone());
        let site = web.site(&format!("power{number}.example"));
        site.serve("/robots.txt", webfill_tests::site::status(404));
        site.serve_otherwise(move |request| {
            let name = request.path.trim_start_matches('/');
            let dated = (page_url(number, name), clock.now());
            requested.lock().expect("no panic while held").push(dated);
            let links = (0..LINKED).filter(|_| !name.contains('-'));
            let with_link = |page: webfill_tests::site::Page, n: usize| {
                page.mapped_link(&format!("/{name}-{n}"))
            };
            links.fold(page(&page_title(name)), with_link).into()
        });
    }
    requested
}

struct Fleet {
    endpoint: String,
    dispatcher: Running,
    supervisor: Running,
}

impl Fleet {
    fn start(web: &Web, work: &Workplace, recorder: &Path) -> Fleet {
        static FLEETS: AtomicU32 = AtomicU32::new(0);
        let number = FLEETS.fetch_add(1, Ordering::Relaxed);
        let [.., high, low] = std::process::id().to_be_bytes();
        let host = format!("127.{}.{high}.{low}", 20 + number % 80);
        let disk = work.path("disk");
        let store = format!("sqlite:{}", disk.join(STORE).display());
        let role = |role: &str| {
            Run::new([role, "--store", &store, "--state"])
                .arg(disk.join(role))
                .env("LD_PRELOAD", recorder)
                .env("RECORDED_FOLDER", &disk)
                .env("RECORDED_TO", work.path("notes"))
                .env("WEBFILL_POLITENESS_DELAY", "0.02")
                .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
                .env("WEBFILL_DISPATCHER_LEASE", "1")
                .env("WEBFILL_FETCH_TOTAL_TIMEOUT", "2")
                .time_limit(2 * PATIENCE)
        };
        let mut dispatcher = role("dispatcher")
            .args(["--http", "off", "--listen", &host, "--mappings"])
            .arg(work.path("mappings"))
            .start();
        dispatcher.wait_for_stderr("ready");
        let output = dispatcher.stderr_so_far();
        assert!(
            !output.contains("is a copy"),
            "leases must continue: {output}"
        );
        let resolve: Vec<String> = web.resolve_args().into_iter().skip(1).step_by(2).collect();
        let supervisor = role("supervisor")
            .args(["--dispatcher", &format!("tcp://{host}:5555")])
            .args(["--workers", "2", "--id", "one"])
            .env("WEBFILL_FETCH_RESOLVE", resolve.join(","))
            .start();
        Fleet {
            endpoint: format!("tcp://{host}:5557"),
            dispatcher,
            supervisor,
        }
    }

    /// Feeds all URLs. Lists that were accepted before the power loss are fed again, so their URLs are duplicates.
    fn feed(&self, clock: &Clock) -> Vec<Dated> {
        let seeds =
            (0..FED).flat_map(|fed| (0..SITES).map(move |site| page_url(site, &fed.to_string())));
        let seeds: Vec<String> = seeds.collect();
        let mut accepted = Vec::new();
        for list in seeds.chunks(LIST) {
            let request = |url| json!({"url": url, "appid": "app", "crawlid": "c", "maxdepth": 1});
            let answer = self.request(&list.iter().map(request).collect());
            assert_eq!(answer["accepted"], list.len(), "{answer}");
            let now = clock.now();
            accepted.extend(list.iter().map(|url| (url.clone(), now)));
            // The pause lets pages be fetched while others are still being fed.
            std::thread::sleep(POLL);
        }
        accepted
    }

    fn wait_until_done(&self) {
        let question = json!({"action": "info", "appid": "app", "crawlid": "c", "uuid": "u"});
        let deadline = Instant::now() + PATIENCE;
        while self.request(&question)["state"] != "finished" {
            assert!(Instant::now() < deadline, "the crawl does not end");
            std::thread::sleep(POLL);
        }
    }

    fn request(&self, request: &Value) -> Value {
        let socket = zmq::Context::new().socket(zmq::REQ).expect("a socket");
        socket.set_linger(0).expect("an option");
        let patience = PATIENCE.as_millis() as i32;
        socket.set_rcvtimeo(patience).expect("an option");
        socket.connect(&self.endpoint).expect("an address");
        socket.send(&request.to_string(), 0).expect("it waits");
        let answer = socket.recv_bytes(0).expect("an answer in time");
        serde_json::from_slice(&answer).expect("JSON")
    }

    /// Ends the processes one after another, because the last connections to the databases close their files.
    fn end(self) {
        self.dispatcher.signal(Signal::TERM);
        self.dispatcher.finish().expect_code(0);
        // A supervisor that has not joined yet would wait for the dispatcher, so it is stopped, too.
        self.supervisor.signal(Signal::TERM);
        self.supervisor.finish();
    }
}
