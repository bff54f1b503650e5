//! The collection `site_states`.

use async_trait::async_trait;
use mongodb::bson::{Document, RawDocument, RawDocumentBuf, doc, rawdoc};

use super::Mongo;
use super::command::Db;
use super::fault::Fault;
use super::list_query::ListQuery;
use super::members::{date, integer, time};
use super::value::or_null;
use crate::browse::{ListPage, Place};
use crate::error::StoreError;
use crate::site_state::SiteState;
use crate::store::SiteStates;

pub(super) const SITE_STATES: &str = "site_states";

pub(super) async fn put(db: &Db, states: &[SiteState]) -> Result<(), Fault> {
    let statements: Vec<RawDocumentBuf> = states.iter().map(put_statement).collect();
    db.upsert(SITE_STATES, &statements).await?.into_result()
}

pub(super) fn put_statement(state: &SiteState) -> RawDocumentBuf {
    let stored = rawdoc! {
        "_id": state.site.as_str(),
        "state": state.phase.as_str(),
        "reason": state.reason.as_str(),
        "since": date(state.since_ms),
        "until": or_null(state.until_ms.map(date)),
        "url": state.url.as_str(),
        "status_code": or_null(state.status_code.map(i32::from)),
        "sign": state.sign.as_str(),
        "updated_at": date(state.updated_at_ms),
    };
    rawdoc! {"q": {"_id": state.site.as_str()}, "u": stored, "upsert": true}
}

pub(super) async fn remove(db: &Db, sites: &[String]) -> Result<(), Fault> {
    db.delete(SITE_STATES, sites).await?.into_result()
}

/// The state of a site in trouble; `None` if the site is not.
pub(super) async fn get(db: &Db, site: &str) -> Result<Option<SiteState>, Fault> {
    let stored = db.find_one(SITE_STATES, site).await?;
    stored.as_deref().map(site_state_from).transpose()
}

/// Lists states in the order of the sites' names.
pub(super) async fn list(
    db: &Db,
    from: Option<Place>,
    wanted: usize,
) -> Result<ListPage<SiteState>, Fault> {
    // No site has an empty name, so a list from the beginning reads all documents after "".
    let after = from.as_ref().map_or("", |place| place.part(0));
    let listing = ListQuery {
        collection: SITE_STATES,
        which: doc! {"_id": {"$gt": after}},
        order: doc! {"_id": 1},
        index: "_id_",
        members: Document::new(),
        wanted,
    };
    let placed = |stored: &RawDocument| {
        let state = site_state_from(stored)?;
        Ok((Place::by_key(&state.site), Some(state)))
    };
    Ok(listing
        .read_list_page(db, placed)
        .await?
        .unwrap_or_else(ListPage::end))
}

fn site_state_from(stored: &RawDocument) -> Result<SiteState, Fault> {
    let broken = |name: &str| {
        Fault::InvalidEntry(format!(
            "`{name}` of a stored state of a site is not as webfill writes it"
        ))
    };
    let text = |name: &str| match stored.get_str(name) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(broken(name)),
    };
    let at = |name: &str| time(stored, name).ok_or_else(|| broken(name));
    Ok(SiteState {
        site: text("_id")?,
        phase: text("state")?.parse().map_err(Fault::InvalidEntry)?,
        reason: text("reason")?,
        since_ms: at("since")?,
        until_ms: time(stored, "until"),
        url: text("url")?,
        status_code: integer(stored, "status_code").and_then(|code| u16::try_from(code).ok()),
        sign: text("sign")?,
        updated_at_ms: at("updated_at")?,
    })
}

#[async_trait]
impl SiteStates for Mongo {
    async fn put_site_states(&self, states: Vec<SiteState>) -> Result<(), StoreError> {
        self.call(async move |db: Db| put(&db, &states).await).await
    }

    async fn remove_site_states(&self, sites: Vec<String>) -> Result<(), StoreError> {
        self.call(async move |db: Db| remove(&db, &sites).await)
            .await
    }

    async fn site_state(&self, site: &str) -> Result<Option<SiteState>, StoreError> {
        let site = site.to_owned();
        self.call(async move |db: Db| get(&db, &site).await).await
    }
}
