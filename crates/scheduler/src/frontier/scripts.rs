//! Kinds of pages that are empty without their scripts, by site: the workers' findings about them
//! ([`ScriptsReport`]), with the evidence. Stored in `meta`, a row for each such site.
//!
//! A page whose worker had no browser is *handed on* to one that has: its task is queued again. From then on its
//! site's tasks go to supervisors of the lane `browser`, whose workers render only pages that mappings cannot read
//! otherwise. That ends when they find that a browser does not help. While no supervisor of the lane is connected,
//! nothing is handed on, and nothing waits for one: the pages stay as they came.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use webfill_health::is_similar;
use webfill_wire::{CrawlKey, Finding, Lane, ScriptsReport};

use super::lanes::SiteLane;
use super::model::SiteId;

/// The prefix of the rows' names; the site's id follows.
pub(super) const PREFIX: &str = "scripts/";

/// A kind of pages of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ScriptedKind {
    pub(super) mapping: String,
    pub(super) layout: String,
    /// The name of a [`Finding`].
    pub(super) finding: String,
    /// They are empty shells; if not, it is only their mapping that reads nothing.
    #[serde(default)]
    pub(super) is_shell: bool,
    /// How many pages wanted a browser where there was none.
    pub(super) pages: u64,
    /// How many pages of the sample were rendered in vain.
    #[serde(default)]
    pub(super) tries: u32,
    /// The page that was reported last, the finding, when, and in which crawl.
    pub(super) url: String,
    pub(super) seen: String,
    pub(super) at_ms: i64,
    pub(super) crawl: CrawlKey,
}

/// By site.
pub(super) type ScriptedSites = BTreeMap<SiteId, Vec<ScriptedKind>>;

/// By mapping: with how many kinds of pages that are no shells browsers did not help, one after another.
pub(super) type UnfitMappings = BTreeMap<String, u32>;

/// The findings about all sites.
pub(super) fn load(db: &Connection) -> Result<ScriptedSites> {
    let sql = "SELECT name, value FROM meta WHERE name >= 'scripts/' AND name < 'scripts0'";
    let mut select = db.prepare(sql)?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut sites = ScriptedSites::new();
    for row in rows {
        let (name, value): (String, String) = row?;
        let site = name.strip_prefix(PREFIX).and_then(|id| id.parse().ok());
        // A row in the format of a later release is ignored, and found again.
        if let (Some(site), Ok(kinds)) = (site, serde_json::from_str(&value)) {
            sites.insert(SiteId(site), kinds);
        }
    }
    Ok(sites)
}

impl ScriptedKind {
    pub(super) fn is(&self, finding: Finding) -> bool {
        self.finding == finding.as_str()
    }

    pub(super) fn may_gain(&self) -> bool {
        match self.is(Finding::Tried) {
            // If none was handed on, a worker of the lane `http` has a browser, and tries them itself.
            true => self.pages > 0,
            false => !self.is(Finding::Empty),
        }
    }

    pub(super) fn is_of(&self, report: &ScriptsReport) -> bool {
        self.mapping == report.mapping && is_similar(&self.layout, &report.layout)
    }

    /// For people and programs.
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

/// Whether a site's pages go to a browser: by its rule, else if one helps some of its kinds as far as is known. With
/// the rule `http`, only pages whose mapping wants a browser do.
pub(super) fn want_browser(rule: Option<SiteLane>, kinds: &[ScriptedKind]) -> bool {
    match rule.and_then(SiteLane::fixed) {
        Some(Lane::Browser) => true,
        Some(Lane::Http) => kinds.iter().any(|kind| kind.layout == Finding::SET),
        None => kinds.iter().any(ScriptedKind::may_gain),
    }
}
