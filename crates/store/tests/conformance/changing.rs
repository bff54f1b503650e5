//! Reading pages by key, and in the order they became visible.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use webfill_store::{Cursor, ExportError, Page, Save, page_id};

use webfill_wire::Delivery;

use super::*;

/// The pages that were saved after a cursor, and the cursor to continue from.
async fn changes(
    store: &dyn Store,
    after: &Cursor,
    filter: &ExportFilter,
) -> (Vec<(Cursor, Value)>, Cursor) {
    let mut pages = Vec::new();
    let mut each = |cursor, page| {
        pages.push((cursor, page));
        Ok(())
    };
    let end = store.changes(after, filter, &mut each).await.unwrap();
    (pages, end)
}

fn url(number: usize) -> String {
    format!("https://example.com/{number}")
}

fn urls(pages: &[(Cursor, Value)]) -> Vec<&str> {
    pages
        .iter()
        .map(|(_, page)| page["url"].as_str().unwrap())
        .collect()
}

async fn save_batch(store: &dyn Store, numbers: impl Iterator<Item = usize>) {
    let save = |number| Save {
        page: page(&url(number)),
        records: Vec::new(),
    };
    let saved = store.save(numbers.map(save).collect()).await;
    assert!(saved.iter().all(Result::is_ok), "{saved:?}");
}

fn filter_for_everything() -> ExportFilter {
    ExportFilter::default()
}

pub(crate) async fn pages_are_found_by_their_keys(clients: &Clients) {
    let store = &*clients.first.store;
    save_batch(store, 0..10).await;
    let ids = [3, 77, 5].map(|number| page_id("app", "c1", &url(number)));
    let mut found = BTreeSet::new();
    let mut each = |page: Value| {
        found.insert(page["url"].to_string());
        assert_eq!(page["status_code"], 200);
        Ok(())
    };
    assert_eq!(store.pages(ids.to_vec(), &mut each).await.unwrap(), 2);
    let expected = [3, 5].map(|number| json!(url(number)).to_string());
    assert_eq!(found, BTreeSet::from(expected));
    assert_eq!(store.pages(Vec::new(), &mut |_| Ok(())).await.unwrap(), 0);
}

pub(crate) async fn many_large_pages_are_found_one_after_another(clients: &Clients) {
    let store = &*clients.first.store;
    let body: Arc<str> = "x".repeat(3 << 20).into();
    for number in 0..5 {
        let page = Page {
            body: Some(Arc::clone(&body)),
            ..page(&url(number))
        };
        save(store, page, &[]).await.unwrap();
    }
    let ids = (0..5)
        .map(|number| page_id("app", "c1", &url(number)))
        .collect();
    let mut bytes = 0;
    let mut each = |page: Value| {
        bytes += page["body"].as_str().unwrap().len();
        Ok(())
    };
    assert_eq!(store.pages(ids, &mut each).await.unwrap(), 5);
    assert_eq!(bytes, 5 * body.len());
    let (pages, _) = changes(store, &Cursor::start(), &filter_for_everything()).await;
    assert_eq!(pages.len(), 5);
}

pub(crate) async fn changes_are_read_in_the_order_of_their_saves(clients: &Clients) {
    let (first, second) = (&*clients.first.store, &*clients.second.store);
    let (nothing, start) = changes(first, &Cursor::start(), &filter_for_everything()).await;
    assert!(nothing.is_empty());
    for number in 0..20 {
        let store = if number % 2 == 0 { first } else { second };
        save_batch(store, number..number + 1).await;
    }
    let (pages, end) = changes(second, &start, &filter_for_everything()).await;
    let expected: Vec<String> = (0..20).map(url).collect();
    assert_eq!(urls(&pages), expected);
    let (nothing, still) = changes(first, &end, &filter_for_everything()).await;
    assert!(nothing.is_empty());
    assert_eq!(still, end);
}

/// A reader can continue after every page, even within a batch of pages that were saved together.
pub(crate) async fn a_cursor_continues_after_its_page(clients: &Clients) {
    let store = &*clients.first.store;
    save_batch(store, 0..7).await;
    save_batch(store, 7..8).await;
    save_batch(store, 8..20).await;
    let (pages, end) = changes(store, &Cursor::start(), &filter_for_everything()).await;
    let all: BTreeSet<&str> = urls(&pages).into_iter().collect();
    assert_eq!((pages.len(), all.len()), (20, 20));
    for (number, (cursor, _)) in pages.iter().enumerate() {
        let cursor = cursor.to_string().parse().unwrap();
        let (rest, backoff_end) =
            changes(&*clients.second.store, &cursor, &filter_for_everything()).await;
        assert_eq!(urls(&rest), urls(&pages[number + 1..]));
        assert_eq!(backoff_end, end);
    }
}

pub(crate) async fn only_changes_that_match_the_filter_are_read(clients: &Clients) {
    let store = &*clients.first.store;
    let mut batch = Vec::new();
    for (app, crawl) in [("a", "1"), ("a", "2"), ("b", "1"), ("a", "10")] {
        for number in 0..3 {
            let page = Page {
                app_id: String::from(app),
                crawl_id: String::from(crawl),
                ..page(&format!("{}/{app}", url(number)))
            };
            batch.push(Save {
                page,
                records: Vec::new(),
            });
        }
    }
    let saved = store.save(batch).await;
    assert!(saved.iter().all(Result::is_ok));
    let (_, end) = changes(store, &Cursor::start(), &filter_for_everything()).await;
    for (app, crawl, count) in [
        (Some("a"), None, 9),
        (None, Some("1"), 6),
        (Some("a"), Some("1"), 3),
        (Some("b"), Some("2"), 0),
    ] {
        let filter = ExportFilter {
            app_id: app.map(str::to_owned),
            crawl_id: crawl.map(str::to_owned),
            ..filter_for_everything()
        };
        let (pages, filtered_end) = changes(store, &Cursor::start(), &filter).await;
        assert_eq!(pages.len(), count, "{filter:?}");
        assert_eq!(filtered_end, end, "what others saved is passed over");
        for (number, (cursor, _)) in pages.iter().enumerate() {
            let (rest, _) = changes(store, cursor, &filter).await;
            assert_eq!(rest.len(), count - number - 1);
        }
    }
}

pub(crate) async fn a_page_that_was_saved_again_is_read_again(clients: &Clients) {
    let store = &*clients.first.store;
    save_batch(store, 0..3).await;
    let (_, end) = changes(store, &Cursor::start(), &filter_for_everything()).await;
    let again = Page {
        started_at_ms: NOON_MS + 1,
        delivery: Delivery::new(0, 2),
        ..page(&url(1))
    };
    save(store, again, &[]).await.unwrap();
    let (pages, _) = changes(store, &end, &filter_for_everything()).await;
    assert_eq!(urls(&pages), [url(1)]);
    assert_eq!(pages[0].1["attempts"], 2);
}

pub(crate) async fn a_stale_save_hides_no_page(clients: &Clients) {
    let store = &*clients.first.store;
    save_batch(store, 0..3).await;
    let stale = Page {
        started_at_ms: NOON_MS + 1,
        delivery: Delivery::new(0, 0),
        ..page(&url(1))
    };
    save(store, stale, &[]).await.unwrap();
    let (pages, _) = changes(store, &Cursor::start(), &filter_for_everything()).await;
    let seen: BTreeSet<&str> = urls(&pages).into_iter().collect();
    assert_eq!(seen.len(), 3);
    assert!(pages.iter().all(|(_, page)| page["attempts"] == 1));
}

pub(crate) async fn a_cursor_of_another_store_is_refused(clients: &Clients) {
    let store = &*clients.first.store;
    save_batch(store, 0..1).await;
    let (_, end) = changes(store, &Cursor::start(), &filter_for_everything()).await;
    let end_text = end.to_string();
    let (name, _) = end_text.split_once('-').unwrap();
    let refused = [
        (String::from("abcdef-1"), "another store"),
        (format!("{name}-1000"), "ahead"),
    ];
    for (cursor, says) in refused {
        let cursor = cursor.parse().unwrap();
        let everything = filter_for_everything();
        let mut taken = |_, _| Ok(());
        let read = store.changes(&cursor, &everything, &mut taken);
        let refusal = read.await.err().unwrap().to_string();
        assert!(refusal.contains(says), "{refusal}");
    }
    assert_eq!(
        changes(store, &end, &filter_for_everything()).await.1,
        end,
        "the reading continues behind the end"
    );
}

pub(crate) async fn a_failing_callback_ends_the_reading(clients: &Clients) {
    let store = &*clients.first.store;
    save_batch(store, 0..600).await;
    let mut taken = 0;
    let mut each = |_, _| {
        taken += 1;
        match taken {
            3 => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
            _ => Ok(()),
        }
    };
    let start = Cursor::start();
    let ended = store
        .changes(&start, &filter_for_everything(), &mut each)
        .await;
    assert!(matches!(ended, Err(ExportError::Output(_))));
    assert_eq!(taken, 3);
    let (pages, _) = changes(store, &Cursor::start(), &filter_for_everything()).await;
    assert_eq!(pages.len(), 600);
}

/// Readers continue from cursors that were stored as text, as restarted ones do.
pub(crate) async fn a_reader_misses_nothing_while_several_save(clients: &Clients) {
    const WRITERS: usize = 6;
    const BATCHES: usize = 40;
    const BATCH: usize = 5;
    let done = Arc::new(AtomicBool::new(false));
    let write = |writer: usize| {
        let stores = [&clients.first.store, &clients.second.store];
        let store = Arc::clone(stores[writer % 2]);
        tokio::spawn(async move {
            for batch in 0..BATCHES {
                let first = (writer * BATCHES + batch) * BATCH;
                // Each batch also saves the first page of another writer's batch.
                let before = (first + BATCHES * BATCH) % (WRITERS * BATCHES * BATCH);
                save_batch(&*store, (first..first + BATCH).chain([before])).await;
            }
        })
    };
    let writers: Vec<_> = (0..WRITERS).map(write).collect();
    let ended = Arc::clone(&done);
    let reader = {
        let stores = [clients.first.store.clone(), clients.second.store.clone()];
        tokio::spawn(async move {
            let mut cursor = String::from("0");
            let mut seen = BTreeSet::new();
            for turn in 0.. {
                let is_last = ended.load(Ordering::SeqCst);
                let mut taken = 0;
                let mut reached = cursor.clone();
                let mut each = |behind: Cursor, page: Value| {
                    taken += 1;
                    if taken > 23 {
                        return Err(io::Error::other("died"));
                    }
                    seen.insert(page["url"].as_str().unwrap().to_owned());
                    reached = behind.to_string();
                    Ok(())
                };
                let after = cursor.parse().unwrap();
                let store = &stores[turn % 2];
                match store
                    .changes(&after, &filter_for_everything(), &mut each)
                    .await
                {
                    Ok(_) if is_last => return seen,
                    Ok(end) => cursor = end.to_string(),
                    Err(ExportError::Output(_)) => cursor = reached,
                    Err(error) => panic!("{error}"),
                }
            }
            unreachable!("turns are counted for ever")
        })
    };
    for writer in writers {
        writer.await.unwrap();
    }
    done.store(true, Ordering::SeqCst);
    let seen = reader.await.unwrap();
    let expected: BTreeSet<String> = (0..WRITERS * BATCHES * BATCH).map(url).collect();
    assert_eq!(seen.len(), expected.len());
    assert_eq!(seen, expected);
}
