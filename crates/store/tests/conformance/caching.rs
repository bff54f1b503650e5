use webfill_store::{ROBOTS_KEPT_MS, RobotsEntry, SITE_KEPT_MS, SiteClockEntry};

use super::*;

/// A time far in the future, so that no server deletes by its own clock entries that these tests still need.
const NOON_MS: i64 = 4_102_488_000_000;

fn robots(origin: &str, fetched_at_ms: i64) -> RobotsEntry {
    RobotsEntry {
        origin: origin.to_owned(),
        status: Some(200),
        body: b"User-agent: *\nDisallow: /\xff\0".to_vec(),
        fetched_at_ms,
        expires_at_ms: fetched_at_ms + 3_600_000,
    }
}

fn site_clock(last_start_ms: i64) -> SiteClockEntry {
    SiteClockEntry {
        site: String::from("example.com"),
        last_start_ms,
        delay_ms: 1_000,
        blocked_until_ms: None,
        owner: Some(String::from("one")),
        reserved_until_ms: None,
        accepted_ms: Some(400),
    }
}

pub(crate) async fn robots_files_are_returned_for_a_day_fresh_or_not(clients: &Clients) {
    let cache = &*clients.first.cache;
    let unreachable = RobotsEntry {
        status: None,
        body: Vec::new(),
        ..robots("https://down.example", NOON_MS)
    };
    let entry = robots("https://example.com", NOON_MS);
    cache
        .put_robots(vec![entry.clone(), unreachable.clone()], NOON_MS)
        .await
        .unwrap();
    let read =
        |origin: &'static str, now_ms| async move { cache.robots(origin, now_ms).await.unwrap() };
    assert_eq!(
        read("https://example.com", NOON_MS).await,
        Some(entry.clone())
    );
    assert_eq!(
        read("https://down.example", NOON_MS).await,
        Some(unreachable)
    );
    let stale = read("https://example.com", entry.expires_at_ms).await;
    assert_eq!(stale, Some(entry.clone()), "it may stand in for another");
    assert!(entry.is_fresh(entry.expires_at_ms - 1) && !entry.is_fresh(entry.expires_at_ms));
    let old_ms = NOON_MS + ROBOTS_KEPT_MS;
    let last = read("https://example.com", old_ms - 1).await;
    assert_eq!(last, Some(entry.clone()));
    assert_eq!(read("https://example.com", old_ms).await, None);
    assert_eq!(read("https://other.example", NOON_MS).await, None);
    let origins = ["https://other.example", "https://example.com"];
    let origins = origins.map(str::to_owned).to_vec();
    let both = cache.robots_of(origins, NOON_MS).await.unwrap();
    assert_eq!(both, [None, Some(entry)], "in the order asked");
}

pub(crate) async fn robots_fetched_earlier_never_replace_later_ones(clients: &Clients) {
    let cache = &*clients.first.cache;
    let later = robots("https://example.com", NOON_MS);
    let earlier = RobotsEntry {
        body: b"old".to_vec(),
        ..robots("https://example.com", NOON_MS - 1)
    };
    cache
        .put_robots(vec![later.clone()], NOON_MS)
        .await
        .unwrap();
    cache.put_robots(vec![earlier], NOON_MS).await.unwrap();
    let kept = cache.robots("https://example.com", NOON_MS).await.unwrap();
    assert_eq!(kept, Some(later));
}

pub(crate) async fn site_clocks_only_move_forward(clients: &Clients) {
    let cache = &*clients.first.cache;
    let read = || async {
        cache
            .sites(vec![String::from("example.com")], NOON_MS)
            .await
            .unwrap()
    };
    assert_eq!(read().await, [None]);
    let blocked = SiteClockEntry {
        blocked_until_ms: Some(NOON_MS + 60_000),
        ..site_clock(NOON_MS)
    };
    cache.put_sites(vec![blocked.clone()]).await.unwrap();
    assert_eq!(read().await, [Some(blocked.clone())]);
    let stale = SiteClockEntry {
        delay_ms: 5,
        owner: None,
        blocked_until_ms: Some(NOON_MS + 1),
        ..site_clock(NOON_MS - 1)
    };
    cache.put_sites(vec![stale]).await.unwrap();
    assert_eq!(read().await, [Some(blocked.clone())]);
    let later = SiteClockEntry {
        delay_ms: 2_000,
        owner: Some(String::from("two")),
        ..site_clock(NOON_MS + 1)
    };
    cache.put_sites(vec![later.clone()]).await.unwrap();
    let expected = SiteClockEntry {
        blocked_until_ms: blocked.blocked_until_ms,
        ..later
    };
    assert_eq!(read().await, [Some(expected)]);
}

pub(crate) async fn clocks_of_idle_sites_are_forgotten(clients: &Clients) {
    let cache = &*clients.first.cache;
    let blocked = SiteClockEntry {
        site: String::from("blocked.example"),
        blocked_until_ms: Some(NOON_MS + SITE_KEPT_MS),
        ..site_clock(NOON_MS)
    };
    cache
        .put_sites(vec![site_clock(NOON_MS), blocked.clone()])
        .await
        .unwrap();
    let names = || {
        ["unknown.example", "example.com", "blocked.example"]
            .map(str::to_owned)
            .to_vec()
    };
    let at_last = cache.sites(names(), NOON_MS + SITE_KEPT_MS).await.unwrap();
    assert_eq!(
        at_last,
        [None, Some(site_clock(NOON_MS)), Some(blocked.clone())]
    );
    let too_late = cache
        .sites(names(), NOON_MS + SITE_KEPT_MS + 1)
        .await
        .unwrap();
    assert_eq!(too_late, [None, None, Some(blocked)]);
}

pub(crate) async fn hostile_names_of_sites_and_origins_are_stored_unchanged(clients: &Clients) {
    let cache = &*clients.first.cache;
    for text in HOSTILE {
        let entry = RobotsEntry {
            body: text.as_bytes().to_vec(),
            ..robots(text, NOON_MS)
        };
        cache
            .put_robots(vec![entry.clone()], NOON_MS)
            .await
            .unwrap();
        assert_eq!(cache.robots(text, NOON_MS).await.unwrap(), Some(entry));
        let entry = SiteClockEntry {
            site: text.to_owned(),
            owner: Some(text.to_owned()),
            ..site_clock(NOON_MS)
        };
        cache.put_sites(vec![entry.clone()]).await.unwrap();
        let kept = cache.sites(vec![text.to_owned()], NOON_MS).await.unwrap();
        assert_eq!(kept, [Some(entry)]);
    }
}
