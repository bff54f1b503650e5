//! `webfill mapping test`: a mapping is tried on a page.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_mapping::{Engine, Limits, PageInput, PageKind, Wants};
use webfill_startup::{ExitStatus, Fault};
use webfill_urls::Url;
use webfill_worker::charset::{self, Kind};

use super::chosen::Chosen;
use crate::cli::MappingTestOptions;
use crate::stdout::tell;

pub fn run(options: &MappingTestOptions) -> Result<ExitStatus, Fault> {
    let chosen = Chosen::load(options)?;
    let content_type = options.content_type.as_deref();
    let body = read_page(&options.page)?;
    let kind = kind_of(&options.page, content_type, &body);
    let text = charset::decode(&body, content_type, kind);
    let url = options.url.as_deref().map(parse_url).transpose()?;
    let index = chosen.for_page(url.as_ref())?;
    let base =
        url.unwrap_or_else(|| Url::parse("https://page.invalid/").expect("a constant URL parses"));
    let input = PageInput {
        url: &base,
        kind: page_kind(kind),
        text: &text,
    };
    let wants = Wants {
        mapped_links: true,
        all_links: false,
        deadline: Some(Instant::now() + Duration::from_secs(30)),
    };
    let engine = Engine::new(Arc::clone(&chosen.set), Limits::default());
    let result = if options.trace {
        serde_json::to_value(engine.trace(Some(index), input)).map_err(Fault::error)?
    } else {
        let extraction = engine
            .extract_as(Some(index), input, wants)
            .map_err(Fault::error)?;
        result_json(&extraction)
    };
    tell(format_args!("{result:#}"))?;
    Ok(ExitStatus::Done)
}

/// The result for standard output.
fn result_json(extraction: &webfill_mapping::Extraction) -> Value {
    let mut told = json!({
        "mapping": extraction.mapping,
        "fields": extraction.fields,
        "links": extraction.links,
    });
    if let Some(truncated) = &extraction.truncated {
        told["truncated"] = json!(truncated);
    }
    if !extraction.warnings.is_empty() {
        told["warnings"] = json!(extraction.warnings);
    }
    told
}

fn read_page(path: &Path) -> Result<Vec<u8>, Fault> {
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

fn parse_url(text: &str) -> Result<Url, Fault> {
    webfill_urls::canonical(text, None).map_err(|refusal| Fault::usage(format!("--url: {refusal}")))
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
