//! How many instructions a page costs: in a worker, in the XPath engine, in a dispatcher's core (also with
//! a journal), in a SQLite store.
//!
//! Valgrind's cachegrind counts the instructions. Except for the seeds of hash tables, the counts are the same on every
//! machine and under any load. Each workload runs with a number of pages and with twice as many; the difference
//! excludes the start of the program. The counts must neither exceed the recorded ones nor fall below them. An
//! improvement must be recorded, because the next change could otherwise undo it unnoticed.
//!
//!     instructions                      all workloads, beside the recorded counts
//!     instructions WORKLOAD PAGES       runs one of them, for valgrind
//!
//! Only the build of `.ci/run` with the compiler of the recorded counts is judged, because another compiler generates
//! other code.

use std::process::{Command, ExitCode};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, json};
use webfill_bench::dispatcher_turns::{close_tasks, open_core};
use webfill_bench::{Limit, Size, Verdict, catalogue_pages, report};
use webfill_document::{Document, XPath};
use webfill_mapping::{MappingSet, Source};
use webfill_store::{Crawl, CrawlId, CrawlState, Page, Save, StoreUri};
use webfill_wire::{AddressBounds, CrawlSettings, Delivery, Follow, Lane, Outcome, Task};
use webfill_worker::{CrawledPages, PageReader, WorkerConfig};

/// The same allocator as in the webfill command, so that allocations cost the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error>;

/// A count may differ from the recorded one by at most this fraction.
const TOLERANCE: f64 = 0.03;
const RECORDED: &str = include_str!("../../instructions.json");
const EXPRESSIONS: &str = include_str!("../../extraction/expressions.txt");
const CATALOGUE_MAPPING: &str = include_str!("../../crawl/catalogue/mapping.json");
/// The number of pages in the catalogue. Links lead only to these pages.
const CATALOGUE_PAGES: usize = 10_000;
/// The number of pages in the shorter run of the worker. Samples are kept of as many first pages, so they do not count.
const WORKER_PAGES: usize = 20;
const SUPERVISORS: usize = 4;
/// The number of pages in a batch: as many as a worker collects at a thousand pages a second.
const PAGES_OF_BATCH: usize = 64;
/// The number of codegen units that `.ci/run` builds with.
const CODEGEN_UNITS_OF_CI: &str = "2";

/// A piece of work whose instructions are counted.
struct Workload {
    name: &'static str,
    what: &'static str,
    /// The number of pages in the shorter run.
    pages: usize,
    run: fn(usize) -> Result<(), Failure>,
}

const WORKLOADS: [Workload; 5] = [
    Workload {
        name: "worker",
        what: "a page of 11 kB of a crawl, from its body to its entry for the store and its report",
        pages: WORKER_PAGES,
        run: read_pages,
    },
    Workload {
        name: "xpath",
        what: "evaluating all XPaths of extraction/expressions.txt on such a page, which is parsed once",
        pages: 20,
        run: evaluate_expressions,
    },
    Workload {
        name: "dispatcher",
        what: "handing out a task and closing it, with its part of the commits",
        pages: 1_500,
        run: hand_out_tasks,
    },
    Workload {
        name: "journal",
        what: "the same with the changes of each commit as rows, for a journal",
        pages: 1_500,
        run: hand_out_tasks_with_journal,
    },
    Workload {
        name: "store",
        what: "storing a page with five fields and thirty links in a batch, in SQLite",
        pages: 640,
        run: store_pages,
    },
];

/// The content of `instructions.json`: thousands of instructions per page, and the compiler that they were counted
/// with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    rustc: String,
    thousands: Map<String, serde_json::Value>,
}

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [] => measure_all(size),
        [name, pages] => {
            let workload = WORKLOADS.iter().find(|workload| workload.name == name);
            (workload.ok_or("no such workload")?.run)(pages.parse()?)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => Err("usage: instructions [WORKLOAD PAGES]".into()),
    }
}

fn measure_all(size: Size) -> Result<ExitCode, Failure> {
    let recorded: Recorded = serde_json::from_str(RECORDED)?;
    let difference = difference_from(&recorded)?;
    if let Some(difference) = &difference {
        println!("not judged: {difference}");
    }
    let mut verdicts = Vec::new();
    for workload in &WORKLOADS {
        let thousands = count_per_page(workload)? / 1e3;
        verdicts.push(Verdict {
            what: format!("{}: thousands of instructions a page", workload.name),
            figure: thousands,
            limit: Limit::None,
        });
        println!("{}: {}", workload.name, workload.what);
        let before = recorded.thousands.get(workload.name);
        let before = before
            .and_then(serde_json::Value::as_f64)
            .ok_or_else(|| format!("instructions.json has no `{}`", workload.name))?;
        let judged = |limit| match difference {
            None => Limit::AtMostEver(limit),
            Some(_) => Limit::None,
        };
        verdicts.push(Verdict {
            what: format!(
                "{}: the difference from {before:.1}, as a fraction",
                workload.name
            ),
            figure: (thousands / before - 1.0).abs(),
            limit: judged(TOLERANCE),
        });
    }
    Ok(report(&verdicts, size))
}

/// The reason why the counts of this build cannot be compared with the recorded ones; `None` if they can.
fn difference_from(recorded: &Recorded) -> Result<Option<String>, Failure> {
    if !cfg!(debug_assertions)
        || option_env!("CARGO_PROFILE_DEV_CODEGEN_UNITS") != Some(CODEGEN_UNITS_OF_CI)
    {
        return Ok(Some("this is not the build of .ci/run".into()));
    }
    let version = Command::new("rustc").arg("--version").output()?;
    let version = String::from_utf8(version.stdout)?;
    let version = version.trim();
    Ok((version != recorded.rustc).then(|| {
        let recorded = &recorded.rustc;
        format!("the recorded counts are those of {recorded}, and this is {version}")
    }))
}

fn count_per_page(workload: &Workload) -> Result<f64, Failure> {
    let once = count_instructions(workload.name, workload.pages)?;
    let twice = count_instructions(workload.name, 2 * workload.pages)?;
    Ok((twice - once) / workload.pages as f64)
}

/// Runs a workload of this program under cachegrind. Returns the number of instructions.
fn count_instructions(name: &str, pages: usize) -> Result<f64, Failure> {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=cachegrind", "--cache-sim=no"])
        .arg("--cachegrind-out-file=/dev/null")
        .arg(std::env::current_exe()?)
        .args([name, &pages.to_string()]);
    let run = valgrind
        .output()
        .map_err(|error| format!("valgrind cannot be started: {error}"))?;
    let report = String::from_utf8_lossy(&run.stderr);
    let total = report
        .lines()
        .find_map(|line| line.split_once("refs:"))
        .filter(|_| run.status.success())
        .ok_or_else(|| format!("the run of `{name}` under valgrind failed:\n{report}"))?;
    Ok(total.1.trim().replace(',', "").parse()?)
}

fn load_mappings() -> Result<Arc<MappingSet>, Failure> {
    let source = Source {
        name: "mapping.json".into(),
        text: CATALOGUE_MAPPING.into(),
    };
    Ok(Arc::new(MappingSet::from_sources(vec![source])?))
}

fn item_url(number: usize) -> String {
    format!("http://catalogue.example/item/{number}")
}

/// Reads pages on a thread that has a large enough stack.
fn read_pages(pages: usize) -> Result<(), Failure> {
    let thread = std::thread::Builder::new().stack_size(PageReader::STACK_BYTES);
    let reading =
        thread.spawn(move || read_on_this_thread(pages).map_err(|error| error.to_string()))?;
    Ok(reading
        .join()
        .map_err(|_| "the thread that reads pages died")??)
}

fn read_on_this_thread(pages: usize) -> Result<(), Failure> {
    let mut crawled =
        CrawledPages::new(load_mappings()?, &WorkerConfig::default(), crawl_settings());
    // Both runs make all pages, so that the difference does not contain the making.
    let bodies = (0..2 * WORKER_PAGES.max(pages / 2))
        .map(|number| catalogue_pages::item_page(number, CATALOGUE_PAGES).into_bytes());
    let bodies: Vec<Vec<u8>> = bodies.collect();
    for (number, body) in bodies.into_iter().enumerate().take(pages) {
        let (save, done) = crawled.read(deep_task(number), body);
        if save.page.fields.len() != 7 || done.links.len() < 20 {
            return Err(format!(
                "a page has {:?} and {} links",
                save.page.fields,
                done.links.len()
            )
            .into());
        }
    }
    Ok(())
}

/// A crawl that follows all links, as the benchmark `small` does.
fn crawl_settings() -> CrawlSettings {
    CrawlSettings {
        key: 1,
        app_id: "local".into(),
        crawl_id: "bench".into(),
        max_depth: 50,
        follow: Follow::All,
        lane: Lane::Http,
        useragent: None,
        attrs: None,
        headers: false,
        body: false,
        features: Vec::new(),
    }
}

/// A task so far from the seeds that its page is compared with others.
fn deep_task(number: usize) -> Task {
    Task {
        task: number as u64,
        delivery: Delivery::new(0, 1),
        crawl: 1,
        url: item_url(number),
        site: "catalogue.example".into(),
        depth: 5,
        wait_ms: 0,
        last_request_ago_ms: None,
        parent: Some(item_url(0)),
        records: Vec::new(),
        attrs: None,
        priority: 50,
        delay_ms: None,
        failed_attempts: Vec::new(),
        unreachable: None,
        address_bounds: AddressBounds::None,
    }
}

fn evaluate_expressions(times: usize) -> Result<(), Failure> {
    let expressions = EXPRESSIONS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(XPath::compile)
        .collect::<Result<Vec<_>, _>>()?;
    let text = catalogue_pages::item_page(1, CATALOGUE_PAGES);
    let document = Document::parse_html(&text, &webfill_document::Limits::default());
    for _ in 0..times {
        for expression in &expressions {
            std::hint::black_box(document.evaluate(expression)?);
        }
    }
    Ok(())
}

fn hand_out_tasks(tasks: usize) -> Result<(), Failure> {
    feed_and_hand_out(tasks, false)
}

fn hand_out_tasks_with_journal(tasks: usize) -> Result<(), Failure> {
    feed_and_hand_out(tasks, true)
}

fn feed_and_hand_out(tasks: usize, journalled: bool) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let mut core = open_core(folder.path(), tasks as u64, 1, journalled)?;
    close_tasks(&mut core, tasks as u64, SUPERVISORS)?;
    Ok(())
}

fn store_pages(pages: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("store.db");
    let uri: StoreUri = format!("sqlite:{}", file.display()).parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let store = webfill_store::open(&uri, None).await?.store;
        let id = CrawlId::new("local", "bench");
        store.put_crawl(running_crawl(id.clone())).await?;
        let numbers: Vec<usize> = (0..pages).collect();
        for batch in numbers.chunks(PAGES_OF_BATCH) {
            let saves = batch
                .iter()
                .map(|number| build_save(&id, *number))
                .collect();
            for saved in store.save(saves).await {
                saved?;
            }
        }
        Ok(())
    })
}

fn running_crawl(id: CrawlId) -> Crawl {
    Crawl {
        id,
        request: json!({}),
        state: CrawlState::Running,
        counts: Map::new(),
        started_at_ms: 0,
        updated_at_ms: 0,
        finished_at_ms: None,
    }
}

fn build_save(id: &CrawlId, number: usize) -> Save {
    let value = |name: &str| {
        (
            name.to_owned(),
            json!(format!("the {name} of item {number}")),
        )
    };
    let page = Page {
        depth: 1,
        status_code: Some(200),
        mapping: Some("catalogue-item".into()),
        fields: ["name", "price", "rating", "article", "summary"]
            .map(value)
            .into_iter()
            .collect(),
        links: (0..30).map(|link| item_url(number * 7 + link)).collect(),
        content_type: Some("text/html; charset=utf-8".into()),
        bytes: 11_000,
        started_at_ms: 1_767_268_800_000,
        elapsed_ms: 120,
        worker: "host/0".into(),
        ..Page::new(id, &item_url(number), "catalogue.example", Outcome::Ok)
    };
    Save {
        page,
        records: Vec::new(),
    }
}
