//! `webfill site`: shows or changes the settings of one site in a running fleet, or in a crawl on this machine.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use webfill_service::{ExitStatus, Fault};

use super::connection::ConnectionOptions;
use super::local_site;
use super::table::{format_cell, format_pairs};
use crate::cli::{parse_duration, parse_seconds};
use crate::stdout::print;

/// The text that removes a setting.
const NONE: &str = "none";

#[derive(Debug, Args)]
pub struct SiteOptions {
    /// Site: a registrable domain, or an IP address
    #[arg(value_name = "SITE")]
    pub site: String,
    /// Seconds between two requests, or `none`; never below the Crawl-delay in robots.txt
    #[arg(long, value_name = "SECONDS")]
    pub delay: Option<String>,
    /// Send no request before this time: seconds since the epoch, a time from now (90s, 15m, 2h, 1d), or `none`
    #[arg(long, value_name = "TIME")]
    pub block_until: Option<String>,
    /// Fetch at most N more pages over all crawls, or `none`; the rest of its queue waits
    #[arg(long, value_name = "N")]
    pub limit: Option<String>,
    /// Fetch its pages with a browser, without one, or as each page needs it (`auto`); a mapping's `lane` overrides it
    #[arg(long, value_name = "LANE")]
    pub lane: Option<SiteLane>,
    /// Forget all rules and everything learned about the site, except the time of its last request
    #[arg(long)]
    pub forget: bool,
    /// End its backoff now: one task is tried first; if it fails, the site backs off again
    #[arg(long)]
    pub wake: bool,
    /// State folder of a `webfill crawl` instead of a dispatcher
    ///
    /// If no crawl is running in it, --wake and --lane apply to the next one.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dispatcher", "keys", "config"])]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// The lane for fetching the pages of a site.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SiteLane {
    Http,
    Browser,
    Auto,
}

impl SiteLane {
    fn as_str(self) -> &'static str {
        match self {
            SiteLane::Http => "http",
            SiteLane::Browser => "browser",
            SiteLane::Auto => "auto",
        }
    }
}

pub fn run_site_action(options: SiteOptions) -> Result<ExitStatus, Fault> {
    let action = site_action(&options).map_err(Fault::usage)?;
    let answer = match &options.state {
        Some(state) => local_site::apply_action_locally(state, &action)?,
        None => options.connection.connect()?.send_action(&action)?,
    };
    match options.json {
        true => print(&answer)?,
        false => print(format_answer(&answer))?,
    }
    Ok(ExitStatus::Done)
}

fn site_action(options: &SiteOptions) -> Result<Value, String> {
    let mut action = json!({"action": "site", "site": options.site});
    if let Some(text) = &options.delay {
        action["delay"] =
            parse_or_none("--delay", text, |text| parse_seconds(text).map(Value::from))?;
    }
    if let Some(text) = &options.block_until {
        action["block_until"] = parse_or_none("--block-until", text, |text| {
            parse_moment(text, SystemTime::now()).map(Value::from)
        })?;
    }
    if let Some(text) = &options.limit {
        action["limit"] = parse_or_none("--limit", text, |text| {
            let number: Result<u64, _> = text.parse();
            number
                .map(Value::from)
                .map_err(|_| "not a whole number".into())
        })?;
    }
    if let Some(lane) = options.lane {
        action["lane"] = lane.as_str().into();
    }
    if options.forget {
        action["forget"] = true.into();
    }
    if options.wake {
        action["wake"] = true.into();
    }
    Ok(action)
}

fn parse_or_none(
    flag: &str,
    text: &str,
    read: impl FnOnce(&str) -> Result<Value, String>,
) -> Result<Value, String> {
    match text {
        NONE => Ok(Value::Null),
        text => read(text).map_err(|why| format!("{flag} `{text}`: {why}, nor `{NONE}`")),
    }
}

/// Parses a point in time, as seconds since the epoch or a duration from now.
fn parse_moment(text: &str, now: SystemTime) -> Result<u64, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    let from_now: Duration = parse_duration(text)
        .map_err(|_| String::from("neither seconds since the epoch nor a time from now"))?;
    let moment = now + from_now;
    let since_epoch = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(since_epoch.as_secs_f64().ceil() as u64)
}

fn format_answer(answer: &Value) -> String {
    let Value::Object(answer) = answer else {
        return format_cell(answer);
    };
    let members = answer.iter().filter(|(key, _)| *key != "action");
    let members: Vec<(String, String)> = members
        .map(|(key, value)| (key.replace('_', " "), format_cell(value)))
        .collect();
    let members: Vec<(&str, String)> = members
        .iter()
        .map(|(key, value)| (key.as_str(), value.clone()))
        .collect();
    format_pairs(&members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_number_or_a_time_from_now() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        assert_eq!(parse_moment("1429216389", now), Ok(1_429_216_389));
        assert_eq!(parse_moment("15m", now), Ok(1_900));
        assert!(parse_moment("tomorrow", now).is_err());
    }
}
