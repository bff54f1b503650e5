//! A fleet with keys in its own folder, and clients that use only libzmq.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_bench::program::binary;

use crate::Failure;
use crate::attacks::KINDS;
use crate::site::Site;

/// The address of the measured fleet. It is not the default, so that a fleet on this machine is not disturbed.
const HOST: &str = "127.7.7.9";

const READY_WITHIN: Duration = Duration::from_secs(30);
const CRAWLED_WITHIN: Duration = Duration::from_secs(300);

pub(crate) struct Fleet {
    folder: tempfile::TempDir,
    processes: Vec<Child>,
}

impl Fleet {
    pub(crate) fn start(site: &Site) -> Result<Fleet, Failure> {
        let folder = tempfile::tempdir()?;
        let mut fleet = Fleet {
            folder,
            processes: Vec::new(),
        };
        fleet.run_keys(&["new", "dispatcher"], "keys")?;
        fleet.admit("supervisor", "supervisor", &[])?;
        fleet.admit("client", "honest", &[])?;
        for kind in KINDS {
            for number in 0..crate::CLIENTS_OF_A_KIND {
                fleet.admit("client", &kind.key_name(number), kind.rights())?;
            }
        }
        fleet.start_role(&["dispatcher", "--listen", HOST], "keys", site)?;
        let tasks = format!("tcp://{HOST}:5555");
        let supervisor = [
            "supervisor",
            "--dispatcher",
            &tasks,
            "--id",
            "supervisor",
            "--workers",
            "1",
        ];
        fleet.start_role(&supervisor, "supervisor", site)?;
        fleet
            .client("honest")?
            .ask(&json!({"action": "status"}), READY_WITHIN)?;
        Ok(fleet)
    }

    fn start_role(&mut self, args: &[&str], keys: &str, site: &Site) -> Result<(), Failure> {
        let state = format!("state-{}", args[0]);
        let child = Command::new(binary()?)
            .args(args)
            .args(["--store", "sqlite:webfill.db", "--state", &state])
            .args(["--keys", keys])
            .env("WEBFILL_DISPATCHER_HTTP", "off")
            .env("WEBFILL_POLITENESS_DELAY", "0.2")
            .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
            .env(
                "WEBFILL_FETCH_RESOLVE",
                format!("*:80:127.0.0.1:{}", site.port),
            )
            .current_dir(self.folder.path())
            .stderr(Stdio::null())
            .spawn()?;
        self.processes.push(child);
        Ok(())
    }

    fn run_keys(&self, args: &[&str], folder: &str) -> Result<String, Failure> {
        let made = Command::new(binary()?)
            .arg("keys")
            .args(args)
            .arg("--keys")
            .arg(self.folder.path().join(folder))
            .output()?;
        match made.status.success() {
            true => Ok(String::from_utf8(made.stdout)?.trim().to_owned()),
            false => Err(format!(
                "webfill keys {args:?}: {}",
                String::from_utf8_lossy(&made.stderr)
            )
            .into()),
        }
    }

    fn admit(&self, role: &str, name: &str, rights: &[&str]) -> Result<(), Failure> {
        let trusted = self.folder.path().join("keys/dispatcher.pub");
        let trusted = trusted.to_string_lossy();
        let public = self.run_keys(&["new", role, "--dispatcher-key", &trusted], name)?;
        self.run_keys(&[&["add", role, name, &public], rights].concat(), "keys")?;
        Ok(())
    }

    pub(crate) fn client(&self, name: &str) -> Result<Client, Failure> {
        Client::connect(&self.folder.path().join(name))
    }

    /// Waits until all pages of the crawl have an outcome.
    pub(crate) fn wait_until_crawled(&self, pages: usize) -> Result<(), Failure> {
        let client = self.client("honest")?;
        let info = json!({"action": "info", "appid": "honest", "crawlid": "crawled"});
        let begun = Instant::now();
        loop {
            let answer = client.ask(&info, READY_WITHIN)?;
            if answer["done"] == pages {
                return Ok(());
            }
            if begun.elapsed() > CRAWLED_WITHIN {
                return Err(format!("the crawl does not end: {answer}").into());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The peak memory of the dispatcher, in MiB.
    pub(crate) fn peak_mib(&mut self) -> Result<f64, Failure> {
        let dispatcher = &mut self.processes[0];
        if let Some(ended) = dispatcher.try_wait()? {
            return Err(format!("the dispatcher has ended: {ended}").into());
        }
        let status = fs::read_to_string(format!("/proc/{}/status", dispatcher.id()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().split(' ').next()?.parse::<f64>().ok());
        Ok(kib.ok_or("/proc says nothing about memory")? / 1_024.0)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            // Workers end with their supervisor. An error means that the process has ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A connection to the dispatcher's control socket.
pub(crate) struct Client {
    socket: zmq::Socket,
}

impl Client {
    fn connect(folder: &Path) -> Result<Client, Failure> {
        let socket = zmq::Context::new().socket(zmq::DEALER)?;
        let read = |name: &str| -> Result<Vec<u8>, Failure> {
            let text = fs::read_to_string(folder.join(name))?;
            zmq::z85_decode(text.trim().trim_start_matches("secret "))
                .map_err(|error| format!("{name}: {error:?}").into())
        };
        socket.set_linger(0)?;
        socket.set_sndtimeo(100)?;
        socket.set_curve_serverkey(&read("dispatcher.pub")?)?;
        socket.set_curve_publickey(&read("client.pub")?)?;
        socket.set_curve_secretkey(&read("client.key")?)?;
        socket.connect(&format!("tcp://{HOST}:5557"))?;
        Ok(Client { socket })
    }

    /// Sends a message. Returns false if it cannot be sent now.
    pub(crate) fn send(&self, message: &[u8]) -> Result<bool, Failure> {
        match self.socket.send(message, 0) {
            Ok(()) => Ok(true),
            Err(zmq::Error::EAGAIN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads all messages that have arrived, and returns their number.
    pub(crate) fn read_all(&self) -> usize {
        let mut read = 0;
        while self.socket.recv_bytes(zmq::DONTWAIT).is_ok() {
            read += 1;
        }
        read
    }

    pub(crate) fn ask(&self, request: &Value, wait: Duration) -> Result<Value, Failure> {
        let begun = Instant::now();
        while !self.send(request.to_string().as_bytes())? {
            if begun.elapsed() > wait {
                return Err("the dispatcher takes nothing".into());
            }
        }
        if self.socket.poll(zmq::POLLIN, wait.as_millis() as i64)? == 0 {
            return Err(format!("no answer within {} s", wait.as_secs()).into());
        }
        Ok(serde_json::from_slice(&self.socket.recv_bytes(0)?)?)
    }
}
