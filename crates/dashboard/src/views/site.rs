//! A site: its state and the evidence, its queue, the rules set by hand, its last pages.

use serde_json::{Value, json};
use webfill_store::{BrowseHandles, PageFilter, PageRow};
use webfill_wire::Outcome;

use super::reading::{data_or_fault, open_store, with_time_limit};
use super::robots::{self, Robots};
use super::{pages, sites, words};
use crate::answer::{Problem, Shown, see_other};
use crate::site_log::Change;
use crate::snapshot::now_ms;
use crate::templates::percent_encode;
use crate::visit::Visit;

/// How many pages of the site are shown.
const PAGES: u32 = 20;

/// How many changes of the site's state are shown.
const CHANGES: usize = 50;

/// How many disallowed URLs are searched for in robots.txt files, and how many of these files are shown.
const FORBIDDEN: u32 = 10;
const ORIGINS: usize = 4;

pub(crate) async fn show(visit: &Visit, site: &str) -> Shown {
    let named = parse_site(site)?;
    if named != site {
        return Ok(see_other(&format!(
            "/dashboard/site/{}",
            percent_encode(&named)
        )));
    }
    let (fleet, read) = tokio::join!(fleet_status(visit, site), load_stored(visit, site));
    let (fleet, fleet_fault) = data_or_fault(fleet);
    let (read, store_fault) = data_or_fault(read);
    let read = read.unwrap_or_default();
    let fleet = fleet.flatten();
    let reason = fleet.as_ref().and_then(|fleet| fleet["reason"].as_str());
    let is_bound = visit.visitor.rights.is_limited_to_apps();
    let timeline = match is_bound {
        true => Vec::new(),
        false => state_timeline(visit, site, read.first),
    };
    let content = json!({
        "site": site,
        "because": reason.map(words::describe_backoff),
        "rule": fleet.as_ref().map(rules_json),
        "fleet": fleet, "fleet_fault": fleet_fault, "store_fault": store_fault,
        "kept": read.state, "rows": read.rows, "clock": read.clock, "robots": read.robots,
        "timeline": timeline,
        "is_bound": is_bound,
    });
    visit.render_page("site.html", &format!("Site {site}"), content)
}

/// The states of a site over time, the latest first. The earliest one begins with the first known page of the site.
fn state_timeline(visit: &Visit, site: &str, first: Option<First>) -> Vec<Value> {
    let mut changes = visit.dashboard.site_log().changes_of_site(site, CHANGES);
    let is_cut = changes.len() == CHANGES;
    let earliest_ms = changes.last().map_or(i64::MAX, |change| change.at_ms);
    let first = first.filter(|first| !is_cut && first.at_ms < earliest_ms);
    changes.extend(first.map(|first| Change::new_open(site, first.at_ms)));
    let mut until_ms = None;
    let row = |change: &Change| {
        let over_ms = until_ms.map(|until_ms: i64| until_ms - change.at_ms);
        until_ms = Some(change.at_ms);
        let may_be_earlier =
            first.is_some_and(|first| !first.is_exact && first.at_ms == change.at_ms);
        json!({
            "state": change.state,
            "because": words::describe_backoff(&change.reason),
            "at_ms": change.at_ms,
            "may_be_earlier": may_be_earlier,
            "over_s": over_ms.map(|ms| ms as f64 / 1_000.0),
            "evidence": change.evidence,
        })
    };
    changes.iter().map(row).collect()
}

/// The name of the site that a user means by a host, a URL, or a name with non-ASCII letters.
pub(super) fn parse_site(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    let url = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}/"),
    };
    match webfill_urls::canonical_url(&url, None) {
        Ok(url) => Ok(webfill_urls::site(&url)),
        Err(_) => Err(Problem::not_found(
            "not a site: expected a name such as example.org",
        )),
    }
}

/// What the fleet says about a site. `None` for visitors whose rights are limited to some applications, because rules
/// and states are common to all.
async fn fleet_status(visit: &Visit, site: &str) -> Result<Option<Value>, Problem> {
    if visit.dashboard.fleet.is_none() || visit.visitor.rights.is_limited_to_apps() {
        return Ok(None);
    }
    visit
        .run_action(json!({"action": "site", "site": site}))
        .await
        .map(Some)
}

/// The first known page of a site, which dates its first known state.
#[derive(Debug, Clone, Copy)]
struct First {
    at_ms: i64,
    /// Whether this is really the first page. If not, the store has earlier pages.
    is_exact: bool,
}

/// What the store has about a site.
#[derive(Default)]
struct StoredSite {
    state: Option<Value>,
    rows: Vec<Value>,
    first: Option<First>,
    /// When the site was last requested, and its delay. All machines share these times.
    clock: Option<Value>,
    robots: Vec<Robots>,
}

async fn load_stored(visit: &Visit, site: &str) -> Result<StoredSite, Problem> {
    let store = open_store(visit).await?;
    let filter = PageFilter {
        site: Some(site.to_owned()),
        apps: visit.apps(),
        ..PageFilter::default()
    };
    let list_page = with_time_limit(store.browse.pages(&filter, None, PAGES)).await?;
    let first = list_page.rows.last().map(|page| First {
        at_ms: page.started_at_ms,
        is_exact: list_page.next.is_none(),
    });
    let mut read = StoredSite {
        first,
        rows: list_page.rows.iter().map(pages::page_row).collect(),
        ..StoredSite::default()
    };
    if visit.visitor.rights.is_limited_to_apps() {
        return Ok(read);
    }
    let state = with_time_limit(store.store.site_state(site)).await?;
    read.state = state.as_ref().map(sites::stored_row);
    let clock = with_time_limit(store.cache.site(site, now_ms())).await?;
    read.clock = clock.map(|clock| {
        json!({
            "delay_s": clock.delay_ms as f64 / 1_000.0,
            "accepted_s": clock.accepted_ms.map(|ms| ms as f64 / 1_000.0),
            "last_start_ms": clock.last_start_ms,
            "owner": clock.owner,
        })
    });
    let disallowed = PageFilter {
        outcomes: vec![Outcome::Disallowed],
        ..filter
    };
    let disallowed = with_time_limit(store.browse.pages(&disallowed, None, FORBIDDEN)).await?;
    read.robots = load_robots(&store, site, &list_page.rows, &disallowed.rows).await?;
    Ok(read)
}

/// Loads the robots.txt files of the origins of these pages, and finds the lines that forbid some of them.
async fn load_robots(
    store: &BrowseHandles,
    site: &str,
    pages: &[PageRow],
    disallowed: &[PageRow],
) -> Result<Vec<Robots>, Problem> {
    let mut origins = vec![format!("https://{site}"), format!("http://{site}")];
    for page in disallowed.iter().chain(pages) {
        if let Some(origin) = robots::origin_from_url(&page.url)
            && !origins.contains(&origin)
            && origins.len() < ORIGINS
        {
            origins.push(origin);
        }
    }
    let entries = with_time_limit(store.cache.robots_of(origins, now_ms())).await?;
    let urls: Vec<&str> = disallowed.iter().map(|page| page.url.as_str()).collect();
    Ok(entries
        .iter()
        .flatten()
        .map(|entry| robots::parse_robots(entry, &urls))
        .collect())
}

/// The rules that were set for the site by hand, as JSON.
fn rules_json(fleet: &Value) -> Value {
    let of = |name: &str| (!fleet[name].is_null()).then(|| fleet[name].clone());
    json!({"delay": of("delay"), "block_until": of("block_until"), "limit": of("limit")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_found_by_a_host_or_a_url() {
        for (text, site) in [
            ("example.org", "example.org"),
            (" www.Example.org ", "example.org"),
            ("https://www.example.co.uk/a?b", "example.co.uk"),
            ("bücher.de", "xn--bcher-kva.de"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(parse_site(text), Ok(site.to_owned()), "{text}");
        }
        for wrong in ["", "a b", "http://", "<script>"] {
            assert_eq!(parse_site(wrong).unwrap_err().status, 404, "{wrong}");
        }
    }
}
