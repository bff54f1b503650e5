//! A crawl: its progress, what it waits on, and its URLs by status.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use webfill_store::{
    BrowseHandles, Change, ChangeListFilter, Count, Crawl, CrawlCounts, CrawlId, CrawlState,
    PageFilter, PageRow, iso_time,
};
use webfill_wire::{Outcome, Reason};

use super::changes::change_row;
use super::reading::{data_or_fault, open_store, with_time_limit};
use super::{overview, words};
use crate::answer::{Problem, Shown};
use crate::history::{self, RecordCounts, Sample};
use crate::snapshot::records_at_end;
use crate::templates::percent_encode;
use crate::visit::Visit;

/// Records are counted up to this number, so that counting does not take long.
const COUNT_TO: u64 = 100_000;

/// How many changes are shown in the view of a crawl.
const CHANGES: u32 = 5;

/// The states of a crawl that has ended.
const ENDED: [&str; 4] = ["stopped", "expired", "finished", "limit_reached"];

/// How many of the last failed pages are read, how many groups of them are shown, and how many URLs of each group.
const FAILURES: u32 = 300;
const MOST_GROUPS: usize = 30;
const SAMPLES: usize = 3;

/// How many of the URLs that a crawl has found have reached each stage of the crawl.
#[derive(Debug, Default, Serialize)]
struct Funnel {
    found: u64,
    skipped: u64,
    reasons: Vec<Step>,
    /// URLs that became tasks.
    wanted: u64,
    queued: u64,
    leased: u64,
    done: u64,
    /// URLs whose pages were fetched, or had not changed.
    pages: u64,
    outcomes: Vec<Step>,
}

#[derive(Debug, Serialize)]
struct Step {
    name: &'static str,
    meaning: &'static str,
    count: u64,
    /// The percentage of all ended tasks, or of all skipped URLs.
    share: f64,
    is_failure: bool,
    /// The group of the outcome, which determines its colour.
    group: &'static str,
}

/// A group of failed pages: those of one site that failed for the same reason.
#[derive(Debug, PartialEq, Serialize)]
struct Failures {
    site: String,
    outcome: &'static str,
    meaning: &'static str,
    group: &'static str,
    status_code: Option<u16>,
    count: usize,
    samples: Vec<Value>,
}

struct StoredCrawl {
    crawl: Option<Crawl>,
    records: Value,
    changes: Vec<Change>,
    failures: Vec<PageRow>,
}

pub(crate) async fn show(visit: &Visit, app: &str, crawl: &str) -> Shown {
    let mut content = load_content(visit, app, crawl).await?;
    if visit.has_store() {
        let base = format!(
            "/dashboard/crawl/{}/{}",
            percent_encode(app),
            percent_encode(crawl)
        );
        content["charts"] = overview::chart_choice(visit, &format!("{base}/charts"));
    }
    visit.render_page("crawl.html", &format!("Crawl {crawl}"), content)
}

/// The part of the page that a script keeps up to date.
pub(crate) async fn render_live_part(
    visit: &Visit,
    app: &str,
    crawl: &str,
) -> Result<String, Problem> {
    let content = load_content(visit, app, crawl).await?;
    let templates = &visit.dashboard.templates;
    Ok(crate::templates::render(templates, "run.html", content))
}

/// The data of the crawl's charts.
pub(crate) async fn show_charts(visit: &Visit, app: &str, crawl: &str) -> Shown {
    visit.require_app(app)?;
    let (store, id) = (open_store(visit).await?, CrawlId::new(app, crawl));
    let kept = with_time_limit(store.store.get_crawl(&id)).await?;
    let (began_ms, ended_ms) = match &kept {
        Some(kept) => (Some(kept.started_at_ms), kept.finished_at_ms),
        None => (None, None),
    };
    let records = load_record_counts(visit, &store, &id, kept.as_ref()).await?;
    let totals = kept
        .as_ref()
        .map(|kept| sample_of_whole_run(kept, &records));
    let name = id.to_string();
    let is_whole = overview::requested_span(visit) == 0;
    let reduce = |samples: Vec<Sample>| {
        let own = samples
            .iter()
            .filter_map(|sample| sample.sample_of_run(&name));
        let mut own: Vec<Sample> = own.collect();
        if let Some(totals) = totals.clone().filter(|_| is_whole) {
            history::complete_run(&mut own, totals);
        }
        own
    };
    Ok(overview::chart_data(visit, began_ms, ended_ms, reduce))
}

/// The whole progress of a crawl as one sample, from its counters in the store.
fn sample_of_whole_run(kept: &Crawl, records: &Value) -> Sample {
    let at_ms = kept.finished_at_ms.unwrap_or(kept.updated_at_ms);
    let (at, began) = (
        at_ms.div_euclid(1_000),
        kept.started_at_ms.div_euclid(1_000),
    );
    let ended = kept.counts.get("outcomes").and_then(Value::as_object);
    let ended = ended.into_iter().flatten();
    Sample {
        at,
        over: at - began,
        queued: kept
            .counts
            .get("queued")
            .and_then(Value::as_u64)
            .unwrap_or(0),
        ended: ended
            .filter_map(|(outcome, count)| Some((outcome.clone(), count.as_u64()?)))
            .collect(),
        records: records["resolved"].as_u64().map(|resolved| RecordCounts {
            resolved,
            ..RecordCounts::default()
        }),
        ..Sample::default()
    }
}

async fn load_content(visit: &Visit, app: &str, crawl: &str) -> Result<Value, Problem> {
    visit.require_app(app)?;
    let id = CrawlId::new(app, crawl);
    let (fleet, read) = tokio::join!(fleet_status(visit, &id), load_stored(visit, &id));
    let (fleet, fleet_fault) = data_or_fault(fleet);
    let fleet = fleet.flatten();
    let (read, store_fault) = data_or_fault(read);
    let kept = read.as_ref().and_then(|read| read.crawl.as_ref());
    if fleet.is_none() && kept.is_none() && store_fault.is_none() {
        return Err(Problem::not_found(format!(
            "unknown crawl {crawl} of application {app}: it may have been pruned"
        )));
    }
    let counts = match (&fleet, kept) {
        (Some(fleet), _) => fleet.clone(),
        (None, Some(kept)) => Value::Object(kept.counts.clone()),
        (None, None) => Value::Null,
    };
    let silent_since_ms = match (&fleet, kept) {
        (None, Some(kept)) => silent_since(visit, kept).await,
        _ => None,
    };
    let state = match silent_since_ms {
        Some(_) => CrawlState::Interrupted.as_str().to_owned(),
        None => current_state(fleet.as_ref(), kept),
    };
    let failures = read.as_ref().map(|read| read.failures.as_slice());
    let failures = failures.unwrap_or_default();
    let mut content = json!({
        "app": app, "crawl": crawl,
        "is_over": ENDED.contains(&state.as_str()),
        "state": state, "silent_since_ms": silent_since_ms,
        "fleet": fleet, "fleet_fault": fleet_fault, "store_fault": store_fault,
        "funnel": funnel_from_counts(&counts),
        "unmatched": counts["unmatched"],
        "rows": counts["rows"],
        "rows_stored": counts["rows_stored"],
        "kept": kept.map(crawl_json),
        "records": read.as_ref().map(|read| &read.records),
        "failures": group_failures(failures),
        "failures_read": failures.len(),
        "has_more_failures": failures.len() == FAILURES as usize,
        "changes": read.iter().flat_map(|read| &read.changes).map(change_row).collect::<Vec<_>>(),
    });
    // A script requests this part alone. Its forms must still lead back to the whole page.
    content["dashboard"] = json!({
        "form_token": visit.form_token, "can_change": visit.can_change(), "has_fleet": visit.has_fleet(),
        "here": format!("/dashboard/crawl/{}/{}", percent_encode(app), percent_encode(crawl)),
        "is_bound": visit.visitor.rights.is_limited_to_apps(),
    });
    Ok(content)
}

/// The fleet's status of the crawl; `None` without a fleet.
async fn fleet_status(visit: &Visit, id: &CrawlId) -> Result<Option<Value>, Problem> {
    if visit.dashboard.fleet.is_none() {
        return Ok(None);
    }
    let question = json!({"action": "info", "appid": id.app_id, "crawlid": id.crawl_id});
    visit.run_action(question).await.map(Some)
}

async fn load_stored(visit: &Visit, id: &CrawlId) -> Result<StoredCrawl, Problem> {
    let store = open_store(visit).await?;
    let changes = ChangeListFilter {
        crawl: Some(id.clone()),
        ..ChangeListFilter::default()
    };
    let failed = Outcome::ALL.iter().copied();
    let failures = PageFilter {
        crawl: Some(id.clone()),
        outcomes: failed.filter(|outcome| outcome.is_failure()).collect(),
        ..PageFilter::default()
    };
    let crawl = with_time_limit(store.store.get_crawl(id)).await?;
    let records = load_record_counts(visit, &store, id, crawl.as_ref()).await?;
    Ok(StoredCrawl {
        records,
        crawl,
        changes: with_time_limit(store.browse.changes(&changes, None, CHANGES))
            .await?
            .rows,
        failures: with_time_limit(store.browse.pages(&failures, None, FAILURES))
            .await?
            .rows,
    })
}

/// The numbers of a crawl's records: those stored when it ended, or else the present ones. Null if it has no dataset.
async fn load_record_counts(
    visit: &Visit,
    store: &BrowseHandles,
    id: &CrawlId,
    crawl: Option<&Crawl>,
) -> Result<Value, Problem> {
    let at_end = crawl.and_then(records_at_end);
    let counted = match at_end {
        Some(at_end) => Some(at_end),
        None => {
            let snapshot = visit.dashboard.snapshot().await;
            let latest = snapshot.crawls.iter().flat_map(|crawls| &crawls.latest);
            let mut own =
                latest.filter(|one| one["appid"] == *id.app_id && one["crawlid"] == *id.crawl_id);
            own.next().map(|one| one["records"].clone())
        }
    };
    match counted {
        Some(counted) => Ok(match counted["total"].as_u64() {
            Some(0) | None => Value::Null,
            Some(_) => counted,
        }),
        None => {
            let counts = with_time_limit(store.browse.crawl_counts(id, COUNT_TO)).await?;
            Ok(json!(records_json(&counts)))
        }
    }
}

/// Groups failed pages by site and cause. The largest groups come first.
fn group_failures(failures: &[PageRow]) -> Vec<Failures> {
    let mut groups: BTreeMap<(&str, &str, Option<u16>), Vec<&PageRow>> = BTreeMap::new();
    for page in failures {
        let key = (page.site.as_str(), page.outcome.as_str(), page.status_code);
        groups.entry(key).or_default().push(page);
    }
    let of_group = |pages: &Vec<&PageRow>| {
        let first = pages.first()?;
        let samples = pages.iter().take(SAMPLES);
        Some(Failures {
            site: first.site.clone(),
            outcome: first.outcome.as_str(),
            meaning: first.outcome.meaning(),
            group: words::outcome_group(first.outcome),
            status_code: first.status_code,
            count: pages.len(),
            samples: samples
                .map(|page| json!({"id": page.id, "url": page.url}))
                .collect(),
        })
    };
    let mut all: Vec<Failures> = groups.values().filter_map(of_group).collect();
    all.sort_by_key(|group| std::cmp::Reverse(group.count));
    all.truncate(MOST_GROUPS);
    all
}

/// When the process of an unfinished crawl last renewed its claim. `None` if the process is alive, or if that is
/// unknown.
async fn silent_since(visit: &Visit, kept: &Crawl) -> Option<i64> {
    let is_running = matches!(kept.state, CrawlState::Running | CrawlState::Paused);
    let snapshot = visit.dashboard.snapshot().await;
    let crawls = snapshot.crawls.as_ref().filter(|_| is_running)?;
    crawls.silent_since(&kept.id)
}

fn current_state(fleet: Option<&Value>, kept: Option<&Crawl>) -> String {
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

/// The numbers of records as JSON; `None` if the crawl has no dataset.
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

/// How many URLs have reached each stage of the crawl, from the counters of the fleet or of the store. Both use the
/// same names, except for the queue.
fn funnel_from_counts(counts: &Value) -> Funnel {
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
    let share = |count: u64, of: u64| 100.0 * count as f64 / of.max(1) as f64;
    let ended: u64 = named("outcomes")
        .filter_map(|(_, count)| count.as_u64())
        .sum();
    let outcomes = named("outcomes").filter_map(|(name, count)| {
        let outcome: Outcome = name.parse().ok()?;
        Some(Step {
            name: outcome.as_str(),
            meaning: outcome.meaning(),
            count: count.as_u64()?,
            share: share(count.as_u64()?, ended),
            is_failure: outcome.is_failure(),
            group: words::outcome_group(outcome),
        })
    });
    let reasons = named("skipped").filter_map(|(name, count)| {
        let reason: Reason = name.parse().ok()?;
        Some(Step {
            name: reason.as_str(),
            meaning: words::describe_skip_reason(reason),
            count: count.as_u64()?,
            share: share(count.as_u64()?, skipped),
            is_failure: false,
            group: "refused",
        })
    });
    let outcomes = sort_largest_first(outcomes);
    let is_page = |step: &&Step| step.name.parse::<Outcome>().is_ok_and(Outcome::is_page);
    Funnel {
        found,
        wanted: queued + leased + done,
        pages: outcomes.iter().filter(is_page).map(|step| step.count).sum(),
        skipped,
        reasons: sort_largest_first(reasons),
        queued,
        leased,
        done,
        outcomes,
    }
}

fn sort_largest_first(steps: impl Iterator<Item = Step>) -> Vec<Step> {
    let mut steps: Vec<Step> = steps.filter(|step| step.count > 0).collect();
    steps.sort_by_key(|step| std::cmp::Reverse(step.count));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_found_url_is_in_the_funnel_once() {
        let counts = json!({
            "total_pending": 4, "leased": 1, "done": 15,
            "outcomes": {"ok": 5, "http_error": 10, "timeout": 0, "unheard_of": 3},
            "skipped": {"too_deep": 20, "duplicate": 60},
        });
        let funnel = funnel_from_counts(&counts);
        assert_eq!((funnel.found, funnel.skipped, funnel.queued), (100, 80, 4));
        let names = |steps: &[Step]| steps.iter().map(|step| step.name).collect::<Vec<_>>();
        assert_eq!(names(&funnel.outcomes), ["http_error", "ok"]);
        assert_eq!(names(&funnel.reasons), ["duplicate", "too_deep"]);
        let shares = |steps: &[Step]| steps.iter().map(|step| step.share).collect::<Vec<_>>();
        assert_eq!(shares(&funnel.reasons), [75.0, 25.0], "of what was skipped");
        assert_eq!(funnel.outcomes[0].share.round(), 56.0, "of 18 that ended");
        assert_eq!((funnel.wanted, funnel.pages), (20, 5));
        assert!(funnel.outcomes[0].is_failure && !funnel.outcomes[1].is_failure);
    }

    #[test]
    fn failures_are_grouped_by_site_and_cause() {
        let page = |site: &str, outcome, status_code, number: u32| PageRow {
            id: format!("a/c/{number}"),
            app_id: "a".into(),
            crawl_id: "c".into(),
            url: format!("http://{site}/{number}"),
            final_url: None,
            site: site.into(),
            depth: 0,
            parent: None,
            outcome,
            status_code,
            mapping: None,
            content_type: None,
            bytes: 0,
            started_at_ms: 0,
            elapsed_ms: 0,
            attempts: 1,
        };
        let mut failed = vec![page("b.org", Outcome::DnsError, None, 0)];
        failed.extend((1..6).map(|n| page("a.org", Outcome::HttpError, Some(404), n)));
        failed.push(page("a.org", Outcome::HttpError, Some(500), 6));
        let groups = group_failures(&failed);
        let reported: Vec<_> = groups
            .iter()
            .map(|group| (group.site.as_str(), group.status_code, group.count))
            .collect();
        assert_eq!(reported[0], ("a.org", Some(404), 5));
        assert_eq!(reported.len(), 3);
        assert_eq!(groups[0].samples.len(), SAMPLES);
        assert_eq!(groups[0].group, "error");
    }

    #[test]
    fn a_crawl_without_counters_has_an_empty_funnel() {
        let funnel = funnel_from_counts(&Value::Null);
        assert_eq!((funnel.found, funnel.outcomes.len()), (0, 0));
    }
}
