//! Counts the results of a crawl after its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use webfill_followers::row_lists;
use webfill_followers::run_changes;
use webfill_health::MappingHealth;
use webfill_mapping::MappingSet;
use webfill_service::signals::{self, SignalRequest};
use webfill_store::{
    CrawlId, FieldCounts, GoneMarking, Lists, Store, StoreError, check_and_mark_missing_rows,
};

use crate::health;
use crate::summary::{FieldsByMapping, Findings, ListCounts};

/// How often to check whether a stop was requested.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// Which results of a crawl to count after its end.
pub struct WantedFindings {
    /// The fields that mappings extract.
    pub fields: FieldsByMapping,
    /// The time since which changes of pages are counted, in milliseconds since the epoch. `None` if the crawl does not
    /// compare pages.
    pub changed_since_ms: Option<i64>,
    /// Whether any mapping reads complete lists, whose missing rows are marked as gone. If so, they are marked before
    /// counting.
    pub lists: bool,
}

/// Counts the results of the crawl in the store. `None` if the store fails, which is logged, or if a stop is requested
/// meanwhile.
pub fn count_findings(
    runtime: &Runtime,
    store: &Arc<dyn Store>,
    crawl: &CrawlId,
    wanted: WantedFindings,
) -> Option<Findings> {
    let counted = runtime.block_on(async {
        let mut counting = std::pin::pin!(load_findings(store, crawl, &wanted));
        loop {
            match tokio::time::timeout(POLL_EVERY, &mut counting).await {
                Ok(counted) => return Some(counted),
                Err(_) if signals::received_request() >= SignalRequest::Stop => return None,
                Err(_) => {}
            }
        }
    });
    match counted? {
        Ok(findings) => Some(Findings {
            fields: wanted.fields,
            ..findings
        }),
        Err(error) => {
            tracing::warn!(%error, "cannot count the results of the crawl");
            None
        }
    }
}

async fn load_findings(
    store: &Arc<dyn Store>,
    crawl: &CrawlId,
    wanted: &WantedFindings,
) -> Result<Findings, StoreError> {
    let counts = store.field_counts(crawl).await?;
    let before = match store.crawl_before(crawl).await? {
        Some(before) => {
            let counts = store.field_counts(&before).await?;
            Some((before.crawl_id, counts))
        }
        None => None,
    };
    let health = load_health(&**store, &counts).await?;
    let alerts = health.iter().filter_map(MappingHealth::alert);
    let warnings = health.iter().flat_map(MappingHealth::alternative_warnings);
    Ok(Findings {
        counts,
        before,
        alerts: alerts.cloned().collect(),
        warnings: warnings.cloned().collect(),
        of_run: match wanted.changed_since_ms {
            Some(since_ms) => Some(run_changes::load_results(&**store, crawl, since_ms).await?),
            None => None,
        },
        lists: match wanted.lists {
            true => Some(count_lists(store, crawl).await?),
            false => None,
        },
        ..Findings::default()
    })
}

async fn count_lists(store: &Arc<dyn Store>, crawl: &CrawlId) -> Result<ListCounts, StoreError> {
    let mut counts = ListCounts::default();
    let mut lists = Lists::new(store, crawl);
    while let Some(list) = lists.next().await? {
        let rows = check_and_mark_missing_rows(&**store, &list, GoneMarking::Believed).await?;
        row_lists::log_rows(&list, &rows);
        counts.add(&list, &rows);
    }
    Ok(counts)
}

/// The health of the mappings that have read pages of the crawl.
async fn load_health(
    store: &dyn Store,
    counts: &FieldCounts,
) -> Result<Vec<MappingHealth>, StoreError> {
    let mut health = health::load_health(store).await?;
    health.retain(|one| counts.mappings.contains_key(one.mapping()));
    Ok(health)
}

/// The names of the fields that each mapping extracts.
pub fn fields_by_mapping(mappings: &MappingSet) -> FieldsByMapping {
    let owned = |(mapping, fields): (&str, BTreeSet<&str>)| {
        let fields = fields.into_iter().map(str::to_owned).collect();
        (mapping.to_owned(), fields)
    };
    mappings
        .fields_by_mapping()
        .into_iter()
        .map(owned)
        .collect()
}
