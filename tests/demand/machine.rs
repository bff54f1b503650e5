//! Runs the command lines of a document in a shell, against a fleet and a web to crawl. The text below a command line
//! in the document is the expected output. Numbers in it may differ.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::run::{Run, Running, binary};
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use crate::clients::Client;

/// A fenced code block of a document.
pub(crate) struct Block {
    pub(crate) language: &'static str,
    pub(crate) text: &'static str,
}

pub(crate) fn parse_blocks(document: &'static str) -> Vec<Block> {
    let parts: Vec<&str> = document.split("```").collect();
    assert_eq!(parts.len() % 2, 1, "each block is closed");
    let inside = parts.into_iter().skip(1).step_by(2);
    let block = |part: &'static str| {
        let (language, text) = part.split_once('\n').expect("a block has lines");
        Block { language, text }
    };
    inside.map(block).collect()
}

pub(crate) struct Machine {
    pub(crate) web: Web,
    pub(crate) work: Workplace,
    app: &'static str,
    host: String,
    background: Vec<(String, Running)>,
}

impl Machine {
    /// A machine that runs the commands of a document. These commands use the application `app`.
    pub(crate) fn new(app: &'static str) -> Machine {
        let [.., high, low] = std::process::id().to_be_bytes();
        Machine {
            web: Web::start(),
            work: Workplace::new(),
            app,
            host: format!("127.{}.{high}.{low}", 220 + app.len() % 20),
            background: Vec::new(),
        }
    }

    /// The environment of the commands. With it, commands with the document's URLs and default addresses reach this
    /// fleet and its web.
    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("WEBFILL_DISPATCHER_LISTEN", self.host.clone()),
            ("WEBFILL_DISPATCHER_HTTP", format!("{}:8080", self.host)),
            (
                "WEBFILL_SUPERVISOR_DISPATCHER",
                format!("tcp://{}:5555", self.host),
            ),
            ("WEBFILL_SUPERVISOR_WORKERS", "1".into()),
            ("WEBFILL_POLITENESS_DELAY", "0.02".into()),
            ("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true".into()),
            ("WEBFILL_FETCH_RESOLVE", self.web.resolve_args()[1].clone()),
        ]
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&format!("tcp://{}:5557", self.host))
    }

    /// The number of pending tasks of a crawl; `None` if the crawl is unknown.
    pub(crate) fn pending_tasks(&self, crawl_id: &str) -> Option<u64> {
        let question =
            json!({"action": "info", "appid": self.app, "uuid": "u", "crawlid": crawl_id});
        self.client().ask(&question)["total_pending"].as_u64()
    }

    /// Runs the lines of a block, and compares each output with the document. Calls `after` after each line that does
    /// not start a command in the background.
    pub(crate) fn run_block(&mut self, text: &str, mut after: impl FnMut(&Machine, &str)) {
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let line = line
                .strip_prefix("$ ")
                .unwrap_or_else(|| panic!("no command: {line}"));
            let mut expected = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                expected.push(line);
            }
            if let Some(line) = line.strip_suffix(" &") {
                self.start_in_background(line);
                continue;
            }
            let output = self.run_in_shell(line);
            assert_printed(line, &expected.join("\n"), output);
            after(self, line);
        }
    }

    /// Starts a command in the background and waits until it is ready.
    fn start_in_background(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        let run = Run::new(words).in_folder(self.work.path(""));
        let with = |run: Run, (name, value): (&str, String)| run.env(name, value);
        let mut running = self.settings().into_iter().fold(run, with).start();
        if line.contains(" dump") {
            let client = self.client();
            let question = json!({"action": "info", "appid": self.app, "uuid": "u"});
            running.wait_until("it is subscribed", |dump| {
                client.ask(&question);
                !dump.stdout_so_far().is_empty()
            });
        } else {
            running.wait_for_stderr("ready");
        }
        self.background.push((line.to_owned(), running));
    }

    fn run_in_shell(&self, line: &str) -> Output {
        let folder: PathBuf = binary().parent().expect("it is in a folder").to_owned();
        let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/feed.py");
        let client = format!("{client} tcp://{}:5557", self.host);
        let line = line
            .replace("127.0.0.1:8080", &format!("{}:8080", self.host))
            .replace("docs/examples/feed.py", &client);
        Command::new("/bin/sh")
            .args(["-c", &line])
            .current_dir(self.work.path(""))
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
            .env("LANG", "C.UTF-8")
            .envs(self.settings())
            .output()
            .expect("there is a shell")
    }

    /// The messages that `webfill dump` has printed so far.
    pub(crate) fn dumped_messages(&self) -> Vec<Value> {
        let of_dump = self
            .background
            .iter()
            .find(|(line, _)| line.contains(" dump"));
        let text = of_dump.expect("a dump runs").1.stdout_so_far();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON lines"));
        lines.collect()
    }

    /// Ends the background commands, the latest first.
    pub(crate) fn shut_down(mut self) {
        while let Some((_, running)) = self.background.pop() {
            running.signal(Signal::TERM);
            running.finish().expect_code(0);
        }
    }
}

fn assert_printed(line: &str, expected: &str, output: Output) {
    let said = [output.stderr, output.stdout].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
    let said = said.concat();
    let is_refusal = expected.contains("refused");
    assert_eq!(output.status.success(), !is_refusal, "{line}\n{said}");
    if !expected.is_empty() {
        assert_eq!(
            without_numbers(said.trim()),
            without_numbers(expected),
            "{line}"
        );
    }
}

/// Replaces the numbers in a text, because they vary.
fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c.is_ascii_digit() {
            true if shown.ends_with('#') => {}
            true => shown.push('#'),
            false => shown.push(c),
        }
    }
    shown
}
