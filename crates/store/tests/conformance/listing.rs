//! Browsing everything but the pages of a store: lists that continue from a place, with and without the indexes.

use std::collections::BTreeSet;

use webfill_store::{
    Browse, Change, ChangeKind, ChangeListFilter, ComparedPosition, Comparison, Count, CrawlFilter,
    Cursor, DatasetRow, RecordCondition, RecordFilter, RecordRow, SitePhase, SiteState, page_id,
};

use super::browsing::{OUTCOMES, save_pages, url};
use super::*;

/// Reads a list to its end, a few rows at a time. Each place is passed on as text, as a web page does.
macro_rules! walk {
    ($limit:expr, |$from:ident, $few:ident| $read:expr) => {{
        let $few: u32 = $limit;
        let (mut rows, mut text) = (Vec::new(), None::<String>);
        loop {
            let place: Option<webfill_store::Place> = text.map(|text| text.parse().unwrap());
            let $from = place.as_ref();
            let page: webfill_store::ListPage<_> = $read.await.unwrap();
            assert!(page.rows.len() <= $few as usize);
            assert!(page.examined >= page.rows.len() as u64);
            rows.extend(page.rows);
            match page.next {
                Some(next) => text = Some(next.to_string()),
                None => break rows,
            }
        }
    }};
}
pub(crate) use walk;

async fn records(browse: &dyn Browse, filter: &RecordFilter) -> Vec<RecordRow> {
    walk!(7, |from, few| browse.records(filter, from, few))
}

/// Puts records of three datasets whose names have the same beginning. Every second record of `people` is resolved.
pub(super) async fn put_records(store: &dyn Store) -> Vec<String> {
    store.put_crawl(crawl(crawl_id())).await.unwrap();
    let other = CrawlId::new("app2", "c9");
    store.put_crawl(crawl(other.clone())).await.unwrap();
    let mut ids: Vec<String> = (0..20).map(|number| format!("n{number:02}")).collect();
    ids.extend(HOSTILE.map(String::from));
    for (number, id) in ids.iter().enumerate() {
        let value = (number % 2 == 0).then_some("known");
        let one = Record {
            want: vec!["name".into()],
            ..record(id, json!({"name": value, "n": number}))
        };
        let at_ms = NOON_MS + number as i64 / 3;
        let put = store.put_records(&crawl_id(), vec![one], at_ms).await;
        assert!(put.iter().all(Result::is_ok), "{put:?}");
    }
    for dataset in ["peop", "people0"] {
        let one = Record {
            dataset: dataset.parse().unwrap(),
            ..record("n01", json!({"name": null}))
        };
        let put = store.put_records(&other, vec![one], NOON_MS).await;
        assert!(put.iter().all(Result::is_ok), "{put:?}");
    }
    ids
}

fn ids_of(rows: &[RecordRow]) -> Vec<&str> {
    rows.iter().map(|row| row.id.as_str()).collect()
}

pub(crate) async fn records_are_listed_by_dataset_state_and_id(clients: &Clients) {
    let ids = put_records(&*clients.first.store).await;
    let browse = &*clients.second.browse;
    let every = |which: usize| ids.iter().skip(which).step_by(2).map(String::as_str);
    let of_state = |state| RecordFilter {
        dataset: Some("people".into()),
        state,
        ..RecordFilter::default()
    };
    for is_prepared in [false, true] {
        if is_prepared {
            browse.create_missing_indexes().await.unwrap();
        }
        let all = records(browse, &of_state(None)).await;
        assert!(all.is_sorted_by(|one, next| one.key < next.key));
        assert_eq!(all.len(), ids.len());
        let open = records(browse, &of_state(Some(RecordState::Open))).await;
        assert!(open.is_sorted_by(|one, next| one.id < next.id));
        assert_eq!(BTreeSet::from_iter(ids_of(&open)), every(1).collect());
        assert_eq!(open[0].missing, ["name"]);
        let resolved = records(browse, &of_state(Some(RecordState::Resolved))).await;
        assert_eq!(resolved.len(), every(0).count());
        assert_eq!(BTreeSet::from_iter(ids_of(&resolved)), every(0).collect());
        if is_prepared {
            assert!(resolved.is_sorted_by(|one, next| one.resolved_at_ms >= next.resolved_at_ms));
        }
        for state in [None, Some(RecordState::Open), Some(RecordState::Resolved)] {
            let begins = RecordFilter {
                id_prefix: Some("n1".into()),
                ..of_state(state)
            };
            let listed = records(browse, &begins).await;
            let expected: Vec<String> = (10..20)
                .filter(|number| match state {
                    None => true,
                    Some(RecordState::Open) => number % 2 == 1,
                    Some(RecordState::Resolved) => number % 2 == 0,
                })
                .map(|number| format!("n{number}"))
                .collect();
            assert_eq!(ids_of(&listed), expected, "{state:?}");
        }
        let everywhere = records(browse, &RecordFilter::default()).await;
        assert_eq!(everywhere.len(), ids.len() + 2);
        let of_app2 = RecordFilter {
            apps: Some(vec!["app2".into()]),
            ..RecordFilter::default()
        };
        let keys = records(browse, &of_app2).await;
        let keys: Vec<&str> = keys.iter().map(|row| row.key.as_str()).collect();
        assert_eq!(keys, ["peop/n01", "people0/n01"]);
    }
}

pub(crate) async fn datasets_are_listed_with_counts_up_to_a_limit(clients: &Clients) {
    let ids = put_records(&*clients.first.store).await;
    let browse = &*clients.second.browse;
    browse.create_missing_indexes().await.unwrap();
    let count = |counted, is_more| Count { counted, is_more };
    let row = |name: &str, total, open| DatasetRow {
        name: name.into(),
        total,
        open,
    };
    let listed = walk!(2, |from, few| browse.datasets(10, from, few));
    let one = count(1, false);
    let expected = [
        row("peop", one, one),
        row("people", count(10, true), count(10, true)),
        row("people0", one, one),
    ];
    assert_eq!(listed, expected);
    let listed = walk!(9, |from, few| browse.datasets(1_000, from, few));
    let open = ids.len() as u64 / 2;
    let all = row("people", count(ids.len() as u64, false), count(open, false));
    assert_eq!(listed[1], all);
}

pub(crate) async fn a_record_is_shown_with_all_that_is_known_of_it(clients: &Clients) {
    let store = &*clients.first.store;
    let browse = &*clients.second.browse;
    let long = "x".repeat(5_000);
    put(store, vec![record("1", json!({"name": null, "b": 1}))]).await;
    put(store, vec![record("2", json!({"long": long}))]).await;
    let page = page_with("https://example.com/1", json!({"name": "Ada"}));
    save(store, page, &["1"]).await.unwrap();
    let whole = browse.record(&key("1")).await.unwrap().unwrap();
    assert_eq!(whole.crawls, [crawl_id()]);
    assert_eq!(whole.document, stored_record(store, "1").await);
    assert_eq!(whole.document["sources"]["name"]["mapping"], "people");
    assert_eq!(browse.record(&key("3")).await.unwrap(), None);
    let listed = records(browse, &RecordFilter::default()).await;
    let fields = json!({"name": "Ada", "b": 1});
    assert_eq!(listed[0].fields.clone().map(Value::Object), Some(fields));
    assert_eq!(listed[1].fields, None, "it is too long for a list");
}

pub(crate) async fn whole_records_are_listed_by_condition_and_from_an_id(clients: &Clients) {
    let ids = put_records(&*clients.first.store).await;
    let browse = &*clients.second.browse;
    let every_third = RecordCondition::new(|document| {
        let number = document["fields"]["n"].as_u64();
        number.is_some_and(|number| number.is_multiple_of(3))
    });
    for is_prepared in [false, true] {
        if is_prepared {
            browse.create_missing_indexes().await.unwrap();
        }
        for state in [None, Some(RecordState::Open), Some(RecordState::Resolved)] {
            let filter = RecordFilter {
                dataset: Some("people".into()),
                state,
                ..RecordFilter::default()
            };
            let listed = walk!(3, |from, few| {
                browse.whole_records(&filter, &every_third, from, few)
            });
            let expected = ids.iter().enumerate().filter(|(number, _)| {
                let is_of_state = match state {
                    None => true,
                    Some(RecordState::Resolved) => number % 2 == 0,
                    Some(RecordState::Open) => number % 2 == 1,
                };
                number % 3 == 0 && is_of_state
            });
            let expected: BTreeSet<&str> = expected.map(|(_, id)| id.as_str()).collect();
            let found: BTreeSet<&str> = listed.iter().map(|one| one.id.as_str()).collect();
            assert_eq!((found, listed.len()), (expected.clone(), expected.len()));
            for one in &listed {
                assert_eq!(one.record.document["record_id"], json!(one.id));
                assert_eq!(one.record.crawls, [crawl_id()]);
            }
            if state != Some(RecordState::Resolved) {
                let filter = RecordFilter {
                    from_id: Some("n07".into()),
                    ..filter
                };
                let all = RecordCondition::default();
                let listed = walk!(4, |from, few| {
                    browse.whole_records(&filter, &all, from, few)
                });
                let found: Vec<&str> = listed.iter().map(|one| one.id.as_str()).collect();
                assert_eq!(found[0], "n07");
                assert!(found.iter().all(|id| *id >= "n07"), "{found:?}");
            }
        }
        let dataset = browse.dataset("people", 5).await.unwrap();
        let more = Count {
            counted: 5,
            is_more: true,
        };
        assert_eq!(dataset.total, more);
    }
}

pub(crate) async fn the_results_of_pages_are_found_by_their_keys(clients: &Clients) {
    let store = &*clients.first.store;
    let browse = &*clients.second.browse;
    let long = "x".repeat(5_000);
    for (url, fields) in [
        ("https://example.com/1", json!({"name": "Ada"})),
        ("https://example.com/2", json!({"long": long})),
    ] {
        save(store, page_with(url, fields), &[]).await.unwrap();
    }
    let ids =
        [1, 2, 3].map(|number| page_id("app", "c1", &format!("https://example.com/{number}")));
    let found = browse.page_results(&ids).await.unwrap();
    let of = |id: &String| found.iter().find(|page| page.id == *id);
    let first = of(&ids[0]).unwrap();
    assert_eq!(first.url, "https://example.com/1");
    assert_eq!(first.outcome, Outcome::Ok);
    assert_eq!(json!(first.fields), json!({"name": "Ada"}));
    assert_eq!(of(&ids[1]).unwrap().fields, None, "they are too long");
    assert_eq!(of(&ids[2]), None);
    assert!(browse.page_results(&[]).await.unwrap().is_empty());
}

pub(crate) async fn crawls_are_listed_the_last_first(clients: &Clients) {
    let store = &*clients.first.store;
    let browse = &*clients.second.browse;
    for number in 0..20_i64 {
        let app = if number % 2 == 0 { "app" } else { "app2" };
        let one = Crawl {
            // Some crawls begin at the same time.
            started_at_ms: NOON_MS + number / 3,
            state: if number < 9 {
                CrawlState::Finished
            } else {
                CrawlState::Running
            },
            counts: object(json!({"pages": number})),
            ..crawl(CrawlId::new(app, format!("c{number:02}")))
        };
        store.put_crawl(one).await.unwrap();
    }
    for is_prepared in [false, true] {
        if is_prepared {
            browse.create_missing_indexes().await.unwrap();
        }
        let all = CrawlFilter::default();
        let listed = walk!(3, |from, few| browse.crawls(&all, from, few));
        assert_eq!(listed.len(), 20);
        assert!(listed.is_sorted_by(|one, next| one.started_at_ms >= next.started_at_ms));
        assert_eq!(listed[19].counts["pages"].as_i64().unwrap() / 3, 0);
        let of_app = CrawlFilter {
            apps: Some(vec!["app2".into()]),
            state: Some(CrawlState::Finished),
        };
        let listed = walk!(3, |from, few| browse.crawls(&of_app, from, few));
        let ids: BTreeSet<&str> = listed.iter().map(|one| one.id.crawl_id.as_str()).collect();
        assert_eq!(ids, BTreeSet::from(["c01", "c03", "c05", "c07"]));
    }
}

pub(crate) async fn pages_and_records_of_a_crawl_are_counted_up_to_a_limit(clients: &Clients) {
    put_records(&*clients.first.store).await;
    save_pages(&*clients.first.store).await;
    let browse = &*clients.second.browse;
    browse.create_missing_indexes().await.unwrap();
    let counts = browse.crawl_counts(&crawl_id(), 1_000).await.unwrap();
    let ten = Count {
        counted: 10,
        is_more: false,
    };
    let mut expected = OUTCOMES.map(|outcome| (outcome, ten)).to_vec();
    expected.sort_by_key(|(outcome, _)| *outcome);
    assert_eq!(counts.outcomes, expected);
    assert_eq!((counts.records.counted, counts.resolved.counted), (33, 17));
    let counts = browse.crawl_counts(&crawl_id(), 4).await.unwrap();
    let four = Count {
        counted: 4,
        is_more: true,
    };
    assert!(counts.outcomes.iter().all(|(_, count)| *count == four));
    let unknown = CrawlId::new("app", "none");
    let none = browse.crawl_counts(&unknown, 4).await.unwrap();
    assert_eq!(none, Default::default());
}

fn change(number: u64) -> Change {
    let app_id = if number.is_multiple_of(2) {
        "app"
    } else {
        "app2"
    };
    Change {
        number,
        app_id: app_id.into(),
        crawl_id: "c1".into(),
        url: url(number as usize),
        page_id: page_id(app_id, "c1", &url(number as usize % 5)),
        site: format!("s{}.example", number % 3),
        kind: ChangeKind::ALL[number as usize % 4],
        at_ms: NOON_MS + number as i64,
        mapping: None,
        old: None,
        new: Some(json!({"price": 12})),
        difference: "+ price: 12".into(),
    }
}

pub(crate) async fn changes_are_listed_the_last_first(clients: &Clients) {
    let judgement = Comparison {
        to: ComparedPosition {
            revision: 1,
            cursor: Cursor::start(),
            last_number: 60,
        },
        writer: "one".into(),
        versions: Vec::new(),
        changes: (1..=60).map(change).collect(),
    };
    assert!(clients.first.store.put_judgement(judgement).await.unwrap());
    let browse = &*clients.second.browse;
    let none = ChangeListFilter::default();
    let of_crawl = ChangeListFilter {
        crawl: Some(crawl_id()),
        ..none.clone()
    };
    for (filter, is_taken) in [
        (none.clone(), (|_| true) as fn(u64) -> bool),
        (of_crawl.clone(), |number| number % 2 == 0),
        (
            ChangeListFilter {
                kind: Some(ChangeKind::New),
                site: Some("s0.example".into()),
                ..of_crawl.clone()
            },
            |number| number % 12 == 0,
        ),
        (
            ChangeListFilter {
                page: Some(page_id("app", "c1", &url(1))),
                ..of_crawl
            },
            |number| number % 10 == 6,
        ),
        (
            ChangeListFilter {
                apps: Some(vec!["app2".into()]),
                ..none
            },
            |number| number % 2 == 1,
        ),
    ] {
        let listed = walk!(7, |from, few| browse.changes(&filter, from, few));
        let expected: Vec<Change> = (1..=60)
            .rev()
            .filter(|number| is_taken(*number))
            .map(change)
            .collect();
        assert_eq!(listed, expected, "{filter:?}");
    }
}

pub(crate) async fn sites_in_trouble_are_listed_by_name(clients: &Clients) {
    let state = |number: i64| SiteState {
        site: format!("s{number:02}.example"),
        phase: SitePhase::BackingOff,
        reason: String::from("robots"),
        since_ms: NOON_MS,
        until_ms: None,
        url: String::from("http://example.com/robots.txt"),
        status_code: Some(503),
        sign: String::from("robots.txt answered 503"),
        updated_at_ms: NOON_MS + number,
    };
    let states: Vec<SiteState> = (0..20).map(state).collect();
    let store = &clients.first.store;
    store.put_site_states(states.clone()).await.unwrap();
    let browse = &*clients.second.browse;
    assert_eq!(walk!(7, |from, few| browse.site_states(from, few)), states);
}
