//! Bodies of pages.

use webfill_store::{Body, BodyChange, page_id};
use webfill_wire::Delivery;

use super::*;

const ENOUGH: u64 = 64 << 20;

fn id(number: u32) -> String {
    page_id("app", "c1", &format!("https://example.com/{number}"))
}

fn body(number: u32, delivery: u32, at_ms: i64) -> Body {
    Body {
        page_id: id(number),
        content_hash: format!("h{delivery}"),
        is_rendered: delivery.is_multiple_of(2),
        at_ms,
        task: 7,
        delivery: Delivery::new(1, delivery),
        bytes: 30,
        body: vec![number as u8, delivery as u8],
    }
}

async fn read_all_bodies(clients: &Clients) -> Vec<Body> {
    let bodies = &clients.second.bodies;
    let (mut kept, mut after) = (Vec::new(), None);
    loop {
        let some = bodies.bodies(&crawl_id(), after).await.unwrap();
        let Some(last) = some.last() else {
            return kept;
        };
        after = Some(last.page_id.clone());
        kept.extend(some);
    }
}

async fn apply_changes(clients: &Clients, changes: Vec<BodyChange>) {
    let dropped = clients.first.bodies.keep(changes, ENOUGH).await.unwrap();
    assert_eq!(dropped, Default::default());
}

pub(crate) async fn the_body_of_the_later_delivery_is_kept(clients: &Clients) {
    assert_eq!(read_all_bodies(clients).await, []);
    apply_changes(clients, vec![BodyChange::Keep(body(1, 2, NOON_MS))]).await;
    // The body of the later delivery is kept, even if its time is earlier.
    apply_changes(clients, vec![BodyChange::Keep(body(1, 1, NOON_MS + 9))]).await;
    assert_eq!(read_all_bodies(clients).await, [body(1, 2, NOON_MS)]);
    apply_changes(clients, vec![BodyChange::Keep(body(1, 3, NOON_MS - 9))]).await;
    assert_eq!(read_all_bodies(clients).await, [body(1, 3, NOON_MS - 9)]);
    let others = (2..200).map(|number| BodyChange::Keep(body(number, 1, NOON_MS)));
    apply_changes(clients, others.collect()).await;
    let kept = read_all_bodies(clients).await;
    assert_eq!(kept.len(), 199);
    assert!(kept.is_sorted_by(|one, next| one.page_id < next.page_id));
    let elsewhere = CrawlId::new("app", "c2");
    let bodies = &clients.second.bodies;
    assert_eq!(bodies.bodies(&elsewhere, None).await.unwrap(), []);
}

pub(crate) async fn a_body_is_kept_if_its_page_is_unchanged_and_dropped_if_it_fails(
    clients: &Clients,
) {
    apply_changes(clients, vec![BodyChange::Keep(body(1, 1, NOON_MS))]).await;
    let unchanged = |hash: &str, at_ms| BodyChange::Unchanged {
        page_id: id(1),
        content_hash: hash.to_owned(),
        at_ms,
    };
    apply_changes(clients, vec![unchanged("h1", NOON_MS + 50)]).await;
    apply_changes(clients, vec![unchanged("h1", NOON_MS + 20)]).await;
    apply_changes(clients, vec![unchanged("other", NOON_MS + 90)]).await;
    assert_eq!(read_all_bodies(clients).await, [body(1, 1, NOON_MS + 50)]);
    let forget = |at_ms| BodyChange::Forget {
        page_id: id(1),
        at_ms,
    };
    apply_changes(clients, vec![forget(NOON_MS + 40)]).await;
    assert_eq!(
        read_all_bodies(clients).await.len(),
        1,
        "it was fetched later"
    );
    apply_changes(clients, vec![forget(NOON_MS + 60)]).await;
    assert_eq!(read_all_bodies(clients).await, []);
}

pub(crate) async fn beyond_the_limit_the_oldest_bodies_are_dropped(clients: &Clients) {
    let large = |number: u32| Body {
        body: vec![number as u8; 100_000],
        ..body(number, 1, NOON_MS + i64::from(number))
    };
    let many = (0..100).map(|number| BodyChange::Keep(large(number)));
    apply_changes(clients, many.collect()).await;
    let small = (100..500).map(|number| BodyChange::Keep(body(number, 1, NOON_MS - 9)));
    apply_changes(clients, small.collect()).await;
    // Several calls are needed, because each drops a limited number.
    let mut dropped = 0;
    for number in 500..504 {
        let one = vec![BodyChange::Keep(large(number))];
        let call = clients.first.bodies.keep(one, 1 << 20).await.unwrap();
        dropped += call.bodies;
    }
    let kept = read_all_bodies(clients).await;
    assert_eq!(kept.len() as u64, 504 - dropped);
    assert!((6..=10).contains(&kept.len()), "{}", kept.len());
    let mut numbers: Vec<i64> = kept.iter().map(|body| body.at_ms - NOON_MS).collect();
    numbers.sort_unstable();
    assert_eq!(numbers[numbers.len() - 4..], [500, 501, 502, 503]);
    assert!(numbers.iter().all(|number| *number > 90), "{numbers:?}");
}
