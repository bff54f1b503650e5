//! A crawl: its progress, what it waits on, and its URLs by status.

use serde::Serialize;
use serde_json::{Value, json};
use webfill_store::{Change, ChangeListFilter, Count, Crawl, CrawlCounts, CrawlId, iso_time};
use webfill_wire::{Outcome, Reason};

use super::changes::row as change_row;
use super::reading::{part, store, within};
use super::words;
use crate::answer::{Problem, Shown};
use crate::visit::Visit;

/// Records are counted up to this number.
const COUNT_TO: u64 = 100_000;

/// Changes shown on the view of a crawl.
const CHANGES: u32 = 5;

/// The statuses of all found URLs, step by step.
#[derive(Debug, Default, Serialize)]
struct Funnel {
    found: u64,
    skipped: u64,
    reasons: Vec<Step>,
    queued: u64,
    leased: u64,
    done: u64,
    outcomes: Vec<Step>,
}

#[derive(Debug, Serialize)]
struct Step {
    name: &'static str,
    meaning: &'static str,
    count: u64,
    /// The percentage of all found URLs.
    share: f64,
    is_failure: bool,
}

struct Stored {
    crawl: Option<Crawl>,
    counts: CrawlCounts,
    changes: Vec<Change>,
}

pub(crate) async fn show(visit: &Visit, app: &str, crawl: &str) -> Shown {
    visit.needs_app(app)?;
    let id = CrawlId::new(app, crawl);
    let (fleet, read) = tokio::join!(fleet_status(visit, &id), stored(visit, &id));
    let (fleet, fleet_fault) = part(fleet);
    let fleet = fleet.flatten();
    let (read, store_fault) = part(read);
    let kept = read.as_ref().and_then(|read| read.crawl.as_ref());
    if fleet.is_none() && kept.is_none() && store_fault.is_none() {
        return Err(Problem::missing(format!(
            "unknown crawl {crawl} of application {app}: it may have been pruned"
        )));
    }
    let counts = match (&fleet, kept) {
        (Some(fleet), _) => fleet.clone(),
        (None, Some(kept)) => Value::Object(kept.counts.clone()),
        (None, None) => Value::Null,
    };
    let content = json!({
        "app": app, "crawl": crawl,
        "state": state_of(fleet.as_ref(), kept),
        "fleet": fleet, "fleet_fault": fleet_fault, "store_fault": store_fault,
        "funnel": funnel(&counts),
        "unmatched": counts["unmatched"],
        "rows": counts["rows"],
        "rows_stored": counts["rows_stored"],
        "kept": kept.map(crawl_json),
        "records": read.as_ref().map(|read| records_json(&read.counts)),
        "changes": read.iter().flat_map(|read| &read.changes).map(change_row).collect::<Vec<_>>(),
    });
    visit.page("crawl.html", &format!("Crawl {crawl}"), content)
}

/// The fleet's status of the crawl; `None` if the fleet has pruned it, or never had it.
async fn fleet_status(visit: &Visit, id: &CrawlId) -> Result<Option<Value>, Problem> {
    if visit.dashboard.fleet.is_none() {
        return Ok(None);
    }
    let question = json!({"action": "info", "appid": id.app_id, "crawlid": id.crawl_id});
    visit.ask(question).await.map(Some)
}

async fn stored(visit: &Visit, id: &CrawlId) -> Result<Stored, Problem> {
    let store = store(visit).await?;
    let filter = ChangeListFilter {
        crawl: Some(id.clone()),
        ..ChangeListFilter::default()
    };
    Ok(Stored {
        crawl: within(store.store.get_crawl(id)).await?,
        counts: within(store.browse.crawl_counts(id, COUNT_TO)).await?,
        changes: within(store.browse.changes(&filter, None, CHANGES))
            .await?
            .rows,
    })
}

fn state_of(fleet: Option<&Value>, kept: Option<&Crawl>) -> String {
    let fleet = fleet.and_then(|fleet| fleet["state"].as_str());
    let kept = kept.map(|kept| kept.state.as_str());
    fleet.or(kept).unwrap_or("unknown").to_owned()
}

fn crawl_json(crawl: &Crawl) -> Value {
    json!({
        "state": crawl.state.as_str(),
        "started_at_ms": crawl.started_at_ms,
        "updated_at_ms": crawl.updated_at_ms,
        "finished_at_ms": crawl.finished_at_ms,
        "request": format!("{:#}", crawl.request),
        "pages": crawl.counts.get("pages"),
        "bytes": crawl.counts.get("bytes"),
        "fields": crawl.counts.get("fields"),
        "sites": crawl.counts.get("sites"),
        "at": iso_time(crawl.updated_at_ms),
    })
}

/// `None` for a crawl without a dataset.
fn records_json(counts: &CrawlCounts) -> Option<Value> {
    let Count {
        counted: total,
        is_more,
    } = counts.records;
    let resolved = counts.resolved;
    (total > 0).then(|| {
        json!({
            "total": total, "is_more": is_more,
            "resolved": resolved.counted,
            "resolved_is_more": resolved.is_more,
            "open": (!is_more).then(|| total.saturating_sub(resolved.counted)),
        })
    })
}

/// The fleet and the store use the same names for counters, except for the queue.
fn funnel(counts: &Value) -> Funnel {
    let of = |name: &str| counts[name].as_u64();
    let named = |name: &str| counts[name].as_object().into_iter().flatten();
    let queued = of("total_pending").or(of("queued")).unwrap_or_default();
    let (leased, done) = (
        of("leased").unwrap_or_default(),
        of("done").unwrap_or_default(),
    );
    let skipped: u64 = named("skipped")
        .filter_map(|(_, count)| count.as_u64())
        .sum();
    let found = skipped + queued + leased + done;
    let share = |count: u64| 100.0 * count as f64 / found.max(1) as f64;
    let outcomes = named("outcomes").filter_map(|(name, count)| {
        let outcome: Outcome = name.parse().ok()?;
        Some(Step {
            name: outcome.as_str(),
            meaning: outcome.in_words(),
            count: count.as_u64()?,
            share: share(count.as_u64()?),
            is_failure: outcome.is_failure(),
        })
    });
    let reasons = named("skipped").filter_map(|(name, count)| {
        let reason: Reason = name.parse().ok()?;
        Some(Step {
            name: reason.as_str(),
            meaning: words::of_reason(reason),
            count: count.as_u64()?,
            share: share(count.as_u64()?),
            is_failure: false,
        })
    });
    Funnel {
        found,
        skipped,
        reasons: largest_first(reasons),
        queued,
        leased,
        done,
        outcomes: largest_first(outcomes),
    }
}

fn largest_first(steps: impl Iterator<Item = Step>) -> Vec<Step> {
    let mut steps: Vec<Step> = steps.filter(|step| step.count > 0).collect();
    steps.sort_by_key(|step| std::cmp::Reverse(step.count));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_found_is_in_the_funnel_once() {
        let counts = json!({
            "total_pending": 4, "leased": 1, "done": 15,
            "outcomes": {"ok": 5, "http_error": 10, "timeout": 0, "unheard_of": 3},
            "skipped": {"too_deep": 20, "duplicate": 60},
        });
        let funnel = funnel(&counts);
        assert_eq!((funnel.found, funnel.skipped, funnel.queued), (100, 80, 4));
        let names = |steps: &[Step]| steps.iter().map(|step| step.name).collect::<Vec<_>>();
        assert_eq!(names(&funnel.outcomes), ["http_error", "ok"]);
        assert_eq!(names(&funnel.reasons), ["duplicate", "too_deep"]);
        assert_eq!(funnel.outcomes[0].share, 10.0);
        assert!(funnel.outcomes[0].is_failure && !funnel.outcomes[1].is_failure);
    }

    #[test]
    fn a_crawl_without_counters_has_an_empty_funnel() {
        let funnel = funnel(&Value::Null);
        assert_eq!((funnel.found, funnel.outcomes.len()), (0, 0));
    }
}
