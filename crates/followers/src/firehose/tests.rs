use std::sync::Mutex;
use std::sync::mpsc as channel;
use std::time::Instant;

use serde_json::json;
use webfill_store::{CrawlId, Page, Save, Store, open};
use webfill_wire::Outcome;

use super::*;

const WAIT: Duration = Duration::from_secs(20);

type Published = (String, Value);

/// A firehose, its store, and the messages that it publishes.
struct Scene {
    _folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    store: Arc<dyn Store>,
    subscriptions: Subscriptions,
    firehose: Firehose,
    published: channel::Receiver<Published>,
}

impl Scene {
    fn new(queued: usize) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let uri = StoreUri::Sqlite(folder.path().join("webfill.db"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let store = runtime.block_on(open(&uri, None)).unwrap().store;
        let (publish, published) = channel::channel();
        let publish = Mutex::new(publish);
        let publish = move |topic: &str, message: Vec<u8>| {
            let message = serde_json::from_slice(&message).unwrap();
            let _ = publish.lock().unwrap().send((topic.to_owned(), message));
        };
        let subscriptions = Subscriptions::default();
        let firehose =
            Firehose::start_with_queue(uri, subscriptions.clone(), Arc::new(publish), queued)
                .unwrap();
        Scene {
            _folder: folder,
            runtime,
            store,
            subscriptions,
            firehose,
            published,
        }
    }

    fn subscribe(&self, topic: &str) {
        self.subscriptions
            .apply_frame(&[b"\x01", topic.as_bytes()].concat());
    }

    fn save(&self, app_id: &str, url: &str) {
        let save = Save {
            page: page(app_id, url),
            records: Vec::new(),
        };
        let saved = self.runtime.block_on(self.store.save(vec![save]));
        assert!(saved[0].is_ok());
    }

    fn receive(&self) -> Published {
        self.published.recv_timeout(WAIT).expect("a message")
    }
}

fn page(app_id: &str, url: &str) -> Page {
    let crawl = CrawlId::new(app_id, "c1");
    Page {
        status_code: Some(200),
        body: Some("<p>".into()),
        ..Page::new(&crawl, url, "example.com", Outcome::Ok)
    }
}

fn finished_page(app_id: &str, url: &str) -> FinishedPage {
    FinishedPage {
        app_id: app_id.to_owned(),
        crawl_id: String::from("c1"),
        url: url.to_owned(),
        body: false,
    }
}

#[test]
fn results_go_to_subscribers_of_the_application() {
    let scene = Scene::new(QUEUED);
    scene.subscribe("crawled.a");
    for app_id in ["b", "a"] {
        let url = format!("https://example.com/{app_id}");
        scene.save(app_id, &url);
        scene.firehose.announce(finished_page(app_id, &url));
    }
    let (topic, result) = scene.receive();
    assert_eq!(topic, "crawled.a");
    assert_eq!(result["url"], "https://example.com/a");
    assert_eq!(result.get("body"), None);
    scene.save("a", "https://example.com/with");
    let with_body = FinishedPage {
        body: true,
        ..finished_page("a", "https://example.com/with")
    };
    scene.firehose.announce(with_body);
    assert_eq!(scene.receive().1["body"], "<p>");
    scene.firehose.finish(None);
    assert!(scene.published.try_recv().is_err(), "and nothing else");
}

#[test]
fn without_subscribers_the_store_is_not_read() {
    let scene = Scene::new(QUEUED);
    scene.save("a", "https://example.com/");
    scene
        .firehose
        .announce(finished_page("a", "https://example.com/"));
    scene
        .firehose
        .publish_notification("a", &json!({"action": "stop"}));
    scene.firehose.finish(None);
    assert!(scene.published.try_recv().is_err());
}

#[test]
fn notifications_go_to_their_own_topic() {
    let scene = Scene::new(QUEUED);
    scene.subscribe("outbound.a");
    scene.firehose.publish_notification("b", &json!({}));
    scene
        .firehose
        .publish_notification("a", &json!({"action": "expired"}));
    let expected = (String::from("outbound.a"), json!({"action": "expired"}));
    assert_eq!(scene.receive(), expected);
}

#[test]
fn a_page_that_is_stored_a_moment_later_is_waited_for() {
    let scene = Scene::new(QUEUED);
    scene.subscribe("");
    scene
        .firehose
        .announce(finished_page("a", "https://example.com/late"));
    scene
        .firehose
        .announce(finished_page("a", "https://example.com/never"));
    scene.save("a", "https://example.com/late");
    assert_eq!(scene.receive().1["url"], "https://example.com/late");
    scene.save("a", "https://example.com/next");
    scene
        .firehose
        .announce(finished_page("a", "https://example.com/next"));
    assert_eq!(scene.receive().1["url"], "https://example.com/next");
}

#[test]
fn the_page_of_another_application_is_not_published() {
    let scene = Scene::new(QUEUED);
    scene.subscribe("");
    scene.save("b", "https://example.com/");
    scene
        .firehose
        .announce(finished_page("a", "https://example.com/"));
    scene
        .firehose
        .announce(finished_page("b", "https://example.com/other"));
    scene.save("b", "https://example.com/other");
    let (topic, result) = scene.receive();
    assert_eq!((&*topic, &result["appid"]), ("crawled.b", &json!("b")));
    assert_eq!(result["url"], "https://example.com/other");
}

/// If the store is read slower than pages are announced, the dispatcher does not wait.
#[test]
fn announcements_beyond_the_queue_are_dropped_and_counted() {
    let scene = Scene::new(10);
    scene.subscribe("");
    let started = Instant::now();
    for number in 0..10_000 {
        let never = finished_page("a", &format!("https://example.com/{number}"));
        scene.firehose.announce(never);
    }
    assert!(started.elapsed() < WAIT);
    let dropped = scene.firehose.dropped.load(Ordering::Relaxed);
    assert!(dropped >= 10_000 - (10 + BATCH as u64), "{dropped}");
    scene.firehose.finish(None);
}
