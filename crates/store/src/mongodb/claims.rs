//! The collection `claims`. A single `findAndModify` decides whether a claim is granted, and stores it.

use async_trait::async_trait;
use mongodb::bson::{DateTime, RawDocument, RawDocumentBuf, rawdoc};
use serde_json::Value;

use super::command::{Db, write_concern};
use super::fault::Fault;
use super::members::date;
use super::{Mongo, value};
use crate::claim::CrawlClaim;
use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::store::Claims;

const CLAIMS: &str = "claims";

/// Stores a process's claim to run a crawl. If another claim is in force, returns that one instead.
pub(super) async fn put(
    db: &Db,
    claim: &CrawlClaim,
    watched: Option<&CrawlClaim>,
) -> Result<Option<CrawlClaim>, Fault> {
    loop {
        match db.run(claim_command(claim, watched)).await {
            Ok(_) => return Ok(None),
            // The key of the claim exists although the query did not match, so another claim is in force.
            Err(fault) if fault.is_duplicate_key() => {}
            Err(fault) => return Err(fault),
        }
        if let Some(stored) = find(db, &claim.crawl).await?
            && !claim.may_replace(&stored, watched)
        {
            return Ok(Some(stored));
        }
        // The other claim was released or replaced in the meantime.
    }
}

/// The command that stores the claim if [`CrawlClaim::may_replace`] allows it.
fn claim_command(claim: &CrawlClaim, watched: Option<&CrawlClaim>) -> RawDocumentBuf {
    let watched = watched.unwrap_or(claim);
    rawdoc! {
        "findAndModify": CLAIMS,
        "query": {"_id": claim.crawl.to_string(), "$or": [
            {"owner": claim.owner.as_str()},
            {"folder": claim.folder.as_str()},
            {"owner": watched.owner.as_str(), "beat": watched.beat},
        ]},
        "update": {"$set": {
            "owner": claim.owner.as_str(),
            "folder": claim.folder.as_str(),
            "holder": claim.holder.as_str(),
            "since": date(claim.since_ms),
            "beat": claim.beat,
        }},
        "upsert": true,
        "writeConcern": write_concern(),
    }
}

/// Renews a process's claim to run a crawl. Returns false if another process has taken the claim over.
pub(super) async fn renew(db: &Db, claim: &CrawlClaim) -> Result<bool, Fault> {
    let command = rawdoc! {
        "findAndModify": CLAIMS,
        "query": {"_id": claim.crawl.to_string(), "owner": claim.owner.as_str()},
        "update": {"$set": {"beat": claim.beat}},
        "writeConcern": write_concern(),
    };
    let answer = db.run(command).await?;
    // The answer has the claim as it was before the command, if it was found.
    Ok(answer.get_document("value").is_ok())
}

/// Removes a process's claim to run a crawl, unless another process has taken it over.
pub(super) async fn release(db: &Db, claim: &CrawlClaim) -> Result<(), Fault> {
    let own = rawdoc! {"_id": claim.crawl.to_string(), "owner": claim.owner.as_str()};
    db.delete_matching(CLAIMS, own).await?.into_result()
}

/// The claim of the process that runs a crawl.
pub(super) async fn find(db: &Db, crawl: &CrawlId) -> Result<Option<CrawlClaim>, Fault> {
    let stored = db.find_one(CLAIMS, &crawl.to_string()).await?;
    Ok(stored.map(|stored| claim_from(&stored, crawl)))
}

fn claim_from(stored: &RawDocument, crawl: &CrawlId) -> CrawlClaim {
    let members = value::object(stored);
    let text = |name: &str| {
        let text = members.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let since = stored.get_datetime("since").map(DateTime::timestamp_millis);
    CrawlClaim {
        crawl: crawl.clone(),
        owner: text("owner"),
        folder: text("folder"),
        holder: text("holder"),
        since_ms: since.unwrap_or_default(),
        beat: stored.get_i64("beat").unwrap_or_default(),
    }
}

#[async_trait]
impl Claims for Mongo {
    async fn claim_crawl(
        &self,
        claim: CrawlClaim,
        watched: Option<CrawlClaim>,
    ) -> Result<Option<CrawlClaim>, StoreError> {
        self.call(async move |db: Db| put(&db, &claim, watched.as_ref()).await)
            .await
    }

    async fn renew_claim(&self, claim: CrawlClaim) -> Result<bool, StoreError> {
        self.call(async move |db: Db| renew(&db, &claim).await)
            .await
    }

    async fn release_claim(&self, claim: CrawlClaim) -> Result<(), StoreError> {
        self.call(async move |db: Db| release(&db, &claim).await)
            .await
    }
}
