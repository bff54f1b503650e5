//! Documents (PDF, office formats, RTF, plain text) as pages: which bodies are documents, and how they are read and
//! kept.
//!
//! A document is read by a process of its own ([`child`], [`webfill_reader`]), which lives for this one document. So a
//! malicious document cannot attack the worker. The worker sees only the exit status, the error messages and the
//! report, and does not trust the report. Plain text needs no such process.

use std::path::PathBuf;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};
use webfill_reader::{Metadata, Report, Status};
use webfill_service::Fault;

use crate::charset::{self, Kind};
use crate::kept_body::{self, KeptBody};

mod child;
mod kept;

/// Whether documents are read, their limits, and where they are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DocumentsConfig {
    /// Read documents as pages; otherwise they end in `unsupported_type`.
    pub read: bool,
    /// The folder that keeps the bytes of documents, by their SHA-256. Without it, none are kept.
    pub keep: Option<PathBuf>,
    /// Documents that a worker reads at the same time.
    pub readers: usize,
    /// Seconds of CPU time for one document; the limit in wall-clock time is three times as long.
    pub deadline: f64,
    /// Memory for one document, in MiB.
    pub memory_mib: u64,
}

impl Default for DocumentsConfig {
    fn default() -> Self {
        DocumentsConfig {
            read: false,
            keep: None,
            readers: 1,
            deadline: 20.0,
            memory_mib: 256,
        }
    }
}

impl DocumentsConfig {
    /// Whether documents are read. A folder to keep them in implies that they are read.
    pub fn reads_documents(&self) -> bool {
        self.read || self.keep.is_some()
    }
}

/// Refuses invalid settings before anything is opened.
pub fn check(config: &DocumentsConfig) -> Result<(), Fault> {
    match &config.keep {
        Some(folder) if folder.as_os_str().is_empty() => Err(Fault::usage(
            "documents.keep: the name of the folder is empty",
        )),
        Some(folder) if folder.exists() && !folder.is_dir() => Err(Fault::usage(format!(
            "--keep-documents {}: not a folder",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// Creates the folder of kept documents, and reads a built-in document as a trial. A wrong folder, or a machine that
/// cannot read documents, is thus reported before anything is fetched.
pub fn prepare(config: &DocumentsConfig) -> Result<(), Fault> {
    if config.reads_documents() {
        read_trial(config)?;
    }
    let Some(folder) = &config.keep else {
        return Ok(());
    };
    std::fs::create_dir_all(folder).map_err(|error| {
        Fault::usage(format!(
            "--keep-documents {}: cannot create this folder: {error}",
            folder.display()
        ))
    })
}

/// A small RTF document for a trial. If it cannot be read, the machine is the cause.
const TRIAL: &[u8] = br"{\rtf1 trial}";

fn read_trial(config: &DocumentsConfig) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Fault::error)?;
    check_trial(runtime.block_on(child::read(TRIAL, config, Attempt::Early)))
}

fn check_trial(read: Result<Report, NoDocument>) -> Result<(), Fault> {
    let trouble = match read {
        Ok(report) if report.status == Status::Text => return Ok(()),
        Ok(report) => report.reason.unwrap_or_default(),
        Err(NoDocument::NotRead(reason)) => reason,
        Err(_) => "the trial document was not recognised".to_owned(),
    };
    Err(Fault::error(format!(
        "--documents: this machine cannot read documents: {trouble}"
    )))
}

/// Reads one document in the same way as a crawl, for commands that test a mapping. `None` if the bytes are not a
/// document. Nothing is kept.
///
/// # Errors
///
/// This machine cannot read it.
pub fn read_single_document(
    body: Vec<u8>,
    content_type: Option<&str>,
    config: &DocumentsConfig,
) -> Result<Option<ReadDocument>, Fault> {
    if !is_document(content_type, &body) {
        return Ok(None);
    }
    let config = DocumentsConfig {
        read: true,
        keep: None,
        ..config.clone()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Fault::error)?;
    let documents = Documents::new(config).expect("documents are read");
    let content_type = content_type.map(str::to_owned);
    match runtime.block_on(documents.read_and_keep(body, content_type, Attempt::Last, None)) {
        Ok(document) => Ok(Some(document)),
        Err(NoDocument::Unsupported) => Ok(None),
        Err(NoDocument::NotRead(reason)) => Err(Fault::error(format!(
            "this machine cannot read documents: {reason}"
        ))),
        Err(NoDocument::NotKept(fault)) => Err(fault),
    }
}

/// Whether a body of this declared type may be a document, although it is not a type of pages. Servers often send
/// documents as `application/octet-stream`.
pub fn may_be_document(content_type: &str) -> bool {
    let of = |family: &str| {
        content_type
            .trim_start()
            .to_ascii_lowercase()
            .starts_with(family)
    };
    of("application/") || of("binary/")
}

/// Whether a body is a document that needs a reader, such as a PDF; plain text does not. A body declared as a page, or
/// without a declared type, must begin as a document at its first byte. With other declared types, some bytes may
/// precede the document, because readers tolerate them.
pub fn is_document(content_type: Option<&str>, body: &[u8]) -> bool {
    let is_page = content_type.is_none_or(|declared| {
        charset::declared_kind(declared).is_some_and(|kind| kind != Kind::Unsupported)
    });
    match is_page {
        true => webfill_reader::begins_as_document(body),
        false => webfill_reader::may_need_reader(body) == Some(true),
    }
}

/// Whether a body is a document, plain text included.
pub fn is_document_or_text(content_type: Option<&str>, body: &[u8]) -> bool {
    is_document(content_type, body) || charset::content_kind(content_type, body) == Kind::Text
}

/// A document that was read.
#[derive(Debug)]
pub struct ReadDocument {
    pub status: Status,
    pub text: String,
    pub metadata: Metadata,
    /// The metadata stored with its page.
    pub stored: Map<String, Value>,
    /// The hash of its text, so that a regenerated document counts as the same. For plain text, and for a document
    /// without text, the hash of its bytes.
    pub content_hash: String,
    /// The document's bytes, if they are kept with its page.
    pub kept_body: Option<KeptBody>,
}

/// Whether a document's reader finished, even if it found no text.
pub fn is_readable(status: Status) -> bool {
    matches!(status, Status::Text | Status::NoText)
}

/// Why there is no document.
pub enum NoDocument {
    /// The bytes are not a document.
    Unsupported,
    /// The machine could not read the document, for this reason.
    NotRead(String),
    /// The document could not be kept, so the worker must stop.
    NotKept(Fault),
}

/// The number of the attempt to read a document. If the machine could not read the document, it is retried unless this
/// was the last attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    Early,
    Last,
}

/// Reads documents, at most [`DocumentsConfig::readers`] at the same time.
pub struct Documents {
    config: DocumentsConfig,
    places: Semaphore,
    has_warned_of_kernel: std::cell::Cell<bool>,
}

impl Documents {
    /// Creates the reader of documents. `None` if documents are not read.
    pub fn new(config: DocumentsConfig) -> Option<Documents> {
        config.reads_documents().then(|| Documents {
            places: Semaphore::new(config.readers),
            has_warned_of_kernel: std::cell::Cell::new(false),
            config,
        })
    }

    /// The limits on documents, in words. The text is compared later, because with other limits the same document may
    /// be read differently.
    pub fn describe_limits(&self) -> String {
        let DocumentsConfig {
            deadline,
            memory_mib,
            ..
        } = self.config;
        format!(" documents in {deadline} s and {memory_mib} MiB")
    }

    /// Waits for a permit to start a reader of documents.
    pub async fn take_reader_permit(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.places.acquire().await.ok()
    }

    /// Reads a document and saves it in the folder of kept documents. If it has at most `kept_bytes`, it is also stored
    /// with its page.
    pub async fn read_and_keep(
        &self,
        body: Vec<u8>,
        content_type: Option<String>,
        this_try: Attempt,
        kept_bytes: Option<usize>,
    ) -> Result<ReadDocument, NoDocument> {
        let body = Arc::new(body);
        let report = match is_document(content_type.as_deref(), &body) {
            true => self.read_report(&body, this_try).await?,
            false => text_report(Arc::clone(&body), content_type).await?,
        };
        let keep = self.config.keep.clone();
        let finish = move || {
            let mut read = save_and_build_result(&body, report, keep.as_deref())?;
            read.kept_body = kept_bytes.and_then(|most| kept_body::compress(&body, false, most));
            Ok(read)
        };
        run_blocking(finish).await?
    }

    async fn read_report(&self, body: &[u8], this_try: Attempt) -> Result<Report, NoDocument> {
        let report = child::read(body, &self.config, this_try).await?;
        if !report.landlock && !self.has_warned_of_kernel.replace(true) {
            tracing::warn!(
                event = "no_landlock",
                "this kernel has no landlock; only seccomp keeps document readers from files"
            );
        }
        Ok(report)
    }
}

/// Runs work that takes long on another thread, so that it does not delay the fetches.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoDocument> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|error| NoDocument::NotRead(error.to_string()))
}

async fn text_report(
    body: Arc<Vec<u8>>,
    content_type: Option<String>,
) -> Result<Report, NoDocument> {
    let decode = move || {
        let text = charset::decode(&body, content_type.as_deref(), Kind::Text).into_owned();
        let status = match text.trim().is_empty() {
            true => Status::NoText,
            false => Status::Text,
        };
        Report {
            kind: webfill_reader::Kind::Text,
            status,
            reason: None,
            metadata: Metadata::default(),
            text,
            landlock: true,
        }
    };
    run_blocking(decode).await
}

fn save_and_build_result(
    body: &[u8],
    report: Report,
    keep: Option<&std::path::Path>,
) -> Result<ReadDocument, NoDocument> {
    let sha256 = HEXLOWER.encode(&Sha256::digest(body));
    if let Some(folder) = keep {
        kept::save_document(folder, &sha256, body).map_err(NoDocument::NotKept)?;
    }
    let has_text = report.status == Status::Text;
    let text_hash = has_text.then(|| webfill_urls::content_hash(report.text.as_bytes()));
    // Plain text is identified by its bytes, as in crawls that do not read documents.
    let content_hash = match &text_hash {
        Some(hash) if report.kind != webfill_reader::Kind::Text => hash.clone(),
        _ => webfill_urls::content_hash(body),
    };
    let mut stored = Map::new();
    let mut put = |name: &str, value: Value| stored.insert(name.to_owned(), value);
    put("status", report.status.as_str().into());
    put("type", report.kind.as_str().into());
    put("sha256", sha256.into());
    put("bytes", body.len().into());
    for (name, value) in report.metadata.entries() {
        let is_count = name == "pages";
        put(
            name,
            if is_count {
                report.metadata.pages.into()
            } else {
                value.into()
            },
        );
    }
    if let Some(hash) = text_hash {
        put("text_hash", hash.into());
    }
    if let Some(reason) = report.reason {
        put("reason", reason.into());
    }
    Ok(ReadDocument {
        status: report.status,
        text: report.text,
        metadata: report.metadata,
        stored,
        content_hash,
        kept_body: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_recognised_by_their_bytes_and_not_only_by_their_types() {
        for (content_type, body, expected) in [
            (Some("application/pdf"), &b"%PDF-1.4"[..], true),
            (Some("text/html"), b"%PDF-1.4", true),
            (Some("application/octet-stream"), b"PK\x03\x04", true),
            (None, b"{\\rtf1 x}", true),
            (Some("application/pdf"), b"leftover %PDF-1.4", true),
            (None, b"how %PDF-1.4 begins", false),
            (Some("text/plain"), b"how %PDF-1.4 begins", false),
            (Some("application/pdf"), b"<p>Not found</p>", false),
        ] {
            assert_eq!(is_document(content_type, body), expected, "{body:?}");
        }
        assert!(may_be_document("application/octet-stream"));
        assert!(may_be_document("Application/PDF; x=y"));
        assert!(!may_be_document("image/png"));
    }

    #[test]
    fn regenerated_documents_keep_the_hash_of_their_text() {
        let read = |body: &[u8], status, text: &str| {
            let report = Report {
                status,
                text: text.into(),
                ..Report::failed(webfill_reader::Kind::Pdf, status, "")
            };
            save_and_build_result(body, report, None).ok().unwrap()
        };
        let [first, second] = [b"1", b"2"].map(|body| read(body, Status::Text, "same"));
        assert_eq!(first.content_hash, second.content_hash);
        assert_eq!(first.stored["text_hash"], second.stored["text_hash"]);
        assert_ne!(first.stored["sha256"], second.stored["sha256"]);
        let [first, second] = [b"1", b"2"].map(|body| read(body, Status::NoText, ""));
        assert_ne!(first.content_hash, second.content_hash);
        let body = b"caf\xe9";
        let plain = Report {
            text: "caf\u{e9}".into(),
            ..Report::failed(webfill_reader::Kind::Text, Status::Text, "")
        };
        let plain = save_and_build_result(body, plain, None).ok().unwrap();
        assert_eq!(plain.content_hash, webfill_urls::content_hash(body));
    }

    #[test]
    fn a_machine_that_cannot_read_documents_says_so_at_start() {
        let refused = NoDocument::NotRead("a reader of documents gave up: no seccomp".into());
        let fault = check_trial(Err(refused)).unwrap_err();
        assert!(fault.message.ends_with("gave up: no seccomp"));
        let failed = Report::failed(webfill_reader::Kind::Rtf, Status::TooLarge, "no memory");
        assert!(check_trial(Ok(failed)).is_err());
    }

    #[test]
    fn invalid_settings_are_refused_before_anything_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let config = |keep: &std::path::Path| DocumentsConfig {
            keep: Some(keep.into()),
            ..DocumentsConfig::default()
        };
        assert!(config(folder.path()).reads_documents());
        assert!(check(&config(folder.path())).is_ok());
        assert!(check(&config(&file)).is_err());
        assert!(check(&config(std::path::Path::new(""))).is_err());
    }
}
