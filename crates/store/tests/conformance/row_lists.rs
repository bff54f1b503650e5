//! Lists that continue from page to page, and the rows that they no longer hold.

use std::sync::Arc;

use webfill_store::{
    CheckedRows, Doubt, GoneMarking, ListPass, ListState, ListedRow, Listing, Lists, PageLack,
    PageOfList, check_and_mark_missing_rows, row_counts,
};

use super::*;

const FIRST: &str = "https://example.com/list";
const SECOND: &str = "https://example.com/list?page=2";
const OTHER: &str = "https://example.com/other";

/// The time between two readings.
const HOUR_MS: i64 = 60 * 60 * 1_000;

fn listing_of(items: &[&str]) -> Listing {
    let row = |(position, item): (usize, &&str)| ListedRow {
        position: position as u64,
        fields: object(json!({"item": item})),
        links: Vec::new(),
        undecided: Vec::new(),
    };
    Listing {
        dataset: "things".parse().unwrap(),
        key: vec!["item".to_owned()],
        from_record: Vec::new(),
        want: Vec::new(),
        complete: true,
        cut: false,
        rows: items.iter().enumerate().map(row).collect(),
    }
}

/// A page of a list, fetched in the given hour.
fn list_page(url: &str, items: &[&str], next: &[&str], hour: i64) -> Page {
    let listings = vec![listing_of(items)];
    Page {
        started_at_ms: NOON_MS + hour * HOUR_MS,
        row_counts: row_counts(&listings, &[]).0,
        listings,
        list: Some(PageOfList {
            next: next.iter().map(|url| (*url).to_owned()).collect(),
            complete: vec!["things".to_owned()],
            ..PageOfList::default()
        }),
        ..page_with(url, json!({}))
    }
}

fn with_parent(parent: &str, page: Page) -> Page {
    Page {
        parent: Some(parent.to_owned()),
        ..page
    }
}

/// Saves a list of two pages.
async fn save_two_pages(store: &dyn Store, first: &[&str], second: &[&str], hour: i64) {
    let page = list_page(FIRST, first, &[SECOND], hour);
    save(store, page, &[]).await.unwrap();
    let page = with_parent(FIRST, list_page(SECOND, second, &[], hour));
    save(store, page, &[]).await.unwrap();
}

async fn lists(store: &Arc<dyn Store>) -> Vec<ListPass> {
    let mut found = Vec::new();
    let mut lists = Lists::new(store, &crawl_id());
    while let Some(list) = lists.next().await.unwrap() {
        found.push(list);
    }
    found.sort_by_key(|list| list.first.clone());
    found
}

/// Checks all lists for missing rows. Returns the keys of the records that are marked as gone.
async fn mark_missing_rows(store: &Arc<dyn Store>) -> Vec<String> {
    let mut marked = Vec::new();
    for list in lists(store).await {
        for judged in check_and_mark_missing_rows(&**store, &list, GoneMarking::Believed)
            .await
            .unwrap()
        {
            marked.extend(judged.marked);
        }
    }
    marked
}

async fn judge_first_list(store: &Arc<dyn Store>) -> CheckedRows {
    let list = lists(store).await.remove(0);
    check_and_mark_missing_rows(&**store, &list, GoneMarking::Believed)
        .await
        .unwrap()
        .remove(0)
}

async fn all_records(store: &dyn Store) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut each = |row| {
        rows.push(row);
        Ok(())
    };
    let filter = ExportFilter {
        dataset: Some("things".to_owned()),
        ..ExportFilter::default()
    };
    store
        .export(ExportKind::Records, &filter, &mut each)
        .await
        .unwrap();
    rows.sort_by_key(|row| row["_id"].to_string());
    rows
}

async fn ids_of_present_rows(store: &dyn Store) -> Vec<String> {
    let mut things = all_records(store).await;
    things.retain(|row| row["row"]["gone"].is_null());
    let id = |row: &Value| row["record_id"].as_str().unwrap().to_owned();
    things.iter().map(id).collect()
}

pub(crate) async fn a_list_that_was_read_to_its_end_shows_which_rows_are_gone(clients: &Clients) {
    let (store, other) = (&clients.first.store, &clients.second.store);
    save_two_pages(&**store, &["a", "b", "c"], &["d", "e"], 0).await;
    assert_eq!(mark_missing_rows(store).await, [""; 0]);
    save_two_pages(&**store, &["a", "b", "c"], &["d"], 1).await;
    let list = lists(store).await;
    assert_eq!(list.len(), 1, "one list: {list:?}");
    assert_eq!(list[0].state, ListState::Complete);
    assert_eq!(
        (list[0].pages_done, list[0].pages_known, list[0].rows),
        (2, 2, 4)
    );
    let once = judge_first_list(other).await;
    assert_eq!(once.marked, ["things/e"]);
    assert_eq!((once.rows.gone, once.rows.newly_gone), (1, 1));
    assert_eq!((once.rows.seen, once.rows.unseen), (4, 0));
    assert_eq!(mark_missing_rows(store).await, [""; 0], "nothing is new");
    let stored = all_records(&**store).await;
    assert_eq!(stored.len(), 5);
    let gone = json!({"at": "2026-01-01T13:00:00.000Z", "list": FIRST});
    assert_eq!(stored[4]["row"]["gone"], gone);
    assert_eq!(stored[4]["fields"], json!({"item": "e"}), "it stays");
    assert_eq!(stored[3]["row"]["gone"], Value::Null);
    assert_eq!(ids_of_present_rows(&**store).await, ["a", "b", "c", "d"]);
    // The row that was gone is back, on another page.
    save_two_pages(&**store, &["e", "a", "b", "c"], &["d"], 2).await;
    assert_eq!(mark_missing_rows(store).await, [""; 0]);
    assert_eq!(
        ids_of_present_rows(&**store).await,
        ["a", "b", "c", "d", "e"]
    );
    // The row is missing again, together with the second page of the list.
    save(&**store, list_page(FIRST, &["a", "b", "c"], &[], 3), &[])
        .await
        .unwrap();
    assert_eq!(mark_missing_rows(store).await, ["things/d", "things/e"]);
}

pub(crate) async fn an_incomplete_list_marks_no_row_as_gone(clients: &Clients) {
    let store = &clients.first.store;
    save_two_pages(&**store, &["a", "b", "c"], &["d", "e"], 0).await;
    let second = |hour| with_parent(FIRST, list_page(SECOND, &["d"], &[], hour));
    let lacks = |lack| {
        let mut page = second(1);
        page.list.as_mut().unwrap().lacks = Some(lack);
        page
    };
    let failed = Page {
        listings: Vec::new(),
        row_counts: Vec::new(),
        list: None,
        outcome: Outcome::HttpError,
        ..second(1)
    };
    let sent_back = Page {
        outcome: Outcome::Redirected,
        final_url: Some(FIRST.to_owned()),
        ..failed.clone()
    };
    let of_other_mapping = Page {
        mapping: Some("other".to_owned()),
        list: None,
        ..second(1)
    };
    save(
        &**store,
        list_page(FIRST, &["a", "b", "c"], &[SECOND], 1),
        &[],
    )
    .await
    .unwrap();
    for (page, why) in [
        (failed.clone(), "http_error"),
        (of_other_mapping, "another_page"),
        (sent_back, "redirected"),
        (lacks(PageLack::Cut), "cut"),
        (lacks(PageLack::RowsWithoutKey), "rows_without_key"),
        (lacks(PageLack::Empty), "empty"),
        (lacks(PageLack::NotFollowed), "not_followed"),
    ] {
        save(&**store, page, &[]).await.unwrap();
        let list = lists(store).await.remove(0);
        assert_eq!(list.state, ListState::BrokenOff, "{why}");
        assert_eq!((list.pages_done, list.pages_known), (1, 2), "{why}");
        assert_eq!(
            (list.breaches[0].url.as_str(), list.breaches[0].why.as_str()),
            (SECOND, why)
        );
        assert_eq!(mark_missing_rows(store).await, [""; 0], "{why}");
    }
    // One page was not fetched yet.
    let third = "https://example.com/list?page=3";
    save(
        &**store,
        with_parent(FIRST, list_page(SECOND, &["d"], &[third], 1)),
        &[],
    )
    .await
    .unwrap();
    let list = lists(store).await.remove(0);
    assert_eq!(list.state, ListState::Open);
    assert_eq!((list.pages_done, list.pages_known), (2, 3));
    assert!(!list.is_end_known);
    assert_eq!(mark_missing_rows(store).await, [""; 0]);
    // The two pages were fetched in different readings of the list.
    save(
        &**store,
        list_page(FIRST, &["a", "b", "c"], &[SECOND], 3),
        &[],
    )
    .await
    .unwrap();
    save(
        &**store,
        Page {
            delivery: webfill_wire::Delivery::new(1, 1),
            ..second(2)
        },
        &[],
    )
    .await
    .unwrap();
    let list = lists(store).await.remove(0);
    assert_eq!(list.state, ListState::Complete);
    assert_eq!(list.doubt, Some(Doubt::ReadPiecemeal));
    assert_eq!(
        judge_first_list(store).await.doubt,
        Some(Doubt::ReadPiecemeal)
    );
    let confirmed = check_and_mark_missing_rows(&**store, &list, GoneMarking::Confirmed)
        .await
        .unwrap();
    assert_eq!(confirmed[0].doubt, Some(Doubt::ReadPiecemeal));
    assert_eq!(
        ids_of_present_rows(&**store).await,
        ["a", "b", "c", "d", "e"]
    );
    // The first page itself has failed.
    save(
        &**store,
        Page {
            url: FIRST.to_owned(),
            parent: None,
            started_at_ms: NOON_MS + 4 * HOUR_MS,
            ..failed
        },
        &[],
    )
    .await
    .unwrap();
    assert_eq!(mark_missing_rows(store).await, [""; 0]);
}

pub(crate) async fn a_list_without_its_first_page_marks_no_row_as_gone(clients: &Clients) {
    let store = &clients.first.store;
    for hour in [0, 1] {
        let items: &[&str] = if hour == 0 {
            &["a", "b", "c"]
        } else {
            &["a", "b"]
        };
        let mut further = list_page(SECOND, items, &[], hour);
        further.list.as_mut().unwrap().is_further = true;
        save(&**store, further, &[]).await.unwrap();
        // The page that links to this one is not stored.
        let unlinked = with_parent("https://example.com/", list_page(OTHER, items, &[], hour));
        save(&**store, unlinked, &[]).await.unwrap();
    }
    let why: Vec<_> = lists(store).await;
    let why: Vec<&str> = why
        .iter()
        .map(|list| list.breaches[0].why.as_str())
        .collect();
    assert_eq!(why, ["not_the_first_page", "beginning_unknown"]);
    assert_eq!(mark_missing_rows(store).await, [""; 0]);
}

pub(crate) async fn a_row_that_another_list_holds_is_not_gone(clients: &Clients) {
    let store = &clients.first.store;
    let both = async |first: &[&str], other: &[&str], hour| {
        save(&**store, list_page(FIRST, first, &[], hour), &[])
            .await
            .unwrap();
        save(&**store, list_page(OTHER, other, &[], hour), &[])
            .await
            .unwrap();
    };
    both(&["a", "b", "c"], &["c", "d", "e"], 0).await;
    assert_eq!(mark_missing_rows(store).await, [""; 0]);
    // Only the first list is read this time.
    save(&**store, list_page(FIRST, &["a", "b"], &[], 1), &[])
        .await
        .unwrap();
    assert_eq!(mark_missing_rows(store).await, [""; 0]);
    both(&["a", "b"], &["d", "e"], 2).await;
    assert_eq!(mark_missing_rows(store).await, ["things/c"]);
    // A row has moved from one list to the other.
    both(&["a", "b", "d"], &["e"], 3).await;
    assert_eq!(mark_missing_rows(store).await, [""; 0]);
    assert_eq!(ids_of_present_rows(&**store).await, ["a", "b", "d", "e"]);
}

pub(crate) async fn a_row_that_another_crawl_has_seen_since_is_not_gone(clients: &Clients) {
    let (store, other) = (&clients.first.store, &clients.second.store);
    save_two_pages(&**store, &["a", "b", "c"], &["d"], 0).await;
    let of_other = Page {
        crawl_id: "c2".to_owned(),
        ..list_page(FIRST, &["a", "b", "c", "d"], &[], 2)
    };
    save(&**other, of_other, &[]).await.unwrap();
    save_two_pages(&**store, &["a", "b", "c"], &[], 1).await;
    assert_eq!(mark_missing_rows(store).await, [""; 0]);
    assert_eq!(ids_of_present_rows(&**store).await, ["a", "b", "c", "d"]);
}

pub(crate) async fn a_list_that_has_lost_most_rows_is_doubted(clients: &Clients) {
    let store = &clients.first.store;
    save_two_pages(&**store, &["a", "b", "c"], &["d"], 0).await;
    for (hour, first, doubt) in [
        (1, &[][..], Some(Doubt::Empty)),
        (2, &["x", "y", "z", "a"][..], Some(Doubt::MostAreMissing)),
        (3, &["a", "b", "x", "y", "z"][..], None),
    ] {
        save(&**store, list_page(FIRST, first, &[], hour), &[])
            .await
            .unwrap();
        let judged = judge_first_list(store).await;
        assert_eq!(judged.doubt, doubt, "{hour}");
        let gone: &[&str] = match doubt {
            Some(_) => &[],
            None => &["things/c", "things/d"],
        };
        assert_eq!(judged.marked, gone, "{hour}");
    }
    save(&**store, list_page(FIRST, &["a"], &[], 4), &[])
        .await
        .unwrap();
    assert_eq!(
        judge_first_list(store).await.doubt,
        Some(Doubt::MostAreMissing)
    );
    let list = lists(store).await.remove(0);
    let confirmed = check_and_mark_missing_rows(&**store, &list, GoneMarking::Confirmed)
        .await
        .unwrap();
    assert_eq!(confirmed[0].doubt, None);
    let mut gone = confirmed[0].marked.clone();
    gone.sort();
    assert_eq!(gone, ["things/b", "things/x", "things/y", "things/z"]);
    assert_eq!(
        judge_first_list(store).await.doubt,
        None,
        "nothing is left to doubt"
    );
}

pub(crate) async fn a_list_continues_across_a_redirect(clients: &Clients) {
    let store = &clients.first.store;
    let old = "https://example.com/list?p=2";
    save(&**store, list_page(FIRST, &["a"], &[old], 0), &[])
        .await
        .unwrap();
    let redirect = Page {
        final_url: Some(SECOND.to_owned()),
        outcome: Outcome::Redirected,
        mapping: None,
        ..with_parent(FIRST, page(old))
    };
    save(&**store, redirect, &[]).await.unwrap();
    save(
        &**store,
        with_parent(old, list_page(SECOND, &["b"], &[], 0)),
        &[],
    )
    .await
    .unwrap();
    let list = lists(store).await;
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].state, ListState::Complete);
    assert_eq!((list[0].pages_done, list[0].pages_known), (2, 2));
}

pub(crate) async fn rows_without_a_key_make_a_list_incomplete(clients: &Clients) {
    let store = &clients.first.store;
    let mut of_record = list_page(FIRST, &["a"], &[], 0);
    of_record.listings[0].key.push("city".to_owned());
    of_record.listings[0].from_record = vec![("city".to_owned(), "city".to_owned())];
    put(&**store, vec![record("ada", json!({"city": null}))]).await;
    save(&**store, of_record, &["ada"]).await.unwrap();
    let list = lists(store).await.remove(0);
    assert_eq!(list.state, ListState::BrokenOff);
    assert_eq!(list.breaches[0].why, "rows_without_key");
    assert_eq!(list.records, [key("ada")]);
}

pub(crate) async fn many_rows_are_marked_as_gone_at_once(clients: &Clients) {
    let store = &clients.first.store;
    let items: Vec<String> = (0..3_000).map(|item| format!("{item:05}")).collect();
    let all: Vec<&str> = items.iter().map(String::as_str).collect();
    save(&**store, list_page(FIRST, &all, &[], 0), &[])
        .await
        .unwrap();
    save(&**store, list_page(FIRST, &all[..1_700], &[], 1), &[])
        .await
        .unwrap();
    let (first, second) = tokio::join!(
        judge_first_list(store),
        judge_first_list(&clients.second.store)
    );
    let mut gone: Vec<String> = [first.marked, second.marked].concat();
    gone.sort();
    gone.dedup();
    assert_eq!(gone.len(), 1_300);
    assert_eq!(ids_of_present_rows(&**store).await.len(), 1_700);
    assert_eq!(judge_first_list(store).await.rows.newly_gone, 1_300);
}
