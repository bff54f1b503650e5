//! The state of a dispatcher besides its tasks: the outbox, the number of links accepted from each other dispatcher,
//! and each crawl with its version, share and counts. It is in the same file as the tasks, so both are committed
//! together.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use webfill_wire::CrawlKey;

use super::message::{CrawlNumber, Link};

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS outbox (
    receiver INTEGER NOT NULL,
    number   INTEGER NOT NULL,                -- running, for each receiver
    crawl    INTEGER NOT NULL,
    url      TEXT NOT NULL,
    depth    INTEGER NOT NULL,
    PRIMARY KEY (receiver, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS others (           -- the other dispatchers
    other INTEGER PRIMARY KEY,
    sent  INTEGER NOT NULL,                   -- the number of the last link for it
    taken INTEGER NOT NULL                    -- the number of the last link that was taken from it
) STRICT;

CREATE TABLE IF NOT EXISTS crawl_versions (
    crawl       INTEGER PRIMARY KEY,
    key         INTEGER NOT NULL,             -- crawls.id
    version     INTEGER NOT NULL,
    stopped     INTEGER NOT NULL,
    fed         INTEGER NOT NULL,             -- at the crawl's home: seeds that are in,
    seeds_ended INTEGER NOT NULL,             -- whether these are all,
    over        INTEGER NOT NULL,             -- and whether the crawl is over
    sent        INTEGER NOT NULL,
    taken       INTEGER NOT NULL,
    spared      INTEGER NOT NULL,             -- links that were not sent, because they had been
    request     INTEGER NOT NULL,             -- the last one for a share, and
    asked       INTEGER                       -- how much it asks for, until it is answered
) STRICT;

CREATE TABLE IF NOT EXISTS shares (           -- at the crawl's home: what others may use
    crawl   INTEGER NOT NULL,
    other   INTEGER NOT NULL,
    request INTEGER NOT NULL,                 -- the last one that was carried out
    pages   INTEGER NOT NULL,
    PRIMARY KEY (crawl, other)
) STRICT, WITHOUT ROWID;
";

/// The state of a crawl at one dispatcher.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CrawlRow {
    pub(super) key: CrawlKey,
    pub(super) version: u64,
    pub(super) stopped: bool,
    pub(super) fed: usize,
    pub(super) seeds_ended: bool,
    pub(super) over: bool,
    pub(super) sent: u64,
    pub(super) taken: u64,
    pub(super) spared: u64,
    pub(super) request: u64,
    pub(super) asked: Option<u64>,
}

pub(super) fn create(db: &Connection) -> Result<()> {
    db.execute_batch(TABLES)
}

/// Adds a link for this receiver at the end of the outbox.
pub(super) fn add_link(db: &Connection, receiver: usize, link: &Link) -> Result<()> {
    let sql = "INSERT INTO others VALUES (?1, 1, 0)
               ON CONFLICT DO UPDATE SET sent = sent + 1 RETURNING sent";
    let number: i64 = db
        .prepare_cached(sql)?
        .query_row([receiver as i64], |row| row.get(0))?;
    let sql = "INSERT INTO outbox VALUES (?1, ?2, ?3, ?4, ?5)";
    let values = params![
        receiver as i64,
        number,
        link.crawl as i64,
        link.url,
        link.depth
    ];
    db.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// The first unconfirmed links for a receiver, and the number of the first of them.
pub(super) fn first_links(
    db: &Connection,
    receiver: usize,
    most: usize,
) -> Result<Option<(u64, Vec<Link>)>> {
    let sql = "SELECT number, crawl, url, depth FROM outbox
               WHERE receiver = ?1 ORDER BY number LIMIT ?2";
    let link = |row: &Row<'_>| {
        let link = Link {
            crawl: row.get::<_, i64>(1)? as usize,
            url: row.get(2)?,
            depth: row.get(3)?,
        };
        Ok((row.get::<_, i64>(0)? as u64, link))
    };
    let mut select = db.prepare_cached(sql)?;
    let links = select.query_map([receiver as i64, most as i64], link)?;
    let (numbers, links): (Vec<u64>, Vec<Link>) =
        links.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    Ok(numbers.first().map(|first| (*first, links)))
}

/// Removes the links up to this number, which a receiver has confirmed. Returns how many were removed.
pub(super) fn remove_confirmed_links(
    db: &Connection,
    receiver: usize,
    up_to: u64,
) -> Result<usize> {
    let sql = "DELETE FROM outbox WHERE receiver = ?1 AND number <= ?2";
    let values = params![receiver as i64, up_to as i64];
    db.prepare_cached(sql)?.execute(values)
}

pub(super) fn outbox_len(db: &Connection) -> Result<u64> {
    let mut count = db.prepare_cached("SELECT count(*) FROM outbox")?;
    count.query_row([], |row| Ok(row.get::<_, i64>(0)? as u64))
}

pub(super) fn empty_outbox(db: &Connection) -> Result<()> {
    db.execute_batch("DELETE FROM outbox")
}

pub(super) fn taken_count(db: &Connection, other: usize) -> Result<u64> {
    let mut select = db.prepare_cached("SELECT taken FROM others WHERE other = ?1")?;
    let taken = select.query_row([other as i64], |row| row.get::<_, i64>(0));
    Ok(taken.optional()?.unwrap_or(0) as u64)
}

pub(super) fn set_taken_count(db: &Connection, other: usize, taken: u64) -> Result<()> {
    let sql = "INSERT INTO others VALUES (?1, 0, ?2)
               ON CONFLICT DO UPDATE SET taken = excluded.taken";
    db.prepare_cached(sql)?
        .execute(params![other as i64, taken as i64])?;
    Ok(())
}

pub(super) fn crawl(db: &Connection, crawl: CrawlNumber) -> Result<Option<CrawlRow>> {
    let sql = "SELECT key, version, stopped, fed, seeds_ended, over, sent, taken, spared, request,
               asked FROM crawl_versions WHERE crawl = ?1";
    let row = |row: &Row<'_>| {
        let count = |column| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)? as u64);
        Ok(CrawlRow {
            key: row.get(0)?,
            version: count(1)?,
            stopped: row.get(2)?,
            fed: count(3)? as usize,
            seeds_ended: row.get(4)?,
            over: row.get(5)?,
            sent: count(6)?,
            taken: count(7)?,
            spared: count(8)?,
            request: count(9)?,
            asked: row.get::<_, Option<i64>>(10)?.map(|pages| pages as u64),
        })
    };
    db.prepare_cached(sql)?
        .query_row([crawl as i64], row)
        .optional()
}

pub(super) fn put_crawl(db: &Connection, crawl: CrawlNumber, row: &CrawlRow) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO crawl_versions
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    db.prepare_cached(sql)?.execute(params![
        crawl as i64,
        row.key,
        row.version as i64,
        row.stopped,
        row.fed as i64,
        row.seeds_ended,
        row.over,
        row.sent as i64,
        row.taken as i64,
        row.spared as i64,
        row.request as i64,
        row.asked.map(|pages| pages as i64),
    ])?;
    Ok(())
}

/// The share of a crawl's page limit that another dispatcher has, and the number of the request that has set it.
pub(super) fn share(db: &Connection, crawl: CrawlNumber, other: usize) -> Result<(u64, u64)> {
    let sql = "SELECT request, pages FROM shares WHERE crawl = ?1 AND other = ?2";
    let share = |row: &Row<'_>| {
        let (request, pages): (i64, i64) = (row.get(0)?, row.get(1)?);
        Ok((request as u64, pages as u64))
    };
    let mut select = db.prepare_cached(sql)?;
    Ok(select
        .query_row([crawl as i64, other as i64], share)
        .optional()?
        .unwrap_or_default())
}

/// The sum of all dispatchers' shares of a crawl's page limit.
pub(super) fn share_sum(db: &Connection, crawl: CrawlNumber) -> Result<u64> {
    let mut sum =
        db.prepare_cached("SELECT coalesce(sum(pages), 0) FROM shares WHERE crawl = ?1")?;
    sum.query_row([crawl as i64], |row| Ok(row.get::<_, i64>(0)? as u64))
}

pub(super) fn put_share(
    db: &Connection,
    crawl: CrawlNumber,
    other: usize,
    (request, pages): (u64, u64),
) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO shares VALUES (?1, ?2, ?3, ?4)";
    db.prepare_cached(sql)?.execute(params![
        crawl as i64,
        other as i64,
        request as i64,
        pages as i64
    ])?;
    Ok(())
}

/// The key of the crawl and the depth of a task; `None` if this lease of the task is not valid.
pub(super) fn find_leased_task(
    db: &Connection,
    task: u64,
    delivery: webfill_wire::Delivery,
) -> Result<Option<(CrawlKey, u16)>> {
    let sql = "SELECT crawl, depth FROM tasks WHERE id = ?1 AND attempt = ?2 AND state = 1
               AND epoch = (SELECT id FROM epochs WHERE epochs.epoch = ?3)";
    let values = params![task as i64, delivery.number, delivery.epoch as i64];
    db.prepare_cached(sql)?
        .query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}
