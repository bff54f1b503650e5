//! Whether the pages of an alert are of sites that block: then what they serve may be no pages of their own.
//!
//! A site is found to block after some of its pages, so a new alert is held back for a while; and some sites
//! are found to later, so it is asked again while the alert stands.

use std::collections::BTreeMap;
use std::time::Duration;

use webfill_health::{KeptPage, MappingHealth};
use webfill_store::{Store, StoreError, iso_time};

/// How long an alert is held back.
pub(super) const HOLD: Duration = Duration::from_secs(5);

/// How often the sites of an alert that stands are asked for.
pub(super) const ASK_EVERY: Duration = Duration::from_secs(15);

/// A page may be a block that was fetched so long before its site was found to block.
const BEFORE_MS: i64 = 10 * 60 * 1_000;

/// Whether at least half of the pages are blocked. If fewer are, these show nothing and are dropped.
pub(super) async fn are_blocked(
    store: &dyn Store,
    health: &mut MappingHealth,
) -> Result<bool, StoreError> {
    let mut since: BTreeMap<String, Option<String>> = BTreeMap::new();
    for page in health.evidence() {
        if !since.contains_key(&page.site) {
            let state = store.site_state(&page.site).await?;
            let state = state.filter(|state| state.reason == "blocked");
            let began =
                state.map(|state| iso_time(state.since_ms.saturating_sub(BEFORE_MS).max(0)));
            since.insert(page.site.clone(), began);
        }
    }
    let is_blocked = |page: &KeptPage| {
        let began = since.get(&page.site).and_then(Option::as_deref);
        began.is_some_and(|began| page.at.as_str() >= began)
    };
    let pages = health.evidence();
    let blocked = pages.iter().filter(|page| is_blocked(page)).count();
    if blocked > 0 && blocked * 2 >= pages.len() {
        return Ok(true);
    }
    if blocked > 0 {
        health.drop_evidence(is_blocked);
    }
    Ok(false)
}
