//! Decides whether the pages of an alert come from sites that block. They may then be block pages instead of the sites'
//! own.
//!
//! A site is known to block only after some of its pages, so a new alert is held back for a while. Some sites are
//! recognised even later, so a standing alert is checked again.

use std::collections::BTreeMap;
use std::time::Duration;

use webfill_health::{KeptPage, MappingHealth};
use webfill_store::{Store, StoreError, iso_time};

/// How long a new alert is held back before it is reported.
pub(super) const HOLD: Duration = Duration::from_secs(5);

/// How often the sites of a standing alert are checked.
pub(super) const ASK_EVERY: Duration = Duration::from_secs(15);

/// A page may be a block page even if it was fetched this many milliseconds before its site was known to block.
const BEFORE_MS: i64 = 10 * 60 * 1_000;

/// Whether at least half of the pages that are evidence are blocked. If fewer are, the blocked ones are dropped as
/// evidence.
pub(super) async fn check_and_drop_blocked(
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
