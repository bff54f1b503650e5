//! The machines of the fleet: their networks, keys and processes, and the answers of the dispatcher.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_test_mongod::Mongod;
use webfill_tests::isolation::{Bridge, Network};
use webfill_tests::run::{Build, Run};
use webfill_tests::site::Web;
use webfill_tests::units::Units;
use webfill_tests::workplace::Workplace;

/// The number of generated sites for each machine.
pub(crate) const SITES_EACH: usize = 12;

const ROLL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/roll");
const SCALE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/scale");
const TASKS: u16 = 5555;
const CONTROL: u16 = 5557;
/// The address of the dispatcher's metrics, which only its own machine may ask for.
const METRICS: &str = "127.0.0.1:9464";

pub(crate) struct Machines {
    // Rust drops the fields in this order: first the processes, then the networks, the server and the folder.
    pub(crate) units: Units,
    networks: Vec<Network>,
    pub(crate) web: Web,
    mongod: Mongod,
    work: Workplace,
    bridge: Bridge,
    pub(crate) names: Vec<String>,
    /// The delay between two requests to each generated site.
    pub(crate) delay: Duration,
}

impl Machines {
    /// Creates the machines with keys for all of them, but starts no process of webfill yet.
    pub(crate) fn new(count: u16, delay: Duration) -> Machines {
        let bridge = Bridge::build();
        let address = bridge.address();
        let work = Workplace::new();
        let machines = Machines {
            units: Units::in_folder(work.path("units")),
            networks: (0..count)
                .map(|number| bridge.add_machine(number))
                .collect(),
            web: Web::start_on(address.parse().expect("an address")),
            mongod: Mongod::start_at(address),
            names: (0..count).map(|number| format!("vm-{number:03}")).collect(),
            work,
            bridge,
            delay,
        };
        make_keys(&machines.work, &machines.names);
        let today = Build::Today.binary();
        machines
            .units
            .add("dispatcher", &machines.dispatcher_command(), &today);
        for (name, network) in machines.names.iter().zip(&machines.networks) {
            let run = machines.supervisor_command(name).in_network(network);
            machines.units.add(name, &run, &today);
        }
        machines
    }

    /// Adds a mapping. This is possible only before the dispatcher is started.
    pub(crate) fn add_mapping(&self, name: &str, mapping: &Value) {
        let file = format!("mappings/{name}.json");
        self.work.write_json(&file, mapping);
    }

    pub(crate) fn store_uri(&self) -> String {
        self.mongod.uri("fleet")
    }

    fn dispatcher_command(&self) -> Run {
        self.command_of_role("dispatcher", "dispatcher", "keys")
            .args(["--listen", self.bridge.address(), "--mappings"])
            .arg(self.work.path("mappings"))
            .env("WEBFILL_DISPATCHER_HTTP", "off")
            .env("WEBFILL_METRICS_DISPATCHER", METRICS)
    }

    fn supervisor_command(&self, name: &str) -> Run {
        let resolve = self.web.resolve_args().remove(1);
        self.command_of_role("supervisor", name, &format!("keys-{name}"))
            .args(["--dispatcher", &self.endpoint(TASKS), "--id", name])
            .args(["--workers", "1"])
            .env("WEBFILL_FETCH_RESOLVE", resolve)
    }

    fn command_of_role(&self, role: &str, name: &str, keys: &str) -> Run {
        Run::new([role, "--store", &self.store_uri(), "--state"])
            .arg(self.work.path(&format!("state/{name}")))
            .arg("--keys")
            .arg(self.work.path(keys))
            .env("WEBFILL_POLITENESS_DELAY", self.delay.as_secs().to_string())
            .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
            .env("WEBFILL_FETCH_CONNECT_TIMEOUT", "5")
            .env("WEBFILL_FETCH_TOTAL_TIMEOUT", "10")
    }

    fn endpoint(&self, port: u16) -> String {
        format!("tcp://{}:{port}", self.bridge.address())
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.work, self.endpoint(CONTROL))
    }

    pub(crate) fn start_supervisors(&self) {
        self.names.iter().for_each(|name| self.units.start(name));
    }

    /// Replaces the program of all supervisors by `program`, in this many batches.
    pub(crate) fn roll_program(&self, program: &PathBuf, batches: usize) -> Output {
        let hosts = self.work.write("hosts", self.names.join("\n") + "\n");
        let today = Build::Today.binary();
        let status = format!(
            "{} status --json --dispatcher {} --keys {}",
            today.display(),
            self.endpoint(TASKS),
            self.work.path("keys-client").display()
        );
        let mut roll = Command::new(ROLL);
        roll.arg("--hosts").arg(hosts).args(["--status", &status]);
        roll.arg("--package").arg(program);
        roll.arg("--former").arg(today);
        roll.arg("--batch")
            .arg(self.names.len().div_ceil(batches).to_string());
        let commands = [
            ("--stop", "stop {name}"),
            ("--start", "start {name}"),
            ("--replace", "replace {name} {package}"),
            ("--restore", "replace {name} {former}"),
        ];
        for (flag, words) in commands {
            roll.arg(flag).arg(self.units.command(words));
        }
        roll.output().expect("python3 runs it")
    }

    /// The command that starts and drains machines by the number of due sites. Each machine is meant for this many.
    pub(crate) fn scale_command(&self, sites_each: usize, settle: Duration) -> Command {
        let running = self.work.path("running");
        fs::create_dir_all(&running).expect("our own folder");
        let running = running.display();
        let drain = format!(
            "{} drain --supervisor {{name}} --dispatcher {} --keys {}",
            Build::Today.binary().display(),
            self.endpoint(TASKS),
            self.work.path("keys-client").display()
        );
        let [start, stop] = ["start {name}", "stop {name}"].map(|words| self.units.command(words));
        let mut scale = Command::new(SCALE);
        scale.args(["--metrics", &format!("http://{METRICS}/metrics")]);
        scale.args(["--names", "vm-%03d", "--min", "1"]);
        scale.args(["--max", &self.names.len().to_string()]);
        scale.args(["--sites-each", &sites_each.to_string()]);
        scale.args(["--settle", &settle.as_secs().to_string(), "--every", "0.5"]);
        scale.args(["--list", &format!("ls {running}"), "--drain", &drain]);
        scale.args(["--start", &format!("{start} && touch {running}/{{name}}")]);
        scale.args(["--stop", &format!("{stop} && rm {running}/{{name}}")]);
        scale
    }

    /// A copy of the webfill program under another name, so that a test can recognise the processes that run it.
    pub(crate) fn create_new_program(&self) -> PathBuf {
        let path = self.work.path("webfill-new");
        let today = Build::Today.binary();
        if fs::hard_link(&today, &path).is_err() {
            fs::copy(&today, &path).expect("a copy");
        }
        path.canonicalize().expect("it was just made")
    }
}

/// Creates keys for a dispatcher, for supervisors with these names and for a client. Also creates the allow list.
pub(crate) fn make_keys(work: &Workplace, supervisors: &[String]) {
    let keys_command = |args: &[&str], folder: &str| {
        let folder = work.path(folder);
        Run::new(["keys"]).args(args).arg("--keys").arg(folder)
    };
    let made = keys_command(&["new", "dispatcher"], "keys").finish();
    made.expect_code(0);
    let members = supervisors.iter().map(|name| ("supervisor", name.as_str()));
    for (role, name) in members.chain([("client", "client")]) {
        let made = keys_command(&["new", role], &format!("keys-{name}"))
            .arg("--dispatcher-key")
            .arg(work.path("keys/dispatcher.pub"))
            .finish()
            .expect_code(0);
        let key = made.stdout.trim().to_owned();
        let added = keys_command(&["add", role, name, &key], "keys");
        added.finish().expect_code(0);
    }
}

/// A client of the dispatcher. It uses a new connection for each request, so that no request waits for a broken
/// connection.
pub(crate) struct Client {
    keys: [Vec<u8>; 3],
    control: String,
    context: zmq::Context,
}

impl Client {
    /// A client with the keys that [`make_keys`] has made.
    pub(crate) fn new(work: &Workplace, control: String) -> Client {
        let read = |name: &str| {
            let file = work.path("keys-client").join(name);
            let text = fs::read_to_string(file).expect("a key");
            zmq::z85_decode(text.trim().trim_start_matches("secret ")).expect("Z85")
        };
        Client {
            keys: ["dispatcher.pub", "client.pub", "client.key"].map(read),
            control,
            context: zmq::Context::new(),
        }
    }

    /// Sends a request. Returns the answer; `None` if it does not arrive within five seconds.
    pub(crate) fn request(&self, request: &Value) -> Option<Value> {
        let socket = self.context.socket(zmq::REQ).expect("a socket");
        let [server, public, secret] = &self.keys;
        let options = [
            socket.set_curve_serverkey(server),
            socket.set_curve_publickey(public),
            socket.set_curve_secretkey(secret),
            socket.set_linger(0),
            socket.set_rcvtimeo(5_000),
            socket.connect(&self.control),
        ];
        options
            .into_iter()
            .for_each(|set| set.expect("a valid option"));
        socket.send(&request.to_string(), 0).ok()?;
        serde_json::from_slice(&socket.recv_bytes(0).ok()?).ok()
    }

    pub(crate) fn status(&self) -> Option<Value> {
        self.request(&json!({"action": "status"}))
    }

    /// For each supervisor that is connected and not draining, the number of its sites.
    pub(crate) fn sites_by_supervisor(&self) -> BTreeMap<String, u64> {
        let status = self.status().unwrap_or_default();
        let supervisors = status["supervisors"].as_array().into_iter().flatten();
        let here = supervisors.filter(|one| one["lost_in_s"].is_null() && one["draining"] == false);
        here.filter_map(|one| Some((one["id"].as_str()?.to_owned(), one["sites"].as_u64()?)))
            .collect()
    }
}

/// Repeats `check` until it returns a value. Panics if this takes longer than `most`.
pub(crate) fn wait_for<T>(what: &str, most: Duration, mut check: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + most;
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "waited for {most:?} in vain until {what}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
