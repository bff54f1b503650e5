//! `webfill extract`: reads the kept pages of a crawl again with the current mappings, and reports what changes.
//! Nothing is fetched. The command may run during a crawl, and can be repeated after an interruption.

mod bodies;
mod busy_store;
mod candidate;
mod documents;
mod reading;
mod report;
mod seen;
mod warc;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use webfill_mapping::MappingSet;
use webfill_service::signals;
use webfill_service::{ExitStatus, Fault};
use webfill_store::{CrawlId, open_existing_with_bodies};
use webfill_worker::{MappingSetRules, PageReader};

pub use self::busy_store::{read_fault, retry_while_busy};
use self::reading::{PageRereader, Source};
use self::report::Report;
use crate::cli::{parse_id, whole_number};
use crate::mapping_files::load_mappings;
use crate::settings::Settings;
use crate::stdout::print;

#[derive(Debug, Args)]
pub struct ExtractOptions {
    /// Crawl whose pages are read
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    pub crawl: String,
    /// Application of the crawl; `watches` for runs of watches
    #[arg(long, value_name = "ID", default_value = "local", value_parser = parse_id)]
    pub app: String,
    /// Only pages that this mapping matches or has read
    #[arg(long, value_name = "NAME")]
    pub mapping: Option<String>,
    /// Folder of mapping files [default: etl-mappings]
    #[arg(long, value_name = "DIR")]
    pub mappings: Option<PathBuf>,
    /// Store of the crawl [default: sqlite:webfill.db]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    /// Settings file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Read the pages in the WARC files of this folder instead of kept bodies
    #[arg(long, value_name = "DIR", conflicts_with = "kept_documents")]
    pub warc: Option<PathBuf>,
    /// Read the documents in this folder of `--keep-documents` instead of kept bodies
    #[arg(long, value_name = "DIR")]
    pub kept_documents: Option<PathBuf>,
    /// Show the changes without writing them
    #[arg(long)]
    pub dry_run: bool,
    /// Number of examples for each field
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole_number(0..=1_000_u16))]
    pub examples: u16,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Runs `webfill extract` on a thread whose stack is large enough for reading pages.
pub fn run(options: ExtractOptions) -> Result<ExitStatus, Fault> {
    let prepared = PreparedExtract::new(options)?;
    signals::install_handlers();
    let thread = std::thread::Builder::new()
        .name("extract".into())
        .stack_size(PageReader::STACK_BYTES)
        .spawn(move || prepared.run())
        .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
    thread
        .join()
        .unwrap_or_else(|_| Err(Fault::error("reading a page failed")))
}

/// A run of `webfill extract` whose options have passed all checks that need no open store.
struct PreparedExtract {
    options: ExtractOptions,
    settings: Settings,
    mappings: Arc<MappingSet>,
}

impl PreparedExtract {
    fn new(options: ExtractOptions) -> Result<PreparedExtract, Fault> {
        let mut settings = Settings::load(options.config.as_deref())?;
        if let Some(store) = &options.store {
            settings.store.clone_from(store);
        }
        if let Some(mappings) = &options.mappings {
            settings.mappings.clone_from(mappings);
        }
        settings.validate()?;
        for (flag, folder) in [
            ("--warc", &options.warc),
            ("--kept-documents", &options.kept_documents),
        ] {
            if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
                let folder = folder.display();
                return Err(Fault::usage(format!("{flag} {folder}: not a folder")));
            }
        }
        let mappings = load_mappings(&settings.mappings)?;
        if let Some(name) = &options.mapping
            && mappings.find_by_name(name).is_none()
        {
            let folder = settings.mappings.display();
            return Err(Fault::usage(format!(
                "--mapping {name}: no mapping of this name in {folder}"
            )));
        }
        Ok(PreparedExtract {
            options,
            settings,
            mappings: Arc::new(mappings),
        })
    }

    fn run(self) -> Result<ExitStatus, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
        let (report, status) = runtime.block_on(self.read_all())?;
        match self.options.json {
            true => print(report.json())?,
            false => print(report.text())?,
        }
        status
    }

    /// Reads all kept pages. The report is returned even if reading fails, because all results until then are stored.
    async fn read_all(&self) -> Result<(Report, Result<ExitStatus, Fault>), Fault> {
        let options = &self.options;
        let uri = self.settings.store_uri()?;
        let (store, bodies) = open_existing_with_bodies(&uri)
            .await
            .map_err(Fault::error)?;
        store.set_mapping_rules(Arc::new(MappingSetRules(Arc::clone(&self.mappings))));
        let crawl = CrawlId::new(&options.app, &options.crawl);
        if store
            .get_crawl(&crawl)
            .await
            .map_err(Fault::error)?
            .is_none()
        {
            return Err(Fault::error(format!(
                "no crawl {crawl} in {uri}: check --app, --crawl and --store"
            )));
        }
        let max_body_bytes = self.settings.fetch.max_body_bytes;
        let mut source = match (&options.warc, &options.kept_documents) {
            (Some(folder), _) => {
                Source::Warc(warc::ArchivePages::open(folder, &crawl, max_body_bytes)?)
            }
            (_, Some(folder)) => Source::Documents(documents::KeptDocuments::new(
                folder,
                &crawl,
                Arc::clone(&store),
            )),
            (None, None) => Source::Bodies(bodies::KeptBodies::new(&crawl, bodies)),
        };
        let reader = PageReader::new(
            Arc::clone(&self.mappings),
            &self.settings.worker,
            &self.settings.documents,
        );
        let report = Report::new(
            &crawl,
            source.name(),
            options.dry_run,
            options.examples.into(),
        );
        let mut reading = PageRereader::new(&*store, &reader, &self.mappings, options, report)
            .map_err(Fault::error)?;
        let status = reading.read_all(&mut source).await;
        let mut report = reading.into_report().map_err(Fault::error)?;
        source.report_skipped_pages(&mut report);
        match status {
            Err(fault) if !report.has_found => Err(fault),
            Ok(ExitStatus::Done) if !report.has_found => {
                Err(Fault::error(Source::empty_reason(report.source, &crawl)))
            }
            status => Ok((report, status)),
        }
    }
}
