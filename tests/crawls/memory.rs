//! The memory of workers: large pages in flight stay within `worker.memory_mib`, and a crawl with the
//! settings for a machine of 512 MB stays below that, with all its processes.

use std::io::Write;
use std::time::{Duration, Instant};

use webfill_tests::process::{Process, pss_bytes};
use webfill_tests::run::Finished;
use webfill_tests::site::{Page, Web, document, script};
use webfill_tests::workplace::Workplace;

const MIB: u64 = 1 << 20;
const TIME_LIMIT: Duration = Duration::from_secs(300);
const PAGE_BYTES: usize = 8_000_000;

/// A page of 8 MB with a heading, filled with `piece`.
fn large(piece: &str) -> Vec<u8> {
    let mut html = String::from("<!DOCTYPE html><h1>large</h1>");
    html += &piece.repeat((PAGE_BYTES - html.len()) / piece.len());
    html.into_bytes()
}

fn gzipped(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// Pages of 8 MB of several kinds: mostly text, one in sixteen dense with elements or attributes.
fn kinds() -> Vec<Page> {
    let html = "text/html; charset=utf-8";
    let text = large(&format!(
        "<p>{}</p>\n",
        "lorem ipsum dolor sit amet ".repeat(400)
    ));
    let dense = document(html, large("<p>dense</p>"));
    let attributes = document(html, large("<p a b c d e f g>x"));
    // Decoded, it is twice as long.
    let mut latin = large("\u{1}\u{1}\u{1}\u{1} ");
    latin
        .iter_mut()
        .filter(|byte| **byte == 1)
        .for_each(|byte| *byte = 0xe9);
    let latin = document("text/html; charset=iso-8859-1", latin);
    let zipped = document(html, gzipped(&text)).header("content-encoding", "gzip");
    let text = document(html, text);
    (0..16)
        .map(|number| match number {
            0 => dense.clone(),
            8 => attributes.clone(),
            4 | 12 => latin.clone(),
            _ if number % 2 == 0 => zipped.clone(),
            _ => text.clone(),
        })
        .collect()
}

/// A web of as many sites, each with one page of 8 MB; and their URLs.
fn web_of(sites: usize) -> (Web, Vec<String>) {
    let web = Web::start();
    let kinds = kinds();
    let urls = (0..sites).map(|number| {
        let site = web.site(&format!("large-{number}.example"));
        site.serve("/", kinds[number % kinds.len()].clone());
        site.url("/")
    });
    let urls = urls.collect();
    (web, urls)
}

/// The crawl of these pages by one worker with the given settings, and the memory that it took.
fn crawl(web: &Web, work: &Workplace, urls: &[String], settings: &str) -> (Finished, Peaks) {
    let mut run = work
        .crawl(web)
        .instead("--workers", "1")
        .args(["--depth", "0", "--config"])
        .arg(work.write("webfill.toml", settings))
        .arg("--seeds")
        .arg(work.write("seeds.txt", urls.join("\n")))
        .time_limit(TIME_LIMIT)
        .start();
    let mut peaks = Peaks::default();
    let deadline = Instant::now() + TIME_LIMIT;
    while run.ended().is_none() && Instant::now() < deadline {
        peaks.note(&run.processes());
        std::thread::sleep(Duration::from_millis(20));
    }
    (run.finish().expect(0), peaks)
}

/// The most memory that was ever seen taken, in MiB.
#[derive(Debug, Default)]
struct Peaks {
    /// By any worker, as the kernel keeps it.
    worker: u64,
    /// By all processes together, shared pages counted once.
    all: u64,
}

impl Peaks {
    fn note(&mut self, processes: &[Process]) {
        let workers = processes.iter().filter(|it| it.role() == "worker");
        let worker = workers.map(Process::peak_bytes).max().unwrap_or(0);
        let all: u64 = processes.iter().map(|it| pss_bytes(it.pid)).sum();
        self.worker = self.worker.max(worker / MIB);
        self.all = self.all.max(all / MIB);
    }
}

fn assert_all_ok(finished: &Finished, work: &Workplace, urls: &[String]) {
    assert_eq!(finished.summary().outcome("ok"), urls.len() as u64);
    for (url, page) in work.stored().pages() {
        assert_eq!(page.fields["title"], "large", "{url}");
    }
}

#[test]
fn a_burst_of_large_pages_stays_within_the_memory_of_a_worker() {
    let (web, urls) = web_of(128);
    let work = Workplace::new();
    let settings = "[worker]\nconcurrency = 128\n[fetch]\ntotal_timeout = 300.0\n";
    let (finished, peaks) = crawl(&web, &work, &urls, settings);
    assert_all_ok(&finished, &work, &urls);
    assert!(
        web.visits()
            .pages()
            .counts()
            .values()
            .all(|count| *count == 1)
    );
    assert!(peaks.worker < 256, "{peaks:?}");
}

#[test]
fn no_site_is_blamed_for_a_wait_for_memory() {
    let web = Web::start();
    let work = Workplace::new();
    // Each holds its memory for a second, and there is memory for one at a time. Most of it is sent
    // before that second, more than the buffers between server and worker take.
    let body = large("<p>slow</p>");
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let (first, rest) = body.split_at(body.len() / 16 * 15);
    let reply = script()
        .send(head)
        // All have begun before the first body takes the memory.
        .pause(Duration::from_secs(1))
        .send(first.to_vec())
        .pause(Duration::from_secs(1))
        .send(rest.to_vec());
    let urls: Vec<String> = (0..16)
        .map(|number| {
            let site = web.site(&format!("slow-{number}.example"));
            site.serve("/", reply.clone());
            site.url("/")
        })
        .collect();
    let settings = "[worker]\nmemory_mib = 32\n[fetch]\ntotal_timeout = 5.0\n";
    let (finished, _) = crawl(&web, &work, &urls, settings);
    assert_all_ok(&finished, &work, &urls);
    let counts = web.visits().pages().counts();
    let again = counts.values().filter(|count| **count > 1).count();
    assert!(again > 0, "none had to wait for longer than its time");
    web.visits()
        .pages()
        .assert_polite(Duration::from_millis(200));
}

/// The settings of `docs/operating.md` for a machine of 512 MB.
#[test]
fn a_crawl_with_the_settings_for_512_mb_stays_below_that() {
    let (web, urls) = web_of(48);
    let work = Workplace::new();
    let settings =
        "[dispatcher]\nseen_memory_mib = 32\n[worker]\nconcurrency = 32\nmemory_mib = 64\n";
    let (finished, peaks) = crawl(&web, &work, &urls, settings);
    assert_all_ok(&finished, &work, &urls);
    assert!(peaks.all < 384, "{peaks:?}");
}
