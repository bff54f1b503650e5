//! Tests `webfill fill` with the machines of a fleet and its MongoDB. The outputs must be those of a run on one
//! machine. The access log shows which pages were requested.

use std::collections::BTreeMap;
use std::time::Duration;

use mongodb::bson::doc;
use rustix::process::Signal;
use serde_json::Value;
use webfill_test_mongod::{Database, fresh_database};
use webfill_test_needs::needs;
use webfill_tests::documents::Documents;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{
    Oddities, SITES, assert_same_outputs, example_oddities, fill_on_one_machine, gap_count,
    read_rows, serve_books, table_with_gaps,
};

const DELAY: Duration = Duration::from_millis(100);

/// A dispatcher and two supervisors with two workers each.
struct Fleet {
    web: Web,
    work: Workplace,
    database: Database,
    host: String,
    /// Another host, whose dispatcher stands by; `None`: there is no journal.
    standby_host: Option<String>,
    dispatcher: Option<Running>,
    supervisors: Vec<Option<Running>>,
    /// Whether the dispatcher admits only supervisors and clients whose keys it knows.
    is_keyed: bool,
}

impl Fleet {
    fn start(oddities: &Oddities) -> Fleet {
        Fleet::start_with(oddities, false)
    }

    fn start_with(oddities: &Oddities, is_keyed: bool) -> Fleet {
        let mut fleet = Fleet::unstarted_fleet(is_keyed);
        fleet.start_all(oddities);
        fleet
    }

    fn unstarted_fleet(is_keyed: bool) -> Fleet {
        let [.., high, low] = std::process::id().to_be_bytes();
        Fleet {
            web: Web::start(),
            work: Workplace::new(),
            database: fresh_database(),
            host: format!("127.77.{high}.{low}"),
            standby_host: None,
            dispatcher: None,
            supervisors: vec![None, None],
            is_keyed,
        }
    }

    fn start_all(&mut self, oddities: &Oddities) {
        serve_books(&self.web, oddities);
        if self.is_keyed {
            self.make_keys();
        }
        self.start_dispatcher();
        for number in 0..2 {
            self.start_supervisor(number);
        }
    }

    /// Creates keys for the dispatcher, two machines and a client, each in a separate folder.
    fn make_keys(&self) {
        self.run_keys_command(&["new", "dispatcher"], "keys");
        let members = [
            ("supervisor", "machine-0"),
            ("supervisor", "machine-1"),
            ("client", "client"),
        ];
        for (role, name) in members {
            let public = self.new_keys(role, name);
            self.run_keys_command(&["add", role, name, &public], "keys");
        }
    }

    /// Creates a folder of keys that trusts this fleet's dispatcher. Returns the public key.
    fn new_keys(&self, role: &str, folder: &str) -> String {
        let trusted = self.work.path("keys/dispatcher.pub");
        let trusted = trusted.to_str().expect("plain");
        let public = self.run_keys_command(&["new", role, "--dispatcher-key", trusted], folder);
        public.trim().to_owned()
    }

    /// Runs `webfill keys ARGS...` on a folder of keys. Returns the output.
    fn run_keys_command(&self, args: &[&str], folder: &str) -> String {
        let run = Run::new(["keys"]).args(args).arg("--keys");
        run.arg(self.work.path(folder))
            .finish()
            .expect_code(0)
            .stdout
    }

    /// Adds the keys in a folder to a command, if the fleet uses keys.
    fn with_keys(&self, run: Run, folder: &str) -> Run {
        match self.is_keyed {
            true => run.arg("--keys").arg(self.work.path(folder)),
            false => run,
        }
    }

    fn role_command(&self, role: &str, state: &str) -> Run {
        Run::new([role, "--store", self.database.uri(), "--state"])
            .arg(self.work.path(state))
            .env("WEBFILL_POLITENESS_DELAY", DELAY.as_secs_f64().to_string())
            .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
            .time_limit(Duration::from_secs(300))
    }

    fn start_dispatcher(&mut self) {
        let dispatcher = self.dispatcher_command(&self.host, "state/dispatcher");
        let mut dispatcher = self.with_keys(dispatcher, "keys").start();
        dispatcher.wait_for_stderr("ready");
        self.dispatcher = Some(dispatcher);
    }

    fn dispatcher_command(&self, host: &str, state: &str) -> Run {
        let has_journal = self.standby_host.is_some();
        self.role_command("dispatcher", state)
            .args(["--listen", host, "--http", "off", "--mappings"])
            .arg(self.work.path("mappings"))
            .env("WEBFILL_DISPATCHER_JOURNAL", has_journal.to_string())
    }

    /// Starts the second dispatcher, and waits until it stands by.
    fn start_standby(&self) -> Running {
        let host = self.standby_host.as_ref().expect("it has a host");
        let mut standby = self.dispatcher_command(host, "state/standby").start();
        standby.wait_for_stderr("of the journal is applied");
        standby
    }

    fn start_supervisor(&mut self, number: usize) {
        let resolve = self.web.resolve_args();
        let resolve: Vec<&str> = resolve
            .iter()
            .skip(1)
            .step_by(2)
            .map(String::as_str)
            .collect();
        let name = format!("machine-{number}");
        let supervisor = self
            .role_command("supervisor", &format!("state/{name}"))
            .args(["--dispatcher", &self.endpoint(), "--id", &name])
            .args(["--workers", "2"])
            .env("WEBFILL_FETCH_RESOLVE", resolve.join(","));
        self.supervisors[number] = Some(self.with_keys(supervisor, &name).start());
    }

    /// The address of the dispatcher, or of both.
    fn endpoint(&self) -> String {
        let hosts = std::iter::once(&self.host).chain(&self.standby_host);
        let endpoints: Vec<String> = hosts.map(|host| format!("tcp://{host}:5555")).collect();
        endpoints.join(",")
    }

    fn fill_command(&self) -> Run {
        let run = Run::new(["fill", "books.csv", "--keep", "note", "--progress", "none"])
            .args([
                "--dispatcher",
                &self.endpoint(),
                "--store",
                self.database.uri(),
            ])
            .in_folder(self.work.path("."))
            .time_limit(Duration::from_secs(300));
        self.with_keys(run, "client")
    }

    fn wait_for_pages(&self, pages: usize) {
        let is_there = format!("{pages} pages were asked");
        self.web
            .log()
            .wait_until(&is_there, |visits| visits.pages().len() >= pages);
    }

    fn kill_dispatcher(&mut self) {
        let dispatcher = self.dispatcher.take().expect("it runs");
        dispatcher.signal(Signal::KILL);
        dispatcher.finish();
    }

    fn kill_supervisor(&mut self, number: usize) {
        let supervisor = self.supervisors[number].take().expect("it runs");
        supervisor.signal(Signal::KILL);
        supervisor.finish();
    }
}

#[needs(mongod)]
#[test]
fn a_fleet_fills_as_one_machine_does_and_a_killed_client_resumes() {
    let alone = fill_on_one_machine();
    let (oddities, wrong) = example_oddities();
    let fleet = Fleet::start(&oddities);
    fleet.work.write("books.csv", table_with_gaps(&wrong));
    for pages in [5, 60] {
        let client = fleet.fill_command().start();
        fleet.wait_for_pages(pages);
        client.signal(Signal::KILL);
        client.finish();
    }
    let run = fleet.fill_command().finish().expect_code(0);
    assert!(
        run.stdout.contains("at the fleet's delays"),
        "{}",
        run.stdout
    );
    assert_same_outputs(&alone, &fleet.work);
    let visits = fleet.web.visits();
    visits.assert_polite(DELAY);
    let counts = visits.pages().counts();
    assert!(counts.values().all(|count| *count == 1), "{counts:#?}");
    // A second run with the same table requests nothing.
    let before = fleet.web.visits().len();
    fleet.fill_command().finish().expect_code(0);
    assert_eq!(fleet.web.visits().len(), before);
    assert_same_outputs(&alone, &fleet.work);
}

#[needs(mongod)]
#[test]
fn deaths_in_the_fleet_do_not_change_the_outputs() {
    let alone = fill_on_one_machine();
    let (oddities, wrong) = example_oddities();
    let mut fleet = Fleet::start(&oddities);
    fleet.work.write("books.csv", table_with_gaps(&wrong));
    let client = fleet.fill_command().start();
    fleet.wait_for_pages(5);
    fleet.supervisors[0].as_mut().unwrap().kill_role("worker");
    fleet.wait_for_pages(15);
    fleet.kill_dispatcher();
    fleet.start_dispatcher();
    fleet.wait_for_pages(30);
    fleet.kill_supervisor(1);
    fleet.start_supervisor(1);
    client.finish().expect_code(0);
    assert_same_outputs(&alone, &fleet.work);
    let visits = fleet.web.visits();
    visits.assert_polite(DELAY);
    // Pages that were not stored before the kill are requested again. Pages are stored every quarter of a second, and
    // in this time up to three pages of each site are fetched.
    let counts = visits.pages().counts();
    let again: usize = counts.values().map(|count| count - 1).sum();
    assert!(again <= 2 * 4 * SITES.len(), "{again} again: {counts:#?}");
}

#[needs(mongod)]
#[test]
fn a_table_is_completed_though_another_dispatcher_takes_over() {
    let alone = fill_on_one_machine();
    let (oddities, wrong) = example_oddities();
    let mut fleet = Fleet::unstarted_fleet(false);
    fleet.standby_host = Some(fleet.host.replace("127.77.", "127.78."));
    fleet.start_all(&oddities);
    let mut standby = fleet.start_standby();
    fleet.work.write("books.csv", table_with_gaps(&wrong));
    let client = fleet.fill_command().start();
    fleet.wait_for_pages(15);
    fleet.kill_dispatcher();
    standby.wait_for_stderr("ready");
    client.finish().expect_code(0);
    assert_same_outputs(&alone, &fleet.work);
    let visits = fleet.web.visits();
    visits.assert_polite(DELAY);
    let counts = visits.pages().counts();
    assert!(counts.values().all(|count| *count == 1), "{counts:#?}");
}

#[needs(mongod)]
#[test]
fn a_fleet_refreshes_old_pages_and_requests_no_others_again() {
    let mut fleet = Fleet::start(&Oddities::default());
    fleet
        .work
        .write("books.csv", table_with_gaps(&BTreeMap::new()));
    let run = fleet.fill_command().finish().expect_code(0);
    let all = format!("gaps: {}, filled: {0} (100.0 %)", gap_count());
    assert!(run.stdout.contains(&all), "{}", run.stdout);
    // After this time, earlier fetches are too old for `--refresh-after 1s`.
    std::thread::sleep(Duration::from_millis(1_100));
    let first = fleet.web.visits().pages().len();
    for again in 1..=2 {
        let run = fleet
            .fill_command()
            .args(["--refresh-after", "1s"])
            .finish()
            .expect_code(0);
        assert!(run.stdout.contains(&all), "{}", run.stdout);
        let counts = fleet.web.visits().pages().counts();
        assert!(
            counts.values().all(|count| *count == again + 1),
            "{counts:#?}"
        );
        std::thread::sleep(Duration::from_millis(1_100));
    }
    assert_eq!(fleet.web.visits().pages().len(), 3 * first);
    fleet.kill_dispatcher();
    fleet.fill_command().finish().expect_code(0);
    assert_eq!(fleet.web.visits().pages().len(), 3 * first);
    let run = fleet
        .fill_command()
        .args(["--refresh-after", "1s"])
        .finish()
        .expect_code(1);
    assert!(
        run.stderr.contains(":5557 has not answered for 10 s"),
        "{}",
        run.stderr
    );
}

/// The name of the table contains a space, so it cannot be the id of its crawl. In addition, an operator stops the
/// crawl.
#[needs(mongod)]
#[test]
fn a_table_is_completed_though_its_crawl_was_stopped() {
    let fleet = Fleet::start(&Oddities::default());
    fleet
        .work
        .write("my books.csv", table_with_gaps(&BTreeMap::new()));
    let fill = || {
        Run::new([
            "fill",
            "my books.csv",
            "--keep",
            "note",
            "--progress",
            "none",
        ])
        .args(["--dispatcher", &fleet.endpoint()])
        .args(["--store", fleet.database.uri()])
        .in_folder(fleet.work.path("."))
        .time_limit(Duration::from_secs(300))
    };
    let client = fill().start();
    fleet.wait_for_pages(5);
    let noted = std::fs::read(fleet.work.path("my books.webfill/fleet.json")).expect("its crawls");
    let noted: Value = serde_json::from_slice(&noted).expect("JSON");
    let crawl = noted["crawls"][0].as_str().expect("a crawl");
    assert!(crawl.starts_with("my_books-"), "{crawl}");
    Run::new(["stop", "fill", crawl, "--dispatcher", &fleet.endpoint()])
        .finish()
        .expect_code(0);
    let stopped = client.finish();
    assert!(!stopped.status.success(), "{}", stopped.stdout);
    let run = fill().finish().expect_code(0);
    let pages = fleet.web.visits().pages().counts().len();
    assert!(pages >= 88, "{pages} pages: {}", run.stdout);
    let filled = read_rows(&fleet.work, "my books.filled.csv");
    let counts = fleet.web.visits().pages().counts();
    let again: usize = counts.values().map(|count| count - 1).sum();
    assert!(again <= 4 * SITES.len(), "{again} again: {counts:#?}");

    // Pages that were dropped from the store are fetched again, but no other pages.
    let dropped = Documents::open(fleet.database.uri()).run(doc! {
        "delete": "pages",
        "deletes": [{"q": {"url": {"$regex": SITES[0]}}, "limit": 0}],
    });
    let dropped = dropped.get_i32("n").expect("a number") as usize;
    assert!(dropped > 0);
    let before = fleet.web.visits().pages().len();
    fill().finish().expect_code(0);
    assert_eq!(fleet.web.visits().pages().len(), before + dropped);
    assert_eq!(read_rows(&fleet.work, "my books.filled.csv"), filled);
}

#[test]
fn flags_that_only_a_fleet_has_are_refused_with_a_reason() {
    let work = Workplace::new();
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    let fill = |more: &[&str]| {
        Run::new(["fill", "books.csv"])
            .args(more)
            .in_folder(work.path("."))
            .finish()
    };
    let dispatcher = ["--dispatcher", "tcp://127.77.0.1:5555"];
    let run = fill(&[&dispatcher[..], &["--delay", "3"]].concat()).expect_code(2);
    assert!(run.stderr.contains("--delay"), "{}", run.stderr);
    let run = fill(&["--store", "sqlite:webfill.db"]).expect_code(2);
    assert!(run.stderr.contains("--dispatcher"), "{}", run.stderr);
    let missing = ["--store", "sqlite:missing.db"];
    let run = fill(&[dispatcher, missing].concat()).expect_code(1);
    assert!(run.stderr.contains("missing.db"), "{}", run.stderr);
}

#[needs(mongod)]
#[test]
fn a_fleet_with_keys_fills_for_a_known_client_only() {
    let alone = fill_on_one_machine();
    let (oddities, wrong) = example_oddities();
    let fleet = Fleet::start_with(&oddities, true);
    fleet.work.write("books.csv", table_with_gaps(&wrong));
    let refused = |folder: &str, why: &str| {
        let run = fleet
            .fill_command()
            .replace_flag("--keys", fleet.work.path(folder));
        let run = run.finish().expect_code(1);
        assert!(run.stderr.contains(why), "{}", run.stderr);
    };
    fleet.new_keys("client", "stranger");
    refused("stranger", "is this key on its list?");
    let public = fleet.new_keys("client", "other");
    fleet.run_keys_command(
        &["add", "client", "other", &public, "--apps", "other"],
        "keys",
    );
    refused("other", "this key is not allowed for the application");
    assert!(fleet.web.visits().is_empty());
    fleet.fill_command().finish().expect_code(0);
    assert_same_outputs(&alone, &fleet.work);
    fleet.web.visits().assert_polite(DELAY);
}
