//! The stored states of sites in trouble (table `site_states`), and the parts of them that the queue of sites and the
//! dispatch need. [`backoff`](super::backoff) decides on changes. Only sites that are in trouble, or were recently,
//! have rows.

use rusqlite::{Connection, OptionalExtension, Result, Row};
use webfill_urls::Url;
use webfill_wire::{BackoffReason, Evidence};

use super::model::{SiteId, TaskId};
use crate::site_state::{Phase, SiteState};

/// A site's stored state, with the facts about its failures.
pub(super) struct StoredState {
    pub(super) state: SiteState,
    /// When the current series of failures began. The site's backoffs belong to this series.
    pub(super) since_ms: i64,
    /// The tasks that have failed in the current series of failures.
    pub(super) suspects: Vec<TaskId>,
}

/// Whether a robots.txt or a page of the site was ever read.
pub(super) fn has_answered(db: &Connection, site: SiteId) -> Result<bool> {
    let sql = "SELECT delay_ms NOT NULL FROM sites WHERE id = ?1";
    db.prepare_cached(sql)?.query_row([site], |row| row.get(0))
}

/// When the site's backoff ends; 0: the site does not back off.
pub(super) fn backoff_until_ms(db: &Connection, site: SiteId) -> Result<i64> {
    let sql = "SELECT backoff_until_ms FROM sites WHERE id = ?1";
    db.prepare_cached(sql)?.query_row([site], |row| row.get(0))
}

pub(super) fn site_name(db: &Connection, site: SiteId) -> Result<String> {
    let sql = "SELECT name FROM sites WHERE id = ?1";
    db.prepare_cached(sql)?.query_row([site], |row| row.get(0))
}

pub(super) fn read_state(row: &Row<'_>) -> Result<StoredState> {
    let unreachable_to: Option<i64> = row.get(3)?;
    let suspects: String = row.get(4)?;
    let until_ms: i64 = row.get(5)?;
    Ok(StoredState {
        state: SiteState {
            phase: phase_of(unreachable_to, until_ms),
            reason: read_reason(row, 0)?,
            failures: row.get(1)?,
            backoff_index: row.get(2)?,
        },
        since_ms: row.get(6)?,
        suspects: serde_json::from_str(&suspects).unwrap_or_default(),
    })
}

pub(super) fn read_reason(row: &Row<'_>, column: usize) -> Result<BackoffReason> {
    let reason: String = row.get(column)?;
    reason.parse().map_err(|error: String| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(column, kind, error.into())
    })
}
/// The phase, from two columns: the last task that ends as unreachable, and the end of the backoff.
pub(super) fn phase_of(unreachable_to: Option<i64>, until_ms: i64) -> Phase {
    match (unreachable_to, until_ms) {
        (Some(_), _) => Phase::Unreachable,
        (None, 0) => Phase::Open,
        (None, until_ms) => Phase::BackingOff { until_ms },
    }
}

pub(super) fn host_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    url.host_str().map(str::to_owned)
}

/// The host of the site's last failure.
pub(super) fn host_of_last_failure(db: &Connection, site: SiteId) -> Result<Option<String>> {
    let sql = "SELECT url FROM site_states WHERE site = ?1";
    let mut select = db.prepare_cached(sql)?;
    let url: Option<String> = select.query_row([site], |row| row.get(0)).optional()?;
    Ok(url.as_deref().and_then(host_of))
}

/// A site, as shown to operators.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteReport {
    pub id: SiteId,
    pub name: String,
    /// The number of queued tasks, of all crawls.
    pub queued: u64,
    /// No request is allowed before this time, by a rule set by hand; milliseconds since the epoch.
    pub blocked_until_ms: Option<i64>,
    pub trouble: Option<Trouble>,
}

/// Why a site is backing off or unreachable, or has failed recently.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    pub phase: Phase,
    pub reason: BackoffReason,
    /// When the current backoff, or series of failures, began.
    pub since_ms: i64,
    pub evidence: Evidence,
}

pub(super) const COLUMNS: &str =
    "sites.id, name, queued, block_until_ms, backoff_until_ms, reason, unreachable_to,
    since_ms, url, status_code, sign";

pub(super) fn read_report(row: &Row<'_>) -> Result<SiteReport> {
    let blocked_until_ms: i64 = row.get(3)?;
    let is_known = row.get_ref(5)? != rusqlite::types::ValueRef::Null;
    Ok(SiteReport {
        id: row.get(0)?,
        name: row.get(1)?,
        queued: row.get::<_, i64>(2)? as u64,
        blocked_until_ms: (blocked_until_ms > 0).then_some(blocked_until_ms),
        trouble: is_known.then(|| read_trouble(row)).transpose()?,
    })
}

pub(super) fn read_trouble(row: &Row<'_>) -> Result<Trouble> {
    let until_ms: i64 = row.get(4)?;
    let unreachable_to: Option<i64> = row.get(6)?;
    Ok(Trouble {
        phase: phase_of(unreachable_to, until_ms),
        reason: read_reason(row, 5)?,
        since_ms: row.get(7)?,
        evidence: Evidence {
            url: row.get(8)?,
            status_code: row.get(9)?,
            sign: row.get(10)?,
            no_route: false,
        },
    })
}

/// How healthy a site is, apart from its clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteHealth {
    /// Whether a robots.txt or a page of the site was ever read.
    pub has_answered: bool,
    /// Whether the site backs off, is unreachable or has failed recently.
    pub is_in_trouble: bool,
}

impl SiteHealth {
    pub fn is_healthy(self) -> bool {
        self.has_answered && !self.is_in_trouble
    }
}
