//! A writer that continues after every fault of the servers, and the pages it saves.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, json};
use tokio::task::JoinHandle;
use webfill_store::{
    Crawl, CrawlId, CrawlState, DatasetName, ExportFilter, ExportKind, Page, Record, RecordCounts,
    Save, Store, StoreError, StoreUri, open, record_key,
};
use webfill_wire::Outcome;

use super::follower::Follower;

pub(crate) const NOON_MS: i64 = 1_767_268_800_000;
const BATCH: u64 = 10;

/// The longest wait for any step of a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) fn page(number: u64) -> Page {
    let url = format!("https://example.com/{number}");
    Page {
        fields: Map::from_iter([(String::from("city"), json!(format!("city {number}")))]),
        started_at_ms: NOON_MS,
        elapsed_ms: 1,
        ..Page::new(&crawl_id(), &url, "example.com", Outcome::Ok)
    }
}

pub(crate) fn save(number: u64) -> Save {
    Save {
        page: page(number),
        records: vec![record_key(&dataset(), &number.to_string())],
    }
}

pub(crate) async fn open_store(uri: &str) -> Result<Arc<dyn Store>, StoreError> {
    let uri: StoreUri = uri.parse().expect("a URI");
    Ok(open(&uri, None).await?.store)
}

fn dataset() -> DatasetName {
    "people".parse().unwrap()
}

pub(crate) fn crawl_id() -> CrawlId {
    CrawlId::new("app", "c1")
}

pub(crate) async fn put_crawl(store: &dyn Store) {
    let crawl = Crawl {
        id: crawl_id(),
        request: json!({}),
        state: CrawlState::Running,
        counts: Map::new(),
        started_at_ms: NOON_MS,
        updated_at_ms: NOON_MS,
        finished_at_ms: None,
    };
    store.put_crawl(crawl).await.unwrap();
}

/// Repeats a call until its result is not a retryable error.
pub(crate) async fn retry_until_accepted<R, F>(call: impl Fn() -> F) -> Vec<R>
where
    F: Future<Output = Vec<Result<R, StoreError>>>,
{
    let started = Instant::now();
    loop {
        let answers = call().await;
        let later =
            |answer: &Result<R, StoreError>| answer.as_ref().is_err_and(StoreError::is_retry);
        if !answers.iter().any(later) {
            let answers = answers.into_iter().collect::<Result<Vec<R>, StoreError>>();
            return answers.expect("no other error");
        }
        assert!(started.elapsed() < PATIENCE, "the store stays away");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Saves batch after batch, as a crawl does, and counts the acknowledged pages. A [`Follower`] reads the changes.
pub(crate) struct Writer {
    acknowledged: Arc<AtomicU64>,
    stopping: Arc<AtomicBool>,
    task: JoinHandle<()>,
    follower: Follower,
}

impl Writer {
    pub(crate) async fn start(store: Arc<dyn Store>) -> Writer {
        put_crawl(&*store).await;
        let follower = Follower::start(Arc::clone(&store));
        let acknowledged = Arc::new(AtomicU64::new(0));
        let stopping = Arc::new(AtomicBool::new(false));
        let (count, stop) = (acknowledged.clone(), stopping.clone());
        let task = tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let first = count.load(Ordering::SeqCst);
                write_batch(&*store, first).await;
                count.fetch_add(BATCH, Ordering::SeqCst);
            }
        });
        Writer {
            acknowledged,
            stopping,
            task,
            follower,
        }
    }

    /// Waits until `pages` more pages are acknowledged.
    pub(crate) async fn wait_for_pages(&self, pages: u64) {
        let goal = self.acknowledged.load(Ordering::SeqCst) + pages;
        let started = Instant::now();
        while self.acknowledged.load(Ordering::SeqCst) < goal {
            assert!(!self.task.is_finished(), "the writer failed");
            assert!(started.elapsed() < PATIENCE, "nothing is saved any more");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops the writer. Compares what is stored, and what the follower has seen, with what was acknowledged.
    pub(crate) async fn finish(self, store: &dyn Store) {
        self.stopping.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
        let acknowledged = self.acknowledged.load(Ordering::SeqCst);
        let mut urls = HashSet::new();
        let mut rows = 0;
        let mut each = |row: serde_json::Value| {
            urls.insert(row["url"].as_str().unwrap().to_owned());
            rows += 1;
            Ok(())
        };
        let everything = ExportFilter::default();
        store
            .export(ExportKind::Pages, &everything, &mut each)
            .await
            .unwrap();
        let expected: HashSet<String> = (0..acknowledged).map(|number| page(number).url).collect();
        assert_eq!((rows, &urls), (acknowledged, &expected));
        let seen = self.follower.finish().await;
        let missed: Vec<&String> = expected.difference(&seen).collect();
        assert!(missed.is_empty(), "missed: {missed:?}");
        let counts = store.record_counts(&crawl_id()).await.unwrap();
        let all_resolved = RecordCounts {
            total: acknowledged,
            resolved: acknowledged,
        };
        assert_eq!(counts, all_resolved);
    }
}

async fn write_batch(store: &dyn Store, first: u64) {
    let record = |number: u64| Record {
        dataset: dataset(),
        id: number.to_string(),
        fields: Map::new(),
        want: vec![String::from("city")],
    };
    let numbers = || first..first + BATCH;
    let crawl = crawl_id();
    retry_until_accepted(|| store.put_records(&crawl, numbers().map(record).collect(), NOON_MS))
        .await;
    let saved = retry_until_accepted(|| store.save(numbers().map(save).collect())).await;
    assert!(
        saved.iter().all(|saved| saved.resolved.len() == 1),
        "{saved:?}"
    );
}
