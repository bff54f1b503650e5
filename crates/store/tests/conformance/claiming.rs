use webfill_store::{CrawlClaim, Store};

use super::*;

fn claim(app: &str, owner: &str, folder: &str) -> CrawlClaim {
    CrawlClaim {
        crawl: CrawlId::new(app, "nightly"),
        owner: owner.to_owned(),
        folder: folder.to_owned(),
        holder: format!("machine {owner}, 'quoted' \u{fffd}"),
        since_ms: 1_700_000_000_123,
        beat: 1,
    }
}

async fn try_claim(store: &dyn Store, claim: &CrawlClaim) -> Option<CrawlClaim> {
    store.claim_crawl(claim.clone(), None).await.unwrap()
}

async fn renew(store: &dyn Store, claim: &CrawlClaim) -> bool {
    store.renew_claim(claim.clone()).await.unwrap()
}

pub(crate) async fn a_crawl_is_claimed_by_one_process_at_a_time(clients: &Clients) {
    let (first, second) = (&*clients.first.store, &*clients.second.store);
    let (one, other) = (claim("app", "1", "a"), claim("app", "2", "b"));
    assert_eq!(try_claim(first, &one).await, None);
    assert_eq!(try_claim(second, &other).await, Some(one.clone()));
    assert_eq!(
        try_claim(second, &claim("else", "2", "b")).await,
        None,
        "another crawl"
    );
    let renewed = CrawlClaim {
        beat: 2,
        ..one.clone()
    };
    assert!(renew(first, &renewed).await);
    assert_eq!(try_claim(second, &other).await, Some(renewed));
    assert!(!renew(second, &other).await, "it is not its own");
    second.release_claim(other.clone()).await.unwrap();
    assert!(
        try_claim(second, &other).await.is_some(),
        "it was not its own"
    );
    first.release_claim(one).await.unwrap();
    assert_eq!(try_claim(second, &other).await, None);
}

pub(crate) async fn a_lapsed_claim_is_taken_over_and_its_owner_cannot_renew_it(clients: &Clients) {
    let (first, second) = (&*clients.first.store, &*clients.second.store);
    let (one, other) = (claim("app", "1", "a"), claim("app", "2", "b"));
    assert_eq!(try_claim(first, &one).await, None);
    let renewed = CrawlClaim {
        beat: 2,
        ..one.clone()
    };
    assert!(renew(first, &renewed).await);
    let tried = second.claim_crawl(other.clone(), Some(one)).await.unwrap();
    assert_eq!(tried, Some(renewed.clone()), "it was renewed meanwhile");
    let tried = second
        .claim_crawl(other.clone(), Some(renewed.clone()))
        .await;
    assert_eq!(tried.unwrap(), None);
    assert!(!renew(first, &renewed).await);
    second.release_claim(other).await.unwrap();
    assert!(!renew(first, &renewed).await, "given up by the other");
}

pub(crate) async fn a_successor_in_the_same_folder_takes_the_claim_at_once(clients: &Clients) {
    let (first, second) = (&*clients.first.store, &*clients.second.store);
    assert_eq!(try_claim(first, &claim("app", "1", "a")).await, None);
    assert_eq!(try_claim(second, &claim("app", "2", "a")).await, None);
}

pub(crate) async fn of_many_that_claim_at_once_one_succeeds(clients: &Clients) {
    let mut tasks = Vec::new();
    for number in 0..20 {
        let client = [&clients.first, &clients.second][number % 2];
        let store = client.store.clone();
        let name = number.to_string();
        tasks.push(tokio::spawn(async move {
            try_claim(&*store, &claim("app", &name, &name))
                .await
                .is_none()
        }));
    }
    let mut winners = 0;
    for task in tasks {
        winners += u32::from(task.await.unwrap());
    }
    assert_eq!(winners, 1);
}
