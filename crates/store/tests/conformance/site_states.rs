//! The states of sites in trouble.

use webfill_store::{SitePhase, SiteState, Store};

use super::{Clients, HOSTILE, NOON_MS};

fn backing_off_state(site: &str) -> SiteState {
    SiteState {
        site: site.to_owned(),
        phase: SitePhase::BackingOff,
        reason: String::from("robots"),
        since_ms: NOON_MS,
        until_ms: Some(NOON_MS + 60_000),
        url: format!("http://{site}/robots.txt"),
        status_code: Some(503),
        sign: String::from("robots.txt answered 503"),
        updated_at_ms: NOON_MS + 1,
    }
}

async fn put(store: &dyn Store, states: &[SiteState]) {
    store.put_site_states(states.to_vec()).await.unwrap();
}

async fn remove(store: &dyn Store, sites: &[&str]) {
    let sites = sites.iter().map(|site| (*site).to_owned()).collect();
    store.remove_site_states(sites).await.unwrap();
}

pub(crate) async fn the_last_state_of_a_site_is_returned(clients: &Clients) {
    let store = &*clients.first.store;
    assert_eq!(store.site_state("a.example").await.unwrap(), None);
    let first = backing_off_state("a.example");
    let later = SiteState {
        phase: SitePhase::Unreachable,
        reason: String::from("dns"),
        until_ms: None,
        status_code: None,
        updated_at_ms: NOON_MS + 2,
        ..first.clone()
    };
    for state in [&first, &later, &later, &first] {
        put(store, std::slice::from_ref(state)).await;
        let seen = clients.second.store.site_state("a.example").await.unwrap();
        assert_eq!(seen.as_ref(), Some(state));
    }
}

pub(crate) async fn states_are_removed_alone_and_more_than_once(clients: &Clients) {
    let store = &*clients.first.store;
    let [a, b] = ["a.example", "b.example"].map(backing_off_state);
    put(store, &[a, b.clone()]).await;
    for _ in 0..2 {
        remove(store, &["a.example", "unknown.example"]).await;
        assert_eq!(store.site_state("a.example").await.unwrap(), None);
        assert_eq!(
            store.site_state("b.example").await.unwrap().as_ref(),
            Some(&b)
        );
    }
    put(store, &[]).await;
    remove(store, &[]).await;
    assert_eq!(store.site_state("b.example").await.unwrap(), Some(b));
}

pub(crate) async fn many_states_are_put_and_removed_at_once(clients: &Clients) {
    let store = &*clients.first.store;
    let names: Vec<String> = (0..2_000).map(|n| format!("s{n}.example")).collect();
    let states: Vec<SiteState> = names.iter().map(|name| backing_off_state(name)).collect();
    put(store, &states).await;
    let removed: Vec<&str> = names[..1_999].iter().map(String::as_str).collect();
    remove(store, &removed).await;
    for name in [&names[0], &names[1_998]] {
        assert_eq!(store.site_state(name).await.unwrap(), None, "{name}");
    }
    let last = store.site_state(&names[1_999]).await.unwrap();
    assert_eq!(last.as_ref(), states.last());
}

pub(crate) async fn hostile_texts_of_a_state_come_back_as_they_went_in(clients: &Clients) {
    let store = &*clients.first.store;
    for text in HOSTILE {
        let state = SiteState {
            reason: text.to_owned(),
            url: text.to_owned(),
            sign: text.to_owned(),
            ..backing_off_state(text)
        };
        put(store, std::slice::from_ref(&state)).await;
        assert_eq!(
            store.site_state(text).await.unwrap(),
            Some(state),
            "{text:?}"
        );
        remove(store, &[text]).await;
        assert_eq!(store.site_state(text).await.unwrap(), None, "{text:?}");
    }
}
