//! A fleet with its own loopback address: a dispatcher, supervisors, the web that they crawl, and clients.

mod elsewhere;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::run::{Build, Finished, Run, Running};
use webfill_tests::site::Web;
pub(crate) use webfill_tests::waiting::wait_for;
use webfill_tests::workplace::{Workplace, files_under};

pub(crate) use crate::clients::{Client, Firehose};

/// The default ports of a dispatcher for tasks and for control messages.
const TASKS: u16 = 5555;
const CONTROL: u16 = 5557;
const FIREHOSE: u16 = 5558;
pub(crate) const HTTP: u16 = 8080;

/// The dispatcher's state folder within the workplace.
const DISPATCHER_STATE: &str = "state/dispatcher-0";

/// The name of the application in these tests.
pub(crate) const APP: &str = "testapp";

/// The default delay between two requests to a site in these tests.
pub(crate) const DELAY: Duration = Duration::from_millis(50);

pub(crate) struct Fleet {
    pub(crate) web: Web,
    pub(crate) work: Workplace,
    pub(crate) host: String,
    pub(crate) dispatcher_state: PathBuf,
    /// The build whose program is used to start processes.
    pub(crate) build: Build,
    /// The URI of the store for the next processes; if unset, the store is a file in the workplace.
    pub(crate) store: Option<String>,
    settings: Vec<(String, String)>,
    pub(crate) config: Option<PathBuf>,
    dispatcher: Option<Running>,
    supervisors: Vec<(String, Running)>,
}

impl Fleet {
    /// Starts a dispatcher, and a supervisor with one worker.
    pub(crate) fn start() -> Fleet {
        Fleet::start_with(&[])
    }

    /// Starts a dispatcher and a supervisor with these settings, given as environment variables without their prefix.
    pub(crate) fn start_with(settings: &[(&str, &str)]) -> Fleet {
        let mut fleet = Fleet::start_dispatcher_only(settings);
        fleet.add_supervisor("one");
        fleet
    }

    /// Starts a dispatcher and a supervisor. Their watches may read the files in the folder `seeds` of the workplace.
    pub(crate) fn start_with_seeds() -> Fleet {
        let mut fleet = Fleet::unstarted_fleet(&[]);
        let folder = fleet.work.path("seeds");
        fs::create_dir_all(&folder).expect("a folder");
        let folder = folder.display().to_string();
        let setting = "WEBFILL_WATCHES_SEEDS_DIR".to_owned();
        fleet.settings.push((setting, folder));
        fleet.start_dispatcher();
        fleet.add_supervisor("one");
        fleet
    }

    /// Starts a dispatcher and a supervisor whose settings file has this content.
    pub(crate) fn start_with_config_file(settings: &str) -> Fleet {
        let mut fleet = Fleet::unstarted_fleet(&[]);
        let file = fleet.work.write("webfill.toml", settings);
        fleet.config = Some(file);
        fleet.start_dispatcher();
        fleet.add_supervisor("one");
        fleet
    }

    /// Starts a dispatcher without supervisors.
    pub(crate) fn start_dispatcher_only(settings: &[(&str, &str)]) -> Fleet {
        let mut fleet = Fleet::unstarted_fleet(settings);
        fleet.start_dispatcher();
        fleet
    }

    /// Starts a dispatcher without supervisors, whose files are all in this folder.
    pub(crate) fn start_dispatcher_in_folder(folder: &Path, settings: &[(&str, &str)]) -> Fleet {
        let mut fleet = Fleet::unstarted_fleet(settings);
        fleet.work = Workplace::in_folder(folder);
        fleet.dispatcher_state = fleet.work.path(DISPATCHER_STATE);
        fleet.start_dispatcher();
        fleet
    }

    pub(crate) fn unstarted_fleet(settings: &[(&str, &str)]) -> Fleet {
        static FLEETS: AtomicU32 = AtomicU32::new(0);
        let number = FLEETS.fetch_add(1, Ordering::Relaxed);
        let [.., high, low] = std::process::id().to_be_bytes();
        let own = |(name, value): &(&str, &str)| (format!("WEBFILL_{name}"), (*value).to_owned());
        let work = Workplace::new();
        Fleet {
            web: Web::start(),
            dispatcher_state: work.path(DISPATCHER_STATE),
            store: None,
            work,
            build: Build::Today,
            host: format!("127.{}.{high}.{low}", 100 + number % 100),
            settings: settings.iter().map(own).collect(),
            config: None,
            dispatcher: None,
            supervisors: Vec::new(),
        }
    }

    /// Adds a setting for all processes that are started after this. `name` is the environment variable without its
    /// prefix.
    pub(crate) fn set_env(&mut self, name: &str, value: &str) {
        let name = format!("WEBFILL_{name}");
        self.settings.retain(|(other, _)| *other != name);
        self.settings.push((name, value.to_owned()));
    }

    pub(crate) fn start_dispatcher(&mut self) {
        self.start_dispatcher_role(self.dispatcher_role());
    }

    pub(crate) fn start_dispatcher_role(&mut self, role: Run) {
        let mut running = role.start();
        running.wait_for_stderr("ready");
        self.dispatcher = Some(running);
    }

    /// Starts another dispatcher as a standby, which takes over if the first one is lost. Waits until it has applied
    /// the journal.
    pub(crate) fn start_standby(&mut self) {
        let mut running = self.dispatcher_role().start();
        running.wait_for_stderr("of the journal is applied");
        self.dispatcher = Some(running);
    }

    pub(crate) fn dispatcher_role(&self) -> Run {
        self.command_of_role("dispatcher", &self.dispatcher_state)
            .args(["--listen", &self.host, "--mappings"])
            .arg(self.work.path("mappings"))
            .args(["--http", &format!("{}:{HTTP}", self.host)])
    }

    /// Starts a supervisor and waits until it has joined.
    pub(crate) fn add_supervisor(&mut self, name: &str) {
        self.add_supervisor_with(name, &[]);
    }

    /// Starts a supervisor with additional settings, given as environment variables without their prefix. Waits until
    /// it has joined.
    pub(crate) fn add_supervisor_with(&mut self, name: &str, settings: &[(&str, &str)]) {
        self.add_supervisor_role(name, self.supervisor_role(name, settings));
    }

    /// Starts a supervisor by this command, and waits until it has joined.
    pub(crate) fn add_supervisor_role(&mut self, name: &str, role: Run) {
        let joined = self.logged_lines("supervisor_joined").len();
        self.supervisors.push((name.to_owned(), role.start()));
        wait_for("the supervisor has joined", || {
            (self.logged_lines("supervisor_joined").len() > joined).then_some(())
        });
    }

    /// The command that starts a supervisor with additional settings.
    pub(crate) fn supervisor_role(&self, name: &str, settings: &[(&str, &str)]) -> Run {
        let resolve = self.web.resolve_args();
        let resolve: Vec<&str> = resolve
            .iter()
            .skip(1)
            .step_by(2)
            .map(String::as_str)
            .collect();
        let own = settings.iter();
        let state = self.work.path(&format!("state/supervisor-{name}"));
        let role = own.fold(
            self.command_of_role("supervisor", &state),
            |role, (name, value)| role.env(&format!("WEBFILL_{name}"), value),
        );
        role.args(["--dispatcher", &self.endpoint(), "--id", name])
            .args(["--workers", "1"])
            .env("WEBFILL_FETCH_RESOLVE", resolve.join(","))
    }

    fn command_of_role(&self, role: &str, state: &Path) -> Run {
        let run = Run::of_build(self.build, [role, "--store", &self.store_uri(), "--state"])
            .arg(state)
            .env("WEBFILL_POLITENESS_DELAY", DELAY.as_secs_f64().to_string())
            .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
            .time_limit(Duration::from_secs(600));
        let run = match &self.config {
            Some(file) => run.arg("--config").arg(file),
            None => run,
        };
        let with = |run: Run, (name, value): &(String, String)| run.env(name, value);
        self.settings.iter().fold(run, with)
    }

    pub(crate) fn dispatcher(&self) -> &Running {
        self.dispatcher.as_ref().expect("it runs")
    }

    pub(crate) fn supervisor(&self) -> &Running {
        &self.supervisors[0].1
    }

    pub(crate) fn supervisor_named(&self, name: &str) -> &Running {
        let found = self.supervisors.iter().find(|(other, _)| other == name);
        &found.expect("it runs").1
    }

    pub(crate) fn has_dispatcher_ended(&mut self) -> bool {
        self.dispatcher
            .as_mut()
            .expect("it runs")
            .exit_status()
            .is_some()
    }

    /// Ends a supervisor gracefully, and waits for its end.
    pub(crate) fn drain_supervisor(&mut self, name: &str) {
        let place = self.supervisors.iter().position(|(own, _)| own == name);
        let (_, running) = self.supervisors.remove(place.expect("it was started"));
        running.signal(Signal::TERM);
        running.finish().expect_code(0);
    }

    /// Kills all processes of the fleet with `kill -9`.
    pub(crate) fn kill_all(&mut self) {
        self.kill_dispatcher();
        for (_, running) in self.supervisors.drain(..) {
            running.signal(Signal::KILL);
            running.finish();
        }
    }

    /// Waits until the dispatcher has ended by itself with this exit code. Returns its output.
    pub(crate) fn wait_until_dispatcher_ended(&mut self, code: i32) -> String {
        let dispatcher = self.dispatcher.take().expect("it runs");
        dispatcher.finish().expect_code(code).stderr
    }

    /// Kills the dispatcher with `kill -9`.
    pub(crate) fn kill_dispatcher(&mut self) {
        let dispatcher = self.dispatcher.take().expect("it runs");
        dispatcher.signal(Signal::KILL);
        dispatcher.finish();
    }

    pub(crate) fn signal_supervisor(&self, name: &str, signal: Signal) {
        self.supervisor_named(name).signal(signal);
    }

    pub(crate) fn assert_supervisors_run(&mut self) {
        for (name, running) in &mut self.supervisors {
            assert!(running.exit_status().is_none(), "{name} has ended");
        }
    }

    /// Waits until a supervisor has ended by itself, with exit code 0.
    pub(crate) fn wait_until_supervisor_ended(&mut self, name: &str) {
        let found = self.supervisors.iter().position(|(other, _)| other == name);
        let (_, running) = self.supervisors.remove(found.expect("it runs"));
        running.finish().expect_code(0);
    }

    /// Ends the fleet gracefully, and starts it again on the same state.
    pub(crate) fn restart(&mut self) {
        self.run(&["drain"]).expect_code(0);
        let dispatcher = self.dispatcher.take().expect("it runs");
        dispatcher.signal(Signal::TERM);
        dispatcher.finish().expect_code(0);
        let names = self.supervisors.drain(..).map(|(name, drained)| {
            drained.finish().expect_code(0);
            name
        });
        let names: Vec<String> = names.collect();
        self.start_dispatcher();
        for name in names {
            self.add_supervisor(&name);
        }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("tcp://{}:{TASKS}", self.host)
    }

    pub(crate) fn control_endpoint(&self) -> String {
        format!("tcp://{}:{CONTROL}", self.host)
    }

    pub(crate) fn firehose_endpoint(&self) -> String {
        format!("tcp://{}:{FIREHOSE}", self.host)
    }

    pub(crate) fn store_uri(&self) -> String {
        let in_file = || format!("sqlite:{}", self.work.path("store.db").display());
        self.store.clone().unwrap_or_else(in_file)
    }

    /// The command `webfill ARGS... --dispatcher ADDRESS` for this fleet.
    pub(crate) fn command(&self, args: &[&str]) -> Run {
        let run = Run::new(args).args(["--dispatcher", &self.endpoint()]);
        run.in_folder(self.work.path(""))
    }

    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        self.command(args).finish()
    }

    /// Runs a command with `--json`. Returns its output.
    pub(crate) fn run_json(&self, args: &[&str]) -> Value {
        let run = self.command(args).arg("--json").finish().expect_code(0);
        serde_json::from_str(&run.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: not JSON ({error}): {}", run.stdout))
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.control_endpoint())
    }

    /// Subscribes to a topic, and waits until the subscription is in force.
    pub(crate) fn subscribe_firehose(&self, topic: &str) -> Firehose {
        Firehose::subscribe(self, topic)
    }

    /// Feeds requests on a new connection. All of them must be accepted.
    pub(crate) fn feed(&self, requests: &[Value]) {
        let answer = self.client().ask(&json!(requests));
        assert_eq!(answer["accepted"], requests.len(), "{answer}");
    }

    pub(crate) fn info(&self, crawl_id: &str) -> Value {
        self.client().ask(&action("info", Some(crawl_id)))
    }

    /// The number of pending tasks of a crawl; 0 if the crawl is unknown.
    pub(crate) fn pending_tasks(&self, crawl_id: &str) -> u64 {
        self.info(crawl_id)["total_pending"].as_u64().unwrap_or(0)
    }

    /// Waits until every task of a crawl has an outcome, and all outcomes are stored.
    pub(crate) fn wait_until_done(&self, crawl_id: &str) {
        self.wait_until_app_is_done(APP, crawl_id);
    }

    pub(crate) fn wait_until_app_is_done(&self, app_id: &str, crawl_id: &str) {
        let client = self.client();
        let question =
            json!({"action": "info", "appid": app_id, "crawlid": crawl_id, "uuid": "is it done"});
        wait_for(&format!("{app_id}/{crawl_id} is finished"), || {
            let info = client.ask(&question);
            (info["state"] == "finished").then_some(())
        });
    }

    /// The lines that the dispatcher has logged about an event so far.
    pub(crate) fn logged_lines(&self, event: &str) -> Vec<Value> {
        let files = files_under(&self.dispatcher_state.join("logs"));
        let texts = files
            .iter()
            .filter(|file| !file.is_symlink())
            .map(|file| fs::read_to_string(file).unwrap_or_default());
        let text: String = texts.collect();
        // The last line of a file may be incomplete.
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines
            .filter(|line: &Value| line["event"] == event)
            .collect()
    }
}

/// A request for one URL.
pub(crate) fn request(url: &str, crawl_id: &str) -> Value {
    json!({"url": url, "appid": APP, "crawlid": crawl_id})
}

/// A request for one URL with additional keys.
pub(crate) fn request_with(url: &str, crawl_id: &str, more: Value) -> Value {
    let mut request = request(url, crawl_id);
    let Value::Object(more) = more else {
        panic!("{more} is no object")
    };
    for (key, value) in more {
        request[key] = value;
    }
    request
}

/// A request for an action on the application of the tests.
pub(crate) fn action(name: &str, crawl_id: Option<&str>) -> Value {
    let mut action = json!({"action": name, "appid": APP, "uuid": "someuuid", "spiderid": "link"});
    if let Some(crawl_id) = crawl_id {
        action["crawlid"] = crawl_id.into();
    }
    action
}

pub(crate) fn epoch_seconds() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}
