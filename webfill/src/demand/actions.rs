//! `webfill info`, `stop`, `pause` and `resume`: actions of an application on its crawls, sent as the public JSON of
//! the control socket.

use clap::Args;
use serde_json::{Value, json};
use webfill_service::{ExitStatus, Fault};

use super::connection::ConnectionOptions;
use super::progress::progress_lines;
use super::table::{format_cell, format_pairs, table, without_control_characters};
use crate::stdout::print;

#[derive(Debug, Args)]
pub struct ActionOptions {
    /// Application id
    #[arg(value_name = "APPID")]
    pub app_id: String,
    /// Crawl id [default: all crawls of the application]
    #[arg(value_name = "CRAWLID")]
    pub crawl_id: Option<String>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CrawlOptions {
    /// Application id
    #[arg(value_name = "APPID")]
    pub app_id: String,
    /// Crawl id
    #[arg(value_name = "CRAWLID")]
    pub crawl_id: String,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn print_info(options: ActionOptions) -> Result<ExitStatus, Fault> {
    let mut action = new_action("info", &options.app_id, options.crawl_id.as_deref());
    let mut connection = options.connection.connect()?;
    let mut answer = connection.send_action(&action)?;
    // If an application has many crawls, the dispatcher answers in parts.
    while let Some(next) = remove_key(&mut answer, "next") {
        action["after"] = next;
        let mut page = connection.send_action(&action)?;
        let crawls = page["crawlids"].take();
        if let (Value::Object(all), Value::Object(crawls)) = (&mut answer["crawlids"], crawls) {
            all.extend(crawls);
        }
        if let Some(next) = remove_key(&mut page, "next") {
            answer["next"] = next;
        }
    }
    if let Some(unknown) = answer.get("unknown") {
        // The zeros that follow are true, and scripts may ask before they feed anything. So this is no error.
        webfill_service::say!("webfill: {}", unknown_application(&options.app_id, unknown));
    }
    print_answer(&answer, options.json, render_info)
}

/// The message about an application without any crawl. Often it is a crawl's id, or misspelt.
fn unknown_application(app_id: &str, unknown: &Value) -> String {
    let advice = match (unknown["crawl_of"].as_str(), unknown["similar"].as_str()) {
        (Some(app), _) => format!("it is a crawl of `{app}`: webfill info {app} {app_id}"),
        (None, Some(similar)) => format!("did you mean `{similar}`?"),
        (None, None) => String::from("nothing was fed for it"),
    };
    without_control_characters(&format!("no application `{app_id}`: {advice}"))
}

fn remove_key(answer: &mut Value, key: &str) -> Option<Value> {
    answer.as_object_mut()?.remove(key)
}

pub fn stop(options: CrawlOptions) -> Result<ExitStatus, Fault> {
    send_and_print("stop", options, |answer| {
        let purged = format_cell(&answer["total_purged"]);
        format!("stopped permanently, {purged} pending URLs purged")
    })
}

pub fn pause(options: CrawlOptions) -> Result<ExitStatus, Fault> {
    send_and_print("pause", options, |answer| {
        let pending = format_cell(&answer["total_pending"]);
        format!("paused, {pending} URLs pending")
    })
}

pub fn resume(options: CrawlOptions) -> Result<ExitStatus, Fault> {
    send_and_print("resume", options, |answer| {
        let pending = format_cell(&answer["total_pending"]);
        format!("resumed, {pending} URLs pending")
    })
}

fn send_and_print(
    name: &str,
    options: CrawlOptions,
    render: impl FnOnce(&Value) -> String,
) -> Result<ExitStatus, Fault> {
    let action = new_action(name, &options.app_id, Some(&options.crawl_id));
    let answer = options.connection.connect()?.send_action(&action)?;
    let crawl = without_control_characters(&format!("{}/{}", options.app_id, options.crawl_id));
    print_answer(&answer, options.json, |answer| {
        format!("{crawl}: {}", render(answer))
    })
}

pub(super) fn print_answer(
    answer: &Value,
    as_json: bool,
    render: impl FnOnce(&Value) -> String,
) -> Result<ExitStatus, Fault> {
    match as_json {
        true => print(answer)?,
        false => print(render(answer))?,
    }
    Ok(ExitStatus::Done)
}

pub fn new_action(name: &str, app_id: &str, crawl_id: Option<&str>) -> Value {
    let mut action = json!({
        "action": name,
        "appid": app_id,
        "uuid": new_answer_id(),
    });
    if let Some(crawl_id) = crawl_id {
        action["crawlid"] = crawl_id.into();
    }
    action
}

/// Makes a new `uuid` for a request. The firehose (the dispatcher's stream of messages) repeats it with the answer.
fn new_answer_id() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.unwrap_or_default().as_nanos();
    format!("{nanos:x}-{:x}", std::process::id())
}

/// Renders the totals, and one line per crawl.
fn render_info(answer: &Value) -> String {
    let known = [
        ("appid", "application"),
        ("crawlid", "crawl"),
        ("spiderid", "spider"),
        ("state", "state"),
        ("waiting_for", "waits for"),
        ("total_pending", "pending"),
        ("leased", "being fetched"),
        ("total_domains", "pending sites"),
        ("total_crawlids", "pending crawls"),
        ("high_priority", "highest priority"),
        ("low_priority", "lowest priority"),
        ("done", "done"),
        ("pages", "pages"),
        ("outcomes", "outcomes"),
        ("skipped", "skipped links"),
        ("unmatched", "pages of no mapping"),
        ("rows", "rows of pages"),
        ("rows_stored", "rows stored"),
        ("limits", "limits"),
        ("expires", "expires"),
    ];
    // The reasons for waiting are printed below the table as sentences, so they get no column.
    let has_sentences = answer["waits"]
        .as_array()
        .is_some_and(|waits| !waits.is_empty());
    let shown: Vec<(&str, String)> = known
        .iter()
        .filter(|(key, _)| answer.get(*key).is_some() && !(has_sentences && *key == "waiting_for"))
        .map(|(key, name)| (*name, render_cell(key, &answer[*key])))
        .collect();
    let mut totals = format_pairs(&shown);
    let lines = progress_lines(answer);
    if !lines.is_empty() {
        totals = format!("{totals}\n\n{}", lines.join("\n"));
    }
    match answer.get("crawlids").and_then(Value::as_object) {
        Some(crawls) if !crawls.is_empty() => {
            let rows: Vec<Vec<String>> = crawls.iter().map(crawl_row).collect();
            let heads = [
                "crawl",
                "pending",
                "being fetched",
                "highest",
                "lowest",
                "expires",
            ];
            format!("{totals}\n\n{}", table(&heads, &rows))
        }
        _ => totals,
    }
}

/// Formats a member of the answer as a table cell, such as `ok 12, http_error 3` with the most frequent first. A limit
/// is shown with advice how to raise it.
fn render_cell(key: &str, value: &Value) -> String {
    match value {
        Value::Object(counts) if counts.is_empty() => "none".into(),
        Value::Object(counts) => {
            let mut counts: Vec<(&String, u64)> = counts
                .iter()
                .map(|(name, count)| (name, count.as_u64().unwrap_or(0)))
                .collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let parts = counts
                .iter()
                .map(|(name, count)| format!("{} {count}", without_control_characters(name)));
            parts.collect::<Vec<_>>().join(", ")
        }
        Value::Array(limits) if key == "limits" => {
            let parts = limits.iter().map(|limit| format_cell(&limit["text"]));
            parts.collect::<Vec<_>>().join("; ")
        }
        other => format_cell(other),
    }
}

fn crawl_row((id, crawl): (&String, &Value)) -> Vec<String> {
    let keys = [
        "total",
        "leased",
        "high_priority",
        "low_priority",
        "expires",
    ];
    let cells = keys.iter().map(|key| format_cell(&crawl[*key]));
    std::iter::once(without_control_characters(id))
        .chain(cells)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_shown_as_totals_and_a_line_per_crawl() {
        let answer = json!({
            "server_time": 1_429_216_294, "uuid": "u", "appid": "testapp", "total_pending": 12,
            "total_domains": 1, "total_crawlids": 2,
            "crawlids": {
                "2aaabbb": {"total": 1, "low_priority": 29, "high_priority": 29, "expires": 1_429_216_389},
                "1aaabbb": {"total": 11, "leased": 3, "low_priority": 29, "high_priority": 39},
            },
        });
        let expected = "\
application     testapp
pending         12
pending sites   1
pending crawls  2

crawl    pending  being fetched  highest  lowest     expires
2aaabbb        1              -       29      29  1429216389
1aaabbb       11              3       39      29           -";
        assert_eq!(render_info(&answer), expected);
    }

    #[test]
    fn info_shows_what_a_crawl_waits_for() {
        let answer = json!({
            "appid": "testapp", "crawlid": "scripts", "spiderid": "browser", "state": "running",
            "waiting_for": "a supervisor of lane browser", "total_pending": 5, "done": 15, "pages": 15,
            "outcomes": {"http_error": 3, "ok": 12}, "skipped": {},
            "limits": [{"text": "20 of 20 pages (--max-pages): as it is raised"}],
        });
        let expected = "\
application    testapp
crawl          scripts
spider         browser
state          running
waits for      a supervisor of lane browser
pending        5
done           15
pages          15
outcomes       ok 12, http_error 3
skipped links  none
limits         20 of 20 pages (--max-pages): as it is raised";
        assert_eq!(render_info(&answer), expected);
    }
}
