//! Handing out: the window is filled with due sites, tasks of ready sites are leased and sent to
//! the owners of the sites.

use std::collections::{BTreeSet, VecDeque};

use webfill_service::journey::{self, JOURNEY};
use webfill_wire::{CrawlKey, DispatcherToSupervisor, Task};

use crate::core::{Context, recalls};
use crate::dispatch::{Grant, LOOKAHEAD_MS, SURPLUS_RETURNS_AFTER_MS};
use crate::frontier::{FrontierError, LeaseBatch, Leased, Woken};

/// After this many grants that yielded no task, or at the turn's end, [`hand_out`] ends, and continues in the
/// next turn of the loop.
const MOST_EMPTY_GRANTS: usize = 1_000;

/// At most this many sites are admitted to the window in one turn; a window may have a hundred times as many.
const MOST_ADMITTED: usize = 2_000;

/// How often a full window is searched for sites that may leave it.
const FILL_EVERY_MS: i64 = 100;

/// A crawl with fewer sites than this in the window is underserved: its sites are admitted first.
const FEW_SITES: usize = 32;

/// At most this many underserved crawls have sites admitted in one turn.
const UNDERSERVED_PER_TURN: usize = 16;

/// A queue of crawls that may have few sites in the window and more outside it, served in turn.
#[derive(Debug, Default)]
pub(super) struct UnderservedCrawls {
    queue: VecDeque<CrawlKey>,
    queued: BTreeSet<CrawlKey>,
}

/// The queue's bound. A crawl beyond it gets its sites into the window by the ordinary order only.
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

/// Leases tasks of due sites to supervisors that have credit.
pub(super) fn hand_out(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    apply_frontier_changes(cx, now_ms)?;
    if cx.draining || cx.surroundings.low_disk.is_some() {
        cx.window.has_more = false;
        return Ok(());
    }
    fill_window(cx, now_ms)?;
    let mut empty_grants = 0;
    cx.window.has_more = false;
    while let Some(grant) = cx.dispatch.next_grant(now_ms) {
        let handed_out = hand_out_site(cx, &grant, now_ms)?;
        empty_grants += usize::from(handed_out == 0);
        if empty_grants >= MOST_EMPTY_GRANTS || cx.surroundings.turn_end.has_come() {
            cx.window.has_more = true;
            break;
        }
    }
    for (site, clock) in cx.dispatch.evict_idle() {
        cx.frontier.return_site(site, &clock)?;
    }
    evict_surplus(cx, now_ms)
}

/// Keeps sites that wait for a browser, or in their groups, out of one half of the window: the
/// surplus leaves the window and is due again [`SURPLUS_RETURNS_AFTER_MS`] later or still later.
fn evict_surplus(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    let surplus = cx
        .dispatch
        .evict_surplus(cx.settings.window_sites / 2, now_ms);
    if surplus.is_empty() {
        return Ok(());
    }
    for (site, clock) in surplus {
        cx.frontier.return_site(site, &clock)?;
    }
    let back_ms = now_ms + SURPLUS_RETURNS_AFTER_MS;
    cx.window.next_site_ms = Some(
        cx.window
            .next_site_ms
            .map_or(back_ms, |due_ms| due_ms.min(back_ms)),
    );
    Ok(())
}

/// Applies what has changed in the frontier: crawls that were released, retries that are due,
/// site rules that were set.
fn apply_frontier_changes(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    cx.frontier.release_limited_applications(now_ms);
    if cx.frontier.has_crawls_to_release() {
        let woken = cx.frontier.release(now_ms)?;
        wake(cx, woken);
        cx.window.next_site_ms = Some(now_ms);
    }
    if cx
        .frontier
        .next_retry_ms()
        .is_some_and(|at_ms| at_ms <= now_ms)
    {
        let woken = cx.frontier.requeue_due_retries(now_ms)?;
        wake(cx, woken);
        cx.window.next_site_ms = Some(now_ms);
    }
    apply_changed_sites(cx, now_ms)
}

fn apply_changed_sites(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    let forgotten = cx.frontier.take_forgotten_sites();
    for site in cx.frontier.take_changed_sites()? {
        match forgotten.contains(&site.id) {
            true => cx.dispatch.forget_site(&site),
            false => cx.dispatch.change_rule(&site),
        }
        cx.window.next_site_ms = Some(now_ms);
    }
    Ok(())
}

/// When [`apply_frontier_changes`] has something to do next.
pub(super) fn next_frontier_event_ms(cx: &Context, last_tick_ms: i64) -> Option<i64> {
    if cx.frontier.has_crawls_to_release() || cx.window.has_more {
        return Some(last_tick_ms);
    }
    let (retry_ms, room_ms) = (cx.frontier.next_retry_ms(), cx.frontier.next_room_ms());
    retry_ms.into_iter().chain(room_ms).min()
}

/// Sites in the window have got tasks to hand out. Where leased tasks of a lower priority are
/// in their way, those are recalled.
pub(super) fn wake(cx: &mut Context, woken: Vec<Woken>) {
    for woken in woken {
        if let Some((owner, scope)) = cx.dispatch.wake(woken) {
            recalls::recall_from(cx, &owner, &scope);
        }
    }
}

pub(super) fn room_in_window(cx: &Context) -> usize {
    let in_window = cx.dispatch.sites_in_window();
    cx.settings.window_sites.saturating_sub(in_window)
}

/// Admits sites that will be due soon to the window. When seven eighths of it are full, sites
/// that are not due for long leave it, and the last eighth is for underserved crawls only.
fn fill_window(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    let is_due = cx
        .window
        .next_site_ms
        .is_some_and(|due_ms| due_ms - LOOKAHEAD_MS <= now_ms);
    if !is_due || cx.dispatch.supervisor_count() == 0 {
        return Ok(());
    }
    let spare = cx.settings.window_sites / 8;
    let needed = (spare + 1).saturating_sub(room_in_window(cx));
    for (site, clock) in cx.dispatch.evict_distant(needed, FEW_SITES, now_ms) {
        cx.frontier.return_site(site, &clock)?;
    }
    if room_in_window(cx) > 0 {
        admit_underserved(cx, now_ms)?;
    }
    let room = room_in_window(cx).saturating_sub(spare);
    if room > 0 {
        let most = room.min(MOST_ADMITTED);
        for site in cx.frontier.next_sites(now_ms + LOOKAHEAD_MS, most)? {
            cx.dispatch.add_site(site);
        }
        cx.window.next_site_ms = cx.frontier.next_due_ms()?;
    }
    if room_in_window(cx) <= spare {
        cx.window.fill_again_ms = now_ms + FILL_EVERY_MS;
    }
    Ok(())
}

/// Admits sites of underserved crawls, if the window is more than half full.
fn admit_underserved(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    if room_in_window(cx) > cx.settings.window_sites / 2 {
        return Ok(());
    }
    for _ in 0..UNDERSERVED_PER_TURN {
        let Some(crawl) = cx.window.underserved.next() else {
            break;
        };
        let wanted = FEW_SITES.saturating_sub(cx.dispatch.admitted_for(crawl));
        let most = wanted.min(room_in_window(cx));
        let found = cx
            .frontier
            .next_sites_of(crawl, now_ms + LOOKAHEAD_MS, most)?;
        if found.len() == most {
            cx.window.underserved.add(crawl);
        }
        for site in found {
            cx.dispatch.add_site(site);
        }
    }
    Ok(())
}

fn hand_out_site(cx: &mut Context, grant: &Grant, now_ms: i64) -> Result<usize, FrontierError> {
    if let Some(clock) = &grant.new_owner {
        // In the same commit as its leases: after a restart the leases of a site belong to its
        // owner.
        cx.frontier.save_clock(grant.site, clock)?;
    }
    let batch = cx
        .frontier
        .lease(grant.site, grant.tasks, grant.lane, now_ms)?;
    cx.dispatch
        .record_handed_out(grant, &batch.tasks, batch.left, batch.next);
    put_off_if_empty(cx, grant, &batch, now_ms);
    // A backoff that has just begun holds before the site may be granted again.
    apply_changed_sites(cx, now_ms)?;
    let handed_out = batch.tasks.len();
    cx.counters.handed_out += handed_out as u64;
    if handed_out > 0 {
        send_tasks(cx, grant, batch.tasks)?;
    }
    Ok(handed_out)
}

/// A granted site had nothing to hand out: it waits, so that it keeps no other waiting.
fn put_off_if_empty(cx: &mut Context, grant: &Grant, batch: &LeaseBatch, now_ms: i64) {
    let Some(why) = batch.nothing else {
        return;
    };
    let Some(aside) = cx.dispatch.put_off(grant, why, batch.next, now_ms) else {
        return;
    };
    *cx.counters.set_aside.entry(why).or_default() += 1;
    if aside.times > 1 {
        tracing::warn!(
            event = "site_set_aside",
            site = cx.dispatch.site_name(grant.site),
            reason = why.as_str(),
            queued = batch.left,
            times = aside.times,
            again_in_ms = aside.for_ms,
            "a site had its turn and nothing to hand out; it is set aside, and other sites go on"
        );
    }
}

fn send_tasks(cx: &mut Context, grant: &Grant, leased: Vec<Leased>) -> Result<(), FrontierError> {
    let Some((peer, session)) = cx.dispatch.peer(&grant.supervisor) else {
        return Ok(());
    };
    let site = cx.dispatch.site_name(grant.site);
    let site = site.unwrap_or_default().to_owned();
    if cx.dispatch.forget_crawls_if_too_many(&grant.supervisor) {
        cx.send_to_supervisor(&peer, DispatcherToSupervisor::ForgetCrawls { session });
    }
    send_scripts(cx, grant, &site);
    let mut crawls = Vec::new();
    let mut tasks = Vec::with_capacity(leased.len());
    for task in leased {
        log_leased(cx, grant, &task)?;
        if cx.dispatch.note_crawl_told(&grant.supervisor, task.crawl) {
            crawls.push(cx.crawls.settings(&mut cx.frontier, task.crawl)?);
        }
        tasks.push(Task {
            attrs: task.attrs,
            task: task.task,
            delivery: task.delivery,
            crawl: task.crawl,
            url: task.url,
            site: site.clone(),
            depth: task.depth,
            wait_ms: grant.wait_ms,
            last_request_ago_ms: grant.last_request_ago_ms,
            parent: task.parent,
            records: task.records,
            priority: task.priority,
            delay_ms: grant.delay_ms,
            failed_attempts: task.failed_attempts,
            unreachable: task.unreachable,
            address_bounds: cx.dispatch.address_bounds(grant.site, task.delivery.number),
        });
    }
    let Some((peer, session, number)) = cx.dispatch.address(&grant.supervisor) else {
        return Ok(());
    };
    let message = DispatcherToSupervisor::Tasks {
        session,
        number,
        crawls,
        tasks,
    };
    cx.send_to_supervisor(&peer, message);
    Ok(())
}

fn log_leased(cx: &mut Context, grant: &Grant, task: &Leased) -> Result<(), FrontierError> {
    if journey::is_logged() {
        tracing::debug!(
            target: JOURNEY,
            event = "leased",
            task = task.task,
            crawl_id = cx.frontier.spec(task.crawl)?.crawl_id,
            url = task.url,
            attempt = task.delivery.number,
            supervisor = grant.supervisor,
            wait_ms = grant.wait_ms,
            "leased to a supervisor"
        );
    }
    Ok(())
}

/// Sends a supervisor what is known of the scripts of a site's pages, if anything is.
fn send_scripts(cx: &mut Context, grant: &Grant, site: &str) {
    let Some(scripts) = cx.frontier.scripts_for_worker(grant.site, site) else {
        return;
    };
    let Some((peer, session, number)) = cx.dispatch.address(&grant.supervisor) else {
        return;
    };
    let message = DispatcherToSupervisor::SiteScripts {
        session,
        number,
        scripts,
    };
    cx.send_to_supervisor(&peer, message);
}
