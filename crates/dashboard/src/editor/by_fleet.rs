//! A URL that the fleet fetches for the mapping editor, so that its site meets one crawler alone: a crawl of its own for each
//! draft, of application [`APP`], whose bodies are kept. It waits its turn behind what the fleet has of the site, with
//! robots.txt, delay and backoffs as everything; it goes before what is queued.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_store::{Browse, CrawlId, page_id};
use webfill_urls::{Url, canonical, site};

use super::drafts::NewPage;
use super::stored;
use crate::answer::Problem;
use crate::views::reading::within;
use crate::views::reasons;
use crate::visit::Visit;

/// Whose crawls they are.
const APP: &str = "editor";

/// Nobody waits for a page for longer; it stays queued.
const WITHIN: Duration = Duration::from_secs(50);

const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// As many redirects in a row as crawls follow. Each is a task of its own.
const MOST_REDIRECTS: usize = 5;

enum Looked {
    Page(NewPage),
    /// Nothing is known of this URL yet, to which the asked one leads.
    Waits(Url),
}

/// The page of a URL: of what this draft has fetched before, else fetched now.
pub(super) async fn fetched(visit: &Visit, draft: &str, url: &Url) -> Result<NewPage, Problem> {
    let opened = visit.store().await?;
    let crawl = CrawlId::new(APP, draft);
    let mut waits = match look(&*opened.browse, &crawl, url).await? {
        Looked::Page(page) => return Ok(page),
        Looked::Waits(waits) => waits,
    };
    refuse_if_backing_off(visit, url).await?;
    let request = json!({
        "url": url.as_str(), "appid": APP, "crawlid": draft, "priority": 100, "keep_bodies": true,
    });
    visit.feed(request).await?;
    let began = Instant::now();
    while began.elapsed() < WITHIN {
        waits = match look(&*opened.browse, &crawl, url).await? {
            Looked::Page(page) => return Ok(page),
            Looked::Waits(waits) => waits,
        };
        tokio::time::sleep(LOOKS_EVERY).await;
    }
    let why = reasons::told(visit, waits.as_str(), &crawl).await;
    let why = why.unwrap_or_else(|| "the fleet does not say why".to_owned());
    Err(Problem::away(format!(
        "{waits} has not been fetched yet: {why}. The fleet goes on: add it again later"
    )))
}

/// What the store has of it by now.
async fn look(browse: &dyn Browse, crawl: &CrawlId, url: &Url) -> Result<Looked, Problem> {
    let mut url = url.clone();
    for _ in 0..=MOST_REDIRECTS {
        let id = page_id(&crawl.app_id, &crawl.crawl_id, url.as_str());
        let Some(page) = within(browse.page(&id)).await? else {
            return Ok(Looked::Waits(url));
        };
        match page["outcome"].as_str().unwrap_or_default() {
            "ok" | "not_modified" => {
                let page = stored::page(browse, &id).await.map_err(Problem::faulty)?;
                let from = "fetched".to_owned();
                return Ok(Looked::Page(NewPage { from, ..page }));
            }
            "redirected" => {
                let target = page["final_url"].as_str().unwrap_or_default();
                let found = canonical(target, None);
                url = found.map_err(|refusal| {
                    Problem::faulty(format!("{url} leads to {target}: {refusal}"))
                })?;
            }
            outcome => {
                let why = in_words(outcome, &page);
                return Err(Problem::faulty(format!(
                    "{url}: {why}; it can be tried again at its crawl, {crawl}"
                )));
            }
        }
    }
    Err(Problem::faulty(format!(
        "{url}: more than {MOST_REDIRECTS} redirects in a row"
    )))
}

fn in_words(outcome: &str, page: &Value) -> String {
    match (outcome, page["status_code"].as_u64()) {
        ("disallowed", _) => "its robots.txt does not allow it".to_owned(),
        ("http_error", Some(status)) => format!("the answer was {status}"),
        (outcome, _) => format!("its fetch ended in `{outcome}`"),
    }
}

/// What rests may rest for hours.
async fn refuse_if_backing_off(visit: &Visit, url: &Url) -> Result<(), Problem> {
    let site = site(url);
    let known = visit.ask(json!({"action": "site", "site": site})).await?;
    match known["state"].as_str().unwrap_or("open") {
        "open" => Ok(()),
        state => Err(Problem::faulty(format!(
            "{site} is {}: it is left alone for now",
            state.replace('_', " ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_there_is_no_page_is_told_in_words() {
        let told = |outcome: &str, page: Value| in_words(outcome, &page);
        assert_eq!(
            told("http_error", json!({"status_code": 404})),
            "the answer was 404"
        );
        assert_eq!(
            told("dns_error", json!({})),
            "its fetch ended in `dns_error`"
        );
    }
}
