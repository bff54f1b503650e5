use serde_json::json;
use webfill_store::{ExportKind, MAX_ENTRY_BYTES, Page, Save, page_id};
use webfill_wire::{Delivery, FailedAttempt, Outcome};

use super::*;

pub(crate) async fn a_page_comes_back_as_it_went_in(clients: &Clients) {
    let store = &*clients.first.store;
    let page = Page {
        final_url: Some(String::from("https://example.com/end")),
        depth: 3,
        parent: Some(String::from("https://example.com/")),
        outcome: Outcome::HttpError,
        status_code: Some(999),
        links: vec![String::from("https://example.com/b")],
        content_hash: Some(String::from("abc")),
        bytes: 1 << 40,
        delivery: Delivery::new(0, 2),
        attrs: Some(json!({"deep": [1, 2.5, {"x": null}]})),
        failed_attempts: vec![FailedAttempt {
            ended_at_ms: NOON_MS - 1_000,
            outcome: Outcome::HttpError,
            status_code: Some(503),
        }],
        mapping_version: Some(String::from("hash")),
        template: Some(String::from("0f")),
        headers: Some(object(json!({"Set-Cookie": ["a=1", "b=2"], "$x.y": []}))),
        body: Some("<p>Ada \u{1F980}</p>".into()),
        document: Some(object(json!({"status": "text", "type": "pdf", "pages": 2}))),
        ..page_with(
            "https://example.com/a",
            json!({"name": "Ada", "tags": ["x", "y"], "n": 3}),
        )
    };
    save(store, page, &[]).await.unwrap();
    let expected = json!({
        "_id": page_id("app", "c1", "https://example.com/a"),
        "app_id": "app", "crawl_id": "c1",
        "url": "https://example.com/a", "final_url": "https://example.com/end",
        "site": "example.com", "depth": 3, "parent": "https://example.com/",
        "outcome": "http_error", "status_code": 999, "mapping": "people", "mapping_version": "hash",
        "template": "0f", "records": [], "alternatives": null, "rows": null, "row_counts": null,
        "fields": {"name": "Ada", "tags": ["x", "y"], "n": 3},
        "links": ["https://example.com/b"],
        "content_type": "text/html", "bytes": 1_u64 << 40, "content_hash": "abc",
        "started_at": NOON, "elapsed_ms": 250, "attempts": 2, "worker": "host/0",
        "attrs": {"deep": [1, 2.5, {"x": null}]},
        "tries": [
            {"ended_at": "2026-01-01T11:59:59.000Z", "outcome": "http_error", "status_code": 503},
        ],
        "headers": {"Set-Cookie": ["a=1", "b=2"], "$x.y": []}, "body": "<p>Ada \u{1F980}</p>",
        "document": {"status": "text", "type": "pdf", "pages": 2},
    });
    assert_eq!(only_page(store).await, expected);
}

pub(crate) async fn members_that_a_page_lacks_are_null(clients: &Clients) {
    let store = &*clients.first.store;
    save(store, page("https://example.com/a"), &[])
        .await
        .unwrap();
    let kept = only_page(store).await;
    assert_eq!(kept["tries"], json!([]));
    for name in [
        "headers",
        "body",
        "attrs",
        "final_url",
        "mapping",
        "mapping_version",
        "template",
        "document",
        "alternatives",
        "rows",
        "row_counts",
    ] {
        assert_eq!(kept.get(name), Some(&Value::Null), "{name}");
    }
}

pub(crate) async fn no_number_loses_digits(clients: &Clients) {
    let store = &*clients.first.store;
    let numbers: Value = serde_json::from_str(
        r#"[0, -1, 5, 5.0, 1.10, 0.1, 9007199254740993, -9007199254740993, 9223372036854775807,
        9223372036854775808, 18446744073709551614, 18446744073709551615, 100000000000000000000,
        "123456789012345678901234567890"]"#,
    )
    .unwrap();
    let fields = json!({"all": numbers, "largest": u64::MAX});
    put(
        store,
        vec![record(
            "1",
            json!({"all": null, "largest": null, "given": u64::MAX}),
        )],
    )
    .await;
    save(
        store,
        page_with("https://example.com/a", fields.clone()),
        &["1"],
    )
    .await
    .unwrap();
    assert_eq!(only_page(store).await["fields"], fields);
    let filled = &stored_record(store, "1").await["fields"];
    assert_eq!(filled["all"], fields["all"]);
    assert_eq!(filled["largest"], json!(u64::MAX));
    assert_eq!(filled["given"], json!(u64::MAX));
}

pub(crate) async fn hostile_text_comes_back_as_it_went_in(clients: &Clients) {
    let store = &*clients.first.store;
    let hostile = || HOSTILE.into_iter().chain([""]);
    for (number, text) in hostile().enumerate() {
        let page = Page {
            url: format!("https://example.com/{number}"),
            content_type: Some(text.to_owned()),
            links: vec![text.to_owned()],
            attrs: Some(json!({text: text})),
            headers: Some(object(json!({text: [text]}))),
            body: Some(text.into()),
            ..page_with("", json!({text: text, "list": [text]}))
        };
        save(store, page, &[]).await.unwrap();
    }
    let pages = export_all(store, ExportKind::Pages).await;
    assert_eq!(pages.len(), hostile().count());
    for (page, text) in pages.iter().zip(hostile()) {
        assert_eq!(page["content_type"], text);
        assert_eq!(page["links"], json!([text]));
        assert_eq!(page["attrs"], json!({text: text}));
        assert_eq!(page["headers"], json!({text: [text]}));
        assert_eq!(page["body"], text);
        assert_eq!(page["fields"], json!({text: text, "list": [text]}));
    }
}

pub(crate) async fn saving_a_page_again_changes_nothing(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("r", json!({"name": null, "age": null}))]).await;
    let page = page_with("https://example.com/a", json!({"name": "Ada"}));
    let first = save(store, page.clone(), &["r"]).await.unwrap();
    let before = (only_page(store).await, stored_record(store, "r").await);
    let again = save(store, page, &["r"]).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(
        (only_page(store).await, stored_record(store, "r").await),
        before
    );
}

pub(crate) async fn a_later_fetch_replaces_an_earlier_one(clients: &Clients) {
    let store = &*clients.first.store;
    let earlier = page_with("https://example.com/a", json!({"name": "Ada"}));
    let later = Page {
        started_at_ms: NOON_MS + 1,
        outcome: Outcome::Timeout,
        status_code: None,
        ..page("https://example.com/a")
    };
    save(store, earlier, &[]).await.unwrap();
    save(store, later, &[]).await.unwrap();
    let kept = only_page(store).await;
    assert_eq!(kept["outcome"], "timeout");
    assert_eq!(kept["status_code"], json!(null));
    assert_eq!(kept["fields"], json!({}));
}

pub(crate) async fn a_stale_save_never_replaces_a_newer_page(clients: &Clients) {
    let store = &*clients.first.store;
    let newer = page_with("https://example.com/a", json!({"name": "new"}));
    let stale = Page {
        started_at_ms: NOON_MS - 1,
        ..page_with("https://example.com/a", json!({"name": "old"}))
    };
    save(store, newer, &[]).await.unwrap();
    save(store, stale, &[]).await.unwrap();
    assert_eq!(only_page(store).await["fields"]["name"], "new");
}

pub(crate) async fn of_two_deliveries_the_later_one_wins_whatever_the_clocks_say(
    clients: &Clients,
) {
    let store = &*clients.first.store;
    let failed = Page {
        outcome: Outcome::HttpError,
        status_code: Some(503),
        ..page("https://example.com/a")
    };
    let fetched = Page {
        delivery: Delivery::new(0, 2),
        started_at_ms: NOON_MS - 3_600_000,
        ..page_with("https://example.com/a", json!({"name": "Ada"}))
    };
    save(store, failed.clone(), &[]).await.unwrap();
    save(store, fetched, &[]).await.unwrap();
    save(store, failed, &[]).await.unwrap();
    let kept = only_page(store).await;
    assert_eq!(kept["outcome"], "ok");
    assert_eq!(kept["fields"], json!({"name": "Ada"}));
}

pub(crate) async fn deliveries_of_a_restored_dispatcher_are_later(clients: &Clients) {
    let store = &*clients.first.store;
    let of = |epoch, task, number, name: &str| Page {
        delivery: Delivery::new(epoch, number),
        task,
        ..page_with("https://example.com/a", json!({"name": name}))
    };
    // The deliveries in their order: a task that was added again, an older task from a restored dispatcher, a page that
    // was saved late.
    for page in [
        of(5, 7, 9, "first"),
        of(5, 8, 1, "added anew"),
        of(6, 3, 1, "restored"),
        of(5, 9, 4, "late"),
    ] {
        save(store, page, &[]).await.unwrap();
    }
    assert_eq!(only_page(store).await["fields"]["name"], "restored");
}

pub(crate) async fn an_entry_that_cannot_be_kept_fails_alone(clients: &Clients) {
    let store = &*clients.first.store;
    put(store, vec![record("r", json!({"name": null}))]).await;
    let huge = "x".repeat(MAX_ENTRY_BYTES);
    let batch = [
        page("https://example.com/1"),
        page_with("https://example.com/2", json!({"name": huge})),
        page_with("https://example.com/3", json!({"name": "Ada"})),
    ];
    let records = vec![key("r")];
    let batch = batch.map(|page| Save {
        page,
        records: records.clone(),
    });
    let saved = store.save(batch.to_vec()).await;
    assert!(saved[0].is_ok());
    let refusal = saved[1].as_ref().unwrap_err();
    assert!(refusal.is_entry_refusal(), "{refusal:?}");
    assert!(
        refusal
            .to_string()
            .starts_with("page https://example.com/2 cannot be kept"),
        "{refusal}"
    );
    assert_eq!(saved[2].as_ref().unwrap().resolved, [key("r")]);
    assert_eq!(export_all(store, ExportKind::Pages).await.len(), 2);
}

pub(crate) async fn one_page_in_two_crawls_is_kept_twice(clients: &Clients) {
    let store = &*clients.first.store;
    let other = Page {
        crawl_id: String::from("c2"),
        ..page("https://example.com/a")
    };
    save(store, page("https://example.com/a"), &[])
        .await
        .unwrap();
    save(store, other, &[]).await.unwrap();
    assert_eq!(export_all(store, ExportKind::Pages).await.len(), 2);
}

pub(crate) async fn one_page_in_crawls_of_one_id_is_kept_for_each_application(clients: &Clients) {
    let (mine, theirs) = (&*clients.first.store, &*clients.second.store);
    let other = Page {
        app_id: String::from("other"),
        ..page_with("https://example.com/a", json!({"name": "theirs"}))
    };
    let own = page_with("https://example.com/a", json!({"name": "mine"}));
    save(mine, own, &[]).await.unwrap();
    save(theirs, other, &[]).await.unwrap();
    let kept = export_all(mine, ExportKind::Pages).await;
    let names = |page: &Value| (page["app_id"].clone(), page["fields"]["name"].clone());
    assert_eq!(
        kept.iter().map(names).collect::<Vec<_>>(),
        [("app", "mine"), ("other", "theirs")].map(|(app, name)| (json!(app), json!(name)))
    );
}

pub(crate) async fn an_empty_batch_gets_an_empty_answer(clients: &Clients) {
    assert!(clients.first.store.save(Vec::new()).await.is_empty());
    assert!(
        export_all(&*clients.first.store, ExportKind::Pages)
            .await
            .is_empty()
    );
}
