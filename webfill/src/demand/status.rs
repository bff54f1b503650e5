//! `webfill status`: shows the state of the fleet, as tables and sentences.

use clap::Args;
use serde_json::{Map, Value, json};
use webfill_service::{ExitStatus, Fault};

use super::connection::ConnectionOptions;
use super::progress::{format_time, progress_lines};
use super::table::{format_cell, format_pairs, table, without_control_characters};
use crate::stdout::print;

#[derive(Debug, Args)]
pub struct StatusOptions {
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn print_status(options: StatusOptions) -> Result<ExitStatus, Fault> {
    let question = json!({"action": "status"});
    let answer = options.connection.connect()?.send_action(&question)?;
    match options.json {
        true => print(&answer)?,
        false => print(format_answer(&answer))?,
    }
    Ok(ExitStatus::Done)
}

/// The answer for people: the facts of the fleet, then its supervisors, then its unfinished crawls.
fn format_answer(answer: &Value) -> String {
    let Value::Object(answer) = answer else {
        return format_cell(answer);
    };
    let supervisors = answer.get("supervisors").cloned();
    let unfinished = answer.get("unfinished").cloned();
    // Filter into a new map, because removing members would change the order of the rest.
    let others = answer.iter().filter(|(key, _)| {
        let elsewhere = ["action", "supervisors", "unfinished"];
        !elsewhere.contains(&key.as_str())
    });
    let mut answer: Map<String, Value> = others
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    for backend in ["store", "cache"] {
        if let Some(value) = answer.get_mut(backend) {
            *value = describe_backend(value).into();
        }
    }
    if let Some(value) = answer.get_mut("journal") {
        *value = describe_journal(value).into();
    }
    if let Some(value) = answer.get_mut("sites") {
        *value = describe_sites(value).into();
    }
    if let Some(Value::Number(at)) = answer.get("server_time") {
        let at = format_time(&Value::Number(at.clone()));
        answer.insert("server_time".into(), at.into());
    }
    let mut parts = vec![render_rest(&answer)];
    match supervisors.as_ref().and_then(Value::as_array) {
        Some(rows) if rows.is_empty() => parts.push("no supervisor is connected".into()),
        Some(rows) => parts.push(format!("supervisors\n{}", supervisors_table(rows))),
        None => {}
    }
    let crawls = unfinished.as_ref().and_then(Value::as_array);
    let crawls = crawls.into_iter().flatten().map(describe_crawl);
    parts.extend(crawls);
    parts.join("\n\n")
}

/// Describes a server, such as `up, 2.5 ms`.
fn describe_backend(state: &Value) -> String {
    match (&state["up"], &state["fault"]) {
        (Value::Bool(true), _) => format!("up, {} ms", format_cell(&state["latency_ms"])),
        (Value::Bool(false), why) => format!("down: {}", format_cell(why)),
        _ => "not checked yet".into(),
    }
}

/// Describes the journal and the dispatchers that stand by, such as
/// `record 4711; 10.0.0.2:5555 stands by, 0 records behind`.
fn describe_journal(journal: &Value) -> String {
    let standbys = journal["standbys"].as_array().into_iter().flatten();
    let standbys: Vec<String> = standbys.map(describe_standby).collect();
    let standbys = match standbys.is_empty() {
        true => String::from("no dispatcher stands by"),
        false => standbys.join("; "),
    };
    format!("record {}; {standbys}", format_cell(&journal["record"]))
}

fn describe_standby(standby: &Value) -> String {
    let name = format_cell(&standby["name"]);
    let seen_ago_s = standby["seen_ago_s"].as_f64().unwrap_or_default();
    if seen_ago_s > STANDS_BY_S {
        return format!("{name} has not reported for {seen_ago_s:.0} s");
    }
    let behind = format_cell(&standby["behind_records"]);
    match standby["behind_s"].as_f64() {
        Some(behind_s) if behind_s > 0.0 => {
            format!("{name} stands by, {behind} records or {behind_s:.1} s behind")
        }
        _ => format!("{name} stands by, {behind} records behind"),
    }
}

/// Describes the sites, such as `12 in window, at least 1000 waiting`.
fn describe_sites(sites: &Value) -> String {
    let least = match sites["waiting_at_least"] == true {
        true => "at least ",
        false => "",
    };
    let (in_window, waiting) = (
        format_cell(&sites["in_window"]),
        format_cell(&sites["waiting"]),
    );
    format!("{in_window} in window, {least}{waiting} waiting")
}

/// A dispatcher counts as standing by if its last report is at most this many seconds old. It reports every two
/// seconds.
const STANDS_BY_S: f64 = 10.0;

const HEADS: [&str; 10] = [
    "name", "state", "address", "webfill", "heard", "load", "sites", "leased", "workers", "memory",
];

fn supervisors_table(rows: &[Value]) -> String {
    let lines: Vec<Vec<String>> = rows.iter().map(supervisor_row).collect();
    let notes = rows.iter().filter_map(supervisor_note);
    let notes: String = notes.map(|note| format!("\n  {note}")).collect();
    table(&HEADS, &lines) + &notes
}

fn supervisor_row(supervisor: &Value) -> Vec<String> {
    let of = |part: &str, whole: &str| match (&supervisor[part], &supervisor[whole]) {
        (Value::Null, Value::Null) => format_cell(&Value::Null),
        (part, whole) => format!("{} of {}", format_cell(part), format_cell(whole)),
    };
    let heard = match supervisor["heard_ago_s"].as_f64() {
        Some(ago_s) => format!("{ago_s:.1} s ago"),
        None => format_cell(&Value::Null),
    };
    let mib = |key: &str| {
        supervisor[key]
            .as_f64()
            .map(|bytes| bytes / f64::from(1 << 20))
    };
    let memory = match (mib("memory_bytes"), mib("workers_memory_bytes")) {
        (Some(own), Some(workers)) => format!("{own:.0} + {workers:.0} MiB"),
        _ => format_cell(&Value::Null),
    };
    let lane = match supervisor["lane"].as_str() {
        Some("http") | None => String::new(),
        Some(lane) => format!(" ({})", without_control_characters(lane)),
    };
    vec![
        format_cell(&supervisor["id"]),
        format_cell(&supervisor["state"]) + &lane,
        format_cell(&supervisor["address"]),
        format_cell(&supervisor["webfill"]),
        heard,
        of("load", "cores"),
        format_cell(&supervisor["sites"]),
        format_cell(&supervisor["leased"]),
        of("workers_ready", "workers"),
        memory,
    ]
}

/// Describes a supervisor that needs attention, in one sentence.
fn supervisor_note(supervisor: &Value) -> Option<String> {
    let name = format_cell(&supervisor["id"]);
    if let Some(lost_in_s) = supervisor["lost_in_s"].as_f64() {
        return Some(format!(
            "{name} is silent: its tasks go to others in {:.0} s",
            lost_in_s.max(0.0)
        ));
    }
    if supervisor["egress"] == "offline" {
        let since = format_time(&supervisor["offline_since"]);
        return Some(format!(
            "{name} is offline since {since}: {}",
            format_cell(&supervisor["sign"])
        ));
    }
    if let Some(why) = supervisor["holds"].as_str() {
        return Some(format!(
            "{name} starts no fetches: {}",
            without_control_characters(why)
        ));
    }
    let deaths = supervisor["worker_deaths"]
        .as_u64()
        .filter(|deaths| *deaths > 0);
    deaths.map(|deaths| match deaths {
        1 => format!("{name}: a worker died and was restarted"),
        deaths => format!("{name}: workers died {deaths} times and were restarted"),
    })
}

fn describe_crawl(crawl: &Value) -> String {
    let name = format!(
        "{}/{}",
        format_cell(&crawl["appid"]),
        format_cell(&crawl["crawlid"])
    );
    // Omit the rows if there are none, as in most crawls.
    let rows = match crawl["rows_stored"].as_u64() {
        None | Some(0) => String::new(),
        Some(rows) => format!(", {rows} rows stored"),
    };
    let state = format!(
        "{name}: {}, {} pending, {} being fetched, {} done{rows}",
        format_cell(&crawl["state"]),
        format_cell(&crawl["pending"]),
        format_cell(&crawl["leased"]),
        format_cell(&crawl["done"]),
    );
    let lines = progress_lines(crawl).into_iter();
    let lines: String = lines.map(|line| format!("\n  {line}")).collect();
    state + &lines
}

/// Formats the members of the answer that have no format of their own: plain values as pairs, lists of objects as
/// tables, objects of numbers as a line.
fn render_rest(answer: &Map<String, Value>) -> String {
    let mut plain = Vec::new();
    let mut tables = Vec::new();
    for (key, value) in answer {
        match value {
            Value::Array(rows) if rows.iter().any(Value::is_object) => {
                tables.push(format!(
                    "{}\n{}",
                    key.replace('_', " "),
                    objects_table(rows)
                ));
            }
            Value::Object(counts) => {
                let counts = counts.iter().map(|(name, count)| {
                    format!(
                        "{} {}",
                        format_cell(count),
                        without_control_characters(name)
                    )
                });
                plain.push((key.as_str(), counts.collect::<Vec<_>>().join(", ")));
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(format_cell).collect();
                plain.push((key.as_str(), items.join(", ")));
            }
            value => plain.push((key.as_str(), format_cell(value))),
        }
    }
    let plain: Vec<(String, String)> = plain
        .into_iter()
        .map(|(key, value)| (key.replace('_', " "), value))
        .collect();
    let plain: Vec<(&str, String)> = plain
        .iter()
        .map(|(key, value)| (key.as_str(), value.clone()))
        .collect();
    std::iter::once(format_pairs(&plain))
        .chain(tables)
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// A table with a column for each key of the first object.
fn objects_table(rows: &[Value]) -> String {
    let keys: Vec<&String> = rows[0]
        .as_object()
        .into_iter()
        .flat_map(|row| row.keys())
        .collect();
    let heads: Vec<String> = keys.iter().map(|key| key.replace('_', " ")).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            keys.iter()
                .map(|key| format_cell(&row[key.as_str()]))
                .collect()
        })
        .collect();
    table(&heads, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_of_an_answer_are_shown() {
        let answer = json!({
            "version": "0.1.0",
            "queued": 12,
            "outcomes": {"ok": 5, "timeout": 1},
            "machines": [{"id": "vm-01", "held_tasks": 4}, {"id": "vm-02", "held_tasks": 11}],
        });
        let expected = "\
version   0.1.0
queued    12
outcomes  5 ok, 1 timeout

machines
id     held tasks
vm-01           4
vm-02          11";
        assert_eq!(format_answer(&answer), expected);
    }

    #[test]
    fn a_fleet_is_shown_as_a_table_and_its_crawls_in_sentences() {
        let answer = json!({
            "action": "status",
            "store": {"up": true, "latency_ms": 2.5, "fault": null},
            "cache": {"up": false, "fault": "no answer within 5 s"},
            "sites": {"waiting": 1_000, "waiting_at_least": true, "in_window": 12},
            "supervisors": [
                {"id": "one", "lane": "http", "state": "working", "address": "10.0.0.2", "webfill": "0.1.0",
                 "heard_ago_s": 0.42, "load": 0.5, "cores": 2, "sites": 12, "leased": 4, "workers": 2,
                 "workers_ready": 2, "memory_bytes": 31457280, "workers_memory_bytes": 94371840},
                {"id": "old", "lane": "browser", "state": "silent", "address": null, "heard_ago_s": 9.0,
                 "lost_in_s": 72.2, "sites": 1, "leased": 0},
            ],
            "unfinished": [{
                "appid": "app", "crawlid": "c", "state": "running", "pending": 12, "leased": 1, "done": 5,
                "rows_stored": 150,
                "waits": [{"for": "delay", "text": "12 sites wait for their delay"}],
                "done_per_second": 0.5, "not_before": null, "estimated_end": null,
            }],
        });
        let expected = "\
store  up, 2.5 ms
cache  down: no answer within 5 s
sites  12 in window, at least 1000 waiting

supervisors
name  state             address   webfill  heard      load      sites  leased  workers  memory
one   working           10.0.0.2  0.1.0    0.4 s ago  0.5 of 2     12       4  2 of 2   30 + 90 MiB
old   silent (browser)  -         -        9.0 s ago  -             1       0  -        -
  old is silent: its tasks go to others in 72 s

app/c: running, 12 pending, 1 being fetched, 5 done, 150 rows stored
  12 sites wait for their delay
  0.5 tasks a second";
        assert_eq!(format_answer(&answer), expected);
    }
}
