//! Lanes: which of them connected supervisors serve, and which lane a turn needs.
//!
//! A crawl of a lane that no supervisor serves is held back as if it were paused (see
//! [`holding`](super::holding)): its sites pass it over, so that it delays no other crawl.

use std::collections::{BTreeSet, HashMap};

use rusqlite::Result;
use webfill_api::CrawlSpec;
use webfill_wire::{CrawlKey, Lane};

use super::answers::{SiteDue, SiteId, Turn};
use super::crawls::Crawl;
use super::scripts::{ScriptedSites, want_browser};
use super::sites::{NextCrawl, SiteRow};
use super::{Frontier, FrontierError};

/// Which lanes are served, and which crawls wait for one.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// A supervisor of the lane `browser` is connected.
    browsers: bool,
    /// Crawls that were held back because none is.
    waiting: BTreeSet<CrawlKey>,
    /// Sites with pages that want a browser, whatever their crawl's lane (see [`scripts`](super::scripts)).
    scripted: BTreeSet<SiteId>,
}

impl Lanes {
    /// After a start, with the sites of which something is known.
    pub(super) fn of(scripted: &ScriptedSites) -> Lanes {
        let wanting = scripted.iter().filter(|(_, kinds)| want_browser(kinds));
        Lanes {
            scripted: wanting.map(|(site, _)| *site).collect(),
            ..Lanes::default()
        }
    }

    /// Sets whether pages of a site want a browser. Returns whether that was unknown.
    pub(super) fn set_scripted(&mut self, site: SiteId, is_scripted: bool) -> bool {
        match is_scripted {
            true => self.scripted.insert(site),
            false => self.scripted.remove(&site),
        }
    }

    /// The lane that tasks of a crawl need at a site. Only a crawl waits for a lane that nobody serves, no page.
    pub(super) fn at(&self, site: SiteId, of_crawl: Lane) -> Lane {
        match self.browsers && self.scripted.contains(&site) {
            true => Lane::Browser,
            false => of_crawl,
        }
    }

    pub(super) fn has_browsers(&self) -> bool {
        self.browsers
    }

    fn serves(&self, crawl: &Crawl) -> bool {
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

impl Frontier {
    /// Sets whether a supervisor with browsers is connected. If so, releases the crawls that
    /// waited.
    pub fn set_browsers(&mut self, browsers: bool) {
        if self.lanes.browsers != browsers {
            // The turns of their sites need another lane from now on.
            let scripted = self.lanes.scripted.iter();
            self.holding.changed_sites.extend(scripted);
        }
        self.lanes.browsers = browsers;
        if browsers {
            for crawl in std::mem::take(&mut self.lanes.waiting) {
                self.release_later(crawl);
            }
        }
    }

    /// The lane that a crawl waits for, because no supervisor serves it.
    pub fn lane_awaited(
        &mut self,
        key: CrawlKey,
    ) -> std::result::Result<Option<Lane>, FrontierError> {
        self.crawl(key)?;
        let crawl = self.crawls.get(&key);
        let unserved = crawl.filter(|crawl| !self.lanes.serves(crawl));
        Ok(unserved.map(|crawl| crawl.spec.lane))
    }

    pub(super) fn turn(&self, site: SiteId, next: NextCrawl) -> Result<Turn> {
        let NextCrawl { priority, crawl } = next;
        let lane = self.lanes.at(site, self.lane_of(crawl)?);
        Ok(Turn {
            priority,
            crawl,
            lane,
        })
    }

    /// Completes the rows of sites with their next turns; the lane of each crawl is looked up once.
    pub(super) fn add_turns(&self, sites: Vec<SiteRow>) -> Result<Vec<SiteDue>> {
        let mut lanes = HashMap::new();
        let mut due = Vec::with_capacity(sites.len());
        for SiteRow { mut site, next } in sites {
            if let Some(NextCrawl { priority, crawl }) = next {
                let lane = match lanes.get(&crawl) {
                    Some(lane) => *lane,
                    None => self.lane_of(crawl)?,
                };
                lanes.insert(crawl, lane);
                site.next = Some(Turn {
                    priority,
                    crawl,
                    lane: self.lanes.at(site.id, lane),
                });
            }
            due.push(site);
        }
        Ok(due)
    }

    /// The lane of a crawl. Reads no more than that of a crawl that is not in memory, because one
    /// call may need the lanes of many crawls.
    fn lane_of(&self, key: CrawlKey) -> Result<Lane> {
        if let Some(crawl) = self.crawls.get(&key) {
            return Ok(crawl.spec.lane);
        }
        let sql = "SELECT json_extract(spec, '$.lane') FROM crawls WHERE id = ?1";
        let mut select = self.db.prepare_cached(sql)?;
        let name: Option<String> = select.query_row([key], |row| row.get(0))?;
        let lane = name.and_then(|name| name.parse().ok());
        Ok(lane.unwrap_or(CrawlSpec::DEFAULT_LANE))
    }
}
