//! The collections `robots` and `sites`: robots.txt files and site clocks.
//!
//! The server deletes old documents, by the TTL indexes on `robots.fetched_at` and `sites.forget_at`, but with some
//! delay. Until then, reads ignore them.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use mongodb::bson::raw::cstr;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{RawBinaryRef, RawDocument, RawDocumentBuf, rawdoc};

use super::Mongo;
use super::command::{Db, UpdateResult};
use super::conditions::{not_older_condition, replace_if_statement};
use super::fault::Fault;
use super::members::{date, integer, time};
use super::reservations;
use super::value::or_null;
use crate::cache::{
    Cache, Reservation, ReservationRelease, ReservationRequest, RobotsEntry, SITE_KEPT_MS,
    SiteClockEntry,
};
use crate::error::StoreError;
use crate::site_clock::{HeldReservation, SiteClock, clamp_to_i64};

/// The robots.txt files of origins, in the requested order; `None` for a missing or expired one.
pub(super) async fn robots_of(
    db: &Db,
    origins: &[String],
    now_ms: i64,
) -> Result<Vec<Option<RobotsEntry>>, Fault> {
    let ids: Vec<&str> = origins.iter().map(String::as_str).collect();
    let mut found = HashMap::with_capacity(ids.len());
    for stored in db.find_by_ids("robots", &ids).await? {
        if let Some(entry) = robots_from(&stored).filter(|entry| entry.is_usable(now_ms)) {
            found.insert(entry.origin.clone(), entry);
        }
    }
    let entries = origins.iter().map(|origin| found.get(origin).cloned());
    Ok(entries.collect())
}

fn robots_from(stored: &RawDocument) -> Option<RobotsEntry> {
    let status = integer(stored, "status");
    let body = stored.get_binary("body").map(|body| body.bytes.to_vec());
    Some(RobotsEntry {
        origin: stored.get_str("_id").ok()?.to_owned(),
        status: status.and_then(|status| u16::try_from(status).ok()),
        body: body.unwrap_or_default(),
        fetched_at_ms: time(stored, "fetched_at")?,
        expires_at_ms: time(stored, "expires_at")?,
    })
}

/// Stores robots.txt files.
pub(super) async fn put_robots(db: &Db, entries: &[RobotsEntry]) -> Result<(), Fault> {
    let statements: Vec<RawDocumentBuf> = entries.iter().map(robots_statement).collect();
    db.upsert("robots", &statements).await?.into_result()
}

fn robots_statement(entry: &RobotsEntry) -> RawDocumentBuf {
    let mut stored = rawdoc! {
        "_id": entry.origin.as_str(),
        "status": or_null(entry.status.map(i32::from)),
        "fetched_at": date(entry.fetched_at_ms),
        "expires_at": date(entry.expires_at_ms),
    };
    let body = RawBinaryRef {
        subtype: BinarySubtype::Generic,
        bytes: &entry.body,
    };
    stored.append(cstr!("body"), body);
    let condition = not_older_condition("fetched_at", date(entry.fetched_at_ms));
    replace_if_statement(&entry.origin, condition, stored)
}

/// The clocks of sites, in the requested order; `None` for a site that is unknown or has not changed for
/// [`SITE_KEPT_MS`].
pub(super) async fn sites(
    db: &Db,
    sites: &[String],
    now_ms: i64,
) -> Result<Vec<Option<SiteClockEntry>>, Fault> {
    let ids: Vec<&str> = sites.iter().map(String::as_str).collect();
    let mut found = HashMap::with_capacity(ids.len());
    for stored in db.find_by_ids("sites", &ids).await? {
        if let Ok(site) = stored.get_str("_id") {
            found.insert(site.to_owned(), stored.clone());
        }
    }
    let entry = |site: &String| {
        let stored = found.get(site)?;
        let delay_ms = integer(stored, "delay_ms").unwrap_or(0).unsigned_abs();
        let owner = stored.get_str("owner").ok().map(str::to_owned);
        let accepted_ms = integer(stored, "accepted_ms").map(i64::unsigned_abs);
        let entry = site_clock_from(stored).entry(site, delay_ms, owner, now_ms)?;
        Some(SiteClockEntry {
            accepted_ms,
            ..entry
        })
    };
    Ok(sites.iter().map(entry).collect())
}

/// Reads a stored document as a site's clock: when the site was last requested, and when it may be requested next.
pub(super) fn site_clock_from(stored: &RawDocument) -> SiteClock {
    let reservation = stored.get_document("slot").ok().and_then(|slot| {
        Some(HeldReservation {
            holder: slot.get_str("holder").ok()?.to_owned(),
            granted_at_ms: time(slot, "granted_at")?,
            lapses_at_ms: time(slot, "lapses_at")?,
        })
    });
    SiteClock {
        last_start_ms: time(stored, "last_start").unwrap_or(SiteClock::NEVER.last_start_ms),
        answered_at_ms: time(stored, "answered_at"),
        blocked_until_ms: time(stored, "blocked_until"),
        reservation,
    }
}

/// Updates the clocks of sites. The last start and the block of a clock only move forward.
pub(super) async fn put_sites(db: &Db, entries: &[SiteClockEntry]) -> Result<(), Fault> {
    let statements: Vec<RawDocumentBuf> = entries.iter().map(site_statement).collect();
    db.upsert("sites", &statements).await?.into_result()
}

/// The statement that updates a site's clock. All expressions of its first stage see the document as it was before.
fn site_statement(entry: &SiteClockEntry) -> RawDocumentBuf {
    let start = date(entry.last_start_ms);
    let is_latest = rawdoc! {"$gte": [start, "$last_start"]};
    rawdoc! {
        "q": {"_id": entry.site.as_str()},
        "u": [
            {"$set": {
                "last_start": {"$max": ["$last_start", start]},
                "blocked_until": {"$max": ["$blocked_until", or_null(entry.blocked_until_ms.map(date))]},
                "delay_ms": {"$cond": [
                    is_latest.clone(), clamp_to_i64(entry.delay_ms), "$delay_ms",
                ]},
                "owner": {"$cond": [
                    is_latest.clone(), {"$literal": or_null(entry.owner.as_deref())}, "$owner",
                ]},
                "accepted_ms": {"$cond": [
                    is_latest, or_null(entry.accepted_ms.map(clamp_to_i64)), "$accepted_ms",
                ]},
            }},
            {"$set": {"forget_at": expiry_expression()}},
        ],
        "upsert": true,
    }
}

/// The expression for the time when the server deletes a site's clock. `$max` ignores missing members.
pub(super) fn expiry_expression() -> RawDocumentBuf {
    rawdoc! {"$add": [
        {"$max": ["$last_start", "$answered_at", "$blocked_until", "$slot.lapses_at"]},
        SITE_KEPT_MS,
    ]}
}

impl UpdateResult {
    /// The fault of the first failed statement, if there is one.
    pub(super) fn into_result(self) -> Result<(), Fault> {
        match self.failed.first() {
            None => Ok(()),
            Some((_, code, message)) => Err(Fault::from_statement_error(*code, message)),
        }
    }
}

#[async_trait]
impl Cache for Mongo {
    fn call_pace(&self, processes: u16) -> Duration {
        super::call_interval(processes)
    }

    async fn robots_of(
        &self,
        origins: Vec<String>,
        now_ms: i64,
    ) -> Result<Vec<Option<RobotsEntry>>, StoreError> {
        self.call(async move |db: Db| robots_of(&db, &origins, now_ms).await)
            .await
    }

    /// The server deletes expired entries by its own clock, so `_now_ms` is not used.
    async fn put_robots(&self, entries: Vec<RobotsEntry>, _now_ms: i64) -> Result<(), StoreError> {
        self.call(async move |db: Db| put_robots(&db, &entries).await)
            .await
    }

    async fn sites(
        &self,
        sites: Vec<String>,
        now_ms: i64,
    ) -> Result<Vec<Option<SiteClockEntry>>, StoreError> {
        self.call(async move |db: Db| self::sites(&db, &sites, now_ms).await)
            .await
    }

    async fn put_sites(&self, entries: Vec<SiteClockEntry>) -> Result<(), StoreError> {
        self.call(async move |db: Db| put_sites(&db, &entries).await)
            .await
    }

    async fn reserve(&self, request: &ReservationRequest) -> Result<Reservation, StoreError> {
        let request = request.clone();
        self.call(async move |db: Db| reservations::reserve(&db, &request).await)
            .await
    }

    async fn release_reservation(&self, release: &ReservationRelease) -> Result<(), StoreError> {
        let release = release.clone();
        self.call(async move |db: Db| reservations::release(&db, &release).await)
            .await
    }
}
