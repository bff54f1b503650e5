//! The data of the overview: read once, by the dashboard itself, for all visitors. Visitors with fewer rights see
//! less of it ([`Snapshot::limited_to`]).
//!
//! Data are read only if a visitor or the [history](crate::history) needs them. Each part has its own interval between
//! readings ([`Paced`]). If a part cannot be read, its last state is shown, with the reason.

mod reading;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use webfill_health::MappingHealth;
use webfill_store::{
    Browse, Crawl, CrawlFilter, CrawlId, CrawlState, HealthState, LAPSES_AFTER, SiteState, Store,
    StoreError,
};
use webfill_wire::Outcome;
use webfill_wire::keys::Rights;

pub(crate) use self::reading::records_at_end;
use crate::answer::Problem;
use crate::crawl_claims::CrawlClaims;
use crate::extractions::{describe_lost_fields, verdict};
use crate::fleet::Visitor;
use crate::paced::Paced;

/// How many sites in trouble are shown.
const MOST_SITES: usize = 12;

/// How many sites are named for each reason of trouble.
const MOST_NAMES: usize = 3;

/// How many crawls are read from the store, the latest first.
const MOST_CRAWLS: u32 = 100;

/// How many crawls are shown, and how many unfinished ones have their progress recorded.
const MOST_LATEST: usize = 8;
const MOST_RUNS: usize = 8;

const STATUS_EVERY: Duration = Duration::from_secs(2);
const LISTS_EVERY: Duration = Duration::from_secs(10);
const STORE_EVERY: Duration = Duration::from_secs(30);

/// How long to wait before the store is read again after a failure.
const FAULT_FOR: Duration = Duration::from_secs(2);

/// How long a page waits for the store. The result of a slower reading is shown at the next visit.
const STORE_WITHIN: Duration = Duration::from_millis(100);

/// Everything that the overview shows, as of one moment.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Snapshot {
    /// The number of the snapshot. Later snapshots have greater numbers.
    pub(crate) number: u64,
    pub(crate) at_ms: i64,
    /// The fleet's answer to `status`; null without a fleet.
    pub(crate) status: Value,
    /// Why the status is not the present one; `None` if it is.
    pub(crate) fault: Option<String>,
    pub(crate) sites: Option<Sites>,
    /// The watches (crawls that are repeated to find changes), as the fleet lists them.
    pub(crate) watches: Vec<Value>,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) records: Option<Records>,
    /// The crawls of the store; `None` before it was read.
    pub(crate) crawls: Option<Crawls>,
    /// The tables with open doubts: name, and number of doubts.
    pub(crate) doubts: Vec<(String, usize)>,
    /// Why data of the store are missing; `None` if they are not.
    pub(crate) store_fault: Option<String>,
}

/// The sites in trouble.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Sites {
    /// The sites in trouble, grouped by the reason.
    pub(crate) by_reason: BTreeMap<String, SitesByReason>,
    pub(crate) examined: usize,
    pub(crate) is_more: bool,
    /// The sites in trouble that have the most tasks.
    pub(crate) first: Vec<Value>,
}

/// The sites that are in trouble for one reason.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct SitesByReason {
    pub(crate) count: u64,
    /// How many URLs of these sites are queued, in total.
    pub(crate) queued: u64,
    /// When the first of these sites got into trouble, in seconds since 1970.
    pub(crate) since: Option<f64>,
    /// The names of the sites with the most tasks.
    pub(crate) names: Vec<String>,
    /// A description of the evidence of trouble that one of these sites has given.
    pub(crate) sign: Option<String>,
}

/// The health of a mapping.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Mapping {
    pub(crate) name: String,
    /// The health in a few words; see [`crate::extractions::verdict`].
    pub(crate) state: &'static str,
    /// A sentence about fields that have yielded nothing on the last pages, and how sure that is.
    pub(crate) doubt: Option<String>,
    pub(crate) pages: u64,
    pub(crate) last_at: String,
    /// The text of the current alert.
    pub(crate) alert: Option<String>,
    pub(crate) since: Option<String>,
}

/// The records of the latest crawls, by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Records {
    pub(crate) resolved: u64,
    /// Records with missing fields in crawls that are still running.
    pub(crate) open: u64,
    /// Records with missing fields in crawls that have ended.
    pub(crate) exhausted: u64,
}

/// The latest crawls of the store, and sums over all crawls that were read.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Crawls {
    #[serde(skip)]
    pub(crate) read_at_ms: i64,
    pub(crate) latest: Vec<Value>,
    pub(crate) queued: u64,
    pub(crate) leased: u64,
    pub(crate) pages: u64,
    pub(crate) bytes: u64,
    pub(crate) ended: BTreeMap<String, u64>,
    /// The progress of each unfinished crawl, by `APP/CRAWL`.
    #[serde(skip)]
    pub(crate) runs: BTreeMap<String, CrawlCounters>,
    /// When the first unfinished crawl began.
    pub(crate) running_since_ms: Option<i64>,
    /// Unfinished crawls whose process has died or hangs.
    pub(crate) silent: Vec<SilentCrawl>,
    /// Whether there is an unfinished crawl whose process is not yet known to be alive or dead.
    pub(crate) has_unknown_process: bool,
}

/// An unfinished crawl whose process has stopped renewing its claim to the crawl.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SilentCrawl {
    pub(crate) app: String,
    pub(crate) crawl: String,
    /// When the process last renewed its claim, as noticed by the dashboard, in milliseconds since 1970.
    pub(crate) since_ms: i64,
}

impl Crawls {
    /// When the process of an unfinished crawl last renewed its claim. `None` if the process is alive, or if that is
    /// unknown.
    pub(crate) fn silent_since(&self, id: &CrawlId) -> Option<i64> {
        let mut silent = self.silent.iter();
        let found = silent.find(|one| (&one.app, &one.crawl) == (&id.app_id, &id.crawl_id));
        found.map(|one| one.since_ms)
    }
}

/// The counters of one crawl, which show its progress.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CrawlCounters {
    /// When the crawl stored these counters, in seconds since 1970.
    pub(crate) at_s: i64,
    pub(crate) began_s: i64,
    pub(crate) ended: BTreeMap<String, u64>,
    pub(crate) resolved: u64,
    pub(crate) queued: u64,
}

/// The last snapshot of the overview, and the last readings of its parts.
pub(crate) struct Snapshots {
    last: tokio::sync::Mutex<LastReadings>,
    /// The last reading of the store. It has its own lock, because reading may be slow.
    store: Mutex<StoreReading>,
}

/// For each crawl, by its name and state: its numbers of resolved and open records.
type CountsByCrawl = BTreeMap<String, (u64, u64)>;

/// What the next reading of the store needs from the previous one.
#[derive(Default)]
struct KnownCrawls {
    counted: CountsByCrawl,
    claims: CrawlClaims,
}

struct StoreReading {
    answer: Paced<Result<StoreLists, String>>,
    known: KnownCrawls,
    is_under_way: bool,
    /// The number of readings so far.
    number: u64,
}

struct LastReadings {
    number: u64,
    at_ms: i64,
    status: Paced<Result<Value, String>>,
    /// The last status that the fleet has given.
    known_status: Value,
    sites: Paced<Option<Sites>>,
    watches: Paced<Vec<Value>>,
    doubts: Paced<Vec<(String, usize)>>,
    /// The number of the reading of the store that the present snapshot contains.
    store_number: u64,
    shown: Arc<Snapshot>,
}

#[derive(Debug, Clone, Default)]
struct StoreLists {
    mappings: Vec<Mapping>,
    records: Records,
    crawls: Crawls,
    /// The sites in trouble as stored; `None` if a fleet reports them instead.
    sites: Option<Sites>,
}

impl Default for Snapshots {
    fn default() -> Snapshots {
        Snapshots {
            last: tokio::sync::Mutex::new(LastReadings {
                number: 0,
                at_ms: 0,
                status: Paced::with_interval(STATUS_EVERY),
                known_status: Value::Null,
                sites: Paced::with_interval(LISTS_EVERY),
                watches: Paced::with_interval(LISTS_EVERY),
                doubts: Paced::with_interval(LISTS_EVERY),
                store_number: 0,
                shown: Arc::default(),
            }),
            store: Mutex::new(StoreReading {
                answer: Paced::with_interval(STORE_EVERY),
                known: KnownCrawls::default(),
                is_under_way: false,
                number: 0,
            }),
        }
    }
}

impl StoreReading {
    /// Marks the store as being read, if a reading is due. Returns the facts about crawls that earlier readings have
    /// found.
    fn begin_if_due(&mut self) -> Option<KnownCrawls> {
        if self.is_under_way || !self.answer.is_due(Instant::now()) {
            return None;
        }
        self.is_under_way = true;
        Some(std::mem::take(&mut self.known))
    }
}

impl Snapshots {
    fn lock_store_reading(&self) -> MutexGuard<'_, StoreReading> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastReadings {
    fn build_snapshot(&self, stored: Option<&Result<StoreLists, String>>) -> Snapshot {
        let found = stored.and_then(|read| read.as_ref().ok());
        Snapshot {
            number: self.number,
            at_ms: self.at_ms,
            status: self.known_status.clone(),
            fault: self
                .status
                .get()
                .and_then(|answer| answer.as_ref().err().cloned()),
            // Without a fleet, the sites in trouble are those that were last written to the store.
            sites: match self.sites.get() {
                Some(sites) => sites.clone(),
                None => found.and_then(|found| found.sites.clone()),
            },
            watches: self.watches.get().cloned().unwrap_or_default(),
            mappings: found
                .map(|found| found.mappings.clone())
                .unwrap_or_default(),
            records: found.map(|found| found.records),
            crawls: found.map(|found| found.crawls.clone()),
            doubts: self.doubts.get().cloned().unwrap_or_default(),
            store_fault: stored.and_then(|read| read.as_ref().err().cloned()),
        }
    }
}

fn mapping_from_health(health: &MappingHealth) -> Mapping {
    let report = health.report();
    let alert = health.alert();
    Mapping {
        name: health.mapping().to_owned(),
        state: verdict(&report, alert.is_some()),
        doubt: describe_lost_fields(&report),
        pages: report["pages"].as_u64().unwrap_or(0),
        last_at: report["last_at"].as_str().unwrap_or_default().to_owned(),
        alert: alert.map(|alert| alert.text()),
        since: alert.map(|alert| alert.raised_at.clone()),
    }
}

/// Describes the evidence that a site is in trouble. The system's error number is left out, and a status code replaces
/// the name of an outcome.
fn describe_evidence(evidence: &Value) -> Option<String> {
    let sign = evidence["sign"].as_str()?;
    let status = evidence["status_code"].as_u64();
    let status = status.filter(|_| sign.parse::<Outcome>().is_ok());
    let words = sign.split(" (os error ").next().unwrap_or(sign);
    Some(status.map_or_else(|| words.to_owned(), |status| format!("status {status}")))
}

pub(crate) fn sites_in_trouble(listed: &[Value], is_more: bool) -> Sites {
    let mut sites = Sites {
        examined: listed.len(),
        is_more,
        ..Sites::default()
    };
    let mut first: Vec<&Value> = listed.iter().collect();
    first.sort_by_key(|site| std::cmp::Reverse(site["queued"].as_u64()));
    for site in &first {
        let reason = site["reason"].as_str().unwrap_or("unknown");
        let of = sites.by_reason.entry(reason.to_owned()).or_default();
        if of.count == 0 {
            of.sign = describe_evidence(&site["evidence"]);
        }
        of.count += 1;
        of.queued += site["queued"].as_u64().unwrap_or_default();
        if let Some(since) = site["since"].as_f64() {
            of.since = Some(of.since.map_or(since, |first| first.min(since)));
        }
        if of.names.len() < MOST_NAMES {
            of.names
                .push(site["site"].as_str().unwrap_or("?").to_owned());
        }
    }
    sites.first = first.into_iter().take(MOST_SITES).cloned().collect();
    sites
}

impl Snapshot {
    /// The snapshot for a visitor whose rights are limited to some applications: only the crawls and watches of these.
    pub(crate) fn limited_to(&self, rights: &Rights) -> Snapshot {
        let of = |list: &Value, key: &str| -> Vec<Value> {
            let list = list.as_array().into_iter().flatten();
            let own =
                list.filter(|one| one[key].as_str().is_some_and(|app| rights.permits_app(app)));
            own.cloned().collect()
        };
        Snapshot {
            number: self.number,
            at_ms: self.at_ms,
            status: match self.status.is_null() {
                true => Value::Null,
                false => json!({"unfinished": of(&self.status["unfinished"], "appid")}),
            },
            fault: self.fault.clone(),
            watches: of(&Value::Array(self.watches.clone()), "app"),
            store_fault: self.store_fault.clone(),
            ..Snapshot::default()
        }
    }
}

pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}
