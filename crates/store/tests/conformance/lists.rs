//! Lists that continue on further pages, and the rules of mappings in every situation where pages fill records.

use std::sync::Arc;

use serde_json::json;
use webfill_store::{ApplyPage, DatasetRecord, MappingOrder, MappingRules, Reread, Save, page_id};

use super::*;

const LIST: &str = "https://example.com/works/";

/// The rules of one mapping that reads all pages. Its field `works` continues on further pages, and a record is
/// recognised by the given fields.
#[derive(Debug)]
struct Rules(Vec<String>);

impl Rules {
    fn matching(fields: &[&str]) -> Arc<Rules> {
        Arc::new(Rules(
            fields.iter().map(|name| (*name).to_owned()).collect(),
        ))
    }
}

impl MappingRules for Rules {
    fn order(&self) -> MappingOrder {
        MappingOrder(vec![String::from("people")])
    }

    fn mapping_of(&self, url: &str) -> Option<&str> {
        url.starts_with(LIST).then_some("people")
    }

    fn match_fields(&self, _mapping: &str) -> &[String] {
        &self.0
    }

    fn continued_fields(&self, _mapping: &str) -> Vec<&str> {
        vec!["works"]
    }
}

fn url(number: usize) -> String {
    format!("{LIST}{number}")
}

/// A page of a list: its number, its entries, and the numbers of the pages that it links to.
fn list_page(number: usize, works: &[&str], further: &[usize]) -> Page {
    Page {
        links: further.iter().map(|number| url(*number)).collect(),
        depth: if number == 1 { 0 } else { 1 },
        content_hash: Some(String::from("h")),
        ..page_with(&url(number), json!({"works": works}))
    }
}

/// Three pages of a list. Each links to its neighbours.
fn three_pages() -> [Page; 3] {
    [
        list_page(1, &["a", "b"], &[2]),
        list_page(2, &["c", "c"], &[1, 3]),
        list_page(3, &["d", "a"], &[2]),
    ]
}

/// Puts a record whose field `works` is wanted. The user has named the first page for it.
async fn put_author(store: &dyn Store, id: &str, fields: Value) {
    store.put_crawl(crawl(crawl_id())).await.unwrap();
    let mut input = DatasetRecord::from(record(id, fields));
    input.urls = vec![url(1)];
    let put = store.put_dataset(&crawl_id(), vec![input], NOON_MS).await;
    assert!(put.iter().all(Result::is_ok), "{put:?}");
}

/// The ways a page comes to fill a record.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Saved,
    Applied,
    ReadAgain,
}

const WAYS: [Way; 3] = [Way::Saved, Way::Applied, Way::ReadAgain];

async fn fill_record_in_way(store: &dyn Store, way: Way, page: &Page, id: &str) {
    if way == Way::Saved {
        save(store, page.clone(), &[id]).await.unwrap();
        return;
    }
    save(store, page.clone(), &[]).await.unwrap();
    if way == Way::Applied {
        let apply = ApplyPage {
            page_id: page_id(&page.app_id, &page.crawl_id, &page.url),
            record: key(id),
        };
        store.apply_pages(vec![apply]).await.unwrap();
        return;
    }
    let read = Reread {
        page_id: page.id(),
        url: page.url.clone(),
        attempts: page.delivery.number,
        started_at_ms: page.started_at_ms,
        content_hash: String::from("h"),
        is_changed: false,
        outcome: Outcome::Ok,
        mapping: page.mapping.clone(),
        mapping_version: None,
        template: None,
        fields: page.fields.clone(),
        alternatives: Map::new(),
        listings: Vec::new(),
        row_counts: Vec::new(),
        records: vec![key(id)],
        links: page.links.clone(),
        depth: page.depth,
        at_ms: NOON_MS,
    };
    for answer in store.put_reread(vec![read], None).await {
        assert!(!answer.unwrap().is_overtaken);
    }
}

pub(crate) async fn a_list_is_gathered_over_its_pages_in_whatever_order_they_come(
    clients: &Clients,
) {
    const ORDERS: [[usize; 3]; 6] = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    let stores = [&*clients.first.store, &*clients.second.store];
    for store in stores {
        store.set_mapping_rules(Rules::matching(&[]));
    }
    for (way, order) in WAYS
        .into_iter()
        .flat_map(|way| ORDERS.map(|order| (way, order)))
    {
        let id = format!("{way:?} {order:?}");
        put_author(stores[0], &id, json!({"works": null})).await;
        for (turn, index) in order.into_iter().enumerate() {
            let before = stored_record(stores[0], &id).await;
            let is_whole = before["missing"] == json!([]);
            // The list is complete only once all of its pages are there. The last one to be read may be the one that
            // shows the end.
            assert!(!is_whole || (turn == 1 && order[0] == 2), "{id}: {before}");
            // Each page fills the record twice, as it does if a process has crashed in between.
            for store in stores {
                fill_record_in_way(store, way, &three_pages()[index], &id).await;
            }
        }
        let kept = stored_record(stores[1], &id).await;
        let works = json!(["a", "b", "c", "c", "d"]);
        assert_eq!(kept["fields"]["works"], works, "{id}: {kept}");
        assert_eq!(kept["sources"]["works"]["url"], url(1), "{id}");
        assert_eq!(
            (&kept["missing"], &kept["candidates"]),
            (&json!([]), &json!({})),
            "{id}"
        );
        assert!(
            kept["resolved_at"].is_string() && kept["doubts"].is_null(),
            "{id}: {kept}"
        );
    }
}

pub(crate) async fn a_list_that_lacks_a_page_is_no_value_and_the_page_is_named(clients: &Clients) {
    let store = &*clients.first.store;
    store.set_mapping_rules(Rules::matching(&[]));
    let [first, second, third] = three_pages();
    let failed = Page {
        outcome: Outcome::HttpError,
        fields: Map::new(),
        mapping: None,
        links: Vec::new(),
        ..second.clone()
    };
    put_author(store, "r", json!({"works": null})).await;
    for page in [first, failed, third] {
        save(store, page, &["r"]).await.unwrap();
    }
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"]["works"], Value::Null, "{kept}");
    assert_eq!(kept["missing"], json!(["works"]));
    assert_eq!(kept["candidates"]["works"].as_array().unwrap().len(), 2);
    let gap = &kept["doubts"][url(2)];
    assert_eq!(
        (&gap["why"], &gap["mapping"]),
        (&json!("gap"), &json!("people"))
    );
    let counts = store.field_counts(&crawl_id()).await.unwrap();
    let doubts = json!(counts.doubts);
    assert_eq!(doubts, json!({"gap": {"people": 1}}));
    // The missing page is read after all.
    let again = Page {
        delivery: webfill_wire::Delivery::new(0, 2),
        ..second
    };
    save(store, again, &["r"]).await.unwrap();
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"]["works"], json!(["a", "b", "c", "c", "d"]));
    assert_eq!(
        store.field_counts(&crawl_id()).await.unwrap().doubts.len(),
        0
    );
}

/// The former list is kept until the new one is complete, even if the new one has fewer pages.
pub(crate) async fn a_refresh_replaces_a_list_as_a_whole(clients: &Clients) {
    let store = &*clients.first.store;
    store.set_mapping_rules(Rules::matching(&[]));
    put_author(store, "r", json!({"works": null})).await;
    for page in three_pages() {
        save(store, page, &["r"]).await.unwrap();
    }
    let fetched = |mut page: Page, number: u32| {
        page.delivery.number = number;
        page.started_at_ms += i64::from(number) * 1_000;
        page
    };
    let new = [
        list_page(1, &["n", "a"], &[2]),
        list_page(2, &["b", "c"], &[1]),
    ];
    for (number, pages, works) in [
        (2, &new[..1], json!(["a", "b", "c", "c", "d"])),
        (3, &new[..], json!(["n", "a", "b", "c"])),
    ] {
        let id = CrawlId::new("app", format!("again {number}"));
        store.put_crawl(crawl(id.clone())).await.unwrap();
        let mut input = DatasetRecord::from(record("r", json!({"works": null})));
        input.urls = vec![url(1)];
        input.refresh.on_entry = vec![String::from("works")];
        store
            .put_dataset(&id, vec![input], NOON_MS)
            .await
            .remove(0)
            .unwrap();
        for page in pages {
            save(store, fetched(page.clone(), number), &["r"])
                .await
                .unwrap();
        }
        let kept = stored_record(store, "r").await;
        assert_eq!(kept["fields"]["works"], works, "{number}: {kept}");
    }
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["missing"], json!([]));
    assert_eq!(
        kept["history"]["works"][0]["value"],
        json!(["a", "b", "c", "c", "d"])
    );
}

/// The page of the record links to lists of two people, and nothing shows which of them is meant.
pub(crate) async fn lists_of_two_other_people_are_rivals(clients: &Clients) {
    let store = &*clients.first.store;
    store.set_mapping_rules(Rules::matching(&[]));
    put_author(store, "r", json!({"works": null})).await;
    for page in [list_page(7, &["x"], &[]), list_page(8, &["y"], &[])] {
        save(store, page, &["r"]).await.unwrap();
    }
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"]["works"], Value::Null, "{kept}");
    assert_eq!(kept["missing"], json!(["works"]));
    let counts = store.field_counts(&crawl_id()).await.unwrap();
    assert_eq!(json!(counts.doubts), json!({"rivals": {"people": 1}}));
}

/// Nothing is added to a list that the user has typed.
pub(crate) async fn a_list_of_the_user_stays_as_it_is(clients: &Clients) {
    let store = &*clients.first.store;
    store.set_mapping_rules(Rules::matching(&[]));
    put_author(store, "r", json!({"works": ["mine"], "born": null})).await;
    for page in three_pages() {
        save(store, page, &["r"]).await.unwrap();
    }
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"]["works"], json!(["mine"]));
    assert_eq!(kept["candidates"], json!({}));
}

/// If one page of a list turns out to be a block page, its part is taken back, and with it the list.
pub(crate) async fn a_list_is_taken_back_with_one_of_its_pages(clients: &Clients) {
    let store = &*clients.first.store;
    store.set_mapping_rules(Rules::matching(&[]));
    put_author(store, "r", json!({"works": null})).await;
    for page in three_pages() {
        save(store, page, &["r"]).await.unwrap();
    }
    let blocked = Page {
        outcome: Outcome::Blocked,
        fields: Map::new(),
        mapping: None,
        links: Vec::new(),
        ..three_pages()[1].clone()
    };
    let take_back = Save {
        page: blocked,
        records: vec![key("r")],
    };
    store.take_back(vec![take_back]).await.remove(0).unwrap();
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"]["works"], Value::Null, "{kept}");
    assert_eq!(kept["missing"], json!(["works"]));
    let again = Page {
        delivery: webfill_wire::Delivery::new(0, 2),
        started_at_ms: NOON_MS + 5_000,
        ..three_pages()[1].clone()
    };
    save(store, again, &["r"]).await.unwrap();
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"]["works"], json!(["a", "b", "c", "c", "d"]));
}

/// Whether a page belongs to a record is decided by `match`, however the page comes to the record.
pub(crate) async fn match_decides_however_a_page_comes_to_a_record(clients: &Clients) {
    let store = &*clients.first.store;
    store.set_mapping_rules(Rules::matching(&["isbn"]));
    for way in WAYS {
        let (own, other) = (format!("{way:?} own"), format!("{way:?} other"));
        for (id, isbn) in [(&own, "978-3-16-148410-0"), (&other, "978-0-306-40615-7")] {
            // The names agree. Without `match`, that would be enough.
            let fields = json!({"isbn": isbn, "name": "Ada Lovelace", "born": null});
            put_author(store, id, fields).await;
        }
        let fields = json!({"isbn": "9783161484100", "name": "Ada Lovelace", "born": 1815});
        let page = Page {
            content_hash: Some(String::from("h")),
            ..page_with("https://example.com/book", fields)
        };
        for id in [&own, &other] {
            fill_record_in_way(store, way, &page, id).await;
        }
        let born = async |id: &str| stored_record(store, id).await["fields"]["born"].clone();
        assert_eq!(born(&own).await, 1815, "{way:?}");
        assert_eq!(born(&other).await, Value::Null, "{way:?}");
    }
}

/// A page that belongs to another record fills only that record, however it comes to this one.
pub(crate) async fn a_page_of_another_record_fills_nothing_however_it_comes(clients: &Clients) {
    let store = &*clients.first.store;
    store.set_mapping_rules(Rules::matching(&[]));
    let page = Page {
        content_hash: Some(String::from("h")),
        ..page_with("https://example.com/bob", json!({"born": 1900}))
    };
    store.put_crawl(crawl(crawl_id())).await.unwrap();
    let put = async |id: &str, url: &str| {
        let mut input = DatasetRecord::from(record(id, json!({"born": null})));
        input.urls = vec![url.to_owned()];
        store
            .put_dataset(&crawl_id(), vec![input], NOON_MS)
            .await
            .remove(0)
            .unwrap();
    };
    put("bob", &page.url).await;
    for way in WAYS {
        let id = format!("{way:?}");
        put(&id, "https://example.com/ada").await;
        let records = [key(&id), key("bob")];
        store
            .save(vec![Save {
                page: page.clone(),
                records: if way == Way::Saved {
                    records.to_vec()
                } else {
                    vec![key("bob")]
                },
            }])
            .await
            .remove(0)
            .unwrap();
        if way == Way::Applied {
            let apply = ApplyPage {
                page_id: page.id(),
                record: key(&id),
            };
            store.apply_pages(vec![apply]).await.unwrap();
        }
        if way == Way::ReadAgain {
            let read = Reread {
                page_id: page.id(),
                url: page.url.clone(),
                attempts: page.delivery.number,
                started_at_ms: page.started_at_ms,
                content_hash: String::from("h"),
                is_changed: false,
                outcome: Outcome::Ok,
                mapping: page.mapping.clone(),
                mapping_version: None,
                template: None,
                fields: page.fields.clone(),
                alternatives: Map::new(),
                listings: Vec::new(),
                row_counts: Vec::new(),
                records: records.to_vec(),
                links: Vec::new(),
                depth: 1,
                at_ms: NOON_MS,
            };
            store.put_reread(vec![read], None).await.remove(0).unwrap();
        }
        let kept = stored_record(store, &id).await;
        assert_eq!(kept["fields"]["born"], Value::Null, "{id}: {kept}");
        assert_eq!(stored_record(store, "bob").await["fields"]["born"], 1900);
    }
}
