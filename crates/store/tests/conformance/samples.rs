//! Samples of pages.

use serde_json::json;
use webfill_store::{Cutoff, Page, Sample, SampleText};

use super::{Clients, NOON_MS, Store, page_with, save};

fn sampled_page(url: &str, place: &str) -> Page {
    Page {
        sample: Some(SampleText {
            place: place.to_owned(),
            text: url.as_bytes().to_vec(),
        }),
        ..page_with(url, json!({"name": "Ada"}))
    }
}

pub(crate) async fn each_sample_id_holds_the_last_page_with_its_text(clients: &Clients) {
    let (store, other) = (&*clients.first.store, &*clients.second.store);
    for (url, place) in [
        ("https://a.org/1", "00/00"),
        ("https://a.org/2", "00/01"),
        ("https://a.org/3", "00/00"),
    ] {
        save(store, sampled_page(url, place), &[]).await.unwrap();
    }
    save(store, page_with("https://a.org/4", json!({})), &[])
        .await
        .unwrap();
    let sample = |url: &str, place: &str, text: &[u8]| Sample {
        id: format!("people/{place}"),
        mapping: "people".into(),
        alert: None,
        page: sampled_page(url, place).id(),
        url: url.into(),
        at_ms: NOON_MS,
        fields: vec!["name".into()],
        text: text.to_vec(),
    };
    let listed = [
        sample("https://a.org/3", "00/00", b""),
        sample("https://a.org/2", "00/01", b""),
    ];
    assert_eq!(other.samples("people").await.unwrap(), listed);
    assert_eq!(other.samples("peopl").await.unwrap(), []);
    let found = other
        .samples_with_texts(vec!["people/00/00".into(), "people/none".into()])
        .await
        .unwrap();
    assert_eq!(
        found,
        [sample("https://a.org/3", "00/00", b"https://a.org/3")]
    );
    let pinned = Sample {
        id: "people/alert/before/00".into(),
        alert: Some("now".into()),
        ..found[0].clone()
    };
    store.put_samples(vec![pinned.clone()]).await.unwrap();
    let found = other
        .samples_with_texts(vec![pinned.id.clone()])
        .await
        .unwrap();
    assert_eq!(found, [pinned]);
}

const MINUTE_MS: i64 = 60_000;

/// A sample with a text of this many bytes, fetched this many minutes after noon.
fn sample_of_bytes(id: &str, minutes: i64, alert: Option<&str>, bytes: usize) -> Sample {
    Sample {
        id: format!("people/{id}"),
        mapping: "people".into(),
        alert: alert.map(str::to_owned),
        page: sampled_page("https://a.org/1", id).id(),
        url: "https://a.org/1".into(),
        at_ms: NOON_MS + minutes * MINUTE_MS,
        fields: Vec::new(),
        text: vec![7; bytes],
    }
}

/// Drops samples older than this many minutes after noon, and then those beyond this many bytes. Returns the number
/// dropped and the ids left.
async fn drop_and_list(
    store: &dyn Store,
    minutes: Option<i64>,
    bytes: Option<u64>,
) -> (u64, Vec<String>) {
    let cutoff = Cutoff {
        pages_ms: minutes.map(|minutes| NOON_MS + minutes * MINUTE_MS),
        log_ms: None,
        samples_bytes: bytes,
    };
    let mut dropped = 0;
    loop {
        let step = store.drop_old(cutoff).await.unwrap();
        dropped += step.samples;
        if !step.has_more {
            break;
        }
    }
    let samples = store.samples("people").await.unwrap();
    let ids = samples.into_iter().map(|one| one.id.replace("people/", ""));
    (dropped, ids.collect())
}

pub(crate) async fn samples_are_dropped_by_age_and_size_and_those_of_alerts_last(
    clients: &Clients,
) {
    let (store, other) = (&*clients.first.store, &*clients.second.store);
    let samples = vec![
        sample_of_bytes("a", 0, Some("raised"), 1_000),
        sample_of_bytes("b", 3, None, 1_000),
        sample_of_bytes("c", 2, None, 1_000),
        sample_of_bytes("d", 1, None, 1_000),
    ];
    store.put_samples(samples).await.unwrap();
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let all = (0, names(&["a", "b", "c", "d"]));
    assert_eq!(drop_and_list(other, None, None).await, all);
    assert_eq!(drop_and_list(other, Some(0), Some(4_000)).await, all);
    assert_eq!(
        drop_and_list(other, None, Some(3_999)).await,
        (1, names(&["a", "b", "c"]))
    );
    assert_eq!(
        drop_and_list(other, None, Some(1_999)).await,
        (2, names(&["a"]))
    );
    assert_eq!(
        drop_and_list(other, Some(1), Some(1_999)).await,
        (1, names(&[]))
    );
    let many = (0..1_203).map(|number| sample_of_bytes(&format!("{number:04}"), number, None, 10));
    store.put_samples(many.collect()).await.unwrap();
    let (dropped, kept) = drop_and_list(other, Some(600), None).await;
    assert_eq!((dropped, kept.len()), (600, 603));
    let (dropped, kept) = drop_and_list(other, None, Some(20)).await;
    assert_eq!((dropped, kept), (601, names(&["1201", "1202"])));
    assert_eq!(drop_and_list(other, None, Some(0)).await, (2, names(&[])));
}
