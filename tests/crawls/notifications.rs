//! Tests notifications of a watch on one machine. They are delivered before the command ends, by a command that waits
//! for the next run, or after that run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Command;

use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::office::pdf;
use webfill_tests::receiver::{Posted, Receiver};
use webfill_tests::run::Run;
use webfill_tests::site::{Certificates, Web, document, page};
use webfill_tests::workplace::Workplace;

struct Watched {
    web: Web,
    work: Workplace,
    notify: Value,
    url: &'static str,
    /// Further settings of the watch, and further settings of its crawl.
    more: Value,
    crawl: Value,
}

impl Watched {
    fn new(notify: Value) -> Watched {
        let web = Web::start();
        let site = web.site("people.example");
        site.serve("/ada", page("Ada").field("name", "Ada Byron"));
        Watched {
            web,
            work: Workplace::new(),
            notify,
            url: "http://people.example/ada",
            more: json!({}),
            crawl: json!({}),
        }
    }

    fn run_once(&self) -> Run {
        self.run().arg("--once")
    }

    fn run(&self) -> Run {
        let resolve: Vec<String> = self.web.resolve_args();
        let resolve: Vec<&String> = resolve.iter().filter(|one| *one != "--resolve").collect();
        let mut watch = json!({
            "name": "people",
            "urls": [self.url],
            "schedule": "0 2 * * *",
            "notify": self.notify,
            "crawl": {
                "store": "sqlite:store.db", "state": "state", "mappings": "mappings", "delay": 0.2,
                "workers": 1, "allow_private_networks": true, "resolve": resolve, "follow": "all",
            },
        });
        merge_settings(&mut watch["crawl"], &self.crawl);
        merge_settings(&mut watch, &self.more);
        let file = self.work.write_json("watch.json", &watch);
        Run::new(["watch", "run"])
            .arg(file)
            .args(["--summary", "json"])
    }

    fn read_lines(&self, file: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.work.path(file)).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Whether a notification is genuine, by the Python code that `docs/how-to/notifications.md` recommends to receivers.
fn is_genuine(secret: &str, posted: &Posted) -> bool {
    let guide = include_str!("../../docs/how-to/notifications.md");
    let (_, code) = guide.split_once("```python\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body");
    fs::write(&body, &posted.body).unwrap();
    let script = format!(
        "{code}\nimport sys\nbody = open(sys.argv[3], 'rb').read()\nsys.exit(0 if is_genuine(sys.argv[1].encode(), sys.argv[2], body) else 9)"
    );
    let status = Command::new("python3")
        .args(["-c", &script, secret, posted.header("webfill-signature")])
        .arg(body)
        .status()
        .unwrap();
    assert!(matches!(status.code(), Some(0 | 9)), "{status}");
    status.success()
}

fn merge_settings(settings: &mut Value, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        settings[name] = value.clone();
    }
}

#[test]
fn a_run_is_reported_to_webhooks_commands_and_files_before_the_command_ends() {
    let receiver = Receiver::start();
    receiver.set_answers(&[500, 500]);
    let mut watched = Watched::new(json!([]));
    let heard = watched.work.path("heard");
    let program = watched
        .work
        .write("hear.sh", format!("#!/bin/sh\ncat > {}\n", heard.display()));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&program, mode).unwrap();
    watched.work.write("hook.key", "secret\n");
    watched.notify = json!([
        {"webhook": receiver.url(), "secret_file": "hook.key", "about": ["runs"]},
        {"command": [program], "about": ["runs"]},
        {"file": "notified.jsonl", "about": ["runs"]},
        {"file": "silent.jsonl", "about": ["silence"]},
    ]);
    watched.run_once().finish().expect_code(0);
    let posted = receiver.all_posted();
    assert_eq!(posted.len(), 3, "two failures, and the delivery");
    let delivered = receiver.all_delivered().remove(0);
    assert_eq!(delivered.events(), ["run_ended"]);
    assert!(is_genuine("secret", &delivered));
    assert!(!is_genuine("another", &delivered));
    let reported = watched.read_lines("notified.jsonl");
    assert_eq!(reported[0]["events"], delivered.json()["events"]);
    let heard: Value = serde_json::from_str(&fs::read_to_string(heard).unwrap()).unwrap();
    assert_eq!(heard["events"], delivered.json()["events"]);
    assert!(watched.read_lines("silent.jsonl").is_empty(), "all is well");
    watched.run_once().finish().expect_code(0);
    assert_eq!(receiver.all_delivered().len(), 2, "each run once");
    assert_eq!(watched.read_lines("notified.jsonl").len(), 2);
}

/// A watch with a notification that was not delivered, because the folder of its file is missing.
fn watch_with_undelivered() -> Watched {
    let watched = Watched::new(json!([{"file": "later/notified.jsonl", "about": ["runs"]}]));
    let first = watched.run_once().finish().expect_code(0);
    assert!(
        first.stderr.contains("not delivered yet"),
        "{}",
        first.stderr
    );
    watched
}

#[test]
fn undelivered_notifications_are_delivered_while_waiting_for_the_next_run() {
    let watched = watch_with_undelivered();
    let mut waiting = watched.run().start();
    waiting.wait_for_stderr("next run at");
    fs::create_dir(watched.work.path("later")).unwrap();
    waiting.wait_until("the notification is delivered", |_| {
        !watched.read_lines("later/notified.jsonl").is_empty()
    });
    waiting.signal(Signal::TERM);
    waiting.finish().expect_code(0);
    assert_eq!(
        watched.web.visits().pages().for_path("/ada").len(),
        1,
        "nothing was due"
    );
    watched.run_once().finish().expect_code(0);
    assert_eq!(
        watched.read_lines("later/notified.jsonl").len(),
        2,
        "each run once"
    );
}

#[test]
fn undelivered_notifications_are_delivered_after_the_next_run() {
    let watched = watch_with_undelivered();
    fs::create_dir(watched.work.path("later")).unwrap();
    watched.run_once().finish().expect_code(0);
    let reported = watched.read_lines("later/notified.jsonl");
    let run = |reported: &Value| reported["events"][0]["detail"]["run"].as_u64();
    let mut runs: Vec<Option<u64>> = reported.iter().map(run).collect();
    runs.sort_unstable();
    assert_eq!(runs, [Some(1), Some(2)]);
}

#[test]
fn a_watch_that_reads_nothing_any_more_is_reported_until_it_reads_again() {
    let watched = Watched::new(json!([{"file": "notified.jsonl"}]));
    for _ in 0..3 {
        watched.run_once().finish().expect_code(0);
    }
    assert!(
        watched.read_lines("notified.jsonl").is_empty(),
        "all is well"
    );
    let site = watched.web.site("people.example");
    site.serve("/ada", page(""));
    for _ in 0..3 {
        assert!(watched.read_lines("notified.jsonl").is_empty());
        watched.run_once().finish().expect_code(0);
    }
    let reported = watched.read_lines("notified.jsonl");
    assert_eq!(reported.len(), 1, "{reported:?}");
    let event = &reported[0]["events"][0];
    assert_eq!(event["event"], "silent");
    assert_eq!(event["detail"]["silence"], "no_fields", "{event}");
    watched.run_once().finish().expect_code(0);
    assert_eq!(
        watched.read_lines("notified.jsonl").len(),
        1,
        "reported once"
    );
    site.serve("/ada", page("Ada").field("name", "Ada Byron"));
    watched.run_once().finish().expect_code(0);
    let reported = watched.read_lines("notified.jsonl");
    assert_eq!(
        reported[1]["events"][0]["event"], "sees_again",
        "{reported:?}"
    );
}

#[test]
fn a_watch_that_meets_no_new_documents_and_no_changes_any_more_is_silent() {
    let mut watched = Watched::new(json!([{"file": "notified.jsonl", "about": ["silence"]}]));
    watched.url = "http://people.test/list";
    let site = watched.web.site("people.test");
    let run = |papers: usize| {
        let paths: Vec<String> = (0..papers).map(|n| format!("/paper{n}.pdf")).collect();
        for path in &paths {
            site.serve(path, document("application/pdf", pdf("A paper", path)));
        }
        let list = paths
            .iter()
            .fold(page("List"), |list, path| list.link(path));
        site.serve("/list", list);
        let run = watched.run_once().env("WEBFILL_DOCUMENTS_READ", "true");
        run.finish().expect_code(0);
        let reported = watched.read_lines("notified.jsonl").into_iter();
        let events = reported
            .flat_map(|reported| reported["events"].as_array().cloned().unwrap_or_default());
        let name = |event: Value| format!("{} {}", event["event"], event["detail"]["silence"]);
        events
            .map(|event| name(event).replace('"', ""))
            .collect::<Vec<_>>()
    };
    for papers in 1..=4 {
        assert_eq!(run(papers), [""; 0]);
    }
    let runs: Vec<Vec<String>> = (0..5).map(|_| run(4)).collect();
    assert_eq!(runs[1], [""; 0], "so much silence is chance");
    assert_eq!(runs[2], ["silent no_documents"]);
    assert_eq!(runs[4], ["silent no_documents", "silent no_changes"]);
    let sees = run(5);
    assert_eq!(
        sees[2..],
        ["sees_again no_changes", "sees_again no_documents"]
    );
}

#[test]
fn a_window_that_is_too_short_and_a_site_that_blocks_are_reported() {
    let mut watched = Watched::new(json!([{"file": "notified.jsonl"}]));
    let site = watched.web.site("people.example");
    site.serve("/ada", page("Ada").link("/bob").link("/eve"));
    site.serve("/bob", page("Bob")).serve("/eve", page("Eve"));
    (watched.more, watched.crawl) = (json!({"window": "3s"}), json!({"delay": 30}));
    watched.run_once().finish().expect_code(12);
    let reported = |notification: usize| -> Vec<String> {
        let lines = watched.read_lines("notified.jsonl");
        let events = lines[notification]["events"].as_array().cloned();
        let events = events.unwrap_or_default().into_iter();
        let silence = events.filter(|event| event["about"] == "silence");
        let name = |event: Value| format!("{} {}", event["event"], event["detail"]["silence"]);
        silence.map(|event| name(event).replace('"', "")).collect()
    };
    assert_eq!(reported(0), ["silent not_finished"]);

    let challenge = page("Just a moment").status(403);
    let challenge = challenge.header("cf-mitigated", "challenge");
    for path in ["/ada", "/bob", "/eve"] {
        site.serve(path, challenge.clone());
    }
    let mut watched = watched;
    (watched.more, watched.crawl) = (json!({}), json!({"patience": "1s"}));
    let run = watched
        .run_once()
        .env("WEBFILL_BACKOFF_BLOCKED", "600,600,600");
    run.finish().expect_code(12);
    let lines = watched.read_lines("notified.jsonl");
    let events = lines[1]["events"].to_string();
    assert!(events.contains("site_blocked"), "{events}");
    assert!(events.contains("people.example"), "{events}");
}

#[test]
fn a_target_that_cannot_be_used_is_refused_before_anything_is_opened() {
    let watched = Watched::new(json!([{"mail": "a@b.example"}]));
    let refused = watched.run_once().finish().expect_code(2);
    assert!(
        refused.stderr.contains("$.notify[0].mail"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("notifications.smtp"),
        "{}",
        refused.stderr
    );
    assert!(!watched.work.path("state").exists());
}

/// The SMTP server of `tests/mail/server.py`.
struct MailServer {
    process: std::process::Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl MailServer {
    fn start(secrecy: &str, certificates: &Certificates) -> MailServer {
        let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(format!("{repository}/.cache/mail-tools/venv/bin/python"))
            .arg(format!("{repository}/tests/mail/server.py"))
            .arg(folder.path())
            .arg(secrecy)
            .args([certificates.certificate(), certificates.key()])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        MailServer {
            process,
            folder,
            port: line.trim().parse().unwrap(),
        }
    }

    /// The first received mail, and the addresses of its SMTP envelope.
    fn first_mail(&self) -> Option<(String, Value)> {
        let mail = fs::read_to_string(self.folder.path().join("0.eml")).ok()?;
        let envelope = fs::read_to_string(self.folder.path().join("0.json")).ok()?;
        Some((mail, serde_json::from_str(&envelope).unwrap()))
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[needs(mail_tools)]
#[test]
fn mail_is_handed_to_a_real_server_by_tls() {
    let certificates = Certificates::make(&["127.0.0.1"]);
    for (secrecy, scheme) in [("starttls", "smtp"), ("tls", "smtps"), ("plain", "plain")] {
        let server = MailServer::start(secrecy, &certificates);
        let notify = json!([{"mail": "editor@b.example", "about": ["runs"]}]);
        let watched = Watched::new(notify);
        let password = watched.work.write("password", "secret\n");
        let mut run = watched
            .run_once()
            .env(
                "WEBFILL_NOTIFICATIONS_SMTP",
                format!("{scheme}://127.0.0.1:{}", server.port),
            )
            .env("WEBFILL_NOTIFICATIONS_MAIL_FROM", "webfill@b.example");
        if secrecy != "plain" {
            run = run
                .env("WEBFILL_NOTIFICATIONS_CA_FILE", certificates.authority())
                .env("WEBFILL_NOTIFICATIONS_SMTP_USER", "webfill")
                .env("WEBFILL_NOTIFICATIONS_SMTP_PASSWORD_FILE", password);
        }
        let finished = run.finish().expect_code(0);
        let (mail, envelope) = server.first_mail().expect(&finished.stderr);
        assert_eq!(envelope["to"], json!(["editor@b.example"]));
        assert_eq!(envelope["from"], "webfill@b.example");
        assert_eq!(envelope["tls"], secrecy != "plain");
        assert!(mail.contains("Subject: people: run 1: finished"), "{mail}");
        assert!(mail.contains("- run 1: finished; 1 pages"), "{mail}");
        assert!(mail.contains("@b.example>"), "{mail}");
    }
}
