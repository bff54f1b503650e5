use std::io;

use serde_json::json;
use webfill_store::{CrawlId, ExportError, ExportFilter, Page, Save};

use super::*;

/// Enough pages for several steps of any backend.
const MANY: usize = 1_000;

async fn save_many(store: &dyn Store) {
    let save = |number| Save {
        page: page(&format!("https://example.com/{number}")),
        records: Vec::new(),
    };
    let saved = store.save((0..MANY).map(save).collect()).await;
    assert!(saved.iter().all(Result::is_ok));
}

pub(crate) async fn an_export_passes_every_page_in_order_of_arrival(clients: &Clients) {
    let store = &*clients.first.store;
    save_many(store).await;
    let pages = export_all(store, ExportKind::Pages).await;
    assert_eq!(pages.len(), MANY);
    for (number, page) in pages.iter().enumerate() {
        assert_eq!(page["url"], format!("https://example.com/{number}"));
    }
}

pub(crate) async fn an_export_has_only_entries_that_match_the_filter(clients: &Clients) {
    let store = &*clients.first.store;
    for (app, crawl_name) in [("a", "1"), ("a", "2"), ("b", "1")] {
        let id = CrawlId::new(app, crawl_name);
        store.put_crawl(crawl(id.clone())).await.unwrap();
        let own = record(&format!("{app}{crawl_name}"), json!({"city": null}));
        store.put_records(&id, vec![own], NOON_MS).await;
        let page = Page {
            app_id: app.to_owned(),
            crawl_id: crawl_name.to_owned(),
            ..page(&format!("https://example.com/{app}"))
        };
        save(store, page, &[]).await.unwrap();
    }
    let filter = |app: Option<&str>, crawl: Option<&str>| ExportFilter {
        app_id: app.map(str::to_owned),
        crawl_id: crawl.map(str::to_owned),
        dataset: None,
        extractions: false,
        checks: false,
        parents: false,
    };
    let expected = [
        (filter(None, None), 3),
        (filter(Some("a"), None), 2),
        (filter(None, Some("1")), 2),
        (filter(Some("a"), Some("2")), 1),
        (filter(Some("b"), Some("2")), 0),
    ];
    for (filter, count) in expected {
        for kind in [ExportKind::Pages, ExportKind::Records] {
            let exported = store.export(kind, &filter, &mut |_| Ok(())).await.unwrap();
            assert_eq!(exported, count, "{kind:?} {filter:?}");
        }
    }
    for (dataset, app, count) in [
        ("people", None, 3),
        ("people", Some("a"), 2),
        ("a11", None, 0),
    ] {
        let filter = ExportFilter {
            dataset: Some(dataset.to_owned()),
            ..filter(app, None)
        };
        let mut each = |_| Ok(());
        let exported = store.export(ExportKind::Records, &filter, &mut each).await;
        assert_eq!(exported.unwrap(), count, "{filter:?}");
    }
}

pub(crate) async fn an_export_stops_when_its_callback_fails(clients: &Clients) {
    let store = &*clients.first.store;
    save_many(store).await;
    let mut taken = 0;
    let mut each = |_| {
        taken += 1;
        match taken {
            3 => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
            _ => Ok(()),
        }
    };
    let filter = ExportFilter::default();
    let ended = store.export(ExportKind::Pages, &filter, &mut each).await;
    match ended {
        Err(ExportError::Output(error)) => assert_eq!(error.kind(), io::ErrorKind::BrokenPipe),
        other => panic!("{other:?}"),
    }
    assert_eq!(taken, 3);
    assert_eq!(export_all(store, ExportKind::Pages).await.len(), MANY);
}
