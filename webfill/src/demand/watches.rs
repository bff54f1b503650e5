//! `webfill watch add`, `list`, `show`, `run NAME`, `pause`, `resume` and `remove`: manage the watches of a running
//! fleet.

use clap::Args;
use serde_json::{Value, json};
use webfill_api::Refusal;
use webfill_service::{ExitStatus, Fault};

use super::actions::print_answer;
use super::connection::ConnectionOptions;
use super::table::{format_cell, format_pairs, table, without_control_characters};

#[derive(Debug, Args)]
pub struct WatchAddOptions {
    /// Watch: a JSON file, or the JSON itself
    #[arg(value_name = "FILE|JSON")]
    pub watch: String,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct WatchListOptions {
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct WatchShowOptions {
    /// Name of the watch
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Number of runs to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub runs: u64,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct WatchNameOptions {
    /// Name of the watch
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn watch_add(options: WatchAddOptions) -> Result<ExitStatus, Fault> {
    let (place, watch) = read_watch(&options.watch)?;
    let parsed = webfill_api::Watch::parse(watch.clone());
    let checked = parsed.and_then(|watch| watch.check_for_fleet("$"));
    checked.map_err(|refusal| refusal_fault(&place, &refusal))?;
    let action = json!({"action": "watch_add", "watch": watch});
    let answer = options.connection.connect()?.send_action(&action)?;
    print_answer(&answer, options.json, |answer| {
        let done = match answer["changed"] == true {
            true => "changed, effective from its next run",
            false => "added",
        };
        format!(
            "{}: {done}; next run {}",
            format_cell(&answer["name"]),
            format_time(&answer["next"])
        )
    })
}

pub fn watch_list(options: WatchListOptions) -> Result<ExitStatus, Fault> {
    let action = json!({"action": "watch_list"});
    let answer = options.connection.connect()?.send_action(&action)?;
    print_answer(&answer, options.json, |answer| {
        let watches = answer["watches"].as_array().into_iter().flatten();
        let rows: Vec<Vec<String>> = watches.map(watch_row).collect();
        let heads = ["watch", "state", "schedule", "next", "last", "how", "pages"];
        table(&heads, &rows)
    })
}

pub fn watch_show(options: WatchShowOptions) -> Result<ExitStatus, Fault> {
    let action = json!({"action": "watch_show", "name": options.name, "runs": options.runs});
    let answer = options.connection.connect()?.send_action(&action)?;
    print_answer(&answer, options.json, |answer| {
        let head = format_pairs(&[
            ("watch", format_cell(&answer["name"])),
            ("application", format_cell(&answer["app"])),
            ("state", format_cell(&answer["state"])),
            ("schedule", format_cell(&answer["schedule"])),
            ("time zone", format_cell(&answer["time_zone"])),
            ("next run", format_time(&answer["next"])),
        ]);
        let runs = answer["runs"].as_array().into_iter().flatten();
        let rows: Vec<Vec<String>> = runs.map(run_row).collect();
        let heads = [
            "run", "due", "started", "ended", "how", "pages", "fields", "skipped", "why",
        ];
        format!(
            "{head}{}\n\n{}",
            describe_problems(answer),
            table(&heads, &rows)
        )
    })
}

/// Problems of a watch: silence, and undelivered notifications.
fn describe_problems(answer: &Value) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut text = String::new();
    for silent in list(&answer["silent"]) {
        let (since, why) = (format_time(&silent["since"]), format_cell(&silent["why"]));
        text.push_str(&format!("\nsilent since {since}: {why}"));
    }
    for one in list(&answer["notifications"]["undelivered"]) {
        let (since, why) = (format_time(&one["since"]), format_cell(&one["why"]));
        let target = format_cell(&one["target"]);
        text.push_str(&format!("\nunreachable since {since}: {target}: {why}"));
    }
    match answer["notifications"]["waiting"].as_u64() {
        None | Some(0) => text,
        Some(waiting) => format!("{text}\nwaiting notifications: {waiting}"),
    }
}

pub fn watch_run(options: WatchNameOptions) -> Result<ExitStatus, Fault> {
    send_and_print("watch_run", &options, |_| "a run begins".into())
}

pub fn watch_pause(options: WatchNameOptions) -> Result<ExitStatus, Fault> {
    send_and_print("watch_pause", &options, |answer| {
        match answer["state"] == "running" {
            true => "paused; the current run finishes".into(),
            false => "paused".into(),
        }
    })
}

pub fn watch_resume(options: WatchNameOptions) -> Result<ExitStatus, Fault> {
    send_and_print("watch_resume", &options, |answer| {
        format!("resumed; next run {}", format_time(&answer["next"]))
    })
}

pub fn watch_remove(options: WatchNameOptions) -> Result<ExitStatus, Fault> {
    send_and_print("watch_remove", &options, |_| "removed".into())
}

fn send_and_print(
    action: &str,
    options: &WatchNameOptions,
    render: impl FnOnce(&Value) -> String,
) -> Result<ExitStatus, Fault> {
    let action = json!({"action": action, "name": options.name});
    let answer = options.connection.connect()?.send_action(&action)?;
    let name = without_control_characters(&options.name);
    print_answer(&answer, options.json, |answer| {
        format!("{name}: {}", render(answer))
    })
}

/// Reads a watch from a file or from the argument itself. Returns the name of its source, for error messages, and its
/// content.
fn read_watch(text: &str) -> Result<(String, Value), Fault> {
    if text.trim_start().starts_with('{') {
        let place = String::from("the watch");
        let watch = webfill_api::parse(text.as_bytes());
        return watch
            .map_err(|refusal| refusal_fault(&place, &refusal))
            .map(|watch| (place, watch));
    }
    let cannot = |error: std::io::Error| Fault::usage(format!("{text}: {error}"));
    let content = std::fs::read(text).map_err(cannot)?;
    let watch = webfill_api::parse(&content).map_err(|refusal| refusal_fault(text, &refusal))?;
    Ok((text.to_owned(), watch))
}

fn refusal_fault(place: &str, refusal: &Refusal) -> Fault {
    Fault::usage(match refusal.path.as_str() {
        "$" => format!("{place}: {}", refusal.message),
        path => format!("{place}: {path}: {}", refusal.message),
    })
}

fn watch_row(watch: &Value) -> Vec<String> {
    let last = &watch["last_run"];
    vec![
        format_cell(&watch["name"]),
        format_cell(&watch["state"]),
        format_cell(&watch["schedule"]),
        format_time(&watch["next"]),
        format_time(&last["started"]),
        format_cell(&last["how"]),
        format_cell(&last["counts"]["pages"]),
    ]
}

fn run_row(run: &Value) -> Vec<String> {
    vec![
        format_cell(&run["run"]),
        format_time(&run["due"]),
        format_time(&run["started"]),
        format_time(&run["ended"]),
        format_cell(&run["how"]),
        format_cell(&run["counts"]["pages"]),
        format_cell(&run["counts"]["fields"]),
        format_cell(&run["skipped"]),
        format_cell(&run["why"]),
    ]
}

/// Formats seconds since the epoch for people.
fn format_time(seconds: &Value) -> String {
    match seconds.as_f64() {
        Some(seconds) => webfill_store::iso_time((seconds * 1_000.0) as i64),
        None => "-".into(),
    }
}
