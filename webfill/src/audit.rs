//! `webfill audit`: shows who fed or changed something, and who was refused what. It reads only the audit logs of a
//! dispatcher, of its key folder and of dashboards.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use clap::Args;
use serde_json::Value;
use webfill_service::log::audit::{audit_files, dashboard_audit_file};
use webfill_service::{ExitStatus, Fault, terminal};
use webfill_store::parse_iso_time;

use crate::changes::parse_since;
use crate::keys::KeyFolder;
use crate::settings::Settings;

#[derive(Debug, Args)]
pub struct AuditOptions {
    /// Only entries since this time: 2026-11-20, 2026-11-20T08:00:00Z, or 90s, 15m, 2h, 3d ago
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    pub since: Option<i64>,
    /// Only actions of this key, token or user
    #[arg(long, value_name = "NAME")]
    pub who: Option<String>,
    /// Only this action, such as feed, stop, site, reload, drain, watch_add, mapping_save, keys_add
    #[arg(long, value_name = "ACTION")]
    pub what: Option<String>,
    /// Print one JSON object per line, as in the log
    #[arg(long)]
    pub json: bool,
    /// State folder of the dispatcher [default: .webfill]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Key folder of the dispatcher
    #[arg(long, value_name = "DIR")]
    pub keys: Option<PathBuf>,
    /// Settings file of the dispatcher
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// A JSON line of an audit log, with its time in milliseconds since the epoch.
type DatedLine = (i64, Value);

/// Runs `webfill audit`.
pub fn run(options: AuditOptions) -> Result<ExitStatus, Fault> {
    let mut settings = Settings::load(options.config.as_deref())?;
    settings.state = options.state.clone().unwrap_or(settings.state);
    settings.keys = options.keys.clone().or(settings.keys);
    let folder = settings.log_folder();
    let files = audit_files(&folder).map_err(|error| {
        cannot_read(
            &folder,
            &error,
            "name the dispatcher's state folder with --state",
        )
    })?;
    let of_keys = settings.keys.map(|keys| KeyFolder::new(&keys).audit_file());
    let beside = of_keys.into_iter().chain([dashboard_audit_file(&folder)]);
    let beside: Vec<PathBuf> = beside.filter(|file| file.exists()).collect();
    if files.is_empty() && beside.is_empty() {
        return Err(Fault::usage(format!(
            "no audit log in {}: name the dispatcher's state folder with --state",
            folder.display()
        )));
    }
    // The logs of keys and dashboards are short enough to be sorted in memory.
    let mut beside: Vec<DatedLine> = read_lines(beside)?.collect();
    beside.sort_by_key(|(at_ms, _)| *at_ms);
    let mut beside = beside.into_iter().peekable();
    let mut out = terminal::printable_stdout();
    let recent = files
        .into_iter()
        .filter(|file| options.may_have_wanted_entries(file));
    for dated in read_lines(recent.collect())? {
        while let Some(earlier) = next_line_before(&mut beside, dated.0) {
            if !options.print_if_wanted(&earlier, &mut out)? {
                return Ok(ExitStatus::Done);
            }
        }
        if !options.print_if_wanted(&dated, &mut out)? {
            return Ok(ExitStatus::Done);
        }
    }
    for dated in beside {
        if !options.print_if_wanted(&dated, &mut out)? {
            break;
        }
    }
    Ok(ExitStatus::Done)
}

fn next_line_before(
    lines: &mut Peekable<impl Iterator<Item = DatedLine>>,
    at_ms: i64,
) -> Option<DatedLine> {
    lines.next_if(|(own_ms, _)| *own_ms < at_ms)
}

/// Reads the lines of log files, one file after another. Lines that are not valid JSON are skipped.
fn read_lines(files: Vec<PathBuf>) -> Result<impl Iterator<Item = DatedLine>, Fault> {
    let opened = files
        .into_iter()
        .filter_map(|path| match File::open(&path) {
            // The dispatcher has removed the file since it was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => {
                Some(opened.map_err(|error| cannot_read(&path, &error, "read it as its owner")))
            }
        });
    let opened: Vec<File> = opened.collect::<Result<_, Fault>>()?;
    let lines = opened
        .into_iter()
        .flat_map(|file| BufReader::new(file).lines().map_while(Result::ok));
    Ok(lines.filter_map(|line| {
        let line: Value = serde_json::from_str(&line).ok()?;
        let at_ms = line["timestamp"].as_str().and_then(parse_iso_time);
        Some((at_ms.unwrap_or_default(), line))
    }))
}

impl AuditOptions {
    /// Whether a log file may have entries since the time that `--since` gives. A file that was last written before
    /// that time has none.
    fn may_have_wanted_entries(&self, file: &Path) -> bool {
        let modified = file.metadata().and_then(|file| file.modified()).ok();
        let since_epoch = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let written_ms = since_epoch.map_or(i64::MAX, |at| at.as_millis() as i64);
        self.since.is_none_or(|since_ms| written_ms >= since_ms)
    }

    /// Prints a log entry if the flags `--since`, `--who` and `--what` select it. Returns false if the reader has
    /// closed the output.
    fn print_if_wanted(
        &self,
        (at_ms, line): &DatedLine,
        out: &mut impl Write,
    ) -> Result<bool, Fault> {
        let is = |key: &str, wanted: &Option<String>| {
            wanted.is_none() || line[key].as_str() == wanted.as_deref()
        };
        if self.since.is_some_and(|since_ms| *at_ms < since_ms)
            || !is("who", &self.who)
            || !is("action", &self.what)
        {
            return Ok(true);
        }
        let shown = match self.json {
            true => line.to_string(),
            false => format_entry(line),
        };
        match writeln!(out, "{shown}") {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Fault::error(error)),
            Ok(()) => Ok(true),
        }
    }
}

/// The members of a log entry that have a fixed place at the beginning of the printed line.
const PLACED: [&str; 6] = ["timestamp", "action", "who", "address", "by", "result"];

/// Formats a log entry for people: time, user, address, action, result, then all other members.
fn format_entry(line: &Value) -> String {
    let text = |key: &str| line[key].as_str();
    let who = text("who").or(text("by")).unwrap_or("-");
    let from = text("address").map_or(String::new(), |address| format!(" ({address})"));
    let mut words = vec![
        text("timestamp").unwrap_or("-").to_owned(),
        format!("{who}{from}"),
        text("action").unwrap_or("-").to_owned(),
        text("result").unwrap_or_default().to_owned(),
    ];
    let members = line.as_object().into_iter().flatten();
    let further = members.filter(|(key, _)| !PLACED.contains(&key.as_str()));
    words.extend(further.map(|(key, value)| format!("{key}={}", format_value(key, value))));
    words.retain(|word| !word.is_empty());
    words.join("  ")
}

fn format_value(key: &str, value: &Value) -> String {
    match (key, value) {
        ("crawls", Value::Array(crawls)) => {
            let names = crawls.iter().map(|crawl| {
                let text = |key: &str| crawl[key].as_str().unwrap_or_default();
                format!("{}/{}", text("appid"), text("crawlid"))
            });
            names.collect::<Vec<_>>().join(",")
        }
        (_, Value::String(text)) if text.contains(char::is_whitespace) => format!("\"{text}\""),
        (_, Value::String(text)) => text.clone(),
        (_, other) => other.to_string(),
    }
}

fn cannot_read(path: &Path, error: &std::io::Error, advice: &str) -> Fault {
    Fault::usage(format!("cannot read {}: {error}; {advice}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_has_the_time_the_user_the_action_and_its_result() {
        let line = json!({
            "timestamp": "2026-11-23T08:00:00Z", "action": "feed", "who": "feeder",
            "address": "10.0.0.7", "by": "key", "result": "done", "accepted": 5,
            "crawls": [{"appid": "shop", "crawlid": "monday"}],
        });
        let expected =
            "2026-11-23T08:00:00Z  feeder (10.0.0.7)  feed  done  accepted=5  crawls=shop/monday";
        assert_eq!(format_entry(&line), expected);
        let line = json!({"timestamp": "T", "action": "reload", "by": "signal", "result": "begun"});
        assert_eq!(format_entry(&line), "T  signal  reload  begun");
        let line = json!({"timestamp": "T", "action": "stop", "who": "a", "result": "refused", "why": "not yours"});
        assert_eq!(
            format_entry(&line),
            "T  a  stop  refused  why=\"not yours\""
        );
    }
}
