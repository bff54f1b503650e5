use serde_json::json;
use webfill_store::{ApplyPage, DatasetRecord, MAX_RECORD_ID_BYTES, Page, RecordState, page_id};

use super::*;

const URL: &str = "https://example.com/ada";

pub(crate) async fn a_page_fills_missing_fields_and_becomes_their_source(clients: &Clients) {
    let store = &*clients.first.store;
    let states = put(
        store,
        vec![record(
            "r",
            json!({"name": "Ada", "born": null, "city": null}),
        )],
    )
    .await;
    assert_eq!(states, [Ok(RecordState::Open)]);
    let saved = save(store, page_with(URL, json!({"born": 1815})), &["r"])
        .await
        .unwrap();
    assert_eq!((saved.resolved.len(), saved.open), (0, vec![key("r")]));
    let expected = json!({
        "_id": "people/r", "dataset": "people", "record_id": "r",
        "fields": {"name": "Ada", "born": 1815, "city": null},
        "sources": {"born": {"url": URL, "mapping": "people", "at": NOON}},
        "candidates": {},
        "history": {},
        "missing": ["city"],
        "resolved_at": null,
        "urls": [],
    });
    assert_eq!(stored_record(store, "r").await, expected);
}

pub(crate) async fn a_record_keeps_the_urls_that_it_came_with(clients: &Clients) {
    let store = &*clients.first.store;
    store.put_crawl(crawl(crawl_id())).await.unwrap();
    for urls in [&["u1", "u2"][..], &["u2", "u3"], &[]] {
        let mut input = DatasetRecord::from(record("r", json!({"born": null})));
        input.urls = urls.iter().map(|url| (*url).to_owned()).collect();
        let put = store.put_dataset(&crawl_id(), vec![input], NOON_MS).await;
        assert!(put.iter().all(Result::is_ok), "{put:?}");
    }
    save(store, page_with(URL, json!({"born": 1815})), &["r"])
        .await
        .unwrap();
    let stored = stored_record(&*clients.second.store, "r").await;
    assert_eq!(stored["urls"], json!(["u1", "u2", "u3"]));
    assert_eq!(stored["fields"]["born"], 1815);
}

pub(crate) async fn a_field_that_has_a_value_keeps_it(clients: &Clients) {
    let store = &*clients.first.store;
    put(
        store,
        vec![record(
            "r",
            json!({"name": "Ada", "born": null, "city": null}),
        )],
    )
    .await;
    save(
        store,
        page_with(URL, json!({"name": "no", "born": 1815})),
        &["r"],
    )
    .await
    .unwrap();
    let later = page_with("https://example.com/2", json!({"name": "no", "born": 1999}));
    save(store, later, &["r"]).await.unwrap();
    let kept = stored_record(store, "r").await;
    assert_eq!(
        kept["fields"],
        json!({"name": "Ada", "born": 1815, "city": null})
    );
    assert_eq!(kept["sources"]["born"]["url"], URL);
}

pub(crate) async fn a_record_is_resolved_once_and_keeps_the_time(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("r", json!({"city": null}))]).await;
    let saved = save(store, page_with(URL, json!({"city": "London"})), &["r"])
        .await
        .unwrap();
    assert_eq!(saved.resolved, [key("r")]);
    let later = Page {
        started_at_ms: NOON_MS + 60_000,
        ..page_with("https://example.com/2", json!({"city": "Paris"}))
    };
    let saved = save(store, later, &["r"]).await.unwrap();
    assert_eq!(saved.resolved, [key("r")]);
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"]["city"], "London");
    assert_eq!(kept["resolved_at"], "2026-01-01T12:00:00.250Z");
    assert_eq!(kept["missing"], json!([]));
}

pub(crate) async fn empty_values_fill_nothing(clients: &Clients) {
    let store = &*clients.first.store;
    put(
        store,
        vec![record("r", json!({"a": null, "b": null, "c": null}))],
    )
    .await;
    let empty = page_with(URL, json!({"a": "", "b": [], "c": null}));
    let saved = save(store, empty, &["r"]).await.unwrap();
    assert_eq!(saved.open, [key("r")]);
    assert_eq!(
        stored_record(store, "r").await["missing"],
        json!(["a", "b", "c"])
    );
}

pub(crate) async fn fields_that_nobody_wants_stay_out_of_a_record(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("r", json!({"city": null}))]).await;
    let page = page_with(URL, json!({"city": "London", "shoe_size": 36}));
    save(store, page, &["r"]).await.unwrap();
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"], json!({"city": "London"}));
    assert_eq!(only_page(store).await["fields"]["shoe_size"], 36);
}

pub(crate) async fn a_record_that_is_not_stored_stays_open(clients: &Clients) {
    let store = &*clients.first.store;
    let saved = save(store, page_with(URL, json!({"a": 1})), &["nobody"])
        .await
        .unwrap();
    assert_eq!(saved.open, [key("nobody")]);
}

pub(crate) async fn putting_a_record_again_keeps_what_was_found(clients: &Clients) {
    let store = &*clients.first.store;
    let given = record("r", json!({"name": "Ada", "city": null}));
    put(store, vec![given.clone()]).await;
    save(store, page_with(URL, json!({"city": "London"})), &["r"])
        .await
        .unwrap();
    let before = stored_record(store, "r").await;
    let with_empty_name = Record {
        fields: object(json!({"name": "", "city": null})),
        ..given.clone()
    };
    let states = put(store, vec![with_empty_name, given]).await;
    assert_eq!(
        states,
        [Ok(RecordState::Resolved), Ok(RecordState::Resolved)]
    );
    assert_eq!(stored_record(store, "r").await, before);
}

pub(crate) async fn a_corrected_value_replaces_one_from_a_page_or_the_user(clients: &Clients) {
    let store = &*clients.first.store;
    put(
        store,
        vec![record("r", json!({"name": "Ada", "city": null}))],
    )
    .await;
    save(store, page_with(URL, json!({"city": ["London"]})), &["r"])
        .await
        .unwrap();
    let other = page_with("https://example.com/other", json!({"city": "Rome"}));
    save(store, other.clone(), &["r"]).await.unwrap();
    let found = stored_record(store, "r").await;
    assert_eq!(found["candidates"]["city"][0]["value"], "Rome");
    // The list is given in the form that an export to CSV gives it.
    let exported = record("r", json!({"name": "Augusta", "city": "[\"London\"]"}));
    put(store, vec![exported]).await;
    let kept = stored_record(store, "r").await;
    assert_eq!(
        kept["fields"],
        json!({"name": "Augusta", "city": ["London"]})
    );
    assert_eq!(kept["sources"], found["sources"]);
    let corrected = record("r", json!({"name": null, "city": "Ockham"}));
    put(store, vec![corrected]).await;
    save(store, other, &["r"]).await.unwrap();
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"], json!({"name": "Augusta", "city": "Ockham"}));
    assert_eq!(
        (&kept["sources"], &kept["candidates"]),
        (&json!({}), &json!({}))
    );
    assert_eq!(kept["resolved_at"], found["resolved_at"]);
}

pub(crate) async fn records_of_two_datasets_share_nothing_but_their_ids(clients: &Clients) {
    let store = &*clients.first.store;
    let of = |name: &str| Record {
        dataset: name.parse().unwrap(),
        ..record("1", json!({"city": null, "of": name}))
    };
    put(store, vec![of("people"), of("db.people")]).await;
    let page = page_with(URL, json!({"city": "London"}));
    let records = vec![String::from("db.people/1")];
    let saved = store.save(vec![Save { page, records }]).await.remove(0);
    assert_eq!(saved.unwrap().resolved, ["db.people/1"]);
    let parts = |record: &Value| {
        ["_id", "dataset", "record_id"].map(|name| record[name].as_str().unwrap().to_owned())
    };
    let mut kept = export_all(store, ExportKind::Records).await;
    kept.sort_by_key(|record| record["_id"].to_string());
    assert_eq!(parts(&kept[0]), ["db.people/1", "db.people", "1"]);
    assert_eq!(parts(&kept[1]), ["people/1", "people", "1"]);
    assert_eq!(
        kept[0]["fields"],
        json!({"city": "London", "of": "db.people"})
    );
    assert_eq!(kept[1]["fields"], json!({"city": null, "of": "people"}));
    let counts = store.record_counts(&crawl_id()).await.unwrap();
    assert_eq!((counts.total, counts.resolved), (2, 1));
}

pub(crate) async fn known_input_fills_a_missing_field_without_a_source(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("r", json!({"city": null}))]).await;
    let states = put(store, vec![record("r", json!({"city": "London"}))]).await;
    assert_eq!(states, [Ok(RecordState::Resolved)]);
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"], json!({"city": "London"}));
    assert_eq!(kept["sources"], json!({}));
    assert_eq!(kept["resolved_at"], NOON);
}

pub(crate) async fn wanting_more_opens_a_resolved_record(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("r", json!({"city": "London"}))]).await;
    let more = Record {
        want: vec![String::from("city"), String::from("born")],
        ..record("r", json!({}))
    };
    assert_eq!(put(store, vec![more]).await, [Ok(RecordState::Open)]);
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["missing"], json!(["born"]));
    assert_eq!(kept["resolved_at"], json!(null));
    let counts = store.record_counts(&crawl_id()).await.unwrap();
    assert_eq!((counts.total, counts.resolved), (1, 0));
}

pub(crate) async fn unfit_record_ids_are_refused_alone(clients: &Clients) {
    let store = &*clients.first.store;
    let long = "x".repeat(MAX_RECORD_ID_BYTES + 1);
    let records = ["", "fit", &long].map(|id| record(id, json!({"city": null})));
    let states = put(store, records.to_vec()).await;
    assert!(states[0].as_ref().is_err_and(StoreError::is_entry_refusal));
    assert_eq!(states[1], Ok(RecordState::Open));
    assert!(states[2].as_ref().is_err_and(StoreError::is_entry_refusal));
    assert_eq!(export_all(store, ExportKind::Records).await.len(), 1);
    assert_eq!(store.record_counts(&crawl_id()).await.unwrap().total, 1);
}

pub(crate) async fn a_stored_page_is_applied_to_another_record(clients: &Clients) {
    let store = &*clients.first.store;
    put(
        store,
        vec![
            record("r", json!({"city": null})),
            record("s", json!({"name": null})),
        ],
    )
    .await;
    let page = Page {
        links: vec![String::from("https://example.com/next")],
        ..page_with(URL, json!({"city": "London"}))
    };
    save(store, page, &[]).await.unwrap();
    let apply = |url, record: &str| ApplyPage {
        page_id: page_id("app", "c1", url),
        record: key(record),
    };
    let applies = vec![
        apply(URL, "r"),
        apply(URL, "s"),
        apply("https://example.com/no", "r"),
    ];
    let applied = store.apply_pages(applies).await.unwrap();
    let states: Vec<_> = applied
        .iter()
        .map(|one| one.as_ref().map(|one| one.state))
        .collect();
    assert_eq!(
        states,
        [Some(RecordState::Resolved), Some(RecordState::Open), None]
    );
    assert_eq!(
        applied[0].as_ref().unwrap().links,
        ["https://example.com/next"]
    );
    let kept = stored_record(store, "r").await;
    assert_eq!(
        kept["sources"]["city"],
        json!({"url": URL, "mapping": "people", "at": NOON})
    );
}

pub(crate) async fn hostile_names_and_ids_come_back_as_they_went_in(clients: &Clients) {
    let store = &*clients.first.store;
    let mut given = Map::new();
    let mut found = Map::new();
    for text in HOSTILE {
        given.insert(text.to_owned(), json!(null));
        found.insert(
            text.to_owned(),
            json!({text: [text, {"$ne": null, "$oid": text}]}),
        );
    }
    let id = CrawlId::new("$app\0", "a.b/$c");
    let crawl = Crawl {
        request: Value::Object(found.clone()),
        counts: found.clone(),
        ..crawl(id.clone())
    };
    store.put_crawl(crawl.clone()).await.unwrap();
    assert_eq!(store.get_crawl(&id).await.unwrap(), Some(crawl));
    for text in HOSTILE {
        let record = record(text, Value::Object(given.clone()));
        let states = store.put_records(&id, vec![record], NOON_MS).await;
        assert_eq!(states, [Ok(RecordState::Open)]);
        let page = Page {
            url: format!("https://example.com/{text}"),
            mapping: Some(text.to_owned()),
            ..page_with(URL, Value::Object(found.clone()))
        };
        let saved = save(store, page, &[text]).await.unwrap();
        assert_eq!(saved.resolved, [key(text)]);
        let kept = stored_record(store, text).await;
        assert_eq!(kept["fields"], Value::Object(found.clone()));
        assert_eq!(kept["sources"][text]["mapping"], text);
    }
    let counts = store.record_counts(&id).await.unwrap();
    assert_eq!(counts.resolved, HOSTILE.len() as u64);
}
