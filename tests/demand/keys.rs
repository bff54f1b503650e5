//! Keys: which clients may feed, act and subscribe.

use std::fs;

use serde_json::{Value, json};
use webfill_tests::run::{Finished, Run, Running};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

use crate::fleet::{APP, request, wait_for};

/// A dispatcher with keys on an address of its own, and its clients.
struct Keyed {
    web: Web,
    work: Workplace,
    host: String,
}

impl Keyed {
    fn new() -> Keyed {
        let [.., high, low] = std::process::id().to_be_bytes();
        let keyed = Keyed {
            web: Web::start(),
            work: Workplace::new(),
            host: format!("127.240.{high}.{low}"),
        };
        keyed.keys(&["new", "dispatcher"], "keys");
        keyed
    }

    fn keys(&self, args: &[&str], folder: &str) -> Finished {
        let run = Run::new(["keys"])
            .args(args)
            .arg("--keys")
            .arg(self.work.path(folder));
        run.finish().expect(0)
    }

    /// Makes a folder of keys of a role; lets them in if wanted. Returns the public key.
    fn member(&self, role: &str, name: &str, let_in: bool) -> String {
        let trusted = self.work.path("keys/dispatcher.pub");
        let trusted = trusted.to_str().expect("plain");
        let made = self.keys(&["new", role, "--dispatcher-key", trusted], name);
        let public = made.stdout.trim().to_owned();
        if let_in {
            self.keys(&["add", role, name, &public], "keys");
        }
        public
    }

    /// A supervisor with the keys in the folder of its name.
    fn supervisor(&self, name: &str) -> Run {
        let dispatcher = format!("tcp://{}:5555", self.host);
        self.role("supervisor", name).args([
            "--dispatcher",
            &dispatcher,
            "--id",
            name,
            "--workers",
            "1",
        ])
    }

    fn dispatcher(&self) -> Running {
        let role = self.role("dispatcher", "keys");
        let mut running = role.args(["--listen", &self.host]).start();
        running.wait_for_stderr("ready");
        running
    }

    fn role(&self, role: &str, folder: &str) -> Run {
        let store = format!("sqlite:{}", self.work.path("store.db").display());
        Run::new([role, "--store", &store, "--state"])
            .arg(self.work.path(&format!("state/{role}")))
            .arg("--keys")
            .arg(self.work.path(folder))
            .env("WEBFILL_POLITENESS_DELAY", "0.02")
            .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
            .env("WEBFILL_DISPATCHER_HTTP", "off")
    }

    fn command(&self, args: &[&str], keys: Option<&str>) -> Run {
        let dispatcher = format!("tcp://{}:5555", self.host);
        let run = Run::new(args).args(["--dispatcher", &dispatcher]);
        match keys {
            Some(folder) => run.arg("--keys").arg(self.work.path(folder)),
            None => run,
        }
    }
}

#[test]
fn clients_with_keys_feed_act_and_listen_and_strangers_do_not() {
    let keyed = Keyed::new();
    for (role, name, let_in) in [
        ("supervisor", "vm-01", true),
        ("client", "feeder", true),
        ("client", "stranger", false),
    ] {
        keyed.member(role, name, let_in);
    }
    let _dispatcher = keyed.dispatcher();
    let resolve = keyed.web.resolve_args()[1].clone();
    let _supervisor = keyed
        .supervisor("vm-01")
        .env("WEBFILL_FETCH_RESOLVE", resolve)
        .start();
    let site = keyed.web.site("k.example");
    site.otherwise(|request| page(&request.path).into());

    let mut dump = keyed.command(&["dump"], Some("feeder")).start();
    dump.wait_until("it listens", |dump| {
        keyed
            .command(&["info", APP], Some("feeder"))
            .finish()
            .expect(0);
        dump.stdout_so_far().contains("total_pending")
    });
    let mut nosy = keyed.command(&["dump"], Some("stranger")).start();
    let one = request(&site.url("/1"), "keyed").to_string();
    keyed
        .command(&["feed", &one], Some("feeder"))
        .finish()
        .expect(0);
    dump.wait_until("the result is told", |dump| {
        dump.stdout_so_far().contains("http://k.example/1")
    });
    wait_for("it is stored", || {
        let info = keyed
            .command(&["info", APP, "keyed", "--json"], Some("feeder"))
            .finish()
            .expect(0);
        let info: Value = serde_json::from_str(&info.stdout).expect("JSON");
        (info["total_pending"] == json!(0)).then_some(())
    });

    let two = request(&site.url("/2"), "keyed").to_string();
    for keys in [Some("stranger"), None] {
        let run = keyed.command(&["feed", &two], keys).finish().expect(1);
        assert!(run.one_sentence().contains("key"), "{}", run.stderr);
    }
    assert_eq!(nosy.stdout_so_far(), "", "a stranger hears nothing");
    assert!(nosy.ended().is_none(), "it waits to be let in");
    assert_eq!(site.visits().pages().len(), 1);
    let secret = fs::read_to_string(keyed.work.path("feeder/client.key")).expect("a key");
    let secret = secret.trim().trim_start_matches("secret ");
    let logs = format!("{:?}", keyed.work.logs());
    assert!(!logs.contains(secret), "a secret is in a log");
}

#[test]
fn a_supervisor_says_that_its_key_is_refused_until_it_is_let_in() {
    let keyed = Keyed::new();
    let public = keyed.member("supervisor", "vm-01", false);
    let _dispatcher = keyed.dispatcher();
    let mut supervisor = keyed.supervisor("vm-01").start();
    let dispatcher = format!("the dispatcher at tcp://{}:5555", keyed.host);
    supervisor.wait_for_stderr(&format!(
        "waiting: {dispatcher}: it has not let this key in"
    ));
    assert!(!supervisor.stderr_so_far().contains("ready"));
    keyed.keys(&["add", "supervisor", "vm-01", &public], "keys");
    supervisor.wait_for_stderr("ready");
}
