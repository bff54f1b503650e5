//! A watch as the settings of its crawl.

use std::str::FromStr;

use serde_json::Value;

use super::Watch;
use crate::crawl_spec::CrawlSpec;

/// The default of `patience`, which is the same for a run on one machine.
const PATIENCE_MS: u64 = 600_000;

/// The default of `depth`, which is the same for `webfill crawl --depth`.
const DEPTH: u16 = 1;

impl Watch {
    /// The settings of the crawl in the run that began at this time, in milliseconds since the epoch. They equal
    /// those of `webfill crawl` with the same flags.
    pub fn spec(&self, began_ms: i64) -> CrawlSpec {
        let number = |key| self.flag(key).and_then(Value::as_u64);
        let defaults = CrawlSpec::new(&self.app, &self.name);
        CrawlSpec {
            max_depth: number("depth").map_or(DEPTH, |depth| depth as u16),
            follow: self.parse_word("follow").unwrap_or(defaults.follow),
            lane: self.parse_word("lane").unwrap_or(defaults.lane),
            allowed_domains: self.flag_texts("allowed_domains"),
            allow_regex: self.flag_texts("allow_regex"),
            deny_regex: self.flag_texts("deny_regex"),
            deny_extensions: self
                .flag("deny_extensions")
                .map(|_| self.flag_texts("deny_extensions")),
            domain_max_pages: number("domain_max_pages"),
            max_pages: self.max_pages,
            conditional: self
                .flag("conditional")
                .and_then(Value::as_bool)
                .unwrap_or(true),
            run_began_ms: Some(began_ms),
            run_window_ms: self.window_ms,
            run_period_ms: self.schedule.period_ms(began_ms),
            run_patience_ms: Some(self.patience_ms()),
            retry: true,
            sitemaps: self.flag("sitemaps") == Some(&Value::Bool(true)),
            keep_bodies: self.flag("keep_bodies") == Some(&Value::Bool(true)),
            changes: self.detects_changes(),
            ..defaults
        }
    }

    /// How long a run waits for failing sites. It ends when all remaining sites back off for longer; failures are
    /// retried within this time.
    pub fn patience_ms(&self) -> u64 {
        let text = self.flag("patience").and_then(Value::as_str);
        let millis = text.and_then(|text| crate::duration_ms(text).ok());
        millis.map_or(PATIENCE_MS, |millis| millis as u64)
    }

    fn parse_word<T: FromStr>(&self, key: &str) -> Option<T> {
        self.flag(key)?.as_str()?.parse().ok()
    }
}
