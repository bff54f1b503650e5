//! Decisions of people about values of records.

use serde_json::json;
use webfill_store::{Decided, Decision, DecisionAnswer};

use super::writing_back::{dataset_record, put_into_crawl, unwritten_values};
use super::*;

async fn decide(store: &dyn Store, id: &str, seen: Value, answer: DecisionAnswer) -> Decided {
    let decision = Decision {
        record: key(id),
        field: String::from("name"),
        seen,
        answer,
        by: Some(String::from("ada")),
    };
    store.decide(decision, NOON_MS + 5).await.unwrap()
}

async fn count_resolved(store: &dyn Store) -> u64 {
    store.record_counts(&crawl_id()).await.unwrap().resolved
}

pub(crate) async fn a_decision_is_kept_and_counted_and_undone(clients: &Clients) {
    let (store, other) = (&*clients.first.store, &*clients.second.store);
    put(store, vec![record("r", json!({"name": null, "id": 7}))]).await;
    let page = page_with("https://example.com/1", json!({"name": "Ada"}));
    save(store, page.clone(), &["r"]).await.unwrap();
    let before = stored_record(other, "r").await;
    assert_eq!(count_resolved(store).await, 1);
    let unknown = decide(store, "none", Value::Null, DecisionAnswer::Reject).await;
    assert_eq!(unknown, Decided::Unknown);
    let stale = decide(store, "r", json!("Bob"), DecisionAnswer::Reject).await;
    assert_eq!(stale, Decided::Changed);
    assert_eq!(stored_record(other, "r").await, before);

    let rejected = decide(store, "r", json!("Ada"), DecisionAnswer::Reject).await;
    assert_eq!(rejected, Decided::Done);
    let now = stored_record(other, "r").await;
    assert_eq!(now["fields"], json!({"name": null, "id": 7}));
    assert_eq!(
        (&now["missing"], &now["resolved_at"]),
        (&json!(["name"]), &json!(null))
    );
    assert_eq!(now["history"]["name"][0]["value"], "Ada");
    let decision = &now["decisions"]["name"];
    assert_eq!(
        (&decision["answer"], &decision["by"]),
        (&json!("rejected"), &json!("ada"))
    );
    assert_eq!(count_resolved(other).await, 0);
    // The page is fetched again, and has the same value.
    let again = Page {
        delivery: webfill_wire::Delivery::new(0, 2),
        started_at_ms: NOON_MS + 60_000,
        ..page
    };
    save(other, again, &["r"]).await.unwrap();
    assert_eq!(
        stored_record(other, "r").await["fields"]["name"],
        Value::Null
    );

    let typed = DecisionAnswer::Type(json!("Eve"));
    assert_eq!(decide(other, "r", Value::Null, typed).await, Decided::Done);
    assert_eq!(count_resolved(store).await, 1);
    let undone = decide(store, "r", json!("Eve"), DecisionAnswer::Undo).await;
    assert_eq!(undone, Decided::Done);
    let now = stored_record(other, "r").await;
    for member in ["fields", "sources", "candidates", "missing"] {
        assert_eq!(now[member], before[member], "{member}");
    }
    assert_eq!(now.get("decisions"), None);
    assert_eq!(count_resolved(store).await, 1);
}

pub(crate) async fn a_decision_is_written_back_to_the_users_documents(clients: &Clients) {
    let store = &*clients.first.store;
    let input = dataset_record(json!({"name": null, "born": 1815}), &["name"]);
    put_into_crawl(store, &crawl_id(), input.clone())
        .await
        .unwrap();
    let page = page_with("https://example.com/1", json!({"name": "Ada"}));
    save(store, page, &["1"]).await.unwrap();
    let typed = DecisionAnswer::Type(json!("Eve"));
    assert_eq!(decide(store, "1", json!("Ada"), typed).await, Decided::Done);
    assert_eq!(
        unwritten_values(store).await,
        [(String::from("name"), json!("Eve"))]
    );
    // Reading the document again, still without a value, changes nothing.
    put_into_crawl(store, &crawl_id(), input).await.unwrap();
    assert_eq!(stored_record(store, "1").await["fields"]["name"], "Eve");
}
