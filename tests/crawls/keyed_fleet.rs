//! A fleet over TCP on loopback: a dispatcher, supervisors and clients that are started one by one, each with its own
//! keys. Clients use plain libzmq, as any application might.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::run::{Finished, Run, Running};
use webfill_tests::site::Web;
pub(crate) use webfill_tests::waiting::wait_for;
use webfill_tests::workplace::{Workplace, files_under};

const WAIT: Duration = Duration::from_secs(60);

/// The default ports of a dispatcher for tasks and for control messages.
const TASKS: u16 = 5555;
const CONTROL: u16 = 5557;

pub(crate) struct Fleet {
    pub(crate) work: Workplace,
    /// The loopback address of this fleet. Each fleet has another one, so that tests running in parallel do not share
    /// ports.
    pub(crate) host: String,
}

impl Fleet {
    pub(crate) fn new() -> Fleet {
        static FLEETS: AtomicU32 = AtomicU32::new(0);
        let number = FLEETS.fetch_add(1, Ordering::Relaxed);
        let [.., high, low] = std::process::id().to_be_bytes();
        Fleet::start_at(format!("127.{}.{high}.{low}", 1 + number))
    }

    /// Prepares a fleet at an address of this machine. The dispatcher has keys, and an empty allow list.
    pub(crate) fn start_at(host: impl Into<String>) -> Fleet {
        let fleet = Fleet {
            work: Workplace::new(),
            host: host.into(),
        };
        fleet.run_keys(&["new", "dispatcher"]).expect_code(0);
        fleet
    }

    /// Runs `webfill keys ARGS...` on the dispatcher's machine.
    pub(crate) fn run_keys(&self, args: &[&str]) -> Finished {
        let folder = self.work.path("keys");
        Run::new(["keys"])
            .args(args)
            .arg("--keys")
            .arg(folder)
            .finish()
    }

    /// Creates a folder of keys that trusts this fleet's dispatcher. Returns the public key.
    pub(crate) fn new_keys(&self, owner: &str, folder: &str) -> String {
        let made = Run::new(["keys", "new", owner, "--keys"])
            .arg(self.work.path(folder))
            .arg("--dispatcher-key")
            .arg(self.work.path("keys/dispatcher.pub"))
            .finish()
            .expect_code(0);
        made.stdout.trim().to_owned()
    }

    /// Creates a folder of keys as [`Fleet::new_keys`] does. Adds the public key to the dispatcher's allow list under
    /// the folder's name.
    pub(crate) fn new_member(&self, role: &str, name: &str) -> String {
        let key = self.new_keys(role, name);
        self.run_keys(&["add", role, name, &key]).expect_code(0);
        key
    }

    /// Starts the dispatcher and waits until it serves.
    pub(crate) fn start_dispatcher(&self) -> Running {
        start_serving(self.dispatcher_run())
    }

    /// The command that starts the dispatcher.
    pub(crate) fn dispatcher_run(&self) -> Run {
        self.run_of_role("dispatcher", "keys")
            .args(["--listen", &self.host, "--mappings"])
            .arg(self.work.path("mappings"))
            .arg("--keys")
            .arg(self.work.path("keys"))
    }

    /// The command that starts a supervisor, with the keys of a folder and the folder's name as its id.
    pub(crate) fn supervisor_run(&self, web: &Web, folder: &str) -> Run {
        self.supervisor_without_keys(web, folder)
            .arg("--keys")
            .arg(self.work.path(folder))
    }

    /// The command that starts a supervisor with the keys of a folder, but with another state folder, as if it ran on
    /// another machine.
    pub(crate) fn supervisor_elsewhere(&self, web: &Web, folder: &str, state: &str) -> Run {
        self.supervisor_run(web, folder)
            .replace_flag("--state", self.state_folder("supervisor", state))
    }

    pub(crate) fn supervisor_without_keys(&self, web: &Web, id: &str) -> Run {
        let resolve: Vec<String> = web.resolve_args().into_iter().skip(1).step_by(2).collect();
        self.run_of_role("supervisor", id)
            .args(["--dispatcher", &self.endpoint(TASKS)])
            .args(["--id", id, "--workers", "1"])
            .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
            .env("WEBFILL_FETCH_RESOLVE", resolve.join(","))
    }

    fn run_of_role(&self, role: &str, id: &str) -> Run {
        let store = format!("sqlite:{}", self.work.path("store.db").display());
        Run::new([role, "--store", &store, "--state"])
            .arg(self.state_folder(role, id))
            .env("WEBFILL_POLITENESS_DELAY", "0.05")
            // The HTTP port is fixed, so another fleet of the test run could be using it.
            .env("WEBFILL_DISPATCHER_HTTP", "off")
            // If a supervisor is lost, its sites are released after the longest time that a request may take. The time
            // is short, so that tests need not wait.
            .env("WEBFILL_FETCH_TOTAL_TIMEOUT", "2")
    }

    fn state_folder(&self, role: &str, keys: &str) -> PathBuf {
        self.work.path(&format!("state/{role}-{keys}"))
    }

    fn endpoint(&self, port: u16) -> String {
        format!("tcp://{}:{port}", self.host)
    }

    /// The lines that a process has logged so far. The last one may be incomplete.
    fn read_log(&self, role: &str, keys: &str) -> Vec<Value> {
        let files = files_under(&self.state_folder(role, keys).join("logs"));
        let own = files.iter().filter(|file| {
            let name = file.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(role)) && !file.is_symlink()
        });
        let texts = own.map(|file| fs::read_to_string(file).unwrap_or_default());
        let text: String = texts.collect();
        let lines = text.lines().map(serde_json::from_str);
        lines.filter_map(Result::ok).collect()
    }

    fn events(&self, role: &str, keys: &str, event: &str) -> Vec<Value> {
        let mut lines = self.read_log(role, keys);
        lines.retain(|line| line["event"] == event);
        lines
    }

    /// The lines that the dispatcher has logged about an event.
    pub(crate) fn logged_lines(&self, event: &str) -> Vec<Value> {
        self.events("dispatcher", "keys", event)
    }

    /// Waits until the dispatcher has logged an event with this text.
    pub(crate) fn wait_until_logged(&self, event: &str, text: &str) -> Value {
        wait_for(&format!("the dispatcher logs {event}: {text}"), || {
            let logged = self.logged_lines(event);
            logged
                .into_iter()
                .find(|line| line.to_string().contains(text))
        })
    }

    /// Waits until the dispatcher has logged an event this many times.
    pub(crate) fn wait_until_logged_times(&self, event: &str, times: usize) {
        wait_for(
            &format!("the dispatcher logs {event} {times} times"),
            || (self.logged_lines(event).len() >= times).then_some(()),
        );
    }

    /// Waits until a supervisor has logged an event.
    pub(crate) fn wait_until_supervisor_logs(&self, keys: &str, event: &str) -> Value {
        wait_for(&format!("supervisor {keys} logs {event}"), || {
            self.events("supervisor", keys, event).pop()
        })
    }

    /// Connects to the tasks socket without keys, again and again until the dispatcher has logged the attempt with its
    /// address. A connection may end before its address is read.
    pub(crate) fn connect_without_keys(&self) {
        let context = zmq::Context::new();
        wait_for("a peer without keys is logged with its address", || {
            let socket = context.socket(zmq::DEALER).expect("a socket");
            socket.set_linger(0).expect("an option");
            socket.connect(&self.endpoint(TASKS)).expect("it tries");
            socket.send("let me in", zmq::DONTWAIT).expect("it waits");
            let logged = self.logged_lines("peer_refused");
            logged.into_iter().find(|line| {
                let address = line["address"].as_str().unwrap_or_default();
                line["why"] == "it has no keys" && address.starts_with("127.0.0.1:")
            })
        });
    }

    /// Opens a connection to the control socket, with a client's keys from a folder.
    pub(crate) fn client(&self, folder: &str) -> Client {
        let context = zmq::Context::new();
        let socket = context.socket(zmq::REQ).expect("a socket");
        let read = |name: &str| {
            let text = fs::read_to_string(self.work.path(folder).join(name)).expect("a key");
            let key = text.trim().trim_start_matches("secret ");
            zmq::z85_decode(key).expect("Z85")
        };
        let options = [
            socket.set_ipv6(self.host.starts_with('[')),
            socket.set_curve_serverkey(&read("dispatcher.pub")),
            socket.set_curve_publickey(&read("client.pub")),
            socket.set_curve_secretkey(&read("client.key")),
            socket.set_linger(0),
            socket.set_rcvtimeo(WAIT.as_millis() as i32),
            socket.connect(&self.endpoint(CONTROL)),
        ];
        options
            .into_iter()
            .for_each(|set| set.expect("a valid option"));
        let private = context.socket(zmq::REQ).expect("a socket");
        let options = [
            private.set_linger(0),
            private.set_rcvtimeo(WAIT.as_millis() as i32),
            private.connect(&self.private_endpoint()),
        ];
        options
            .into_iter()
            .for_each(|set| set.expect("a valid option"));
        Client { socket, private }
    }

    /// The address of the dispatcher's socket that only processes of this user can reach.
    fn private_endpoint(&self) -> String {
        let states = fs::read_dir(self.work.path("state")).expect("a folder");
        let states = states.map(|state| state.expect("an entry").path());
        let mut sockets = states.map(|state| state.join("sockets/dispatcher-feeders"));
        let socket = sockets.find(|socket| socket.exists());
        format!("ipc://{}", socket.expect("it serves").display())
    }
}

/// A client of the dispatcher. It sends either JSON to the control socket, or the protocol of `webfill crawl` to the
/// private socket.
pub(crate) struct Client {
    socket: zmq::Socket,
    private: zmq::Socket,
}

impl Client {
    pub(crate) fn send(&self, request: &Value) {
        let text = request.to_string();
        self.socket
            .send(&text, 0)
            .expect("it waits for a connection");
    }

    pub(crate) fn has_no_answer(&self) -> bool {
        self.socket.recv_bytes(zmq::DONTWAIT) == Err(zmq::Error::EAGAIN)
    }

    pub(crate) fn request(&self, request: &Value) -> Value {
        self.send(request);
        let answer = self.socket.recv_bytes(0).expect("an answer in time");
        serde_json::from_slice(&answer).expect("JSON")
    }

    fn send_command(&self, request: &Value) -> Value {
        self.private
            .send(&request.to_string(), 0)
            .expect("it waits");
        let answer = self.private.recv_bytes(0).expect("an answer in time");
        serde_json::from_slice(&answer).expect("JSON")
    }

    /// Opens a crawl of these URLs. Returns the key of the crawl.
    pub(crate) fn open_crawl(&self, crawl_id: &str, urls: &[String]) -> Value {
        let spec = json!({"app_id": "test", "crawl_id": crawl_id, "max_depth": 1});
        let opened = self.send_command(&json!({"action": "open_crawl", "spec": spec}));
        let crawl = &opened["crawl"];
        assert!(crawl.is_number(), "{opened}");
        let seeds: Vec<Value> = urls.iter().map(|url| json!({"url": url})).collect();
        let fed = self.send_command(
            &json!({"action": "feed_seeds", "crawl": crawl, "seeds": seeds, "fed_lines": urls.len()}),
        );
        assert_eq!(fed["accepted"], urls.len(), "{fed}");
        self.send_command(&json!({"action": "end_of_seeds", "crawl": crawl}));
        crawl.clone()
    }

    pub(crate) fn status(&self, crawl: &Value) -> Value {
        self.send_command(&json!({"action": "crawl_status", "crawls": [crawl]}))
    }

    pub(crate) fn wait_until_finished(&self, crawl: &Value) -> Value {
        wait_for("the crawl is finished", || {
            Some(self.status(crawl)).filter(|status| status["finished"] == true)
        })
    }
}

/// Starts a dispatcher and waits until it serves.
pub(crate) fn start_serving(dispatcher: Run) -> Running {
    let mut running = dispatcher.start();
    running.wait_for_stderr("ready");
    running
}

/// Reads the secret key from a file.
pub(crate) fn read_secret(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a key");
    let secret = text.trim().strip_prefix("secret ").expect("a secret");
    secret.to_owned()
}
