use webfill_store::{CrawlId, RecordCounts};

use super::writing_back::{COLLECTION, dataset_record, fill, put_into_crawl};
use super::*;

pub(crate) async fn a_refresh_marks_known_fields_as_missing_once_per_crawl(clients: &Clients) {
    let store = &*clients.first.store;
    put(
        store,
        vec![record("1", json!({"city": null, "born": 1815}))],
    )
    .await;
    fill(store, "https://example.com/a", json!({"city": "London"})).await;
    let again = CrawlId::new("app", "again");
    let mut input = dataset_record(json!({"city": null, "born": 1815}), &["city"]);
    input.refresh.on_entry = input.record.want.clone();
    let state = put_into_crawl(store, &again, input.clone()).await.unwrap();
    assert_eq!(state, RecordState::Open);
    let asked = stored_record(store, "1").await;
    assert_eq!(asked["missing"], json!(["city"]));
    assert_eq!(asked["fields"], json!({"city": "London", "born": 1815}));
    for id in [crawl_id(), again.clone()] {
        let counts = store.record_counts(&id).await.unwrap();
        assert_eq!(
            counts,
            RecordCounts {
                total: 1,
                resolved: 0
            }
        );
    }
    fill(store, "https://example.com/b", json!({"city": "Paris"})).await;
    // If a resumed crawl reads the document again, the record keeps what this crawl has found.
    let state = put_into_crawl(store, &again, input).await.unwrap();
    assert_eq!(state, RecordState::Resolved);
    assert_eq!(stored_record(store, "1").await["fields"]["city"], "Paris");
    assert_eq!(
        store.unwritten(&again, COLLECTION, 10).await.unwrap()[0].fields[0].value,
        "Paris"
    );
}

/// Refreshes the city of the record in a new crawl.
async fn refresh(store: &dyn Store, crawl: &str) {
    let mut input = dataset_record(json!({"city": null}), &["city"]);
    input.refresh.on_entry = input.record.want.clone();
    let crawl = CrawlId::new("app", crawl);
    put_into_crawl(store, &crawl, input).await.unwrap();
}

pub(crate) async fn the_former_value_of_a_changed_field_is_kept(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("1", json!({"city": null}))]).await;
    fill(store, "https://example.com/a", json!({"city": "London"})).await;
    let source = stored_record(store, "1").await["sources"]["city"].clone();
    refresh(store, "second").await;
    fill(store, "https://example.com/a", json!({"city": "Paris"})).await;
    let changed = stored_record(store, "1").await;
    assert_eq!(changed["fields"], json!({"city": "Paris"}));
    let mut former = source;
    former["value"] = json!("London");
    former["until"] = json!("2026-01-01T12:00:00.250Z");
    assert_eq!(changed["history"], json!({"city": [former]}));
    // The same value is found again, so nothing has changed.
    refresh(store, "third").await;
    fill(store, "https://example.com/b", json!({"city": "Paris"})).await;
    let same = stored_record(store, "1").await;
    assert_eq!(same["fields"], changed["fields"]);
    assert_eq!(same["history"], changed["history"]);
    // If no value is found, the present one stays, and another is still wanted.
    refresh(store, "fourth").await;
    let lost = stored_record(store, "1").await;
    assert_eq!(lost["fields"], same["fields"]);
    assert_eq!(lost["history"], same["history"]);
    assert_eq!(lost["missing"], json!(["city"]));
    // A value of the user in the history has no page as its source.
    put(store, vec![record("1", json!({"city": "Rome"}))]).await;
    put(store, vec![record("1", json!({"city": "Oslo"}))]).await;
    let corrected = &stored_record(store, "1").await["history"]["city"][2];
    assert_eq!(corrected, &json!({"value": "Rome", "until": NOON}));
}

pub(crate) async fn a_given_value_that_is_refreshed_does_not_come_back(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("1", json!({"city": "London"}))]).await;
    let mut input = dataset_record(json!({"city": "Paris", "born": 1815}), &["city"]);
    input.record.want = vec![String::from("city")];
    input.refresh.on_entry = input.record.want.clone();
    let again = CrawlId::new("app", "again");
    let state = put_into_crawl(store, &again, input.clone()).await.unwrap();
    assert_eq!(state, RecordState::Open);
    let asked = stored_record(store, "1").await;
    assert_eq!(asked["fields"], json!({"city": "Paris", "born": 1815}));
    fill(store, "https://example.com/a", json!({"city": "Rome"})).await;
    // A resumed crawl reads the same document again.
    let state = put_into_crawl(store, &again, input).await.unwrap();
    assert_eq!(state, RecordState::Resolved);
    let found = stored_record(store, "1").await;
    assert_eq!(found["fields"], json!({"city": "Rome", "born": 1815}));
    let former = found["history"]["city"].as_array().unwrap().iter();
    let former: Vec<&Value> = former.map(|one| &one["value"]).collect();
    assert_eq!(former, ["London", "Paris"]);
}

pub(crate) async fn a_refresh_that_fails_keeps_the_value_and_is_repeated(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("1", json!({"city": null}))]).await;
    fill(store, "https://example.com/a", json!({"city": "London"})).await;
    let mut input = dataset_record(json!({"city": "London"}), &["city"]);
    input.record.want = vec![String::from("city")];
    input.refresh.after_ms = Some(0);
    // A resumed crawl, a record on two lines of the input, and the next crawl, which also finds nothing.
    for crawl in ["again", "again", "later"] {
        let crawl = CrawlId::new("app", crawl);
        let state = put_into_crawl(store, &crawl, input.clone()).await.unwrap();
        assert_eq!(state, RecordState::Open);
        let asked = stored_record(store, "1").await;
        assert_eq!(asked["fields"], json!({"city": "London"}));
        assert_eq!(asked["missing"], json!(["city"]));
        assert!(asked["sources"]["city"].is_object());
        assert_eq!(asked["history"], json!({}));
    }
    fill(store, "https://example.com/b", json!({"city": "Paris"})).await;
    input.refresh.after_ms = Some(1 << 40);
    let later = CrawlId::new("app", "later");
    let state = put_into_crawl(store, &later, input.clone()).await.unwrap();
    assert_eq!(
        state,
        RecordState::Resolved,
        "the input still has the old value"
    );
    assert_eq!(stored_record(store, "1").await["fields"]["city"], "Paris");
    // Corrections by the user are still accepted.
    input.record.fields["city"] = json!("Rome");
    put_into_crawl(store, &later, input).await.unwrap();
    assert_eq!(stored_record(store, "1").await["fields"]["city"], "Rome");
}

pub(crate) async fn a_value_that_is_to_be_refreshed_replaces_nothing(clients: &Clients) {
    let store = &*clients.first.store;
    let mut input = dataset_record(json!({"city": null, "zip": null}), &["city", "zip"]);
    put_into_crawl(store, &crawl_id(), input.clone())
        .await
        .unwrap();
    fill(
        store,
        "https://example.com/a",
        json!({"city": "London", "zip": "1"}),
    )
    .await;
    input.refresh.on_entry = input.record.want.clone();
    let again = CrawlId::new("app", "again");
    put_into_crawl(store, &again, input).await.unwrap();
    fill(store, "https://example.com/b", json!({"zip": "2"})).await;
    let unwritten = store.unwritten(&again, COLLECTION, 10).await.unwrap();
    let reported = unwritten[0].fields.iter();
    let reported: Vec<_> = reported
        .map(|field| {
            (
                field.name.as_str(),
                field.value.clone(),
                field.is_asked_again,
                field.others.clone(),
            )
        })
        .collect();
    // A value that was never written is not in the dataset, unless the user has typed it.
    let zip = ("zip", json!("2"), false, vec![]);
    assert_eq!(reported, [("city", json!("London"), true, vec![]), zip]);
}

pub(crate) async fn a_given_value_without_a_new_one_is_refreshed_only_once(clients: &Clients) {
    let store = &*clients.first.store;
    let mut input = dataset_record(json!({"city": "Rome"}), &["city"]);
    input.record.want = vec![String::from("city")];
    input.refresh.on_entry = input.record.want.clone();
    let state = put_into_crawl(store, &crawl_id(), input.clone())
        .await
        .unwrap();
    assert_eq!(state, RecordState::Open);
    input.refresh.on_entry = Vec::new();
    let later = CrawlId::new("app", "later");
    let state = put_into_crawl(store, &later, input).await.unwrap();
    assert_eq!(state, RecordState::Resolved);
    assert_eq!(stored_record(store, "1").await["fields"]["city"], "Rome");
}

pub(crate) async fn the_history_is_bounded_and_the_oldest_goes(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("1", json!({"city": "city 0"}))]).await;
    for number in 1..=10 {
        let city = format!("city {number}");
        put(store, vec![record("1", json!({"city": city}))]).await;
    }
    let large = "x".repeat(20 << 10);
    put(store, vec![record("1", json!({"city": large}))]).await;
    put(store, vec![record("1", json!({"city": "last"}))]).await;
    let history = &stored_record(store, "1").await["history"]["city"];
    assert_eq!(history.as_array().unwrap().len(), 8);
    assert_eq!(history[0]["value"], "city 3");
    assert_eq!(history[7]["value"], "city 10", "a large one is not kept");
}
