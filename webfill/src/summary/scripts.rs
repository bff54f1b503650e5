//! The part of the summary about pages that are empty without their scripts.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::{Value, json};

use super::printing::printable_text;

/// The crawl's findings about pages that need scripts.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Scripts {
    /// Sites whose pages are empty without their scripts. Only if the crawl had no browser.
    #[serde(default)]
    pub wanted: ScriptedSites,
    /// Sites whose pages run scripts and whose mapping reads nothing from them. Only if the crawl had no browser.
    #[serde(default)]
    pub perhaps: ScriptedSites,
    /// Sites whose pages were filled by scripts.
    #[serde(default)]
    pub filled: ScriptedSites,
}

/// A number of sites, and the first few of them.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ScriptedSites {
    pub sites: u64,
    pub first: Vec<ScriptedSite>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ScriptedSite {
    pub site: String,
    pub url: String,
    pub seen: String,
}

impl Scripts {
    pub fn json(&self) -> Value {
        let shown = |sites: &ScriptedSites| {
            let first = sites.first.iter();
            let first: Vec<Value> = first
                .map(|site| json!({"site": site.site, "url": site.url, "seen": site.seen}))
                .collect();
            json!({"sites": sites.sites, "first": first})
        };
        json!({
            "needs_browser": shown(&self.wanted),
            "may_need_browser": shown(&self.perhaps),
            "rendered": shown(&self.filled),
        })
    }

    pub fn write(&self, text: &mut String) {
        if self.filled.sites > 0 {
            let sites = format_site_count(self.filled.sites);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "  browser   read pages of {sites} when their scripts had run"
            );
            write_first(&self.filled, text);
        }
        if self.wanted.sites > 0 {
            let sites = format_site_count(self.wanted.sites);
            let _ = writeln!(
                text,
                "  browser   needed for {sites}: install Chromium and run this command again with --refresh-after 0s"
            );
            write_first(&self.wanted, text);
        }
        if self.perhaps.sites > 0 {
            let sites = format_site_count(self.perhaps.sites);
            let _ = writeln!(
                text,
                "  browser   may help at {sites}: some pages have scripts, and a mapping reads nothing on them"
            );
        }
    }
}

fn format_site_count(count: u64) -> String {
    let noun = if count == 1 { "site" } else { "sites" };
    format!("{count} {noun}")
}

fn write_first(sites: &ScriptedSites, text: &mut String) {
    for site in &sites.first {
        let seen = printable_text(&site.seen);
        let _ = writeln!(text, "            {}: {seen} ({})", site.site, site.url);
    }
    let more = sites.sites.saturating_sub(sites.first.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "            and {more} more");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_which_sites_need_a_browser_and_nothing_if_none_does() {
        let mut text = String::new();
        Scripts::default().write(&mut text);
        assert_eq!(text, "");
        let scripts = Scripts {
            wanted: ScriptedSites {
                sites: 2,
                first: vec![ScriptedSite {
                    site: "a.example".into(),
                    url: "http://a.example/1".into(),
                    seen: "an empty shell\u{1b}[2J".into(),
                }],
            },
            ..Scripts::default()
        };
        scripts.write(&mut text);
        assert!(text.contains("needed for 2 sites"), "{text}");
        assert!(text.contains("a.example: an empty shell") && text.contains("and 1 more"));
        assert!(
            !text.contains('\u{1b}'),
            "no escape sequence reaches a terminal"
        );
    }
}
