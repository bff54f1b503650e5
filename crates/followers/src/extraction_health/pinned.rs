//! Keeps texts of pages from before and after a change until the mapping is repaired. Workers also keep samples of
//! pages, but later samples replace them.

use webfill_health::{Alert, Sign};
use webfill_store::{Sample, Store, StoreError, iso_time};

/// The most pages kept from before the change, and the most from after it.
const PINNED: usize = 20;

/// Copies samples that belong to the alert and are not copied yet. Returns whether enough are kept now.
pub(super) async fn copy_samples(store: &dyn Store, alert: &Alert) -> Result<bool, StoreError> {
    let samples = store.samples(&alert.mapping).await?;
    let (pinned, kept): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.alert.is_some());
    let of_alert = |sample: &&&Sample| sample.alert.as_deref() == Some(&*alert.raised_at);
    let pinned: Vec<&Sample> = pinned.iter().filter(of_alert).copied().collect();
    let mut is_full = true;
    for when in ["before", "after"] {
        let place = format!("{}/alert/{when}/", alert.mapping);
        let there: Vec<&&Sample> = pinned
            .iter()
            .filter(|one| one.id.starts_with(&place))
            .collect();
        let is_wanted = |sample: &&&Sample| {
            is_sample_of(alert, sample, when) && there.iter().all(|one| one.page != sample.page)
        };
        let mut found: Vec<&Sample> = kept.iter().filter(is_wanted).copied().collect();
        found.sort_by_key(|sample| std::cmp::Reverse(sample.at_ms));
        found.truncate(PINNED - there.len().min(PINNED));
        is_full &= there.len() + found.len() >= PINNED;
        let ids = found.iter().map(|sample| sample.id.clone()).collect();
        let mut copies = store.samples_with_texts(ids).await?;
        for (number, copy) in copies.iter_mut().enumerate() {
            copy.id = format!("{place}{:02}", there.len() + number);
            copy.alert = Some(alert.raised_at.clone());
        }
        if !copies.is_empty() {
            store.put_samples(copies).await?;
        }
    }
    Ok(is_full)
}

/// Whether a sample is from before or after the change, as `when` asks. The fields that no longer have a value decide,
/// together with the time; without such fields, the time alone does.
fn is_sample_of(alert: &Alert, sample: &Sample, when: &str) -> bool {
    let empty: Vec<&str> = alert
        .fields
        .iter()
        .filter(|fallen| fallen.sign == Sign::Empty)
        .map(|fallen| fallen.field.as_str())
        .collect();
    let at = iso_time(sample.at_ms);
    let has = |name: &&str| sample.fields.iter().any(|field| field == name);
    // The earliest time counts, because a store may pass pages that were saved together in another order.
    let after = alert.after.iter().map(|page| page.at.as_str());
    let changed_at = after.chain([alert.raised_at.as_str()]).min();
    match (when, empty.is_empty()) {
        ("before", true) => at < alert.raised_at,
        ("before", false) => empty.iter().all(has) && at < alert.raised_at,
        (_, true) => at >= alert.raised_at,
        (_, false) => !empty.iter().all(has) && Some(at.as_str()) >= changed_at,
    }
}
