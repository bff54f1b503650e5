use serde_json::json;
use webfill_store::MappingOrder;

use super::*;

const FIRST: &str = "https://example.com/first";
const SECOND: &str = "https://example.com/second";

fn city_page(url: &str, mapping: &str, city: &str) -> Page {
    Page {
        mapping: Some(mapping.to_owned()),
        ..page_with(url, json!({"city": city}))
    }
}

fn order(names: &[&str]) -> MappingOrder {
    MappingOrder(names.iter().map(|name| (*name).to_owned()).collect())
}

pub(crate) async fn of_two_values_the_first_stays_and_the_other_is_a_candidate(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("r", json!({"city": null}))]).await;
    for (url, city) in [(FIRST, "Paris"), (SECOND, "Rome"), (SECOND, "Rome")] {
        let page = city_page(url, "people", city);
        assert_eq!(
            save(store, page, &["r"]).await.unwrap().resolved,
            [key("r")]
        );
    }
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"]["city"], "Paris");
    assert_eq!(kept["sources"]["city"]["url"], FIRST);
    let other = json!({"value": "Rome", "url": SECOND, "mapping": "people", "at": NOON});
    assert_eq!(kept["candidates"], json!({"city": [other]}));
}

/// The value of the mapping with the higher priority is kept, whichever value arrives first. The other one becomes a
/// candidate.
pub(crate) async fn the_mapping_that_comes_first_wins_whenever_it_arrives(clients: &Clients) {
    let store = &*clients.first.store;
    store.set_mapping_rules(std::sync::Arc::new(order(&["best", "good"])));
    let ids = ["best first", "best last"];
    put(
        store,
        ids.map(|id| record(id, json!({"city": null}))).to_vec(),
    )
    .await;
    let best = city_page(FIRST, "best", "Paris");
    let good = city_page(SECOND, "good", "Rome");
    let unknown = city_page("https://example.com/third", "gone", "Oslo");
    for page in [&best, &good, &unknown, &good] {
        save(store, page.clone(), &[ids[0]]).await.unwrap();
    }
    for page in [&unknown, &good, &best, &unknown] {
        save(store, page.clone(), &[ids[1]]).await.unwrap();
    }
    for id in ids {
        let kept = stored_record(store, id).await;
        assert_eq!(kept["fields"]["city"], "Paris", "{id}");
        assert_eq!(kept["sources"]["city"]["url"], FIRST, "{id}");
        let candidates = kept["candidates"]["city"].as_array().unwrap();
        let mut cities: Vec<_> = candidates.iter().map(|one| one["value"].clone()).collect();
        cities.sort_by_key(Value::to_string);
        assert_eq!(cities, ["Oslo", "Rome"], "{id}");
        assert_eq!(kept["resolved_at"], "2026-01-01T12:00:00.250Z", "{id}");
    }
    let counts = store.record_counts(&crawl_id()).await.unwrap();
    assert_eq!((counts.total, counts.resolved), (2, 2));
}

/// A refresh prefers the page that gave the present value. Another page with another value does not replace it.
pub(crate) async fn pages_that_disagree_do_not_replace_each_others_values(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("r", json!({"city": null}))]).await;
    let fetched = |url: &str, city: &str, number: u32| {
        let mut page = city_page(url, "people", city);
        page.delivery.number = number;
        page.started_at_ms += i64::from(number);
        page
    };
    for (url, city) in [(FIRST, "Paris"), (SECOND, "Rome")] {
        save(store, fetched(url, city, 1), &["r"]).await.unwrap();
    }
    // Each case: the pages of a refresh in order, with their values, and the expected value.
    for (number, (pages, city)) in [
        ([(SECOND, "Rome"), (FIRST, "Paris")], "Paris"),
        ([(SECOND, "Oslo"), (FIRST, "Paris")], "Paris"),
        ([(SECOND, "Oslo"), (FIRST, " Paris ")], "Paris"),
        ([(SECOND, "Oslo"), (FIRST, "Lyon")], "Lyon"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = CrawlId::new("app", format!("again {number}"));
        store.put_crawl(crawl(id.clone())).await.unwrap();
        let mut input = webfill_store::DatasetRecord::from(record("r", json!({"city": null})));
        input.refresh.on_entry = vec![String::from("city")];
        let put = store.put_dataset(&id, vec![input], NOON_MS).await;
        assert_eq!(put[0].as_ref().unwrap().state, RecordState::Open);
        for (url, said) in pages {
            let page = fetched(url, said, 2 + number as u32);
            save(store, page, &["r"]).await.unwrap();
        }
        let kept = stored_record(store, "r").await;
        assert_eq!(kept["fields"]["city"], city, "{number}: {kept}");
        assert_eq!(kept["sources"]["city"]["url"], FIRST, "{number}: {kept}");
        assert_eq!(kept["missing"], json!([]), "{number}");
    }
}

pub(crate) async fn values_of_the_user_have_no_candidates(clients: &Clients) {
    let store = &*clients.first.store;
    put(
        store,
        vec![record("r", json!({"city": "London", "age": null}))],
    )
    .await;
    save(store, city_page(FIRST, "people", "Rome"), &["r"])
        .await
        .unwrap();
    let kept = stored_record(store, "r").await;
    assert_eq!(kept["fields"]["city"], "London");
    assert_eq!(kept["candidates"], json!({}));
}

pub(crate) async fn candidates_are_bounded_in_number_and_size(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("r", json!({"city": null}))]).await;
    for number in 0..20 {
        let url = format!("https://example.com/{number}");
        let page = city_page(&url, "people", &format!("city {number}"));
        save(store, page, &["r"]).await.unwrap();
        let long = city_page(&format!("{url}/long"), "people", &"x".repeat(20_000));
        save(store, long, &["r"]).await.unwrap();
    }
    let kept = stored_record(store, "r").await;
    let candidates = kept["candidates"]["city"].as_array().unwrap();
    assert_eq!(candidates.len(), 8);
    assert_eq!(candidates[7]["value"], "city 8");
}
