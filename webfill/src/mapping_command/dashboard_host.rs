//! The host of the dashboard's mapping editor: fetches pages and keeps golden cases as `webfill mapping test` and
//! `webfill mapping save` do. Also runs the editor's jobs: `webfill dashboard-job`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use webfill_dashboard::editor::host::{FetchedPage, GoldenCase, Host};
use webfill_dashboard::editor::job::{self, Decoded};
use webfill_mapping::{Extraction, Listing, PageKind, Row};
use webfill_reader::process::STACK_BYTES;
use webfill_reader::{Limits, Report, Status};
use webfill_service::{ExitStatus, Fault};
use webfill_urls::Url;
use webfill_worker::{PageReader, is_document};

use super::fetching::PageProvider;
use super::golden::NewCase;
use super::page::kind_and_text;
use super::save::golden_folder;
use super::sources::{Source, SourcePlace};
use crate::cli::PageFetchOptions;

/// The services that the dashboard's mapping editor needs ([`Host`]).
#[derive(Debug)]
pub struct DashboardHost {
    options: PageFetchOptions,
    /// Allows one fetch at a time, so that each fetch knows the time of the previous one.
    fetching: Arc<Mutex<()>>,
}

impl DashboardHost {
    /// `config` is the settings file. Fetches follow its settings.
    pub fn new(config: Option<&Path>) -> DashboardHost {
        DashboardHost {
            options: PageFetchOptions {
                config: config.map(Path::to_owned),
                ..PageFetchOptions::default()
            },
            fetching: Arc::default(),
        }
    }
}

#[async_trait]
impl Host for DashboardHost {
    async fn fetch(&self, mappings: &Path, url: &Url) -> Result<FetchedPage, String> {
        let (options, turn) = (self.options.clone(), Arc::clone(&self.fetching));
        let (mappings, url) = (mappings.to_owned(), url.clone());
        let fetching = tokio::task::spawn_blocking(move || {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            fetch_page(&options, &mappings, &url)
        });
        let fetched = fetching.await.map_err(|error| error.to_string())?;
        fetched.map_err(|fault| fault.message)
    }

    async fn add_golden_case(&self, mappings: &Path, case: GoldenCase) -> Result<PathBuf, String> {
        let folder = golden_folder(mappings);
        let keeping = tokio::task::spawn_blocking(move || keep_case_in(&folder, case));
        let kept = keeping.await.map_err(|error| error.to_string())?;
        kept.map_err(|fault| fault.message)
    }
}

fn fetch_page(
    options: &PageFetchOptions,
    mappings: &Path,
    url: &Url,
) -> Result<FetchedPage, Fault> {
    // Name the URL as a source: only then does the provider read the index of kept pages, which has the time of the
    // last request to the site.
    let asked = Source::from_url(url);
    let mut fetching = PageProvider::open(options, mappings, &[asked])?;
    let source = fetching.find_or_fetch(url)?;
    let SourcePlace::File(path) = &source.place else {
        return Err(Fault::error(format!("{url}: it was not kept")));
    };
    let body = std::fs::read(path)
        .map_err(|error| Fault::error(format!("cannot read {}: {error}", path.display())))?;
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    Ok(FetchedPage {
        url: source.url.as_ref().unwrap_or(url).to_string(),
        content_type: source.content_type.clone(),
        ending: ending.into_owned(),
        body,
    })
}

fn keep_case_in(folder: &Path, case: GoldenCase) -> Result<PathBuf, Fault> {
    let extraction = Extraction {
        mapping: Some(case.mapping),
        fields: case.fields,
        links: case.links,
        listings: case.rows.iter().map(parse_listing).collect(),
        ..Extraction::default()
    };
    let ending = match case.ending.as_str() {
        "" => "html",
        ending => ending,
    };
    let case = NewCase {
        folder,
        name: None,
        is_numbered: true,
        url: &case.url,
        content_type: case.content_type.as_deref(),
        body: &case.body,
        ending,
        extraction: &extraction,
    };
    case.save_case()
}

/// Parses a listing (the rows that a mapping has read) from the JSON of an editor's job.
fn parse_listing(read: &Value) -> Listing {
    let rows = read["rows"].as_array().into_iter().flatten().enumerate();
    let links = |position: usize| {
        let links = read["links"][position].as_array().into_iter().flatten();
        links
            .filter_map(|link| link.as_str().map(str::to_owned))
            .collect()
    };
    let row = |(position, row): (usize, &Value)| Row {
        position,
        links: links(position),
        fields: row.as_object().cloned().unwrap_or_default(),
        undecided: Vec::new(),
    };
    Listing {
        dataset: read["dataset"].as_str().unwrap_or_default().to_owned(),
        rows: rows.map(row).collect(),
        ..Listing::default()
    }
}

/// Runs one job of the mapping editor: `webfill dashboard-job`.
pub fn run_dashboard_job() -> Result<ExitStatus, Fault> {
    let cannot = |error: std::io::Error| {
        Fault::error(format!("a job of the dashboard cannot be done: {error}"))
    };
    // If memory runs out, the kernel should kill this process first. If this setting fails, nothing else breaks.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    // The new thread restricts its own access to files, and the system calls of all threads. This thread only waits for
    // it.
    let working = std::thread::Builder::new()
        .stack_size(STACK_BYTES.max(PageReader::STACK_BYTES))
        .spawn(move || {
            webfill_reader::confine_process(&limits())?;
            job::run(decode)
        });
    let worked = working.map_err(cannot)?.join();
    let worked = worked.unwrap_or_else(|_| Err(std::io::Error::other("its thread failed")));
    worked.map_err(cannot)?;
    Ok(ExitStatus::Done)
}

/// The longest text of a document, in bytes. It is the same as in crawls.
const DOCUMENT_TEXT_BYTES: u64 = 10 << 20;

/// Decodes a page. Its kind is decided by the content type, else by the file's ending, else by the content. Documents
/// are read in this process, because it is confined like a reader of documents.
fn decode(body: &[u8], content_type: Option<&str>, ending: &str) -> Result<Decoded, String> {
    if is_document(content_type, body)
        && let Ok(report) = webfill_reader::process::read(body.to_vec(), &limits())
    {
        return decode_document(report);
    }
    let name = PathBuf::from(format!("page.{ending}"));
    let (kind, text) = kind_and_text(&name, content_type, body)
        .ok_or("it is neither HTML, XML, JSON or text, nor a known kind of document")?;
    Ok(Decoded {
        kind,
        text,
        metadata: None,
    })
}

/// The text of a document. A crawl with `--documents` would apply a mapping to this text.
fn decode_document(report: Report) -> Result<Decoded, String> {
    match report.status {
        Status::Text | Status::NoText => Ok(Decoded {
            kind: PageKind::Text,
            text: report.text,
            metadata: Some(report.metadata.clean().entries().collect()),
        }),
        Status::Encrypted | Status::Broken | Status::TooLarge => {
            let reason = report.reason.map(|reason| format!(": {reason}"));
            Err(format!(
                "no mapping applies to this document, because it is {}{}",
                report.status.as_str(),
                reason.unwrap_or_default()
            ))
        }
    }
}

fn limits() -> Limits {
    Limits {
        memory_bytes: job::MEMORY_BYTES,
        cpu_seconds: job::CPU_SECONDS,
        input_bytes: 0,
        text_bytes: DOCUMENT_TEXT_BYTES,
    }
}
