//! Provides pages by their URLs. A page comes from the folder of kept pages, or is fetched once, politely, and then
//! kept there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use webfill_scheduler::excluded_sites::ExcludedSites;
use webfill_service::Fault;
use webfill_urls::Url;
use webfill_wire::Outcome;
use webfill_worker::{DocumentsConfig, NoPage, SingleFetcher};

use super::kept::PageFolder;
use super::sources::{Source, SourcePlace};
use crate::cli::PageFetchOptions;
use crate::settings::Settings;

/// The folder of kept pages, beside the mapping.
const FOLDER: &str = "pages";

/// Provides pages, from the folder of kept pages or from the web.
pub struct PageProvider<'o> {
    options: &'o PageFetchOptions,
    kept: PageFolder,
    web: Option<Web>,
}

struct Web {
    fetcher: SingleFetcher,
    runtime: Runtime,
    delay: Duration,
}

impl<'o> PageProvider<'o> {
    /// Opens the folder of kept pages: the one given by `--keep`, or else one beside the mapping file or folder. If any
    /// page must be fetched, the settings are checked first.
    pub fn open(
        options: &'o PageFetchOptions,
        mapping: &Path,
        sources: &[Source],
    ) -> Result<Self, Fault> {
        let urls = sources.iter().filter_map(|source| match &source.place {
            SourcePlace::Web(url) => Some(url),
            SourcePlace::File(_) => None,
        });
        let urls: Vec<&Url> = urls.collect();
        let folder = kept_pages_folder(options, mapping);
        let kept = match urls.is_empty() {
            true => PageFolder::without_index(&folder),
            false => PageFolder::open(&folder)?,
        };
        let mut fetching = PageProvider {
            options,
            kept,
            web: None,
        };
        if urls.iter().any(|url| fetching.kept_source(url).is_none()) {
            fetching.web = Some(open_web(options)?);
        }
        Ok(fetching)
    }

    /// The kept page of a URL. If none is kept, or `--again` was given, it is fetched now.
    pub fn find_or_fetch(&mut self, url: &Url) -> Result<Source, PageUnavailable> {
        let Some((source, ago)) = self.kept_source(url) else {
            return self.fetch(url);
        };
        let (path, ago) = (source.shown_path(), render_age(ago));
        webfill_service::say!(
            "webfill: reading {path}, fetched {ago} ago; use --again to fetch it again"
        );
        Ok(source)
    }

    /// The limits for reading documents, which are the same as in crawls.
    pub fn load_documents_config(&self) -> Result<DocumentsConfig, Fault> {
        let settings = Settings::load(self.options.config.as_deref())?;
        Ok(settings.documents)
    }

    fn kept_source(&self, url: &Url) -> Option<(Source, Duration)> {
        match self.options.again {
            true => None,
            false => self.kept.latest_page(url),
        }
    }

    fn fetch(&mut self, url: &Url) -> Result<Source, PageUnavailable> {
        let web = match self.web.take() {
            Some(web) => web,
            None => open_web(self.options)?,
        };
        let ago = self.kept.last_request_ago(url);
        if let Some(left) = ago.and_then(|ago| web.delay.checked_sub(ago)) {
            let (site, seconds) = (webfill_urls::site(url), left.as_secs() + 1);
            webfill_service::say!(
                "webfill: waiting {seconds} s, because {site} was requested just now"
            );
        }
        let ago = |url: &Url| self.kept.last_request_ago(url);
        let fetched = web.runtime.block_on(web.fetcher.fetch(url, &ago));
        let asked = web.fetcher.take_requested_urls();
        self.web = Some(web);
        for hop in asked.iter().filter(|hop| fetched.is_err() || *hop != url) {
            self.kept.note_request(hop)?;
        }
        let page = fetched
            .map_err(|no_page| PageUnavailable::OnTheWeb(describe_missing_page(&no_page)))?;
        let source = match self.kept.keep_page(url, &page) {
            Ok(source) => source,
            Err(fault) => {
                self.kept.note_request(url)?;
                return Err(fault.into());
            }
        };
        webfill_service::say!("webfill: fetched {url}, kept as {}", source.shown_path());
        Ok(source)
    }
}

/// Why a page is unavailable.
pub enum PageUnavailable {
    /// The fetch failed. Other pages may still be available.
    OnTheWeb(String),
    /// The fault is on this machine, so other pages are unavailable, too.
    Here(Fault),
}

impl From<Fault> for PageUnavailable {
    fn from(fault: Fault) -> PageUnavailable {
        PageUnavailable::Here(fault)
    }
}

impl From<PageUnavailable> for Fault {
    fn from(missing: PageUnavailable) -> Fault {
        match missing {
            PageUnavailable::OnTheWeb(reason) => Fault::error(reason),
            PageUnavailable::Here(fault) => fault,
        }
    }
}

/// The folder of kept pages: that of `--keep`, or else the one beside the mapping.
fn kept_pages_folder(options: &PageFetchOptions, mapping: &Path) -> PathBuf {
    let beside = match mapping.is_dir() {
        true => Some(mapping),
        false => mapping.parent(),
    };
    let keep = options.keep.clone();
    keep.unwrap_or_else(|| beside.unwrap_or(Path::new("")).join(FOLDER))
}

fn open_web(options: &PageFetchOptions) -> Result<Web, Fault> {
    let mut settings = Settings::load(options.config.as_deref())?;
    let politeness = &mut settings.politeness;
    if options.contact.is_some() {
        politeness.contact.clone_from(&options.contact);
    }
    politeness.allow_private_networks |= options.allow_private_networks;
    settings.validate()?;
    settings.require_contact()?;
    let list = settings.dispatcher.exclude_sites.as_deref();
    let excluded = list.map(ExcludedSites::load);
    let excluded = excluded.transpose().map_err(Fault::usage)?;
    let is_excluded = move |url: &Url| {
        let excludes = |excluded: &ExcludedSites| excluded.excludes(url, &webfill_urls::site(url));
        excluded.as_ref().is_some_and(excludes)
    };
    let fetcher = SingleFetcher::new(&settings.fetch, &settings.politeness, Box::new(is_excluded))?;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Fault::error(format!("cannot start: {error}")))?;
    Ok(Web {
        fetcher,
        runtime,
        delay: settings.politeness.delay(),
    })
}

fn describe_missing_page(no_page: &NoPage) -> String {
    let NoPage { url, reason, .. } = no_page;
    let host = url.host_str().unwrap_or_default();
    let because = reason.as_ref().map(|reason| format!(": {reason}"));
    let because = because.unwrap_or_default();
    match (no_page.outcome, no_page.status_code) {
        (Outcome::Disallowed, _) if reason.is_none() => {
            format!("{url}: disallowed by the robots.txt of {host}")
        }
        (Outcome::RobotsUnreachable, _) => {
            format!("{url}: robots.txt of {host} unavailable, nothing allowed{because}")
        }
        (Outcome::Blocked, _) => format!("{url}: blocked by {host}{because}"),
        (Outcome::UnsupportedType, _) => {
            format!("{url}: unsupported type{because}")
        }
        (Outcome::HttpError, Some(status)) => {
            format!("{url}: the server returned {status}{because}")
        }
        (outcome, _) => format!("{url}: {outcome}{because}"),
    }
}

/// Formats an age: `5 s`, `3 min`, `2 h` or `4 days`.
fn render_age(ago: Duration) -> String {
    match ago.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7_199 => format!("{} min", seconds / 60),
        seconds @ 7_200..=172_799 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
