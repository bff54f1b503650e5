//! Reservations of a site's next request (see [`crate::cache::ReservationRequest`]). All processes that share the file
//! run on one machine, so the machine's clock is the cache's clock.

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::columns::parse_time;
use super::fault::Fault;
use crate::cache::{Reservation, ReservationRelease, ReservationRequest};
use crate::site_clock::{HeldReservation, SiteClock, clamp_to_i64};
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

/// Reserves a site's next request, if it may start now. Must be run in a transaction.
pub(super) fn reserve(
    conn: &Connection,
    request: &ReservationRequest,
) -> Result<Reservation, Fault> {
    let now_ms = Timestamp::now().as_millisecond();
    let clock = load(conn, &request.site)?;
    let known = clock.as_ref().unwrap_or(&SiteClock::NEVER);
    let decision = known.decide_reservation(request, now_ms);
    if decision == Reservation::Granted {
        conn.prepare_cached(GRANT)?.execute(params![
            request.site,
            iso_time(SiteClock::NEVER.last_start_ms),
            clamp_to_i64(request.delay_ms),
            request.holder,
            iso_time(now_ms),
            iso_time(now_ms.saturating_add(clamp_to_i64(request.longest_request_ms))),
        ])?;
    }
    Ok(decision)
}

/// Ends a reservation. If its request was sent, moves the site's clock forward. Must be run in a transaction.
pub(super) fn release(conn: &Connection, release: &ReservationRelease) -> Result<(), Fault> {
    // Rounded up, because part of the current millisecond has passed, and the gap to the next request must not be
    // shorter than the delay.
    let now_ms = Timestamp::now().as_millisecond() + 1;
    let (site, holder) = (&release.site, &release.holder);
    if release.was_used {
        let blocked_until_ms = now_ms.saturating_add(clamp_to_i64(release.blocked_for_ms));
        let times = (iso_time(now_ms), iso_time(blocked_until_ms));
        conn.prepare_cached(NOTE_ANSWER)?
            .execute(params![site, holder, times.0, times.1])?;
    }
    conn.prepare_cached(FREE)?.execute(params![site, holder])?;
    Ok(())
}

/// A site's clock: when it was last requested and may be requested next. `None` if the site is unknown.
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
        text.as_deref().map(parse_time).transpose()
    };
    let reservation = match (row.get(3)?, optional(4)?, optional(5)?) {
        (Some(holder), Some(granted_at_ms), Some(lapses_at_ms)) => Some(HeldReservation {
            holder,
            granted_at_ms,
            lapses_at_ms,
        }),
        _ => None,
    };
    Ok(Some(SiteClock {
        last_start_ms: parse_time(&row.get::<_, String>(0)?)?,
        answered_at_ms: optional(1)?,
        blocked_until_ms: optional(2)?,
        reservation,
    }))
}
