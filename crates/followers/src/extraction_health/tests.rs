use serde_json::json;
use tokio::sync::oneshot;
use webfill_store::{CrawlId, Page, Save, SitePhase, SiteState};
use webfill_wire::Outcome;

use super::*;
use crate::firehose::Subscriptions;

fn follower(uri: &StoreUri) -> FollowerLoop<Follower> {
    let follower = Follower {
        judged: HealthStates::default(),
        notifications: NotificationPublisher {
            subscriptions: Subscriptions::default(),
            publish: Arc::new(|_, _| {}),
        },
        standing: Arc::new(RwLock::new(None)),
    };
    FollowerLoop::new(uri.clone(), follower)
}

async fn save_pages(store: &dyn Store, numbers: std::ops::Range<u64>) {
    save_pages_with_fields(
        store,
        numbers,
        |number| json!({"name": format!("Thing {number}"), "price": number}),
    )
    .await;
}

async fn save_pages_with_fields(
    store: &dyn Store,
    numbers: std::ops::Range<u64>,
    fields: impl Fn(u64) -> Value,
) {
    save_mapping_pages(store, "shop", numbers, fields).await;
}

async fn save_mapping_pages(
    store: &dyn Store,
    mapping: &str,
    numbers: std::ops::Range<u64>,
    fields: impl Fn(u64) -> Value,
) {
    let page = |number: u64| {
        let url = format!("https://shop.example/{mapping}/{number}");
        let fields = fields(number);
        Page {
            mapping: Some(mapping.into()),
            template: Some("0123456789abcdef".into()),
            content_hash: Some(url.clone()),
            fields: fields.as_object().cloned().unwrap_or_default(),
            ..Page::new(
                &CrawlId::new("app", "c1"),
                &url,
                "shop.example",
                Outcome::Ok,
            )
        }
    };
    let saves = numbers.map(|number| Save {
        page: page(number),
        records: Vec::new(),
    });
    for saved in store.save(saves.collect()).await {
        saved.unwrap();
    }
}

async fn stored_shop_state(store: &dyn Store) -> Value {
    let states = store.health().await.unwrap();
    let shop = states.iter().find(|state| state.id == "mapping/shop");
    serde_json::from_str(&shop.unwrap().state).unwrap()
}

async fn judged_pages(store: &dyn Store) -> u64 {
    stored_shop_state(store).await["pages"].as_u64().unwrap()
}

async fn catch_up(follower: &mut FollowerLoop<Follower>) {
    let (_stop, stopped) = oneshot::channel();
    follower.catch_up(&Turn::new(None, &stopped)).await.unwrap();
}

/// Catches up like a dispatcher that is ending, which holds no alert back.
async fn catch_up_before_end(follower: &mut FollowerLoop<Follower>) {
    let (_stop, stopped) = oneshot::channel();
    let until = Some(Instant::now() + Duration::from_secs(10));
    follower
        .catch_up(&Turn::new(until, &stopped))
        .await
        .unwrap();
}

fn backing_off_state(reason: &str) -> SiteState {
    SiteState {
        site: "shop.example".into(),
        phase: SitePhase::BackingOff,
        reason: reason.into(),
        since_ms: 0,
        until_ms: None,
        url: "https://shop.example/".into(),
        status_code: None,
        sign: "seen".into(),
        updated_at_ms: 0,
    }
}

#[tokio::test]
async fn a_site_that_rests_because_it_blocks_raises_no_alert() {
    for (reason, alerts) in [("blocked", 0), ("busy", 1)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let uri: StoreUri = format!("sqlite:{}", path.display()).parse().unwrap();
        let store = webfill_store::open(&uri, None).await.unwrap().store;
        save_pages(&*store, 0..200).await;
        store
            .put_site_states(vec![backing_off_state(reason)])
            .await
            .unwrap();
        save_pages_with_fields(&*store, 200..300, |_| json!({})).await;
        let mut follower = follower(&uri);
        catch_up(&mut follower).await;
        assert!(
            follower
                .follower
                .judged
                .standing_judgements()
                .alerts
                .is_empty(),
            "it is held back"
        );
        catch_up_before_end(&mut follower).await;
        assert_eq!(
            follower.follower.judged.standing_judgements().alerts.len(),
            alerts,
            "{reason}"
        );
    }
}

#[tokio::test]
async fn each_page_counts_once_whoever_judges_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let uri: StoreUri = format!("sqlite:{}", path.display()).parse().unwrap();
    let store = webfill_store::open(&uri, None).await.unwrap().store;
    let (mut one, mut other) = (follower(&uri), follower(&uri));
    for round in 0..4 {
        save_pages(&*store, round * 300..round * 300 + 300).await;
        catch_up(&mut one).await;
        catch_up(&mut other).await;
        // Both followers judge the next pages, but only one can store them first.
        save_pages(&*store, 10_000 + round..10_001 + round).await;
        catch_up(&mut other).await;
        catch_up(&mut one).await;
        // One follower is replaced by a successor, which reads the stored data.
        one = follower(&uri);
    }
    catch_up(&mut one).await;
    catch_up(&mut other).await;
    assert_eq!(judged_pages(&*store).await, 1_204);
}

#[tokio::test]
async fn an_alert_is_withdrawn_when_its_site_turns_out_to_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let uri: StoreUri = format!("sqlite:{}", path.display()).parse().unwrap();
    let store = webfill_store::open(&uri, None).await.unwrap().store;
    save_pages(&*store, 0..200).await;
    save_pages_with_fields(&*store, 200..300, |_| json!({})).await;
    let mut one = follower(&uri);
    catch_up_before_end(&mut one).await;
    assert_eq!(one.follower.judged.standing_judgements().alerts.len(), 1);
    store
        .put_site_states(vec![backing_off_state("blocked")])
        .await
        .unwrap();
    // Another process withdraws the alert as well as the one that raised it.
    let mut other = follower(&uri);
    catch_up_before_end(&mut other).await;
    assert!(
        other
            .follower
            .judged
            .standing_judgements()
            .alerts
            .is_empty()
    );
    let past = stored_shop_state(&*store).await["past"].clone();
    assert_eq!(past[0]["cleared_by"], "blocked", "{past}");
}

#[tokio::test]
async fn a_state_that_cannot_be_stored_keeps_no_other_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let uri: StoreUri = format!("sqlite:{}", path.display()).parse().unwrap();
    let store = webfill_store::open(&uri, None).await.unwrap().store;
    let endless = |number: u64| json!({format!("{number}{}", "n".repeat(50_000)): 1});
    save_mapping_pages(&*store, "endless", 0..150, endless).await;
    save_pages(&*store, 0..100).await;
    let mut follower = follower(&uri);
    catch_up(&mut follower).await;
    assert_eq!(judged_pages(&*store).await, 100);
    let states = store.health().await.unwrap();
    assert!(states.iter().all(|state| state.id != "mapping/endless"));
    save_pages(&*store, 100..200).await;
    save_mapping_pages(&*store, "endless", 150..160, |_| json!({})).await;
    catch_up(&mut follower).await;
    assert_eq!(judged_pages(&*store).await, 200);
}

#[test]
fn alerts_of_mappings_that_are_gone_are_not_reported() {
    let rows = || vec![json!({"mapping": "shop"}), json!({"mapping": "gone"})];
    let standing = Arc::new(Standing {
        alerts: rows(),
        warnings: rows(),
    });
    let reported = filter_by_mappings(&standing, &["shop".into(), "other".into()]);
    let shop = [json!({"mapping": "shop"})];
    assert_eq!(
        (&*reported.alerts, &*reported.warnings),
        (&shop[..], &shop[..])
    );
}

/// Measures the rate given in `docs/explanation/health.md`, with `WEBFILL_JUDGED_PAGES=100000`.
#[tokio::test]
async fn pages_are_judged_faster_than_a_fleet_fetches() {
    let pages = std::env::var("WEBFILL_JUDGED_PAGES").ok();
    let pages: u64 = pages.map_or(5_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let uri: StoreUri = format!("sqlite:{}", path.display()).parse().unwrap();
    let store = webfill_store::open(&uri, None).await.unwrap().store;
    for first in (0..pages).step_by(500) {
        save_pages(&*store, first..first + 500).await;
    }
    let began = Instant::now();
    let mut follower = follower(&uri);
    loop {
        catch_up(&mut follower).await;
        if judged_pages(&*store).await >= pages {
            break;
        }
    }
    let per_second = pages as f64 / began.elapsed().as_secs_f64();
    println!("{per_second:.0} pages a second");
    assert!(per_second > 1_000.0, "{per_second}");
}
