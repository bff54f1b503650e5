//! `webfill mapping check | test | schema`: tools for writing mappings.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_mapping::{Engine, Limits, MappingIndex, MappingSet, PageInput, PageKind, Wants};
use webfill_startup::{ExitStatus, Fault};
use webfill_urls::Url;
use webfill_worker::charset::{self, Kind};

use crate::cli::MappingCommand;
use crate::stdout::tell;

pub fn run(command: MappingCommand) -> Result<ExitStatus, Fault> {
    match command {
        MappingCommand::Check { paths } => check(&paths),
        MappingCommand::Test {
            mapping,
            page,
            url,
            content_type,
            trace,
        } => test(
            &mapping,
            &page,
            url.as_deref(),
            content_type.as_deref(),
            trace,
        ),
        MappingCommand::Schema => {
            tell(format_args!("{:#}", webfill_mapping::schema()))?;
            Ok(ExitStatus::Done)
        }
    }
}

fn check(paths: &[PathBuf]) -> Result<ExitStatus, Fault> {
    for path in paths {
        let set = load(path)?;
        let mappings = match set.len() {
            0 => "no mapping in it".to_owned(),
            1 => format!("1 mapping, {}", verdict(&set)),
            count => format!("{count} mappings, {}", verdict(&set)),
        };
        tell(format_args!("{}: {mappings}", path.display()))?;
        for warning in set.warnings() {
            tell(format_args!("  {warning}"))?;
        }
        for index in set.indexes() {
            let description = set.description(index).unwrap_or_default();
            tell(format!("  {}  {description}", set.name(index)).trim_end())?;
        }
    }
    Ok(ExitStatus::Done)
}

fn verdict(set: &MappingSet) -> String {
    match set.warnings().len() {
        0 => "all good".to_owned(),
        1 => "1 warning".to_owned(),
        count => format!("{count} warnings"),
    }
}

fn load(path: &Path) -> Result<MappingSet, Fault> {
    let loaded = if path.is_dir() {
        MappingSet::load_dir(path)
    } else {
        MappingSet::load_file(path)
    };
    loaded.map_err(Fault::usage)
}

/// Runs the file's mapping on one page.
fn test(
    mapping: &Path,
    page: &Path,
    url: Option<&str>,
    content_type: Option<&str>,
    trace: bool,
) -> Result<ExitStatus, Fault> {
    let set = Arc::new(load(mapping)?);
    let body = read_page(page)?;
    let kind = kind_of(page, content_type, &body);
    let text = charset::decode(&body, content_type, kind);
    let asked = url.map(parse_url).transpose()?;
    let index = choose(&set, mapping, asked.as_ref())?;
    let base = asked
        .unwrap_or_else(|| Url::parse("https://page.invalid/").expect("a constant URL parses"));
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
    let engine = Engine::new(Arc::clone(&set), Limits::default());
    let result = if trace {
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

/// The mapping that a crawl would use for the URL; without a URL, the only one of the file.
fn choose(set: &MappingSet, file: &Path, url: Option<&Url>) -> Result<MappingIndex, Fault> {
    if let Some(url) = url {
        return set.find(url.as_str()).ok_or_else(|| {
            Fault::usage(format!(
                "{}: no url_pattern matches {url}; leave --url out to try the mapping all the same",
                file.display()
            ))
        });
    }
    let mut indexes = set.indexes();
    match (indexes.next(), indexes.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Fault::usage(format!(
            "{}: no mapping in it",
            file.display()
        ))),
        _ => Err(Fault::usage(format!(
            "{}: several mappings; --url says which one the page is for",
            file.display()
        ))),
    }
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
