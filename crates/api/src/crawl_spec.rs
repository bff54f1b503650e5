//! The settings of one crawl. The dispatcher keeps them as JSON beside the crawl's tasks, so that a
//! crawl has the same settings after a restart; crawl requests change them
//! ([`SpecChanges`](crate::SpecChanges)).

use serde::{Deserialize, Serialize};
use webfill_wire::{Feature, Follow, Lane};

/// The settings of one crawl: application, scope, limits.
///
/// The application id and the crawl id name the crawl. Everything else may be changed later, and then applies to URLs
/// judged and pages fetched from that moment on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrawlSpec {
    pub app_id: String,
    pub crawl_id: String,
    /// Links are followed down to this depth; seeds are at 0.
    #[serde(default)]
    pub max_depth: u16,
    /// The priority of a seed without one of its own: 1 to 100, the highest first. A link has 10 less than its page,
    /// and at least 1.
    #[serde(default = "default_priority")]
    pub priority: u8,
    #[serde(default = "default_follow")]
    pub follow: Follow,
    /// The kind of supervisor that fetches the crawl's pages: with browsers or without.
    #[serde(default = "default_lane")]
    pub lane: Lane,
    /// Sent in the user agent after webfill's own name, or instead of it if the operator permits that.
    #[serde(default)]
    pub useragent: Option<String>,
    /// The application's own object, stored with every page that has no object from its request.
    #[serde(default)]
    pub attrs: Option<serde_json::Value>,
    /// Only these domains and their subdomains are crawled; an empty list allows all.
    #[serde(default)]
    pub allowed_domains: Vec<String>,
    /// A URL must match one of these patterns; an empty list allows all.
    #[serde(default)]
    pub allow_regex: Vec<String>,
    /// A URL that matches one of these patterns is refused, even if `allow_regex` allows it.
    #[serde(default)]
    pub deny_regex: Vec<String>,
    /// Path extensions that are not fetched; `None` stands for
    /// [`DENIED_EXTENSIONS`](crate::scope::DENIED_EXTENSIONS).
    #[serde(default)]
    pub deny_extensions: Option<Vec<String>>,
    /// How many URLs of one site may become tasks.
    #[serde(default)]
    pub domain_max_pages: Option<u64>,
    /// How many pages the whole crawl may fetch. After that, no further task is leased; the queue stays for a resumed
    /// crawl with a higher limit.
    #[serde(default)]
    pub max_pages: Option<u64>,
    /// A URL whose last outcome is at least this old, in milliseconds, is fetched again when it is
    /// found again.
    #[serde(default)]
    pub refresh_after_ms: Option<u64>,
    /// The current run of a watch, by its beginning in milliseconds since the epoch. Pages fetched before it are
    /// fetched again, once, when they are found again, and the counters count this run only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_began_ms: Option<i64>,
    /// How long the run may take, in milliseconds; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_window_ms: Option<i64>,
    /// The schedule's time from one run to the next, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_period_ms: Option<i64>,
    /// How long the run waits for failing sites and pages, in milliseconds; retries come within this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_patience_ms: Option<u64>,
    /// When the crawl expires, in milliseconds since the epoch. Tasks that are queued at that time end in `expired`.
    #[serde(default)]
    pub expires_at_ms: Option<u64>,
    /// Whether an application feeds the crawl and may add requests at any time. The crawl then counts as finished
    /// whenever nothing is queued or leased. Otherwise `webfill crawl` feeds it and reports the end of its seeds.
    #[serde(default)]
    pub on_demand: bool,
    /// Whether tasks with temporary failures are retried, as the dispatcher's retry table says.
    #[serde(default)]
    pub retry: bool,
    /// Whether the text of pages is stored, too.
    #[serde(default)]
    pub body: bool,
    /// Whether the content of pages is kept to find changes; see [`Feature::Changes`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub changes: bool,
    /// Whether stored pages are requested conditionally; see [`Feature::Conditional`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub conditional: bool,
    /// Whether sitemaps and feeds are read for links; see [`Feature::Sitemaps`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub sitemaps: bool,
    /// Whether the bodies of pages are kept; see [`Feature::KeepBodies`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep_bodies: bool,
}

impl CrawlSpec {
    /// The lane of a crawl whose requests name none.
    pub const DEFAULT_LANE: Lane = Lane::Http;

    /// A crawl with default settings: only its seeds, at middle priority.
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
            run_began_ms: None,
            run_window_ms: None,
            run_period_ms: None,
            run_patience_ms: None,
            expires_at_ms: None,
            on_demand: false,
            retry: false,
            body: false,
            changes: false,
            conditional: false,
            sitemaps: false,
            keep_bodies: false,
        }
    }

    /// The crawl that a first crawl request opens, before the request's own settings: every link is
    /// followed, down to the depth that the request gives.
    pub fn on_demand(app_id: impl Into<String>, crawl_id: impl Into<String>) -> Self {
        CrawlSpec {
            follow: Follow::All,
            on_demand: true,
            retry: true,
            ..CrawlSpec::new(app_id, crawl_id)
        }
    }

    /// The features that the crawl's workers must support, beyond the settings that all versions of messages have.
    pub fn features(&self) -> Vec<Feature> {
        let all = [
            (Feature::Changes, self.changes),
            (Feature::Conditional, self.conditional),
            (Feature::Sitemaps, self.sitemaps),
            (Feature::KeepBodies, self.keep_bodies),
        ];
        let asked = all.into_iter().filter(|(_, is_asked)| *is_asked);
        asked.map(|(feature, _)| feature).collect()
    }

    /// The priority of a URL at this depth that has none of its own.
    pub fn priority_at(&self, depth: u16) -> u8 {
        let lost = depth.saturating_mul(10).min(u8::MAX.into()) as u8;
        self.priority.clamp(1, 100).saturating_sub(lost).max(1)
    }

    /// The differences in scope from an earlier spec: the flag of `webfill crawl`, its former value and the new one.
    /// Links judged by the earlier scope are not judged again.
    pub fn scope_differences(&self, earlier: &CrawlSpec) -> Vec<(&'static str, String, String)> {
        let list = |values: &[String]| values.join(" ");
        let number =
            |value: Option<u64>| value.map_or_else(|| "none".to_owned(), |n| n.to_string());
        let described = |spec: &CrawlSpec| {
            let extensions = spec.deny_extensions.as_deref();
            [
                ("--depth", spec.max_depth.to_string()),
                ("--follow", format!("{:?}", spec.follow).to_lowercase()),
                ("--allowed-domains", list(&spec.allowed_domains)),
                ("--allow-regex", list(&spec.allow_regex)),
                ("--deny-regex", list(&spec.deny_regex)),
                (
                    "--deny-extensions",
                    extensions.map_or_else(|| "built in".to_owned(), list),
                ),
                ("--domain-max-pages", number(spec.domain_max_pages)),
                ("--sitemaps", spec.sitemaps.to_string()),
            ]
        };
        let pairs = described(earlier).into_iter().zip(described(self));
        let differing = pairs.filter(|((_, before), (_, now))| before != now);
        differing
            .map(|((flag, before), (_, now))| (flag, before, now))
            .collect()
    }
}

/// Omits unused features, so that specs without them keep the stored form from before features existed.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
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
    fn differences_in_scope_are_named_by_their_flags() {
        let earlier = CrawlSpec::new("app", "c1");
        let mut spec = earlier.clone();
        spec.max_pages = Some(7);
        assert_eq!(spec.scope_differences(&earlier), []);
        spec.max_depth = 2;
        spec.deny_extensions = Some(vec!["pdf".into(), "zip".into()]);
        let reported = |flag, before: &str, now: &str| (flag, before.to_owned(), now.to_owned());
        assert_eq!(
            spec.scope_differences(&earlier),
            [
                reported("--depth", "0", "2"),
                reported("--deny-extensions", "built in", "pdf zip"),
            ]
        );
    }

    #[test]
    fn priority_falls_by_ten_a_level_and_ends_at_one() {
        let spec = CrawlSpec::new("app", "c1");
        let priorities = [0, 1, 4, 5, 60_000].map(|depth| spec.priority_at(depth));
        assert_eq!(priorities, [50, 40, 10, 1, 1]);
    }
}
