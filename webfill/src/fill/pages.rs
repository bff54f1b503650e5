//! The pages of a table. A crawl on this machine or a fleet fetches them and keeps their bodies; this module reads them
//! from the store.

mod stored;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::Runtime;
use webfill_service::state::StateFolder;
use webfill_service::{ExitStatus, Fault};
use webfill_store::{
    Bodies, CrawlId, ExportError, ExportFilter, ExportKind, Store, open_existing_with_bodies,
    parse_iso_time,
};
use webfill_urls::{Url, canonical_url, site};

pub use self::targets::rows_of_targets;

use self::stored::StoredPages;
use super::by_fleet::{FetchOrder, FleetFetcher, WaitResult};
use super::former::FormerPages;
use super::nouns::count_with_noun;
use super::options::FillWebOptions;
use super::project::Project;
use super::stored_page::StoredPage;
use super::table::{Link, Table};
use super::transient_ends;
use crate::crawl::Crawl;
use crate::extract::{read_fault, retry_while_busy};
use crate::feeding::now_ms;
use crate::mapping_command::learn::gathered::GatheredPage;
use crate::mapping_command::learn::runtime;
use crate::mapping_command::writing::write_atomically;

/// The most redirects that are followed.
const MOST_HOPS: usize = 5;

/// How fetching ended.
enum FetchEnd {
    Done,
    /// The wait ended because the remaining sites do not answer.
    OutOfPatience,
    CutShort(ExitStatus),
}

/// The stored pages of a table, and the means to fetch further pages.
pub struct Pages<'o> {
    options: &'o FillWebOptions,
    project: Project,
    /// The fleet that fetches pages; `None` if this machine does.
    fleet: Option<FleetFetcher>,
    runtime: Runtime,
    stored: StoredPages,
    /// Copies of pages from before their refresh. They are used if the refresh failed.
    former: FormerPages,
    /// URLs whose pages the fleet has not fetched in time, because their sites do not answer.
    unanswered: BTreeSet<String>,
    /// The same URL with `http`, for each link without a scheme. Such links get `https` first, but older sites answer
    /// only `http`.
    http_instead: BTreeMap<String, String>,
    /// How the last crawl ended if it did not finish.
    pub cut_short: Option<ExitStatus>,
    pub requested: usize,
    /// The URLs that this run has requested. Each is requested only once.
    asked: BTreeSet<String>,
    /// The time when this run began, in milliseconds since 1970. The age of pages is measured at this time, so that
    /// each page is refreshed at most once.
    began_ms: i64,
}

impl<'o> Pages<'o> {
    pub fn open(options: &'o FillWebOptions, project: &Project) -> Result<Pages<'o>, Fault> {
        let mut pages = Pages {
            options,
            project: project.clone(),
            fleet: FleetFetcher::from_options(options, project)?,
            runtime: runtime()?,
            stored: StoredPages::default(),
            former: FormerPages::open(project)?,
            unanswered: BTreeSet::new(),
            http_instead: BTreeMap::new(),
            cut_short: None,
            requested: 0,
            asked: BTreeSet::new(),
            began_ms: now_ms(),
        };
        pages.load_stored_pages()?;
        Ok(pages)
    }

    /// Allows `http` for links without a scheme whose site does not answer `https`.
    pub fn allow_http(&mut self, table: &Table) {
        self.http_instead = table.links.with_http().collect();
    }

    /// The `http` URL to request instead of this `https` URL; `None` if this URL was answered, or had a scheme in the
    /// table.
    fn http_fallback(&self, url: &str) -> Option<&str> {
        let instead = self.http_instead.get(url)?;
        let is_answered = |url: &str| {
            self.stored
                .pages
                .get(url)
                .is_some_and(|page| page.status.is_some())
        };
        (!is_answered(url)).then_some(instead)
    }

    /// The stored page of a URL, which may be a redirect.
    pub fn get(&self, url: &str) -> Option<&StoredPage> {
        self.stored.pages.get(url)
    }

    /// The final URL and its page, after following redirects from this URL.
    pub fn target<'u>(&'u self, url: &'u str) -> Option<(&'u str, &'u StoredPage)> {
        let mut at = url;
        if let Some(instead) = self
            .http_fallback(url)
            .filter(|url| self.stored.pages.contains_key(*url))
        {
            at = instead;
        }
        let mut page = self.stored.pages.get(at)?;
        for _ in 0..MOST_HOPS {
            let Some(next) = &page.redirect else { break };
            at = next;
            page = self.stored.pages.get(at)?;
        }
        Some((at, page))
    }

    /// The site of the page that a link leads to; if that page was not fetched, the site of the link.
    pub fn site_of(&self, link: &Link) -> String {
        let target = self.target(&link.url).map(|(target, _)| target);
        let target = target.filter(|target| *target != link.url);
        let target = target.and_then(|target| Url::parse(target).ok());
        target.map_or_else(|| link.site.to_string(), |target| site(&target))
    }

    /// The number of stored pages.
    pub fn len(&self) -> usize {
        self.stored.pages.len()
    }

    /// The number of URLs that failed for reasons that may be temporary.
    pub fn count_failing(&self) -> usize {
        self.stored.failing.union(&self.unanswered).count()
    }

    /// The number of URLs that were not requested because their addresses are private, and how to allow these.
    pub fn at_private_addresses(&self) -> (usize, &'static str) {
        let count = match self.options.allow_private_networks {
            true => 0,
            false => self.stored.count_at_private_addresses(),
        };
        let how = match self.fleet {
            None => "run the same command with --allow-private-networks",
            Some(_) => "set politeness.allow_private_networks in the settings of the fleet",
        };
        (count, how)
    }

    /// Whether the fleet has not fetched this URL in time, because its site does not answer.
    pub fn is_unanswered(&self, url: &str) -> bool {
        self.unanswered.contains(url)
    }

    /// Whether a URL needs no request, because its page is stored or was already requested in this run.
    pub fn is_settled(&self, url: &str) -> bool {
        self.url_to_request(url).is_none()
    }

    /// The URL to request for a page that is missing, is old, or failed for a temporary reason. `None` if the page is
    /// there, or was already requested in this run.
    fn url_to_request<'u>(&'u self, url: &'u str) -> Option<&'u str> {
        let instead = self
            .http_fallback(url)
            .filter(|url| self.stored.pages.contains_key(*url));
        let url = instead.unwrap_or(url);
        let is_failing = |url: &str| self.stored.failing.contains(url);
        let asked = match self.stored.pages.get(url) {
            None => url,
            Some(page) if self.is_old(page) || is_failing(url) => url,
            Some(_) => self
                .target(url)
                .map(|(at, _)| at)
                .filter(|at| is_failing(at))?,
        };
        (!self.asked.contains(asked)).then_some(asked)
    }

    /// Fetches the URLs that need a request. If none does, no request is sent.
    pub fn fetch(&mut self, urls: &[String]) -> Result<(), Fault> {
        self.fetch_wanted(urls)?;
        let instead = urls.iter().filter_map(|url| self.http_fallback(url));
        let instead: Vec<String> = instead.map(str::to_owned).collect();
        self.fetch_wanted(&instead)
    }

    fn fetch_wanted(&mut self, urls: &[String]) -> Result<(), Fault> {
        if self.cut_short.is_some() {
            return Ok(());
        }
        let wanted = urls.iter().filter_map(|url| self.url_to_request(url));
        let wanted: BTreeSet<String> = wanted.map(str::to_owned).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let before = self.stored.pages.clone();
        let mut ended = match self.fleet.take() {
            None => self.fetch_locally(&wanted)?,
            Some(mut fleet) => {
                let waited = self.fetch_by_fleet(&mut fleet, &wanted);
                self.fleet = Some(fleet);
                waited?
            }
        };
        self.load_stored_pages()?;
        self.former.forget_all_but(&self.stored.failing);
        let asked = wanted.len();
        let is_missing = |pages: &Pages<'_>, url: &String| !pages.stored.pages.contains_key(url);
        let mut unanswered: Vec<String> = wanted.into_iter().collect();
        unanswered.retain(|url| is_missing(self, url));
        if let Some(fleet) = &mut self.fleet
            && matches!(ended, FetchEnd::Done)
            && fleet.duplicates > 0
            && !unanswered.is_empty()
        {
            // The fleet has fetched these URLs before, but its store has dropped the pages since. Fetch them again.
            ended = fetch_end_from(fleet.fetch_and_wait(&FetchOrder {
                old: unanswered.clone(),
                is_in_newest: true,
                ..FetchOrder::default()
            })?);
            self.load_stored_pages()?;
            unanswered.retain(|url| is_missing(self, url));
        }
        if let Some(fleet) = &self.fleet
            && matches!(ended, FetchEnd::Done)
            && unanswered.len() == asked
        {
            return Err(Fault::error(format!(
                "the fleet has fetched {}, and none of them is in {}: give its store with --store",
                count_with_noun(asked, "page"),
                fleet.store
            )));
        }
        let is_new = |(url, page): &(&String, &StoredPage)| {
            before.get(*url).is_none_or(|former| former.at != page.at)
        };
        self.requested += self.stored.pages.iter().filter(is_new).count();
        match ended {
            FetchEnd::Done => {}
            FetchEnd::OutOfPatience => self.unanswered.extend(unanswered),
            FetchEnd::CutShort(status) => self.cut_short = Some(status),
        }
        Ok(())
    }

    fn fetch_locally(&mut self, wanted: &BTreeSet<String>) -> Result<FetchEnd, Fault> {
        let list: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let seeds = self.project.seeds_file();
        write_atomically(&seeds, (list.join("\n") + "\n").as_bytes())?;
        let mut options = self.options.crawl_options(&self.project, &seeds)?;
        if wanted.iter().any(|url| self.stored.failing.contains(url)) {
            options.retry = transient_ends::ends()?;
            // A crawl with `--retry` requests all its failed pages again.
            self.asked.extend(self.stored.failing.iter().cloned());
        }
        self.keep_former_pages(wanted)?;
        self.asked.extend(wanted.iter().cloned());
        let crawl = Crawl::prepare(options)?;
        let state = StateFolder::open(&self.project.state_folder(), "crawl")?;
        let (_, end) = crawl.run_in(state)?;
        match end.status() {
            ExitStatus::Done => Ok(FetchEnd::Done),
            ExitStatus::Interrupted => Err(Fault::interrupted(
                "interrupted: run the same command again to resume; no page is requested twice",
            )),
            status => Ok(FetchEnd::CutShort(status)),
        }
    }

    fn fetch_by_fleet(
        &mut self,
        fleet: &mut FleetFetcher,
        wanted: &BTreeSet<String>,
    ) -> Result<FetchEnd, Fault> {
        // Check the store first, so that a missing store is an error before anything is fetched.
        let uri = fleet.store.clone();
        let opened = self.runtime.block_on(open_existing_with_bodies(&uri));
        drop(opened.map_err(read_fault)?);
        let newest = fleet.crawls().len().saturating_sub(1);
        let mut orders = FetchOrder::default();
        for url in wanted {
            let place = self.stored.fetched_in.get(url).copied().unwrap_or_default();
            if self.stored.failing.contains(url) {
                orders.failed.entry(place).or_default().push(url.clone());
            } else if self.stored.pages.contains_key(url) {
                orders.is_in_newest |= place == newest;
                orders.old.push(url.clone());
            } else {
                orders.new.push(url.clone());
            }
        }
        if !orders.failed.is_empty() {
            // A crawl where failed pages are queued again requests all of its failed pages.
            self.asked.extend(self.stored.failing.iter().cloned());
        }
        self.asked.extend(wanted.iter().cloned());
        Ok(fetch_end_from(fleet.fetch_and_wait(&orders)?))
    }

    /// Makes copies of the pages that are about to be requested again, for the case that the refresh fails.
    fn keep_former_pages(&mut self, wanted: &BTreeSet<String>) -> Result<(), Fault> {
        let is_again = |url: &str| wanted.contains(url) && !self.stored.failing.contains(url);
        if !self.stored.pages.keys().any(|url| is_again(url)) {
            return Ok(());
        }
        let mut kept = Vec::new();
        for (url, page) in &self.stored.pages {
            if is_again(url) && page.redirect.is_some() {
                kept.push((url.clone(), page.clone(), String::new()));
            }
        }
        self.for_each_page(&is_again, &mut |page, gathered| {
            kept.push((gathered.url.to_string(), page.clone(), gathered.text));
            Ok(())
        })?;
        for (url, page, text) in kept {
            self.former.keep_page(url, page, &text)?;
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

    /// The crawls that fetch the pages of the table, with the oldest first.
    fn crawls(&self) -> Vec<CrawlId> {
        match &self.fleet {
            Some(fleet) => fleet.crawls(),
            None => vec![CrawlId::new(Project::APP, Project::CRAWL)],
        }
    }

    async fn open_store(&self) -> Result<(Arc<dyn Store>, Arc<dyn Bodies>), Fault> {
        let uri = match &self.fleet {
            Some(fleet) => fleet.store.clone(),
            None => self.project.store_uri().parse().map_err(Fault::usage)?,
        };
        open_existing_with_bodies(&uri).await.map_err(read_fault)
    }

    /// Reads all stored pages without their bodies.
    fn load_stored_pages(&mut self) -> Result<(), Fault> {
        if self.fleet.is_none() && !self.project.store_file().exists() {
            return Ok(());
        }
        let crawls = self.crawls();
        if crawls.is_empty() {
            return Ok(());
        }
        let mut found = StoredPages::default();
        let store = self.runtime.block_on(self.open_store())?.0;
        for (place, crawl) in crawls.iter().enumerate() {
            let filter = ExportFilter {
                app_id: Some(crawl.app_id.clone()),
                crawl_id: Some(crawl.crawl_id.clone()),
                ..ExportFilter::default()
            };
            let mut take = |page: Value| {
                found.add_unless_failed(&page, &crawls[..place]);
                Ok(())
            };
            let read = store.export(ExportKind::Pages, &filter, &mut take);
            self.runtime.block_on(read).map_err(|error| match error {
                ExportError::Store(error) => read_fault(error),
                ExportError::Output(error) => Fault::error(error),
            })?;
        }
        if self.fleet.is_none() {
            for (url, page) in self.former.pages() {
                if found.failing.contains(url) {
                    found.pages.insert(url.clone(), page.clone());
                }
            }
        }
        self.stored = found;
        Ok(())
    }

    /// Passes each kept page to `take` if `is_wanted` returns true for its canonical URL.
    pub fn for_each_page(
        &self,
        is_wanted: &dyn Fn(&str) -> bool,
        take: &mut dyn FnMut(&StoredPage, GatheredPage) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if self.stored.pages.is_empty() {
            return Ok(());
        }
        let bodies = self.runtime.block_on(self.open_store())?.1;
        for crawl in self.crawls() {
            let read = self.for_each_page_of_crawl(&*bodies, &crawl, is_wanted, take);
            self.runtime.block_on(read)?;
        }
        if self.fleet.is_some() {
            return Ok(());
        }
        for url in self.former.pages().keys() {
            if self.stored.failing.contains(url)
                && is_wanted(url)
                && let Some(gathered) = self.former.load_page(url)?
            {
                take(&self.stored.pages[url], gathered)?;
            }
        }
        Ok(())
    }

    async fn for_each_page_of_crawl(
        &self,
        bodies: &dyn Bodies,
        crawl: &CrawlId,
        is_wanted: &dyn Fn(&str) -> bool,
        take: &mut dyn FnMut(&StoredPage, GatheredPage) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let read = async || bodies.bodies(crawl, after.clone()).await;
            let some = retry_while_busy(read).await?;
            let Some(last) = some.last() else {
                return Ok(());
            };
            after = Some(last.page_id.clone());
            for body in some {
                let Some(url) = self.stored.urls.get(&body.page_id) else {
                    continue;
                };
                let page = &self.stored.pages[url];
                let is_its = page.content_hash.as_ref() == Some(&body.content_hash);
                if !is_its || !is_wanted(url) {
                    continue;
                }
                let Ok(parsed) = canonical_url(url, None) else {
                    continue;
                };
                if let Some(gathered) = page.decode_page(parsed, &body)? {
                    take(page, gathered)?;
                }
            }
        }
    }
}

fn fetch_end_from(waited: WaitResult) -> FetchEnd {
    match waited {
        WaitResult::Done => FetchEnd::Done,
        WaitResult::OutOfPatience => FetchEnd::OutOfPatience,
        WaitResult::Stopped => FetchEnd::CutShort(ExitStatus::Limit),
    }
}
