//! `webfill mapping learn`: learns a mapping from pages and the records that link to them.
//!
//! It first collects the URLs of the pages, then the records that link to these URLs, and then reads the pages with
//! known values. With `--fetch`, or if only examples are given, the order is reversed: records or examples decide which
//! pages are fetched.

pub mod archive;
pub mod folder;
pub mod gathered;
mod join;
mod layouts;
mod listed;
pub mod output;
pub mod records;
mod report;
mod statements;
pub mod stored;
mod web;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use tokio::runtime::Runtime;
use webfill_learn::{Learned, Limits, Task};
use webfill_service::{ExitStatus, Fault};
use webfill_store::CrawlId;
use webfill_urls::{Url, site};
use webfill_worker::PageReader;

use self::archive::Archive;
use self::folder::Folder;
use self::gathered::{GatheredPage, PageGatherer, Pages};
use self::listed::ListedRecords;
use self::records::{KnownRecord, KnownRecords};
use self::statements::PageStatements;
use self::stored::StoredCrawl;
use crate::cli::MappingLearnOptions;
use crate::settings::Settings;

/// Runs `webfill mapping learn` on a thread whose stack is large enough for reading pages.
pub fn run(options: MappingLearnOptions) -> Result<ExitStatus, Fault> {
    run_on_thread("learn", move || learn(&options))
}

/// Runs a function on a thread whose stack is large enough for reading pages.
pub fn run_on_thread(
    name: &str,
    run: impl FnOnce() -> Result<ExitStatus, Fault> + Send + 'static,
) -> Result<ExitStatus, Fault> {
    let thread = std::thread::Builder::new()
        .name(name.into())
        .stack_size(PageReader::STACK_BYTES)
        .spawn(run)
        .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
    let ended = thread.join();
    ended.unwrap_or_else(|_| Err(Fault::error("learning failed")))
}

/// Creates a Tokio runtime for reading stores.
pub fn runtime() -> Result<Runtime, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| Fault::error(format!("cannot start: {error}")))
}

fn learn(options: &MappingLearnOptions) -> Result<ExitStatus, Fault> {
    let said = statements::read_statements(options)?;
    check_options(options, &said)?;
    let runtime = runtime()?;
    let (pages, records) = load_pages_and_records(options, &said, &runtime)?;
    let Pages {
        pages,
        of_other_kinds,
    } = pages;
    if options.records.records.is_some() {
        records.check_fields(
            options
                .fields
                .iter()
                .filter(|field| !has_statement(&said, field)),
        )?;
    }
    let task = Task {
        name: mapping_name(options, &pages),
        fields: options.fields.clone(),
        limits: Limits::default(),
    };
    let links = records.links_to_sites_of(pages.iter().map(|page| &page.url));
    let mut learned = Learned {
        mappings: Vec::new(),
        left_out: Vec::new(),
    };
    let mut listed = ListedRecords::new(&pages, &records, options.rows);
    if !listed.is_empty() {
        if options.fields.is_empty() {
            join::leave_out_unusable_rows(&mut listed);
        }
        let dataset = options.dataset.as_ref();
        learned = listed.learn(&pages, &links, &of_other_kinds, &task, dataset)?;
    }
    let single = pages
        .iter()
        .enumerate()
        .filter(|(at, _)| !listed.lists_records(*at));
    let single: Vec<GatheredPage> = single.map(|(_, page)| page.clone()).collect();
    // A page that is not a list is used if a record links to it.
    if listed.is_empty() || join::is_any_known(&single, &records, &said) {
        let mut joined = join::join_pages_with_values(&single, &records, &said)?;
        if options.fields.is_empty() {
            join::leave_out_unusable_names(&mut joined);
        }
        let lists = pages
            .iter()
            .enumerate()
            .filter(|(at, _)| listed.lists_records(*at));
        let mut others = of_other_kinds.clone();
        others.extend(lists.map(|(_, page)| page.url.clone()));
        let of_pages = webfill_learn::learn_with_links(&joined, &links, &others, &task);
        let of_pages = of_pages.map_err(Fault::usage)?;
        learned.mappings.extend(of_pages.mappings);
        learned.left_out.extend(of_pages.left_out);
    }
    match options.name {
        None => name_after_sites(&mut learned),
        Some(_) => number_mappings(&mut learned, &task.name),
    }
    let report_of_learning = report::LearnReport {
        learned: &learned,
        records: &records,
        pages: pages.len(),
    };
    report_of_learning.write_and_report(&options.to)?;
    Ok(exit_status(options, &learned))
}

/// Refuses useless combinations of flags, before anything is opened.
fn check_options(options: &MappingLearnOptions, said: &PageStatements) -> Result<(), Fault> {
    output::refuse_existing(&options.to)?;
    if options.records.records.is_none() && said.is_empty() {
        return Err(Fault::usage(
            "no known values: give records with --records, or values with --example URL FIELD=VALUE",
        ));
    }
    let from = &options.from;
    let has_pages = from.pages.is_some() || from.warc.is_some() || from.crawl.is_some();
    if options.records.records.is_some() && !has_pages && options.fetch.is_none() && said.is_empty()
    {
        return Err(Fault::usage(
            "no pages: give --pages DIR, --warc PATH, --crawl ID (run with --keep-bodies), or --fetch N to fetch pages that the records link to",
        ));
    }
    Ok(())
}

fn has_statement(said: &PageStatements, field: &str) -> bool {
    said.values().any(|fields| fields.contains_key(field))
}

/// A set of URLs, stored as hashes because a crawl may have millions.
#[derive(Default)]
struct UrlSet {
    hasher: RandomState,
    hashes: HashSet<u64>,
}

impl UrlSet {
    fn add(&mut self, url: &str) {
        self.hashes.insert(self.hasher.hash_one(url));
    }

    fn has_page(&self, url: &str) -> bool {
        self.hashes.contains(&self.hasher.hash_one(url))
    }

    fn has_any_of(&self, record: &KnownRecord) -> bool {
        record.links.iter().any(|link| self.has_page(link))
    }
}

fn load_pages_and_records(
    options: &MappingLearnOptions,
    said: &PageStatements,
    runtime: &Runtime,
) -> Result<(Pages, KnownRecords), Fault> {
    let from = &options.from;
    let mut urls = UrlSet::default();
    let read_records = |urls: &UrlSet| {
        let is_wanted = |record: &KnownRecord| options.rows || urls.has_any_of(record);
        KnownRecords::read(&options.records, runtime, &is_wanted, &|_| false)
    };
    if let Some(folder) = &from.pages {
        let folder = Folder::open(folder)?;
        folder.urls().for_each(|url| urls.add(url));
        let records = read_records(&urls)?;
        let pages = gather_known_first(&records, said, |gathering| folder.gather(gathering))?;
        return Ok((pages, records));
    }
    if let Some(path) = &from.warc {
        let settings = Settings::load(options.web.config.as_deref())?;
        let mut archive = Archive::open(path, settings.fetch.max_body_bytes)?;
        archive.for_each_url(&mut |url| urls.add(url))?;
        let records = read_records(&urls)?;
        let pages = gather_known_first(&records, said, |gathering| archive.gather(gathering))?;
        return Ok((pages, records));
    }
    if let Some(crawl) = &from.crawl {
        let mut settings = Settings::load(options.web.config.as_deref())?;
        if let Some(store) = &from.store {
            settings.store.clone_from(store);
        }
        let crawl = CrawlId::new(&from.app, crawl);
        let uri = settings.store_uri()?;
        let mut stored = runtime.block_on(StoredCrawl::open(&uri, crawl))?;
        runtime.block_on(stored.for_each_url(&mut |url| urls.add(url)))?;
        let records = read_records(&urls)?;
        let pages = gather_known_first(&records, said, |gathering| {
            runtime.block_on(stored.gather(gathering, |_, _| true))
        })?;
        return Ok((pages, records));
    }
    web::fetch_pages_and_records(options, said, runtime)
}

/// Gathers pages, and prefers those with known values.
fn gather_known_first(
    records: &KnownRecords,
    said: &PageStatements,
    gather: impl FnOnce(&mut PageGatherer<'_>) -> Result<(), Fault>,
) -> Result<Pages, Fault> {
    let is_known = |url: &str| records.has_link(url) || said.contains_key(url);
    let mut gathering = PageGatherer::new(&is_known);
    gather(&mut gathering)?;
    if gathering.passed_over > 0 {
        let (pages, more) = (gathering.pages.len(), gathering.passed_over);
        webfill_service::say!("webfill: learning from {pages} pages; {more} more are not used");
    }
    Ok(gathering.into())
}

/// The name of the learned mapping: `--name`, or else the site of the first page.
fn mapping_name(options: &MappingLearnOptions, pages: &[GatheredPage]) -> String {
    if let Some(name) = &options.name {
        return name.clone();
    }
    let first = pages.first();
    first.map_or_else(|| String::from("learned"), |page| name_of_site(&page.url))
}

fn name_of_site(url: &Url) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    site(url).replace(|c| !is_plain(c), "_")
}

/// Gives all mappings this name. The second and later ones get a number at its end.
fn number_mappings(learned: &mut Learned, name: &str) {
    for (at, mapping) in learned.mappings.iter_mut().enumerate().skip(1) {
        mapping.mapping["name"] = format!("{name}{}", at + 1).into();
    }
}

/// Names each mapping after its site. The second and later mappings of a site get a number at the end.
fn name_after_sites(learned: &mut Learned) {
    let mut of_site: HashMap<String, usize> = HashMap::new();
    for mapping in &mut learned.mappings {
        let url = mapping.pages.first().and_then(|url| Url::parse(url).ok());
        let Some(site) = url.map(|url| name_of_site(&url)) else {
            continue;
        };
        let number = of_site.entry(site.clone()).or_default();
        *number += 1;
        mapping.mapping["name"] = match *number {
            1 => site.into(),
            number => format!("{site}{number}").into(),
        };
    }
}

/// The exit status: 1 if a requested field was not learned, or if nothing was.
fn exit_status(options: &MappingLearnOptions, learned: &Learned) -> ExitStatus {
    let reports = learned.mappings.iter().flat_map(|mapping| &mapping.fields);
    let found: HashSet<&str> = reports
        .filter(|report| report.processors.is_some())
        .map(|report| report.field.as_str())
        .collect();
    let lacks = |field: &String| !found.contains(field.as_str());
    match found.is_empty() || options.fields.iter().any(lacks) {
        true => ExitStatus::Error,
        false => ExitStatus::Done,
    }
}
