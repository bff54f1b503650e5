use serde_json::json;
use webfill_store::{
    CrawlId, CrawlState, DatasetRecord, FieldCounts, MappingCounts, RecordCounts, RowCounts,
    RowFieldCounts, RowTotals,
};

use super::*;

pub(crate) async fn records_are_counted_once_however_often_put(clients: &Clients) {
    let store = &*clients.first.store;
    let records = vec![
        record("known", json!({"city": "London"})),
        record("open", json!({"city": null})),
        record("found", json!({"city": null})),
    ];
    put(store, records.clone()).await;
    let page = page_with("https://example.com/a", json!({"city": "Paris"}));
    save(store, page.clone(), &["found"]).await.unwrap();
    save(store, page, &["found"]).await.unwrap();
    put(store, records).await;
    let counts = store.record_counts(&crawl_id()).await.unwrap();
    assert_eq!(
        counts,
        RecordCounts {
            total: 3,
            resolved: 2
        }
    );
}

pub(crate) async fn a_record_counts_in_each_of_its_crawls(clients: &Clients) {
    let store = &*clients.first.store;
    let other = CrawlId::new("app", "c2");
    let shared = record("r", json!({"city": null}));
    put(store, vec![shared.clone()]).await;
    store.put_crawl(crawl(other.clone())).await.unwrap();
    store.put_records(&other, vec![shared], NOON_MS).await;
    let page = page_with("https://example.com/a", json!({"city": "Paris"}));
    save(store, page, &["r"]).await.unwrap();
    for id in [crawl_id(), other] {
        let counts = store.record_counts(&id).await.unwrap();
        assert_eq!(
            counts,
            RecordCounts {
                total: 1,
                resolved: 1
            }
        );
    }
    let nowhere = CrawlId::new("app", "c3");
    let counts = store.record_counts(&nowhere).await.unwrap();
    assert_eq!(counts, RecordCounts::default());
}

pub(crate) async fn records_of_an_unknown_crawl_are_refused(clients: &Clients) {
    let store = &*clients.first.store;
    let records = vec![record("r", json!({"city": null}))];
    let states = store.put_records(&crawl_id(), records, NOON_MS).await;
    let refusal = states[0].as_ref().unwrap_err();
    assert!(
        refusal.is_entry_refusal() && refusal.to_string().contains("app/c1"),
        "{refusal}"
    );
    assert!(export_all(store, ExportKind::Records).await.is_empty());
}

pub(crate) async fn a_crawl_comes_back_and_keeps_its_first_start(clients: &Clients) {
    let store = &*clients.first.store;
    assert_eq!(store.get_crawl(&crawl_id()).await.unwrap(), None);
    let started = crawl(crawl_id());
    store.put_crawl(started.clone()).await.unwrap();
    assert_eq!(
        store.get_crawl(&crawl_id()).await.unwrap(),
        Some(started.clone())
    );
    for state in CrawlState::ALL {
        let resumed = Crawl {
            state,
            counts: object(json!({"pages": 7})),
            started_at_ms: NOON_MS + 1_000,
            updated_at_ms: NOON_MS + 2_000,
            finished_at_ms: Some(NOON_MS + 2_000),
            ..started.clone()
        };
        store.put_crawl(resumed.clone()).await.unwrap();
        let kept = store.get_crawl(&crawl_id()).await.unwrap();
        assert_eq!(
            kept,
            Some(Crawl {
                started_at_ms: NOON_MS,
                ..resumed
            })
        );
    }
}

pub(crate) async fn a_record_that_was_read_at_another_position_is_reported(clients: &Clients) {
    let store = &*clients.first.store;
    store.put_crawl(crawl(crawl_id())).await.unwrap();
    let read_at = |position: Option<u64>, id: &str| DatasetRecord {
        position,
        ..DatasetRecord::from(record(id, json!({"city": null})))
    };
    let put = async |inputs: Vec<DatasetRecord>| {
        let put = store.put_dataset(&crawl_id(), inputs, NOON_MS).await;
        let earlier = put.into_iter().map(|put| put.unwrap().earlier);
        earlier.collect::<Vec<_>>()
    };
    let (here, there) = (1 << 62 | 7, 1 << 62 | 9);
    let batch = || {
        vec![
            read_at(Some(here), "a"),
            read_at(Some(8), "b"),
            read_at(Some(there), "a"),
        ]
    };
    assert_eq!(put(batch()).await, [None, None, Some(here)]);
    assert_eq!(put(batch()).await, [None, None, Some(here)], "put again");
    assert_eq!(put(vec![read_at(None, "a")]).await, [None]);
    let other = CrawlId::new("app", "c2");
    store.put_crawl(crawl(other.clone())).await.unwrap();
    let elsewhere = store
        .put_dataset(&other, vec![read_at(Some(there), "a")], NOON_MS)
        .await;
    assert_eq!(elsewhere[0].as_ref().unwrap().earlier, None);
}

/// The counts of rows of the dataset `ratings`.
fn ratings_counts(mut counts: Value) -> Vec<RowCounts> {
    let of_rules = counts.as_array_mut().unwrap().iter_mut();
    of_rules.for_each(|of_rule| of_rule["dataset"] = json!("ratings"));
    serde_json::from_value(counts).unwrap()
}

pub(crate) async fn fields_are_counted_by_mapping_and_crawl(clients: &Clients) {
    let store = &*clients.first.store;
    put(
        store,
        vec![record("r", json!({"city": null, "name": null}))],
    )
    .await;
    let read = |path: &str, mapping: Option<&str>, fields| Page {
        mapping: mapping.map(str::to_owned),
        ..page_with(&format!("https://example.com/{path}"), fields)
    };
    let pages = [
        read("a", Some("people"), json!({"name": "Ada", "city": null})),
        Page {
            alternatives: object(json!({"name": 2, "price": 0})),
            row_counts: ratings_counts(json!([
                {"rows": 30, "without_key": 1, "same_key": 2, "cut": true,
                 "filled": {"item": 29, "stars": 5}, "undecided": {"stars": 3}},
                {"rows": 10, "without_key": 0, "same_key": 0, "cut": false, "filled": {"item": 10}},
            ])),
            ..read("b", Some("people"), json!({"name": "Bob"}))
        },
        Page {
            row_counts: ratings_counts(json!([
                {"rows": 0, "without_key": 0, "same_key": 0, "cut": false, "filled": {}},
                {"rows": 0, "without_key": 0, "same_key": 0, "cut": false, "filled": {}},
            ])),
            ..read("c", Some("places"), json!({"city": ["Paris"]}))
        },
        read("d", None, json!({})),
        Page {
            document: Some(object(json!({"type": "pdf"}))),
            ..read("pdf", None, json!({}))
        },
        Page {
            document: Some(object(json!({"type": "sitemap", "entries": 3}))),
            ..read("sitemap", None, json!({}))
        },
        Page {
            outcome: Outcome::HttpError,
            ..read("e", Some("people"), json!({}))
        },
        // This page belongs to another crawl, whose id begins with the same characters.
        Page {
            crawl_id: "c10".into(),
            ..read("f", Some("people"), json!({"name": "Eve"}))
        },
    ];
    for page in pages {
        save(store, page, &[]).await.unwrap();
    }
    save(
        store,
        read("a", Some("people"), json!({"name": "Ada"})),
        &["r"],
    )
    .await
    .unwrap();
    put(store, vec![record("given", json!({"name": "Eve"}))]).await;
    let counts = store.field_counts(&crawl_id()).await.unwrap();
    let mapping = |pages, filled: &[(&str, u64)], undecided: &[(&str, u64)]| MappingCounts {
        pages,
        filled: filled
            .iter()
            .map(|(name, n)| ((*name).into(), *n))
            .collect(),
        undecided: undecided
            .iter()
            .map(|(name, n)| ((*name).into(), *n))
            .collect(),
        ..MappingCounts::default()
    };
    let of_people = RowTotals {
        pages: 1,
        pages_without: 0,
        rows: 40,
        stored: 37,
        without_key: 1,
        same_key: 2,
        cut_pages: 1,
        fields: [("item", 40, 39, 0), ("stars", 30, 5, 3)]
            .map(|(name, rows, filled, undecided)| {
                let field = RowFieldCounts {
                    rows,
                    filled,
                    undecided,
                };
                (name.into(), field)
            })
            .into(),
    };
    let of_places = RowTotals {
        pages: 1,
        pages_without: 1,
        ..RowTotals::default()
    };
    let rows = |totals| [("ratings".to_owned(), totals)].into();
    let mappings = [
        (
            "people".into(),
            MappingCounts {
                rows: rows(of_people),
                ..mapping(2, &[("name", 2)], &[("price", 1)])
            },
        ),
        (
            "places".into(),
            MappingCounts {
                rows: rows(of_places),
                ..mapping(1, &[("city", 1)], &[])
            },
        ),
    ];
    let expected = FieldCounts {
        mappings: mappings.into(),
        unmatched: 2,
        resolved: [("name".into(), 1)].into(),
        missing: [("city".into(), 1)].into(),
        ..FieldCounts::default()
    };
    assert_eq!(counts, expected);
    let nowhere = CrawlId::new("app", "c3");
    let counts = store.field_counts(&nowhere).await.unwrap();
    assert_eq!(counts, FieldCounts::default());
}

pub(crate) async fn the_crawl_before_is_the_last_of_its_application(clients: &Clients) {
    let store = &*clients.first.store;
    let begun = |app: &str, id: &str, minutes: i64| Crawl {
        started_at_ms: NOON_MS + minutes * 60_000,
        ..crawl(CrawlId::new(app, id))
    };
    let crawls = [
        begun("app", "z", 1),
        begun("app", "b", 2),
        begun("other", "c", 3),
        begun("app", "d", 4),
        begun("app", "e", 5),
    ];
    for crawl in crawls {
        store.put_crawl(crawl).await.unwrap();
    }
    let before = async |id| {
        let before = store.crawl_before(&CrawlId::new("app", id)).await.unwrap();
        before.map(|id| id.crawl_id)
    };
    assert_eq!(before("d").await.as_deref(), Some("b"));
    assert_eq!(before("b").await.as_deref(), Some("z"));
    assert_eq!(before("z").await, None);
    assert_eq!(before("unknown").await, None);
}
