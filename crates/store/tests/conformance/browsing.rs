//! Browsing the pages of a store: lists that continue from a place, with and without the indexes.

use std::collections::BTreeSet;

use webfill_store::{
    Browse, ChangeListFilter, CrawlFilter, PageFilter, PageRow, Place, RecordFilter, page_id,
};

use super::listing::{put_records, walk};
use super::*;

async fn pages(browse: &dyn Browse, filter: &PageFilter) -> Vec<PageRow> {
    walk!(7, |from, few| browse.pages(filter, from, few))
}

pub(super) const OUTCOMES: [Outcome; 3] = [Outcome::Ok, Outcome::Timeout, Outcome::HttpError];

pub(super) fn url(number: usize) -> String {
    format!("https://example.com/{number}")
}

/// Saves pages of three crawls. Two of the crawls have the same id. Each outcome, site and mapping occurs with a
/// different frequency.
pub(super) async fn save_pages(store: &dyn Store) -> Vec<Page> {
    let crawls = [
        crawl_id(),
        CrawlId::new("app", "c1x"),
        CrawlId::new("app2", "c1"),
    ];
    let mut saved = Vec::new();
    for number in 0..90_usize {
        let id = &crawls[number / 30];
        let page = Page {
            app_id: id.app_id.clone(),
            crawl_id: id.crawl_id.clone(),
            outcome: OUTCOMES[number % 3],
            site: format!("s{}.example", number % 4),
            mapping: (number % 5 != 0).then(|| format!("m{}", number % 2)),
            // Two pages each have the same start time.
            started_at_ms: NOON_MS + number as i64 / 2,
            final_url: (number == 3).then(|| String::from("https://example.com/final")),
            ..page(&url(number))
        };
        save(store, page.clone(), &[]).await.unwrap();
        saved.push(page);
    }
    saved
}

/// The filters that users apply.
fn page_filters() -> Vec<PageFilter> {
    let none = PageFilter::default();
    let of_crawl = PageFilter {
        crawl: Some(crawl_id()),
        ..none.clone()
    };
    let failed = vec![Outcome::HttpError, Outcome::Timeout, Outcome::Timeout];
    let app2 = Some(vec![String::from("app2"), String::from("none")]);
    vec![
        PageFilter {
            outcomes: failed.clone(),
            ..of_crawl.clone()
        },
        PageFilter {
            outcomes: vec![Outcome::Blocked],
            ..of_crawl.clone()
        },
        PageFilter {
            mapping: Some("m1".into()),
            ..of_crawl.clone()
        },
        PageFilter {
            mapping: Some("m1".into()),
            outcomes: failed.clone(),
            ..of_crawl.clone()
        },
        PageFilter {
            site: Some("s1.example".into()),
            ..none.clone()
        },
        PageFilter {
            site: Some("s1.example".into()),
            mapping: Some("m1".into()),
            outcomes: failed.clone(),
            ..of_crawl.clone()
        },
        PageFilter {
            site: Some("s1.example".into()),
            apps: app2.clone(),
            ..none.clone()
        },
        PageFilter {
            apps: Some(Vec::new()),
            ..none.clone()
        },
        PageFilter {
            apps: app2,
            outcomes: failed,
            ..none.clone()
        },
        of_crawl,
        none,
    ]
}

fn matches_filter(page: &Page, filter: &PageFilter) -> bool {
    let crawl = CrawlId::new(&page.app_id, &page.crawl_id);
    filter.crawl.as_ref().is_none_or(|wanted| *wanted == crawl)
        && filter.site.as_ref().is_none_or(|site| *site == page.site)
        && (filter.mapping.is_none() || filter.mapping == page.mapping)
        && (filter.outcomes.is_empty() || filter.outcomes.contains(&page.outcome))
        && filter
            .apps
            .as_ref()
            .is_none_or(|apps| apps.contains(&page.app_id))
}

pub(crate) async fn pages_are_listed_by_every_filter(clients: &Clients) {
    let saved = save_pages(&*clients.first.store).await;
    let browse = &*clients.second.browse;
    for is_prepared in [false, true] {
        if is_prepared {
            clients.first.browse.create_missing_indexes().await.unwrap();
            browse.create_missing_indexes().await.unwrap();
        }
        for filter in page_filters() {
            let listed = pages(browse, &filter).await;
            let ids: BTreeSet<&str> = listed.iter().map(|row| row.id.as_str()).collect();
            assert_eq!(ids.len(), listed.len(), "{filter:?}: each once");
            let taken = saved.iter().filter(|page| matches_filter(page, &filter));
            let taken: BTreeSet<String> = taken.map(Page::id).collect();
            assert_eq!(
                ids,
                taken.iter().map(String::as_str).collect(),
                "{filter:?}"
            );
            if is_prepared && (filter.crawl.is_some() || filter.site.is_some()) {
                let is_newer =
                    |one: &PageRow, next: &PageRow| one.started_at_ms >= next.started_at_ms;
                assert!(listed.is_sorted_by(is_newer), "{filter:?}");
            }
        }
    }
}

pub(crate) async fn a_listed_page_shows_its_stored_values(clients: &Clients) {
    let saved = save_pages(&*clients.first.store).await;
    let browse = &*clients.second.browse;
    browse.create_missing_indexes().await.unwrap();
    let filter = PageFilter {
        crawl: Some(crawl_id()),
        ..PageFilter::default()
    };
    let listed = pages(browse, &filter).await;
    let row = listed.iter().find(|row| row.url == url(3)).unwrap();
    let page = &saved[3];
    let expected = PageRow {
        id: page_id("app", "c1", &page.url),
        app_id: "app".into(),
        crawl_id: "c1".into(),
        url: page.url.clone(),
        final_url: page.final_url.clone(),
        site: "s3.example".into(),
        depth: 1,
        parent: None,
        outcome: Outcome::Ok,
        status_code: Some(200),
        mapping: Some("m1".into()),
        content_type: Some("text/html".into()),
        bytes: 1234,
        started_at_ms: NOON_MS + 1,
        elapsed_ms: 250,
        attempts: 1,
    };
    assert_eq!(*row, expected);
    let whole = browse.page(&row.id).await.unwrap().unwrap();
    let of_export = export_all(&*clients.first.store, ExportKind::Pages).await;
    let of_export = of_export.iter().find(|other| other["_id"] == whole["_id"]);
    assert_eq!(Some(&whole), of_export);
    assert_eq!(browse.page("app/c1/none").await.unwrap(), None);
}

pub(crate) async fn a_list_continues_at_its_place_while_pages_are_saved(clients: &Clients) {
    let store = &*clients.first.store;
    save_pages(store).await;
    let browse = &*clients.second.browse;
    browse.create_missing_indexes().await.unwrap();
    let filter = PageFilter {
        crawl: Some(crawl_id()),
        ..PageFilter::default()
    };
    let first = browse.pages(&filter, None, 10).await.unwrap();
    // Meanwhile, one page of the list is fetched again, and new pages are added.
    for number in [29, 1_000, 1_001] {
        let page = Page {
            started_at_ms: NOON_MS + 500,
            ..page(&url(number))
        };
        save(store, page, &[]).await.unwrap();
    }
    let mut rest = Vec::new();
    let mut next = first.next;
    while let Some(place) = next {
        let list_page = browse.pages(&filter, Some(&place), 10).await.unwrap();
        rest.extend(list_page.rows);
        next = list_page.next;
    }
    let urls: BTreeSet<String> = rest.iter().map(|row| row.url.clone()).collect();
    assert_eq!(urls, (0..20).map(url).collect::<BTreeSet<_>>());
    assert_eq!(rest.len(), 20);
}

pub(crate) async fn a_body_is_found_only_if_it_belongs_to_the_present_page(clients: &Clients) {
    let store = &*clients.first.store;
    let browse = &*clients.second.browse;
    let hashed = |hash: &str| Page {
        content_hash: Some(hash.to_owned()),
        ..page(&url(1))
    };
    let id = page_id("app", "c1", &url(1));
    assert_eq!(browse.body(&id).await.unwrap(), None);
    save(store, hashed("one"), &[]).await.unwrap();
    assert_eq!(browse.body(&id).await.unwrap(), None);
    let body = webfill_store::Body {
        page_id: id.clone(),
        content_hash: "one".into(),
        is_rendered: false,
        at_ms: NOON_MS,
        task: 1,
        delivery: webfill_wire::Delivery::new(0, 1),
        bytes: 3,
        body: vec![1, 2, 3],
    };
    let kept = vec![webfill_store::BodyChange::Keep(body.clone())];
    clients.first.bodies.keep(kept, 1 << 20).await.unwrap();
    assert_eq!(browse.body(&id).await.unwrap(), Some(body));
    save(store, hashed("two"), &[]).await.unwrap();
    assert_eq!(browse.body(&id).await.unwrap(), None);
}

/// Browsers send places back, so a place may name a row that does not exist.
pub(crate) async fn an_invented_place_in_a_list_gets_an_answer(clients: &Clients) {
    save_pages(&*clients.first.store).await;
    put_records(&*clients.first.store).await;
    let browse = &*clients.second.browse;
    browse.create_missing_indexes().await.unwrap();
    let of_crawl = PageFilter {
        crawl: Some(crawl_id()),
        ..PageFilter::default()
    };
    let resolved = RecordFilter {
        dataset: Some("people".into()),
        state: Some(RecordState::Resolved),
        ..RecordFilter::default()
    };
    for text in [
        "k",
        "n",
        "k.",
        "n.",
        "k.AA",
        "n.AA.AA",
        "n.LTk.YQ.YQ.YQ",
        "k.f39_",
    ] {
        let Ok(place) = text.parse::<Place>() else {
            continue;
        };
        let from = Some(&place);
        for filter in [&of_crawl, &PageFilter::default()] {
            let limit = u32::MAX;
            let list_page = browse.pages(filter, from, limit).await.unwrap();
            assert!(list_page.rows.len() <= 90, "{text}");
        }
        for filter in [&resolved, &RecordFilter::default()] {
            assert!(
                browse.records(filter, from, 0).await.unwrap().rows.len() <= 1,
                "{text}"
            );
        }
        browse
            .crawls(&CrawlFilter::default(), from, 10)
            .await
            .unwrap();
        browse.datasets(10, from, 10).await.unwrap();
        let all = ChangeListFilter::default();
        browse.changes(&all, from, 10).await.unwrap();
        browse.site_states(from, 10).await.unwrap();
    }
}
