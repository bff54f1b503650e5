//! Reads pages in the order they became visible, using the entries of [`page_log`].

use std::io;

use async_trait::async_trait;
use mongodb::Collection;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use serde_json::Value;
use tokio::sync::mpsc;

use super::command::{Db, with_timeout};
use super::export::{STEP, STEP_BYTES};
use super::fault::Fault;
use super::page_log::{self, LOG};
use super::{Mongo, panic_error, value};
use crate::cursor::{Cursor, RetainedRange, check_cursor, too_late_message};
use crate::store::{Changes, ExportError, ExportFilter};

/// How many entries of the log are read at once. Each holds the keys of one call of `save`.
const ENTRIES: i64 = 20;

/// The members of a page that are used to judge the health of its mapping.
const EXTRACTIONS: [&str; 15] = [
    "app_id",
    "crawl_id",
    "url",
    "site",
    "parent",
    "mapping",
    "mapping_version",
    "template",
    "records",
    "fields",
    "alternatives",
    "row_counts",
    "content_hash",
    "started_at",
    "attempts",
];

/// The members of a page that are needed to find out whether its content has changed.
const CHECKS: [&str; 15] = [
    "app_id",
    "crawl_id",
    "url",
    "site",
    "outcome",
    "status_code",
    "mapping",
    "mapping_version",
    "fields",
    "content_hash",
    "started_at",
    "epoch",
    "task",
    "attempts",
    "snapshot",
];

/// A batch of pages, each with the cursor that continues after it.
#[derive(Default)]
pub(super) struct Pages {
    pub(super) pages: Vec<(Cursor, Value)>,
    /// The cursor where the next call continues. Only the last step has one.
    pub(super) end: Option<Cursor>,
}

/// The result of one step.
pub(super) type Step = Result<Pages, Fault>;

/// The receiver of the steps was dropped, so reading ends.
struct ReceiverGone;

/// Sends the pages that were saved after a cursor, in steps. If reading fails, the error is the last step.
pub(super) async fn stream_changes(
    db: Db,
    after: Cursor,
    filter: ExportFilter,
    steps: mpsc::Sender<Step>,
) {
    let reading = async {
        let store = page_log::ensure_store_id(&db).await?;
        let cut = page_log::cut(&db).await?;
        let newest = page_log::newest(&db).await?;
        let kept = RetainedRange {
            cut: cut.unsigned_abs(),
            newest: newest.unsigned_abs(),
        };
        check_cursor(&after, &store, kept).map_err(Fault::Unusable)?;
        let mut reader = ChangesReader {
            db: &db,
            store,
            filter,
            steps: &steps,
        };
        let from_start = Cursor::new(&reader.store, kept.cut, 0);
        let after = if after.store.is_some() {
            after
        } else {
            from_start
        };
        reader.send_entries(&after, newest).await
    };
    // If the receiver is dropped, nobody needs the error.
    if let Err(fault) = reading.await {
        let _ = steps.send(Err(fault)).await;
    }
}

struct ChangesReader<'a> {
    db: &'a Db,
    store: String,
    filter: ExportFilter,
    steps: &'a mpsc::Sender<Step>,
}

impl ChangesReader<'_> {
    /// Reads the entries after the cursor, up to `newest`.
    async fn send_entries(&mut self, after: &Cursor, newest: i64) -> Result<(), Fault> {
        // Numbers in the log are signed. `check_cursor` has made sure that the cursor's number fits.
        let entry = after.position.entry as i64;
        let mut pages_read = after.position.pages as usize;
        let mut next = if pages_read > 0 { entry } else { entry + 1 };
        while next <= newest {
            let to = newest.min(next.saturating_add(ENTRIES - 1));
            for (number, ids) in self.entries(next, to).await? {
                if number != next {
                    break;
                }
                let skip = std::mem::take(&mut pages_read).min(ids.len());
                if let Err(ReceiverGone) = self.send_pages(number, &ids, skip).await? {
                    return Ok(());
                }
                next += 1;
            }
            if next <= to {
                self.check_not_cut(next).await?;
                page_log::close_gap(self.db, next).await?;
            }
        }
        let end = Cursor::new(&self.store, (next - 1).unsigned_abs(), 0);
        let last = Pages {
            pages: Vec::new(),
            end: Some(end),
        };
        let _ = self.steps.send(Ok(last)).await;
        Ok(())
    }

    /// The numbers and page keys of a range of entries, in their order.
    async fn entries(&self, from: i64, to: i64) -> Result<Vec<(i64, Vec<String>)>, Fault> {
        let log: Collection<RawDocumentBuf> = self.db.database.collection(LOG);
        let find = async {
            let range = doc! {"_id": {"$gte": from, "$lte": to}};
            let mut cursor = log.find(range).sort(doc! {"_id": 1}).await?;
            let mut entries = Vec::new();
            while cursor.advance().await? {
                let mut entry = value::object(cursor.current());
                let number = entry.get("_id").and_then(Value::as_i64);
                let ids = entry.remove("pages");
                let ids = ids.and_then(|ids| serde_json::from_value(ids).ok());
                entries.push((number.unwrap_or_default(), ids.unwrap_or_default()));
            }
            Ok(entries)
        };
        with_timeout(find).await
    }

    /// Sends the pages of an entry, except the first `skip`, which were read before.
    async fn send_pages(
        &mut self,
        entry: i64,
        ids: &[String],
        skip: usize,
    ) -> Result<Result<(), ReceiverGone>, Fault> {
        let wanted = self.accepted_ids(&ids[skip..]);
        if wanted.is_empty() {
            return Ok(Ok(()));
        }
        let pages: Collection<RawDocumentBuf> = self.db.database.collection("pages");
        let mut which = doc! {"_id": {"$in": wanted}};
        if let Some(app_id) = &self.filter.app_id {
            which.insert("app_id", app_id);
        }
        if let Some(crawl_id) = &self.filter.crawl_id {
            which.insert("crawl_id", crawl_id);
        }
        if self.filter.extractions {
            which.insert("outcome", "ok");
            which.insert("mapping", doc! {"$type": "string"});
        }
        if self.filter.checks {
            which.insert("snapshot", doc! {"$exists": true});
        }
        let shown = projection(&self.filter);
        let find = pages
            .find(which)
            .projection(shown)
            .sort(doc! {"_id": 1})
            .batch_size(STEP)
            // The receiver may be slow, so the server must not close the cursor after a timeout.
            .no_cursor_timeout(true);
        let mut cursor = with_timeout(async { find.await }).await?;
        let mut step = Pages::default();
        let mut bytes = 0;
        while with_timeout(cursor.advance()).await? {
            bytes += cursor.current().as_bytes().len();
            let page = value::object(cursor.current());
            let behind = self.cursor_after(entry, ids, page.get("_id").and_then(Value::as_str));
            step.pages.push((behind, Value::Object(page)));
            if bytes >= STEP_BYTES {
                bytes = 0;
                self.check_not_cut(entry).await?;
                if self
                    .steps
                    .send(Ok(std::mem::take(&mut step)))
                    .await
                    .is_err()
                {
                    return Ok(Err(ReceiverGone));
                }
            }
        }
        self.check_not_cut(entry).await?;
        let sent = step.pages.is_empty() || self.steps.send(Ok(step)).await.is_ok();
        Ok(if sent { Ok(()) } else { Err(ReceiverGone) })
    }

    /// Fails if this entry has been cut off as too old meanwhile. Called after the pages of the entry were read and
    /// before they are sent, so that a reader never gets a cursor behind a page that was dropped.
    async fn check_not_cut(&self, entry: i64) -> Result<(), Fault> {
        if page_log::cut(self.db).await? < entry {
            return Ok(());
        }
        let behind = Cursor::new(&self.store, (entry - 1).unsigned_abs(), 0);
        Err(Fault::Unusable(too_late_message(&behind)))
    }

    /// The keys that the filter accepts. A key names the page's application and crawl, so pages of others need not be
    /// looked up.
    fn accepted_ids<'k>(&self, ids: &'k [String]) -> Vec<&'k str> {
        let is_wanted = |id: &&str| {
            let mut parts = id.split('/');
            [&self.filter.app_id, &self.filter.crawl_id]
                .into_iter()
                .all(|wanted| accepts_id(wanted.as_deref(), parts.next()))
        };
        ids.iter().map(String::as_str).filter(is_wanted).collect()
    }

    /// The cursor that continues after a page. The keys in an entry are sorted, so the position of the page's key shows
    /// how many pages were read.
    fn cursor_after(&self, entry: i64, ids: &[String], id: Option<&str>) -> Cursor {
        let place = ids.binary_search_by(|one| Some(one.as_str()).cmp(&id));
        let read = place.unwrap_or_else(|before| before) + 1;
        let pages = if read >= ids.len() { 0 } else { read };
        let pages = u32::try_from(pages).unwrap_or_default();
        match (place, pages) {
            (Ok(_), pages) => Cursor::new(&self.store, entry.unsigned_abs(), pages),
            // Another program has changed the entry, so the whole entry is read again.
            (Err(_), _) => Cursor::new(&self.store, (entry - 1).unsigned_abs(), 0),
        }
    }
}

/// The members of a page that readers get.
fn projection(filter: &ExportFilter) -> Document {
    let names: &[&str] = match filter {
        ExportFilter { checks: true, .. } => &CHECKS,
        ExportFilter {
            extractions: true, ..
        } => &EXTRACTIONS,
        _ => return doc! {"snapshot": 0},
    };
    names
        .iter()
        .map(|name| ((*name).to_owned(), 1.into()))
        .collect()
}

fn accepts_id(wanted: Option<&str>, id: Option<&str>) -> bool {
    wanted.is_none() || wanted == id
}

#[async_trait]
impl Changes for Mongo {
    async fn changes(
        &self,
        after: &Cursor,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Cursor, Value) -> io::Result<()> + Send),
    ) -> Result<Cursor, ExportError> {
        let (steps, mut read) = mpsc::channel::<Step>(1);
        let reading = stream_changes(self.db.clone(), after.clone(), filter.clone(), steps);
        self.thread.start_task(reading);
        while let Some(step) = read.recv().await {
            let step = step.map_err(|fault| fault.into_error(&self.db.store))?;
            for (cursor, page) in step.pages {
                each(cursor, page)?;
            }
            if let Some(end) = step.end {
                return Ok(end);
            }
        }
        Err(panic_error(&self.db.store).into())
    }
}
