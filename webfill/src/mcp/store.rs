//! The tools for a store: lists with cursors, and single records and pages with everything known about them.

use std::pin::Pin;

use serde_json::{Value, json};
use tokio::sync::Mutex;
use webfill_service::Fault;
use webfill_store::{
    BrowseHandles, CrawlId, DatasetName, ListPage, PageFilter, PageRow, Place, RecordFilter,
    RecordRow, RecordState, StoreError, StoreUri, iso_time, open_to_browse, page_id, record_key,
};
use webfill_wire::Outcome;

use super::answer::{Answer, MOST_ROW_BYTES, json_size};
use super::arguments::{
    PageArguments, PagesArguments, RecordArguments, RecordStateArgument, RecordsArguments,
};

/// The most rows in an answer.
const MOST_ROWS: u32 = 100;

/// The most reads for one answer. Without an index, a read may check many rows and find none.
const MOST_READS: usize = 50;

const WHOLE: &str = "`webfill export` has the whole";

/// A read of one part of a list.
type Reading<T> = Pin<Box<dyn Future<Output = Result<ListPage<T>, StoreError>> + Send>>;

pub struct StoredData {
    uri: StoreUri,
    opened: Mutex<Option<BrowseHandles>>,
}

impl StoredData {
    pub fn new(uri: &str) -> Result<StoredData, Fault> {
        Ok(StoredData {
            uri: uri.parse().map_err(Fault::usage)?,
            opened: Mutex::default(),
        })
    }

    /// Opens the store when it is first used. A fleet may create it later, and an unreachable server may become
    /// reachable again.
    async fn browse_handles(&self) -> Result<BrowseHandles, Fault> {
        let mut opened = self.opened.lock().await;
        if let Some(opened) = &*opened {
            return Ok(opened.clone());
        }
        let found = open_to_browse(&self.uri).await.map_err(Fault::error)?;
        *opened = Some(found.clone());
        Ok(found)
    }

    pub async fn list_records(
        &self,
        given: Result<RecordsArguments, Fault>,
    ) -> Result<Answer, Fault> {
        let given = given?;
        let filter = RecordFilter {
            dataset: given.dataset,
            state: given.state.map(|state| match state {
                RecordStateArgument::Open => RecordState::Open,
                RecordStateArgument::Resolved => RecordState::Resolved,
            }),
            id_prefix: given.id_prefix,
            ..RecordFilter::default()
        };
        if filter.id_prefix.is_some() && filter.dataset.is_none() {
            return Err(Fault::usage("id_prefix needs `dataset`"));
        }
        let browse = self.browse_handles().await?.browse;
        let read = move |from: Option<Place>, limit| -> Reading<RecordRow> {
            let (browse, filter) = (browse.clone(), filter.clone());
            Box::pin(async move { browse.records(&filter, from.as_ref(), limit).await })
        };
        read_rows(given.cursor, given.limit, read, record_row).await
    }

    pub async fn read_record(
        &self,
        given: Result<RecordArguments, Fault>,
    ) -> Result<Answer, Fault> {
        let RecordArguments { dataset, id } = given?;
        let name: DatasetName = dataset.parse().map_err(Fault::usage)?;
        let browse = self.browse_handles().await?.browse;
        let found = browse.record(&record_key(&name, &id)).await;
        let Some(record) = found.map_err(Fault::error)? else {
            let uri = &self.uri;
            return Err(Fault::usage(format!(
                "{uri} has no record `{id}` in the dataset `{dataset}`"
            )));
        };
        Ok(Answer::new(record.document, WHOLE))
    }

    pub async fn list_pages(&self, given: Result<PagesArguments, Fault>) -> Result<Answer, Fault> {
        let given = given?;
        let crawl = match (given.appid, given.crawlid) {
            (Some(app), Some(crawl)) => Some(CrawlId::new(&app, &crawl)),
            (None, None) => None,
            _ => return Err(Fault::usage("a crawl has both an `appid` and a `crawlid`")),
        };
        let outcome = |name: &String| {
            name.parse::<Outcome>()
                .map_err(|_| Fault::usage(format!("outcomes: there is no outcome `{name}`")))
        };
        let filter = PageFilter {
            crawl,
            site: given.site,
            mapping: None,
            outcomes: given
                .outcomes
                .iter()
                .map(outcome)
                .collect::<Result<_, _>>()?,
            apps: None,
        };
        let browse = self.browse_handles().await?.browse;
        let read = move |from: Option<Place>, limit| -> Reading<PageRow> {
            let (browse, filter) = (browse.clone(), filter.clone());
            Box::pin(async move { browse.pages(&filter, from.as_ref(), limit).await })
        };
        read_rows(given.cursor, given.limit, read, page_row).await
    }

    pub async fn read_page(&self, given: Result<PageArguments, Fault>) -> Result<Answer, Fault> {
        let PageArguments {
            appid,
            crawlid,
            url,
        } = given?;
        let browse = self.browse_handles().await?.browse;
        let found = browse.page(&page_id(&appid, &crawlid, &url)).await;
        let Some(page) = found.map_err(Fault::error)? else {
            let uri = &self.uri;
            return Err(Fault::usage(format!(
                "{uri} has no page {url} of {appid}/{crawlid}"
            )));
        };
        Ok(Answer::new(page, WHOLE))
    }
}

/// Reads one part of a list. If the rows are too large for an answer, fewer rows are read, and the cursor leads to the
/// next ones.
async fn read_rows<T>(
    cursor: Option<String>,
    limit: u32,
    read: impl Fn(Option<Place>, u32) -> Reading<T>,
    row: fn(&T) -> Value,
) -> Result<Answer, Fault> {
    let mut from: Option<Place> = cursor
        .map(|cursor| cursor.parse::<Place>())
        .transpose()
        .map_err(|error| Fault::usage(format!("cursor: {error}")))?;
    let mut limit = limit.clamp(1, MOST_ROWS);
    let mut found: Vec<Value> = Vec::new();
    for _ in 0..MOST_READS {
        let page = read(from.clone(), limit).await.map_err(Fault::error)?;
        found = page.rows.iter().map(row).collect();
        let bytes: usize = found.iter().map(|row| json_size(row) + 1).sum();
        if bytes > MOST_ROW_BYTES && limit > 1 {
            found.clear();
            limit /= 2;
            continue;
        }
        from = page.next;
        if !found.is_empty() || from.is_none() {
            break;
        }
    }
    let next = from.map(|place| place.to_string());
    Ok(Answer::new(json!({"rows": found}), WHOLE).with_next(next))
}

fn record_row(row: &RecordRow) -> Value {
    json!({
        "dataset": row.dataset,
        "id": row.id,
        "missing": row.missing,
        "resolved_at": row.resolved_at_ms.map(iso_time),
        // The list omits long fields, so they are null here. `read_record` returns them.
        "fields": row.fields,
    })
}

fn page_row(row: &PageRow) -> Value {
    json!({
        "appid": row.app_id,
        "crawlid": row.crawl_id,
        "url": row.url,
        "final_url": row.final_url,
        "site": row.site,
        "depth": row.depth,
        "parent": row.parent,
        "outcome": row.outcome.as_str(),
        "status_code": row.status_code,
        "mapping": row.mapping,
        "content_type": row.content_type,
        "bytes": row.bytes,
        "started_at": iso_time(row.started_at_ms),
    })
}
