//! The state of a URL: the fleet's status in the crawls that know it, and its stored pages.

use serde_json::{Value, json};
use webfill_store::{BrowseHandles, CrawlId, page_id};

use super::reading::{data_or_fault, open_store, with_time_limit};
use crate::answer::{Problem, Shown};
use crate::visit::Visit;

/// How many crawls are searched for pages of the URL.
const MOST_CRAWLS: usize = 20;

pub(crate) async fn show(visit: &Visit) -> Shown {
    let asked = |key: &str| visit.query_value(key).map(str::trim).unwrap_or_default();
    let (typed, app, crawl) = (asked("url"), asked("app"), asked("crawl"));
    let mut content = match typed {
        "" => json!({}),
        _ => search(visit, typed, app, crawl).await?,
    };
    content["typed"] = typed.into();
    content["app"] = app.into();
    content["crawl"] = crawl.into();
    visit.render_page("find.html", "Find a URL", content)
}

async fn search(visit: &Visit, typed: &str, app: &str, crawl: &str) -> Result<Value, Problem> {
    let typed = match typed.contains("://") {
        true => typed.to_owned(),
        false => format!("https://{typed}"),
    };
    let url = match webfill_urls::canonical_url(&typed, None) {
        Ok(url) => url.to_string(),
        Err(refusal) => return Ok(json!({"fault": refusal.to_string()})),
    };
    let (fleet, fleet_fault) = data_or_fault(explain_url(visit, &url, app, crawl).await);
    let fleet = fleet.flatten().unwrap_or_default();
    let crawls = crawls_to_search(&fleet, app, crawl);
    let (pages, store_fault) = match visit.dashboard.store.is_configured() {
        true => data_or_fault(load_pages(visit, &url, crawls).await),
        false => (None, None),
    };
    Ok(json!({
        "url": url, "fleet_fault": fleet_fault, "store_fault": store_fault,
        "fleet": fleet["crawls"],
        "left_out": fleet["left_out"],
        "pages": pages.unwrap_or_default(),
    }))
}

/// What the fleet knows about a URL in the crawls that the visitor asks for.
async fn explain_url(
    visit: &Visit,
    url: &str,
    app: &str,
    crawl: &str,
) -> Result<Option<Value>, Problem> {
    if visit.dashboard.fleet.is_none() {
        return Ok(None);
    }
    let mut question = json!({"action": "why", "url": url});
    for (member, value) in [("appid", app), ("crawlid", crawl)] {
        if !value.is_empty() {
            question[member] = value.into();
        }
    }
    visit.run_action(question).await.map(Some)
}

/// The crawls to search: those that know the URL according to the fleet, and the one that the visitor has named.
fn crawls_to_search(fleet: &Value, app: &str, crawl: &str) -> Vec<CrawlId> {
    let fleet = fleet["crawls"].as_array().into_iter().flatten();
    let fleet = fleet.filter(|one| one["state"] != "unknown");
    let named = fleet.filter_map(|one| {
        let (app, crawl) = (one["appid"].as_str()?, one["crawlid"].as_str()?);
        Some(CrawlId::new(app, crawl))
    });
    let mut crawls: Vec<CrawlId> = named.collect();
    let own = CrawlId::new(app, crawl);
    if !app.is_empty() && !crawl.is_empty() && !crawls.contains(&own) {
        crawls.push(own);
    }
    crawls
}

/// Loads the stored pages of a URL. If no crawl is known to have it, the latest crawls are searched.
async fn load_pages(
    visit: &Visit,
    url: &str,
    mut crawls: Vec<CrawlId>,
) -> Result<Vec<Value>, Problem> {
    let store = open_store(visit).await?;
    if crawls.is_empty() {
        crawls = last_crawls(visit, &store).await?;
    }
    let mut pages = Vec::new();
    for crawl in crawls.iter().take(MOST_CRAWLS) {
        if !visit.visitor.rights.permits_app(&crawl.app_id) {
            continue;
        }
        let id = page_id(&crawl.app_id, &crawl.crawl_id, url);
        if let Some(page) = with_time_limit(store.browse.page(&id)).await? {
            pages.push(json!({
                "id": id,
                "app": crawl.app_id,
                "crawl": crawl.crawl_id,
                "outcome": page["outcome"],
                "status_code": page["status_code"],
                "mapping": page["mapping"],
                "started_at": page["started_at"],
            }));
        }
    }
    Ok(pages)
}

async fn last_crawls(visit: &Visit, store: &BrowseHandles) -> Result<Vec<CrawlId>, Problem> {
    let filter = webfill_store::CrawlFilter {
        apps: visit.apps(),
        ..Default::default()
    };
    let most = MOST_CRAWLS as u32;
    let list_page = with_time_limit(store.browse.crawls(&filter, None, most)).await?;
    Ok(list_page.rows.into_iter().map(|crawl| crawl.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_searched_in_the_crawls_that_know_its_url() {
        let fleet = json!({"crawls": [
            {"appid": "a", "crawlid": "1", "state": "ended"},
            {"appid": "a", "crawlid": "2", "state": "unknown"},
        ]});
        let own = CrawlId::new("a", "1");
        assert_eq!(crawls_to_search(&fleet, "", ""), std::slice::from_ref(&own));
        assert_eq!(
            crawls_to_search(&fleet, "a", "1"),
            std::slice::from_ref(&own)
        );
        assert_eq!(
            crawls_to_search(&fleet, "b", "3"),
            [own, CrawlId::new("b", "3")]
        );
        assert!(crawls_to_search(&Value::Null, "", "").is_empty());
    }
}
