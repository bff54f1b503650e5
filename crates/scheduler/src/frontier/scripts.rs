//! Kinds of pages that are empty without their scripts, by site: the workers' findings about them
//! ([`ScriptsReport`]), with the evidence. Stored in `meta`, one row per site.
//!
//! If a worker without a browser fetched such a page, the page is *handed on* to one with a browser: its task is
//! queued again. From then on its site's tasks go to supervisors of the lane `browser`, whose workers render only
//! pages that mappings cannot read otherwise. That ends when the workers find that a browser does not help. While no
//! supervisor of the lane is connected, nothing is handed on, and nothing waits for one: the pages are kept as they
//! are.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use webfill_health::is_similar;
use webfill_wire::{CrawlKey, Finding, Lane, ScriptsReport};

use super::lanes::SiteLane;
use super::model::SiteId;

/// The prefix of the rows' names, which is followed by the site's id.
pub(super) const PREFIX: &str = "scripts/";

/// A kind of page at a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ScriptedKind {
    pub(super) mapping: String,
    pub(super) layout: String,
    /// The name of the present [`Finding`] about this kind of page.
    pub(super) finding: String,
    /// Whether these pages are empty shells. Otherwise only their mapping finds nothing in them.
    #[serde(default)]
    pub(super) is_shell: bool,
    /// How many of these pages were fetched without a browser but wanted one.
    pub(super) pages: u64,
    /// How many pages of a sample were rendered without a gain.
    #[serde(default)]
    pub(super) tries: u32,
    /// The page that was reported last, the evidence, when it was reported, and in which crawl.
    pub(super) url: String,
    pub(super) seen: String,
    pub(super) at_ms: i64,
    pub(super) crawl: CrawlKey,
}

/// The kinds of pages of each site.
pub(super) type ScriptedSites = BTreeMap<SiteId, Vec<ScriptedKind>>;

/// For each mapping, how many consecutive kinds of its pages browsers did not help. Empty shells are not counted.
pub(super) type UnfitMappings = BTreeMap<String, u32>;

/// Loads what is known about scripts on the pages of all sites.
pub(super) fn load(db: &Connection) -> Result<ScriptedSites> {
    let sql = "SELECT name, value FROM meta WHERE name >= 'scripts/' AND name < 'scripts0'";
    let mut select = db.prepare(sql)?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut sites = ScriptedSites::new();
    for row in rows {
        let (name, value): (String, String) = row?;
        let site = name.strip_prefix(PREFIX).and_then(|id| id.parse().ok());
        // A row in the format of a later release is ignored; its findings are made again.
        if let (Some(site), Ok(kinds)) = (site, serde_json::from_str(&value)) {
            sites.insert(SiteId(site), kinds);
        }
    }
    Ok(sites)
}

impl ScriptedKind {
    pub(super) fn has_finding(&self, finding: Finding) -> bool {
        self.finding == finding.as_str()
    }

    pub(super) fn may_need_browser(&self) -> bool {
        match self.has_finding(Finding::Tried) {
            // `Tried` without pages that lacked a browser: a worker of the lane `http` has a browser and tries the
            // pages itself.
            true => self.pages > 0,
            false => !self.has_finding(Finding::Empty),
        }
    }

    pub(super) fn matches(&self, report: &ScriptsReport) -> bool {
        self.mapping == report.mapping && is_similar(&self.layout, &report.layout)
    }

    /// The kind, as shown to people and programs.
    pub(super) fn json(&self) -> Value {
        json!({
            "finding": self.finding,
            "mapping": (!self.mapping.is_empty()).then_some(&self.mapping),
            "pages": self.pages,
            "tries": self.tries,
            "url": self.url,
            "seen": self.seen,
            "at": self.at_ms as f64 / 1_000.0,
        })
    }
}

/// Whether a site's pages go to a browser: by the site's rule, or else if a browser may help some of its kinds. With
/// the rule `http`, they do only if a mapping requires a browser.
pub(super) fn needs_browser(rule: Option<SiteLane>, kinds: &[ScriptedKind]) -> bool {
    match rule.and_then(SiteLane::fixed_lane) {
        Some(Lane::Browser) => true,
        Some(Lane::Http) => kinds.iter().any(|kind| kind.layout == Finding::SET),
        None => kinds.iter().any(ScriptedKind::may_need_browser),
    }
}
