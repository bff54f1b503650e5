//! Lanes: which of them the connected supervisors serve, and which lane a turn needs.
//!
//! A crawl whose lane no supervisor serves is held back as if it were paused (see [`holding`](super::holding)): its
//! sites skip it, so that it delays no other crawl.

use std::collections::{BTreeSet, HashMap};

use webfill_wire::{CrawlKey, Lane};

use super::crawl::Crawl;
use super::model::SiteId;
use super::scripts::{ScriptedSites, needs_browser};

/// The lanes (`http`, `browser`) that connected supervisors serve, and the crawls that wait for one.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Whether a supervisor of the lane `browser` is connected.
    pub(super) browsers: bool,
    /// Crawls of the lane `browser` that are held back, because no supervisor of this lane is connected.
    pub(super) waiting: BTreeSet<CrawlKey>,
    /// Sites whose pages go to a browser, whatever their crawl's lane (see [`scripts`](super::scripts)).
    pub(super) scripted: BTreeSet<SiteId>,
    /// The lanes that were set for sites by hand.
    rules: HashMap<SiteId, SiteLane>,
}

/// The lane that was set for a site's pages in crawls of the lane `http`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteLane {
    /// The lane follows from the site's pages. Workers get this as a rule too, because it replaces a rule for a fixed
    /// lane that they may hold.
    Auto,
    Fixed(Lane),
}

impl SiteLane {
    pub fn as_str(self) -> &'static str {
        match self {
            SiteLane::Auto => "auto",
            SiteLane::Fixed(lane) => lane.as_str(),
        }
    }

    pub fn from_name(name: &str) -> Option<SiteLane> {
        match name {
            "auto" => Some(SiteLane::Auto),
            _ => name.parse().ok().map(SiteLane::Fixed),
        }
    }

    /// The lane (`http` or `browser`), if a fixed one is set.
    pub(super) fn fixed_lane(self) -> Option<Lane> {
        match self {
            SiteLane::Auto => None,
            SiteLane::Fixed(lane) => Some(lane),
        }
    }
}

impl Lanes {
    /// Restores the lanes at a start, from the stored findings about scripts and the lanes set by hand.
    pub(super) fn from_findings(known: &ScriptedSites, rules: HashMap<SiteId, SiteLane>) -> Lanes {
        let sites = known.keys().chain(rules.keys()).copied();
        let wants = |site: &SiteId| {
            let kinds = known.get(site).map_or(&[][..], Vec::as_slice);
            needs_browser(rules.get(site).copied(), kinds)
        };
        Lanes {
            scripted: sites.filter(wants).collect(),
            rules,
            ..Lanes::default()
        }
    }

    /// Sets whether a site's pages go to a browser. Returns whether that is a change.
    pub(super) fn set_scripted(&mut self, site: SiteId, is_scripted: bool) -> bool {
        match is_scripted {
            true => self.scripted.insert(site),
            false => self.scripted.remove(&site),
        }
    }

    /// The lane that a crawl's tasks need at a site. Without a supervisor of the lane `browser`, a crawl of that lane
    /// waits, but single pages do not.
    pub(super) fn lane_needed_at(&self, site: SiteId, of_crawl: Lane) -> Lane {
        match self.browsers && self.is_scripted(site) {
            true => Lane::Browser,
            false => of_crawl,
        }
    }

    pub(super) fn is_scripted(&self, site: SiteId) -> bool {
        self.scripted.contains(&site)
    }

    pub(super) fn rule(&self, site: SiteId) -> Option<SiteLane> {
        self.rules.get(&site).copied()
    }

    pub(super) fn set_rule(&mut self, site: SiteId, rule: SiteLane) {
        self.rules.insert(site, rule);
    }

    pub(super) fn has_browsers(&self) -> bool {
        self.browsers
    }

    pub(super) fn serves(&self, crawl: &Crawl) -> bool {
        self.browsers || crawl.spec.lane != Lane::Browser
    }

    /// How many tasks of a crawl may be handed out now. If no supervisor serves the crawl's lane (`http` or `browser`),
    /// notes that the crawl waits for one.
    pub(super) fn allowance_or_await_lane(&mut self, key: CrawlKey, crawl: &Crawl) -> u64 {
        if self.serves(crawl) {
            return crawl.allowance();
        }
        self.waiting.insert(key);
        0
    }
}

/// Whether a supervisor of this lane can fetch pages that need the lane `needed`.
pub(super) fn can_serve(lane: Lane, needed: Lane) -> bool {
    lane == Lane::Browser || needed == Lane::Http
}
