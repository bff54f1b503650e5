//! Real pages with their true values. Some are in a folder with a `truth.jsonl`. Others are manuals that Debian
//! packages install; the mappings in `etl-mappings` read their values. The pages belong to their owners, so they are
//! never copied into this project.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source};
use webfill_urls::Url;

use crate::redesign::visible_text;

pub type Failure = Box<dyn std::error::Error>;

/// The values of a page, by field.
pub type Values = BTreeMap<String, Vec<String>>;

/// Larger pages are left out, because they make a benchmark slow without adding information.
const LARGEST_PAGE: usize = 200_000;

/// A site with fewer pages is left out.
const FEWEST_PAGES: usize = 5;

/// The manuals that Debian packages install. For each: the mapping, the folder, the beginnings of file names, and the
/// folder's address on the web.
const MANUALS: [(&str, &str, &[&str], &str); 4] = [
    (
        "postgresql-command",
        "postgresql-doc-15/html",
        &["sql-", "app-"],
        "https://www.postgresql.org/docs/15/",
    ),
    (
        "python-library",
        "python3-doc/html/library",
        &[""],
        "https://docs.python.org/3/library/",
    ),
    (
        "sqlite-interface",
        "sqlite3/c3ref",
        &[""],
        "https://www.sqlite.org/c3ref/",
    ),
    (
        "sqlite-release",
        "sqlite3/releaselog",
        &[""],
        "https://www.sqlite.org/releaselog/",
    ),
];

/// A page and its true values.
#[derive(Debug, Clone)]
pub struct LabelledPage {
    pub url: Url,
    pub html: String,
    pub truth: Values,
}

/// Pages of one site and one kind.
#[derive(Debug, Clone)]
pub struct Site {
    pub name: String,
    pub pages: Vec<LabelledPage>,
    /// The mapping that has read the true values, if there is one.
    pub mapping: Option<Value>,
}

/// Normalises white space, including no-break spaces.
pub fn normalise_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Loads the sites of a folder. Each line of `truth.jsonl` has a page (`SITE/FILE`) and the values of its fields.
///
/// # Errors
///
/// A file cannot be read, or a line is not of this form.
pub fn load_labelled_sites(folder: &Path) -> Result<Vec<Site>, Failure> {
    let path = folder.join("truth.jsonl");
    let lines =
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut sites: BTreeMap<String, Vec<LabelledPage>> = BTreeMap::new();
    for (number, line) in lines.lines().enumerate() {
        let place = format!("{}:{}", path.display(), number + 1);
        let line: Value =
            serde_json::from_str(line).map_err(|error| format!("{place}: {error}"))?;
        let page = line["page"]
            .as_str()
            .ok_or_else(|| format!("{place}: no page"))?;
        let site = page.split('/').next().unwrap_or_default();
        let html =
            fs::read(folder.join(page)).map_err(|error| format!("{place}: {page}: {error}"))?;
        sites
            .entry(site.to_owned())
            .or_default()
            .push(LabelledPage {
                url: Url::parse(&format!(
                    "https://{}.example/{page}",
                    site.replace('_', "-")
                ))?,
                html: String::from_utf8_lossy(&html).into_owned(),
                truth: serde_json::from_value(line["fields"].clone())
                    .map_err(|error| format!("{place}: fields: {error}"))?,
            });
    }
    let named = sites.into_iter().map(|(name, pages)| Site {
        name,
        pages,
        mapping: None,
    });
    Ok(named.collect())
}

/// Loads the installed manuals. From each, at most `pages` pages are selected evenly.
///
/// # Errors
///
/// A mapping of `mappings` cannot be read.
pub fn load_manuals(root: &Path, mappings: &Path, pages: usize) -> Result<Vec<Site>, Failure> {
    let set = MappingSet::load_dir(mappings)?;
    let engine = Engine::new(Arc::new(set), Limits::default());
    let mut sites = Vec::new();
    for (name, folder, beginnings, address) in MANUALS {
        let mapping = mapping_named(mappings, name)?;
        let mut found = Vec::new();
        for path in html_files(&root.join(folder), beginnings) {
            let url = Url::parse(address)?
                .join(&path.file_name().unwrap_or_default().to_string_lossy())?;
            let html = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
            if html.len() > LARGEST_PAGE {
                continue;
            }
            let truth = values_read(&engine, name, &url, &html);
            // A page with fewer than two values is of another kind, such as a table of contents.
            if truth.len() >= 2 {
                found.push(LabelledPage { url, html, truth });
            }
        }
        let pages = select_evenly(found, pages);
        if pages.len() >= FEWEST_PAGES {
            sites.push(Site {
                name: name.to_owned(),
                pages,
                mapping: Some(mapping),
            });
        }
    }
    Ok(sites)
}

fn html_files(folder: &Path, beginnings: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "html"))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            beginnings
                .iter()
                .any(|beginning| name.starts_with(beginning))
        })
        .collect();
    files.sort();
    files
}

fn select_evenly<T>(mut all: Vec<T>, most: usize) -> Vec<T> {
    let step = all.len().div_ceil(most.max(1)).max(1);
    let mut number = 0;
    all.retain(|_| {
        number += 1;
        (number - 1) % step == 0
    });
    all
}

/// The mapping with this name, from the files of a folder.
fn mapping_named(folder: &Path, name: &str) -> Result<Value, Failure> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let file: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
        let all = match file {
            Value::Array(all) => all,
            one => vec![one],
        };
        if let Some(found) = all.into_iter().find(|one| one["name"] == name) {
            return Ok(found);
        }
    }
    Err(format!("{}: there is no mapping {name}", folder.display()).into())
}

/// The values that the mapping reads on a page, as far as they are visible on it.
fn values_read(engine: &Engine, mapping: &str, url: &Url, html: &str) -> Values {
    let index = engine.set().find(url.as_str());
    if index.map(|index| engine.set().name(index)) != Some(mapping) {
        return Values::new();
    }
    let seen = visible_text(html);
    let mut values = extract(engine, url, html);
    values
        .retain(|_, values| !values.is_empty() && values.iter().all(|value| seen.contains(value)));
    values
}

/// The fields that the engine reads from a page, as texts with normalised white space.
pub fn extract(engine: &Engine, url: &Url, html: &str) -> Values {
    let page = PageInput {
        url,
        kind: PageKind::Html,
        text: html,
    };
    let Ok(extraction) = engine.extract(page, RequestedParts::default()) else {
        return Values::new();
    };
    texts_by_field(&extraction.fields)
}

/// The extracted values, as texts with normalised white space.
pub fn texts_by_field(fields: &Map<String, Value>) -> Values {
    let fields = fields.iter();
    fields
        .map(|(field, value)| (field.clone(), texts_of(value)))
        .collect()
}

fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![normalise_spaces(text)],
        Value::Array(items) => items.iter().flat_map(texts_of).collect(),
        Value::Null => Vec::new(),
        other => vec![other.to_string()],
    }
}

/// An engine with one mapping.
///
/// # Errors
///
/// The mapping is not valid.
pub fn build_engine(mapping: &Value) -> Result<Engine, Failure> {
    let source = Source {
        name: "mapping.json".into(),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source])?;
    Ok(Engine::new(Arc::new(set), Limits::default()))
}
