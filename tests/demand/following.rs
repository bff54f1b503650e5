//! Tests clients that know the addresses of two dispatchers. When the one that serves is killed, they follow the other
//! one, and nothing that they feed is lost.

use std::io::{PipeWriter, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use webfill_test_mongod::{Database, fresh_database};
use webfill_test_needs::needs;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::page;

use crate::fleet::{APP, Fleet, HTTP, request, wait_for};
use crate::standby::fleet_with_journal;

/// How many requests `webfill feed` sends together.
const BATCH: usize = 1_000;

/// Two dispatchers (the first one serves), and a supervisor that knows both.
struct Pair {
    first: Fleet,
    second: Fleet,
    next: Running,
    _database: Database,
}

impl Pair {
    fn start() -> Pair {
        let database = fresh_database();
        let mut first = fleet_with_journal(database.uri());
        let second = fleet_with_journal(database.uri());
        first.start_dispatcher();
        let both = format!("{},{}", first.endpoint(), second.endpoint());
        let supervisor = first.supervisor_role("one", &[]);
        first.add_supervisor_role("one", supervisor.replace_flag("--dispatcher", &both));
        let site = first.web.site("s0.test");
        site.serve_otherwise(|_| page("P").into());
        let mut next = second.dispatcher_role().start();
        next.wait_for_stderr("of the journal is applied");
        Pair {
            first,
            second,
            next,
            _database: database,
        }
    }

    /// A command with the addresses of both dispatchers.
    fn command(&self, args: &[&str]) -> Run {
        let both = format!("{},{}", self.first.endpoint(), self.second.endpoint());
        Run::new(args).args(["--dispatcher", &both])
    }

    fn kill_first(&mut self) {
        self.first.kill_dispatcher();
    }

    fn wait_for_takeover(&mut self) {
        self.next.wait_for_stderr("ready");
    }

    /// How many URLs of a crawl the second dispatcher knows.
    fn known_urls(&self, crawl: &str) -> u64 {
        let info = self.second.info(crawl);
        let counts = ["total_pending", "leased", "done"];
        let known = counts.iter().filter_map(|count| info[*count].as_u64());
        known.sum()
    }
}

fn write_requests(pipe: &mut PipeWriter, crawl: &str, pages: std::ops::Range<usize>) {
    for page in pages {
        let request = request(&format!("http://s0.test/{crawl}/{page}"), crawl);
        writeln!(pipe, "{request}").expect("it is read");
    }
}

/// The pages of a crawl that a subscriber has printed.
fn printed_pages(dump: &Running, crawl: &str) -> usize {
    let printed = dump.stdout_so_far();
    let lines = printed
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let is_page = |message: &Value| message["crawlid"] == crawl && message["url"].is_string();
    lines.filter(is_page).count()
}

#[needs(mongod)]
#[test]
fn a_feed_and_a_subscriber_follow_the_dispatcher_that_serves() {
    let mut pair = Pair::start();
    let dump = pair.command(&["dump", "--app", APP]).start();
    wait_for("it is subscribed", || {
        pair.first.feed(&[request("http://s0.test/first", "first")]);
        pair.first.info("first");
        (!dump.stdout_so_far().is_empty()).then_some(())
    });
    let (input, mut pipe) = std::io::pipe().expect("a pipe");
    let feed = pair.command(&["feed", "-", "--json", "--progress", "none"]);
    let feed = feed.stdin(input).start();
    write_requests(&mut pipe, "many", 0..BATCH);
    wait_for("a part is accepted", || {
        (pair.first.pending_tasks("many") > 0).then_some(())
    });
    pair.kill_first();
    write_requests(&mut pipe, "many", BATCH..2 * BATCH + 1);
    drop(pipe);
    let fed = feed.finish().expect_code(0).stdout;
    let fed: Value = serde_json::from_str(&fed).expect("JSON");
    assert_eq!(
        (&fed["accepted"], &fed["refused"]),
        (&json!(2 * BATCH + 1), &json!(0))
    );
    pair.wait_for_takeover();
    assert_eq!(pair.known_urls("many"), 2 * BATCH as u64 + 1);
    let before = printed_pages(&dump, "many");
    wait_for("pages of the second dispatcher are printed", || {
        (printed_pages(&dump, "many") > before).then_some(())
    });
}

/// A question that the first dispatcher does not answer any more is answered by the second one.
#[needs(mongod)]
#[test]
fn questions_and_orders_follow_the_dispatcher_that_serves() {
    let mut pair = Pair::start();
    pair.first.feed(&[request("http://s0.test/1", "kept")]);
    pair.first.wait_until_done("kept");
    let (input, mut agent) = std::io::pipe().expect("a pipe");
    let mcp = pair.command(&["mcp"]).stdin(input).start();
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        call(2),
    ];
    for line in lines {
        writeln!(agent, "{line}").expect("it is read");
    }
    wait_for("the first one answers an agent", || answer_to(&mcp, 2));
    pair.kill_first();
    // All are started before the second dispatcher serves.
    writeln!(agent, "{}", call(3)).expect("it is read");
    let info = pair.command(&["info", APP, "kept", "--json"]).start();
    let pause = pair.command(&["pause", APP, "kept", "--json"]).start();
    let answer = info.finish().expect_code(0).stdout;
    assert!(answer.contains(r#""done":1"#), "{answer}");
    pause.finish().expect_code(0);
    let answer = wait_for("the second one answers the agent", || answer_to(&mcp, 3));
    assert!(answer.contains("supervisors"), "{answer}");
    pair.wait_for_takeover();
}

/// What an operator orders while no dispatcher serves is carried out by the second one.
#[needs(mongod)]
#[test]
fn orders_of_an_operator_follow_the_dispatcher_that_serves() {
    let mut pair = Pair::start();
    pair.first.feed(&[request("http://s0.test/1", "kept")]);
    pair.first.wait_until_done("kept");
    let watch = json!({"name": "nightly", "urls": ["http://s0.test/1"], "schedule": "0 2 * * *"});
    let watch = watch.to_string();
    pair.kill_first();
    let orders: [&[&str]; 5] = [
        &["reload"],
        &["watch", "add", &watch],
        &["site", "s0.test", "--delay", "2"],
        &["retry", APP, "kept", "--outcome", "ok"],
        &["why", "http://s0.test/1"],
    ];
    let started = orders.map(|order| (order, pair.command(order).arg("--json").start()));
    for (order, running) in started {
        println!("{order:?}");
        running.finish().expect_code(0);
    }
    pair.wait_for_takeover();
    let listed = pair.command(&["watch", "list", "--json"]).start().finish();
    assert!(listed.expect_code(0).stdout.contains("nightly"));
    for order in [&["prune", APP, "kept"][..], &["drain"]] {
        pair.command(order).start().finish().expect_code(0);
    }
    pair.first.wait_until_supervisor_ended("one");
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "status", "arguments": {}}})
}

/// The line that answered an agent's call.
fn answer_to(mcp: &Running, id: u64) -> Option<String> {
    let printed = mcp.stdout_so_far();
    let mut lines = printed.lines();
    let is_answer =
        |line: &&str| serde_json::from_str(line).is_ok_and(|message: Value| message["id"] == id);
    lines.find(is_answer).map(str::to_owned)
}

/// Programs that do not use webfill: the Python client of the documentation, and curl with one name for both.
#[needs(mongod, python3_zmq)]
#[test]
fn other_programs_follow_the_dispatcher_that_serves() {
    let mut pair = Pair::start();
    let (one, other) = (&pair.first.host, &pair.second.host);
    let controls = [&pair.first, &pair.second]
        .map(Fleet::control_endpoint)
        .join(",");
    let resolve = format!("dispatcher.test:{HTTP}:{one},{other}");
    let url = format!("http://dispatcher.test:{HTTP}/feed");
    let python = |page: &str| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/feed.py");
        let fed = request(&format!("http://s0.test/{page}"), page).to_string();
        let mut command = Command::new("/usr/bin/python3");
        command.args([script, &controls, &fed]);
        command
    };
    let curl = |page: &str| {
        let fed = request(&format!("http://s0.test/{page}"), page).to_string();
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail", "--resolve", &resolve]);
        // Without tokens, a dispatcher refuses other names than its own.
        command.args(["--header", "Host: localhost"]);
        command.args(["--retry", "60", "--retry-delay", "1", "--retry-connrefused"]);
        command.args([
            "--header",
            "Content-Type: application/json",
            "--data",
            &fed,
            &url,
        ]);
        command
    };
    let expect_accepted = |commands: [Command; 2]| {
        let started = commands.map(|mut command| {
            let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("it starts")
        });
        started.map(|child| {
            let output = child.wait_with_output().expect("it ends");
            assert!(output.status.success(), "{output:?}");
        })
    };
    expect_accepted([python("python-1"), curl("curl-1")]);
    pair.first.kill_dispatcher();
    // The ports of both are closed now.
    expect_accepted([python("python-2"), curl("curl-2")]);
    pair.next.wait_for_stderr("ready");
    for crawl in ["python-1", "curl-1", "python-2", "curl-2"] {
        assert_eq!(pair.known_urls(crawl), 1, "{crawl}");
    }
}
