//! The health of mappings.

use serde_json::{Value, json};
use webfill_store::{Cursor, ExportFilter, HealthState, Page, Save, Store};
use webfill_wire::Outcome;

use super::{Clients, key, page_with, put, record};

fn state(id: &str, revision: u64, writer: &str, text: &str) -> HealthState {
    HealthState {
        id: id.to_owned(),
        revision,
        writer: writer.to_owned(),
        cursor: Cursor::start(),
        state: text.to_owned(),
    }
}

async fn put_state(store: &dyn Store, state: &HealthState) -> bool {
    store
        .replace_health_if_current(vec![state.clone()])
        .await
        .unwrap()[0]
}

pub(crate) async fn of_two_states_with_the_same_revision_one_is_stored(clients: &Clients) {
    let (one, other) = (&*clients.first.store, &*clients.second.store);
    assert_eq!(one.health().await.unwrap(), []);
    assert!(put_state(one, &state("mapping/a", 1, "one", "{}")).await);
    assert!(!put_state(other, &state("mapping/a", 1, "other", "[]")).await);
    assert!(put_state(other, &state("mapping/a", 2, "other", "[2]")).await);
    assert!(!put_state(one, &state("mapping/a", 2, "one", "[1]")).await);
    assert!(
        !put_state(one, &state("mapping/b", 2, "one", "[1]")).await,
        "there is none before"
    );
    assert_eq!(
        one.health().await.unwrap(),
        [state("mapping/a", 2, "other", "[2]")]
    );
    let both = vec![
        state("mapping/a", 3, "one", "3"),
        state("mapping/b", 1, "one", "1"),
    ];
    assert_eq!(
        one.replace_health_if_current(both.clone()).await.unwrap(),
        [true, true]
    );
    assert_eq!(other.health().await.unwrap(), both);
}

pub(crate) async fn values_of_the_user_are_listed_and_filled_ones_are_not(clients: &Clients) {
    let store = &*clients.first.store;
    let record = record("1", json!({"name": "Ada", "city": null}));
    put(store, vec![record]).await.remove(0).unwrap();
    let key = key("1");
    let save = Save {
        page: page_with("https://a.org/", json!({"name": "Eve", "city": "Rome"})),
        records: vec![key.clone()],
    };
    store.save(vec![save]).await.remove(0).unwrap();
    let given = store
        .given_values(vec![key, "people/none".into()])
        .await
        .unwrap();
    assert_eq!(Value::from(given[0].clone())["name"], "Ada");
    assert_eq!(given[0].get("city"), None);
    assert!(given[1].is_empty());
}

pub(crate) async fn pages_of_mappings_are_read_with_the_data_for_judging_them(clients: &Clients) {
    let store = &*clients.first.store;
    let with = |url: &str, outcome, mapping: Option<&str>| Page {
        outcome,
        mapping: mapping.map(str::to_owned),
        template: Some("a1".into()),
        alternatives: super::object(json!({"name": 2})),
        ..page_with(url, json!({"name": "Ada"}))
    };
    let pages = [
        with("https://a.org/1", Outcome::Ok, Some("people")),
        with("https://a.org/2", Outcome::Blocked, Some("people")),
        with("https://a.org/3", Outcome::Ok, None),
        with("https://a.org/4", Outcome::Ok, Some("people")),
    ];
    let records: Vec<String> = (0..9).map(|n| format!("people/{n}")).collect();
    for page in pages {
        let records = records.clone();
        store
            .save(vec![Save { page, records }])
            .await
            .remove(0)
            .unwrap();
    }
    let filter = ExportFilter {
        extractions: true,
        ..ExportFilter::default()
    };
    let mut found = Vec::new();
    let mut each = |cursor: Cursor, page: Value| {
        found.push((cursor, page));
        Ok(())
    };
    let end = store
        .changes(&Cursor::start(), &filter, &mut each)
        .await
        .unwrap();
    let urls: Vec<&str> = found
        .iter()
        .filter_map(|(_, page)| page["url"].as_str())
        .collect();
    assert_eq!(urls, ["https://a.org/1", "https://a.org/4"]);
    let (first, page) = &found[0];
    assert_eq!(page["template"], "a1");
    assert_eq!(page["records"], json!(records[..4]));
    assert_eq!(page["fields"], json!({"name": "Ada"}));
    assert_eq!(page["alternatives"], json!({"name": 2}));
    assert_eq!(page.get("links"), None);
    assert!(end.covers(first) && first.covers(first) && !first.covers(&end));
    assert!(first.covers(&Cursor::start()) && !Cursor::start().covers(first));
}
