//! `webfill changes`: lists changes of pages, as judged by the dispatchers of a store. It reads only the store, where a
//! change appears a few seconds after the page was fetched.

use std::time::{Duration, Instant};

use clap::Args;
use webfill_service::signals;
use webfill_service::{ExitStatus, Fault};
use webfill_store::{Change, ChangeFilter, StoreUri, iso_time, open_existing, parse_iso_time};

use crate::cli::parse_duration;
use crate::demand::table::without_control_characters;
use crate::feeding::now_ms;
use crate::stdout::print;

#[derive(Debug, Args)]
pub struct ChangesOptions {
    /// Store to read
    #[arg(
        long,
        value_name = "URI",
        default_value = "sqlite:webfill.db",
        env = "WEBFILL_STORE"
    )]
    pub store: String,
    /// Only changes of this watch
    #[arg(long, value_name = "NAME", conflicts_with = "crawl")]
    pub watch: Option<String>,
    /// Only changes of this application [default with --watch: watches]
    #[arg(long, value_name = "ID")]
    pub app: Option<String>,
    /// Only changes of this crawl
    #[arg(long, value_name = "ID")]
    pub crawl: Option<String>,
    /// Only pages fetched since this time: 2026-11-20, 2026-11-20T08:00:00Z, or 90s, 15m, 2h, 3d ago
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    pub since: Option<i64>,
    /// Keep printing changes as they are found, until interrupted
    #[arg(long)]
    pub follow: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// The application of a watch that names no application.
const WATCHES: &str = "watches";

/// How many changes are read at a time.
const AT_ONCE: u32 = 500;

/// How often a follower queries the store, and how often it reports an unreachable store.
const POLL_EVERY: Duration = Duration::from_secs(1);
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Parses a time such as `2026-11-20` or `3d`; returns milliseconds since the epoch.
pub fn parse_since(text: &str) -> Result<i64, String> {
    let midnight = || parse_iso_time(&format!("{text}T00:00:00Z"));
    if let Some(at_ms) = parse_iso_time(text).or_else(midnight) {
        return Ok(at_ms);
    }
    let ago = parse_duration(text).map_err(|_| {
        String::from(
            "expected a day (2026-11-20), a time (2026-11-20T08:00:00Z), or a time ago (3d)",
        )
    })?;
    Ok(now_ms() - i64::try_from(ago.as_millis()).unwrap_or(i64::MAX))
}

/// Runs `webfill changes`.
pub fn run(options: ChangesOptions) -> Result<ExitStatus, Fault> {
    let uri: StoreUri = options.store.parse().map_err(Fault::usage)?;
    let is_of_watch = options.watch.is_some();
    let filter = ChangeFilter {
        app_id: options
            .app
            .or_else(|| is_of_watch.then(|| WATCHES.to_owned())),
        crawl_id: options.watch.or(options.crawl),
        since_ms: options.since,
    };
    if options.follow {
        signals::install_handlers();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
    let store = runtime
        .block_on(open_existing(&uri))
        .map_err(Fault::error)?;
    let mut after = 0;
    let mut has_printed = false;
    let mut reported_at: Option<Instant> = None;
    loop {
        let read = runtime.block_on(store.content_changes(&filter, after, AT_ONCE));
        let is_full = read
            .as_ref()
            .is_ok_and(|changes| changes.len() == AT_ONCE as usize);
        match read {
            Ok(changes) => {
                reported_at = None;
                for change in changes {
                    has_printed = true;
                    print_change(&change, options.json)?;
                    after = change.number;
                }
            }
            Err(error) if options.follow && error.is_retry() => {
                if reported_at.is_none_or(|reported_at| reported_at.elapsed() > REPORT_EVERY) {
                    webfill_service::say!("webfill: {error}, waiting for it");
                    reported_at = Some(Instant::now());
                }
            }
            Err(error) => return Err(Fault::error(error)),
        }
        if is_full {
            continue;
        }
        if !options.follow || !signals::sleep_unless_interrupted(POLL_EVERY) {
            if !has_printed {
                report_nothing(&filter, is_of_watch, &uri);
            }
            return Ok(ExitStatus::Done);
        }
    }
}

/// Reports that nothing was printed, because the user may have mistyped a name.
fn report_nothing(filter: &ChangeFilter, is_of_watch: bool, uri: &StoreUri) {
    let of_crawl = if is_of_watch { "watch" } else { "crawl" };
    let app = filter.app_id.as_ref().filter(|_| !is_of_watch);
    let app = app.map(|id| format!("the application `{id}`"));
    let crawl = filter.crawl_id.as_ref();
    let crawl = crawl.map(|id| format!("the {of_crawl} `{id}`"));
    let named: Vec<String> = app.into_iter().chain(crawl).collect();
    if !named.is_empty() {
        webfill_service::say!(
            "webfill: {uri} has no such changes of {}",
            named.join(" and ")
        );
    }
}

fn print_change(change: &Change, as_json: bool) -> Result<(), Fault> {
    match as_json {
        true => print(change.json()),
        false => print(format_change(change)),
    }
}

/// Formats a change as a paragraph. Removed text follows `-` or is in `[-…-]`, added text follows `+` or is in `{+…+}`.
/// The text comes from a web page, so control characters are replaced before it reaches the terminal.
fn format_change(change: &Change) -> String {
    let kind = change.kind.as_str();
    let (url, at) = (
        without_control_characters(&change.url),
        iso_time(change.at_ms),
    );
    let mut text = format!("{at}  {kind:<8}{url}\n");
    for line in change.difference.lines() {
        text.push_str(&format!("    {}\n", without_control_characters(line)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_day_a_moment_or_an_age() {
        assert_eq!(parse_since("1970-01-02"), Ok(86_400_000));
        assert_eq!(parse_since("1970-01-01T00:00:01Z"), Ok(1_000));
        let ago = parse_since("3d").unwrap();
        assert!((now_ms() - ago - 3 * 86_400_000).abs() < 60_000);
        assert!(parse_since("lately").unwrap_err().contains("2026-11-20"));
    }
}
