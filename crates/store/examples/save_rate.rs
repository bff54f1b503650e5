//! Measures how fast one process and several processes save pages.
//!
//!     cargo run --release -p webfill-store --example save_rate [FILE | mongodb]
//!
//! Each page has 5 fields, 30 links, and one record, and fills a field of that record. A batch has as many pages as
//! arrive within the backend's `max_age` at a thousand pages a second. CPU time is that of all threads of the writers,
//! including building the pages. With `mongodb`, a server is started; CPU time is still that of the writers alone, and
//! the server counts commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Map, json};
use webfill_store::{
    Crawl, CrawlId, CrawlState, DatasetName, Page, Record, Save, Store, StoreError, StoreUri, open,
};
use webfill_test_mongod::Mongod;
use webfill_wire::Outcome;

/// The allocator of the webfill command, so that memory behaves the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many pages each writer saves.
const PAGES: u64 = 40_000;
/// The pages that all writers together save per second. The size of a batch is computed from this rate.
const RATE: f64 = 1_000.0;
const FIELDS: [&str; 5] = ["name", "born", "city", "about", "links"];

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments[1..] {
        [role, uri, client, batch] if role == "writer" => {
            run_writer(&uri.parse()?, client.parse()?, batch.parse()?)
        }
        [backend] if backend == "mongodb" => measure_mongodb(),
        [] => measure_file(&std::env::temp_dir().join("webfill-save-rate.db")),
        [file] => measure_file(Path::new(file)),
        _ => Err("usage: save_rate [FILE | mongodb]".into()),
    }
}

fn measure_file(file: &Path) -> Result<(), AnyError> {
    for writers in [1, 2, 4] {
        remove_database_files(file);
        let uri = format!("sqlite:{}", file.display());
        println!("{}", run_writers(&uri, writers)?);
        let bytes = std::fs::metadata(file)?.len();
        println!("    {} bytes a page", bytes / (writers * PAGES));
    }
    remove_database_files(file);
    Ok(())
}

fn measure_mongodb() -> Result<(), AnyError> {
    for writers in [1, 2, 4] {
        let mongod = Mongod::start();
        let uri = mongod.uri("webfill");
        let before = mongod.count_document_commands();
        println!("{}", run_writers(&uri, writers)?);
        let commands = (mongod.count_document_commands() - before) as f64;
        let pages = (writers * PAGES) as f64;
        println!(
            "    {:.1} commands for 1000 pages, records put included",
            commands * 1e3 / pages
        );
        println!("    {}", measure_record_count(&uri)?);
    }
    Ok(())
}

/// Measures how long it takes to count all records.
fn measure_record_count(uri: &str) -> Result<String, AnyError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let store = runtime.block_on(open(&uri.parse()?, None))?.store;
    let started = Instant::now();
    let counts = runtime.block_on(store.record_counts(&crawl_id()))?;
    let ms = started.elapsed().as_millis();
    Ok(format!("{} records are counted in {ms} ms", counts.total))
}

/// Runs `writers` writer processes. Returns their results as text.
fn run_writers(uri: &str, writers: u64) -> Result<String, AnyError> {
    let started = Instant::now();
    let age_s = match uri.starts_with("mongodb") {
        true => 0.25,
        false => 0.064,
    };
    let batch = (RATE * age_s / writers as f64).ceil() as u64;
    let start = |client: u64| {
        let mut writer = Command::new(std::env::current_exe()?);
        let (client, batch) = (client.to_string(), batch.to_string());
        writer.args(["writer", uri, &client, &batch]);
        writer.stdout(Stdio::piped()).spawn()
    };
    let running = (0..writers).map(start).collect::<Result<Vec<_>, _>>()?;
    let (mut cpu_ms, mut saving_s) = (0.0, 0.0_f64);
    for writer in running {
        let output = String::from_utf8(writer.wait_with_output()?.stdout)?;
        let (cpu, seconds) = output.trim().split_once(' ').ok_or("a writer failed")?;
        cpu_ms += cpu.parse::<f64>()?;
        saving_s = saving_s.max(seconds.parse()?);
    }
    let pages = (writers * PAGES) as f64;
    Ok(format!(
        "{writers} writers, {batch} pages a batch: {:.0} pages/s, {:.1} us of CPU a page, \
         {:.2} ms a batch ({:.0} s with the records)",
        pages / saving_s,
        cpu_ms * 1e3 / pages,
        saving_s * 1e3 * batch as f64 / PAGES as f64,
        started.elapsed().as_secs_f64(),
    ))
}

fn remove_database_files(file: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(ending);
        // The file may not exist.
        let _ = std::fs::remove_file(PathBuf::from(name));
    }
}

fn run_writer(uri: &StoreUri, client: u64, batch: u64) -> Result<(), AnyError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (cpu_ms, seconds) = runtime.block_on(async {
        let store = open(uri, None).await?.store;
        put_records(&*store, client).await?;
        let (before, started) = (cpu_time_ms(), Instant::now());
        for first in (0..PAGES).step_by(batch as usize) {
            let pages =
                (first..(first + batch).min(PAGES)).map(|number| sample_save(client, number));
            for saved in store.save(pages.collect()).await {
                saved?;
            }
        }
        Ok::<_, StoreError>((cpu_time_ms() - before, started.elapsed().as_secs_f64()))
    })?;
    println!("{cpu_ms} {seconds}");
    Ok(())
}

async fn put_records(store: &dyn Store, client: u64) -> Result<(), StoreError> {
    let id = crawl_id();
    store
        .put_crawl(Crawl {
            id: id.clone(),
            request: json!({}),
            state: CrawlState::Running,
            counts: Map::new(),
            started_at_ms: 0,
            updated_at_ms: 0,
            finished_at_ms: None,
        })
        .await?;
    let dataset: DatasetName = "bench".parse().expect("a name");
    for first in (0..PAGES).step_by(500) {
        let record = |number: u64| Record {
            dataset: dataset.clone(),
            id: format!("{client}-{number}"),
            fields: Map::from_iter([(String::from("id"), json!(number))]),
            want: FIELDS.map(String::from).to_vec(),
        };
        let records = (first..first + 500).map(record).collect();
        for state in store.put_records(&id, records, 0).await {
            state?;
        }
    }
    Ok(())
}

fn crawl_id() -> CrawlId {
    CrawlId::new("local", "bench")
}

fn sample_save(client: u64, number: u64) -> Save {
    let url = format!("https://www.example.com/people/{client}/{number}/profile.html");
    let link =
        |link: u64| format!("https://www.example.com/people/{client}/{number}/friend/{link}");
    let value = |name: &str| json!(format!("the {name} of person {number}, as the page says"));
    let fields = FIELDS.iter().map(|name| ((*name).to_owned(), value(name)));
    Save {
        page: Page {
            depth: 1,
            parent: Some(String::from("https://www.example.com/people/")),
            status_code: Some(200),
            mapping: Some(String::from("people")),
            fields: fields.collect(),
            links: (0..30).map(link).collect(),
            content_type: Some(String::from("text/html; charset=utf-8")),
            bytes: 11_000,
            content_hash: Some(String::from("0123456789abcdef0123456789abcdef")),
            started_at_ms: 1_767_268_800_000,
            elapsed_ms: 120,
            worker: String::from("host/0"),
            ..Page::new(&crawl_id(), &url, "example.com", Outcome::Ok)
        },
        records: vec![format!("bench/{client}-{number}")],
    }
}

/// CPU time of this process, user and system, from the kernel's count of 10 ms ticks.
fn cpu_time_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(11).take(2);
    fields
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        * 10.0
}
