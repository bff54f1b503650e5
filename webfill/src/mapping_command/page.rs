//! The pages that mappings are tried on.

use std::io::Read;
use std::path::Path;

use webfill_mapping::{PageInput, PageKind};
use webfill_startup::Fault;
use webfill_urls::Url;
use webfill_worker::charset::{self, Kind};

use super::fetching::Fetching;
use super::sources::{Place, Source};

/// Where links lead to on a page whose URL is unknown.
const UNKNOWN_URL: &str = "https://page.invalid/";

/// A page, decoded.
pub struct Page {
    /// As it was named.
    pub name: String,
    pub url: Option<Url>,
    base: Url,
    kind: Kind,
    text: String,
}

impl Page {
    /// Reads a page, which is fetched first if need be.
    pub fn read(source: &Source, fetching: &mut Fetching<'_>) -> Result<Page, Fault> {
        match &source.place {
            Place::File(path) => Page::saved(source, path),
            Place::Web(url) => Page::read(&fetching.source(url)?, fetching),
        }
    }

    /// Reads a saved page; `-` is standard input.
    fn saved(source: &Source, path: &Path) -> Result<Page, Fault> {
        let content_type = source.content_type.as_deref();
        let body = read_body(path)?;
        let kind = kind_of(path, content_type, &body);
        let base = match &source.url {
            Some(url) => url.clone(),
            None => Url::parse(UNKNOWN_URL).map_err(Fault::error)?,
        };
        Ok(Page {
            name: source.name.clone(),
            url: source.url.clone(),
            base,
            kind,
            text: charset::decode(&body, content_type, kind).into_owned(),
        })
    }

    /// Whether it is neither a document nor text.
    pub fn is_binary(&self) -> bool {
        self.kind == Kind::Unsupported
    }

    pub fn input(&self) -> PageInput<'_> {
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

/// The kind of page: by the given type, else by the file's name, else by its content.
fn kind_of(path: &Path, content_type: Option<&str>, body: &[u8]) -> Kind {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match (content_type, extension) {
        (Some(declared), _) => charset::media_type(Some(declared), body),
        (None, Some("html" | "htm")) => Kind::Html,
        (None, Some("json")) => Kind::Json,
        (None, Some("xml" | "xhtml")) => Kind::Xml,
        (None, Some("txt")) => Kind::Text,
        (None, _) => charset::media_type(None, body),
    }
}

fn page_kind(kind: Kind) -> PageKind {
    match kind {
        Kind::Html => PageKind::Html,
        Kind::Xml => PageKind::Xml,
        Kind::Json => PageKind::Json,
        Kind::Text | Kind::Unsupported => PageKind::Text,
    }
}
