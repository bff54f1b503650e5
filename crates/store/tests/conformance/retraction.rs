use serde_json::json;
use webfill_store::{Page, Save};
use webfill_wire::Outcome;

use super::*;

const URL: &str = "https://example.com/1";

/// The block page that takes the place of a page.
fn block_page_of(of: &Page) -> Page {
    Page {
        outcome: Outcome::Blocked,
        fields: Default::default(),
        links: Vec::new(),
        started_at_ms: NOON_MS + 60_000,
        ..of.clone()
    }
}

pub(crate) async fn values_of_a_block_page_are_taken_back(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("r", json!({"name": null, "id": 7}))]).await;
    let page = page_with(URL, json!({"name": "Just a moment"}));
    let saved = save(store, page.clone(), &["r"]).await.unwrap();
    assert_eq!(saved.resolved, [key("r")]);
    let counts = store.record_counts(&crawl_id()).await.unwrap();
    assert_eq!((counts.total, counts.resolved), (1, 1));
    // Taking the page back a second time changes nothing.
    for _ in 0..2 {
        let save = Save {
            page: block_page_of(&page),
            records: vec![key("r")],
        };
        let taken = store.take_back(vec![save]).await.remove(0).unwrap();
        assert_eq!(taken.open, [key("r")]);
        let stored = stored_record(&*clients.second.store, "r").await;
        assert_eq!(stored["fields"], json!({"name": null, "id": 7}));
        assert_eq!(
            (&stored["sources"], &stored["missing"]),
            (&json!({}), &json!(["name"]))
        );
        assert_eq!(stored["resolved_at"], json!(null));
        let counts = store.record_counts(&crawl_id()).await.unwrap();
        assert_eq!((counts.total, counts.resolved), (1, 0));
        let kept = only_page(store).await;
        assert_eq!(
            (&kept["outcome"], &kept["fields"]),
            (&json!("blocked"), &json!({}))
        );
    }
}

pub(crate) async fn a_page_that_was_fetched_since_is_not_taken_back(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("r", json!({"name": null}))]).await;
    let first = page_with(URL, json!({"name": "Just a moment"}));
    save(store, first.clone(), &["r"]).await.unwrap();
    let later = Page {
        delivery: webfill_wire::Delivery::new(0, 2),
        fields: object(json!({"name": "Ada"})),
        ..first.clone()
    };
    save(store, later, &[]).await.unwrap();
    let save = Save {
        page: block_page_of(&first),
        records: vec![key("r")],
    };
    store.take_back(vec![save]).await.remove(0).unwrap();
    assert_eq!(only_page(store).await["outcome"], "ok");
}
