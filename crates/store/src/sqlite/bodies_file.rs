//! The file of bodies, next to that of the store. It has its own connection, which is opened when it is first needed.
//! A store without bodies has no such file.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Row, params};
use tokio::sync::OnceCell;
use webfill_wire::Delivery;

use super::columns::parse_time;
use super::connection::Db;
use super::connection_thread::ConnectionThread;
use super::fault::{Fault, store_error, store_name};
use crate::bodies::{BESIDE_BODY, Body, BodyChange, DroppedBodies, page_key_range};
use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::open_mode::OpenMode;
use crate::site_clock::clamp_to_i64;
use crate::timestamp::iso_time;

/// Marks the file as webfill's ("wbfb").
pub(super) const APPLICATION_ID: i32 = 0x7762_6662;
/// The format of the file.
pub(super) const VERSION: i32 = 1;

/// The tables. Triggers keep `total` up to date, because adding up all sizes would read the whole file.
pub(super) const TABLES: &str = "
CREATE TABLE bodies (
    _id TEXT NOT NULL UNIQUE,    -- the page's
    content_hash TEXT NOT NULL,  -- the page's
    is_rendered INTEGER NOT NULL,
    at TEXT NOT NULL,            -- when it was fetched, or last found unchanged
    epoch INTEGER NOT NULL,
    task INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    bytes INTEGER NOT NULL,      -- before compression
    size INTEGER NOT NULL,       -- what it takes
    body BLOB NOT NULL           -- Zstandard
) STRICT;
CREATE INDEX bodies_by_time ON bodies (at);
CREATE TABLE total (size INTEGER NOT NULL) STRICT;
INSERT INTO total VALUES (0);
CREATE TRIGGER added AFTER INSERT ON bodies BEGIN
    UPDATE total SET size = size + NEW.size;
END;
CREATE TRIGGER replaced AFTER UPDATE OF size ON bodies BEGIN
    UPDATE total SET size = size + NEW.size - OLD.size;
END;
CREATE TRIGGER removed AFTER DELETE ON bodies BEGIN
    UPDATE total SET size = size - OLD.size;
END;
";

const UPSERT: &str = "
INSERT INTO bodies (_id, content_hash, is_rendered, at, epoch, task, attempts, bytes, size, body)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (_id) DO UPDATE SET content_hash = excluded.content_hash,
    is_rendered = excluded.is_rendered, at = excluded.at, epoch = excluded.epoch,
    task = excluded.task, attempts = excluded.attempts, bytes = excluded.bytes,
    size = excluded.size, body = excluded.body
WHERE (excluded.epoch, excluded.task, excluded.attempts, excluded.at)
    >= (bodies.epoch, bodies.task, bodies.attempts, bodies.at)";

/// The columns of a body, in the order that [`read_row`] expects.
const COLUMNS: &str =
    "SELECT _id, content_hash, is_rendered, at, epoch, task, attempts, bytes, body
    FROM bodies";

/// The most rows, and bytes of bodies, that are read in one step.
const STEP_ROWS: usize = 64;
const STEP_BYTES: usize = 4 << 20;

/// How many bodies one step drops at most. Other calls wait until the step is done.
const DROPPED_AT_ONCE: usize = 200;

/// The file of bodies, opened when needed.
pub(super) struct BodiesFile {
    path: PathBuf,
    thread: OnceCell<ConnectionThread>,
}

impl BodiesFile {
    /// The file for the bodies of a store, next to the store's own file. It is not opened yet.
    pub(super) fn next_to_store(store: &Path) -> BodiesFile {
        let mut path = store.as_os_str().to_owned();
        path.push(".bodies");
        BodiesFile {
            path: path.into(),
            thread: OnceCell::new(),
        }
    }

    async fn thread(&self) -> Result<&ConnectionThread, StoreError> {
        let start = async || {
            let path = self.path.clone();
            let name = store_name(&path);
            ConnectionThread::start(name, move || open(&path)).await
        };
        self.thread.get_or_try_init(start).await
    }

    /// The thread that owns the connection to the file; `None` if there is no file.
    async fn thread_if_exists(&self) -> Result<Option<&ConnectionThread>, StoreError> {
        match self.thread.initialized() || self.path.exists() {
            true => self.thread().await.map(Some),
            false => Ok(None),
        }
    }

    /// Applies the changes in one transaction.
    pub(super) async fn apply_changes(
        &self,
        changes: Vec<BodyChange>,
        max_bytes: u64,
    ) -> Result<DroppedBodies, StoreError> {
        let thread = self.thread().await?;
        let keep = move |conn: &Connection| {
            changes
                .iter()
                .try_for_each(|change| apply_change(conn, change))?;
            drop_oldest_beyond(conn, max_bytes, changes.len() + DROPPED_AT_ONCE)
        };
        thread.call(move |db| db.write(keep)).await?
    }

    pub(super) async fn read(
        &self,
        crawl: &CrawlId,
        after: Option<String>,
    ) -> Result<Vec<Body>, StoreError> {
        let Some(thread) = self.thread_if_exists().await? else {
            return Ok(Vec::new());
        };
        let (first, end) = page_key_range(crawl);
        let after = after.unwrap_or(first);
        let read = move |conn: &Connection| read_step(conn, &after, &end);
        thread.call(move |db| db.read(read)).await?
    }

    /// The body of a page that has this content hash.
    pub(super) async fn find(
        &self,
        page_id: &str,
        content_hash: String,
    ) -> Result<Option<Body>, StoreError> {
        let Some(thread) = self.thread_if_exists().await? else {
            return Ok(None);
        };
        let id = page_id.to_owned();
        let find = move |conn: &Connection| {
            let sql = format!("{COLUMNS} WHERE _id = ?1 AND content_hash = ?2");
            let mut select = conn.prepare_cached(&sql)?;
            let mut rows = select.query([id, content_hash])?;
            rows.next()?.map(read_row).transpose()
        };
        thread.call(move |db| db.read(find)).await?
    }

    /// Drops bodies from before this time, at most [`DROPPED_AT_ONCE`].
    pub(super) async fn drop_old_bodies(
        &self,
        before_ms: i64,
    ) -> Result<DroppedBodies, StoreError> {
        let Some(thread) = self.thread_if_exists().await? else {
            return Ok(DroppedBodies::default());
        };
        let drop = move |conn: &Connection| drop_old_bodies(conn, before_ms);
        thread.call(move |db| db.write(drop)).await?
    }
}

/// Opens the file, and creates it if it is missing.
pub(super) fn open(path: &Path) -> Result<Db, StoreError> {
    let refused = |fault| store_error(&store_name(path), fault);
    let mut db = Db::connect(path, OpenMode::Create).map_err(refused)?;
    let create = |conn: &Connection| {
        let pragma = |name: &str| conn.pragma_query_value(None, name, |row| row.get(0));
        let (application, version): (i32, i32) =
            (pragma("application_id")?, pragma("user_version")?);
        let tables: i64 =
            conn.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
        match (application, version, tables) {
            (APPLICATION_ID, VERSION, _) => Ok(()),
            (0, 0, 0) => {
                conn.execute_batch(TABLES)?;
                conn.pragma_update(None, "application_id", APPLICATION_ID)?;
                Ok(conn.pragma_update(None, "user_version", VERSION)?)
            }
            (APPLICATION_ID, ..) => Err(Fault::Unusable(format!(
                "the file has format {version}, this webfill reads format {VERSION}: use the webfill that wrote it, \
                 or move the file away"
            ))),
            _ => Err(Fault::Unusable(String::from(
                "the file is another program's database: move it away, bodies of pages are kept there",
            ))),
        }
    };
    db.configure().map_err(refused)?;
    db.write(create)?;
    Ok(db)
}

fn apply_change(conn: &Connection, change: &BodyChange) -> Result<(), Fault> {
    match change {
        BodyChange::Keep(body) => upsert(conn, body),
        BodyChange::Unchanged {
            page_id,
            content_hash,
            at_ms,
        } => {
            let sql = "UPDATE bodies SET at = ?3 WHERE _id = ?1 AND content_hash = ?2 AND at < ?3";
            let mut update = conn.prepare_cached(sql)?;
            update.execute(params![page_id, content_hash, iso_time(*at_ms)])?;
            Ok(())
        }
        BodyChange::Forget { page_id, at_ms } => {
            let sql = "DELETE FROM bodies WHERE _id = ?1 AND at < ?2";
            let mut delete = conn.prepare_cached(sql)?;
            delete.execute(params![page_id, iso_time(*at_ms)])?;
            Ok(())
        }
    }
}

fn upsert(conn: &Connection, body: &Body) -> Result<(), Fault> {
    let size = (body.body.len() + BESIDE_BODY) as u64;
    conn.prepare_cached(UPSERT)?.execute(params![
        body.page_id,
        body.content_hash,
        body.is_rendered,
        iso_time(body.at_ms),
        clamp_to_i64(body.delivery.epoch),
        clamp_to_i64(body.task),
        body.delivery.number,
        clamp_to_i64(body.bytes),
        clamp_to_i64(size),
        body.body,
    ])?;
    Ok(())
}

/// Drops the oldest bodies until the others fit into `max_bytes`, at most `most` per call. Further calls drop the rest.
fn drop_oldest_beyond(
    conn: &Connection,
    max_bytes: u64,
    most: usize,
) -> Result<DroppedBodies, Fault> {
    let mut dropped = DroppedBodies::default();
    let mut total = conn.prepare_cached("SELECT size FROM total")?;
    let mut oldest = conn.prepare_cached("SELECT _id FROM bodies ORDER BY at LIMIT 1")?;
    let mut delete = conn.prepare_cached("DELETE FROM bodies WHERE _id = ?1")?;
    while total.query_row((), |row| row.get::<_, i64>(0))? > clamp_to_i64(max_bytes) {
        if dropped.bodies == most as u64 {
            dropped.has_more = true;
            break;
        }
        let id: String = oldest.query_row((), |row| row.get(0))?;
        delete.execute([id])?;
        dropped.bodies += 1;
    }
    Ok(dropped)
}

fn drop_old_bodies(conn: &Connection, before_ms: i64) -> Result<DroppedBodies, Fault> {
    let sql = "DELETE FROM bodies WHERE _id IN
        (SELECT _id FROM bodies WHERE at < ?1 ORDER BY at LIMIT ?2)";
    let mut delete = conn.prepare_cached(sql)?;
    let dropped = delete.execute(params![iso_time(before_ms), DROPPED_AT_ONCE as i64])?;
    Ok(DroppedBodies {
        bodies: dropped as u64,
        has_more: dropped == DROPPED_AT_ONCE,
    })
}

fn read_step(conn: &Connection, after: &str, end: &str) -> Result<Vec<Body>, Fault> {
    let sql = format!("{COLUMNS} WHERE _id > ?1 AND _id < ?2 ORDER BY _id LIMIT ?3");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![after, end, STEP_ROWS as i64])?;
    let mut bodies = Vec::new();
    let mut bytes = 0;
    while bytes < STEP_BYTES {
        let Some(row) = rows.next()? else { break };
        let body = read_row(row)?;
        bytes += body.body.len();
        bodies.push(body);
    }
    Ok(bodies)
}

fn read_row(row: &Row<'_>) -> Result<Body, Fault> {
    let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(Body {
        page_id: row.get(0)?,
        content_hash: row.get(1)?,
        is_rendered: row.get(2)?,
        at_ms: parse_time(&row.get::<_, String>(3)?)?,
        delivery: Delivery::new(number(4)?, row.get(6)?),
        task: number(5)?,
        bytes: number(7)?,
        body: row.get(8)?,
    })
}
