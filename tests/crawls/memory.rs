//! Tests the memory of workers. Large pages in flight stay within `worker.memory_mib`, and with small settings all
//! processes run on a machine with 512 MB.

use std::io::Write;
use std::time::{Duration, Instant};

use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::memory_limit::MemoryLimit;
use webfill_tests::process::Process;
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Page, Web, document, script};
use webfill_tests::workplace::Workplace;

use crate::keyed_fleet::{Fleet, start_serving};

const MIB: u64 = 1 << 20;
const TIME_LIMIT: Duration = Duration::from_secs(300);
const PAGE_BYTES: usize = 8_000_000;

/// A page of 8 MB with a heading, which consists of copies of `piece`.
fn large_page(piece: &str) -> Vec<u8> {
    let mut html = String::from("<!DOCTYPE html><h1>large</h1>");
    html += &piece.repeat((PAGE_BYTES - html.len()) / piece.len());
    html.into_bytes()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// Pages of 8 MB. Most are text; one in sixteen consists of many elements, and one of many attributes.
fn large_pages() -> Vec<Page> {
    let html = "text/html; charset=utf-8";
    let text = large_page(&format!(
        "<p>{}</p>\n",
        "lorem ipsum dolor sit amet ".repeat(400)
    ));
    let dense = document(html, large_page("<p>dense</p>"));
    let attributes = document(html, large_page("<p a b c d e f g>x"));
    // Once decoded, this page is almost twice as long as its bytes.
    let mut latin = large_page("\u{1}\u{1}\u{1}\u{1} ");
    latin
        .iter_mut()
        .filter(|byte| **byte == 1)
        .for_each(|byte| *byte = 0xe9);
    let latin = document("text/html; charset=iso-8859-1", latin);
    let zipped = document(html, gzip(&text)).header("content-encoding", "gzip");
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

/// A web of this many sites with one page of 8 MB each. Also returns the URLs of the pages.
fn start_web(sites: usize) -> (Web, Vec<String>) {
    let web = Web::start();
    let kinds = large_pages();
    let urls = (0..sites).map(|number| {
        let site = web.site(&format!("large-{number}.example"));
        site.serve("/", kinds[number % kinds.len()].clone());
        site.url("/")
    });
    let urls = urls.collect();
    (web, urls)
}

/// A crawl of these pages by one worker. `settings` is the content of the settings file.
fn crawl_of(web: &Web, work: &Workplace, urls: &[String], settings: &str) -> Run {
    work.crawl(web)
        .replace_flag("--workers", "1")
        .args(["--depth", "0", "--config"])
        .arg(work.write("webfill.toml", settings))
        .arg("--seeds")
        .arg(work.write("seeds.txt", urls.join("\n")))
        .time_limit(TIME_LIMIT)
}

fn assert_all_ok(finished: &Finished, work: &Workplace, urls: &[String]) {
    assert_eq!(finished.summary().outcome_count("ok"), urls.len() as u64);
    assert_titles(work, urls);
}

fn assert_titles(work: &Workplace, urls: &[String]) {
    let pages = work.stored().pages();
    assert_eq!(pages.len(), urls.len());
    for (url, page) in pages {
        assert_eq!(page.fields["title"], "large", "{url}");
    }
}

/// Runs a command to its end. Also returns the most memory that a worker has used according to the kernel, in MiB.
fn run_and_measure_peak(run: Run) -> (Finished, u64) {
    let mut run = run.start();
    let mut peak = 0;
    let deadline = Instant::now() + TIME_LIMIT;
    while run.exit_status().is_none() && Instant::now() < deadline {
        let processes = run.processes();
        let workers = processes.iter().filter(|it| it.role() == "worker");
        peak = peak.max(workers.map(Process::peak_bytes).max().unwrap_or(0));
        std::thread::sleep(Duration::from_millis(20));
    }
    (run.finish().expect_code(0), peak / MIB)
}

#[test]
fn a_burst_of_large_pages_stays_within_the_memory_of_a_worker() {
    let (web, urls) = start_web(128);
    let work = Workplace::new();
    let settings = "[worker]\nconcurrency = 128\n[fetch]\ntotal_timeout = 300.0\n";
    let (finished, peak_mib) = run_and_measure_peak(crawl_of(&web, &work, &urls, settings));
    assert_all_ok(&finished, &work, &urls);
    assert!(
        web.visits()
            .pages()
            .counts()
            .values()
            .all(|count| *count == 1)
    );
    assert!(peak_mib < 256, "{peak_mib} MiB");
}

#[test]
fn no_site_is_blamed_for_a_wait_for_memory() {
    let web = Web::start();
    let work = Workplace::new();
    // Each page takes its memory for a second, and there is memory for only one page at a time. The part sent before
    // that second is larger than the buffers between server and worker.
    let body = large_page("<p>slow</p>");
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let (first, rest) = body.split_at(body.len() / 16 * 15);
    let reply = script()
        .send(head)
        // After this pause, all requests have begun, and none has taken the memory yet.
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
    let finished = crawl_of(&web, &work, &urls, settings)
        .finish()
        .expect_code(0);
    assert_all_ok(&finished, &work, &urls);
    let counts = web.visits().pages().counts();
    let again = counts.values().filter(|count| **count > 1).count();
    assert!(again > 0, "none had to wait for longer than its time");
    web.visits()
        .pages()
        .assert_polite(Duration::from_millis(200));
}

/// The settings in `docs/how-to/operate.md` for a machine with 512 MB of memory. The system uses a quarter of it.
const SMALL: &str =
    "[dispatcher]\nseen_memory_mib = 32\n[worker]\nconcurrency = 32\nmemory_mib = 64\n";
const SMALL_MIB: u64 = 384;

#[needs(memory_limit)]
#[test]
fn a_crawl_with_the_settings_for_512_mb_runs_on_such_a_machine() {
    let (web, urls) = start_web(48);
    let work = Workplace::new();
    let machine = MemoryLimit::with_mib(SMALL_MIB);
    let run = crawl_of(&web, &work, &urls, SMALL).with_memory_limit(&machine);
    let finished = run.finish().expect_code(0);
    assert_all_ok(&finished, &work, &urls);
    assert_eq!(machine.killed_count(), 0);
}

#[needs(memory_limit)]
#[test]
fn a_supervisor_with_the_settings_for_512_mb_runs_on_such_a_machine() {
    let (web, urls) = start_web(48);
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    fleet.new_member("supervisor", "small");
    let dispatcher = start_serving(fleet.dispatcher_run());
    let machine = MemoryLimit::with_mib(SMALL_MIB);
    let supervisor = fleet
        .supervisor_run(&web, "small")
        .replace_flag("--workers", "2")
        .arg("--config")
        .arg(fleet.work.write("small.toml", SMALL))
        .env("WEBFILL_FETCH_TOTAL_TIMEOUT", "300")
        .with_memory_limit(&machine)
        .start();
    let client = fleet.client("feeder");
    let crawl = client.open_crawl("large", &urls);
    client.wait_until_finished(&crawl);
    for process in [supervisor, dispatcher] {
        process.signal(Signal::TERM);
        process.finish().expect_code(0);
    }
    assert_titles(&fleet.work, &urls);
    assert_eq!(machine.killed_count(), 0);
}

/// Checks that the memory limit of these tests works: with 1 MiB, even `--version` is killed.
#[needs(memory_limit)]
#[test]
fn a_process_beyond_the_memory_limit_is_killed() {
    let machine = MemoryLimit::with_mib(1);
    let run = Run::new(["--version"]).with_memory_limit(&machine).finish();
    assert!(!run.status.success(), "{run:?}");
    assert!(machine.killed_count() > 0);
}
