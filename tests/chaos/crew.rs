//! The processes of one round of a chaos test. Starts them, restarts dead ones as an init system would, and injects
//! faults.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use webfill_tests::process::Process;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::Web;
use webfill_tests::wall_clock;
use webfill_tests::workplace::Workplace;

use crate::egress::Routes;
use crate::plan::Kind;
use crate::proxy::Proxy;
use crate::round::Round;

/// The time of a supervisor's lease in all rounds, in seconds.
pub(crate) const LEASE_S: f64 = 1.0;
const TASKS: u16 = 5555;
const OUTCOMES: u16 = 5556;
const CONTROL: u16 = 5557;
/// The longest time that a request may take.
pub(crate) const LONGEST_REQUEST: Duration = Duration::from_secs(4);
const RESTART_AFTER: Duration = Duration::from_millis(200);
const ROUND_LIMIT: Duration = Duration::from_secs(300);
const SUPERVISORS: usize = 2;
/// The durations of a site's backoffs, in seconds. They are short, and so many that no site becomes unreachable.
const BACKOFFS: &str =
    "0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3,0.3";
/// The durations of backoffs, in seconds, in rounds where sites may become unreachable. A site that blocks never
/// becomes unreachable.
const FEW_BACKOFFS: &str = "0.3,0.3";
const REASONS: [&str; 5] = ["BLOCKED", "ROBOTS", "UNREACHABLE", "DNS", "BUSY"];

/// A process that is started again whenever it ends.
struct Member {
    start: Box<dyn Fn() -> Run>,
    running: Option<Running>,
    ended_at: Option<Instant>,
}

impl Member {
    fn new(start: impl Fn() -> Run + 'static) -> Member {
        Member {
            start: Box::new(start),
            running: None,
            ended_at: None,
        }
    }

    /// Restarts the process if it has been down long enough. Returns its exit code if it has just ended.
    fn restart_if_down(&mut self) -> Option<i32> {
        let Some(running) = &mut self.running else {
            if self.ended_at.is_none_or(|at| at.elapsed() > RESTART_AFTER) {
                self.running = Some((self.start)().time_limit(ROUND_LIMIT).start());
            }
            return None;
        };
        let status = running.exit_status()?;
        self.running = None;
        self.ended_at = Some(Instant::now());
        status.code()
    }
}

pub(crate) struct Crew {
    pub(crate) kind: Kind,
    members: Vec<Member>,
    /// The proxies of the supervisors, by the supervisors' numbers.
    pub(crate) proxies: Vec<Proxy>,
    /// The routes to the web: one for each supervisor, or one for the crawl.
    pub(crate) ways: Routes,
    host: String,
    /// The folder with all state folders and logs.
    pub(crate) folder: PathBuf,
    state: PathBuf,
    clock: PathBuf,
    intruder: Box<dyn Fn(usize) -> Run>,
    /// The crawl's key, once all seeds are accepted.
    fed: Option<Value>,
    finished: bool,
    /// Whether failed tasks must be retried.
    retries: Rc<Cell<bool>>,
}

/// The outcomes that a task may have if its site was in trouble.
const FAILURES: &str = "http_error,network_error,timeout,robots_unreachable,blocked";

impl Crew {
    pub(crate) fn new(round: &Round, work: &Workplace, web: &Web, store: &str) -> Crew {
        let clock = work.write("clock", "+0");
        match round.kind {
            Kind::Crawl => Crew::for_crawl(work, web, store, clock),
            Kind::Fleet => Crew::for_fleet(work, web, store, clock, round.gives_up),
        }
    }

    fn for_crawl(work: &Workplace, web: &Web, store: &str, clock: PathBuf) -> Crew {
        let (seeds, state) = (work.path("seeds.txt"), work.path("state"));
        let args: Vec<String> = workplace_args(work, store);
        let ways = Routes::open(web, 1);
        let resolve = ways.resolve_value(0);
        let (folder, own_clock) = (work.path("."), clock.clone());
        let retries = Rc::new(Cell::new(false));
        let retries_now = Rc::clone(&retries);
        let crawl = move || {
            let run = Run::new(["crawl", "--crawl", "test", "--depth", "50", "--state"])
                .arg(&state)
                .args(&args)
                .args(["--workers", "2", "--summary", "json", "--progress", "none"])
                .args(["--fail-on", "never"])
                .args(["--delay", "0.2", "--allow-private-networks", "--seeds"])
                .arg(&seeds)
                .args(["--resolve", &resolve])
                .in_folder(&folder);
            let run = match retries_now.get() {
                true => run.args(["--retry", FAILURES]),
                false => run,
            };
            with_common_settings(run, &own_clock, false)
        };
        Crew {
            kind: Kind::Crawl,
            members: vec![Member::new(crawl)],
            proxies: Vec::new(),
            ways,
            host: String::new(),
            folder: work.path("state"),
            state: work.path("state"),
            clock,
            intruder: Box::new(|_| unreachable!("only a fleet has intruders")),
            fed: None,
            finished: false,
            retries,
        }
    }

    fn for_fleet(work: &Workplace, web: &Web, store: &str, clock: PathBuf, gives_up: bool) -> Crew {
        static FLEETS: AtomicU32 = AtomicU32::new(0);
        let number = FLEETS.fetch_add(1, Ordering::Relaxed) * 4;
        let [.., high, low] = std::process::id().to_be_bytes();
        let host = move |part: u32| format!("127.{}.{high}.{low}", 101 + (number + part) % 150);
        let [dispatcher_state, supervisor_states] =
            ["state/dispatcher", "state/supervisor"].map(|name| work.path(name));
        let args = workplace_args(work, store);
        let dispatcher = {
            let (state, args, clock) = (dispatcher_state.clone(), args.clone(), clock.clone());
            move || {
                with_common_settings(
                    dispatcher_command(&host(0), &state, &args),
                    &clock,
                    gives_up,
                )
            }
        };
        let ways = Routes::open(web, SUPERVISORS);
        let resolve: Vec<String> = (0..SUPERVISORS)
            .map(|number| ways.resolve_value(number))
            .collect();
        let supervisor = {
            let (store, clock) = (store.to_owned(), clock.clone());
            move |number: usize, state: &str| {
                let state = supervisor_states.with_file_name(format!("{state}-{number}"));
                let run = Run::new(["supervisor", "--workers", "2", "--store", &store, "--state"])
                    .arg(&state)
                    .args(["--dispatcher", &endpoint(&host(1 + number as u32), TASKS)])
                    .args(["--id", &format!("s{number}")])
                    .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
                    .env("WEBFILL_FETCH_RESOLVE", &resolve[number]);
                with_common_settings(run, &clock, gives_up)
            }
        };
        let mut members = vec![Member::new(dispatcher)];
        for number in 0..SUPERVISORS {
            let supervisor = supervisor.clone();
            members.push(Member::new(move || supervisor(number, "supervisor")));
        }
        let proxy = |number| Proxy::start(&host(1 + number), &host(0), [TASKS, OUTCOMES]);
        Crew {
            kind: Kind::Fleet,
            members,
            proxies: (0..SUPERVISORS as u32).map(proxy).collect(),
            ways,
            host: host(0),
            folder: work.path("state"),
            state: dispatcher_state,
            clock,
            intruder: Box::new(move |number| supervisor(number, "intruder")),
            fed: None,
            finished: false,
            retries: Rc::default(),
        }
    }

    /// Restarts the processes that have ended. Returns whether the crawl is finished.
    pub(crate) fn restart_dead(&mut self, roots: &[String]) -> bool {
        for member in &mut self.members {
            let code = member.restart_if_down();
            assert!(
                !matches!(code, Some(2 | 17)),
                "a process ended with {code:?}, which no restart mends"
            );
            self.finished |= self.kind == Kind::Crawl && code == Some(0);
        }
        if self.kind == Kind::Fleet && !self.finished {
            self.finished = self.feed_or_check(roots) == Some(true);
        }
        self.finished
    }

    /// Feeds the next seed, or asks whether the crawl is finished. `None` if no answer came, so that the dispatcher
    /// must be asked which seeds it has accepted.
    fn feed_or_check(&mut self, roots: &[String]) -> Option<bool> {
        if let Some(crawl) = &self.fed {
            let status =
                self.send_command(&json!({"action": "crawl_status", "crawls": [crawl]}))?;
            return Some(status["finished"] == true);
        }
        let spec = json!({"app_id": "test", "crawl_id": "test", "max_depth": 50});
        let opened = self.send_command(&json!({"action": "open_crawl", "spec": spec}))?;
        let (crawl, fed_lines) = (&opened["crawl"], opened["fed_lines"].as_u64()?);
        // Feed one seed for each answer, so that feeding continues while faults happen.
        if let Some(root) = roots.get(fed_lines as usize) {
            self.send_command(&json!({"action": "feed_seeds", "crawl": crawl,
                "seeds": [{"url": root}], "fed_lines": fed_lines + 1}))?;
            return Some(false);
        }
        self.send_command(&json!({"action": "end_of_seeds", "crawl": crawl}))?;
        self.fed = Some(crawl.clone());
        Some(false)
    }

    /// Retries the failed tasks, so the crawl is no longer finished.
    pub(crate) fn retry(&mut self) {
        self.retries.set(true);
        if self.kind == Kind::Fleet {
            let outcomes: Vec<&str> = FAILURES.split(',').collect();
            let retry =
                json!({"action": "retry", "appid": "test", "crawlid": "test", "outcome": outcomes});
            let deadline = Instant::now() + ROUND_LIMIT;
            while self
                .request(&retry)
                .is_none_or(|answer| answer["total_requeued"].is_null())
            {
                assert!(Instant::now() < deadline, "no answer to {retry}");
                self.members
                    .iter_mut()
                    .for_each(|member| _ = member.restart_if_down());
            }
        }
        self.finished = false;
    }

    /// Sends an operator's action on the crawl. Returns whether an answer came.
    fn send_action(&self, action: &str) -> bool {
        let order = json!({"action": action, "appid": "test", "crawlid": "test", "uuid": "u",
            "spiderid": "link"});
        let answer = self.request(&order);
        answer.is_some_and(|answer| answer["error"].is_null())
    }

    pub(crate) fn pause(&self) {
        self.send_action("pause");
    }

    pub(crate) fn resume(&self) -> bool {
        self.send_action("resume")
    }

    /// Sets or removes the page limit of a site, as an operator. Returns whether an answer came.
    pub(crate) fn limit_pages(&self, host: &str, pages: Option<usize>) -> bool {
        let answer = self.request(&json!({"action": "site", "site": host, "limit": pages}));
        answer.is_some_and(|answer| answer["error"].is_null())
    }

    /// The URLs of the tasks in the frontier that satisfy an SQL condition.
    fn task_urls_where(&self, condition: &str) -> BTreeSet<String> {
        let read = || {
            let db = Connection::open_with_flags(
                self.frontier_path(),
                OpenFlags::SQLITE_OPEN_READ_ONLY,
            )?;
            let mut select = db.prepare(&format!("SELECT url FROM tasks WHERE {condition}"))?;
            select.query_map([], |row| row.get(0))?.collect()
        };
        // The file may not exist yet, or the dispatcher may be starting, so an error counts as no tasks.
        let found: rusqlite::Result<BTreeSet<String>> = read();
        found.unwrap_or_default()
    }

    /// The URLs of the tasks that are leased.
    pub(crate) fn held_urls(&self) -> BTreeSet<String> {
        self.task_urls_where("state = 1")
    }

    pub(crate) fn failed_urls(&self) -> BTreeSet<String> {
        self.task_urls_where("state = 2 AND outcome NOT IN ('ok', 'disallowed')")
    }

    fn request(&self, request: &Value) -> Option<Value> {
        request_at(&endpoint(&self.host, CONTROL), request)
    }

    /// Sends a request to the dispatcher as `webfill crawl` does: on the socket that only this user can reach.
    fn send_command(&self, request: &Value) -> Option<Value> {
        let socket = self.state.join("sockets/dispatcher-feeders");
        request_at(&format!("ipc://{}", socket.display()), request)
    }

    /// The live processes with this role, in all parts of the crew.
    pub(crate) fn processes_of_role(&self, role: &str) -> Vec<Process> {
        let running = self.members.iter().flat_map(|member| &member.running);
        running
            .flat_map(|running| running.processes_of_role(role))
            .collect()
    }

    pub(crate) fn all_processes(&self) -> Vec<Process> {
        let running = self.members.iter().flat_map(|member| &member.running);
        running.flat_map(Running::processes).collect()
    }

    /// Starts a second supervisor with the same id as supervisor `number`, in its own folder.
    pub(crate) fn start_intruder(&self, number: usize) -> Running {
        (self.intruder)(number).time_limit(ROUND_LIMIT).start()
    }

    /// Starts a second dispatcher with the state folder of this fleet.
    pub(crate) fn start_second_dispatcher(&self) -> Running {
        let store = format!(
            "sqlite:{}",
            self.state.with_file_name("second.db").display()
        );
        let args = ["--port", "5655", "--store", &store].map(str::to_owned);
        let run = dispatcher_command(&self.host, &self.state, &args);
        with_common_settings(run, &self.clock, false)
            .time_limit(ROUND_LIMIT)
            .start()
    }

    pub(crate) fn set_clock(&self, hours: i8) {
        std::fs::write(&self.clock, format!("{:+}", i32::from(hours) * 3_600))
            .expect("our own folder");
    }

    pub(crate) fn frontier_path(&self) -> PathBuf {
        self.state.join("dispatcher.db")
    }

    /// Kills all processes.
    pub(crate) fn kill_all(&mut self) {
        self.members.clear();
    }
}

fn workplace_args(work: &Workplace, store: &str) -> Vec<String> {
    let mappings = work.path("mappings").display().to_string();
    ["--store", store, "--mappings", &mappings]
        .map(str::to_owned)
        .to_vec()
}

fn dispatcher_command(host: &str, state: &std::path::Path, args: &[String]) -> Run {
    Run::new(["dispatcher", "--http", "off", "--listen", host, "--state"])
        .arg(state)
        .args(args)
}

fn endpoint(host: &str, port: u16) -> String {
    format!("tcp://{host}:{port}")
}

/// Adds the settings that all processes share, and a wall clock that a file controls.
fn with_common_settings(run: Run, clock: &std::path::Path, gives_up: bool) -> Run {
    let run = run
        .env("WEBFILL_DISPATCHER_LEASE", LEASE_S.to_string())
        .env("WEBFILL_POLITENESS_DELAY", "0.2")
        .env(
            "WEBFILL_FETCH_TOTAL_TIMEOUT",
            LONGEST_REQUEST.as_secs().to_string(),
        );
    let backoff = |run: Run, reason| {
        let backoff = match gives_up && reason != REASONS[0] {
            true => FEW_BACKOFFS,
            false => BACKOFFS,
        };
        run.env(&format!("WEBFILL_BACKOFF_{reason}"), backoff)
    };
    let run = REASONS.into_iter().fold(run, backoff);
    wall_clock::with_clock_file(run, clock)
}

fn request_at(endpoint: &str, request: &Value) -> Option<Value> {
    let context = zmq::Context::new();
    let socket = context.socket(zmq::REQ).expect("a socket");
    socket.set_linger(0).expect("an option");
    socket.set_rcvtimeo(400).expect("an option");
    socket.set_sndtimeo(400).expect("an option");
    socket.connect(endpoint).expect("an address");
    socket.send(&request.to_string(), 0).ok()?;
    serde_json::from_slice(&socket.recv_bytes(0).ok()?).ok()
}
