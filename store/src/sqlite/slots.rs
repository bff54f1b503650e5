//! Slots: who has a site's next request. All processes that share the file are on one machine,
//! whose clock judges.

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::crawls::time;
use super::fault::Fault;
use crate::cache::{Slot, SlotClaim, SlotRelease};
use crate::site_clock::{HeldSlot, SiteClock, clamped};
use crate::timestamp::iso_time;

const GRANT: &str = "
INSERT INTO sites (_id, last_start, delay_ms, slot_holder, slot_granted_at, slot_lapses_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (_id) DO UPDATE SET delay_ms = excluded.delay_ms, slot_holder = excluded.slot_holder,
    slot_granted_at = excluded.slot_granted_at, slot_lapses_at = excluded.slot_lapses_at";

const NOTE_ANSWER: &str = "
UPDATE sites SET
    last_start = max(last_start, iif(slot_holder = ?2, slot_granted_at, last_start)),
    answered_at = max(ifnull(answered_at, ?3), ?3),
    blocked_until = max(ifnull(blocked_until, ?4), ?4)
WHERE _id = ?1";

const FREE: &str = "
UPDATE sites SET slot_holder = NULL, slot_granted_at = NULL, slot_lapses_at = NULL
WHERE _id = ?1 AND slot_holder = ?2";

/// Grants a site's next request, if that may start now. To be run in a transaction.
pub(super) fn claim(conn: &Connection, claim: &SlotClaim) -> Result<Slot, Fault> {
    let now_ms = Timestamp::now().as_millisecond();
    let clock = load(conn, &claim.site)?;
    let known = clock.as_ref().unwrap_or(&SiteClock::NEVER);
    let decision = known.decide(claim, now_ms);
    if decision == Slot::Granted {
        conn.prepare_cached(GRANT)?.execute(params![
            claim.site,
            iso_time(SiteClock::NEVER.last_start_ms),
            clamped(claim.delay_ms),
            claim.holder,
            iso_time(now_ms),
            iso_time(now_ms.saturating_add(clamped(claim.longest_request_ms))),
        ])?;
    }
    Ok(decision)
}

/// Notes what became of a request, and frees its slot. To be run in a transaction.
pub(super) fn release(conn: &Connection, release: &SlotRelease) -> Result<(), Fault> {
    // The present millisecond has begun already: the gap must not be shorter than the delay.
    let now_ms = Timestamp::now().as_millisecond() + 1;
    let (site, holder) = (&release.site, &release.holder);
    if release.was_used {
        let blocked_until_ms = now_ms.saturating_add(clamped(release.blocked_for_ms));
        let times = (iso_time(now_ms), iso_time(blocked_until_ms));
        conn.prepare_cached(NOTE_ANSWER)?
            .execute(params![site, holder, times.0, times.1])?;
    }
    conn.prepare_cached(FREE)?.execute(params![site, holder])?;
    Ok(())
}

/// What is known of a site.
pub(super) fn load(conn: &Connection, site: &str) -> Result<Option<SiteClock>, Fault> {
    let sql = "SELECT last_start, answered_at, blocked_until, slot_holder, slot_granted_at,
        slot_lapses_at FROM sites WHERE _id = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([site])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let optional = |column| -> Result<Option<i64>, Fault> {
        let text: Option<String> = row.get(column)?;
        text.as_deref().map(time).transpose()
    };
    let slot = match (row.get(3)?, optional(4)?, optional(5)?) {
        (Some(holder), Some(granted_at_ms), Some(lapses_at_ms)) => Some(HeldSlot {
            holder,
            granted_at_ms,
            lapses_at_ms,
        }),
        _ => None,
    };
    Ok(Some(SiteClock {
        last_start_ms: time(&row.get::<_, String>(0)?)?,
        answered_at_ms: optional(1)?,
        blocked_until_ms: optional(2)?,
        slot,
    }))
}
