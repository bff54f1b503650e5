//! The results of a watch's run, as the store has them: whether all of its checks are judged, its findings, and the
//! changes to report. The dispatcher of a fleet reads them beside its loop ([`crate::change_reader`]). For a run on one
//! machine, the process reads them when its dispatcher has ended.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Map, Value, json};
use webfill_notifications::ReadChanges;
use webfill_store::{ChangeFilter, CrawlId, ExportError, ExportFilter, Store, StoreError};

/// How many changes are read at a time.
const AT_ONCE: u32 = 50;

/// Whether all checks of a crawl's pages that are stored by now are judged.
pub async fn is_judged(store: &dyn Store, crawl: &CrawlId) -> Result<bool, StoreError> {
    let judged = store.load_compared_position().await?;
    let filter = ExportFilter {
        app_id: Some(crawl.app_id.clone()),
        crawl_id: Some(crawl.crawl_id.clone()),
        checks: true,
        ..ExportFilter::default()
    };
    // One check that is not judged is enough to know.
    let mut each = |_, _| Err(io::ErrorKind::Interrupted.into());
    match store.changes(&judged.cursor, &filter, &mut each).await {
        Ok(_) => Ok(true),
        Err(ExportError::Output(_)) => Ok(false),
        Err(ExportError::Store(error)) => Err(error),
    }
}

/// The number of the last change in the store.
pub async fn load_last_change_number(store: &dyn Store) -> Result<u64, StoreError> {
    Ok(store.load_compared_position().await?.last_number)
}

/// The number before the first change of a crawl's pages since a time; if there is none yet, the number of the last
/// change in the store.
pub async fn load_change_number_before(
    store: &dyn Store,
    crawl: &CrawlId,
    since_ms: i64,
) -> Result<u64, StoreError> {
    // The last number is read first, because more changes may be judged meanwhile.
    let last = load_last_change_number(store).await?;
    let since = ChangeFilter {
        since_ms: Some(since_ms),
        ..filter_for_crawl(crawl)
    };
    let first = store.content_changes(&since, 0, 1).await?;
    let before = first.first().map(|change| change.number.saturating_sub(1));
    Ok(before.map_or(last, |before| before.min(last)))
}

/// The findings of a watch's run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunResults {
    /// The number of changed pages, by kind of change.
    pub changes: BTreeMap<&'static str, u64>,
    /// The number of documents that this run was the first to find.
    pub documents: u64,
}

impl RunResults {
    /// The findings in the form of a run's record.
    pub fn counts(&self) -> Map<String, Value> {
        let counts = [
            ("changes".to_owned(), json!(self.changes)),
            ("documents".to_owned(), json!(self.documents)),
        ];
        counts.into_iter().collect()
    }
}

/// The findings so far of a run that began at this time.
pub async fn load_results(
    store: &dyn Store,
    crawl: &CrawlId,
    began_ms: i64,
) -> Result<RunResults, StoreError> {
    let since = ChangeFilter {
        since_ms: Some(began_ms),
        ..filter_for_crawl(crawl)
    };
    let changes = store.count_content_changes(&since).await?;
    let stored = store.get_crawl(crawl).await?;
    let is_first = stored.is_none_or(|crawl| began_ms <= crawl.started_at_ms);
    Ok(RunResults {
        changes: changes
            .into_iter()
            .map(|(kind, count)| (kind.as_str(), count))
            .collect(),
        documents: store.count_new_documents(crawl, began_ms, is_first).await?,
    })
}

/// The changes of a crawl's pages after this number, as many as fit into a notification.
pub async fn read_changes(
    store: &dyn Store,
    crawl: &CrawlId,
    after: u64,
) -> Result<ReadChanges, StoreError> {
    let filter = filter_for_crawl(crawl);
    let mut read = ReadChanges::starting_after(after);
    loop {
        let changes = store.content_changes(&filter, read.last, AT_ONCE).await?;
        let is_last = changes.len() < AT_ONCE as usize;
        for change in changes {
            read.add(change.number, change.json());
        }
        if is_last || read.is_full {
            return Ok(read);
        }
    }
}

fn filter_for_crawl(crawl: &CrawlId) -> ChangeFilter {
    ChangeFilter {
        app_id: Some(crawl.app_id.clone()),
        crawl_id: Some(crawl.crawl_id.clone()),
        since_ms: None,
    }
}
