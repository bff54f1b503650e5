//! Passes changes of sites' states on to the queue of sites, the dispatch and the store.

use super::site_states::read_state;
use crate::site_state::outcome_if_unreachable;
use rusqlite::{OptionalExtension, Result, params};
use webfill_wire::Evidence;

use super::backoff::Unreachable;
use super::context::Context;
use super::model::{SiteId, TaskId};
use super::site_states::StoredState;
use super::unsaved_states;
use crate::site_state::{Phase, SiteState, UNTIL_WOKEN_MS};

/// Passes a changed phase on to the queue of sites, to the dispatch, and later to the store.
pub(super) fn propagate_phase(cx: &mut Context, site: SiteId, phase: Phase) -> Result<()> {
    let until_ms = match phase {
        Phase::BackingOff { until_ms } => until_ms,
        Phase::Open | Phase::Unreachable => 0,
    };
    let sql = "UPDATE sites SET backoff_until_ms = ?2 WHERE id = ?1 AND backoff_until_ms <> ?2";
    let changed = cx
        .db
        .prepare_cached(sql)?
        .execute(params![site, until_ms])?;
    let (was_unreachable, is_unreachable) = (
        cx.backoff.unreachable.contains_key(&site),
        phase == Phase::Unreachable,
    );
    if changed > 0 || was_unreachable != is_unreachable {
        cx.holding.changed_sites.push(site);
    }
    match changed > 0 || was_unreachable || is_unreachable {
        true => unsaved_states::mark_unsaved(cx, site),
        false => Ok(()),
    }
}

pub(super) fn site_state(cx: &Context, site: SiteId) -> Result<StoredState> {
    let sql =
        "SELECT reason, failures, backoff_index, unreachable_to, suspects, backoff_until_ms, since_ms
               FROM site_states JOIN sites ON id = site WHERE site = ?1";
    let mut select = cx.db.prepare_cached(sql)?;
    let stored = select.query_row([site], read_state).optional()?;
    Ok(stored.unwrap_or(StoredState {
        state: SiteState::default(),
        since_ms: 0,
        suspects: Vec::new(),
    }))
}

pub(super) fn insert_state(
    cx: &mut Context,
    site: SiteId,
    stored: &StoredState,
    evidence: &Evidence,
) -> Result<()> {
    let sql = "INSERT INTO site_states
                   (site, reason, failures, backoff_index, since_ms, url, status_code, sign)
               VALUES (?1, '', 0, 0, ?2, ?3, ?4, ?5)
               ON CONFLICT (site) DO UPDATE SET
                   since_ms = ?2, url = ?3, status_code = ?4, sign = ?5";
    let (url, status, sign) = (&evidence.url, evidence.status_code, &evidence.sign);
    let values = params![site, stored.since_ms, url, status, sign];
    cx.db.prepare_cached(sql)?.execute(values)?;
    cx.backoff.known.insert(site);
    update_state(cx, site, stored)
}

pub(super) fn update_state(cx: &mut Context, site: SiteId, stored: &StoredState) -> Result<()> {
    let StoredState {
        state, suspects, ..
    } = stored;
    let unreachable_to = match (state.phase, cx.backoff.patience) {
        // With a patience, later tasks end as unreachable, too, so there is no last one.
        (Phase::Unreachable, Some(_)) => Some(i64::MAX),
        (Phase::Unreachable, None) => Some(last_task_id(cx)?),
        _ => None,
    };
    let sql = "UPDATE site_states SET reason = ?2, failures = ?3, backoff_index = ?4,
                   unreachable_to = ?5, suspects = ?6 WHERE site = ?1";
    let values = params![
        site,
        state.reason.as_str(),
        state.failures,
        state.backoff_index,
        unreachable_to,
        serde_json::to_string(suspects).unwrap_or_default(),
    ];
    cx.db.prepare_cached(sql)?.execute(values)?;
    match unreachable_to {
        Some(task) => {
            let unreachable =
                Unreachable::new(task as TaskId, outcome_if_unreachable(state.reason));
            cx.backoff.unreachable.insert(site, unreachable);
        }
        None => drop(cx.backoff.unreachable.remove(&site)),
    }
    Ok(())
}

/// Makes the site open, and drops the facts about its failures.
pub(super) fn clear_backoff(cx: &mut Context, site: SiteId) -> Result<()> {
    propagate_phase(cx, site, Phase::Open)?;
    delete_state(cx, site)
}

pub(super) fn delete_state(cx: &mut Context, site: SiteId) -> Result<()> {
    let sql = "DELETE FROM site_states WHERE site = ?1";
    cx.db.prepare_cached(sql)?.execute([site])?;
    cx.backoff.known.remove(&site);
    cx.backoff.unreachable.remove(&site);
    Ok(())
}

/// The newest of all tasks. No queued task of any site is newer.
pub(super) fn last_task_id(cx: &Context) -> Result<i64> {
    let sql = "SELECT coalesce(max(id), 0) FROM tasks";
    cx.db.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

pub(super) fn is_backed_off_until_woken(cx: &Context, site: SiteId) -> Result<bool> {
    let sql = "SELECT backoff_until_ms >= ?2 FROM sites WHERE id = ?1";
    let mut select = cx.db.prepare_cached(sql)?;
    select.query_row(params![site, UNTIL_WOKEN_MS], |row| row.get(0))
}
