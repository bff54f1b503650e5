//! The rules of one robots.txt for one agent, by RFC 9309: what may be fetched, with what delay, and where the sitemaps
//! are.
//!
//! Groups and rules are parsed and matched here. `texting_robots` only reads the values of `Crawl-delay` and `Sitemap`,
//! from lines selected for it. It does not get whole files: it would allow some forbidden URLs, and need seconds and
//! hundreds of megabytes for a hostile file. After any error, everything is forbidden.

mod hints;
mod lines;
mod pattern;

use webfill_urls::{Url, normalise_escapes};

use hints::Hints;
pub use lines::is_text;
use lines::{RuleLine, Selected};
use pattern::{Pattern, comparable_path};

/// The number of bytes of a robots.txt that count: the minimum of RFC 9309 (2.5), and Google's limit.
pub const MAX_ROBOTS_BYTES: usize = 500 * 1024;

/// The rules that concern one agent, in a compact form for caching. The default has no rules, and allows everything.
#[derive(Debug, Clone, Default)]
pub struct RobotsRules {
    /// The texts of all patterns, one after the other.
    patterns: Box<[u8]>,
    /// The rules in order of precedence, so that the first match decides.
    rules: Box<[Rule]>,
    crawl_delay_ms: Option<u64>,
    sitemaps: Box<[Box<str>]>,
}

#[derive(Debug, Clone, Copy)]
struct Rule {
    start: u32,
    length: u16,
    anchored: bool,
    allow: bool,
}

impl RobotsRules {
    /// Reads the rules for the agent with this product token (`webfill`, without a version), ignoring case. Never
    /// fails: meaningless lines are skipped, and everything beyond [`MAX_ROBOTS_BYTES`] is ignored.
    pub fn parse(bytes: &[u8], agent_token: &str) -> Self {
        let text = lines::readable_text(bytes);
        let selected = lines::select_group(&text, agent_token);
        match hints::read(&selected) {
            Ok(hints) => Self::build(&selected, hints),
            Err(hints::Unreadable) => Self::deny_all(),
        }
    }

    /// Allows only `/robots.txt` itself: for an origin whose robots.txt is
    /// unreachable or unreadable.
    pub fn deny_all() -> Self {
        let everything = RuleLine {
            allow: false,
            path: b"/",
        };
        let selected = Selected {
            rules: vec![everything],
            ..Selected::default()
        };
        Self::build(&selected, Hints::default())
    }

    fn build(selected: &Selected<'_>, hints: Hints) -> Self {
        let mut patterns: Vec<Pattern> = Vec::with_capacity(selected.rules.len());
        for line in selected.rules.iter().filter(|line| line.is_effective()) {
            patterns.extend(Pattern::from_rule(line.allow, line.path));
            patterns.extend(Pattern::from_index_page(line.allow, line.path));
        }
        patterns.sort_unstable();
        patterns.dedup();
        let mut texts = Vec::new();
        let mut rules = Vec::with_capacity(patterns.len());
        for pattern in &patterns {
            rules.push(Rule {
                start: u32::try_from(texts.len()).expect("robots.txt is cut at 500 KiB"),
                length: u16::try_from(pattern.text.len()).expect("lines are cut at 16 KiB"),
                anchored: pattern.anchored,
                allow: pattern.allow,
            });
            texts.extend_from_slice(&pattern.text);
        }
        Self {
            patterns: texts.into_boxed_slice(),
            rules: rules.into_boxed_slice(),
            crawl_delay_ms: hints.crawl_delay_ms,
            sitemaps: hints.sitemaps,
        }
    }

    /// Whether the agent may fetch this URL: the longest matching rule decides, and `Allow` if two are equally long.
    /// Without a matching rule it may (RFC 9309, 2.2.2).
    pub fn allows(&self, url: &Url) -> bool {
        self.allows_path(
            &url[webfill_urls::Position::BeforePath..webfill_urls::Position::AfterQuery],
        )
    }

    fn allows_path(&self, path: &str) -> bool {
        // "The /robots.txt URI is implicitly allowed" (RFC 9309, 2.2.2).
        if path == "/robots.txt" {
            return true;
        }
        let for_allow = comparable_path(path);
        let decoded = normalise_escapes(path).map(|decoded| comparable_path(&decoded));
        let for_disallow = decoded.as_deref().unwrap_or(&for_allow);
        for rule in &self.rules {
            let start = rule.start as usize;
            let pattern = &self.patterns[start..start + usize::from(rule.length)];
            let path = if rule.allow { &for_allow } else { for_disallow };
            if pattern::matches(pattern, rule.anchored, path) {
                return rule.allow;
            }
        }
        true
    }

    /// The `Crawl-delay` that concerns the agent, in milliseconds, limited to a day. If there are several, the longest
    /// counts. `None` if there is no usable one.
    pub fn crawl_delay_ms(&self) -> Option<u64> {
        self.crawl_delay_ms
    }

    /// The sitemaps that the file names, for any agent, as written.
    pub fn sitemaps(&self) -> impl Iterator<Item = &str> {
        self.sitemaps.iter().map(|url| &**url)
    }

    /// The approximate memory of these rules in bytes, for bounding caches.
    pub fn memory_bytes(&self) -> usize {
        let sitemaps: usize = self.sitemaps().map(|url| url.len() + 16).sum();
        size_of::<Self>() + self.patterns.len() + size_of_val(&*self.rules) + sitemaps
    }
}

#[cfg(test)]
mod tests;
