//! Tests ten nights of a regulator's website: exactly the changes are reported, each once and on its night. A night is
//! a run of the watch, so no test waits for a day to pass.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::process::Process;
use webfill_tests::regulator::{Change, Changes, NIGHTS, Notifications, Regulator};
use webfill_tests::run::{Finished, Run, Running};
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

/// The exit codes that a night may have: 0 if everything was checked, 12 if some sites are backing off.
const ENDS: [Option<i32>; 2] = [Some(0), Some(12)];

/// The end of the process that recorded the end of a run and then delivered the notifications.
struct Reporter {
    was_killed: bool,
    /// The standard error of the process.
    said: String,
}

impl From<Finished> for Reporter {
    fn from(ended: Finished) -> Reporter {
        Reporter {
            was_killed: ended.status.code().is_none(),
            said: ended.stderr,
        }
    }
}

/// A watch of a regulator's website on this machine, without a fleet.
struct Watched {
    regulator: Regulator,
    work: Workplace,
    resolve: Vec<String>,
    notifications: Notifications,
    /// All changes reported so far.
    all: Changes,
    /// Changes that a run recorded but did not deliver because it was killed. The next run must deliver them.
    owed: Vec<Change>,
}

impl Watched {
    fn new(web: &Web) -> Watched {
        let resolve = web.resolve_args().into_iter();
        Watched {
            regulator: Regulator::new(web),
            work: Workplace::new(),
            resolve: resolve.filter(|one| one != "--resolve").collect(),
            notifications: Notifications::default(),
            all: Changes::new(),
            owed: Vec::new(),
        }
    }

    fn watch_run(&self) -> Run {
        let watch = json!({
            "name": "regulator",
            "urls": self.regulator.seeds(),
            "schedule": "0 2 * * *",
            "notify": [{"file": "notified.jsonl", "about": ["changes"]}],
            "crawl": {
                "store": "sqlite:store.db", "state": "state", "mappings": "mappings", "delay": 0.03,
                "workers": 2, "allow_private_networks": true, "resolve": self.resolve,
                "follow": "all", "sitemaps": true, "patience": "1s",
            },
        });
        let file = self.work.write_json("watch.json", &watch);
        Run::new(["watch", "run"])
            .arg(file)
            .args(["--once", "--progress", "none", "--summary", "json"])
            .env("WEBFILL_DOCUMENTS_READ", "true")
            .env("WEBFILL_BACKOFF_BLOCKED", ["60"; 9].join(","))
    }

    /// Runs one night. It must report the changes of this night and those that the previous run did not deliver. Only a
    /// run that was killed after its end was recorded may leave changes undelivered.
    fn run_night(&mut self, number: u32, run: impl FnOnce(&Watched) -> Reporter) {
        let changes = self.regulator.start_next_night();
        let mut missed: Vec<Change> = self.owed.drain(..).chain(changes).collect();
        self.end_backoffs();
        let before = self.notifications_text().len();
        let reporter = run(self);
        let reported = self.notifications_text();
        let mut wrong = Vec::new();
        for change in self.notifications.take_changes(&reported[before..]) {
            match missed.iter().position(|missed| *missed == change) {
                Some(at) => drop(missed.swap_remove(at)),
                None => wrong.push(change.clone()),
            }
            self.all.insert(change);
        }
        assert!(
            (missed.is_empty() || reporter.was_killed) && wrong.is_empty(),
            "night {number}: missed {missed:#?}, reported wrongly {wrong:#?} by {:?}: {}",
            self.last_run(),
            reporter.said
        );
        self.owed = missed;
    }

    fn notifications_text(&self) -> String {
        fs::read_to_string(self.work.path("notified.jsonl")).unwrap_or_default()
    }

    /// Ends all backoffs, as if a day had passed. No process may be running.
    fn end_backoffs(&self) {
        let file = self.work.path("state/dispatcher.db");
        if file.exists() {
            let db = rusqlite::Connection::open(file).expect("the frontier");
            let sql = "UPDATE sites SET backoff_until_ms = 1 WHERE backoff_until_ms > 0";
            db.execute(sql, []).expect("sites");
        }
    }

    /// Checks that entries and PDFs were reported as new, changed, gone and back. Every other kind of page must have
    /// been reported at least once.
    fn assert_everything_has_happened(&self) {
        for kind in ["new", "changed", "gone", "back"] {
            for page in ["regulator.test/entry", "register.example/entry", "/paper"] {
                let is_this =
                    |change: &&(String, String)| change.0 == kind && change.1.contains(page);
                assert!(
                    self.all.iter().any(|change| is_this(&change)),
                    "no {kind} {page}: {:#?}",
                    self.all
                );
            }
        }
        for page in ["/listed", "/clock", "bulletin.test/entry", "/list"] {
            assert!(
                self.all.iter().any(|(_, url)| url.contains(page)),
                "nothing of {page}"
            );
        }
    }

    /// The latest line about the last run in the watch's file of runs.
    fn last_run(&self) -> Option<Value> {
        let runs = self.work.path("state/runs-regulator.jsonl");
        let text = fs::read_to_string(runs).unwrap_or_default();
        let mut lines = text.lines().rev();
        lines.find_map(|line| serde_json::from_str(line).ok())
    }

    fn has_ended(&self, number: u32) -> bool {
        let run = self.last_run();
        run.is_some_and(|run| run["number"] == number && run["how"] != Value::Null)
    }
}

#[test]
fn ten_nights_of_a_regulator_report_exactly_the_changes() {
    let web = Web::start();
    let mut watched = Watched::new(&web);
    for number in 1..=NIGHTS {
        watched.run_night(number, |watched| {
            let ended = watched.watch_run().finish();
            let code = ended.status.code();
            assert!(ENDS.contains(&code), "night {number}: {}", ended.stderr);
            Reporter::from(ended)
        });
        assert!(watched.has_ended(number));
    }
    watched.assert_everything_has_happened();
    let counts = &watched.last_run().expect("a run")["counts"];
    assert!(counts["changes"].is_object(), "{counts}");
    assert!(counts["documents"].is_u64(), "{counts}");
}

/// The most times that a night's command is started: after up to four kills, and after children that died together with
/// a killed parent.
const MOST_STARTS: u32 = 12;

fn kill_all(victims: &[Process]) {
    for victim in victims {
        victim.signal(Signal::KILL);
    }
}

/// Kills a few processes in each night, at moments that are determined by a seed.
struct Killer {
    random: fastrand::Rng,
    kills: u32,
}

impl Killer {
    /// Waits for a random time. Returns false if the run ends earlier.
    fn wait(&mut self, running: &mut Running) -> bool {
        let until = Instant::now() + Duration::from_millis(self.random.u64(0..1_800));
        while Instant::now() < until {
            if running.exit_status().is_some() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Kills either one random process or all of them.
    fn kill_one_or_all(&mut self, running: &Running) {
        self.kills -= 1;
        let mut victims = running.processes();
        if self.random.u8(0..3) > 0 && !victims.is_empty() {
            let chosen = self.random.usize(0..victims.len());
            victims = vec![victims.swap_remove(chosen)];
        }
        kill_all(&victims);
    }

    /// Kills all processes as soon as the end of the run is recorded.
    fn kill_at_end(watched: &Watched, number: u32, running: &mut Running) {
        while running.exit_status().is_none() {
            if watched.has_ended(number) {
                return kill_all(&running.processes());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Starts the command again until the night's run has ended, although processes are killed meanwhile.
    fn run_night(&mut self, watched: &Watched, number: u32) -> Reporter {
        self.kills = self.random.u32(2..=4);
        let strikes_at_end = self.random.bool();
        let mut last = String::new();
        for _ in 0..MOST_STARTS {
            let mut running = watched.watch_run().start();
            while self.kills > 0 && self.wait(&mut running) {
                self.kill_one_or_all(&running);
            }
            if strikes_at_end {
                Self::kill_at_end(watched, number, &mut running);
            }
            let ended = running.finish();
            let run = watched.last_run().unwrap_or_default();
            assert_ne!(run["how"], "failed", "{run}: {}", ended.stderr);
            if watched.has_ended(number) {
                return Reporter::from(ended);
            }
            last = ended.stderr;
        }
        panic!("night {number} does not end: {last}")
    }
}

#[test]
fn kills_at_any_moment_of_ten_nights_do_not_change_the_reports() {
    let seed = std::env::var("WEBFILL_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let web = Web::start();
    let mut watched = Watched::new(&web);
    let mut killer = Killer {
        random: fastrand::Rng::with_seed(seed),
        kills: 0,
    };
    for number in 1..=NIGHTS {
        watched.run_night(number, |watched| killer.run_night(watched, number));
    }
    // In the last night, nothing is killed, so that all remaining changes are delivered.
    watched.run_night(NIGHTS + 1, |watched| watched.watch_run().finish().into());
}
