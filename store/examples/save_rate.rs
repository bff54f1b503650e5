//! Measures how fast pages are saved by one process and by several at once.
//!
//!     cargo run --release -p webfill-store --example save_rate [FILE]
//!
//! Each page has 5 fields, 30 links and one record of which it fills a field; 64 go into a batch.
//! CPU time is that of all threads of the writers, building the pages included.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Map, json};
use webfill_store::{
    Crawl, CrawlId, CrawlState, Page, Record, Save, Store, StoreError, StoreUri, open,
};
use webfill_wire::Outcome;

/// As in the webfill command, whose memory is no other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: u64 = 64;
const BATCHES: u64 = 1000;
const FIELDS: [&str; 5] = ["name", "born", "city", "about", "links"];

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments[1..] {
        [role, file, client] if role == "writer" => write(Path::new(file), client.parse()?),
        [] => measure(&std::env::temp_dir().join("webfill-save-rate.db")),
        [file] => measure(Path::new(file)),
        _ => Err("usage: save_rate [FILE]".into()),
    }
}

fn measure(file: &Path) -> Result<(), AnyError> {
    for writers in [1, 2, 4] {
        remove(file);
        let started = Instant::now();
        let start = |client: u64| {
            let mut writer = Command::new(std::env::current_exe()?);
            writer.arg("writer").arg(file).arg(client.to_string());
            writer.stdout(Stdio::piped()).spawn()
        };
        let running = (0..writers).map(start).collect::<Result<Vec<_>, _>>()?;
        let mut cpu_ms = 0.0;
        for writer in running {
            let output = writer.wait_with_output()?;
            cpu_ms += String::from_utf8(output.stdout)?.trim().parse::<f64>()?;
        }
        let pages = (writers * BATCHES * BATCH) as f64;
        let seconds = started.elapsed().as_secs_f64();
        let bytes = std::fs::metadata(file)?.len() as f64;
        println!(
            "{writers} writers: {:.0} pages/s, {:.1} us of CPU a page, {:.2} ms a batch, {:.0} bytes a page",
            pages / seconds,
            cpu_ms * 1e3 / pages,
            seconds * 1e3 / BATCHES as f64,
            bytes / pages,
        );
    }
    remove(file);
    Ok(())
}

fn remove(file: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(ending);
        // What is not there needs no removing.
        let _ = std::fs::remove_file(PathBuf::from(name));
    }
}

fn write(file: &Path, client: u64) -> Result<(), AnyError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let cpu_ms = runtime.block_on(async {
        let store = open(&StoreUri::Sqlite(file.to_owned()), None).await?.store;
        put_records(&*store, client).await?;
        let before = cpu_time_ms();
        for batch in 0..BATCHES {
            let pages = (0..BATCH).map(|number| save(client, batch * BATCH + number));
            for saved in store.save(pages.collect()).await {
                saved?;
            }
        }
        Ok::<f64, StoreError>(cpu_time_ms() - before)
    })?;
    println!("{cpu_ms}");
    Ok(())
}

async fn put_records(store: &dyn Store, client: u64) -> Result<(), StoreError> {
    let id = CrawlId::new("local", "bench");
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
    for batch in 0..BATCHES {
        let record = |number: u64| Record {
            id: format!("{client}-{}", batch * BATCH + number),
            fields: Map::from_iter([(String::from("id"), json!(number))]),
            want: FIELDS.map(String::from).to_vec(),
        };
        for state in store
            .put_records(&id, (0..BATCH).map(record).collect(), 0)
            .await
        {
            state?;
        }
    }
    Ok(())
}

fn save(client: u64, number: u64) -> Save {
    let url = format!("https://www.example.com/people/{client}/{number}/profile.html");
    let link =
        |link: u64| format!("https://www.example.com/people/{client}/{number}/friend/{link}");
    let value = |name: &str| json!(format!("the {name} of person {number}, as the page says"));
    let fields = FIELDS.iter().map(|name| ((*name).to_owned(), value(name)));
    Save {
        page: Page {
            app_id: String::from("local"),
            crawl_id: String::from("bench"),
            final_url: None,
            site: String::from("example.com"),
            depth: 1,
            parent: Some(String::from("https://www.example.com/people/")),
            outcome: Outcome::Ok,
            status_code: Some(200),
            mapping: Some(String::from("people")),
            fields: fields.collect(),
            links: (0..30).map(link).collect(),
            content_type: Some(String::from("text/html; charset=utf-8")),
            bytes: 11_000,
            content_hash: Some(String::from("0123456789abcdef0123456789abcdef")),
            started_at_ms: 1_767_268_800_000,
            elapsed_ms: 120,
            attempts: 1,
            worker: String::from("host/0"),
            attrs: None,
            url,
        },
        records: vec![format!("{client}-{number}")],
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
