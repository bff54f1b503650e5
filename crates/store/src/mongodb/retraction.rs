//! Handles fetches whose response turned out not to be the page: takes back their values from records, then replaces
//! the stored page. If this is repeated after a crash in between, each step takes effect only once.

use std::collections::HashMap;

use mongodb::bson::RawDocument;

use super::command::Db;
use super::fault::Fault;
use super::{pages, records};
use crate::error::StoreError;
use crate::page::Page;
use crate::record::FillRules;
use crate::site_clock::clamp_to_i64;
use crate::store::{Save, Saved};
use crate::timestamp::iso_time;

/// Replaces pages that turned out to be block pages; see [`Pages::take_back`](crate::Pages::take_back).
pub(super) async fn take_back(
    db: &Db,
    saves: &[Save],
    rules: &FillRules,
) -> Result<Vec<Result<Saved, StoreError>>, Fault> {
    let ids: Vec<String> = saves.iter().map(|save| save.page.id()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut stored = HashMap::with_capacity(ids.len());
    for page in db.find_by_ids("pages", &ids).await? {
        if let Ok(id) = page.get_str("_id") {
            stored.insert(id.to_owned(), page);
        }
    }
    let mut requests = Vec::new();
    for save in saves {
        let found = stored.get(&save.page.id());
        let Some(started_at) = found.and_then(|found| start_of_same_delivery(found, &save.page))
        else {
            continue;
        };
        requests.extend(save.records.iter().map(|record| records::RetractRequest {
            record: record.clone(),
            url: &save.page.url,
            started_at: started_at.clone(),
            at_ms: save.page.started_at_ms,
        }));
    }
    records::take_back(db, &requests, rules).await?;
    pages::save(db, saves, rules).await
}

/// The start time of the stored page's fetch, if it belongs to the same delivery as `page`.
fn start_of_same_delivery(stored: &RawDocument, page: &Page) -> Option<String> {
    let is = |name: &str, number: i64| {
        let found = stored.get(name).ok().flatten();
        let found = found.and_then(|found| found.as_i64().or(found.as_i32().map(i64::from)));
        found == Some(number)
    };
    let is_of_delivery = is("epoch", clamp_to_i64(page.delivery.epoch))
        && is("task", clamp_to_i64(page.task))
        && is("attempts", i64::from(page.delivery.number));
    let started_at = stored.get_datetime("started_at").ok()?;
    is_of_delivery.then(|| iso_time(started_at.timestamp_millis()))
}
