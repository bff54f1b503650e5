//! What an application asks of one crawl. Kept as JSON beside the crawl's tasks, so that a
//! resumed crawl knows its own limits.

use serde::{Deserialize, Serialize};
use webfill_wire::{Follow, Lane};

/// One crawl as requested: who asks, how far it goes, what it may touch.
///
/// The app id and the crawl id name it; everything else may change when the crawl is opened
/// again, and then holds for what is judged from that moment on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrawlSpec {
    pub app_id: String,
    pub crawl_id: String,
    /// Links are followed down to this depth; seeds are at 0.
    #[serde(default)]
    pub max_depth: u16,
    /// 1 to 100, higher first. A link has 10 less than its page, and at least 1.
    #[serde(default = "default_priority")]
    pub priority: u8,
    #[serde(default = "default_follow")]
    pub follow: Follow,
    /// What its pages need of a supervisor.
    #[serde(default = "default_lane")]
    pub lane: Lane,
    /// Sent instead of webfill's own user agent.
    #[serde(default)]
    pub useragent: Option<String>,
    /// The application's own object, handed through to every page.
    #[serde(default)]
    pub attrs: Option<serde_json::Value>,
    /// Only these domains and their subdomains; none given: all.
    #[serde(default)]
    pub allowed_domains: Vec<String>,
    /// Where given, a URL must match one of these patterns.
    #[serde(default)]
    pub allow_regex: Vec<String>,
    /// A URL that matches one of these is refused, allowed or not.
    #[serde(default)]
    pub deny_regex: Vec<String>,
    /// Path extensions that are not fetched; `None` stands for
    /// [`DENIED_EXTENSIONS`](crate::scope::DENIED_EXTENSIONS).
    #[serde(default)]
    pub deny_extensions: Option<Vec<String>>,
    /// How many URLs of one site may become tasks.
    #[serde(default)]
    pub domain_max_pages: Option<u64>,
    /// How many pages the whole crawl may fetch. The dispatch stops there; what was found
    /// stays queued for a resumed crawl with a higher limit.
    #[serde(default)]
    pub max_pages: Option<u64>,
    /// A URL whose last outcome is at least this old is fetched again when it is found again.
    #[serde(default)]
    pub refresh_after_ms: Option<u64>,
    /// Milliseconds since the epoch; what is queued then ends in `expired`.
    #[serde(default)]
    pub expires_at_ms: Option<u64>,
    /// Crawled on demand: its seeds come one by one, as long as its application likes, and it is
    /// finished whenever nothing is left to do.
    #[serde(default)]
    pub on_demand: bool,
    /// What fails in a way that may pass is tried again, by the dispatcher's table.
    #[serde(default)]
    pub retry: bool,
    /// The pages' bodies are wanted, too.
    #[serde(default)]
    pub body: bool,
}

impl CrawlSpec {
    /// Of a crawl that does not say.
    pub(crate) const DEFAULT_LANE: Lane = Lane::Http;

    /// A crawl with the defaults of a crawl request: its seeds only, at middle priority.
    pub fn new(app_id: impl Into<String>, crawl_id: impl Into<String>) -> Self {
        CrawlSpec {
            app_id: app_id.into(),
            crawl_id: crawl_id.into(),
            max_depth: 0,
            priority: default_priority(),
            follow: default_follow(),
            lane: CrawlSpec::DEFAULT_LANE,
            useragent: None,
            attrs: None,
            allowed_domains: Vec::new(),
            allow_regex: Vec::new(),
            deny_regex: Vec::new(),
            deny_extensions: None,
            domain_max_pages: None,
            max_pages: None,
            refresh_after_ms: None,
            expires_at_ms: None,
            on_demand: false,
            retry: false,
            body: false,
        }
    }

    /// What a first crawl request opens: every link is followed, down to the depth that it gives.
    pub fn on_demand(app_id: impl Into<String>, crawl_id: impl Into<String>) -> Self {
        CrawlSpec {
            follow: Follow::All,
            on_demand: true,
            retry: true,
            ..CrawlSpec::new(app_id, crawl_id)
        }
    }

    /// The priority of a URL fed at this depth.
    pub(crate) fn priority_at(&self, depth: u16) -> u8 {
        let lost = depth.saturating_mul(10).min(u8::MAX.into()) as u8;
        self.priority.clamp(1, 100).saturating_sub(lost).max(1)
    }
}

fn default_priority() -> u8 {
    50
}

fn default_lane() -> Lane {
    CrawlSpec::DEFAULT_LANE
}

fn default_follow() -> Follow {
    Follow::Mapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_survives_json_and_old_specs_get_the_defaults() {
        let mut spec = CrawlSpec::new("app", "c1");
        spec.deny_extensions = Some(vec!["pdf".into()]);
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<CrawlSpec>(&json).unwrap(), spec);

        let old = r#"{"app_id": "app", "crawl_id": "c1"}"#;
        let old: CrawlSpec = serde_json::from_str(old).unwrap();
        assert_eq!(old, CrawlSpec::new("app", "c1"));
    }

    #[test]
    fn priority_falls_by_ten_a_level_and_ends_at_one() {
        let spec = CrawlSpec::new("app", "c1");
        let priorities = [0, 1, 4, 5, 60_000].map(|depth| spec.priority_at(depth));
        assert_eq!(priorities, [50, 40, 10, 1, 1]);
    }
}
