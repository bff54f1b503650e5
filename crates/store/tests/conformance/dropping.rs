//! Dropping old pages, and the errors of readers that come too late.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use webfill_store::{ApplyPage, Cursor, Cutoff, ExportError, Page, Save, page_id};

use super::*;

fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.unwrap().as_millis() as i64
}

/// The next millisecond: later than everything saved before the call, and not later than anything saved afterwards.
fn wait_for_next_ms() -> i64 {
    let before = now_ms();
    while now_ms() <= before {
        std::hint::spin_loop();
    }
    now_ms()
}

fn url(number: usize) -> String {
    format!("https://example.com/{number}")
}

/// Saves pages, fetched now, in one call.
async fn save_batch(store: &dyn Store, numbers: std::ops::Range<usize>) {
    let save = |number| Save {
        page: Page {
            started_at_ms: now_ms(),
            ..page(&url(number))
        },
        records: Vec::new(),
    };
    let saved = store.save(numbers.map(save).collect()).await;
    assert!(saved.iter().all(Result::is_ok), "{saved:?}");
}

/// Drops everything older than a time. Returns how many pages were dropped.
async fn drop_before(store: &dyn Store, at_ms: i64) -> u64 {
    let cutoff = Cutoff {
        pages_ms: Some(at_ms),
        log_ms: Some(at_ms),
        samples_bytes: None,
    };
    let mut pages = 0;
    loop {
        let dropped = store.drop_old(cutoff).await.unwrap();
        pages += dropped.pages;
        if !dropped.has_more {
            return pages;
        }
    }
}

/// The URLs of the pages after a cursor, and the cursor to continue from.
async fn changes(store: &dyn Store, after: &Cursor) -> (Vec<String>, Cursor) {
    let mut urls = Vec::new();
    let mut each = |_, page: Value| {
        urls.push(page["url"].as_str().unwrap().to_owned());
        Ok(())
    };
    let everything = ExportFilter::default();
    let end = store.changes(after, &everything, &mut each).await.unwrap();
    (urls, end)
}

async fn refusal_to_read_changes(store: &dyn Store, after: &Cursor) -> String {
    let everything = ExportFilter::default();
    let mut each = |_, _| Ok(());
    let read = store.changes(after, &everything, &mut each).await;
    read.unwrap_err().to_string()
}

fn reports_dropped_pages(refusal: &str) -> bool {
    refusal.contains("are dropped already") && refusal.contains("begin anew with 0")
}

pub(crate) async fn old_pages_are_dropped_and_everything_else_stays(clients: &Clients) {
    let (first, second) = (&*clients.first.store, &*clients.second.store);
    put(first, vec![record("ada", json!({"city": null}))]).await;
    let filled = page_with(&url(7_777), json!({"city": "London"}));
    save(first, filled, &["ada"]).await.unwrap();
    let record_before = stored_record(first, "ada").await;
    for batch in 0..13 {
        save_batch(first, batch * 100..(batch + 1) * 100).await;
    }
    let between = wait_for_next_ms();
    save_batch(first, 1_300..1_303).await;
    let nothing = Cutoff::from_retention(now_ms(), None, None);
    assert_eq!(first.drop_old(nothing).await.unwrap(), Default::default());
    assert_eq!(drop_before(first, NOON_MS).await, 0, "nothing is as old");
    assert_eq!(drop_before(second, between).await, 1_301);
    let pages = export_all(first, ExportKind::Pages).await;
    let urls: Vec<&str> = pages
        .iter()
        .map(|page| page["url"].as_str().unwrap())
        .collect();
    assert_eq!(urls, [url(1_300), url(1_301), url(1_302)]);
    assert_eq!(stored_record(first, "ada").await, record_before);
    let apply = |number| ApplyPage {
        page_id: page_id("app", "c1", &url(number)),
        record: key("ada"),
    };
    let applies = vec![apply(7), apply(1_300)];
    let applied = first.apply_pages(applies).await.unwrap();
    assert!(applied[0].is_none() && applied[1].is_some());
    save_batch(first, 7..8).await;
    assert_eq!(export_all(first, ExportKind::Pages).await.len(), 4);
}

pub(crate) async fn a_reader_that_is_too_late_gets_an_error_and_others_continue(clients: &Clients) {
    let (first, second) = (&*clients.first.store, &*clients.second.store);
    let (_, before) = changes(first, &Cursor::start()).await;
    save_batch(first, 0..4).await;
    let (_, middle) = changes(first, &Cursor::start()).await;
    save_batch(first, 4..8).await;
    let (_, current) = changes(first, &Cursor::start()).await;
    let between = wait_for_next_ms();
    save_batch(first, 8..10).await;
    assert_eq!(drop_before(second, between).await, 8);
    for late in [&before, &middle] {
        let refusal = refusal_to_read_changes(first, late).await;
        assert!(reports_dropped_pages(&refusal), "{refusal}");
    }
    let kept = vec![url(8), url(9)];
    assert_eq!(changes(first, &current).await.0, kept);
    let (anew, end) = changes(first, &Cursor::start()).await;
    assert_eq!(anew, kept);
    // Even if all pages are dropped, readers that have read everything can continue.
    let between = wait_for_next_ms();
    assert_eq!(drop_before(first, between).await, 2);
    assert_eq!(drop_before(first, between).await, 0);
    assert!(reports_dropped_pages(
        &refusal_to_read_changes(first, &current).await
    ));
    save_batch(second, 3..4).await;
    assert_eq!(changes(first, &end).await.0, [url(3)]);
    assert_eq!(changes(first, &Cursor::start()).await.0, [url(3)]);
}

pub(crate) async fn a_reader_of_pages_dropped_meanwhile_gets_an_error(clients: &Clients) {
    let store = &*clients.first.store;
    for batch in 0..100 {
        save_batch(store, batch * 10..(batch + 1) * 10).await;
    }
    let between = wait_for_next_ms();
    let mut taken = Vec::new();
    let mut each = |_, page: Value| {
        if taken.is_empty() {
            drop_on_other_thread(&clients.second.store, between);
        }
        taken.push(page["url"].as_str().unwrap().to_owned());
        Ok(())
    };
    let everything = ExportFilter::default();
    let start = Cursor::start();
    let read = store.changes(&start, &everything, &mut each);
    let Err(ExportError::Store(error)) = read.await else {
        panic!("it was read to the end");
    };
    assert!(reports_dropped_pages(&error.to_string()), "{error}");
    assert!(taken.len() < 1_000, "{}", taken.len());
    let first_ones = (0..taken.len()).map(url);
    let (taken, first_ones) = (BTreeSet::from_iter(taken), first_ones.collect());
    assert_eq!(taken, first_ones, "there is no hole in what was read");
}

/// Drops old pages on another thread, while this one waits.
fn drop_on_other_thread(store: &Arc<dyn Store>, at_ms: i64) {
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(drop_before(&**store, at_ms))
        });
        assert_eq!(dropping.join().unwrap(), 1_000);
    });
}

/// A reader that always reads before pages are dropped sees each page.
pub(crate) async fn a_reader_misses_nothing_that_is_kept_while_old_pages_are_dropped(
    clients: &Clients,
) {
    const TURNS: usize = 30;
    let (first, second) = (&*clients.first.store, &*clients.second.store);
    let mut cursor = Cursor::start();
    let mut seen = Vec::new();
    for turn in 0..TURNS {
        save_batch(first, turn * 5..turn * 5 + 5).await;
        let read_to = wait_for_next_ms();
        let (urls, end) = changes(second, &cursor).await;
        seen.extend(urls);
        cursor = end.to_string().parse().unwrap();
        let saving = save_batch(first, 1_000 + turn..1_001 + turn);
        let dropping = drop_before(second, read_to);
        tokio::join!(saving, dropping);
    }
    let (urls, _) = changes(second, &cursor).await;
    seen.extend(urls);
    seen.sort();
    let mut expected: Vec<String> = (0..TURNS * 5)
        .chain(1_000..1_000 + TURNS)
        .map(url)
        .collect();
    expected.sort();
    assert_eq!(seen, expected);
}
