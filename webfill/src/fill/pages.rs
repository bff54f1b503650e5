//! The pages of a table: fetched by the crawl, with their bodies kept, and read from there.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::Runtime;
use webfill_service::state::StateFolder;
use webfill_service::{ExitStatus, Fault};
use webfill_store::{
    Bodies, CrawlId, ExportFilter, ExportKind, Store, open_existing_with_bodies, parse_iso_time,
};
use webfill_urls::canonical;
use webfill_wire::Outcome;

use super::options::FillWebOptions;
use super::project::Project;
use crate::crawl::Crawl;
use crate::extract::patiently;
use crate::feeding::now_ms;
use crate::mapping_command::learn::gathered::Gathered;
use crate::mapping_command::learn::runtime;
use crate::mapping_command::writing::write_atomically;

/// A redirect is followed so often.
const MOST_HOPS: usize = 5;

/// What is stored of a page, beside its body.
#[derive(Debug, Clone)]
pub struct StoredPage {
    pub outcome: Outcome,
    /// Where it leads to, if it is a redirect.
    pub redirect: Option<String>,
    pub content_type: Option<String>,
    pub content_hash: Option<String>,
    /// When it was fetched, in ISO 8601.
    pub at: String,
}

/// See the module.
pub struct Pages<'o> {
    options: &'o FillWebOptions,
    project: Project,
    runtime: Runtime,
    /// By canonical URL.
    stored: BTreeMap<String, StoredPage>,
    /// URLs by the keys of their pages.
    urls: HashMap<String, String>,
    /// How the last crawl ended, if not by finishing.
    pub cut_short: Option<ExitStatus>,
    pub requested: usize,
    /// What is older by then is fetched again, once.
    began_ms: i64,
}

impl<'o> Pages<'o> {
    pub fn open(options: &'o FillWebOptions, project: &Project) -> Result<Pages<'o>, Fault> {
        let mut pages = Pages {
            options,
            project: project.clone(),
            runtime: runtime()?,
            stored: BTreeMap::new(),
            urls: HashMap::new(),
            cut_short: None,
            requested: 0,
            began_ms: now_ms(),
        };
        pages.look_up()?;
        Ok(pages)
    }

    /// What is stored of the page of a URL, which may be a redirect.
    pub fn get(&self, url: &str) -> Option<&StoredPage> {
        self.stored.get(url)
    }

    /// The URL and the page at the end of redirects.
    pub fn target<'u>(&'u self, url: &'u str) -> Option<(&'u str, &'u StoredPage)> {
        let mut at = url;
        let mut page = self.stored.get(at)?;
        for _ in 0..MOST_HOPS {
            let Some(next) = &page.redirect else { break };
            at = next;
            page = self.stored.get(at)?;
        }
        Some((at, page))
    }

    /// Fetches those of these URLs whose pages are not there yet. Nothing is requested if all are.
    pub fn fetch(&mut self, urls: &[String]) -> Result<(), Fault> {
        let is_missing = |url: &&str| self.stored.get(*url).is_none_or(|page| self.is_old(page));
        let missing: Vec<&str> = urls.iter().map(String::as_str).filter(is_missing).collect();
        if missing.is_empty() || self.cut_short.is_some() {
            return Ok(());
        }
        let seeds = self.project.seeds();
        write_atomically(&seeds, (missing.join("\n") + "\n").as_bytes())?;
        let before = self.stored.len();
        let crawl = Crawl::prepare(self.options.of_crawl(&self.project, &seeds)?)?;
        let state = StateFolder::open(&self.project.state(), "crawl")?;
        let (_, end) = crawl.run_in(state)?;
        self.look_up()?;
        self.requested += self.stored.len() - before;
        match end.status() {
            ExitStatus::Done => Ok(()),
            ExitStatus::Interrupted => Err(Fault::interrupted(
                "interrupted: the same command resumes, and asks no page twice",
            )),
            status => {
                self.cut_short = Some(status);
                Ok(())
            }
        }
    }

    fn is_old(&self, page: &StoredPage) -> bool {
        let Some(after) = self.options.refresh_after else {
            return false;
        };
        let at = parse_iso_time(&page.at).unwrap_or_default();
        at + (after.as_millis() as i64) < self.began_ms
    }

    fn crawl_id() -> CrawlId {
        CrawlId::new(Project::APP, Project::CRAWL)
    }

    async fn open_store(&self) -> Result<(Arc<dyn Store>, Arc<dyn Bodies>), Fault> {
        let uri = self.project.store().parse().map_err(Fault::usage)?;
        open_existing_with_bodies(&uri).await.map_err(Fault::error)
    }

    /// Reads what is stored of all pages.
    fn look_up(&mut self) -> Result<(), Fault> {
        if !self.project.store_file().exists() {
            return Ok(());
        }
        let filter = ExportFilter {
            app_id: Some(Project::APP.to_owned()),
            crawl_id: Some(Project::CRAWL.to_owned()),
            ..ExportFilter::default()
        };
        let (mut stored, mut urls) = (BTreeMap::new(), HashMap::new());
        let mut take = |page: Value| {
            if let (Some(url), Some(key), Some(found)) = (
                page["url"].as_str(),
                page["_id"].as_str(),
                stored_page(&page),
            ) {
                urls.insert(key.to_owned(), url.to_owned());
                stored.insert(url.to_owned(), found);
            }
            Ok(())
        };
        let store = self.runtime.block_on(self.open_store())?.0;
        let read = store.export(ExportKind::Pages, &filter, &mut take);
        self.runtime.block_on(read).map_err(Fault::error)?;
        (self.stored, self.urls) = (stored, urls);
        Ok(())
    }

    /// Passes each kept page to `take`, with its canonical URL, if `is_wanted` says so of this URL.
    pub fn read(
        &self,
        is_wanted: &dyn Fn(&str) -> bool,
        take: &mut dyn FnMut(&StoredPage, Gathered) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if self.stored.is_empty() {
            return Ok(());
        }
        self.runtime.block_on(async {
            let bodies = self.open_store().await?.1;
            let mut after = None;
            loop {
                let read = async || bodies.bodies(&Pages::crawl_id(), after.clone()).await;
                let some = patiently(read).await?;
                let Some(last) = some.last() else {
                    return Ok(());
                };
                after = Some(last.page_id.clone());
                for body in some {
                    let Some(url) = self.urls.get(&body.page_id) else {
                        continue;
                    };
                    let page = &self.stored[url];
                    let is_its = page.content_hash.as_ref() == Some(&body.content_hash);
                    if !is_its || !is_wanted(url) {
                        continue;
                    }
                    let Ok(parsed) = canonical(url, None) else {
                        continue;
                    };
                    let length = usize::try_from(body.bytes).map_err(Fault::error)?;
                    let content = zstd::bulk::decompress(&body.body, length).map_err(|error| {
                        Fault::error(format!("{url}: its kept body is damaged: {error}"))
                    })?;
                    // After scripts ran it is UTF-8, whatever the server has declared.
                    let content_type = match body.is_rendered {
                        true => Some("text/html; charset=utf-8"),
                        false => page.content_type.as_deref(),
                    };
                    if let Some(gathered) = Gathered::decoded(parsed, content_type, &content) {
                        take(page, gathered)?;
                    }
                }
            }
        })
    }
}

fn stored_page(page: &Value) -> Option<StoredPage> {
    let text = |name: &str| page[name].as_str().map(str::to_owned);
    let url = text("url")?;
    Some(StoredPage {
        outcome: text("outcome")?.parse().ok()?,
        redirect: text("final_url").filter(|to| *to != url),
        content_type: text("content_type"),
        content_hash: text("content_hash"),
        at: text("started_at")?,
    })
}
