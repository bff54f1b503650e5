//! Which crawl is next at a site, and the lane that its pages need.

use std::collections::HashMap;

use rusqlite::Result;
use webfill_api::CrawlSpec;
use webfill_wire::{CrawlKey, Lane};

use super::context::Context;
use super::model::{NextCrawl, SiteDue, SiteId, Turn};
use super::parts::Releases;
use super::releasing;
use super::sites::SiteRow;

pub(super) fn turn_with_lane(cx: &Context, site: SiteId, next: NextCrawl) -> Result<Turn> {
    let NextCrawl { priority, crawl } = next;
    let lane = cx.lanes.lane_needed_at(site, lane_of(cx, crawl)?);
    Ok(Turn {
        priority,
        crawl,
        lane,
    })
}

/// Adds to each site the crawl that is next there. The lane of each crawl is looked up only once.
pub(super) fn add_next_turns(cx: &Context, sites: Vec<SiteRow>) -> Result<Vec<SiteDue>> {
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
                lane: cx.lanes.lane_needed_at(site.id, lane),
            });
        }
        due.push(site);
    }
    Ok(due)
}

/// The lane of a crawl. Of a crawl that is not in memory, only the lane is read, because one call may need the lanes of
/// many crawls.
pub(super) fn lane_of(cx: &Context, key: CrawlKey) -> Result<Lane> {
    if let Some(crawl) = cx.crawls.get(&key) {
        return Ok(crawl.spec.lane);
    }
    let sql = "SELECT json_extract(spec, '$.lane') FROM crawls WHERE id = ?1";
    let mut select = cx.db.prepare_cached(sql)?;
    let name: Option<String> = select.query_row([key], |row| row.get(0))?;
    let lane = name.and_then(|name| name.parse().ok());
    Ok(lane.unwrap_or(CrawlSpec::DEFAULT_LANE))
}

impl Releases<'_> {
    /// Sets whether a supervisor with browsers is connected. If so, lets the crawls continue that waited for one.
    pub fn set_has_browsers(&mut self, browsers: bool) {
        if self.0.cx.lanes.browsers != browsers {
            // The next crawls at these sites need another lane from now on.
            let scripted = self.0.cx.lanes.scripted.iter();
            self.0.cx.holding.changed_sites.extend(scripted);
        }
        self.0.cx.lanes.browsers = browsers;
        if browsers {
            for crawl in std::mem::take(&mut self.0.cx.lanes.waiting) {
                releasing::release_later(&mut self.0.cx, crawl);
            }
        }
    }
}
