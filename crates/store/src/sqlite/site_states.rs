//! The table `site_states`.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use super::Sqlite;
use super::columns::parse_time;
use super::fault::Fault;
use super::list_pages::read_list_page;
use crate::browse::{ListPage, Place};
use crate::error::StoreError;
use crate::site_state::SiteState;
use crate::store::SiteStates;
use crate::timestamp::iso_time;

const REPLACE: &str = "
INSERT OR REPLACE INTO site_states (_id, state, reason, since, until, url, status_code, sign,
    updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

pub(super) fn put(conn: &Connection, states: &[SiteState]) -> Result<(), Fault> {
    let mut replace = conn.prepare_cached(REPLACE)?;
    for state in states {
        replace.execute(params![
            state.site,
            state.phase.as_str(),
            state.reason,
            iso_time(state.since_ms),
            state.until_ms.map(iso_time),
            state.url,
            state.status_code,
            state.sign,
            iso_time(state.updated_at_ms),
        ])?;
    }
    Ok(())
}

pub(super) fn remove(conn: &Connection, sites: &[String]) -> Result<(), Fault> {
    let mut delete = conn.prepare_cached("DELETE FROM site_states WHERE _id = ?1")?;
    for site in sites {
        delete.execute([site])?;
    }
    Ok(())
}

const COLUMNS: &str = "SELECT state, reason, since, until, url, status_code, sign, updated_at, _id
    FROM site_states";

/// The state of a site in trouble; `None` if the site is not.
pub(super) fn get(conn: &Connection, site: &str) -> Result<Option<SiteState>, Fault> {
    let mut statement = conn.prepare_cached(&format!("{COLUMNS} WHERE _id = ?1"))?;
    let mut rows = statement.query([site])?;
    rows.next()?.map(site_state_from).transpose()
}

/// Lists states in the order of the sites' names.
pub(super) fn list(
    conn: &Connection,
    from: Option<&Place>,
    wanted: usize,
) -> Result<ListPage<SiteState>, Fault> {
    // No site has an empty name, so a list from the beginning reads all rows after "".
    let after = from.map_or("", |place| place.part(0));
    let mut statement = conn.prepare_cached(&format!("{COLUMNS} WHERE _id > ?1 ORDER BY _id"))?;
    read_list_page(statement.query([after])?, wanted, |row| {
        let state = site_state_from(row)?;
        Ok((Place::by_key(&state.site), Some(state)))
    })
}

fn site_state_from(row: &Row<'_>) -> Result<SiteState, Fault> {
    let state: String = row.get(0)?;
    let until: Option<String> = row.get(3)?;
    Ok(SiteState {
        site: row.get(8)?,
        phase: state.parse().map_err(Fault::InvalidEntry)?,
        reason: row.get(1)?,
        since_ms: parse_time(&row.get::<_, String>(2)?)?,
        until_ms: until.as_deref().map(parse_time).transpose()?,
        url: row.get(4)?,
        status_code: row.get(5)?,
        sign: row.get(6)?,
        updated_at_ms: parse_time(&row.get::<_, String>(7)?)?,
    })
}

#[async_trait]
impl SiteStates for Sqlite {
    async fn put_site_states(&self, states: Vec<SiteState>) -> Result<(), StoreError> {
        self.write(move |conn| put(conn, &states)).await
    }

    async fn remove_site_states(&self, sites: Vec<String>) -> Result<(), StoreError> {
        self.write(move |conn| remove(conn, &sites)).await
    }

    async fn site_state(&self, site: &str) -> Result<Option<SiteState>, StoreError> {
        let site = site.to_owned();
        self.read(move |conn| get(conn, &site)).await
    }
}
