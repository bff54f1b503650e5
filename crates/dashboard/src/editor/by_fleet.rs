//! Fetches a URL by the fleet for the mapping editor, so that its site is visited by one crawler only. Each draft has
//! a crawl of its own, of application [`APP`], whose bodies are kept. The URL waits until the fleet has finished its
//! current requests to the site, and follows robots.txt, delay and backoff like any other. It precedes queued URLs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_store::{Browse, CrawlId, page_id};
use webfill_urls::{Url, canonical_url, site};

use super::drafts::NewPage;
use super::stored;
use crate::answer::Problem;
use crate::views::reading::with_time_limit;
use crate::views::reasons;
use crate::visit::Visit;

/// The application that owns the crawls of the mapping editor.
const APP: &str = "editor";

/// How long a visitor waits for the page. The URL stays queued after that.
const WITHIN: Duration = Duration::from_secs(50);

const POLL_EVERY: Duration = Duration::from_millis(200);

/// How many redirects in a row are followed, as in crawls. The fleet fetches each target as a task of its own.
const MOST_REDIRECTS: usize = 5;

enum UrlState {
    Page(NewPage),
    /// The fleet has not fetched this URL yet: the requested one, or the target of its redirects.
    Waits(Url),
}

/// Returns the page of a URL. If the crawl of this draft has not fetched it before, the fleet fetches it now.
pub(super) async fn fetch(visit: &Visit, draft: &str, url: &Url) -> Result<NewPage, Problem> {
    let opened = visit.open_store().await?;
    let crawl = CrawlId::new(APP, draft);
    let mut waits = match stored_state(&*opened.browse, &crawl, url).await? {
        UrlState::Page(page) => return Ok(page),
        UrlState::Waits(waits) => waits,
    };
    refuse_if_backing_off(visit, url).await?;
    let request = json!({
        "url": url.as_str(), "appid": APP, "crawlid": draft, "priority": 100, "keep_bodies": true,
    });
    visit.feed(request).await?;
    let began = Instant::now();
    while began.elapsed() < WITHIN {
        waits = match stored_state(&*opened.browse, &crawl, url).await? {
            UrlState::Page(page) => return Ok(page),
            UrlState::Waits(waits) => waits,
        };
        tokio::time::sleep(POLL_EVERY).await;
    }
    let why = reasons::fleet_reason(visit, waits.as_str(), &crawl).await;
    let why = why.unwrap_or_else(|| "no reason given".to_owned());
    Err(Problem::unavailable(format!(
        "{waits} is not fetched yet: {why}. The fleet continues; add it again later"
    )))
}

/// The page of a URL, if the store has it, or the URL that is still to be fetched. Redirects are followed.
async fn stored_state(
    browse: &dyn Browse,
    crawl: &CrawlId,
    url: &Url,
) -> Result<UrlState, Problem> {
    let mut url = url.clone();
    for _ in 0..=MOST_REDIRECTS {
        let id = page_id(&crawl.app_id, &crawl.crawl_id, url.as_str());
        let Some(page) = with_time_limit(browse.page(&id)).await? else {
            return Ok(UrlState::Waits(url));
        };
        match page["outcome"].as_str().unwrap_or_default() {
            "ok" | "not_modified" => {
                let page = stored::load_page(browse, &id)
                    .await
                    .map_err(Problem::bad_request)?;
                let from = "fetched".to_owned();
                return Ok(UrlState::Page(NewPage { from, ..page }));
            }
            "redirected" => {
                let target = page["final_url"].as_str().unwrap_or_default();
                let found = canonical_url(target, None);
                url = found.map_err(|refusal| {
                    Problem::bad_request(format!("{url} leads to {target}: {refusal}"))
                })?;
            }
            outcome => {
                let why = describe_outcome(outcome, &page);
                return Err(Problem::bad_request(format!(
                    "{url}: {why}; retry it in its crawl, {crawl}"
                )));
            }
        }
    }
    Err(Problem::bad_request(format!(
        "{url}: more than {MOST_REDIRECTS} redirects in a row"
    )))
}

fn describe_outcome(outcome: &str, page: &Value) -> String {
    match (outcome, page["status_code"].as_u64()) {
        ("disallowed", _) => "disallowed by robots.txt".to_owned(),
        ("http_error", Some(status)) => format!("the server returned {status}"),
        (outcome, _) => format!("its fetch ended in `{outcome}`"),
    }
}

/// Fails if the site is backing off after errors, because that may last for hours.
async fn refuse_if_backing_off(visit: &Visit, url: &Url) -> Result<(), Problem> {
    let site = site(url);
    let known = visit
        .run_action(json!({"action": "site", "site": site}))
        .await?;
    match known["state"].as_str().unwrap_or("open") {
        "open" => Ok(()),
        state => Err(Problem::bad_request(format!(
            "{site} is {}: nothing is requested for now",
            state.replace('_', " ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_for_a_missing_page_is_shown() {
        let reported = |outcome: &str, page: Value| describe_outcome(outcome, &page);
        assert_eq!(
            reported("http_error", json!({"status_code": 404})),
            "the server returned 404"
        );
        assert_eq!(
            reported("dns_error", json!({})),
            "its fetch ended in `dns_error`"
        );
    }
}
