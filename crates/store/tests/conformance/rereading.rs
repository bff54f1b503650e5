//! Pages that were read again without fetching.

use std::sync::Arc;

use webfill_store::{
    Cursor, Cutoff, Page, Reread, RereadAnswer, Trial, Validators, ValueChange, ValueChangeCounter,
};
use webfill_wire::Delivery;

use super::*;

const URL: &str = "https://example.com/1";
const LATER_MS: i64 = NOON_MS + 60_000;

fn fetched_page(fields: Value) -> Page {
    Page {
        delivery: Delivery::new(0, 1),
        content_hash: Some("h1".to_owned()),
        mapping_version: Some("v1".to_owned()),
        validators: Some(Validators {
            etag: Some("\"1\"".to_owned()),
            last_modified: None,
            fetched_at_ms: NOON_MS,
            read_as: "html".to_owned(),
        }),
        ..page_with(URL, fields)
    }
}

/// The result of reading the page of `fetched_page` again with another version of its mapping.
fn reread(fields: Value, records: &[&str]) -> Reread {
    let page = fetched_page(fields);
    Reread {
        page_id: page.id(),
        url: page.url,
        attempts: page.delivery.number,
        started_at_ms: page.started_at_ms,
        content_hash: "h1".to_owned(),
        is_changed: true,
        outcome: Outcome::Ok,
        mapping: page.mapping,
        mapping_version: Some("v2".to_owned()),
        template: None,
        fields: page.fields,
        alternatives: object(json!({"city": 3})),
        listings: Vec::new(),
        row_counts: Vec::new(),
        records: records.iter().map(|id| key(id)).collect(),
        links: page.links,
        depth: page.depth,
        at_ms: LATER_MS,
    }
}

async fn put_reread(store: &dyn Store, reread: Reread, trial: Option<&Arc<Trial>>) -> RereadAnswer {
    let mut answers = store.put_reread(vec![reread], trial.cloned()).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0).unwrap()
}

fn trial() -> Arc<Trial> {
    Arc::new(Trial::new().unwrap())
}

/// The expected answer: for each value that is new or changed, the field, the old and the new value.
fn answer(record: &str, changes: &[(&str, Value, Value)]) -> RereadAnswer {
    let change = |(field, old, new): &(&str, Value, Value)| ValueChange {
        record: key(record),
        field: (*field).to_owned(),
        old: Some(old.clone()),
        new: new.clone(),
    };
    RereadAnswer {
        is_overtaken: false,
        changes: changes.iter().map(change).collect(),
    }
}

async fn changes(store: &dyn Store, after: &Cursor) -> (usize, Cursor) {
    let mut pages = 0;
    let mut each = |_, _| {
        pages += 1;
        Ok(())
    };
    let everything = ExportFilter::default();
    let end = store.changes(after, &everything, &mut each).await.unwrap();
    (pages, end)
}

pub(crate) async fn a_trial_reports_the_changes_that_are_then_made_once(clients: &Clients) {
    let (first, second) = (&*clients.first.store, &*clients.second.store);
    put(
        first,
        vec![record("ada", json!({"city": null, "town": null}))],
    )
    .await;
    let found = fetched_page(json!({"city": "Paris"}));
    save(first, found, &["ada"]).await.unwrap();
    let before = (only_page(first).await, stored_record(first, "ada").await);
    let (_, read_to) = changes(first, &Cursor::start()).await;
    let now = reread(json!({"city": "London", "town": "Ockham"}), &["ada"]);

    let changes_of_ada = [
        ("city", json!("Paris"), json!("London")),
        ("town", Value::Null, json!("Ockham")),
    ];
    let expected = answer("ada", &changes_of_ada);
    assert_eq!(
        put_reread(second, now.clone(), Some(&trial())).await,
        expected
    );
    assert_eq!(only_page(first).await, before.0);
    assert_eq!(stored_record(first, "ada").await, before.1);
    assert_eq!(changes(first, &read_to).await.0, 0);

    assert_eq!(put_reread(second, now.clone(), None).await, expected);
    let (page, filled) = (only_page(first).await, stored_record(first, "ada").await);
    assert_eq!(page["fields"], json!({"city": "London", "town": "Ockham"}));
    assert_eq!(page["mapping_version"], "v2");
    assert_eq!(page["alternatives"], json!({"city": 3}));
    for same in ["started_at", "attempts", "content_hash", "bytes"] {
        assert_eq!(page[same], before.0[same], "{same}");
    }
    assert_eq!(filled["fields"], page["fields"]);
    assert_eq!(filled["history"]["city"][0]["value"], "Paris");
    assert_eq!(filled["sources"]["town"]["at"], NOON);
    assert_eq!(filled["missing"], json!([]));
    let (count, read_to) = changes(first, &read_to).await;
    assert_eq!(count, 1);

    let again = Reread {
        is_changed: false,
        ..now
    };
    assert_eq!(put_reread(second, again, None).await, answer("ada", &[]));
    assert_eq!(only_page(first).await, page);
    assert_eq!(stored_record(first, "ada").await, filled);
    assert_eq!(changes(first, &read_to).await.0, 0);
}

/// Several pages give the same field, in separate calls and in one call. The changes by a page depend on the pages
/// before it.
pub(crate) async fn a_trial_takes_its_earlier_changes_into_account(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("ada", json!({"town": null}))]).await;
    let urls = ["a", "b", "c"].map(|name| format!("https://example.com/{name}"));
    for url in &urls {
        let page = Page {
            url: url.clone(),
            ..fetched_page(json!({}))
        };
        save(store, page, &["ada"]).await.unwrap();
    }
    store.set_mapping_rules(Arc::new(webfill_store::MappingOrder(vec![
        "best".into(),
        "good".into(),
    ])));
    let found = |url: &String, mapping: &str, town: &str| {
        let page = Page {
            url: url.clone(),
            ..fetched_page(json!({}))
        };
        Reread {
            page_id: page.id(),
            url: page.url,
            mapping: Some(mapping.to_owned()),
            ..reread(json!({"town": town}), &["ada"])
        }
    };
    let rereads = [
        found(&urls[0], "good", "Ockham"),
        found(&urls[1], "good", "Paris"),
        found(&urls[2], "best", "London"),
    ];
    let (trial, foreseen, made) = (
        trial(),
        ValueChangeCounter::new().unwrap(),
        ValueChangeCounter::new().unwrap(),
    );
    for (trial, tally) in [(Some(trial), &foreseen), (None, &made)] {
        let [first, second, third] = rereads.clone();
        let mut answers = store.put_reread(vec![first], trial.clone()).await;
        answers.extend(store.put_reread(vec![second, third], trial).await);
        let changes = answers.into_iter().map(|answer| answer.unwrap().changes);
        let changes: Vec<_> = changes.collect();
        let of = |old, new| answer("ada", &[("town", old, json!(new))]).changes;
        let expected = [
            of(Value::Null, "Ockham"),
            vec![],
            of(json!("Ockham"), "London"),
        ];
        assert_eq!(changes, expected);
        changes
            .iter()
            .for_each(|changes| tally.add(changes).unwrap());
    }
    assert_eq!(
        stored_record(store, "ada").await["fields"]["town"],
        "London"
    );
    let expected = (1, [("town".to_owned(), (1, 0))].into());
    assert_eq!(foreseen.counts().unwrap(), expected);
    assert_eq!(made.counts().unwrap(), expected);
}

pub(crate) async fn a_page_that_was_fetched_meanwhile_is_not_overwritten(clients: &Clients) {
    let (first, second) = (&*clients.first.store, &*clients.second.store);
    put(first, vec![record("ada", json!({"city": null}))]).await;
    save(first, fetched_page(json!({})), &["ada"])
        .await
        .unwrap();
    let now = reread(json!({"city": "London"}), &["ada"]);
    let fetched_again = Page {
        started_at_ms: LATER_MS,
        content_hash: Some("h2".to_owned()),
        delivery: Delivery::new(0, 2),
        ..fetched_page(json!({"city": "Oslo"}))
    };
    save(second, fetched_again, &["ada"]).await.unwrap();
    let stored = (only_page(first).await, stored_record(first, "ada").await);
    let overtaken = RereadAnswer {
        is_overtaken: true,
        changes: Vec::new(),
    };
    for is_changed in [true, false] {
        for trial in [Some(&trial()), None] {
            let now = Reread {
                is_changed,
                ..now.clone()
            };
            assert_eq!(put_reread(first, now, trial).await, overtaken);
        }
    }
    assert_eq!(only_page(first).await, stored.0);
    assert_eq!(stored_record(first, "ada").await, stored.1);
}

/// A page that was read again keeps the links that its first mapping has found, so it is to be fetched in full.
pub(crate) async fn a_page_of_another_mapping_is_fetched_whole_the_next_time(clients: &Clients) {
    let store = &*clients.first.store;
    save(store, fetched_page(json!({})), &[]).await.unwrap();
    let known = async || {
        let ids = vec![fetched_page(json!({})).id()];
        store.known_pages(ids).await.unwrap().len()
    };
    let same = Reread {
        mapping_version: Some("v1".to_owned()),
        ..reread(json!({"city": "London"}), &[])
    };
    put_reread(store, same, None).await;
    assert_eq!(known().await, 1, "its template or its fields have changed");
    put_reread(store, reread(json!({"city": "London"}), &[]), None).await;
    assert_eq!(known().await, 0);
}

/// Pages that were read again get later positions than pages that were fetched after them.
pub(crate) async fn pages_that_were_read_again_are_dropped_when_they_are_old(clients: &Clients) {
    let (first, second) = (&*clients.first.store, &*clients.second.store);
    save(first, fetched_page(json!({})), &[]).await.unwrap();
    let younger = |number: usize| Save {
        page: Page {
            started_at_ms: LATER_MS,
            ..page(&format!("https://example.com/younger/{number}"))
        },
        records: Vec::new(),
    };
    let saved = first.save((0..1_100).map(younger).collect()).await;
    assert!(saved.iter().all(Result::is_ok), "{saved:?}");
    put_reread(first, reread(json!({"city": "London"}), &[]), None).await;
    let cutoff = Cutoff {
        pages_ms: Some(LATER_MS),
        log_ms: None,
        samples_bytes: None,
    };
    for expected in [1, 0] {
        let mut pages = 0;
        loop {
            let dropped = second.drop_old(cutoff).await.unwrap();
            pages += dropped.pages;
            if !dropped.has_more {
                break;
            }
        }
        assert_eq!(pages, expected);
    }
    assert_eq!(export_all(first, ExportKind::Pages).await.len(), 1_100);
}
