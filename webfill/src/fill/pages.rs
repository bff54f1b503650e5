//! The pages of a table: fetched by the crawl, with their bodies kept, and read from there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::Runtime;
use webfill_service::state::StateFolder;
use webfill_service::{ExitStatus, Fault};
use webfill_store::{
    Bodies, CrawlId, ExportFilter, ExportKind, Store, open_existing_with_bodies, parse_iso_time,
};
use webfill_urls::{Url, canonical, site};
use webfill_wire::Outcome;

use super::former::Former;
use super::options::FillWebOptions;
use super::project::Project;
use super::table::Link;
use crate::crawl::Crawl;
use crate::extract::patiently;
use crate::feeding::now_ms;
use crate::mapping_command::learn::gathered::Gathered;
use crate::mapping_command::learn::runtime;
use crate::mapping_command::writing::write_atomically;

/// A redirect is followed so often.
const MOST_HOPS: usize = 5;

/// How pages end for reasons that may pass, as `--retry` of a crawl has them.
const PASSING: [&str; 9] = [
    "robots_unreachable",
    "dns_error",
    "network_error",
    "timeout",
    "429",
    "500",
    "502",
    "503",
    "504",
];

/// What is stored of a page, beside its body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredPage {
    pub outcome: Outcome,
    status: Option<u64>,
    /// Where it leads to, if it is a redirect.
    pub redirect: Option<String>,
    pub content_type: Option<String>,
    pub content_hash: Option<String>,
    /// When it was fetched, in ISO 8601.
    pub at: String,
}

impl StoredPage {
    /// Whether the page may be there the next time.
    pub fn may_return(&self) -> bool {
        let name = match (self.outcome, self.status) {
            (Outcome::HttpError, Some(status)) => status.to_string(),
            (outcome, _) => outcome.to_string(),
        };
        PASSING.contains(&name.as_str())
    }
}

/// See the module.
pub struct Pages<'o> {
    options: &'o FillWebOptions,
    project: Project,
    runtime: Runtime,
    /// By canonical URL.
    stored: BTreeMap<String, StoredPage>,
    /// Pages as they were before they were refreshed. They stand for those of which this failed.
    former: Former,
    /// URLs that failed when they were asked last, for reasons that may pass.
    failing: BTreeSet<String>,
    /// URLs by the keys of their pages.
    urls: HashMap<String, String>,
    /// How the last crawl ended, if not by finishing.
    pub cut_short: Option<ExitStatus>,
    pub requested: usize,
    /// URLs that this run has asked: each is asked once.
    asked: BTreeSet<String>,
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
            former: Former::open(project)?,
            failing: BTreeSet::new(),
            urls: HashMap::new(),
            cut_short: None,
            requested: 0,
            asked: BTreeSet::new(),
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

    /// The site of the page that a link leads to; of one that was not fetched, that of the link.
    pub fn site_of(&self, link: &Link) -> String {
        let target = self.target(&link.url).map(|(target, _)| target);
        let target = target.filter(|target| *target != link.url);
        let target = target.and_then(|target| Url::parse(target).ok());
        target.map_or_else(|| link.site.to_string(), |target| site(&target))
    }

    /// How many URLs failed for reasons that may pass.
    pub fn failing(&self) -> usize {
        self.failing.len()
    }

    /// Whether the page of a URL is there, and is not asked again.
    pub fn is_settled(&self, url: &str) -> bool {
        self.to_ask(url).is_none()
    }

    /// What to ask for the page of a URL that is not there yet, is old, or failed for a reason that may have passed.
    fn to_ask<'u>(&'u self, url: &'u str) -> Option<&'u str> {
        let is_failing = |url: &str| self.failing.contains(url);
        let asked = match self.stored.get(url) {
            None => url,
            Some(page) if self.is_old(page) || is_failing(url) => url,
            Some(_) => self
                .target(url)
                .map(|(at, _)| at)
                .filter(|at| is_failing(at))?,
        };
        (!self.asked.contains(asked)).then_some(asked)
    }

    /// Fetches these URLs, as far as is needed. Nothing is requested if all their pages are there.
    pub fn fetch(&mut self, urls: &[String]) -> Result<(), Fault> {
        if self.cut_short.is_some() {
            return Ok(());
        }
        let wanted = urls.iter().filter_map(|url| self.to_ask(url));
        let wanted: BTreeSet<String> = wanted.map(str::to_owned).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let list: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let seeds = self.project.seeds();
        write_atomically(&seeds, (list.join("\n") + "\n").as_bytes())?;
        let mut options = self.options.of_crawl(&self.project, &seeds)?;
        if wanted.iter().any(|url| self.failing.contains(url)) {
            let ends = PASSING.iter().map(|end| end.parse());
            options.retry = ends
                .collect::<Result<Vec<_>, String>>()
                .map_err(Fault::error)?;
            // The crawl asks all of them again.
            self.asked.extend(self.failing.iter().cloned());
        }
        self.keep_former(&wanted)?;
        self.asked.extend(wanted);
        let before = self.stored.clone();
        let crawl = Crawl::prepare(options)?;
        let state = StateFolder::open(&self.project.state(), "crawl")?;
        let (_, end) = crawl.run_in(state)?;
        self.look_up()?;
        self.former.forget_all_but(&self.failing);
        let is_new = |(url, page): &(&String, &StoredPage)| {
            before.get(*url).is_none_or(|former| former.at != page.at)
        };
        self.requested += self.stored.iter().filter(is_new).count();
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

    /// Keeps the pages that are asked again, until they are there.
    fn keep_former(&mut self, wanted: &BTreeSet<String>) -> Result<(), Fault> {
        let is_again = |url: &str| wanted.contains(url) && !self.failing.contains(url);
        if !self.stored.keys().any(|url| is_again(url)) {
            return Ok(());
        }
        let mut kept = Vec::new();
        for (url, page) in &self.stored {
            if is_again(url) && page.redirect.is_some() {
                kept.push((url.clone(), page.clone(), String::new()));
            }
        }
        self.read(&is_again, &mut |page, gathered| {
            kept.push((gathered.url.to_string(), page.clone(), gathered.text));
            Ok(())
        })?;
        for (url, page, text) in kept {
            self.former.keep(url, page, &text)?;
        }
        Ok(())
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
        let is_failing = |(_, page): &(&String, &StoredPage)| page.may_return();
        self.failing = stored
            .iter()
            .filter(is_failing)
            .map(|(url, _)| url.clone())
            .collect();
        for (url, page) in self.former.pages() {
            if self.failing.contains(url) {
                stored.insert(url.clone(), page.clone());
            }
        }
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
                    break;
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
            Ok::<(), Fault>(())
        })?;
        for url in self.former.pages().keys() {
            if self.failing.contains(url)
                && is_wanted(url)
                && let Some(gathered) = self.former.gathered(url)?
            {
                take(&self.stored[url], gathered)?;
            }
        }
        Ok(())
    }
}

fn stored_page(page: &Value) -> Option<StoredPage> {
    let text = |name: &str| page[name].as_str().map(str::to_owned);
    let url = text("url")?;
    Some(StoredPage {
        outcome: text("outcome")?.parse().ok()?,
        status: page["status_code"].as_u64(),
        redirect: text("final_url").filter(|to| *to != url),
        content_type: text("content_type"),
        content_hash: text("content_hash"),
        at: text("started_at")?,
    })
}
