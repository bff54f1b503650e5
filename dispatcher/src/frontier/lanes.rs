//! Lanes: which of them somebody serves, and what the turn of a crawl needs.
//!
//! A crawl of a lane that nobody serves hands nothing out for now, as if it were paused (see
//! [`holding`](super::holding)): its sites pass it over, and it is in nobody's way.

use std::collections::{BTreeSet, HashMap};

use rusqlite::Result;
use webfill_wire::{CrawlKey, Lane};

use super::answers::{SiteDue, Turn};
use super::crawls::Crawl;
use super::sites::{NextCrawl, SiteRow};
use super::{Frontier, FrontierError};
use crate::crawl_spec::CrawlSpec;

/// Who is there, and who waits for it.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Pages can be read after their scripts have run.
    browsers: bool,
    /// Crawls that were found to wait for that.
    waiting: BTreeSet<CrawlKey>,
}

impl Lanes {
    fn serves(&self, crawl: &Crawl) -> bool {
        self.browsers || crawl.spec.lane != Lane::Browser
    }

    /// How many tasks of a crawl may be handed out now. One that nobody serves is noted.
    pub(super) fn room_or_await_lane(&mut self, key: CrawlKey, crawl: &Crawl) -> u64 {
        if self.serves(crawl) {
            return crawl.room();
        }
        self.waiting.insert(key);
        0
    }
}

/// Whether one of this lane can fetch what needs that one.
pub(super) fn can_serve(lane: Lane, needed: Lane) -> bool {
    lane == Lane::Browser || needed == Lane::Http
}

impl Frontier {
    /// Tells whether there is somebody with browsers. Crawls that have waited for that go on.
    pub fn set_browsers(&mut self, browsers: bool) {
        self.lanes.browsers = browsers;
        if browsers {
            for crawl in std::mem::take(&mut self.lanes.waiting) {
                self.release_later(crawl);
            }
        }
    }

    /// What a crawl waits for because nobody serves its lane.
    pub fn lane_awaited(
        &mut self,
        key: CrawlKey,
    ) -> std::result::Result<Option<Lane>, FrontierError> {
        self.crawl(key)?;
        let crawl = self.crawls.get(&key);
        let unserved = crawl.filter(|crawl| !self.lanes.serves(crawl));
        Ok(unserved.map(|crawl| crawl.spec.lane))
    }

    pub(super) fn turn(&self, next: NextCrawl) -> Result<Turn> {
        let NextCrawl { priority, crawl } = next;
        let lane = self.lane_of(crawl)?;
        Ok(Turn {
            priority,
            crawl,
            lane,
        })
    }

    /// Sites with the turns that are next at them; each crawl is looked up once.
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
                    lane,
                });
            }
            due.push(site);
        }
        Ok(due)
    }

    /// Of one that is not in memory, only this is read: many may be met at once.
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
