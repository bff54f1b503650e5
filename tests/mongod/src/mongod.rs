//! A server process, which can be stopped, killed, paused and restarted.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use mongodb::Client;
use mongodb::bson::{Document, doc};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::sweeper::Sweeper;
use crate::{program, spawner, wait_for};

/// The longest time for a server to start, or to become primary.
const PATIENCE: Duration = Duration::from_secs(60);

const LOOPBACK: &str = "127.0.0.1";

/// The folder of the server's data, relative to the server's folder.
const DATA: &str = "data";

/// The name of every replica set.
pub(crate) const SET: &str = "webfill";

/// A server whose files are in a temporary folder. The server and the files are removed when this value is dropped.
pub struct Mongod {
    /// The server process; `None` while the server is down.
    process: Option<Child>,
    host: String,
    port: u16,
    arguments: Vec<String>,
    folder: TempDir,
    /// A process that removes the files even if this value is never dropped.
    _sweeper: Sweeper,
}

impl Mongod {
    /// Starts a replica set with one member, and waits until it accepts writes.
    pub fn start() -> Mongod {
        Mongod::start_primary_with(&[])
    }

    /// Like [`Mongod::start`], with additional options for the server.
    pub fn start_primary_with(options: &[&str]) -> Mongod {
        let mongod = Mongod::start_member(options, &std::env::temp_dir());
        mongod.initiate(&[mongod.address()]);
        mongod
    }

    /// Like [`Mongod::start`], but the files are below `parent`, for tests that depend on the disk.
    pub fn start_in(parent: &Path) -> Mongod {
        let mongod = Mongod::start_member(&[], parent);
        mongod.initiate(&[mongod.address()]);
        mongod
    }

    /// Like [`Mongod::start`], but at an address of this machine that other machines can reach.
    pub fn start_at(host: &str) -> Mongod {
        let mongod = Mongod::start_member_at(host);
        mongod.initiate(&[mongod.address()]);
        mongod
    }

    /// Starts a server at this address. It becomes a member when its replica set is initiated.
    pub(crate) fn start_member_at(host: &str) -> Mongod {
        let options = ["--replSet", SET, "--oplogSize", "64"];
        Mongod::start_below(host, &options, &std::env::temp_dir())
    }

    /// Starts a server that becomes a member when its replica set is initiated.
    pub(crate) fn start_member(options: &[&str], parent: &Path) -> Mongod {
        let mut with_set = vec!["--replSet", SET, "--oplogSize", "64"];
        with_set.extend(options);
        Mongod::start_below(LOOPBACK, &with_set, parent)
    }

    /// Starts a server outside of any replica set, with options such as those for TLS. Returns when the server is
    /// listening.
    pub fn start_with(options: &[&str]) -> Mongod {
        Mongod::start_below(LOOPBACK, options, &std::env::temp_dir())
    }

    /// Starts a replica set with one member on a copy of another set's files. The server first applies the log in these
    /// files. Their configuration does not include this server, so it gets a new one with itself as the only member.
    pub fn restore(files: &Path) -> Mongod {
        let folder = tempfile::tempdir().expect("a temporary folder");
        copy_files(files, &folder.path().join(DATA));
        let options = ["--replSet", SET, "--oplogSize", "64"];
        let mongod = Mongod::start_in_folder(LOOPBACK, &options, folder);
        let direct = format!("mongodb://{}/?directConnection=true", mongod.address());
        let found = mongod.run_admin_command(&direct, doc! {"replSetGetConfig": 1});
        let mut config = found.get_document("config").expect("its set").clone();
        config.insert("members", vec![doc! {"_id": 0, "host": mongod.address()}]);
        let reported = doc! {"replSetReconfig": config, "force": true};
        mongod.run_admin_command(&direct, reported);
        mongod.wait_until_writable(&mongod.address());
        mongod
    }

    /// Copies the server's files to a folder that does not exist yet. The server is locked meanwhile, so that it does
    /// not change the files.
    pub fn copy_files_to(&self, folder: &Path) {
        let direct = format!("mongodb://{}/?directConnection=true", self.address());
        self.run_admin_command(&direct, doc! {"fsync": 1, "lock": true});
        copy_files(&self.folder.path().join(DATA), folder);
        self.run_admin_command(&direct, doc! {"fsyncUnlock": 1});
    }

    fn start_below(host: &str, options: &[&str], parent: &Path) -> Mongod {
        let folder = tempfile::tempdir_in(parent).expect("a temporary folder");
        Mongod::start_in_folder(host, options, folder)
    }

    fn start_in_folder(host: &str, options: &[&str], folder: TempDir) -> Mongod {
        let mut mongod = Mongod {
            process: None,
            host: host.to_owned(),
            port: free_port(host),
            arguments: options.iter().map(|option| (*option).to_owned()).collect(),
            _sweeper: Sweeper::start(folder.path()),
            folder,
        };
        mongod.restart();
        mongod
    }

    /// `HOST:PORT` of the server.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The URI of a database on this server, which must be a replica set with one member.
    pub fn uri(&self, database: &str) -> String {
        let address = self.address();
        format!("mongodb://{address}/{database}?replicaSet={SET}")
    }

    /// The number of executed commands that read or write documents. It includes a few commands of the server itself,
    /// but no monitoring commands.
    pub fn count_document_commands(&self) -> i64 {
        let direct = format!("mongodb://{}/?directConnection=true", self.address());
        let status = self.run_admin_command(&direct, doc! {"serverStatus": 1});
        let total = |name| {
            let metrics = status.get_document("metrics").ok()?;
            let command = metrics
                .get_document("commands")
                .ok()?
                .get_document(name)
                .ok()?;
            command.get_i64("total").ok()
        };
        let names = [
            "find",
            "getMore",
            "count",
            "aggregate",
            "insert",
            "update",
            "delete",
        ];
        let counted = names.into_iter().chain(["findAndModify"]);
        counted.filter_map(total).sum()
    }

    /// The server's folder, for files that the server must read.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The content of the server's log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Stops the server gracefully.
    pub fn stop(&mut self) {
        self.signal(Signal::TERM);
        self.wait_for_end();
    }

    /// Kills the server, as a crash would.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait_for_end();
    }

    /// Makes the server stop answering. Its connections stay open.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Ends the pause, so that the server answers again.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Starts the server again on the same port and with the same files. It must be down.
    pub fn restart(&mut self) {
        assert!(self.process.is_none(), "the server runs");
        self.process = Some(self.spawn());
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(self.address()).is_err() {
            let process = self.process.as_mut().expect("it was just started");
            let ended = process.try_wait().expect("our own child");
            let is_late = Instant::now() > deadline;
            assert!(
                ended.is_none() && !is_late,
                "mongod does not start:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn spawn(&self) -> Child {
        let data = self.folder.path().join(DATA);
        std::fs::create_dir_all(&data).expect("our own folder");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"));
        let program = program::path();
        let mut command = spawner::command_tied_to_thread(program);
        command
            .arg("--dbpath")
            .arg(&data)
            .args(["--bind_ip", &self.host, "--nounixsocket", "--port"])
            .arg(self.port.to_string())
            .args(["--wiredTigerCacheSizeGB", "0.25"])
            // Without this option, the server creates journals of 100 MB in advance.
            .args(["--wiredTigerEngineConfigString", "log=(prealloc=false)"])
            .args(["--setParameter", "diagnosticDataCollectionEnabled=false"])
            .args(["--setParameter", "enableTestCommands=1"])
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log.expect("our own folder"))
            .stderr(Stdio::null());
        spawner::spawn(command).expect("setpriv of util-linux starts mongod")
    }

    /// Makes these servers the members of a replica set. This server must be one of them, and all must be running.
    /// Returns when one member accepts writes.
    pub(crate) fn initiate(&self, members: &[String]) {
        let member = |(id, host): (usize, &String)| doc! {"_id": id as i32, "host": host};
        let config = doc! {
            "_id": SET,
            "members": members.iter().enumerate().map(member).collect::<Vec<Document>>(),
            // With these settings, the loss of a primary is noticed quickly.
            "settings": {"electionTimeoutMillis": 2_000, "heartbeatIntervalMillis": 500},
        };
        let direct = format!("mongodb://{}/?directConnection=true", self.address());
        self.run_admin_command(&direct, doc! {"replSetInitiate": config});
        self.wait_until_writable(&members.join(","));
    }

    /// Waits until one of these members accepts writes.
    pub(crate) fn wait_until_writable(&self, members: &str) {
        let uri = format!("mongodb://{members}/?replicaSet={SET}");
        let patience_ms = PATIENCE.as_millis();
        self.run_admin_command(
            &format!("{uri}&serverSelectionTimeoutMS={patience_ms}"),
            doc! {"ping": 1},
        );
    }

    fn run_admin_command(&self, uri: &str, command: Document) -> Document {
        let answered = wait_for(async {
            let client = Client::with_uri_str(uri).await?;
            client.database("admin").run_command(command).await
        });
        answered.unwrap_or_else(|error| panic!("{error}\n{}", self.log()))
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("the server runs");
        let pid = Pid::from_child(process);
        kill_process(pid, signal).expect("our own child");
    }

    fn wait_for_end(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.wait().expect("our own child");
        }
    }
}

impl Drop for Mongod {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.kill();
        }
    }
}

fn copy_files(from: &Path, to: &Path) {
    let mut copy = std::process::Command::new("cp");
    let copied = copy.arg("-a").args([from, to]).status();
    assert!(
        copied.expect("there is cp").success(),
        "cannot copy {from:?}"
    );
}

/// A free port. If another process takes the port before the server does, the server ends and the test fails.
fn free_port(host: &str) -> u16 {
    let listener = TcpListener::bind((host, 0)).expect("a port of this machine");
    listener.local_addr().expect("a bound listener").port()
}
