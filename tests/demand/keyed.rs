//! A fleet that uses keys, with its own loopback address.

use std::fs;
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::Value;
use webfill_tests::run::{Finished, Run, Running};
use webfill_tests::site::Web;
use webfill_tests::workplace::{Workplace, files_under};

use crate::clients::{Client, Pipeline};
use crate::fleet::wait_for;

/// A dispatcher with keys, at its own loopback address, and the folders with the keys of its clients.
pub(crate) struct Keyed {
    pub(crate) web: Web,
    pub(crate) work: Workplace,
    pub(crate) host: String,
}

impl Keyed {
    pub(crate) fn new() -> Keyed {
        static FLEETS: AtomicU8 = AtomicU8::new(240);
        let number = FLEETS.fetch_add(1, Ordering::Relaxed);
        let [.., high, low] = std::process::id().to_be_bytes();
        let keyed = Keyed {
            web: Web::start(),
            work: Workplace::new(),
            host: format!("127.{number}.{high}.{low}"),
        };
        keyed.run_keys(&["new", "dispatcher"], "keys");
        keyed
    }

    pub(crate) fn run_keys(&self, args: &[&str], folder: &str) -> Finished {
        let run = Run::new(["keys"])
            .args(args)
            .arg("--keys")
            .arg(self.work.path(folder));
        run.finish().expect_code(0)
    }

    /// Creates a folder of keys for a role. With `admitted`, also adds the public key to the dispatcher's allow list.
    /// Returns the public key.
    pub(crate) fn create_member(&self, role: &str, name: &str, admitted: bool) -> String {
        let trusted = self.work.path("keys/dispatcher.pub");
        let trusted = trusted.to_str().expect("plain");
        let made = self.run_keys(&["new", role, "--dispatcher-key", trusted], name);
        let public = made.stdout.trim().to_owned();
        if admitted {
            self.run_keys(&["add", role, name, &public], "keys");
        }
        public
    }

    /// The command that starts a supervisor with the keys from the folder of the same name.
    pub(crate) fn supervisor_run(&self, name: &str) -> Run {
        let dispatcher = format!("tcp://{}:5555", self.host);
        self.command_of_role("supervisor", name).args([
            "--dispatcher",
            &dispatcher,
            "--id",
            name,
            "--workers",
            "1",
        ])
    }

    pub(crate) fn start_dispatcher(&self) -> Running {
        let role = self.command_of_role("dispatcher", "keys");
        let mut running = role.args(["--listen", &self.host]).start();
        running.wait_for_stderr("ready");
        running
    }

    pub(crate) fn command_of_role(&self, role: &str, folder: &str) -> Run {
        let store = format!("sqlite:{}", self.work.path("store.db").display());
        Run::new([role, "--store", &store, "--state"])
            .arg(self.work.path(&format!("state/{role}")))
            .arg("--keys")
            .arg(self.work.path(folder))
            .env("WEBFILL_POLITENESS_DELAY", "0.02")
            .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
            .env("WEBFILL_DISPATCHER_HTTP", "off")
    }

    pub(crate) fn command(&self, args: &[&str], keys: Option<&str>) -> Run {
        let dispatcher = format!("tcp://{}:5555", self.host);
        let run = Run::new(args).args(["--dispatcher", &dispatcher]);
        match keys {
            Some(folder) => run.arg("--keys").arg(self.work.path(folder)),
            None => run,
        }
    }

    /// Connects to the control socket by libzmq itself, with the keys in a client's folder.
    pub(crate) fn client(&self, folder: &str) -> Client {
        Client::connect_with_keys(
            &format!("tcp://{}:5557", self.host),
            &self.work.path(folder),
        )
    }

    /// Like [`Keyed::client`], but the client can send further requests before answers arrive.
    pub(crate) fn pipeline(&self, folder: &str) -> Pipeline {
        Pipeline::connect_with_keys(
            &format!("tcp://{}:5557", self.host),
            &self.work.path(folder),
        )
    }

    /// Waits until the dispatcher has logged this event with this text. Returns the line.
    pub(crate) fn wait_until_logged(&self, event: &str, text: &str) -> Value {
        wait_for(&format!("the dispatcher logs {event}: {text}"), || {
            self.find_logged(event, text)
        })
    }

    /// The line in the dispatcher's log about this event that contains this text; `None` if there is none.
    pub(crate) fn find_logged(&self, event: &str, text: &str) -> Option<Value> {
        let files = files_under(&self.work.path("state/dispatcher/logs"));
        let texts = files
            .iter()
            .filter_map(|file| fs::read_to_string(file).ok());
        let lines: String = texts.collect();
        let reported = lines
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let mut reported = reported.filter(|line: &Value| line["event"] == event);
        reported.find(|line| line.to_string().contains(text))
    }
}
