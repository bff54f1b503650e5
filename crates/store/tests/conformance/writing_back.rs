use serde_json::json;
use webfill_store::{CrawlId, DatasetRecord, SourceDocument, UnwrittenRecord};

use super::*;

pub(super) const COLLECTION: &str = "db.people";

/// A record that was read from document 1. The fields in `writable` may be written back.
pub(super) fn dataset_record(fields: Value, writable: &[&str]) -> DatasetRecord {
    DatasetRecord {
        urls: Vec::new(),
        record: record("1", fields),
        refresh: Default::default(),
        position: None,
        source: Some(SourceDocument {
            collection: COLLECTION.to_owned(),
            id: String::from(r#"{"$numberInt":"1"}"#),
            fields: writable.iter().map(|name| (*name).to_owned()).collect(),
            is_target: true,
        }),
    }
}

pub(super) async fn put_into_crawl(
    store: &dyn Store,
    id: &CrawlId,
    input: DatasetRecord,
) -> Result<RecordState, StoreError> {
    store.put_crawl(crawl(id.clone())).await.unwrap();
    let mut put = store.put_dataset(id, vec![input], NOON_MS).await;
    assert_eq!(put.len(), 1);
    put.remove(0).map(|put| put.state)
}

async fn unwritten_records(store: &dyn Store) -> Vec<UnwrittenRecord> {
    store.unwritten(&crawl_id(), COLLECTION, 10).await.unwrap()
}

/// The names and values of the fields of the only record that is to be written back.
pub(super) async fn unwritten_values(store: &dyn Store) -> Vec<(String, Value)> {
    let unwritten = unwritten_records(store).await;
    let fields = unwritten.into_iter().flat_map(|record| record.fields);
    fields.map(|field| (field.name, field.value)).collect()
}

pub(super) async fn fill(store: &dyn Store, url: &str, fields: Value) {
    let page = page_with(url, fields);
    save(store, page, &["1"]).await.unwrap();
}

pub(crate) async fn values_from_pages_are_unwritten_until_the_write_is_confirmed(
    clients: &Clients,
) {
    let store = &*clients.first.store;
    let input = dataset_record(
        json!({"city": null, "name": null, "born": 1815}),
        &["name", "city"],
    );
    put_into_crawl(store, &crawl_id(), input.clone())
        .await
        .unwrap();
    assert!(
        unwritten_records(store).await.is_empty(),
        "nothing is found yet"
    );
    fill(store, "https://example.com/a", json!({"city": "London"})).await;
    let first = unwritten_records(store).await;
    assert_eq!(first.len(), 1);
    assert_eq!(
        (&*first[0].record, &*first[0].document),
        (&*key("1"), r#"{"$numberInt":"1"}"#)
    );
    assert_eq!(
        unwritten_values(store).await,
        [(String::from("city"), json!("London"))]
    );
    // The record stays unwritten if it changes between the read and the confirmation.
    fill(store, "https://example.com/b", json!({"name": "Ada"})).await;
    store.confirm_written(&crawl_id(), first).await.unwrap();
    let second = unwritten_records(store).await;
    assert_eq!(second[0].fields.len(), 2);
    store.confirm_written(&crawl_id(), second).await.unwrap();
    assert!(unwritten_records(store).await.is_empty());
    // The record does not become unwritten when its document is read again, or a page is saved again.
    put_into_crawl(store, &crawl_id(), input).await.unwrap();
    fill(store, "https://example.com/b", json!({"name": "Ada"})).await;
    assert!(unwritten_records(store).await.is_empty());
}

pub(crate) async fn only_fields_that_a_document_lacked_are_written_to_it(clients: &Clients) {
    let store = &*clients.first.store;
    let input = dataset_record(json!({"city": null, "name": null}), &["name"]);
    put_into_crawl(store, &crawl_id(), input).await.unwrap();
    let found = json!({"city": "London", "name": "Ada"});
    fill(store, "https://example.com/a", found).await;
    assert_eq!(
        unwritten_values(store).await,
        [(String::from("name"), json!("Ada"))]
    );
    let elsewhere = CrawlId::new("app", "c2");
    assert!(
        store
            .unwritten(&elsewhere, COLLECTION, 10)
            .await
            .unwrap()
            .is_empty()
    );
}

pub(crate) async fn a_better_value_is_written_back_in_place_of_the_former_one(clients: &Clients) {
    let store = &*clients.first.store;
    store.set_mapping_rules(std::sync::Arc::new(webfill_store::MappingOrder(vec![
        String::from("best"),
    ])));
    let input = dataset_record(json!({"city": null, "name": null}), &["name", "city"]);
    put_into_crawl(store, &crawl_id(), input).await.unwrap();
    fill(store, "https://example.com/a", json!({"name": "A. L."})).await;
    let first = unwritten_records(store).await;
    store.confirm_written(&crawl_id(), first).await.unwrap();
    let mut best = page_with("https://example.com/b", json!({"name": "Ada Lovelace"}));
    best.mapping = Some(String::from("best"));
    save(store, best, &["1"]).await.unwrap();
    let second = unwritten_records(store).await;
    let name = &second[0].fields[0];
    assert_eq!(name.value, "Ada Lovelace");
    assert_eq!(name.others, [json!("A. L.")]);
}

pub(crate) async fn values_that_the_store_already_has_are_unwritten_at_once(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("1", json!({"city": null}))]).await;
    fill(store, "https://example.com/a", json!({"city": "London"})).await;
    let input = dataset_record(json!({"city": null}), &["city"]);
    let state = put_into_crawl(store, &crawl_id(), input).await.unwrap();
    assert_eq!(state, RecordState::Resolved);
    assert_eq!(
        unwritten_values(store).await,
        [(String::from("city"), json!("London"))]
    );
}

pub(crate) async fn values_of_the_user_are_never_written_back(clients: &Clients) {
    let store = &*clients.first.store;
    let lacking = dataset_record(json!({"city": null, "name": null}), &["name", "city"]);
    put_into_crawl(store, &crawl_id(), lacking).await.unwrap();
    fill(store, "https://example.com/a", json!({"city": "London"})).await;
    // Another input for the dataset gives the name, and corrects the city.
    let known = record("1", json!({"name": "Ada", "city": "Ockham"}));
    put(store, vec![known]).await;
    assert_eq!(unwritten_values(store).await, []);
}

pub(crate) async fn a_record_is_written_back_to_its_own_collection(clients: &Clients) {
    let store = &*clients.first.store;
    let input = dataset_record(json!({"city": null}), &["city"]);
    put_into_crawl(store, &crawl_id(), input.clone())
        .await
        .unwrap();
    fill(store, "https://example.com/a", json!({"city": "London"})).await;
    let other = "db.firms";
    let of_other = store.unwritten(&crawl_id(), other, 10).await.unwrap();
    assert_eq!(of_other, []);
    let mut same_id = input;
    same_id.source.as_mut().unwrap().collection = other.to_owned();
    let refusal = put_into_crawl(store, &crawl_id(), same_id)
        .await
        .unwrap_err();
    assert!(refusal.to_string().contains("db.firms"), "{refusal}");
    assert_eq!(unwritten_records(store).await.len(), 1);
}

pub(crate) async fn two_documents_for_one_record_are_refused(clients: &Clients) {
    let store = &*clients.first.store;
    let input = dataset_record(json!({"city": null}), &["city"]);
    put_into_crawl(store, &crawl_id(), input.clone())
        .await
        .unwrap();
    let mut another = input;
    another.source.as_mut().unwrap().id = String::from("\"1\"");
    another.record.fields = object(json!({"city": "Rome"}));
    let refusal = put_into_crawl(store, &crawl_id(), another)
        .await
        .unwrap_err();
    assert!(
        refusal.is_entry_refusal() && refusal.to_string().contains("is another"),
        "{refusal}"
    );
    assert_eq!(
        stored_record(store, "1").await["fields"]["city"],
        Value::Null
    );
}

/// A record whose value London was written back. Then a refresh found Paris, and a write of Paris was begun but not
/// confirmed.
async fn begin_to_replace(store: &dyn Store) -> DatasetRecord {
    let mut input = dataset_record(json!({"city": null}), &["city"]);
    input.record.want = vec![String::from("city")];
    put_into_crawl(store, &crawl_id(), input.clone())
        .await
        .unwrap();
    fill(store, "https://example.com/a", json!({"city": "London"})).await;
    let mut written = unwritten_records(store).await;
    store.begin_writing(&mut written).await.unwrap();
    store.confirm_written(&crawl_id(), written).await.unwrap();
    input.record.fields["city"] = json!("London");
    input.refresh.after_ms = Some(0);
    put_into_crawl(store, &crawl_id(), input.clone())
        .await
        .unwrap();
    fill(store, "https://example.com/b", json!({"city": "Paris"})).await;
    let mut written = unwritten_records(store).await;
    assert_eq!(written[0].fields[0].others, [json!("London")]);
    store.begin_writing(&mut written).await.unwrap();
    input
}

pub(crate) async fn an_unconfirmed_write_replaces_only_the_value_it_has_written(clients: &Clients) {
    let store = &*clients.first.store;
    let mut input = begin_to_replace(store).await;
    assert_eq!(
        unwritten_records(store).await[0].fields[0].others,
        [json!("Paris")],
        "London may be the user's by now"
    );
    // The write was executed, as the input shows.
    input.record.fields["city"] = json!("Paris");
    put_into_crawl(store, &crawl_id(), input.clone())
        .await
        .unwrap();
    let stored = stored_record(store, "1").await;
    assert_eq!(stored["sources"]["city"]["url"], "https://example.com/b");
    // Now it is certain that London is the user's value.
    input.record.fields["city"] = json!("London");
    put_into_crawl(store, &crawl_id(), input).await.unwrap();
    let stored = stored_record(store, "1").await;
    assert_eq!(stored["fields"]["city"], "London");
    assert_eq!(stored["sources"], json!({}));
}

pub(crate) async fn a_value_that_may_be_the_users_stays_unless_it_is_refreshed(clients: &Clients) {
    let store = &*clients.first.store;
    let mut input = begin_to_replace(store).await;
    let state = put_into_crawl(store, &crawl_id(), input.clone())
        .await
        .unwrap();
    assert_eq!(state, RecordState::Resolved);
    let stored = stored_record(store, "1").await;
    assert_eq!(stored["fields"]["city"], "London");
    assert_eq!(stored["sources"], json!({}));
    input.refresh.on_entry = vec![String::from("city")];
    let again = CrawlId::new("app", "again");
    let state = put_into_crawl(store, &again, input).await.unwrap();
    assert_eq!(state, RecordState::Open);
}

pub(crate) async fn records_that_others_have_changed_are_left_out_of_a_write(clients: &Clients) {
    let store = &*clients.first.store;
    let of_document = |id: &str| {
        let mut input = dataset_record(json!({"city": null}), &["city"]);
        input.record.id = id.to_owned();
        input
    };
    for id in ["1", "2"] {
        put_into_crawl(store, &crawl_id(), of_document(id))
            .await
            .unwrap();
        let page = page_with("https://example.com/a", json!({"city": "London"}));
        save(store, page, &[id]).await.unwrap();
    }
    let mut batch = unwritten_records(store).await;
    assert_eq!(batch.len(), 2);
    let mut better = page_with("https://example.com/b", json!({"city": "Paris"}));
    better.mapping = Some(String::from("best"));
    clients
        .second
        .store
        .set_mapping_rules(std::sync::Arc::new(webfill_store::MappingOrder(vec![
            String::from("best"),
        ])));
    save(&*clients.second.store, better, &["2"]).await.unwrap();
    store.begin_writing(&mut batch).await.unwrap();
    assert!(batch.iter().any(|record| record.record == key("1")));
    store.confirm_written(&crawl_id(), batch).await.unwrap();
    let left = unwritten_records(store).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].record, key("2"));
    assert_eq!(left[0].fields[0].value, "Paris");
}

pub(crate) async fn a_former_value_that_is_typed_again_is_the_users(clients: &Clients) {
    let store = &*clients.first.store;
    let input = begin_to_replace(store).await;
    let written = unwritten_records(store).await;
    store.confirm_written(&crawl_id(), written).await.unwrap();
    put_into_crawl(store, &crawl_id(), input.clone())
        .await
        .unwrap();
    let stored = stored_record(store, "1").await;
    assert_eq!(stored["fields"]["city"], "London");
    assert_eq!(stored["sources"], json!({}));
}

pub(crate) async fn values_written_to_another_collection_are_not_expected_in_the_input(
    clients: &Clients,
) {
    let store = &*clients.first.store;
    let mut input = begin_to_replace(store).await;
    let written = unwritten_records(store).await;
    store.confirm_written(&crawl_id(), written).await.unwrap();
    input.source.as_mut().unwrap().is_target = false;
    put_into_crawl(store, &crawl_id(), input).await.unwrap();
    assert_eq!(stored_record(store, "1").await["fields"]["city"], "Paris");
    let mut better = page_with("https://example.com/b", json!({"city": "Rome"}));
    better.started_at_ms += 1_000;
    save(store, better, &["1"]).await.unwrap();
    let left = unwritten_records(store).await;
    assert_eq!(left[0].fields[0].value, "Rome");
    assert_eq!(left[0].fields[0].others, [json!("Paris")]);
}
