//! Changes of pages: each is judged once, and they are reported in order.

use std::collections::HashSet;

use serde_json::{Value, json};
use webfill_store::{
    Change, ChangeFilter, ChangeKind, ComparedPosition, Comparison, CrawlId, Cursor, ExportFilter,
    KnownVersions, Page, Store,
};

use super::{Clients, NOON_MS, page_with, save};

fn change(number: u64, url: &str, kind: ChangeKind) -> Change {
    Change {
        number,
        app_id: "app".into(),
        crawl_id: "c1".into(),
        url: url.into(),
        page_id: webfill_store::page_id("app", "c1", url),
        site: "a.org".into(),
        kind,
        at_ms: NOON_MS + number as i64,
        mapping: Some("shop".into()),
        old: Some(json!({"price": 10, "$a.b": null})),
        new: None,
        difference: "~ price: [-10-]{+12+}".into(),
    }
}

fn versions(id: &str, state: &[u8]) -> KnownVersions {
    KnownVersions {
        id: id.into(),
        checked_at_ms: NOON_MS,
        state: state.to_vec(),
    }
}

fn comparison(revision: u64, writer: &str, state: &[u8], changes: Vec<Change>) -> Comparison {
    Comparison {
        to: ComparedPosition {
            revision,
            cursor: Cursor::start(),
            last_number: changes.last().map_or(0, |change| change.number),
        },
        writer: writer.into(),
        versions: vec![versions("app/c1/0", state)],
        changes,
    }
}

async fn read_all_changes(store: &dyn Store) -> Vec<Change> {
    let filter = ChangeFilter::default();
    store.content_changes(&filter, 0, 100).await.unwrap()
}

pub(crate) async fn a_comparison_is_stored_only_directly_after_the_last_one(clients: &Clients) {
    let (one, other) = (&*clients.first.store, &*clients.second.store);
    assert_eq!(
        one.load_compared_position().await.unwrap(),
        ComparedPosition::default()
    );
    assert_eq!(read_all_changes(one).await, []);
    let first = vec![
        change(1, "https://a.org/1", ChangeKind::New),
        change(2, "https://a.org/2", ChangeKind::Gone),
    ];
    let stored = comparison(1, "one", b"1", first.clone());
    assert!(one.put_judgement(stored.clone()).await.unwrap());
    let again = one.put_judgement(stored).await;
    assert!(again.unwrap(), "its writer had no answer");
    let late = comparison(
        1,
        "other",
        b"late",
        vec![change(1, "https://a.org/9", ChangeKind::Back)],
    );
    assert!(!other.put_judgement(late).await.unwrap());
    let ahead = comparison(3, "other", b"ahead", Vec::new());
    assert!(!other.put_judgement(ahead).await.unwrap());
    assert_eq!(read_all_changes(other).await, first);
    let kept = other
        .versions(vec!["app/c1/0".into(), "app/c1/1".into()])
        .await;
    assert_eq!(kept.unwrap(), [versions("app/c1/0", b"1")]);
    let asked = vec!["app/c1/0".into(), "app/c1/1".into()];
    let with = other.with_versions(asked).await.unwrap();
    assert_eq!(with, HashSet::from(["app/c1/0".to_owned()]));
    let next = vec![change(3, "https://a.org/1", ChangeKind::Changed)];
    assert!(
        other
            .put_judgement(comparison(2, "other", b"2", next))
            .await
            .unwrap()
    );
    let late = comparison(1, "one", b"late", Vec::new());
    assert!(!one.put_judgement(late).await.unwrap(), "it is too late");
    let to = one.load_compared_position().await.unwrap();
    assert_eq!((to.revision, to.last_number), (2, 3));
    let kept = one.versions(vec!["app/c1/0".into()]).await.unwrap();
    assert_eq!(kept, [versions("app/c1/0", b"2")]);
}

pub(crate) async fn changes_are_read_by_crawl_time_and_number(clients: &Clients) {
    let store = &*clients.first.store;
    let mut changes: Vec<Change> = (1..=5)
        .map(|number| change(number, "https://a.org/", ChangeKind::Changed))
        .collect();
    changes[1].crawl_id = "c2".into();
    changes[2].app_id = "app2".into();
    let stored = comparison(1, "one", b"", changes.clone());
    assert!(store.put_judgement(stored).await.unwrap());
    let read = async |app: Option<&str>, crawl: Option<&str>, since_ms, after, limit| {
        let filter = ChangeFilter {
            app_id: app.map(str::to_owned),
            crawl_id: crawl.map(str::to_owned),
            since_ms,
        };
        let read = store.content_changes(&filter, after, limit).await.unwrap();
        read.iter().map(|change| change.number).collect::<Vec<_>>()
    };
    assert_eq!(read(None, None, None, 0, 3).await, [1, 2, 3]);
    assert_eq!(read(None, None, None, 3, 9).await, [4, 5]);
    assert_eq!(read(Some("app"), Some("c1"), None, 0, 9).await, [1, 4, 5]);
    assert_eq!(read(None, Some("c2"), None, 0, 9).await, [2]);
    assert_eq!(read(Some("app2"), None, None, 0, 9).await, [3]);
    assert_eq!(read(None, None, Some(NOON_MS + 4), 0, 9).await, [4, 5]);
    let of_app = ChangeFilter {
        app_id: Some("app".into()),
        crawl_id: Some("c1".into()),
        since_ms: Some(NOON_MS + 4),
    };
    let counts = store.count_content_changes(&of_app).await.unwrap();
    assert_eq!(counts, [(ChangeKind::Changed, 2)].into());
}

pub(crate) async fn checked_pages_are_listed_with_their_checks(clients: &Clients) {
    let store = &*clients.first.store;
    let checked = |url: &str, snapshot: Option<&[u8]>| Page {
        snapshot: snapshot.map(<[u8]>::to_vec),
        ..page_with(url, json!({"name": "Ada"}))
    };
    for page in [
        checked("https://a.org/1", Some(b"\x00\xff\x10")),
        checked("https://a.org/2", None),
    ] {
        save(store, page, &[]).await.unwrap();
    }
    let read = async |checks| {
        let filter = ExportFilter {
            checks,
            ..ExportFilter::default()
        };
        let mut pages = Vec::new();
        let mut each = |_, page: Value| {
            pages.push(page);
            Ok(())
        };
        let start = Cursor::start();
        store.changes(&start, &filter, &mut each).await.unwrap();
        pages
    };
    let checks = read(true).await;
    assert_eq!(checks.len(), 1);
    assert_eq!(checks[0]["snapshot"], "AP8Q");
    assert_eq!(checks[0]["fields"], json!({"name": "Ada"}));
    assert!(checks[0]["epoch"].is_u64() && checks[0]["task"].is_u64());
    let pages = read(false).await;
    assert_eq!(pages.len(), 2);
    assert!(pages.iter().all(|page| page.get("snapshot").is_none()));
}

pub(crate) async fn documents_that_are_new_in_a_run_are_counted(clients: &Clients) {
    let store = &*clients.first.store;
    let url = |number: u64| format!("https://a.org/{number}");
    for number in 1..=4 {
        // The last page is not a document.
        let document =
            (number < 4).then(|| json!({"status": "text"}).as_object().cloned().unwrap());
        let page = Page {
            document,
            ..page_with(&url(number), json!({}))
        };
        save(store, page, &[]).await.unwrap();
    }
    let mut changes: Vec<Change> = [1, 2, 3, 4]
        .map(|number| change(number, &url(number), ChangeKind::New))
        .into();
    changes[0].kind = ChangeKind::Changed;
    let stored = comparison(1, "one", b"", changes);
    assert!(store.put_judgement(stored).await.unwrap());
    let count = async |crawl: &str, since_ms, is_first| {
        let crawl = CrawlId::new("app", crawl);
        let counted = store.count_new_documents(&crawl, since_ms, is_first).await;
        counted.unwrap()
    };
    assert_eq!(count("c1", NOON_MS, false).await, 2);
    assert_eq!(count("c1", NOON_MS + 3, false).await, 1, "of this run");
    assert_eq!(count("c2", NOON_MS, false).await, 0);
    assert_eq!(count("c1", NOON_MS, true).await, 3, "all are new");
    assert_eq!(count("c1", NOON_MS + 1, true).await, 0);
    assert_eq!(count("c2", NOON_MS, true).await, 0);
}
