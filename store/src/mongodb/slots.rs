//! Slots: who has a site's next request. One `findAndModify` judges and grants, by the server's own
//! clock (`$$NOW`); the rules are those of [`crate::site_clock::SiteClock::decide`], as an expression.

use mongodb::bson::{DateTime, RawDocumentBuf, rawdoc};

use super::cache::{forget_at, site_clock};
use super::command::{Db, majority};
use super::fault::Fault;
use crate::cache::{Slot, SlotClaim, SlotRelease};
use crate::site_clock::clamped;

/// Grants a site's next request, if that may start now.
pub(super) async fn claim(db: &Db, claim: &SlotClaim) -> Result<Slot, Fault> {
    let answer = db.run(claim_command(claim)).await?;
    let stored = answer.get_document("value").cloned().unwrap_or_default();
    let stored = RawDocumentBuf::try_from(stored).map_err(mongodb::error::Error::from)?;
    let now = stored.get_datetime("now").map(DateTime::timestamp_millis);
    let now_ms = now.map_err(|_| Fault::Away(String::from("it does not tell the time")))?;
    let clock = site_clock(&stored);
    let is_ours = clock
        .slot
        .as_ref()
        .is_some_and(|slot| slot.holder == claim.holder);
    Ok(match clock.decide(claim, now_ms) {
        slot if is_ours => slot,
        // Time went on meanwhile.
        Slot::Granted => Slot::Wait { wait_ms: 1 },
        wait => wait,
    })
}

fn claim_command(claim: &SlotClaim) -> RawDocumentBuf {
    let slot = rawdoc! {
        "holder": {"$literal": claim.holder.as_str()},
        "granted_at": "$$NOW",
        "lapses_at": {"$add": ["$$NOW", clamped(claim.longest_request_ms)]},
    };
    let granted = rawdoc! {"$mergeObjects": ["$$ROOT", {
        "slot": slot,
        "delay_ms": clamped(claim.delay_ms),
    }]};
    rawdoc! {
        "findAndModify": "sites",
        "query": {"_id": claim.site.as_str()},
        "update": [
            {"$replaceWith": {"$cond": [may_start(claim), granted, "$$ROOT"]}},
            {"$set": {"forget_at": forget_at()}},
        ],
        "upsert": true,
        "new": true,
        "fields": {
            "now": "$$NOW", "last_start": 1, "answered_at": 1, "blocked_until": 1, "slot": 1,
        },
        "writeConcern": majority(),
    }
}

/// Nothing that is known of the site forbids it; what is missing counts as before all time.
fn may_start(claim: &SlotClaim) -> RawDocumentBuf {
    let delay_ms = clamped(claim.delay_ms);
    let last = rawdoc! {"$max": ["$last_start", "$answered_at", "$slot.lapses_at"]};
    rawdoc! {"$or": [
        {"$eq": ["$slot.holder", {"$literal": claim.holder.as_str()}]},
        {"$and": [
            {"$lte": [{"$add": [last, delay_ms]}, "$$NOW"]},
            {"$lte": ["$blocked_until", "$$NOW"]},
        ]},
    ]}
}

/// Notes what became of a request, and frees its slot.
pub(super) async fn release(db: &Db, release: &SlotRelease) -> Result<(), Fault> {
    let is_held = rawdoc! {"$eq": ["$slot.holder", {"$literal": release.holder.as_str()}]};
    let mut changed = rawdoc! {"slot": {"$cond": [is_held.clone(), null, "$slot"]}};
    if release.was_used {
        let start = rawdoc! {"$cond": [is_held, "$slot.granted_at", null]};
        // The present millisecond has begun already: the gap must not be shorter than the delay.
        let now = rawdoc! {"$add": ["$$NOW", 1]};
        let blocked_until = rawdoc! {"$add": [now.clone(), clamped(release.blocked_for_ms)]};
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
        "u": [{"$set": changed}, {"$set": {"forget_at": forget_at()}}],
    };
    db.update("sites", &[statement]).await?.none_failed()
}
