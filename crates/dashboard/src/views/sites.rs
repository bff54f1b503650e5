//! Sites in trouble, by reason. Sites without trouble are listed only on request, because there may be ten million.

use serde_json::{Value, json};
use webfill_store::SiteState;

use super::reading::{List, ROWS, open_store, parse_cursor, with_time_limit};
use super::words;
use crate::answer::{Problem, Shown, see_other};
use crate::templates::percent_encode;
use crate::visit::Visit;

pub(crate) async fn show(visit: &Visit) -> Shown {
    // Without scripts, the search form leads here. The browser is redirected to the view of the site.
    if let Some(site) = visit.query_value("site") {
        let site = percent_encode(&super::site::parse_site(site)?);
        return Ok(see_other(&format!("/dashboard/site/{site}")));
    }
    visit.require_whole_fleet()?;
    let is_all = visit.query_value("state") == Some("all");
    let has_fleet = visit.dashboard.fleet.is_some();
    let list = match has_fleet {
        true => load_fleet_list(visit, is_all).await?,
        false => load_stored_list(visit).await?,
    };
    let content = json!({"list": list, "is_all": is_all, "has_fleet": has_fleet});
    visit.render_page("sites.html", "Sites", content)
}

/// Loads the list of sites as the fleet reports it now.
async fn load_fleet_list(visit: &Visit, is_all: bool) -> Result<List, Problem> {
    let after = visit.query_value("after").map(str::parse::<u64>);
    let after = after.transpose().map_err(Problem::bad_request)?;
    let question = json!({"action": "sites", "backing_off": !is_all, "after": after.unwrap_or(0)});
    let answer = visit.run_action(question).await?;
    let sites = answer["sites"].as_array().into_iter().flatten();
    let mut sites: Vec<&Value> = sites.collect();
    // The sites on this page are sorted, so that those that need a person come first.
    sites.sort_by_key(|site| std::cmp::Reverse(trouble_rank(site)));
    let rows = sites.into_iter().map(site_row).collect();
    let next = answer["next"].as_u64().map(|next| next.to_string());
    Ok(List::from_fleet(visit, rows, next))
}

/// The key for sorting sites: how urgently a site needs a person, then how many tasks are queued.
fn trouble_rank(site: &Value) -> (u8, u64) {
    let needs = match site["state"].as_str() {
        Some("unreachable") => 3,
        Some("backing_off") if site["until"].is_null() => 2,
        Some("backing_off") => 1,
        _ => 0,
    };
    (needs, site["queued"].as_u64().unwrap_or_default())
}

fn site_row(site: &Value) -> Value {
    let reason = site["reason"].as_str().unwrap_or_default();
    json!({
        "name": site["site"],
        "state": site["state"],
        "because": words::describe_backoff(reason),
        "since": site["since"],
        "until": site["until"],
        "evidence": site["evidence"],
        "queued": site["queued"],
    })
}

/// Loads the list of sites as the dispatcher last wrote it to the store.
async fn load_stored_list(visit: &Visit) -> Result<List, Problem> {
    let (store, from) = (open_store(visit).await?, parse_cursor(visit)?);
    let list_page = with_time_limit(store.browse.site_states(from.as_ref(), ROWS)).await?;
    Ok(List::from_store(visit, &list_page, stored_row))
}

pub(super) fn stored_row(site: &SiteState) -> Value {
    json!({
        "name": site.site,
        "state": site.phase.as_str(),
        "because": words::describe_backoff(&site.reason),
        "since": site.since_ms as f64 / 1_000.0,
        "until": site.until_ms.map(|until_ms| until_ms as f64 / 1_000.0),
        "evidence": json!({"url": site.url, "status_code": site.status_code, "sign": site.sign}),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_that_need_a_person_come_first() {
        let mut sites = [
            json!({"site": "open", "state": "open", "queued": 900}),
            json!({"site": "backoff", "state": "backing_off", "until": 5, "queued": 7}),
            json!({"site": "waits for somebody", "state": "backing_off", "until": null, "queued": 1}),
            json!({"site": "given up", "state": "unreachable", "queued": 0}),
            json!({"site": "rests with more", "state": "backing_off", "until": 5, "queued": 8}),
        ];
        sites.sort_by_key(|site| std::cmp::Reverse(trouble_rank(site)));
        let names: Vec<_> = sites
            .iter()
            .map(|site| site["site"].as_str().unwrap())
            .collect();
        let expected = [
            "given up",
            "waits for somebody",
            "rests with more",
            "backoff",
            "open",
        ];
        assert_eq!(names, expected);
    }
}
