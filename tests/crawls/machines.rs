//! Tests that a failure of a machine itself costs no URL. If a machine loses its connection to the web, the dispatcher
//! notices this. Its tasks and sites are given to other machines or wait, and the machine is tried again later. A
//! machine that joins late gets its share of sites.

use std::time::Duration;

use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::isolation::{Network, OUR_END, add_address, remove_address, run_isolated};
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

use crate::keyed_fleet::{Client, Fleet, start_serving, wait_for};

/// The address of the web. The machines lose their route to it.
const WEB: &str = "10.88.0.1";

fn serve_pages(web: &Web, sites: usize, pages: usize) -> Vec<String> {
    let site = |number: usize| {
        let site = web.site(&format!("m{number}.example"));
        site.serve_robots("");
        site.serve_otherwise(|request| page(&request.path).into());
        site
    };
    let sites: Vec<_> = (0..sites).map(site).collect();
    let page_of_each = |page| sites.iter().map(move |site| site.url(&format!("/{page}")));
    (0..pages).flat_map(page_of_each).collect()
}

/// Sets backoffs that are longer than the test.
fn with_long_backoffs(run: Run) -> Run {
    let reasons = ["ROBOTS", "UNREACHABLE", "DNS", "BUSY"];
    let name = |reason| format!("WEBFILL_BACKOFF_{reason}");
    reasons
        .into_iter()
        .fold(run, |run, reason| run.env(&name(reason), "600,3600"))
}

fn assert_all_ok(work: &Workplace, urls: &[String]) {
    let stored = work.stored().pages();
    assert_eq!(stored.len(), urls.len());
    for (url, page) in stored {
        assert_eq!(page.outcome, "ok", "{url}");
    }
}

/// The log lines of a crawl's dispatcher about an event.
fn logged_lines(work: &Workplace, event: &str) -> Vec<Value> {
    let logs = work.logs().into_iter();
    let mut lines: Vec<Value> = logs
        .filter(|(name, _)| name.starts_with("dispatcher"))
        .flat_map(|(_, lines)| lines)
        .collect();
    lines.retain(|line| line["event"] == event);
    lines
}

fn wait_until_logged(run: &mut Running, work: &Workplace, event: &str) {
    run.wait_until(event, |_| !logged_lines(work, event).is_empty());
}

#[needs(namespaces)]
#[test]
fn a_crawl_that_loses_its_connection_to_the_web_pauses_and_continues() {
    run_isolated(
        "machines::a_crawl_that_loses_its_connection_to_the_web_pauses_and_continues",
        || {
            add_address(WEB);
            let web = Web::start_on(WEB.parse().expect("an address"));
            let urls = serve_pages(&web, 100, 12);
            let work = Workplace::new();
            let mut run = with_long_backoffs(work.crawl_without_delay(&web))
                .args(["--delay", "0.5"])
                .arg("--config")
                .arg(work.write_short_timeouts())
                .args(&urls)
                .start();
            web.log()
                .wait_until("it is under way", |visits| visits.pages().len() >= 300);
            remove_address(WEB);
            wait_until_logged(&mut run, &work, "machine_offline");
            let asked = web.visits().pages().len();
            assert!(asked < urls.len(), "it was too late: {asked} pages");
            add_address(WEB);
            let finished = run.finish().expect_code(0);
            assert_eq!(finished.summary().outcome_count("ok"), urls.len() as u64);
            assert_all_ok(&work, &urls);
            assert!(!logged_lines(&work, "machine_online").is_empty());
        },
    );
}

#[needs(namespaces)]
#[test]
fn a_machine_without_a_connection_to_the_web_says_so_and_ends_no_task() {
    run_isolated(
        "machines::a_machine_without_a_connection_to_the_web_says_so_and_ends_no_task",
        || {
            add_address(WEB);
            let web = Web::start_on(WEB.parse().expect("an address"));
            let urls = serve_pages(&web, 20, 2);
            remove_address(WEB);
            let work = Workplace::new();
            let crawl = || {
                with_long_backoffs(work.crawl_without_delay(&web))
                    .args(["--delay", "0.1"])
                    .replace_flag("--summary", "human")
            };
            let run = crawl()
                .args(["--patience", "1s"])
                .args(&urls)
                .finish()
                .expect_code(12);
            for part in ["is offline", "unreachable", "40 left", "resume with"] {
                assert!(
                    run.stdout.contains(part),
                    "`{part}` is not in {}",
                    run.stdout
                );
            }
            add_address(WEB);
            crawl().finish().expect_code(0);
            assert_all_ok(&work, &urls);
        },
    );
}

/// A crawl of 200 sites by two machines. The second machine has its own route to the web.
struct TwoMachines {
    web: Web,
    fleet: Fleet,
    client: Client,
    processes: Vec<Running>,
    network: Network,
    urls: Vec<String>,
    crawl: Value,
}

const ROUTE: &str = "10.88.0.0/16";

impl TwoMachines {
    fn start() -> TwoMachines {
        add_address(WEB);
        let network = Network::connect();
        network.add_route(ROUTE);
        let web = Web::start_on(WEB.parse().expect("an address"));
        let urls = serve_pages(&web, 200, 20);
        let fleet = Fleet::start_at(OUR_END);
        fleet.new_member("client", "feeder");
        let mut processes = vec![start_serving(fleet.dispatcher_run())];
        for name in ["near", "far"] {
            fleet.new_member("supervisor", name);
            let mut supervisor = fleet
                .supervisor_run(&web, name)
                .env("WEBFILL_POLITENESS_DELAY", "1");
            if name == "far" {
                supervisor = supervisor.in_network(&network);
            }
            processes.push(supervisor.start());
        }
        fleet.wait_until_logged_times("supervisor_joined", 2);
        let client = fleet.client("feeder");
        let crawl = client.open_crawl("two", &urls);
        web.log()
            .wait_until("it is under way", |visits| visits.pages().len() >= 250);
        TwoMachines {
            web,
            fleet,
            client,
            processes,
            network,
            urls,
            crawl,
        }
    }

    fn far_machine_report(&self) -> Value {
        supervisor_status(&self.client, "far")
    }

    fn finish(self) {
        self.client.wait_until_finished(&self.crawl);
        for process in self.processes.into_iter().rev() {
            process.signal(Signal::TERM);
            process.finish().expect_code(0);
        }
        assert_all_ok(&self.fleet.work, &self.urls);
        self.web.visits().assert_polite(Duration::from_millis(900));
    }
}

/// The entry of a supervisor in the answer to `status`.
fn supervisor_status(client: &Client, name: &str) -> Value {
    let status = client.request(&json!({"action": "status"}));
    let all = status["supervisors"].as_array().expect("a list").clone();
    let found = all.into_iter().find(|one| one["id"] == name);
    found.unwrap_or_else(|| panic!("no supervisor {name}: {status}"))
}

#[needs(namespaces)]
#[test]
fn a_supervisor_that_loses_its_route_costs_no_url_and_is_tried_again() {
    run_isolated(
        "machines::a_supervisor_that_loses_its_route_costs_no_url_and_is_tried_again",
        || {
            let machines = TwoMachines::start();
            assert!(
                machines.far_machine_report()["sites"].as_u64() > Some(50),
                "{}",
                machines.far_machine_report()
            );
            machines.network.remove_route(ROUTE);
            machines
                .fleet
                .wait_until_logged("machine_offline", "\"far\"");
            let far = machines.far_machine_report();
            assert_eq!(far["egress"], "offline", "{far}");
            // The first failures may be requests that were on their way, which just get no answer. A probe gets an error.
            wait_for("a probe shows that there is no route", || {
                let far = machines.far_machine_report();
                let sign = far["sign"].as_str()?;
                sign.contains("unreachable").then_some(())
            });
            wait_for("its sites are with the other", || {
                (machines.far_machine_report()["sites"].as_u64() <= Some(1)).then_some(())
            });
            // The kernel of the offline machine drops unsent data soon. By now, it has no request left to send.
            let asked = machines.web.visits().pages().len();
            machines
                .web
                .log()
                .wait_until("the other continues", |visits| {
                    visits.pages().len() >= asked + 600
                });
            machines.network.add_route(ROUTE);
            machines
                .fleet
                .wait_until_logged("machine_online", "\"far\"");
            assert_eq!(machines.far_machine_report()["egress"], "open");
            wait_for("it has its share again", || {
                (machines.far_machine_report()["sites"].as_u64() > Some(50)).then_some(())
            });
            machines.finish();
        },
    );
}

#[test]
fn a_machine_that_joins_late_gets_its_share_of_the_sites() {
    let web = Web::start();
    let urls = serve_pages(&web, 60, 40);
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    fleet.new_member("supervisor", "first");
    fleet.new_member("supervisor", "late");
    let dispatcher = start_serving(fleet.dispatcher_run());
    let first = fleet.supervisor_run(&web, "first").start();
    let client = fleet.client("feeder");
    let crawl = client.open_crawl("shared", &urls);
    web.log()
        .wait_until("it is under way", |visits| visits.pages().len() >= 120);
    let late = fleet.supervisor_run(&web, "late").start();
    wait_for("the sites are shared", || {
        let status = client.request(&json!({"action": "status"}));
        let sites = |number: usize| status["supervisors"][number]["sites"].as_u64();
        (sites(0)? >= 25 && sites(1)? >= 25).then_some(())
    });
    client.wait_until_finished(&crawl);
    for process in [first, late, dispatcher] {
        process.signal(Signal::TERM);
        process.finish().expect_code(0);
    }
    assert_all_ok(&fleet.work, &urls);
    web.visits().assert_polite(Duration::from_millis(45));
}
