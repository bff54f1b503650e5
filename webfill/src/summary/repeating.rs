//! The part of the summary about sites whose pages only repeat other pages.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::{Value, json};

use super::printing::printable_text;

/// The number of sites whose pages repeat others, and the first few of these sites.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Repeating {
    pub sites: u64,
    pub first: Vec<RepeatingSite>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct RepeatingSite {
    pub site: String,
    /// The URL of one of the repeating pages that was fetched.
    pub url: String,
    /// The number of skipped links to repeating pages.
    pub skipped: u64,
}

impl Repeating {
    pub fn json(&self) -> Value {
        let first = self.first.iter();
        let first: Vec<Value> = first
            .map(|site| json!({"site": site.site, "url": site.url, "skipped": site.skipped}))
            .collect();
        json!({"sites": self.sites, "first": first})
    }

    pub fn write(&self, text: &mut String) {
        if self.sites == 0 {
            return;
        }
        let noun = if self.sites == 1 { "site" } else { "sites" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  repeated  {} {noun} with pages that only repeat others; their links were skipped (repeated_page)",
            self.sites
        );
        for site in &self.first {
            let url = printable_text(&site.url);
            let _ = writeln!(
                text,
                "            {}: {} links, in a branch such as {url}",
                site.site, site.skipped
            );
        }
        let more = self.sites.saturating_sub(self.first.len() as u64);
        if more > 0 {
            let _ = writeln!(text, "            and {more} more");
        }
    }
}
