//! Samples of pages.

use serde_json::json;
use webfill_store::{Page, Sample, SampleText};

use super::{Clients, NOON_MS, page_with, save};

fn sampled(url: &str, place: &str) -> Page {
    Page {
        sample: Some(SampleText {
            place: place.to_owned(),
            text: url.as_bytes().to_vec(),
        }),
        ..page_with(url, json!({"name": "Ada"}))
    }
}

pub(crate) async fn the_last_page_in_its_place_is_kept_with_its_text(clients: &Clients) {
    let (store, other) = (&*clients.first.store, &*clients.second.store);
    for (url, place) in [
        ("https://a.org/1", "00/00"),
        ("https://a.org/2", "00/01"),
        ("https://a.org/3", "00/00"),
    ] {
        save(store, sampled(url, place), &[]).await.unwrap();
    }
    save(store, page_with("https://a.org/4", json!({})), &[])
        .await
        .unwrap();
    let sample = |url: &str, place: &str, text: &[u8]| Sample {
        id: format!("people/{place}"),
        mapping: "people".into(),
        alarm: None,
        page: sampled(url, place).id(),
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
        .sample_texts(vec!["people/00/00".into(), "people/none".into()])
        .await
        .unwrap();
    assert_eq!(
        found,
        [sample("https://a.org/3", "00/00", b"https://a.org/3")]
    );
    let pinned = Sample {
        id: "people/alarm/before/00".into(),
        alarm: Some("now".into()),
        ..found[0].clone()
    };
    store.put_samples(vec![pinned.clone()]).await.unwrap();
    let found = other.sample_texts(vec![pinned.id.clone()]).await.unwrap();
    assert_eq!(found, [pinned]);
}
