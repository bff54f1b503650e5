//! The tables `robots` and `sites`: robots.txt files and site clocks.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::Sqlite;
use super::columns::parse_time;
use super::fault::Fault;
use super::reservations;
use crate::cache::{
    Cache, ROBOTS_KEPT_MS, Reservation, ReservationRelease, ReservationRequest, RobotsEntry,
    SITE_KEPT_MS, SiteClockEntry,
};
use crate::error::StoreError;
use crate::site_clock::clamp_to_i64;
use crate::timestamp::iso_time;

#[async_trait]
impl Cache for Sqlite {
    fn call_pace(&self, _processes: u16) -> Duration {
        Duration::ZERO
    }

    async fn robots_of(
        &self,
        origins: Vec<String>,
        now_ms: i64,
    ) -> Result<Vec<Option<RobotsEntry>>, StoreError> {
        self.thread
            .call(move |db| db.read(|conn| robots_of(conn, &origins, now_ms)))
            .await?
    }

    async fn put_robots(&self, entries: Vec<RobotsEntry>, now_ms: i64) -> Result<(), StoreError> {
        self.thread
            .call(move |db| db.write(|conn| put_and_expire_robots(conn, &entries, now_ms)))
            .await?
    }

    async fn sites(
        &self,
        sites: Vec<String>,
        now_ms: i64,
    ) -> Result<Vec<Option<SiteClockEntry>>, StoreError> {
        self.thread
            .call(move |db| {
                db.read(|conn| {
                    let read = |name: &String| site_clock(conn, name, now_ms);
                    sites.iter().map(read).collect()
                })
            })
            .await?
    }

    async fn put_sites(&self, entries: Vec<SiteClockEntry>) -> Result<(), StoreError> {
        self.thread
            .call(move |db| db.write(|conn| merge_site_clocks(conn, &entries)))
            .await?
    }

    async fn reserve(&self, request: &ReservationRequest) -> Result<Reservation, StoreError> {
        let request = request.clone();
        self.thread
            .call(move |db| db.write(|conn| reservations::reserve(conn, &request)))
            .await?
    }

    async fn release_reservation(&self, release: &ReservationRelease) -> Result<(), StoreError> {
        let release = release.clone();
        self.thread
            .call(move |db| db.write(|conn| reservations::release(conn, &release)))
            .await?
    }
}

const UPSERT_ROBOTS: &str = "
INSERT INTO robots (_id, status, fetched_at, expires_at, body) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (_id) DO UPDATE SET status = excluded.status, fetched_at = excluded.fetched_at,
    expires_at = excluded.expires_at, body = excluded.body
WHERE excluded.fetched_at >= robots.fetched_at";

/// The statement that updates a site's clock. In `DO UPDATE SET`, all right-hand sides see the row as it was before.
const UPSERT_SITE: &str = "
INSERT INTO sites (_id, last_start, delay_ms, blocked_until, owner, accepted_ms)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (_id) DO UPDATE SET
    last_start = max(last_start, excluded.last_start),
    blocked_until = max(ifnull(blocked_until, excluded.blocked_until),
        ifnull(excluded.blocked_until, blocked_until)),
    delay_ms = iif(excluded.last_start >= last_start, excluded.delay_ms, delay_ms),
    owner = iif(excluded.last_start >= last_start, excluded.owner, owner),
    accepted_ms = iif(excluded.last_start >= last_start, excluded.accepted_ms, accepted_ms)";

/// The robots.txt files of origins, in the requested order; `None` for a missing or expired one.
pub(super) fn robots_of(
    conn: &Connection,
    origins: &[String],
    now_ms: i64,
) -> Result<Vec<Option<RobotsEntry>>, Fault> {
    let origins = origins.iter();
    origins
        .map(|origin| load_robots(conn, origin, now_ms))
        .collect()
}

fn load_robots(conn: &Connection, origin: &str, now_ms: i64) -> Result<Option<RobotsEntry>, Fault> {
    let sql = "SELECT status, fetched_at, expires_at, body FROM robots
        WHERE _id = ?1 AND fetched_at > ?2";
    let mut statement = conn.prepare_cached(sql)?;
    let oldest = iso_time(now_ms.saturating_sub(ROBOTS_KEPT_MS));
    let mut rows = statement.query(params![origin, oldest])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(RobotsEntry {
        origin: origin.to_owned(),
        status: row.get(0)?,
        fetched_at_ms: parse_time(&row.get::<_, String>(1)?)?,
        expires_at_ms: parse_time(&row.get::<_, String>(2)?)?,
        body: row.get(3)?,
    }))
}

/// Stores robots.txt files. For each, it also deletes up to two that are past their time, so that the table stays small
/// and no transaction takes long. The index is by expiry, so these are files that expired [`ROBOTS_KEPT_MS`] ago.
pub(super) fn put_and_expire_robots(
    conn: &Connection,
    entries: &[RobotsEntry],
    now_ms: i64,
) -> Result<(), Fault> {
    let mut upsert = conn.prepare_cached(UPSERT_ROBOTS)?;
    for entry in entries {
        upsert.execute(params![
            entry.origin,
            entry.status,
            iso_time(entry.fetched_at_ms),
            iso_time(entry.expires_at_ms),
            entry.body,
        ])?;
    }
    let purge = "DELETE FROM robots WHERE _id IN (SELECT _id FROM robots WHERE expires_at <= ?1
        ORDER BY expires_at LIMIT ?2)";
    let oldest = iso_time(now_ms.saturating_sub(ROBOTS_KEPT_MS));
    conn.prepare_cached(purge)?
        .execute(params![oldest, clamp_to_i64(2 * entries.len() as u64)])?;
    Ok(())
}

/// A site's clock: when it was last requested and may be requested next. `None` if it has not changed for
/// [`SITE_KEPT_MS`].
pub(super) fn site_clock(
    conn: &Connection,
    site: &str,
    now_ms: i64,
) -> Result<Option<SiteClockEntry>, Fault> {
    let sql = "SELECT delay_ms, owner, accepted_ms FROM sites WHERE _id = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([site])?;
    let (Some(row), Some(clock)) = (rows.next()?, reservations::load(conn, site)?) else {
        return Ok(None);
    };
    let delay_ms = row.get::<_, i64>(0)?.unsigned_abs();
    let accepted_ms: Option<i64> = row.get(2)?;
    let entry = clock.entry(site, delay_ms, row.get(1)?, now_ms);
    Ok(entry.map(|entry| SiteClockEntry {
        accepted_ms: accepted_ms.map(i64::unsigned_abs),
        ..entry
    }))
}

/// Updates the clocks of sites. The last start and the block of a clock only move forward.
pub(super) fn merge_site_clocks(
    conn: &Connection,
    entries: &[SiteClockEntry],
) -> Result<(), Fault> {
    let mut upsert = conn.prepare_cached(UPSERT_SITE)?;
    for entry in entries {
        upsert.execute(params![
            entry.site,
            iso_time(entry.last_start_ms),
            clamp_to_i64(entry.delay_ms),
            entry.blocked_until_ms.map(iso_time),
            entry.owner,
            entry.accepted_ms.map(clamp_to_i64),
        ])?;
    }
    Ok(())
}

/// Deletes the clocks of sites that were not requested for [`SITE_KEPT_MS`]. This scans the whole table, so it is done
/// only when the file is opened.
pub(super) fn delete_idle_sites(conn: &Connection) -> Result<(), Fault> {
    let sql = "DELETE FROM sites WHERE
        max(last_start, ifnull(blocked_until, ''), ifnull(slot_lapses_at, '')) < ?1";
    let now_ms = Timestamp::now().as_millisecond();
    conn.execute(sql, [iso_time(now_ms.saturating_sub(SITE_KEPT_MS))])?;
    Ok(())
}
