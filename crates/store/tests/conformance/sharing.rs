use std::sync::Arc;

use serde_json::json;
use webfill_store::{RecordCounts, RobotsEntry, Save};

use super::*;

pub(crate) async fn each_client_sees_what_the_other_has_stored(clients: &Clients) {
    let (first, second) = (&clients.first, &clients.second);
    put(&*first.store, vec![record("r", json!({"city": null}))]).await;
    let page = page_with("https://example.com/a", json!({"city": "Paris"}));
    let saved = save(&*second.store, page, &["r"]).await.unwrap();
    assert_eq!(saved.resolved, [key("r")]);
    let counts = first.store.record_counts(&crawl_id()).await.unwrap();
    assert_eq!(
        counts,
        RecordCounts {
            total: 1,
            resolved: 1
        }
    );
    let robots = RobotsEntry {
        origin: String::from("https://example.com"),
        status: Some(404),
        body: Vec::new(),
        fetched_at_ms: NOON_MS,
        expires_at_ms: NOON_MS + 1,
    };
    first
        .cache
        .put_robots(vec![robots.clone()], NOON_MS)
        .await
        .unwrap();
    let seen = second
        .cache
        .robots("https://example.com", NOON_MS)
        .await
        .unwrap();
    assert_eq!(seen, Some(robots));
}

/// Each client fills every second field of the record, at the same time.
pub(crate) async fn two_clients_fill_one_record_without_losing_a_field(clients: &Clients) {
    const FIELDS: usize = 40;
    let names: Vec<String> = (0..FIELDS).map(|number| format!("f{number}")).collect();
    let wanted = Record {
        dataset: dataset(),
        id: String::from("r"),
        fields: Map::new(),
        want: names.clone(),
    };
    put(&*clients.first.store, vec![wanted]).await;
    let bring = |parity: usize, store: Arc<dyn Store>| {
        let names = names.clone();
        async move {
            for number in (parity..FIELDS).step_by(2) {
                let url = format!("https://example.com/{number}");
                let page = page_with(&url, json!({names[number].as_str(): number}));
                save(&*store, page, &["r"]).await.unwrap();
            }
        }
    };
    let (first, second) = (&clients.first.store, &clients.second.store);
    tokio::join!(bring(0, first.clone()), bring(1, second.clone()));
    let kept = stored_record(&*clients.first.store, "r").await;
    assert_eq!(kept["missing"], json!([]));
    assert_eq!(object(kept["fields"].clone()).len(), FIELDS);
    let counts = clients
        .second
        .store
        .record_counts(&crawl_id())
        .await
        .unwrap();
    assert_eq!(
        counts,
        RecordCounts {
            total: 1,
            resolved: 1
        }
    );
}

pub(crate) async fn two_clients_write_at_once_and_lose_nothing(clients: &Clients) {
    const BATCHES: usize = 30;
    const BATCH: usize = 10;
    let write = |client: &'static str, store: Arc<dyn Store>| async move {
        for batch in 0..BATCHES {
            let save = |number| Save {
                page: page(&format!("https://example.com/{client}/{batch}/{number}")),
                records: Vec::new(),
            };
            let saved = store.save((0..BATCH).map(save).collect()).await;
            assert!(saved.iter().all(Result::is_ok), "{saved:?}");
        }
    };
    tokio::join!(
        write("first", clients.first.store.clone()),
        write("second", clients.second.store.clone())
    );
    let pages = export_all(&*clients.first.store, ExportKind::Pages).await;
    assert_eq!(pages.len(), 2 * BATCHES * BATCH);
}
