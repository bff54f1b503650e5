//! Tests the files in `deploy/monitoring/` with a real Prometheus.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use webfill_test_needs::needs;

use super::documented::OF_A_JOURNAL;
use super::{DISPATCHER, SUPERVISOR, crawl_two_sites, fleet_with_metrics, scrape_text};
use crate::clients::try_http_at;
use crate::fleet::{Fleet, request_with, wait_for};

const PORT: u16 = 9090;

fn repository_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn promtool_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(repository_path(".cache/prometheus/promtool"));
    command.args(arguments);
    command
}

/// Runs a command of promtool, which must succeed. Returns its output.
fn run_to_success(mut command: Command) -> String {
    let output = command.output().expect("promtool runs");
    let reported = [output.stdout, output.stderr].concat();
    let reported = String::from_utf8_lossy(&reported).into_owned();
    assert!(output.status.success(), "{command:?}: {reported}");
    reported
}

/// A Prometheus server. It is ended when this value is dropped.
struct Prometheus {
    child: Child,
    host: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Starts Prometheus with the shipped configuration. Only the scraped addresses are those of this fleet, and the
    /// interval is shorter.
    fn start(fleet: &Fleet) -> Prometheus {
        Prometheus::start_with(fleet, &[])
    }

    /// Like [`Prometheus::start`], but replaces some texts in the rules of alerts, because a test cannot wait as long
    /// as the shipped rules do.
    fn start_with(fleet: &Fleet, replaced: &[(&str, &str)]) -> Prometheus {
        let host = &fleet.host;
        let config = fs::read_to_string(repository_path("deploy/monitoring/prometheus.yml"));
        let config = config.expect("it is delivered").replace("15s", "1s");
        let ours = ["127.0.0.1:9464", "127.0.0.1:9465"];
        assert!(ours.iter().all(|target| config.contains(target)));
        let config = config.replace("\"127.0.0.1:946", &format!("\"{host}:946"));
        let file = fleet.work.write("prometheus.yml", config);
        let rules = repository_path("deploy/monitoring/webfill.rules.yml");
        let mut rules = fs::read_to_string(rules).expect("they are delivered");
        for (text, other) in replaced {
            assert!(rules.contains(text), "{text}");
            rules = rules.replace(text, other);
        }
        fleet.work.write("webfill.rules.yml", rules);
        let child = Command::new(repository_path(".cache/prometheus/prometheus"))
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                fleet.work.path("tsdb").display()
            ))
            .arg(format!("--web.listen-address={host}:{PORT}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus starts");
        let host = host.clone();
        let prometheus = Prometheus { child, host };
        wait_for("prometheus is ready", || {
            let answer = prometheus.get("/-/ready");
            (answer?.0 == 200).then_some(())
        });
        prometheus
    }

    fn get(&self, path: &str) -> Option<(u16, String)> {
        let head = [
            &format!("GET {path} HTTP/1.0") as &str,
            &format!("Host: {}:{PORT}", self.host),
        ];
        try_http_at((&self.host, PORT), &head, "").ok()
    }

    fn get_data(&self, path: &str) -> Value {
        let (_, body) = self.get(path).expect("it answers");
        let answer: Value =
            serde_json::from_str(&body).unwrap_or_else(|_| panic!("{path}: {body}"));
        assert_eq!(answer["status"], "success", "{path}: {answer}");
        answer["data"].clone()
    }

    /// The current values of all series that a query yields.
    fn query(&self, expression: &str) -> Vec<f64> {
        let encoded: String = expression
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect();
        let data = self.get_data(&format!("/api/v1/query?query={encoded}"));
        let series = data["result"].as_array().expect("a vector");
        let value = |series: &Value| {
            series["value"][1]
                .as_str()
                .and_then(|text| text.parse().ok())
        };
        series
            .iter()
            .map(|series| value(series).unwrap_or(f64::NAN))
            .collect()
    }
}

#[needs(prometheus)]
#[test]
fn prometheus_scrapes_a_fleet_and_knows_all_that_alerts_and_dashboard_name() {
    let fleet = fleet_with_metrics();
    let prometheus = Prometheus::start(&fleet);
    crawl_two_sites(&fleet);
    fleet.back_up();
    for port in [DISPATCHER, SUPERVISOR] {
        let page = fleet.work.write("page", scrape_text(&fleet, port));
        let mut check = promtool_command(&["check", "metrics"]);
        check.stdin(fs::File::open(page).expect("the page"));
        assert_eq!(run_to_success(check), "", "port {port}");
    }
    wait_for(
        "both targets are up, and they report what was fetched",
        || {
            let up = prometheus.query("sum(up{job=~\"webfill-.*\"})");
            let pages = prometheus.query("sum(webfill_pages_total)");
            let ended = prometheus.query("sum(webfill_tasks_ended_total)");
            ([up, pages, ended] == [[2.0], [22.0], [22.0]]).then_some(())
        },
    );
    let ok = prometheus.query("webfill_pages_total{outcome=\"ok\"}");
    let fetches = prometheus.query("webfill_fetch_duration_seconds_count");
    let pages = fleet.web.visits().pages().len() as f64;
    assert_eq!((ok, fetches), (vec![18.0], vec![pages]));
    let groups = prometheus.get_data("/api/v1/rules");
    let groups = groups["groups"].as_array().expect("groups");
    let rules = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules"));
    let rules: Vec<&Value> = rules.collect();
    assert!(rules.len() > 20);
    let mut expressions = panel_expressions();
    assert!(expressions.len() > 50);
    wait_for("each expression of the dashboard yields something", || {
        expressions.retain(|expression| prometheus.query(expression).is_empty());
        match expressions.is_empty() {
            true => Some(()),
            false => {
                eprintln!("nothing yet: {expressions:#?}");
                None
            }
        }
    });
    let named = rules.iter().flat_map(|rule| series_names(&rule["query"]));
    for series in named.filter(|series| !OF_A_JOURNAL.contains(&series.as_str())) {
        let found = prometheus.query(&series);
        assert!(!found.is_empty(), "{series}, which an alert names");
    }
}

/// The states of a real fleet must raise two alerts: tasks wait in a lane without supervisors, and a process crashes
/// again and again.
#[needs(prometheus)]
#[test]
fn an_unserved_lane_and_a_crash_loop_raise_their_alerts() {
    let mut fleet = fleet_with_metrics();
    let lane = "{waits_for=\"lane\"} > 600\n        for: 1m";
    let at_once = "{waits_for=\"lane\"} > 2\n        for: 0s";
    let prometheus = Prometheus::start_with(&fleet, &[(lane, at_once)]);
    let fires = |alert: &str| {
        let alerts = format!("ALERTS{{alertname=\"{alert}\", alertstate=\"firing\"}}");
        !prometheus.query(&alerts).is_empty()
    };
    let scraped = |starts: f64| {
        wait_for("it is scraped", || {
            let metrics = prometheus.query("webfill_starts_total{job=\"webfill-dispatcher\"}");
            (metrics == [starts]).then_some(())
        });
    };
    scraped(1.0);
    assert!(!fires("WebfillLaneUnserved") && !fires("WebfillRestarts"));
    let scripts = json!({"spiderid": "browser"});
    fleet.feed(&[request_with("http://scripts.example/", "scripts", scripts)]);
    wait_for("the lane is missed", || {
        fires("WebfillLaneUnserved").then_some(())
    });
    for starts in [2.0, 3.0, 4.0] {
        fleet.kill_dispatcher();
        fleet.start_dispatcher();
        scraped(starts);
    }
    wait_for("the crash loop is noticed", || {
        fires("WebfillRestarts").then_some(())
    });
}

/// The expressions of all panels of the dashboard, as Grafana sends them to Prometheus.
fn panel_expressions() -> Vec<String> {
    let file = fs::read_to_string(repository_path("deploy/monitoring/webfill.json"));
    let dashboard: Value = serde_json::from_str(&file.expect("it is delivered")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    let expressions = targets
        .flatten()
        .map(|target| target["expr"].as_str().expect("an expression"));
    expressions
        .map(|expression| expression.replace("$__rate_interval", "30s"))
        .collect()
}

/// The names of the metrics in an expression.
fn series_names(expression: &Value) -> Vec<String> {
    let expression = expression.as_str().expect("an expression");
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let names = words.filter(|word| word.starts_with("webfill_") || word.starts_with("process_"));
    names.map(str::to_owned).collect()
}

#[needs(prometheus)]
#[test]
fn each_alert_is_raised_by_its_own_cause_only() {
    let rules = repository_path("deploy/monitoring/webfill.rules.yml");
    let checked = run_to_success(promtool_command(&[
        "check",
        "rules",
        &rules.display().to_string(),
    ]));
    assert!(checked.contains("SUCCESS"), "{checked}");
    let tests = repository_path("tests/prometheus/alerts.test.yml");
    run_to_success(promtool_command(&[
        "test",
        "rules",
        &tests.display().to_string(),
    ]));
    let (rules, tests) = [rules, tests].map(fs::read_to_string).into();
    let (rules, tests) = (rules.expect("text"), tests.expect("text"));
    for line in rules.lines() {
        if let Some((_, alert)) = line.split_once("- alert: ") {
            assert!(tests.contains(&format!("alertname=\"{alert}\"")), "{alert}");
        }
    }
}
