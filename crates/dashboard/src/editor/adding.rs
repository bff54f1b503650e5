//! Adds pages to a draft: from the web, the store, golden cases, or a file.

use serde::Deserialize;
use webfill_store::{CrawlId, page_id};
use webfill_urls::{Url, canonical_url};

use super::drafts::{Draft, Drafts, NewPage};
use super::golden;
use super::job::MOST_PAGES;
use super::stored;
use super::{Editor, by_fleet};
use crate::answer::Problem;
use crate::visit::Visit;

/// Where the pages to add come from.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum PageSource {
    /// A page that is fetched once, with the politeness of a crawl.
    Url(String),
    /// A page of the store, by its key.
    Stored(String),
    /// Pages of a crawl whose bodies are stored: the one with this URL, or the last ones.
    Crawl {
        app: String,
        crawl: String,
        #[serde(default)]
        url: String,
        #[serde(default)]
        mapping: String,
        #[serde(default)]
        count: usize,
    },
    /// The golden cases of a mapping.
    Golden(String),
}

/// Adds pages to a draft. Returns a sentence for the user about the added pages.
pub(super) async fn add_pages(
    visit: &Visit,
    bench: &Editor,
    draft: &Draft,
    from: PageSource,
) -> Result<String, Problem> {
    let pages = match from {
        PageSource::Url(url) => vec![fetch(visit, bench, draft, &url).await?],
        PageSource::Stored(id) => {
            let opened = visit.open_store().await?;
            vec![
                stored::load_page(&*opened.browse, &id)
                    .await
                    .map_err(Problem::bad_request)?,
            ]
        }
        PageSource::Crawl {
            app,
            crawl,
            url,
            mapping,
            count,
        } => {
            let opened = visit.open_store().await?;
            let browse = &*opened.browse;
            let found = match canonical_url(&url, None) {
                Ok(url) => stored::load_page(browse, &page_id(&app, &crawl, url.as_str()))
                    .await
                    .map(|page| vec![page]),
                Err(refusal) if !url.is_empty() => Err(format!("{url}: {refusal}")),
                Err(_) => {
                    let mapping = Some(mapping).filter(|name| !name.is_empty());
                    let most = count.clamp(1, MOST_PAGES);
                    stored::load_pages_of_crawl(browse, CrawlId::new(&app, &crawl), mapping, most)
                        .await
                }
            };
            let mut found = found.map_err(Problem::bad_request)?;
            if let Some(repairs) = &draft.repairs {
                stored::add_previous_values(browse, repairs, &mut found)
                    .await
                    .map_err(Problem::unavailable)?;
            }
            found
        }
        PageSource::Golden(mapping) => {
            let room = MOST_PAGES.saturating_sub(draft.pages.len());
            golden_pages(bench, mapping, room).await?
        }
    };
    let found = pages.len();
    let (added, why) = add_fitting_pages(bench, &draft.id, pages).await?;
    Ok(match (added, found, why) {
        (0, 0, _) => "nothing to add".to_owned(),
        (1, 1, _) => "1 page was added".to_owned(),
        (added, found, Some(why)) => format!("{added} of {found} pages were added: {why}"),
        (added, _, None) => format!("{added} pages were added"),
    })
}

/// Adds pages until the draft is full. Returns how many were added, and why not all.
pub(super) async fn add_fitting_pages(
    bench: &Editor,
    id: &str,
    pages: Vec<NewPage>,
) -> Result<(usize, Option<String>), Problem> {
    let id = id.to_owned();
    let add = move |drafts: &Drafts| {
        let mut added = 0;
        for page in pages {
            match drafts.add_page(&id, page) {
                Ok(_) => added += 1,
                Err(error) => return Ok((added, Some(error.to_string()))),
            }
        }
        Ok((added, None))
    };
    bench.with_drafts(add).await
}

/// The golden cases of a mapping, at most `most`.
pub(super) async fn golden_pages(
    bench: &Editor,
    mapping: String,
    most: usize,
) -> Result<Vec<NewPage>, Problem> {
    let reading =
        bench.with_folder(move |folder| golden::read_pages(folder.path(), &mapping, most));
    reading.await
}

/// Fetches a page. If there are a fleet and a store, the fleet fetches it, so that only one crawler visits the site.
async fn fetch(
    visit: &Visit,
    bench: &Editor,
    draft: &Draft,
    text: &str,
) -> Result<NewPage, Problem> {
    let url = canonical_url(text.trim(), None);
    let url = url.map_err(|refusal| Problem::bad_request(format!("{text}: {refusal}")))?;
    if visit.has_fleet() && visit.has_store() {
        return by_fleet::fetch(visit, &draft.id, &url).await;
    }
    let page = bench.host.fetch(bench.folder.path(), &url).await;
    let page = page.map_err(Problem::bad_request)?;
    Ok(NewPage {
        from: "fetched".to_owned(),
        url: page.url,
        content_type: page.content_type,
        ending: page.ending,
        body: page.body,
        ..NewPage::default()
    })
}

/// The page of a draft that is made from an uploaded file. If the user gives no URL for it, it gets one that cannot be
/// fetched.
pub(super) fn page_from_upload(name: &str, url: &str, body: &[u8]) -> Result<NewPage, Problem> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let given = match url.trim() {
        "" => {
            let mut made = Url::parse("https://page.invalid/").map_err(Problem::internal_error)?;
            made.set_path(name);
            Ok(made)
        }
        url => canonical_url(url, None),
    };
    let url = given.map_err(|refusal| Problem::bad_request(format!("{url}: {refusal}")))?;
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_plain = ending.len() <= 10 && ending.chars().all(|c| c.is_ascii_alphanumeric());
    Ok(NewPage {
        from: format!("file {name}"),
        url: url.to_string(),
        ending: if is_plain {
            ending.to_ascii_lowercase()
        } else {
            String::new()
        },
        body: body.to_vec(),
        ..NewPage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uploaded_file_gets_a_url_that_leads_nowhere() {
        let page = page_from_upload("C:\\pages\\Ada & Bob.HTML", "", b"x").unwrap();
        assert_eq!(page.url, "https://page.invalid/Ada%20&%20Bob.HTML");
        assert_eq!(page.ending, "html");
        let page = page_from_upload("x", "HTTPS://People.example/a#b", b"x").unwrap();
        assert_eq!(page.url, "https://people.example/a");
        assert!(page_from_upload("x", "javascript:alert(1)", b"x").is_err());
    }

    #[test]
    fn the_sources_of_pages_are_read_as_the_script_writes_them() {
        for text in [
            r#"{"url": "https://a.example/"}"#,
            r#"{"stored": "app/crawl/hash"}"#,
            r#"{"crawl": {"app": "a", "crawl": "c", "count": 5}}"#,
            r#"{"golden": "people"}"#,
        ] {
            serde_json::from_str::<PageSource>(text).unwrap();
        }
        assert!(serde_json::from_str::<PageSource>(r#"{"file": "/etc/passwd"}"#).is_err());
    }
}
