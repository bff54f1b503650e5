//! Reservations of a site's next request (see [`crate::cache::ReservationRequest`]).
//!
//! One `findAndModify` decides and grants, by the server's own clock (`$$NOW`). The rules are those of
//! [`SiteClock::decide_reservation`](crate::site_clock::SiteClock::decide_reservation), written as an expression. In
//! stored documents, the reservation is the member `slot`.

use mongodb::bson::{DateTime, RawDocumentBuf, rawdoc};

use super::cache::{expiry_expression, site_clock_from};
use super::command::{Db, write_concern};
use super::fault::Fault;
use crate::cache::{Reservation, ReservationRelease, ReservationRequest};
use crate::site_clock::clamp_to_i64;

/// Reserves a site's next request, if it may start now.
pub(super) async fn reserve(db: &Db, request: &ReservationRequest) -> Result<Reservation, Fault> {
    let answer = db.run(reserve_command(request)).await?;
    let stored = answer.get_document("value").cloned().unwrap_or_default();
    let stored = RawDocumentBuf::try_from(stored).map_err(mongodb::error::Error::from)?;
    let now = stored.get_datetime("now").map(DateTime::timestamp_millis);
    let now_ms =
        now.map_err(|_| Fault::Unavailable(String::from("it does not report the time")))?;
    let clock = site_clock_from(&stored);
    let is_ours = clock
        .reservation
        .as_ref()
        .is_some_and(|held| held.holder == request.holder);
    Ok(match clock.decide_reservation(request, now_ms) {
        decision if is_ours => decision,
        // The server has not granted the reservation, although it would do so now.
        Reservation::Granted => Reservation::Wait { wait_ms: 1 },
        wait => wait,
    })
}

fn reserve_command(request: &ReservationRequest) -> RawDocumentBuf {
    let reservation = rawdoc! {
        "holder": {"$literal": request.holder.as_str()},
        "granted_at": "$$NOW",
        "lapses_at": {"$add": ["$$NOW", clamp_to_i64(request.longest_request_ms)]},
    };
    let granted = rawdoc! {"$mergeObjects": ["$$ROOT", {
        "slot": reservation,
        "delay_ms": clamp_to_i64(request.delay_ms),
    }]};
    rawdoc! {
        "findAndModify": "sites",
        "query": {"_id": request.site.as_str()},
        "update": [
            {"$replaceWith": {"$cond": [may_start_condition(request), granted, "$$ROOT"]}},
            {"$set": {"forget_at": expiry_expression()}},
        ],
        "upsert": true,
        "new": true,
        "fields": {
            "now": "$$NOW", "last_start": 1, "answered_at": 1, "blocked_until": 1, "slot": 1,
        },
        "writeConcern": write_concern(),
    }
}

/// The condition for the server to grant the reservation. A missing time compares as lower than every date.
fn may_start_condition(request: &ReservationRequest) -> RawDocumentBuf {
    let delay_ms = clamp_to_i64(request.delay_ms);
    let last = rawdoc! {"$max": ["$last_start", "$answered_at", "$slot.lapses_at"]};
    rawdoc! {"$or": [
        {"$eq": ["$slot.holder", {"$literal": request.holder.as_str()}]},
        {"$and": [
            {"$lte": [{"$add": [last, delay_ms]}, "$$NOW"]},
            {"$lte": ["$blocked_until", "$$NOW"]},
        ]},
    ]}
}

/// Moves the site's clock if the request was sent, and ends the reservation.
pub(super) async fn release(db: &Db, release: &ReservationRelease) -> Result<(), Fault> {
    let is_held = rawdoc! {"$eq": ["$slot.holder", {"$literal": release.holder.as_str()}]};
    let mut changed = rawdoc! {"slot": {"$cond": [is_held.clone(), null, "$slot"]}};
    if release.was_used {
        let start = rawdoc! {"$cond": [is_held, "$slot.granted_at", null]};
        // Rounded up, because part of the current millisecond has passed, and the gap to the next request must not be
        // shorter than the delay.
        let now = rawdoc! {"$add": ["$$NOW", 1]};
        let blocked_until = rawdoc! {"$add": [now.clone(), clamp_to_i64(release.blocked_for_ms)]};
        let times = rawdoc! {
            "last_start": {"$max": ["$last_start", start]},
            "answered_at": {"$max": ["$answered_at", now]},
            "blocked_until": {"$max": ["$blocked_until", blocked_until]},
        };
        for member in times.iter().filter_map(Result::ok) {
            changed.append(member.0, member.1);
        }
    }
    let statement = rawdoc! {
        "q": {"_id": release.site.as_str()},
        "u": [{"$set": changed}, {"$set": {"forget_at": expiry_expression()}}],
    };
    db.update("sites", &[statement]).await?.into_result()
}
