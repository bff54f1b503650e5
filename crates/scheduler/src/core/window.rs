//! The window: the sites that are in memory. Due sites are admitted to it, those of underserved crawls first. Sites
//! that would keep others out leave it.

use std::collections::{BTreeSet, VecDeque};

use webfill_wire::CrawlKey;

use crate::core::context::Context;
use crate::dispatch::{LOOKAHEAD_MS, SURPLUS_RETURNS_AFTER_MS};
use crate::frontier::FrontierError;

/// The maximum number of sites loaded into memory in one turn of the loop. The memory may hold a hundred times as many.
const MOST_ADMITTED: usize = 2_000;

/// How often a full window (the sites in memory) is searched for sites that may leave it.
const FILL_EVERY_MS: i64 = 100;

/// A crawl with fewer sites than this in memory is underserved: its sites are admitted first.
const FEW_SITES: usize = 32;

/// The maximum number of underserved crawls (with few sites in memory) whose sites are admitted in one turn of the
/// loop.
const UNDERSERVED_PER_TURN: usize = 16;

/// Crawls that may have few sites in memory and more on disk. They are served in turn.
#[derive(Debug, Default)]
pub(super) struct UnderservedCrawls {
    queue: VecDeque<CrawlKey>,
    queued: BTreeSet<CrawlKey>,
}

/// The maximum length of the queue. The sites of further crawls are admitted only in the ordinary order.
const MAX_UNDERSERVED: usize = 100_000;

impl UnderservedCrawls {
    pub(super) fn add(&mut self, crawl: CrawlKey) {
        if self.queue.len() < MAX_UNDERSERVED && self.queued.insert(crawl) {
            self.queue.push_back(crawl);
        }
    }

    fn next(&mut self) -> Option<CrawlKey> {
        let crawl = self.queue.pop_front()?;
        self.queued.remove(&crawl);
        Some(crawl)
    }
}

/// When and how to fill the window, that is, to load sites into memory.
pub(super) struct Window {
    /// When to load sites into memory next; `None`: no site waits on disk.
    pub(super) next_site_ms: Option<i64>,
    /// Crawls with few sites in memory, whose other sites are loaded first.
    pub(super) underserved: UnderservedCrawls,
    /// When to try again to load sites, after the maximum number was in memory.
    pub(super) fill_again_ms: i64,
    /// Whether the last hand-out stopped before it had tried all ready sites.
    pub(super) has_more: bool,
    /// Since when sites that are not in memory are due, as far as was noticed.
    pub(super) outside_due_since_ms: Option<i64>,
}

impl Window {
    pub(super) fn new(now_ms: i64) -> Window {
        Window {
            next_site_ms: Some(now_ms),
            underserved: UnderservedCrawls::default(),
            fill_again_ms: i64::MIN,
            has_more: false,
            outside_due_since_ms: None,
        }
    }
}

/// Loads sites into memory that are due, or will be soon. When seven eighths of the places are taken, sites that are
/// due only much later are evicted. The last eighth is reserved for underserved crawls.
pub(super) fn refill(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    let is_due = cx
        .window
        .next_site_ms
        .is_some_and(|due_ms| due_ms - LOOKAHEAD_MS <= now_ms);
    if !is_due || cx.dispatch.fleet.connected_count() == 0 {
        return Ok(());
    }
    let spare = cx.settings.window_sites / 8;
    let needed = (spare + 1).saturating_sub(free_places(cx));
    for (site, clock) in cx
        .dispatch
        .schedule
        .evict_distant(needed, FEW_SITES, now_ms)
    {
        cx.frontier.sites().evict(site, &clock)?;
    }
    if free_places(cx) > 0 {
        admit_underserved(cx, now_ms)?;
    }
    let room = free_places(cx).saturating_sub(spare);
    if room > 0 {
        let most = room.min(MOST_ADMITTED);
        for site in cx.frontier.sites().admit_due(now_ms + LOOKAHEAD_MS, most)? {
            cx.dispatch.schedule.add(site);
        }
        cx.window.next_site_ms = cx.frontier.sites().next_due_ms()?;
    }
    if free_places(cx) <= spare {
        cx.window.fill_again_ms = now_ms + FILL_EVERY_MS;
    }
    Ok(())
}

/// Loads sites of underserved crawls into memory, if at least half of the places there are taken.
fn admit_underserved(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    if free_places(cx) > cx.settings.window_sites / 2 {
        return Ok(());
    }
    for _ in 0..UNDERSERVED_PER_TURN {
        let Some(crawl) = cx.window.underserved.next() else {
            break;
        };
        let wanted = FEW_SITES.saturating_sub(cx.dispatch.schedule.count_admitted_for(crawl));
        let most = wanted.min(free_places(cx));
        let found = cx
            .frontier
            .sites()
            .admit_due_of_crawl(crawl, now_ms + LOOKAHEAD_MS, most)?;
        if found.len() == most {
            cx.window.underserved.add(crawl);
        }
        for site in found {
            cx.dispatch.schedule.add(site);
        }
    }
    Ok(())
}

/// Evicts idle sites from memory, and waiting sites that would take up all places.
pub(super) fn evict_sites(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    for (site, clock) in cx.dispatch.schedule.evict_idle() {
        cx.frontier.sites().evict(site, &clock)?;
    }
    evict_surplus(cx, now_ms)
}

/// Limits the sites that wait for a browser, and those that wait for a limit shared with other sites, to half of the
/// sites in memory each. Surplus sites are evicted, and are due again after [`SURPLUS_RETURNS_AFTER_MS`] or later.
fn evict_surplus(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    let surplus = cx
        .dispatch
        .evict_surplus_waiting(cx.settings.window_sites / 2, now_ms);
    if surplus.is_empty() {
        return Ok(());
    }
    for (site, clock) in surplus {
        cx.frontier.sites().evict(site, &clock)?;
    }
    let back_ms = now_ms + SURPLUS_RETURNS_AFTER_MS;
    cx.window.next_site_ms = Some(
        cx.window
            .next_site_ms
            .map_or(back_ms, |due_ms| due_ms.min(back_ms)),
    );
    Ok(())
}

pub(super) fn free_places(cx: &Context) -> usize {
    let in_window = cx.dispatch.schedule.count_sites_in_window();
    cx.settings.window_sites.saturating_sub(in_window)
}

/// How long the site that has been due longest has waited. Checks each site in memory, and the site outside it that is
/// due first. `next_site_ms` cannot be used: it is the time to load more sites, not the time since which a site waits.
pub(in crate::core) fn longest_overdue_ms(cx: &mut Context, now_ms: i64) -> i64 {
    let inside_ms = {
        let dispatch = &mut cx.dispatch;
        dispatch
            .overdue
            .longest_overdue_ms(&dispatch.schedule, now_ms)
    };
    // An error is ignored here: a failed frontier ends the process in the next turn of the loop.
    let first_ms = cx.frontier.sites().next_due_ms().ok().flatten();
    let Some(first_ms) = first_ms.filter(|due_ms| *due_ms <= now_ms) else {
        cx.window.outside_due_since_ms = None;
        return inside_ms;
    };
    let since_ms = *cx.window.outside_due_since_ms.get_or_insert(now_ms);
    inside_ms.max(now_ms - since_ms.max(first_ms))
}
