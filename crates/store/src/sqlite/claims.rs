//! The table `claims`.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};

use super::Sqlite;
use super::columns::parse_time;
use super::fault::Fault;
use crate::claim::CrawlClaim;
use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::store::Claims;
use crate::timestamp::iso_time;

const UPSERT: &str = "
INSERT INTO claims (_id, owner, folder, holder, since, beat) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (_id) DO UPDATE SET owner = excluded.owner, folder = excluded.folder,
    holder = excluded.holder, since = excluded.since, beat = excluded.beat";

/// Stores a process's claim to run a crawl. If another claim is in force, returns that one instead. Must be run in a
/// transaction.
pub(super) fn try_claim(
    conn: &Connection,
    claim: &CrawlClaim,
    watched: Option<&CrawlClaim>,
) -> Result<Option<CrawlClaim>, Fault> {
    if let Some(stored) = find(conn, &claim.crawl)?
        && !claim.may_replace(&stored, watched)
    {
        return Ok(Some(stored));
    }
    conn.prepare_cached(UPSERT)?.execute(params![
        claim.crawl.to_string(),
        claim.owner,
        claim.folder,
        claim.holder,
        iso_time(claim.since_ms),
        claim.beat,
    ])?;
    Ok(None)
}

/// Renews a process's claim to run a crawl. Returns false if another process has taken the claim over.
pub(super) fn renew(conn: &Connection, claim: &CrawlClaim) -> Result<bool, Fault> {
    let renewed = conn
        .prepare_cached("UPDATE claims SET beat = ?3 WHERE _id = ?1 AND owner = ?2")?
        .execute(params![claim.crawl.to_string(), claim.owner, claim.beat])?;
    Ok(renewed > 0)
}

/// Removes a process's claim to run a crawl, unless another process has taken it over.
pub(super) fn release(conn: &Connection, claim: &CrawlClaim) -> Result<(), Fault> {
    conn.prepare_cached("DELETE FROM claims WHERE _id = ?1 AND owner = ?2")?
        .execute(params![claim.crawl.to_string(), claim.owner])?;
    Ok(())
}

/// The claim of the process that runs a crawl.
pub(super) fn find(conn: &Connection, crawl: &CrawlId) -> Result<Option<CrawlClaim>, Fault> {
    let sql = "SELECT owner, folder, holder, since, beat FROM claims WHERE _id = ?1";
    let row = conn
        .prepare_cached(sql)?
        .query_row([crawl.to_string()], |row| {
            let since: String = row.get(3)?;
            let claim = CrawlClaim {
                crawl: crawl.clone(),
                owner: row.get(0)?,
                folder: row.get(1)?,
                holder: row.get(2)?,
                since_ms: 0,
                beat: row.get(4)?,
            };
            Ok((claim, since))
        })
        .optional()?;
    let Some((claim, since)) = row else {
        return Ok(None);
    };
    Ok(Some(CrawlClaim {
        since_ms: parse_time(&since)?,
        ..claim
    }))
}

#[async_trait]
impl Claims for Sqlite {
    async fn claim_crawl(
        &self,
        claim: CrawlClaim,
        watched: Option<CrawlClaim>,
    ) -> Result<Option<CrawlClaim>, StoreError> {
        self.write(move |conn| try_claim(conn, &claim, watched.as_ref()))
            .await
    }

    async fn renew_claim(&self, claim: CrawlClaim) -> Result<bool, StoreError> {
        self.write(move |conn| renew(conn, &claim)).await
    }

    async fn release_claim(&self, claim: CrawlClaim) -> Result<(), StoreError> {
        self.write(move |conn| release(conn, &claim)).await
    }
}
