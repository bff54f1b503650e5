use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use webfill_store::{Cache, Reservation, ReservationRelease, ReservationRequest, SiteClockEntry};

use super::*;

const SITE: &str = "example.com";

fn request(holder: &str, delay_ms: u64) -> ReservationRequest {
    ReservationRequest {
        site: SITE.to_owned(),
        holder: holder.to_owned(),
        delay_ms,
        longest_request_ms: 60_000,
    }
}

fn reservation_release(holder: &str, blocked_for_ms: u64) -> ReservationRelease {
    ReservationRelease {
        site: SITE.to_owned(),
        holder: holder.to_owned(),
        blocked_for_ms,
        was_used: true,
    }
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap().as_millis()).unwrap()
}

/// Repeats the request until the reservation is granted, as a worker does.
async fn wait_for_reservation(cache: &dyn Cache, request: &ReservationRequest) {
    while let Reservation::Wait { wait_ms } = cache.reserve(request).await.unwrap() {
        assert!(wait_ms > 0);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
    }
}

async fn expect_wait_ms(cache: &dyn Cache, request: &ReservationRequest) -> u64 {
    match cache.reserve(request).await.unwrap() {
        Reservation::Wait { wait_ms } => wait_ms,
        Reservation::Granted => panic!("{request:?} was granted"),
    }
}

/// Many workers of two clients request one site. No two requests are in flight at once, and the delay between them is
/// kept.
pub(crate) async fn requests_to_a_site_never_overlap_and_keep_their_distance(clients: &Clients) {
    const WORKERS: usize = 6;
    const REQUESTS: usize = 3;
    const DELAY_MS: u64 = 40;
    let under_way = Arc::new(AtomicU32::new(0));
    let mut workers = Vec::new();
    for worker in 0..WORKERS {
        let client = [&clients.first, &clients.second][worker % 2];
        let (cache, under_way) = (client.cache.clone(), under_way.clone());
        workers.push(tokio::spawn(async move {
            let mut times = Vec::new();
            for number in 0..REQUESTS {
                let holder = format!("{worker}/{number}");
                wait_for_reservation(&*cache, &request(&holder, DELAY_MS)).await;
                let started = Instant::now();
                assert_eq!(under_way.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                tokio::time::sleep(Duration::from_millis(10)).await;
                under_way.fetch_sub(1, Ordering::SeqCst);
                times.push((started, Instant::now()));
                cache
                    .release_reservation(&reservation_release(&holder, DELAY_MS))
                    .await
                    .unwrap();
            }
            times
        }));
    }
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.await.unwrap());
    }
    times.sort();
    assert_eq!(times.len(), WORKERS * REQUESTS);
    for pair in times.windows(2) {
        let gap = pair[1].0 - pair[0].1;
        assert!(
            gap >= Duration::from_millis(DELAY_MS),
            "only {gap:?} between"
        );
    }
}

pub(crate) async fn a_reservation_is_granted_again_only_to_its_holder(clients: &Clients) {
    let (first, second) = (&*clients.first.cache, &*clients.second.cache);
    assert_eq!(
        first.reserve(&request("a", 0)).await.unwrap(),
        Reservation::Granted
    );
    assert_eq!(
        first.reserve(&request("a", 0)).await.unwrap(),
        Reservation::Granted
    );
    assert_eq!(
        second.reserve(&request("a", 0)).await.unwrap(),
        Reservation::Granted
    );
    expect_wait_ms(second, &request("b", 0)).await;
    expect_wait_ms(first, &request("$slot.holder", 0)).await;
    // Meanwhile, another site can be reserved.
    let elsewhere = ReservationRequest {
        site: String::from("other.example"),
        ..request("b", 0)
    };
    assert_eq!(
        second.reserve(&elsewhere).await.unwrap(),
        Reservation::Granted
    );
}

pub(crate) async fn a_lapsed_reservation_counts_as_answered_when_it_lapsed(clients: &Clients) {
    let (first, second) = (&*clients.first.cache, &*clients.second.cache);
    let dead = ReservationRequest {
        longest_request_ms: 150,
        ..request("dead", 100)
    };
    let reserved = Instant::now();
    assert_eq!(first.reserve(&dead).await.unwrap(), Reservation::Granted);
    wait_for_reservation(second, &request("next", 100)).await;
    // The clock counts whole milliseconds, so up to one is lost at either end.
    assert!(reserved.elapsed() >= Duration::from_millis(249));
    // The holder that was taken for dead releases its reservation only now, when another holder has one.
    first
        .release_reservation(&reservation_release("dead", 0))
        .await
        .unwrap();
    expect_wait_ms(first, &request("third", 0)).await;
}

pub(crate) async fn an_unused_reservation_begins_no_delay(clients: &Clients) {
    let cache = &*clients.first.cache;
    assert_eq!(
        cache.reserve(&request("a", 60_000)).await.unwrap(),
        Reservation::Granted
    );
    let unused = ReservationRelease {
        was_used: false,
        ..reservation_release("a", 60_000)
    };
    cache.release_reservation(&unused).await.unwrap();
    let next = clients.second.cache.reserve(&request("b", 60_000)).await;
    assert_eq!(next.unwrap(), Reservation::Granted);
}

pub(crate) async fn a_release_blocks_for_as_long_as_the_site_asked(clients: &Clients) {
    let cache = &*clients.first.cache;
    cache.reserve(&request("a", 10)).await.unwrap();
    for _ in 0..2 {
        cache
            .release_reservation(&reservation_release("a", 30_000))
            .await
            .unwrap();
    }
    let wait_ms = expect_wait_ms(&*clients.second.cache, &request("b", 10)).await;
    assert!((20_000..=30_001).contains(&wait_ms), "{wait_ms}");
    // A longer delay of the next request is also counted from the last answer.
    let wait_ms = expect_wait_ms(cache, &request("b", 50_000)).await;
    assert!((40_000..=50_001).contains(&wait_ms), "{wait_ms}");
}

pub(crate) async fn reservations_and_clocks_that_were_put_respect_each_other(clients: &Clients) {
    let (first, second) = (&*clients.first.cache, &*clients.second.cache);
    let now_ms = now_ms();
    let entry = |site: &str, blocked_until_ms| SiteClockEntry {
        site: site.to_owned(),
        last_start_ms: now_ms,
        delay_ms: 1,
        blocked_until_ms,
        owner: None,
        reserved_until_ms: None,
        accepted_ms: None,
    };
    let entries = vec![
        entry("paced.example", None),
        entry("blocked.example", Some(now_ms + 40_000)),
    ];
    first.put_sites(entries).await.unwrap();
    for (site, least_ms) in [("paced.example", 10_000), ("blocked.example", 30_000)] {
        let request = ReservationRequest {
            site: site.to_owned(),
            ..request("a", 20_000)
        };
        assert!(expect_wait_ms(second, &request).await >= least_ms, "{site}");
    }
    second.reserve(&request("a", 5_000)).await.unwrap();
    let seen = first.sites(vec![SITE.to_owned()], now_ms).await.unwrap();
    let seen = seen[0].as_ref().expect("a reserved site");
    assert_eq!(seen.delay_ms, 5_000);
    assert!(seen.last_start_ms >= now_ms);
    assert_eq!(
        seen.blocked_until_ms, None,
        "it may be released at any moment"
    );
    assert!(seen.reserved_until_ms >= Some(now_ms + 60_000));
    second
        .release_reservation(&reservation_release("a", 5_000))
        .await
        .unwrap();
    let seen = first.sites(vec![SITE.to_owned()], now_ms).await.unwrap();
    let seen = seen[0].as_ref().expect("a site that was fetched from");
    assert!(seen.last_start_ms >= now_ms);
    let until_ms = seen.blocked_until_ms.expect("a delay after the answer");
    assert!((now_ms + 5_000..now_ms + 50_000).contains(&until_ms));
    assert_eq!(seen.reserved_until_ms, None);
}
