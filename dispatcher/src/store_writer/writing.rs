//! One write to the store, and its result for the dispatcher's loop.

use std::sync::Arc;

use serde_json::json;
use webfill_scheduler::effects::{BackfillWrite, RetractionWrite, StoreWrite};
use webfill_scheduler::frontier::TaskId;
use webfill_service::Fault;
use webfill_store::journal::{FencedStates, FencedWrite};
use webfill_store::{ApplyPage, Crawl, Page, RecordState, Save, Store, StoreError};
use webfill_wire::CrawlKey;

use crate::tenure_gate::TenureGate;

/// The result of a write that the dispatcher's loop must handle.
pub enum WriteResult {
    Backfilled {
        backfill: BackfillWrite,
        resolved: bool,
        links: Vec<String>,
    },
    /// The page of this backfill (a stored page to apply to further records) is no longer stored.
    PageDropped(BackfillWrite),
    /// The values that a page had filled in were removed, and these of its records are incomplete again.
    TakenBack {
        crawl: CrawlKey,
        task: TaskId,
        open: Vec<String>,
    },
    SiteStatesWritten {
        last: i64,
    },
    /// A crawl that has ended is stored, and its lists are judged.
    CrawlSaved {
        note: i64,
    },
    /// The store fails permanently; the dispatcher ends with this fault.
    Failed(Fault),
}

/// The store, with the checks that this dispatcher may still write to it.
pub(super) struct StoreAccess {
    pub(super) store: Arc<dyn Store>,
    /// Refuses to write states of crawls and sites once another dispatcher writes them; `None` if this is the only
    /// dispatcher.
    pub(super) fence: Option<FencedStates>,
    pub(super) gate: TenureGate,
}

/// How an attempt to write ended.
pub(super) enum Attempt {
    Done(Option<WriteResult>),
    /// Another dispatcher writes now, so nothing was changed.
    Replaced,
}

impl StoreAccess {
    /// Carries out the first write of this dispatcher. From now on, writes of former dispatchers are refused.
    pub(super) async fn begin_and_write(&self, entry: &StoreWrite) -> Result<Attempt, StoreError> {
        if let Some(fence) = &self.fence
            && fence.begin().await? == FencedWrite::Replaced
        {
            return Ok(Attempt::Replaced);
        }
        self.write(entry).await
    }

    pub(super) async fn write(&self, entry: &StoreWrite) -> Result<Attempt, StoreError> {
        let store = &self.store;
        let Some(fence) = &self.fence else {
            return write(store, entry).await.map(Attempt::Done);
        };
        let (written, result) = match entry {
            StoreWrite::Crawl(write) => {
                let crawl = with_record_counts(store, &write.crawl).await?;
                (fence.put_crawl(crawl).await?, None)
            }
            StoreWrite::SiteStates(states) => {
                let (put, open) = (states.in_trouble.clone(), states.open.clone());
                let last = states.last;
                let result = WriteResult::SiteStatesWritten { last };
                (fence.change_site_states(put, open).await?, Some(result))
            }
            other => return write(store, other).await.map(Attempt::Done),
        };
        Ok(match written {
            FencedWrite::Written => Attempt::Done(result),
            FencedWrite::Replaced => Attempt::Replaced,
        })
    }
}

async fn write(
    store: &Arc<dyn Store>,
    entry: &StoreWrite,
) -> Result<Option<WriteResult>, StoreError> {
    match entry {
        StoreWrite::Crawl(write) => {
            let crawl = with_record_counts(store, &write.crawl).await?;
            store.put_crawl(crawl).await.map(|()| None)
        }
        StoreWrite::Page(page) => {
            let save = Save {
                page: Page::clone(page),
                records: Vec::new(),
            };
            let mut answers = store.save(vec![save]).await;
            answers
                .pop()
                .map_or(Ok(None), |answer| answer.map(|_| None))
        }
        StoreWrite::Backfill(backfill) => apply_backfill(store, backfill).await.map(Some),
        StoreWrite::TakeBack(write) => {
            let mut answers = store.take_back(vec![write.save.clone()]).await;
            let saved = answers.pop().transpose()?.unwrap_or_default();
            Ok(Some(retraction_result(write, saved.open)))
        }
        StoreWrite::SiteStates(states) => {
            store.put_site_states(states.in_trouble.clone()).await?;
            store.remove_site_states(states.open.clone()).await?;
            let last = states.last;
            Ok(Some(WriteResult::SiteStatesWritten { last }))
        }
    }
}

/// A crawl as it is stored. If it has ended, it has the number of its resolved records.
async fn with_record_counts(store: &Arc<dyn Store>, crawl: &Crawl) -> Result<Crawl, StoreError> {
    let mut crawl = crawl.clone();
    if crawl.finished_at_ms.is_some() {
        match add_record_counts(&**store, &mut crawl).await {
            // The crawl's end is stored even if its records cannot be counted.
            Err(error) if !error.is_retry() => tracing::warn!(
                event = "records_not_counted",
                crawl_id = %crawl.id,
                %error,
                "the store cannot count the records of a crawl that has ended; its end is stored without them"
            ),
            noted => noted?,
        }
    }
    Ok(crawl)
}

/// Adds to the counts of a crawl that has ended how many of its records were resolved by then. Later crawls may reopen
/// records; these counts do not change then.
async fn add_record_counts(store: &dyn Store, crawl: &mut Crawl) -> Result<(), StoreError> {
    const RECORDS: &str = "records";
    const RUN: &str = "run_began_ms";
    if let Some(mut known) = store.get_crawl(&crawl.id).await? {
        let noted = known.counts.remove(RECORDS);
        let is_same = known.finished_at_ms.is_some()
            && known.request[RUN] == crawl.request[RUN]
            && known.counts == crawl.counts;
        if let Some(noted) = noted.filter(|_| is_same) {
            crawl.counts.insert(RECORDS.to_owned(), noted);
            return Ok(());
        }
    }
    let records = store.record_counts(&crawl.id).await?;
    if records.total > 0 {
        let noted = json!({"total": records.total, "resolved": records.resolved});
        crawl.counts.insert(RECORDS.to_owned(), noted);
    }
    Ok(())
}

pub(super) fn retraction_result(write: &RetractionWrite, open: Vec<String>) -> WriteResult {
    let (crawl, task) = (write.crawl, write.task);
    WriteResult::TakenBack { crawl, task, open }
}

async fn apply_backfill(
    store: &Arc<dyn Store>,
    backfill: &BackfillWrite,
) -> Result<WriteResult, StoreError> {
    let wanted = ApplyPage {
        page_id: webfill_store::page_id(&backfill.app_id, &backfill.crawl_id, &backfill.page.url),
        record: backfill.page.record.clone(),
    };
    let backfill = backfill.clone();
    let applied = store.apply_pages(vec![wanted]).await?.pop().flatten();
    Ok(match applied {
        None => WriteResult::PageDropped(backfill),
        Some(applied) => WriteResult::Backfilled {
            backfill,
            resolved: applied.state == RecordState::Resolved,
            links: applied.links,
        },
    })
}
