//! A page that mappings are tried on.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use webfill_mapping::{
    Engine, ExtractError, Extraction, MappingIndex, Metadatum, PageInput, PageKind, RequestedParts,
    Trace,
};
use webfill_reader::Status;
use webfill_service::Fault;
use webfill_urls::Url;
use webfill_worker::charset::{self, Kind};
use webfill_worker::{ReadDocument, is_document, read_document};

use super::fetching::PageProvider;
use super::sources::{Source, SourcePlace};

/// The time limit for one page.
pub const PAGE_TIME: Duration = Duration::from_secs(30);

/// The base URL for links on a page whose own URL is unknown.
const UNKNOWN_URL: &str = "https://page.invalid/";

/// A decoded page.
pub struct Page {
    /// The name of the page as the user has written it.
    pub name: String,
    pub url: Option<Url>,
    base: Url,
    kind: Kind,
    text: String,
    /// The metadata, if the page is a document.
    metadata: Option<Vec<Metadatum>>,
}

impl Page {
    /// Reads a page, after fetching it if necessary.
    pub fn read(source: &Source, fetching: &mut PageProvider<'_>) -> Result<Page, Fault> {
        match &source.place {
            SourcePlace::File(path) => Page::read_saved(source, path, fetching),
            SourcePlace::Web(url) => Page::read(&fetching.find_or_fetch(url)?, fetching),
        }
    }

    /// Reads a saved page; `-` is standard input.
    fn read_saved(
        source: &Source,
        path: &Path,
        fetching: &PageProvider<'_>,
    ) -> Result<Page, Fault> {
        let content_type = source.content_type.as_deref();
        let body = read_body(path)?;
        let base = match &source.url {
            Some(url) => url.clone(),
            None => Url::parse(UNKNOWN_URL).map_err(Fault::error)?,
        };
        let mut page = Page {
            name: source.name.clone(),
            url: source.url.clone(),
            base,
            kind: Kind::Text,
            text: String::new(),
            metadata: None,
        };
        if is_document(content_type, &body)
            && let Some(document) = read_document(
                body.clone(),
                content_type,
                &fetching.load_documents_config()?,
            )?
        {
            page.take_document(document)?;
            return Ok(page);
        }
        page.kind = detect_kind(path, content_type, &body);
        page.text = charset::decode(&body, content_type, page.kind).into_owned();
        Ok(page)
    }

    /// Whether the content is neither a page nor a document that can be read.
    pub fn is_binary(&self) -> bool {
        self.kind == Kind::Unsupported
    }

    /// Takes the text of a document that was read, because a crawl with `--documents` would apply mappings to it.
    fn take_document(&mut self, document: ReadDocument) -> Result<(), Fault> {
        let stored = |name: &str| document.stored.get(name).and_then(Value::as_str);
        let kind = stored("type").unwrap_or_default();
        let reason = stored("reason").map(|reason| format!(": {reason}"));
        let status = document.status.as_str();
        match document.status {
            Status::Text => {}
            Status::NoText => webfill_service::say!(
                "webfill: {}: no text in this document ({kind}), so only `meta` yields values",
                self.name
            ),
            Status::Encrypted | Status::Broken | Status::TooLarge => {
                return Err(Fault::error(format!(
                    "{}: no mapping applies to this document ({kind}), because it is {status}{}",
                    self.name,
                    reason.unwrap_or_default()
                )));
            }
        }
        self.metadata = Some(document.metadata.entries().collect());
        self.text = document.text;
        Ok(())
    }

    pub fn extract(
        &self,
        engine: &Engine,
        mapping: MappingIndex,
        wants: RequestedParts,
    ) -> Result<Extraction, ExtractError> {
        match &self.metadata {
            Some(metadata) => {
                engine.extract_document_with_mapping(Some(mapping), self.input(), metadata, wants)
            }
            None => engine.extract_with_mapping(Some(mapping), self.input(), wants),
        }
    }

    /// Traces a mapping on the page. `rows` are the positions of the rows to trace; if it is empty, some are chosen.
    pub fn trace(&self, engine: &Engine, mapping: MappingIndex, rows: &[usize]) -> Option<Trace> {
        let metadata = self.metadata.as_deref();
        engine.trace_with_rows(Some(mapping), self.input(), metadata, rows)
    }

    fn input(&self) -> PageInput<'_> {
        PageInput {
            url: &self.base,
            kind: page_kind(self.kind),
            text: &self.text,
        }
    }
}

fn read_body(path: &Path) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut body).map(drop)
    } else {
        std::fs::read(path).map(|bytes| body = bytes)
    };
    read.map_err(|error| {
        Fault::usage(format!("cannot read the page {}: {error}", path.display()))
    })?;
    Ok(body)
}

/// The kind of a page. It is decided by the content type, else by the file name, else by the content.
fn detect_kind(path: &Path, content_type: Option<&str>, body: &[u8]) -> Kind {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match (content_type, extension) {
        (Some(declared), _) => charset::content_kind(Some(declared), body),
        (None, Some("html" | "htm")) => Kind::Html,
        (None, Some("json")) => Kind::Json,
        (None, Some("xml" | "xhtml")) => Kind::Xml,
        (None, Some("txt")) => Kind::Text,
        (None, _) => charset::content_kind(None, body),
    }
}

/// The kind of a saved page and its text; `None` if it is a document or has unreadable content.
pub fn kind_and_text(
    path: &Path,
    content_type: Option<&str>,
    body: &[u8],
) -> Option<(PageKind, String)> {
    let kind = detect_kind(path, content_type, body);
    if kind == Kind::Unsupported || is_document(content_type, body) {
        return None;
    }
    let text = charset::decode(body, content_type, kind).into_owned();
    Some((page_kind(kind), text))
}

pub fn page_kind(kind: Kind) -> PageKind {
    match kind {
        Kind::Html => PageKind::Html,
        Kind::Xml => PageKind::Xml,
        Kind::Json => PageKind::Json,
        Kind::Text | Kind::Unsupported => PageKind::Text,
    }
}
