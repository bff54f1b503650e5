//! The outbox: notifications of watches that wait for delivery, and the events that were reported. A notification is
//! stored in the transaction that marks its event as reported, so each event is reported once. It stays, under the
//! same key, until it is delivered, so no crash loses it. The outbox is bounded: at most [`MOST_WAITING`]
//! notifications with [`MOST_BYTES`] wait per watch, and [`MOST_BYTES_IN_ALL`] in total. Bodies are stored
//! separately, and only as long as their notifications wait, so that the rows that are read each second stay small.
//!
//! The functions work on any connection to the file, because `webfill watch run FILE` has no dispatcher any more when
//! its run has ended.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use serde_json::{Value, json};
use webfill_api::{NotificationTarget, NotificationTime};
use webfill_notifications::{Delivery, Reported, SiteTrouble, Verdict};

/// The maximum number of waiting notifications of a watch. Beyond it, the oldest is dropped.
const MOST_WAITING: i64 = 1_000;

/// The maximum size of waiting notifications, per watch and in total, in bytes. Beyond it, the oldest one of the
/// watch is dropped.
const MOST_BYTES: i64 = 32 << 20;
const MOST_BYTES_IN_ALL: i64 = 512 << 20;

/// The oldest notification of a target goes first, so that the last one that it gets is current. After this many
/// attempts a notification goes behind the others, because the target may never accept it.
const TRIES_IN_ORDER: i64 = 10;

/// The maximum number of settled (delivered or dropped) notifications kept per watch.
const MOST_SETTLED: i64 = 100;

/// A notification that could not be delivered for this long is dropped.
const DROPPED_AFTER_MS: i64 = 3 * 86_400_000;

/// How long notifications are kept for people to see after they were delivered or dropped.
const KEPT_MS: i64 = 7 * 86_400_000;

/// The maximum number of sites in trouble to report.
const MOST_SITES: i64 = 100;

const OUTBOX_FULL: &str = "too many notifications wait: the oldest are dropped";
const TOO_OLD: &str = "it could not be delivered for three days";
const WITHDRAWN: &str = "its target was taken out of the watch";

/// A target, by the name of its watch and its JSON.
pub type TargetKey = (String, String);

/// A target that notifications have not reached for some time.
#[derive(Debug, Clone, PartialEq)]
pub struct Undelivered {
    pub target: TargetKey,
    pub since_ms: i64,
    pub why: String,
}

/// Adds a notification for one target to those that wait for delivery. If the target has failed before, the
/// notification waits together with the target's other notifications. Returns notifications that were dropped to make
/// room.
pub fn enqueue(
    db: &Connection,
    watch: &str,
    target: &NotificationTarget,
    notification: &Value,
    now_ms: i64,
) -> Result<Vec<Undelivered>> {
    let body = notification.to_string();
    let subject = notification["subject"].as_str().unwrap_or_default();
    let sql = "INSERT INTO notifications (key, watch, target, subject, bytes, made_ms, due_ms)
               SELECT lower(hex(randomblob(16))), ?1, ?2, ?3, ?4, ?5, max(?5, ifnull(min(due_ms), ?5))
               FROM notifications WHERE watch = ?1 AND target = ?2 AND due_ms IS NOT NULL AND tries > 0";
    let target = target_json(target);
    let values = params![watch, target, subject, body.len() as i64, now_ms];
    db.prepare_cached(sql)?.execute(values)?;
    let sql = "INSERT INTO notification_bodies (notification, body) VALUES (?1, ?2)";
    db.prepare_cached(sql)?
        .execute(params![db.last_insert_rowid(), body])?;
    let mut dropped = Vec::new();
    while !has_room(db, watch)? {
        let oldest = "SELECT min(id) FROM notifications WHERE watch = ?1 AND due_ms IS NOT NULL";
        let oldest: Option<i64> = db
            .prepare_cached(oldest)?
            .query_row([watch], |row| row.get(0))?;
        let Some(id) = oldest else { break };
        dropped.extend(drop_notification(db, id, OUTBOX_FULL, now_ms)?);
    }
    Ok(dropped)
}

fn has_room(db: &Connection, watch: &str) -> Result<bool> {
    let sql = "SELECT count(*), ifnull(sum(bytes), 0) FROM notifications
               WHERE watch = ?1 AND due_ms IS NOT NULL";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (waiting, bytes): (i64, i64) = db.prepare_cached(sql)?.query_row([watch], read)?;
    let sql = "SELECT ifnull(sum(bytes), 0) FROM notifications WHERE due_ms IS NOT NULL";
    let in_all: i64 = db.prepare_cached(sql)?.query_row((), |row| row.get(0))?;
    Ok(waiting <= MOST_WAITING && bytes <= MOST_BYTES && in_all <= MOST_BYTES_IN_ALL)
}

/// Marks a waiting notification as not delivered, with the reason, so that it does not wait any more.
fn drop_notification(
    db: &Connection,
    id: i64,
    why: &str,
    now_ms: i64,
) -> Result<Option<Undelivered>> {
    let sql = "UPDATE notifications SET due_ms = NULL, settled_ms = ?2, why = ?3
               WHERE id = ?1 AND due_ms IS NOT NULL RETURNING watch, target";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let target: Option<TargetKey> = db
        .prepare_cached(sql)?
        .query_row(params![id, now_ms, why], read)
        .optional()?;
    drop_body(db, id)?;
    Ok(target.map(|target| Undelivered {
        target,
        since_ms: now_ms,
        why: why.to_owned(),
    }))
}

fn drop_body(db: &Connection, id: i64) -> Result<()> {
    let sql = "DELETE FROM notification_bodies WHERE notification = ?1";
    db.prepare_cached(sql)?.execute([id]).map(drop)
}

/// Ends the wait of notifications whose targets are not in `targets` any more.
pub fn drop_removed_targets(
    db: &Connection,
    watch: &str,
    targets: &BTreeSet<String>,
    now_ms: i64,
) -> Result<()> {
    let sql = "SELECT id, target FROM notifications WHERE watch = ?1 AND due_ms IS NOT NULL";
    let mut select = db.prepare_cached(sql)?;
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
    let waiting: Vec<(i64, String)> = select.query_map([watch], read)?.collect::<Result<_>>()?;
    for (id, target) in waiting {
        if !targets.contains(&target) {
            drop_notification(db, id, WITHDRAWN, now_ms)?;
        }
    }
    Ok(())
}

/// The events of a watch that were reported; `None`: none yet.
pub fn load_reported(
    db: &Connection,
    watch: &str,
    time: NotificationTime,
) -> Result<Option<Reported>> {
    let sql = "SELECT reported FROM watch_reported WHERE watch = ?1 AND time = ?2";
    let mut select = db.prepare_cached(sql)?;
    let reported = select.query_row(params![watch, time.as_str()], |row| row.get::<_, String>(0));
    Ok(reported
        .optional()?
        .and_then(|reported| serde_json::from_str(&reported).ok()))
}

pub fn save_reported(
    db: &Connection,
    watch: &str,
    time: NotificationTime,
    reported: &Reported,
) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO watch_reported (watch, time, reported) VALUES (?1, ?2, ?3)";
    let reported = json!(reported).to_string();
    let values = params![watch, time.as_str(), reported];
    db.prepare_cached(sql)?.execute(values).map(drop)
}

/// Drops the record of reported events, because no recipient wants notifications at this time (digest or at once) any
/// more.
pub fn delete_reported(db: &Connection, watch: &str, time: NotificationTime) -> Result<()> {
    let sql = "DELETE FROM watch_reported WHERE watch = ?1 AND time = ?2";
    let values = params![watch, time.as_str()];
    db.prepare_cached(sql)?.execute(values).map(drop)
}

/// Drops the notifications of a removed watch. Those that were delivered or given up stay until they are too old.
pub fn delete_watch_notifications(db: &Connection, watch: &str) -> Result<()> {
    for sql in [
        "DELETE FROM notification_bodies WHERE notification IN
             (SELECT id FROM notifications WHERE watch = ?1 AND due_ms IS NOT NULL)",
        "DELETE FROM notifications WHERE watch = ?1 AND due_ms IS NOT NULL",
        "DELETE FROM watch_reported WHERE watch = ?1",
        "DELETE FROM undelivered WHERE watch = ?1",
    ] {
        db.prepare_cached(sql)?.execute([watch])?;
    }
    Ok(())
}

/// Makes all waiting notifications due, at a start.
pub fn make_all_due(db: &Connection, now_ms: i64) -> Result<()> {
    let sql = "UPDATE notifications SET due_ms = ?1 WHERE due_ms IS NOT NULL";
    db.prepare_cached(sql)?.execute([now_ms]).map(drop)
}

/// The due notifications: the oldest of each target.
pub fn list_due(
    db: &Connection,
    now_ms: i64,
    most: usize,
    is_busy: impl Fn(&TargetKey) -> bool,
) -> Result<Vec<(TargetKey, Delivery)>> {
    let sql =
        "SELECT id, watch, target FROM notifications WHERE due_ms IS NOT NULL AND due_ms <= ?1
               ORDER BY tries >= ?2, id";
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query([now_ms, TRIES_IN_ORDER])?;
    let mut found: Vec<(TargetKey, Delivery)> = Vec::new();
    while let Some(row) = rows.next()?
        && found.len() < most
    {
        let key: TargetKey = (row.get(1)?, row.get(2)?);
        if is_busy(&key) || found.iter().any(|(found, _)| *found == key) {
            continue;
        }
        if let Some(delivery) = load_delivery(db, row.get(0)?)? {
            found.push((key, delivery));
        }
    }
    Ok(found)
}

/// When the next notification is due.
pub fn next_due_ms(db: &Connection) -> Result<Option<i64>> {
    let sql = "SELECT min(due_ms) FROM notifications WHERE due_ms IS NOT NULL";
    db.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

fn load_delivery(db: &Connection, id: i64) -> Result<Option<Delivery>> {
    let sql = "SELECT key, watch, target, body FROM notifications
               JOIN notification_bodies ON notification = id WHERE id = ?1";
    let mut select = db.prepare_cached(sql)?;
    let text = |row: &Row<'_>, column| row.get::<_, String>(column);
    let row = |row: &Row<'_>| Ok((text(row, 0)?, text(row, 1)?, text(row, 2)?, text(row, 3)?));
    let Some((key, watch, target, notification)) = select.query_row([id], row).optional()? else {
        return Ok(None);
    };
    let read = serde_json::from_str(&target).ok();
    let read = read.zip(serde_json::from_str(&notification).ok());
    Ok(read.map(|(target, notification)| Delivery {
        id,
        key,
        watch,
        target,
        notification,
    }))
}

/// Records the result of an attempt. After a failure all notifications for the target wait until `again_ms`.
pub fn record_attempt(
    db: &Connection,
    (id, target): (i64, &TargetKey),
    verdict: &Verdict,
    (now_ms, again_ms): (i64, i64),
) -> Result<()> {
    let (why, is_settled) = match verdict {
        Verdict::Delivered => (None, true),
        Verdict::Dropped(why) => (Some(why), true),
        Verdict::Failed(why) => (Some(why), false),
    };
    let sql = "UPDATE notifications SET tries = tries + 1, why = ?2,
                   due_ms = iif(?3, NULL, ?4), settled_ms = iif(?3, ?5, NULL)
               WHERE id = ?1 AND due_ms IS NOT NULL";
    let values = params![id, why, is_settled, again_ms, now_ms];
    db.prepare_cached(sql)?.execute(values)?;
    if is_settled {
        drop_body(db, id)?;
        return trim_settled(db, &target.0);
    }
    let sql = "UPDATE notifications SET due_ms = max(due_ms, ?3)
               WHERE watch = ?1 AND target = ?2 AND due_ms IS NOT NULL";
    let values = params![target.0, target.1, again_ms];
    db.prepare_cached(sql)?.execute(values).map(drop)
}

/// Drops all but the latest notifications of a watch that were delivered or given up.
fn trim_settled(db: &Connection, watch: &str) -> Result<()> {
    let sql = "DELETE FROM notifications WHERE id IN
                   (SELECT id FROM notifications WHERE watch = ?1 AND settled_ms IS NOT NULL
                    ORDER BY id DESC LIMIT -1 OFFSET ?2)";
    let values = params![watch, MOST_SETTLED];
    db.prepare_cached(sql)?.execute(values).map(drop)
}

/// Targets whose oldest waiting notification was made before a time.
pub fn list_overdue(db: &Connection, before_ms: i64) -> Result<Vec<Undelivered>> {
    let sql = "SELECT watch, target, min(made_ms), max(why) FROM notifications
               WHERE due_ms IS NOT NULL GROUP BY watch, target HAVING min(made_ms) <= ?1";
    read_undelivered(db, sql, &[&before_ms])
}

/// The targets that have an alert.
pub fn list_undelivered(db: &Connection) -> Result<Vec<Undelivered>> {
    let sql = "SELECT watch, target, since_ms, why FROM undelivered";
    read_undelivered(db, sql, &[])
}

fn read_undelivered(
    db: &Connection,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<Vec<Undelivered>> {
    let mut select = db.prepare_cached(sql)?;
    let read = |row: &Row<'_>| {
        Ok(Undelivered {
            target: (row.get(0)?, row.get(1)?),
            since_ms: row.get(2)?,
            why: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        })
    };
    select.query_map(values, read)?.collect()
}

pub fn save_undelivered(db: &Connection, one: &Undelivered) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO undelivered (watch, target, since_ms, why)
               VALUES (?1, ?2, ?3, ?4)";
    let values = params![one.target.0, one.target.1, one.since_ms, one.why];
    db.prepare_cached(sql)?.execute(values).map(drop)
}

pub fn delete_undelivered(db: &Connection, target: &TargetKey) -> Result<()> {
    let sql = "DELETE FROM undelivered WHERE watch = ?1 AND target = ?2";
    let values = params![target.0, target.1];
    db.prepare_cached(sql)?.execute(values).map(drop)
}

/// Drops waiting notifications that are too old, and removes notifications that were delivered or dropped long ago.
/// Call it only once all waiting ones were tried, because the process may have been down for long. Returns the dropped
/// ones.
pub fn drop_expired(db: &Connection, now_ms: i64) -> Result<Vec<Undelivered>> {
    let sql = "SELECT id FROM notifications WHERE due_ms IS NOT NULL AND made_ms < ?1";
    let mut select = db.prepare_cached(sql)?;
    let old = select.query_map([now_ms - DROPPED_AFTER_MS], |row| row.get(0))?;
    let mut dropped = Vec::new();
    for id in old.collect::<Result<Vec<i64>>>()? {
        dropped.extend(drop_notification(db, id, TOO_OLD, now_ms)?);
    }
    let sql = "DELETE FROM notifications WHERE settled_ms IS NOT NULL AND settled_ms < ?1";
    db.prepare_cached(sql)?.execute([now_ms - KEPT_MS])?;
    Ok(dropped)
}

/// The number of waiting notifications of a watch, and its latest notifications for people. Times are seconds since
/// the epoch.
pub fn load_watch_notifications(
    db: &Connection,
    watch: &str,
    most: u64,
) -> Result<(u64, Vec<Value>)> {
    let sql = "SELECT count(*) FROM notifications WHERE watch = ?1 AND due_ms IS NOT NULL";
    let waiting: i64 = db
        .prepare_cached(sql)?
        .query_row([watch], |row| row.get(0))?;
    let sql = "SELECT key, target, subject, made_ms, tries, settled_ms, why
               FROM notifications WHERE watch = ?1 ORDER BY id DESC LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let seconds = |ms: i64| ms as f64 / 1_000.0;
    let read = |row: &Row<'_>| {
        let (settled_ms, why): (Option<i64>, Option<String>) = (row.get(5)?, row.get(6)?);
        let state = match (settled_ms, &why) {
            (None, _) => "waiting",
            (Some(_), None) => "delivered",
            (Some(_), Some(_)) => "dropped",
        };
        Ok(json!({
            "key": row.get::<_, String>(0)?,
            "target": target_for_display(&row.get::<_, String>(1)?),
            "subject": row.get::<_, String>(2)?,
            "at": seconds(row.get(3)?),
            "tries": row.get::<_, i64>(4)?,
            "state": state,
            "why": why,
        }))
    };
    let last = select.query_map(params![watch, most.min(1_000) as i64], read)?;
    Ok((waiting as u64, last.collect::<Result<_>>()?))
}

/// How many notifications wait, and why one of them does; `None` if none waits.
pub fn waiting_count_and_reason(db: &Connection) -> Result<Option<(u64, String)>> {
    let sql = "SELECT count(*), max(why) FROM notifications WHERE due_ms IS NOT NULL";
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?));
    let (waiting, why) = db.prepare_cached(sql)?.query_row([], read)?;
    Ok((waiting > 0).then(|| (waiting as u64, why.unwrap_or_default())))
}

/// A target in its stored form.
pub fn target_json(target: &NotificationTarget) -> String {
    json!(target).to_string()
}

/// A stored target, as shown to people.
pub fn target_for_display(target: &str) -> String {
    let read: Option<NotificationTarget> = serde_json::from_str(target).ok();
    read.map_or_else(|| "***".into(), |target| target.without_secrets())
}

/// The sites of a crawl that are backing off or unreachable.
pub fn sites_in_trouble(
    db: &Connection,
    (app, crawl): (&str, &str),
    now_ms: i64,
) -> Result<Vec<SiteTrouble>> {
    let sql = "SELECT sites.name, reason, since_ms, unreachable_to IS NOT NULL, sign, url
               FROM crawls CROSS JOIN crawl_sites ON crawl_sites.crawl = crawls.id
               CROSS JOIN site_states ON site_states.site = crawl_sites.site
               CROSS JOIN sites ON sites.id = site_states.site
               WHERE app_id = ?1 AND crawl_id = ?2
               AND (unreachable_to IS NOT NULL OR backoff_until_ms > ?3)
               ORDER BY since_ms LIMIT ?4";
    let mut select = db.prepare_cached(sql)?;
    let read = |row: &Row<'_>| {
        Ok(SiteTrouble {
            site: row.get(0)?,
            reason: row.get(1)?,
            since_ms: row.get(2)?,
            unreachable: row.get(3)?,
            sign: row.get(4)?,
            url: row.get(5)?,
        })
    };
    select
        .query_map(params![app, crawl, now_ms, MOST_SITES], read)?
        .collect()
}

#[cfg(test)]
mod tests;
