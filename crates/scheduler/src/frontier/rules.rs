//! Rules of sites, set by hand: delay, `block_until`, page limit, lane. They are stored with the site and survive a
//! restart. The remaining pages of a limit are counted down; its original number is also kept, for people.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Result, params};

use super::context::Context;
use super::lanes::SiteLane;
use super::model::{SiteDue, SiteId, SiteRule};
use super::parts::Sites;
use super::{FrontierError, browser_handover, releasing, sites, state_changes};

/// The lanes that were set for sites by hand.
pub(super) fn load_lanes(db: &Connection) -> Result<HashMap<SiteId, SiteLane>> {
    let mut select = db.prepare("SELECT site, lane FROM site_rules WHERE lane NOT NULL")?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut lanes = HashMap::new();
    for row in rows {
        let (site, name): (SiteId, String) = row?;
        lanes.extend(SiteLane::from_name(&name).map(|lane| (site, lane)));
    }
    Ok(lanes)
}

impl Sites<'_> {
    /// A site's rule, by its name; `None` if the site is unknown.
    pub fn rule(&mut self, name: &str) -> std::result::Result<Option<SiteRule>, FrontierError> {
        self.0.run("read a site's rule", |cx| {
            let sql = "SELECT rule_delay_ms, block_until_ms, pages_left FROM sites WHERE name = ?1";
            let mut select = cx.db.prepare_cached(sql)?;
            select
                .query_row([name], |row| sites::read_rule(row, 0))
                .optional()
        })
    }

    /// Sets a site's rule. An unknown site is created.
    pub fn set_rule(
        &mut self,
        name: &str,
        rule: &SiteRule,
    ) -> std::result::Result<(), FrontierError> {
        self.0.run("set a site's rule", |cx| {
            let site = SiteId(cx.sites.id_or_insert(&cx.db, name)?);
            store_rule(cx, site, rule)
        })
    }

    /// Drops a site's rule and everything that was learned about it, except its owner and the time of its last request.
    /// The next request comes at least the default delay after the last one.
    pub fn reset_site(
        &mut self,
        name: &str,
        default_delay_ms: u32,
    ) -> std::result::Result<(), FrontierError> {
        self.0.run("forget a site", |cx| {
            let site = SiteId(cx.sites.id_or_insert(&cx.db, name)?);
            // The dropped delay may have been longer than the default.
            let sql = "UPDATE sites SET delay_ms = NULL, due_at_ms = coalesce(
                           min(due_at_ms, last_start_ms + max(?2, coalesce(delay_ms, 0))), 0)
                       WHERE id = ?1";
            let mut update = cx.db.prepare_cached(sql)?;
            update.execute(params![site, default_delay_ms])?;
            drop(update);
            state_changes::clear_backoff(cx, site)?;
            browser_handover::forget_scripts(cx, site)?;
            let sql = "UPDATE site_rules SET most_pages = NULL WHERE site = ?1";
            cx.db.execute(sql, [site])?;
            if cx.lanes.rule(site).is_some() {
                store_lane(cx, site, SiteLane::Auto)?;
            }
            cx.holding.forgotten_sites.push(site);
            store_rule(cx, site, &SiteRule::default())
        })
    }

    /// The original page limit of a site; `None` if there is none.
    pub fn max_pages(&mut self, name: &str) -> std::result::Result<Option<u64>, FrontierError> {
        self.0.run("read a site's limit", |cx| {
            let sql = "SELECT most_pages FROM site_rules JOIN sites ON sites.id = site_rules.site
                       WHERE name = ?1";
            let mut select = cx.db.prepare_cached(sql)?;
            let most = select.query_row([name], |row| row.get::<_, Option<i64>>(0));
            Ok(most.optional()?.flatten().map(|most| most as u64))
        })
    }

    /// Stores the original number of a site's page limit.
    pub fn set_max_pages(
        &mut self,
        name: &str,
        most: Option<u64>,
    ) -> std::result::Result<(), FrontierError> {
        self.0.run("set a site's limit", |cx| {
            let site = SiteId(cx.sites.id_or_insert(&cx.db, name)?);
            let sql = "INSERT INTO site_rules (site, most_pages) VALUES (?1, ?2)
                       ON CONFLICT (site) DO UPDATE SET most_pages = excluded.most_pages";
            let most = most.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
            cx.db.prepare_cached(sql)?.execute(params![site, most])?;
            Ok(())
        })
    }

    /// The lane (`http` or `browser`) that was set for a site.
    pub fn lane(&mut self, name: &str) -> std::result::Result<SiteLane, FrontierError> {
        self.0.run("read a site's lane", |cx| {
            let sql = "SELECT id FROM sites WHERE name = ?1";
            let mut select = cx.db.prepare_cached(sql)?;
            let site: Option<SiteId> = select.query_row([name], |row| row.get(0)).optional()?;
            let rule = site.and_then(|site| cx.lanes.rule(site));
            Ok(rule.unwrap_or(SiteLane::Auto))
        })
    }

    /// Sets the lane of a site. An unknown site is created. The site's tasks go to supervisors of that lane from now
    /// on.
    pub fn set_lane(
        &mut self,
        name: &str,
        lane: SiteLane,
    ) -> std::result::Result<(), FrontierError> {
        self.0.run("set a site's lane", |cx| {
            let site = SiteId(cx.sites.id_or_insert(&cx.db, name)?);
            store_lane(cx, site, lane)
        })
    }

    /// Takes the sites whose learned data was dropped since the last call. They are also among the sites with changed
    /// rules.
    pub fn take_reset_sites(&mut self) -> Vec<SiteId> {
        std::mem::take(&mut self.0.cx.holding.forgotten_sites)
    }

    /// Takes the sites whose rules have changed since the last call, as stored now.
    pub fn take_changed_sites(&mut self) -> std::result::Result<Vec<SiteDue>, FrontierError> {
        let mut changed = std::mem::take(&mut self.0.cx.holding.changed_sites);
        changed.sort_unstable();
        changed.dedup();
        let mut sites = Vec::with_capacity(changed.len());
        for site in changed {
            sites.extend(self.get(site)?);
        }
        Ok(sites)
    }
}

fn store_lane(cx: &mut Context, site: SiteId, lane: SiteLane) -> Result<()> {
    let sql = "INSERT INTO site_rules (site, lane) VALUES (?1, ?2)
               ON CONFLICT (site) DO UPDATE SET lane = excluded.lane";
    let values = params![site, lane.as_str()];
    cx.db.prepare_cached(sql)?.execute(values)?;
    cx.lanes.set_rule(site, lane);
    browser_handover::update_lane(cx, site);
    cx.holding.changed_sites.push(site);
    Ok(())
}

fn store_rule(cx: &mut Context, site: SiteId, rule: &SiteRule) -> Result<()> {
    let sql = "UPDATE sites SET rule_delay_ms = ?2, block_until_ms = ?3 WHERE id = ?1";
    let values = params![site, rule.delay_ms, rule.block_until_ms.unwrap_or(0)];
    cx.db.prepare_cached(sql)?.execute(values)?;
    releasing::set_limit(cx, site, rule.pages_left)?;
    // The new limit may make tasks available or unavailable.
    sites::subtract_queued(&cx.db, site, 0)?;
    sites::unpark_if_ready(&cx.db, site)?;
    cx.holding.changed_sites.push(site);
    Ok(())
}
