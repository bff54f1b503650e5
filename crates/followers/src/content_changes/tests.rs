use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use webfill_changes::{PageContent, Verdict};
use webfill_store::{ChangeFilter, ChangeKind, Crawl, CrawlId, CrawlState, Page, Save};
use webfill_wire::{Delivery, Outcome};

use super::*;
use crate::firehose::Subscriptions;

/// A store, and the checks that its follower has reported.
struct Scene {
    _folder: tempfile::TempDir,
    uri: StoreUri,
    store: Arc<dyn Store>,
    checks: Arc<Mutex<Vec<PageCheck>>>,
}

impl Scene {
    async fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let uri: StoreUri = format!("sqlite:{}", path.display()).parse().unwrap();
        let store = webfill_store::open(&uri, None).await.unwrap().store;
        Scene {
            _folder: folder,
            uri,
            store,
            checks: Arc::default(),
        }
    }

    fn follower(&self) -> FollowerLoop<Follower> {
        let notifications = NotificationPublisher {
            subscriptions: Subscriptions::default(),
            publish: Arc::new(|_, _| {}),
        };
        let checks = Arc::clone(&self.checks);
        let listener = Box::new(move |more: Vec<PageCheck>| checks.lock().unwrap().extend(more));
        FollowerLoop::new(self.uri.clone(), Follower::new(notifications, listener))
    }

    /// Begins a run of the crawl's watch.
    async fn begin_run(&self, night: i64) {
        let crawl = Crawl {
            id: CrawlId::new("app", "c1"),
            request: json!({"run_began_ms": night * 1_000}),
            state: CrawlState::Running,
            counts: serde_json::Map::new(),
            started_at_ms: night * 1_000 + 1,
            updated_at_ms: 0,
            finished_at_ms: None,
        };
        self.store.put_crawl(crawl).await.unwrap();
    }

    async fn save(&self, page: Page) {
        let save = Save {
            page,
            records: Vec::new(),
        };
        self.store.save(vec![save]).await.remove(0).unwrap();
    }

    async fn save_text(&self, night: i64, number: u32, text: &str) {
        let snapshot = PageContent::from_text(text).pack();
        self.save(page(night, number, Outcome::Ok, Some(snapshot)))
            .await;
    }

    async fn save_missing(&self, night: i64, number: u32) {
        let snapshot = PageContent::without_content().pack();
        let page = page(night, number, Outcome::HttpError, Some(snapshot));
        self.save(page).await;
    }

    /// The changes so far: their kinds, and the numbers of their pages.
    async fn changes(&self) -> Vec<(ChangeKind, String)> {
        let filter = ChangeFilter::default();
        let changes = self.store.content_changes(&filter, 0, 10_000).await;
        let changes = changes.unwrap();
        let numbers: Vec<u64> = changes.iter().map(|change| change.number).collect();
        let expected: Vec<u64> = (1..=changes.len() as u64).collect();
        assert_eq!(numbers, expected, "no number is missing or there twice");
        let reported = |change: Change| {
            let number = change.url.rsplit('/').next().unwrap_or_default().to_owned();
            (change.kind, number)
        };
        changes.into_iter().map(reported).collect()
    }
}

fn page(night: i64, number: u32, outcome: Outcome, snapshot: Option<Vec<u8>>) -> Page {
    Page {
        snapshot,
        started_at_ms: night * 1_000 + 10,
        task: night as u64,
        delivery: Delivery::new(1, 1),
        ..Page::new(
            &CrawlId::new("app", "c1"),
            &format!("https://a.example/{number}"),
            "a.example",
            outcome,
        )
    }
}

async fn catch_up(follower: &mut FollowerLoop<Follower>) {
    let (_stop, stopped) = oneshot::channel();
    follower.catch_up(&Turn::new(None, &stopped)).await.unwrap();
}

#[tokio::test]
async fn pages_are_reported_as_changed_gone_back_and_new_from_the_second_run_on() {
    let scene = Scene::new().await;
    let mut follower = scene.follower();
    scene.begin_run(1).await;
    scene.save_text(1, 0, "one").await;
    scene.save_text(1, 1, "other").await;
    catch_up(&mut follower).await;
    assert_eq!(scene.changes().await, []);
    for night in 2..=3 {
        scene.begin_run(night).await;
        scene.save_text(night, 0, "one word").await;
        scene.save_missing(night, 1).await;
        scene.save(page(night, 2, Outcome::Blocked, None)).await;
        catch_up(&mut follower).await;
    }
    scene.begin_run(4).await;
    scene.save_text(4, 1, "other").await;
    scene.save_text(4, 3, "third").await;
    catch_up(&mut follower).await;
    let reported = |kind, number: &str| (kind, number.to_owned());
    assert_eq!(
        scene.changes().await,
        [
            reported(ChangeKind::Changed, "0"),
            reported(ChangeKind::Gone, "1"),
            reported(ChangeKind::Back, "1"),
            reported(ChangeKind::New, "3"),
        ]
    );
    let checks = scene.checks.lock().unwrap();
    let verdicts: Vec<Verdict> = checks.iter().map(|check| check.verdict).collect();
    assert_eq!(
        verdicts,
        [
            Verdict::New,
            Verdict::New,
            Verdict::Changed,
            Verdict::Unchanged,
            Verdict::Gone,
            Verdict::Back,
            Verdict::New,
        ]
    );
}

#[tokio::test]
async fn pages_that_the_first_run_left_are_not_reported_as_new_in_the_second() {
    let scene = Scene::new().await;
    scene.begin_run(1).await;
    scene.save_text(1, 0, "one").await;
    scene.begin_run(2).await;
    scene.save_text(2, 1, "other").await;
    catch_up(&mut scene.follower()).await;
    assert_eq!(scene.changes().await, [(ChangeKind::New, "1".to_owned())]);
}

#[tokio::test]
async fn each_check_is_judged_once_whoever_judges_it() {
    let scene = Scene::new().await;
    let (mut one, mut other) = (scene.follower(), scene.follower());
    for night in 1..=5 {
        scene.begin_run(night).await;
        for number in 0..100 {
            scene
                .save_text(night, number, &format!("night {night}"))
                .await;
        }
        catch_up(&mut one).await;
        // Both followers judge the next check, but only one can store it first.
        scene
            .save_text(night, 1_000, &format!("night {night}"))
            .await;
        catch_up(&mut other).await;
        catch_up(&mut one).await;
        // One follower is replaced by a successor, which reads the stored data.
        one = scene.follower();
    }
    catch_up(&mut other).await;
    let checks = scene.checks.lock().unwrap().len();
    assert_eq!(checks, 5 * 101);
    // Additions to all pages of a site are reported for the first ones only.
    let changed = scene.changes().await;
    assert!(!changed.is_empty() && changed.len() < 5 * 10, "{changed:?}");
}

#[tokio::test]
async fn fields_that_a_mapping_has_read_are_compared_by_value() {
    let scene = Scene::new().await;
    let mut follower = scene.follower();
    for (night, price) in [(1, 10), (2, 12), (3, 12)] {
        let fields = json!({"price": price, "name": "Lamp"});
        scene
            .save(Page {
                mapping: Some("shop".into()),
                mapping_version: Some("v1".into()),
                fields: fields.as_object().cloned().unwrap(),
                ..page(
                    night,
                    0,
                    Outcome::Ok,
                    Some(PageContent::without_content().pack()),
                )
            })
            .await;
        catch_up(&mut follower).await;
    }
    let all = ChangeFilter::default();
    let changes = scene.store.content_changes(&all, 0, 9).await.unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].old, Some(json!({"price": 10})));
    assert_eq!(changes[0].new, Some(json!({"price": 12})));
    assert_eq!(changes[0].difference, "~ price: [-10-]{+12+}");
}

#[tokio::test]
async fn unreadable_checks_are_skipped() {
    let scene = Scene::new().await;
    let mut follower = scene.follower();
    let broken = page(1, 0, Outcome::Ok, Some(b"no snapshot".to_vec()));
    scene.save(broken).await;
    scene.save_text(1, 1, "text").await;
    catch_up(&mut follower).await;
    assert_eq!(scene.checks.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_check_that_is_repeated_after_a_crash_makes_no_page_gone() {
    let scene = Scene::new().await;
    let mut follower = scene.follower();
    scene.begin_run(1).await;
    scene.save_text(1, 0, "one").await;
    catch_up(&mut follower).await;
    for night in 2..=3 {
        scene.begin_run(night).await;
        for delivery in 1..=3 {
            let snapshot = PageContent::without_content().pack();
            let missing = Page {
                delivery: Delivery::new(1, delivery),
                started_at_ms: night * 1_000 + 10 * i64::from(delivery),
                ..page(night, 0, Outcome::HttpError, Some(snapshot))
            };
            scene.save(missing).await;
            catch_up(&mut follower).await;
        }
        let gone = (ChangeKind::Gone, "0".to_owned());
        let expected = [gone];
        assert_eq!(scene.changes().await, expected[..night as usize - 2]);
    }
}
