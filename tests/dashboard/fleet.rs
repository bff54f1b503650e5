//! A fleet with a dashboard: a dispatcher, a supervisor, and the web that they crawl. The fleet has its own loopback
//! address.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{Certificates, Web};
pub(crate) use webfill_tests::waiting::wait_for;
use webfill_tests::workplace::Workplace;

use crate::http::Visitor;

const WAIT: Duration = Duration::from_secs(60);

const HTTP: u16 = 8080;

/// The name of the application in these tests.
pub(crate) const APP: &str = "testapp";

/// The delay between two requests to a site.
pub(crate) const DELAY: Duration = Duration::from_millis(100);

pub(crate) struct Fleet {
    pub(crate) web: Web,
    pub(crate) work: Workplace,
    host: String,
    /// The URI of the store; if unset, the store is a file of the workplace.
    store: Option<String>,
    tokens: Option<PathBuf>,
    settings: Vec<(String, String)>,
    /// The files of the certificate and of its key.
    tls: Option<[PathBuf; 2]>,
    dispatcher: Option<Running>,
    supervisor: Option<Running>,
}

impl Fleet {
    /// A fleet whose dashboard requires no token from visitors on this machine.
    pub(crate) fn start() -> Fleet {
        let mut fleet = Fleet::unstarted();
        fleet.start_dispatcher();
        fleet.start_supervisor();
        fleet
    }

    /// A fleet whose dashboard requires tokens. Each of the `lines` is `NAME TOKEN RIGHTS`.
    pub(crate) fn with_tokens(lines: &str) -> Fleet {
        let mut fleet = Fleet::unstarted();
        fleet.tokens = Some(fleet.work.path("tokens"));
        fleet.write_tokens(lines);
        fleet.start_dispatcher();
        fleet.start_supervisor();
        fleet
    }

    /// Like [`Fleet::with_tokens`], but the dashboard uses TLS.
    pub(crate) fn with_tls(lines: &str) -> Fleet {
        let mut fleet = Fleet::unstarted();
        let certificates = Certificates::make(&[&fleet.host]);
        let put = |name: &str, of: PathBuf| {
            let path = fleet.work.path(name);
            fs::copy(of, &path).expect("our own");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("our own");
            path
        };
        let tls = [
            put("http.pem", certificates.certificate()),
            put("http.key", certificates.key()),
        ];
        fleet.tls = Some(tls);
        fleet.tokens = Some(fleet.work.path("tokens"));
        fleet.write_tokens(lines);
        fleet.start_dispatcher();
        fleet.start_supervisor();
        fleet
    }

    pub(crate) fn unstarted() -> Fleet {
        static FLEETS: AtomicU32 = AtomicU32::new(0);
        let number = FLEETS.fetch_add(1, Ordering::Relaxed);
        let [.., high, low] = std::process::id().to_be_bytes();
        Fleet {
            web: Web::start(),
            work: Workplace::new(),
            host: format!("127.{}.{high}.{low}", 200 + number % 50),
            store: None,
            tokens: None,
            settings: Vec::new(),
            tls: None,
            dispatcher: None,
            supervisor: None,
        }
    }

    /// Changes a setting for all processes that are started after this. `name` is the environment variable without its
    /// prefix.
    pub(crate) fn set_setting(&mut self, name: &str, value: &str) {
        self.settings
            .push((format!("WEBFILL_{name}"), value.to_owned()));
    }

    /// Changes the store for all processes that are started after this.
    pub(crate) fn set_store(&mut self, uri: &str) {
        self.store = Some(uri.to_owned());
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Sends an action to the control socket. Returns the answer.
    pub(crate) fn run_action(&self, action: &Value) -> Value {
        let socket = zmq::Context::new().socket(zmq::REQ).expect("a socket");
        socket.set_linger(0).expect("an option");
        socket
            .set_rcvtimeo(WAIT.as_millis() as i32)
            .expect("an option");
        let endpoint = format!("tcp://{}:5557", self.host);
        socket.connect(&endpoint).expect("an endpoint");
        socket
            .send(action.to_string().as_bytes(), 0)
            .expect("it waits");
        let answer = socket.recv_bytes(0).expect("an answer in time");
        serde_json::from_slice(&answer).expect("JSON")
    }

    /// Writes the file of tokens. The dispatcher reads it at its next start or reload.
    pub(crate) fn write_tokens(&self, lines: &str) {
        let path = self.tokens.as_ref().expect("it asks for tokens");
        let _ = fs::remove_file(path);
        let heading = "# webfill: tokens for HTTP, one `NAME TOKEN` per line";
        fs::write(path, format!("{heading}\n{lines}")).expect("our own");
        fs::set_permissions(path, fs::Permissions::from_mode(0o400)).expect("our own");
    }

    pub(crate) fn start_dispatcher(&mut self) {
        let mut run = self
            .role_command("dispatcher")
            .args(["--listen", &self.host, "--mappings"])
            .arg(self.work.path("mappings"))
            .args(["--http", &self.address()]);
        if let Some(tokens) = &self.tokens {
            run = run.env("WEBFILL_DISPATCHER_HTTP_TOKENS", tokens);
        }
        if let Some([certificate, key]) = &self.tls {
            run = run
                .env("WEBFILL_DISPATCHER_HTTP_CERTIFICATE", certificate)
                .env("WEBFILL_DISPATCHER_HTTP_KEY", key);
        }
        let mut running = run.start();
        running.wait_for_stderr("ready");
        self.dispatcher = Some(running);
    }

    pub(crate) fn start_supervisor(&mut self) {
        let resolve = self.web.resolve_args();
        let resolve: Vec<&str> = resolve
            .iter()
            .skip(1)
            .step_by(2)
            .map(String::as_str)
            .collect();
        let endpoint = format!("tcp://{}:5555", self.host);
        let mut running = self
            .role_command("supervisor")
            .args(["--dispatcher", &endpoint, "--id", "one", "--workers", "1"])
            .env("WEBFILL_FETCH_RESOLVE", resolve.join(","))
            .start();
        running.wait_for_stderr("ready");
        self.supervisor = Some(running);
    }

    fn role_command(&self, role: &str) -> Run {
        let run = Run::new([role, "--store", &self.store_uri(), "--state"])
            .arg(self.work.path(&format!("state/{role}")))
            .env("WEBFILL_POLITENESS_DELAY", DELAY.as_secs_f64().to_string())
            .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
            .time_limit(Duration::from_secs(600));
        let with = |run: Run, (name, value): &(String, String)| run.env(name, value);
        self.settings.iter().fold(run, with)
    }

    pub(crate) fn dispatcher(&mut self) -> &mut Running {
        self.dispatcher.as_mut().expect("it runs")
    }

    /// Kills the dispatcher and waits for its end.
    pub(crate) fn kill_dispatcher(&mut self) {
        let mut dispatcher = self.dispatcher.take().expect("it runs");
        dispatcher.kill_role("dispatcher");
    }

    pub(crate) fn store_uri(&self) -> String {
        match &self.store {
            Some(uri) => uri.clone(),
            None => format!("sqlite:{}", self.work.path("store.db").display()),
        }
    }

    /// The address `HOST:PORT` of the dashboard.
    pub(crate) fn address(&self) -> String {
        format!("{}:{HTTP}", self.host)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address())
    }

    pub(crate) fn visitor(&self) -> Visitor {
        Visitor::of(&self.address())
    }

    /// A visitor who has logged in with this token.
    pub(crate) fn log_in(&self, token: &str) -> Visitor {
        let mut visitor = self.visitor();
        let answer = visitor.post("/dashboard/login", &[("token", token)]);
        assert_eq!(answer.status, 303, "{}", answer.body);
        visitor.cookie = answer.cookie();
        visitor
    }

    /// Crawls these records by a separate `webfill crawl` with the fleet's mappings, into the fleet's store.
    pub(crate) fn crawl_records(&self, crawl_id: &str, dataset: &str, records: &[Value]) {
        let work = &self.work;
        let seeds = work.write_lines("seeds.jsonl", records);
        Run::new(["crawl", "--store", &self.store_uri()])
            .args(["--crawl", crawl_id, "--app", APP, "--dataset", dataset])
            .args(["--keep-bodies", "--allow-private-networks"])
            .args(["--workers", "1", "--delay", "0.05"])
            .args(["--progress", "none", "--fail-on", "never"])
            .args(self.web.resolve_args())
            .arg("--mappings")
            .arg(work.path("mappings"))
            .arg("--state")
            .arg(work.path("state/records"))
            .arg("--seeds")
            .arg(seeds)
            .finish()
            .expect_code(0);
    }

    /// Feeds requests by `webfill feed`.
    pub(crate) fn feed(&self, requests: &[Value]) {
        let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
        let endpoint = format!("tcp://{}:5555", self.host);
        Run::new(["feed", "-", "--dispatcher", &endpoint])
            .input(lines.join("\n"))
            .finish()
            .expect_code(0);
    }

    /// Serves `count` pages of a site, and feeds requests for all of them.
    pub(crate) fn feed_pages(&self, host: &str, crawl_id: &str, count: usize) {
        let site = self.web.site(host);
        site.serve_otherwise(|_| webfill_tests::site::page("a page").into());
        let requests: Vec<Value> = (0..count)
            .map(|n| json!({"url": site.url(&format!("/{n}")), "appid": APP, "crawlid": crawl_id}))
            .collect();
        self.feed(&requests);
    }

    /// Waits until the list of crawls contains this crawl. The dispatcher stores a crawl a moment after it accepts it.
    pub(crate) fn wait_until_listed(&self, visitor: &Visitor, crawl_id: &str) {
        let name = format!("{APP} / {crawl_id}");
        wait_for("the crawl is listed", || {
            visitor
                .get("/dashboard/crawls")
                .body
                .contains(&name)
                .then_some(())
        });
    }

    /// All lines of the audit log so far.
    pub(crate) fn audit_log(&self) -> Vec<Value> {
        let log = self.work.path("state/dispatcher/logs/audit.log");
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines.collect()
    }
}

pub(crate) fn sha256(text: &str) -> String {
    let script = format!("printf %s {text} | sha256sum");
    let output = Command::new("sh").args(["-c", &script]).output();
    String::from_utf8_lossy(&output.expect("sha256sum").stdout)[..64].to_owned()
}
