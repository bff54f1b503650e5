//! A supervisor's metrics for Prometheus: the counts of its workers, and its own state. The loop publishes them once
//! a second; each scrape gets the latest ones.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use webfill_service::Fault;
use webfill_service::metrics::{
    Exposition, ReportedProcess, add_build, add_disk_low, add_disks, add_loop_age, add_messages,
    add_processes, add_starts, add_store,
};
use webfill_wire::Outcome;
use webfill_wire::counts::{FieldTotals, RowTotals, WorkerCounts, WorkerTotals};
use webfill_wire::socket::Traffic;

use crate::config::SupervisorSetup;
use crate::counts::WorkerSums;

/// How often the loop publishes metrics.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// The classes of HTTP status codes. Each has a time series from the start, so that rates include its first events.
const ANSWERS: [u8; 5] = [1, 2, 3, 4, 5];

/// A worker process in the metrics and on the dashboard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerRow {
    /// The id of the worker's process; `None` if the worker is not running.
    pub(crate) pid: Option<u32>,
    pub(crate) is_ready: bool,
}

/// The state of the supervisor, as the metrics show it.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// The workers, by index.
    pub(crate) workers: Vec<WorkerRow>,
    pub(crate) worker_deaths: u64,
    pub(crate) has_lease: bool,
    pub(crate) is_disk_low: bool,
    pub(crate) held: usize,
    /// The number and bytes of messages of each socket, by the socket's name.
    pub(crate) traffic: Vec<(&'static str, Traffic)>,
}

/// Facts for the metrics that do not depend on the loop.
struct Machine {
    starts: u64,
    /// The folders whose disks must have free space.
    folders: Vec<PathBuf>,
}

/// The metrics that the loop has published last.
#[derive(Default)]
struct Published {
    totals: WorkerTotals,
    is_store_away: bool,
    state: State,
    /// The time of publication; `None` until the loop begins.
    at: Option<Instant>,
}

/// Collects and publishes metrics in the loop of the supervisor.
pub(crate) struct Metrics {
    /// The published metrics; `None` if metrics are not served.
    published: Option<Arc<Mutex<Arc<Published>>>>,
    sums: WorkerSums,
    next: Instant,
}

impl Metrics {
    /// Serves the published metrics, if configured. If that fails, the supervisor runs without them.
    pub(crate) fn start(setup: &SupervisorSetup) -> Metrics {
        let published = setup.metrics.and_then(|address| {
            serve(address, setup)
                .inspect_err(|fault| {
                    tracing::error!(event = "metrics_not_served", error = %fault, "no metrics are served");
                })
                .ok()
        });
        Metrics {
            published,
            sums: WorkerSums::default(),
            next: Instant::now(),
        }
    }

    pub(crate) fn record(&mut self, counts: WorkerCounts) {
        self.sums.record(counts);
    }

    /// Publishes the metrics if they are due.
    pub(crate) fn publish(&mut self, state: impl FnOnce() -> State) {
        let now = Instant::now();
        let Some(published) = self.published.as_ref().filter(|_| now >= self.next) else {
            return;
        };
        self.next = now + PUBLISH_EVERY;
        let fresh = Published {
            totals: self.sums.totals(),
            is_store_away: self.sums.is_store_away(),
            state: state(),
            at: Some(now),
        };
        *published.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
    }
}

fn serve(
    address: SocketAddr,
    setup: &SupervisorSetup,
) -> Result<Arc<Mutex<Arc<Published>>>, Fault> {
    let published = Arc::<Mutex<Arc<Published>>>::default();
    let served = Arc::clone(&published);
    let machine = Machine {
        starts: setup.starts,
        folders: setup.disks.folders().to_vec(),
    };
    let page = move || {
        // The loop needs this lock, too. So copy the reference, and do not write to a client while holding the lock.
        let published = Arc::clone(&served.lock().unwrap_or_else(PoisonError::into_inner));
        published.write_page(&machine)
    };
    webfill_service::metrics::serve(address, "metrics.supervisor", page)?;
    Ok(published)
}

/// A page of metrics with all time series of a supervisor, for the reference. It shows the counts of a worker that has
/// fetched one page with rows.
pub fn sample_page() -> String {
    let mapping = "books".to_owned();
    let published = Published {
        totals: WorkerTotals {
            fields: BTreeMap::from([(mapping.clone(), FieldTotals::default())]),
            rows: BTreeMap::from([(mapping, RowTotals::default())]),
            ..WorkerTotals::default()
        },
        state: State {
            workers: vec![WorkerRow {
                pid: Some(std::process::id()),
                is_ready: true,
            }],
            traffic: vec![("dispatcher", Traffic::default())],
            ..State::default()
        },
        is_store_away: false,
        at: Some(Instant::now()),
    };
    published.write_page(&Machine {
        starts: 0,
        folders: vec![PathBuf::from("/")],
    })
}

impl Published {
    fn write_page(&self, machine: &Machine) -> String {
        let mut page = Exposition::default();
        add_build(&mut page);
        if let Some(at) = self.at {
            add_loop_age(&mut page, at);
        }
        add_starts(&mut page, machine.starts);
        add_disks(&mut page, &machine.folders);
        self.state.add_to(&mut page);
        add_store(&mut page, self.is_store_away, &self.totals.save);
        add_totals(&mut page, &self.totals);
        page.finish()
    }
}

impl State {
    fn add_processes_to(&self, page: &mut Exposition) {
        let indexes: Vec<String> = (0..self.workers.len()).map(|n| n.to_string()).collect();
        let mut processes = vec![ReportedProcess {
            pid: std::process::id(),
            labels: vec![("process", "supervisor"), ("worker", "")],
        }];
        for (worker, index) in self.workers.iter().zip(&indexes) {
            processes.extend(worker.pid.map(|pid| ReportedProcess {
                pid,
                labels: vec![("process", "worker"), ("worker", index)],
            }));
        }
        add_processes(page, &processes);
    }

    fn add_to(&self, page: &mut Exposition) {
        self.add_processes_to(page);
        let mut workers = page.add_gauge(
            "webfill_workers",
            "Worker processes, by state: `ready`, `starting`, `dead`.",
        );
        let count = |state: fn(&WorkerRow) -> bool| {
            self.workers.iter().filter(|worker| state(worker)).count()
        };
        workers.add_series(&[("state", "ready")], count(|worker| worker.is_ready));
        let starting = count(|worker| worker.pid.is_some() && !worker.is_ready);
        workers.add_series(&[("state", "starting")], starting);
        workers.add_series(&[("state", "dead")], count(|worker| worker.pid.is_none()));
        page.add_counter(
            "webfill_worker_deaths_total",
            "Workers that have died and were restarted.",
        )
        .set_value(self.worker_deaths);
        page.add_gauge(
            "webfill_dispatcher_up",
            "1: the supervisor has a lease, so it may start requests.",
        )
        .set_value(u8::from(self.has_lease));
        add_disk_low(page, self.is_disk_low);
        page.add_gauge(
            "webfill_tasks_held",
            "Tasks with the supervisor and its workers.",
        )
        .set_value(self.held);
        add_messages(page, self.traffic.iter().copied());
    }
}

fn add_totals(page: &mut Exposition, totals: &WorkerTotals) {
    add_requests(page, totals);
    add_durations(page, totals);
    add_extraction(page, totals);
}

fn add_requests(page: &mut Exposition, totals: &WorkerTotals) {
    let mut pages = page.add_counter(
        "webfill_pages_total",
        "Stored pages, by their outcome; attempts that the dispatcher retries count as well.",
    );
    for outcome in Outcome::ALL {
        let count = totals.pages.get(outcome).copied().unwrap_or(0);
        pages.add_series(&[("outcome", outcome.as_str())], count);
    }
    let mut answers = page.add_counter(
        "webfill_responses_total",
        "Answers to requests for pages, by the first digit of the status: `2xx`; `other`: above 5.",
    );
    for class in ANSWERS {
        let count = totals.answers.get(&class).copied().unwrap_or(0);
        answers.add_series(&[("class", &format!("{class}xx"))], count);
    }
    let known = |class: &u8| ANSWERS.contains(class);
    let others = totals.answers.iter().filter(|(class, _)| !known(class));
    answers.add_series(
        &[("class", "other")],
        others.map(|(_, count)| count).sum::<u64>(),
    );
    page.add_counter(
        "webfill_fetched_bytes_total",
        "Bytes of pages' bodies, after decompression.",
    )
    .set_value(totals.fetched_bytes);
    page.add_counter("webfill_robots_fetches_total", "Requests for robots.txt.")
        .set_value(totals.robots);
}

fn add_durations(page: &mut Exposition, totals: &WorkerTotals) {
    page.add_histogram(
        "webfill_fetch_duration_seconds",
        "From the start of a request for a page to the end of its body; its count is the number of such requests.",
        &totals.fetch,
    );
    page.add_histogram(
        "webfill_queue_duration_seconds",
        "From the arrival of a task at its worker to its request: waits for robots.txt, the site's delay and a permit to fetch. Tasks without a request are not counted.",
        &totals.queue,
    );
}

fn add_extraction(page: &mut Exposition, totals: &WorkerTotals) {
    page.add_counter(
        "webfill_pages_unmatched_total",
        "Pages with the outcome `ok` that no mapping matches, without sitemaps: `unmatched` in the summary of a crawl and in `webfill info`.",
    )
    .set_value(totals.unmatched);
    let mut fields = page.add_counter(
        "webfill_fields_total",
        "Fields that a mapping extracts from its pages with the outcome `ok`: `filled` or `empty`.",
    );
    for (mapping, counts) in &totals.fields {
        fields.add_series(&[("mapping", mapping), ("state", "filled")], counts.filled);
        fields.add_series(&[("mapping", mapping), ("state", "empty")], counts.empty);
    }
    let mut rows = page.add_counter(
        "webfill_rows_total",
        "Rows of pages with the outcome `ok`: `stored`, `without_key`, or lost to another row with the `same_key`.",
    );
    for (mapping, counts) in &totals.rows {
        let states = [
            ("stored", counts.stored),
            ("without_key", counts.without_key),
            ("same_key", counts.same_key),
        ];
        for (state, count) in states {
            rows.add_series(&[("mapping", mapping), ("state", state)], count);
        }
    }
    let mut cut = page.add_counter(
        "webfill_pages_rows_cut_total",
        "Pages with rows that were left out at a bound.",
    );
    for (mapping, counts) in &totals.rows {
        cut.add_series(&[("mapping", mapping)], counts.cut_pages);
    }
}
