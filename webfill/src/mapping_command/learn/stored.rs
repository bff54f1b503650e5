//! Gathers pages from a crawl that was run with `--keep-bodies`.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use webfill_service::Fault;
use webfill_store::{
    Bodies, Body, CrawlId, ExportError, ExportFilter, ExportKind, Store, StoreUri,
    open_existing_with_bodies,
};
use webfill_urls::{Url, canonical_url};

use super::gathered::{GatheredPage, PageGatherer, Redirects};
use super::layouts::Layouts;
use crate::extract::retry_while_busy;

/// The members of a stored page that are read.
const PARTS: [&str; 10] = [
    "_id",
    "url",
    "final_url",
    "content_type",
    "content_hash",
    "outcome",
    "mapping",
    "fields",
    "records",
    "document",
];

pub struct StoredCrawl {
    pub store: Arc<dyn Store>,
    bodies: Arc<dyn Bodies>,
    crawl: CrawlId,
    redirects: Redirects,
    layouts: Layouts,
}

impl StoredCrawl {
    pub async fn open(uri: &StoreUri, crawl: CrawlId) -> Result<StoredCrawl, Fault> {
        let opened = open_existing_with_bodies(uri).await;
        let (store, bodies) = opened.map_err(Fault::error)?;
        let known = retry_while_busy(async || store.get_crawl(&crawl).await).await?;
        match known {
            Some(_) => Ok(StoredCrawl {
                store,
                bodies,
                crawl,
                redirects: Redirects::default(),
                layouts: Layouts::default(),
            }),
            None => Err(Fault::error(format!(
                "no crawl {crawl} in {uri}: check --app, --crawl and --store"
            ))),
        }
    }

    /// Passes the URLs of all pages to `each`.
    pub async fn for_each_url(&mut self, each: &mut (dyn FnMut(&str) + Send)) -> Result<(), Fault> {
        let filter = ExportFilter {
            app_id: Some(self.crawl.app_id.clone()),
            crawl_id: Some(self.crawl.crawl_id.clone()),
            ..ExportFilter::default()
        };
        let (redirects, layouts) = (&mut self.redirects, &mut self.layouts);
        let mut each = |page: Value| {
            let text = |name: &str| page[name].as_str();
            if let Some(url) = text("url") {
                each(url);
                if let Some(to) = text("final_url") {
                    each(to);
                    redirects.add(url, to);
                }
                if let Some(sketch) = text("template") {
                    layouts.add(text("final_url").unwrap_or(url), sketch);
                }
            }
            Ok(())
        };
        let read = self.store.export(ExportKind::Pages, &filter, &mut each);
        read.await.map(drop).map_err(Fault::error)
    }

    /// Gathers the pages where `take` returns true, until the limits are reached. Call [`StoredCrawl::for_each_url`]
    /// before.
    pub async fn gather(
        &self,
        gathering: &mut PageGatherer<'_>,
        mut take: impl FnMut(&Map<String, Value>, &GatheredPage) -> bool,
    ) -> Result<(), Fault> {
        let leading = self.redirects.by_target();
        let mut after = None;
        let mut has_any = false;
        loop {
            let read = async || self.bodies.bodies(&self.crawl, after.clone()).await;
            let bodies = retry_while_busy(read).await?;
            let Some(last) = bodies.last() else {
                break;
            };
            has_any = true;
            after = Some(last.page_id.clone());
            let pages = self.look_up(&bodies).await?;
            for body in bodies {
                let Some(page) = pages.get(&body.page_id) else {
                    continue;
                };
                let url = page.get("url").and_then(Value::as_str).unwrap_or_default();
                let final_url = page.get("final_url").and_then(Value::as_str);
                let target = final_url.unwrap_or(url);
                let asked = leading.get(target).cloned().unwrap_or_default();
                let names = asked.iter().copied().chain([url, target]);
                if !gathering.has_room_or_count(names) {
                    continue;
                }
                let Some(mut gathered) = read_body(page, target, &body)? else {
                    continue;
                };
                gathered.asked = asked.into_iter().map(str::to_owned).collect();
                if take(page, &gathered) {
                    gathering.add(gathered);
                }
            }
        }
        self.layouts.note_of_other_kinds(gathering);
        match has_any {
            true => Ok(()),
            false => Err(Fault::error(format!(
                "crawl {} has no kept bodies: crawl with --keep-bodies, or read an archive with --warc",
                self.crawl
            ))),
        }
    }

    async fn look_up(&self, bodies: &[Body]) -> Result<HashMap<String, Map<String, Value>>, Fault> {
        let ids: Vec<String> = bodies.iter().map(|body| body.page_id.clone()).collect();
        load_pages(&*self.store, ids).await
    }
}

/// Loads stored pages with these ids. Returns them by their keys.
pub async fn load_pages(
    store: &dyn Store,
    ids: Vec<String>,
) -> Result<HashMap<String, Map<String, Value>>, Fault> {
    let find = async || {
        let mut pages = HashMap::new();
        let mut each = |page: Value| {
            if let Value::Object(mut page) = page {
                page.retain(|name, _| PARTS.contains(&name.as_str()));
                let id = page["_id"].as_str().unwrap_or_default().to_owned();
                pages.insert(id, page);
            }
            Ok(())
        };
        match store.pages(ids.clone(), &mut each).await {
            Err(ExportError::Store(error)) => Err(error),
            found => Ok(found.map(|_| pages)),
        }
    };
    retry_while_busy(find).await?.map_err(Fault::error)
}

/// Decodes the body of a page. `None` if the body belongs to another fetch, or cannot be used for learning.
fn read_body(
    page: &Map<String, Value>,
    url: &str,
    body: &Body,
) -> Result<Option<GatheredPage>, Fault> {
    let text = |name: &str| page.get(name).and_then(Value::as_str);
    let is_document = page
        .get("document")
        .is_some_and(|document| document["sha256"].is_string());
    if text("content_hash") != Some(&body.content_hash) || is_document {
        return Ok(None);
    }
    let Ok(url): Result<Url, _> = canonical_url(url, None) else {
        return Ok(None);
    };
    let bytes = usize::try_from(body.bytes).map_err(Fault::error)?;
    let content = zstd::bulk::decompress(&body.body, bytes)
        .map_err(|error| Fault::error(format!("{url}: its kept body is damaged: {error}")))?;
    // A rendered page is in UTF-8, whatever the server declared.
    let content_type = match body.is_rendered {
        true => Some("text/html; charset=utf-8"),
        false => text("content_type"),
    };
    Ok(GatheredPage::decode(url, content_type, &content))
}
