//! Rows of pages as records.

use webfill_store::{ListedRow, Listing, row_counts};

use super::*;

const URL: &str = "https://example.com/users/7?page=1";

fn ratings_listing(rows: &[Value]) -> Listing {
    let row = |(position, fields): (usize, &Value)| ListedRow {
        position: position as u64,
        fields: object(fields.clone()),
        links: Vec::new(),
        undecided: Vec::new(),
    };
    Listing {
        dataset: "ratings".parse().unwrap(),
        key: vec!["user".to_owned(), "item".to_owned()],
        from_record: vec![
            ("user".to_owned(), "_id".to_owned()),
            ("city".to_owned(), "city".to_owned()),
        ],
        want: Vec::new(),
        complete: false,
        cut: false,
        rows: rows.iter().enumerate().map(row).collect(),
    }
}

fn listing_page(url: &str, rows: &[Value]) -> Page {
    let listings = vec![ratings_listing(rows)];
    Page {
        mapping_version: Some("v1".to_owned()),
        row_counts: row_counts(&listings, &["people/ada".to_owned()]).0,
        listings,
        ..page_with(url, json!({}))
    }
}

async fn stored_rows(store: &dyn Store) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut each = |row| {
        rows.push(row);
        Ok(())
    };
    let filter = ExportFilter {
        dataset: Some("ratings".to_owned()),
        ..ExportFilter::default()
    };
    store
        .export(ExportKind::Records, &filter, &mut each)
        .await
        .unwrap();
    rows
}

async fn put_user(store: &dyn Store) {
    let known = json!({"city": "Berlin"});
    put(store, vec![record("ada", known)]).await[0]
        .clone()
        .unwrap();
}

pub(crate) async fn rows_become_records_with_their_place(clients: &Clients) {
    let store = clients.first.store.as_ref();
    put_user(store).await;
    let rows = [
        json!({"item": "a", "stars": 4}),
        json!({"item": null, "stars": 1}),
        json!({"item": "b/c", "stars": null}),
        json!({"item": "a", "stars": 5}),
    ];
    for _ in 0..2 {
        save(store, listing_page(URL, &rows), &["ada"])
            .await
            .unwrap();
        let stored = stored_rows(store).await;
        assert_eq!(stored.len(), 2, "without a key, and again: {stored:?}");
        assert_eq!(stored[0]["_id"], "ratings/ada/a");
        assert_eq!(stored[0]["record_id"], "ada/a");
        assert_eq!(
            stored[0]["fields"],
            json!({"item": "a", "stars": 4, "user": "ada", "city": "Berlin"})
        );
        assert_eq!(
            stored[0]["row"],
            json!({"url": URL, "position": 0, "mapping": "people", "mapping_version": "v1",
                "parent": key("ada"), "at": NOON})
        );
        assert_eq!(stored[0]["sources"]["stars"]["url"], URL);
        assert_eq!(stored[1]["_id"], "ratings/ada/b%2Fc");
        assert_eq!(stored[1]["fields"]["stars"], Value::Null);
        assert_eq!(stored[1]["row"]["position"], 2);
    }
    let counts = store.record_counts(&crawl_id()).await.unwrap();
    assert_eq!(counts.total, 1, "rows are no records of the crawl's input");
}

pub(crate) async fn rows_of_a_page_for_several_records_belong_to_none(clients: &Clients) {
    let store = clients.first.store.as_ref();
    put_user(store).await;
    put(store, vec![record("mary", json!({"city": "Berlin"}))]).await;
    let rows = [json!({"item": "a", "stars": 4})];
    save(store, listing_page(URL, &rows), &["ada", "mary"])
        .await
        .unwrap();
    assert_eq!(stored_rows(store).await, Vec::<Value>::new());
}

pub(crate) async fn a_row_that_is_seen_again_is_the_same_record(clients: &Clients) {
    let (first, second) = (clients.first.store.as_ref(), clients.second.store.as_ref());
    put_user(first).await;
    let now = listing_page(
        URL,
        &[
            json!({"item": "a", "stars": 4}),
            json!({"item": "b", "stars": 1}),
        ],
    );
    let later = Page {
        started_at_ms: NOON_MS + 60_000,
        ..listing_page(
            "https://example.com/users/7?page=2",
            &[json!({"item": "a", "stars": 5})],
        )
    };
    save(first, now.clone(), &["ada"]).await.unwrap();
    save(second, later, &["ada"]).await.unwrap();
    // This page was fetched earlier but is saved later, as by a worker that was suspended.
    save(first, now, &["ada"]).await.unwrap();
    let stored = stored_rows(first).await;
    assert_eq!(stored.len(), 2);
    assert_eq!(stored[0]["fields"]["stars"], 5);
    assert_eq!(stored[0]["history"]["stars"][0]["value"], 4);
    assert_eq!(
        stored[0]["row"]["url"],
        "https://example.com/users/7?page=2"
    );
    assert_eq!(stored[1]["fields"]["stars"], 1);
}

pub(crate) async fn two_clients_store_the_same_rows_once(clients: &Clients) {
    let (first, second) = (clients.first.store.as_ref(), clients.second.store.as_ref());
    put_user(first).await;
    let rows = |from: usize| -> Vec<Value> {
        let numbers = from..from + 2_000;
        numbers
            .map(|number| json!({"item": format!("{number:05}"), "stars": number}))
            .collect()
    };
    let (one, other) = tokio::join!(
        save(first, listing_page(URL, &rows(0)), &["ada"]),
        save(
            second,
            listing_page("https://example.com/users/7?page=2", &rows(1_000)),
            &["ada"]
        ),
    );
    one.unwrap();
    other.unwrap();
    let mut stored = stored_rows(first).await;
    stored.sort_by_key(|row| row["fields"]["stars"].as_u64());
    let stars: Vec<u64> = stored
        .iter()
        .filter_map(|row| row["fields"]["stars"].as_u64())
        .collect();
    assert_eq!(stars, (0..3_000).collect::<Vec<u64>>());
}
