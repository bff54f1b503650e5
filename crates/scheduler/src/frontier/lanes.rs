//! Lanes: which of them connected supervisors serve, and which lane a turn needs.
//!
//! A crawl of a lane that no supervisor serves is held back as if it were paused (see
//! [`holding`](super::holding)): its sites pass it over, so that it delays no other crawl.

use std::collections::{BTreeSet, HashMap};

use rusqlite::Result;
use webfill_api::CrawlSpec;
use webfill_wire::{CrawlKey, Lane};

use super::context::Context;
use super::crawl::Crawl;
use super::holding;
use super::holding::Releases;
use super::model::{NextCrawl, SiteDue, SiteId, Turn};
use super::scripts::{ScriptedSites, want_browser};
use super::sites::SiteRow;

/// Which lanes are served, and which crawls wait for one.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// A supervisor of the lane `browser` is connected.
    browsers: bool,
    /// Crawls that were held back because none is.
    waiting: BTreeSet<CrawlKey>,
    /// Sites whose pages go to a browser, whatever their crawl's lane (see [`scripts`](super::scripts)).
    scripted: BTreeSet<SiteId>,
    /// What was set by hand.
    rules: HashMap<SiteId, SiteLane>,
}

/// The lane that was set for a site's pages in crawls of the lane `http`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteLane {
    /// It follows the page, as if nothing had been set. It is kept, because workers may still hold an earlier rule.
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

    pub fn of_name(name: &str) -> Option<SiteLane> {
        match name {
            "auto" => Some(SiteLane::Auto),
            _ => name.parse().ok().map(SiteLane::Fixed),
        }
    }

    /// The lane, if it does not follow the page.
    pub(super) fn fixed(self) -> Option<Lane> {
        match self {
            SiteLane::Auto => None,
            SiteLane::Fixed(lane) => Some(lane),
        }
    }
}

impl Lanes {
    /// After a start.
    pub(super) fn of(known: &ScriptedSites, rules: HashMap<SiteId, SiteLane>) -> Lanes {
        let sites = known.keys().chain(rules.keys()).copied();
        let wants = |site: &SiteId| {
            let kinds = known.get(site).map_or(&[][..], Vec::as_slice);
            want_browser(rules.get(site).copied(), kinds)
        };
        Lanes {
            scripted: sites.filter(wants).collect(),
            rules,
            ..Lanes::default()
        }
    }

    /// Sets whether a site's pages go to a browser. Returns whether that is new.
    pub(super) fn set_scripted(&mut self, site: SiteId, is_scripted: bool) -> bool {
        match is_scripted {
            true => self.scripted.insert(site),
            false => self.scripted.remove(&site),
        }
    }

    /// The lane that tasks of a crawl need at a site. Only a crawl waits for a lane that nobody serves, no page.
    pub(super) fn at(&self, site: SiteId, of_crawl: Lane) -> Lane {
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

    /// How many tasks of a crawl may be handed out now. If no supervisor serves its lane, notes
    /// that the crawl waits for one.
    pub(super) fn room_or_await_lane(&mut self, key: CrawlKey, crawl: &Crawl) -> u64 {
        if self.serves(crawl) {
            return crawl.room();
        }
        self.waiting.insert(key);
        0
    }
}

/// Whether a supervisor of this lane can fetch pages that need the lane `needed`.
pub(super) fn can_serve(lane: Lane, needed: Lane) -> bool {
    lane == Lane::Browser || needed == Lane::Http
}

impl Releases<'_> {
    /// Sets whether a supervisor with browsers is connected. If so, releases the crawls that
    /// waited.
    pub fn set_browsers(&mut self, browsers: bool) {
        if self.0.cx.lanes.browsers != browsers {
            // The turns of their sites need another lane from now on.
            let scripted = self.0.cx.lanes.scripted.iter();
            self.0.cx.holding.changed_sites.extend(scripted);
        }
        self.0.cx.lanes.browsers = browsers;
        if browsers {
            for crawl in std::mem::take(&mut self.0.cx.lanes.waiting) {
                holding::release_later(&mut self.0.cx, crawl);
            }
        }
    }
}

pub(super) fn turn(cx: &Context, site: SiteId, next: NextCrawl) -> Result<Turn> {
    let NextCrawl { priority, crawl } = next;
    let lane = cx.lanes.at(site, lane_of(cx, crawl)?);
    Ok(Turn {
        priority,
        crawl,
        lane,
    })
}

/// Completes the rows of sites with their next turns; the lane of each crawl is looked up once.
pub(super) fn add_turns(cx: &Context, sites: Vec<SiteRow>) -> Result<Vec<SiteDue>> {
    let mut lanes = HashMap::new();
    let mut due = Vec::with_capacity(sites.len());
    for SiteRow { mut site, next } in sites {
        if let Some(NextCrawl { priority, crawl }) = next {
            let lane = match lanes.get(&crawl) {
                Some(lane) => *lane,
                None => lane_of(cx, crawl)?,
            };
            lanes.insert(crawl, lane);
            site.next = Some(Turn {
                priority,
                crawl,
                lane: cx.lanes.at(site.id, lane),
            });
        }
        due.push(site);
    }
    Ok(due)
}

/// The lane of a crawl. Reads no more than that of a crawl that is not in memory, because one
/// call may need the lanes of many crawls.
fn lane_of(cx: &Context, key: CrawlKey) -> Result<Lane> {
    if let Some(crawl) = cx.crawls.get(&key) {
        return Ok(crawl.spec.lane);
    }
    let sql = "SELECT json_extract(spec, '$.lane') FROM crawls WHERE id = ?1";
    let mut select = cx.db.prepare_cached(sql)?;
    let name: Option<String> = select.query_row([key], |row| row.get(0))?;
    let lane = name.and_then(|name| name.parse().ok());
    Ok(lane.unwrap_or(CrawlSpec::DEFAULT_LANE))
}
