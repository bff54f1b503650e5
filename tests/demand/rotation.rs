//! Tests that the dispatcher's key can be replaced during a crawl, with the commands in docs/how-to/operate.md.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_tests::Signal;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::page;
use webfill_tests::workplace::files_under;

use crate::fleet::{APP, request, wait_for};
use crate::keyed::Keyed;

const RUNBOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/how-to/operate.md");
const CERTS: &str = "/etc/webfill/certs";
const SUPERVISORS: [&str; 2] = ["vm-01", "vm-02"];
const SITES: usize = 8;
const PAGES: usize = 60;

/// The longest time until all supervisors are connected again after a restart of the dispatcher. It covers some
/// attempts to connect, with pauses between them.
const BACK_WITHIN: Duration = Duration::from_secs(20);

/// The commands of the runbook about rotating keys, in order.
fn runbook_commands() -> Vec<String> {
    let text = fs::read_to_string(RUNBOOKS).expect("the runbooks");
    let (_, text) = text.split_once("## Rotate keys").expect("the runbook");
    let (text, _) = text.split_once("\n### ").expect("another runbook");
    let lines = text.lines().filter(|line| line.starts_with("    "));
    lines.map(|line| line.trim().to_owned()).collect()
}

/// Runs a command of the runbook. The test's folder of keys takes the place of the folder in the command.
fn run_runbook_command(keyed: &Keyed, command: &str, folder: &str) {
    let folder = keyed.work.path(folder);
    let command = command.replace(CERTS, folder.to_str().expect("plain"));
    let words: Vec<&str> = command.split(' ').collect();
    match words[0] {
        "webfill" => drop(Run::new(&words[1..]).finish().expect_code(0)),
        "rm" => words[1..]
            .iter()
            .for_each(|file| fs::remove_file(file).expect(file)),
        other => panic!("`{other}` is not known"),
    }
}

fn start_supervisor(keyed: &Keyed, name: &str) -> Running {
    let state = state_folder(keyed, name);
    let resolve = keyed.web.resolve_args()[1].clone();
    let run = keyed.supervisor_run(name).replace_flag("--state", state);
    run.env("WEBFILL_FETCH_RESOLVE", resolve).start()
}

fn state_folder(keyed: &Keyed, name: &str) -> PathBuf {
    keyed.work.path(&format!("state/{name}"))
}

/// The lines that a process has logged about an event so far.
fn logged_lines(keyed: &Keyed, name: &str, event: &str) -> Vec<Value> {
    let mut files = files_under(&state_folder(keyed, name).join("logs"));
    files.retain(|file| !file.is_symlink());
    let texts = files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok());
    let text: String = texts.collect();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|line: &Value| line["event"] == event)
        .collect()
}

/// The number of supervisors in the dispatcher's status.
fn count_supervisors(keyed: &Keyed) -> usize {
    let status = keyed
        .command(&["status", "--json"], Some("feeder"))
        .finish();
    let status: Value = serde_json::from_str(&status.expect_code(0).stdout).expect("JSON");
    status["supervisors"].as_array().expect("a list").len()
}

fn feed_pages(keyed: &Keyed, sites: &[String]) {
    let urls = sites
        .iter()
        .flat_map(|site| (0..PAGES).map(move |n| format!("{site}{n}")));
    let lines: String = urls
        .map(|url| format!("{}\n", request(&url, "c")))
        .collect();
    let fed = keyed.command(&["feed", "-"], Some("feeder")).input(lines);
    fed.finish().expect_code(0);
}

fn wait_until_done(keyed: &Keyed) {
    wait_for("all is fetched", || {
        let info = keyed.command(&["info", APP, "c", "--json"], Some("feeder"));
        let info: Value = serde_json::from_str(&info.finish().expect_code(0).stdout).expect("JSON");
        (info["state"] == "finished").then_some(())
    });
}

#[test]
fn the_dispatchers_key_is_replaced_under_load_as_the_runbook_says() {
    let keyed = Keyed::new();
    for name in SUPERVISORS.into_iter().chain(["forgotten"]) {
        keyed.create_member("supervisor", name, true);
    }
    keyed.create_member("client", "feeder", true);
    keyed.create_member("client", "stranger", false);
    let sites: Vec<_> = (0..SITES)
        .map(|n| keyed.web.site(&format!("k{n}.example")))
        .collect();
    for site in &sites {
        site.serve_otherwise(|request| page(&request.path).into());
        site.set_latency(Duration::from_millis(20));
    }
    let urls: Vec<String> = sites.iter().map(|site| site.url("/")).collect();
    let dispatcher = keyed.start_dispatcher();
    let mut supervisors = SUPERVISORS.map(|name| start_supervisor(&keyed, name));
    wait_for("both are there", || {
        (count_supervisors(&keyed) == SUPERVISORS.len()).then_some(())
    });
    let [dump, nosy] =
        ["feeder", "stranger"].map(|who| keyed.command(&["dump"], Some(who)).start());
    feed_pages(&keyed, &urls);
    let asked = || keyed.web.visits().pages().len();
    wait_for("it is under way", || (asked() >= SITES * 3).then_some(()));

    let commands = runbook_commands();
    let [make_next, rotate, restart, follow, remove_former] = &commands[..] else {
        panic!("{commands:#?}")
    };
    run_runbook_command(&keyed, make_next, "keys");
    let next = fs::read(keyed.work.path("keys/dispatcher-next.pub")).expect("it was made");
    for folder in SUPERVISORS.into_iter().chain(["feeder"]) {
        keyed
            .work
            .write(&format!("{folder}/dispatcher-next.pub"), &next);
    }
    run_runbook_command(&keyed, rotate, "keys");
    assert_eq!(restart, "systemctl restart webfill-dispatcher");
    assert!(asked() < SITES * PAGES / 2, "it is in the middle");
    dispatcher.signal(Signal::TERM);
    dispatcher.finish().expect_code(0);
    let dispatcher = keyed.start_dispatcher();
    let ready = Instant::now();
    wait_for("all are back", || {
        (count_supervisors(&keyed) == SUPERVISORS.len()).then_some(())
    });
    let took = ready.elapsed();
    assert!(took < BACK_WITHIN, "all were back after {took:?}");
    for name in SUPERVISORS {
        let admitted = logged_lines(&keyed, name, "admitted");
        let by = |file: &str| admitted.iter().filter(|line| line["file"] == file).count();
        assert_eq!(
            (by("dispatcher.pub"), by("dispatcher-next.pub")),
            (2, 2),
            "tasks and outcomes: {admitted:#?}"
        );
    }

    // A supervisor that still trusts only the former key prints what to do. For some time, the dispatcher does not
    // treat it as a stranger.
    let mut forgotten = start_supervisor(&keyed, "forgotten");
    forgotten.wait_for_stderr("dispatcher-next.pub");
    keyed.wait_until_logged("handshake_failed", "was replaced");
    let refused = logged_lines(&keyed, "dispatcher", "peer_refused");
    let stranger = fs::read_to_string(keyed.work.path("stranger/client.pub")).expect("a key");
    assert!(
        refused.iter().all(|line| line["key"] == stranger.trim()),
        "none of ours would be banned: {refused:#?}"
    );
    for folder in SUPERVISORS.into_iter().chain(["feeder"]) {
        run_runbook_command(&keyed, follow, folder);
    }
    run_runbook_command(&keyed, remove_former, "keys");
    wait_until_done(&keyed);

    let visits = keyed.web.visits();
    assert_eq!(visits.pages().counts().len(), SITES * PAGES);
    assert_eq!(visits.pages().len(), SITES * PAGES, "nothing twice");
    let stored = keyed.work.stored().pages();
    assert_eq!(stored.len(), SITES * PAGES);
    assert!(stored.values().all(|page| page.outcome == "ok"));
    wait_for("the firehose continues", || {
        dump.stdout_so_far()
            .contains(&format!("/{}", PAGES - 1))
            .then_some(())
    });
    assert_eq!(nosy.stdout_so_far(), "", "a stranger hears nothing");
    assert!(logged_lines(&keyed, "forgotten", "admitted").is_empty());
    assert_eq!(
        count_supervisors(&keyed),
        SUPERVISORS.len(),
        "all have followed"
    );
    // The supervisor is admitted as soon as it finds this file.
    keyed.work.write("forgotten/dispatcher-next.pub", &next);
    forgotten.wait_for_stderr("ready");
    supervisors
        .iter_mut()
        .for_each(|one| assert!(one.exit_status().is_none()));
    drop(dispatcher);
}
