//! Where pages come from: the files, folders and URLs on the command line.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use webfill_service::Fault;
use webfill_urls::Url;

use super::kept::PageFolder;
use crate::cli::MappingTestOptions;

/// A page to read.
pub struct Source {
    /// What messages call the page.
    pub name: String,
    pub place: SourcePlace,
    pub url: Option<Url>,
    pub content_type: Option<String>,
    /// Whether the page was found in a folder, which may contain other files than pages.
    pub is_found: bool,
}

/// Where a page is read from.
pub enum SourcePlace {
    /// The path of a file; `-` is standard input.
    File(PathBuf),
    Web(Url),
}

impl Source {
    pub fn from_file(path: &Path, is_found: bool) -> Source {
        Source {
            name: path.display().to_string(),
            place: SourcePlace::File(path.to_owned()),
            url: None,
            content_type: None,
            is_found,
        }
    }

    pub fn from_url(url: &Url) -> Source {
        Source {
            name: url.to_string(),
            place: SourcePlace::Web(url.clone()),
            url: Some(url.clone()),
            content_type: None,
            is_found: false,
        }
    }

    /// Whether the page is a file that exists.
    pub fn is_existing_file(&self) -> bool {
        matches!(&self.place, SourcePlace::File(path) if path.is_file())
    }

    /// The path of the page's file, or its URL.
    pub fn shown_path(&self) -> String {
        match &self.place {
            SourcePlace::File(path) => path.display().to_string(),
            SourcePlace::Web(url) => url.to_string(),
        }
    }
}

/// The pages named on the command line, and whether there may be several.
pub fn from_options(options: &MappingTestOptions) -> Result<(Vec<Source>, bool), Fault> {
    let mut sources = Vec::new();
    let mut are_several = options.pages.len() > 1;
    for page in &options.pages {
        let path = Path::new(page);
        if page.starts_with("http://") || page.starts_with("https://") {
            sources.push(from_url_text(page)?);
        } else if PageFolder::has_pages(path) {
            are_several = true;
            sources.extend(PageFolder::open(path)?.latest_pages());
        } else if path.is_dir() {
            are_several = true;
            sources.extend(from_folder(path)?);
        } else {
            sources.push(Source::from_file(path, false));
        }
    }
    let [only] = sources.as_mut_slice() else {
        are_several = true;
        check_flags_of_one(options)?;
        return Ok((sources, are_several));
    };
    if are_several || matches!(only.place, SourcePlace::Web(_)) {
        check_flags_of_one(options)?;
        return Ok((sources, are_several));
    }
    only.url = options.url.as_deref().map(parse_url).transpose()?;
    only.content_type.clone_from(&options.content_type);
    Ok((sources, are_several))
}

fn check_flags_of_one(options: &MappingTestOptions) -> Result<(), Fault> {
    match options.url.is_some() || options.content_type.is_some() {
        true => Err(Fault::usage(
            "--url and --content-type are for one saved page",
        )),
        false => Ok(()),
    }
}

pub fn from_url_text(text: &str) -> Result<Source, Fault> {
    let url = webfill_urls::canonical_url(text, None);
    let url = url.map_err(|refusal| Fault::usage(format!("{text}: {refusal}")))?;
    Ok(Source {
        name: url.to_string(),
        place: SourcePlace::Web(url),
        url: None,
        content_type: None,
        is_found: false,
    })
}

fn parse_url(text: &str) -> Result<Url, Fault> {
    webfill_urls::canonical_url(text, None)
        .map_err(|refusal| Fault::usage(format!("--url: {refusal}")))
}

/// The pages of a folder, sorted by name: all files that are not hidden. A `.json` file beside a page with the same
/// name is left out, because it has the expected result of that page.
fn from_folder(folder: &Path) -> Result<Vec<Source>, Fault> {
    let unreadable =
        |error: std::io::Error| Fault::usage(format!("cannot read {}: {error}", folder.display()));
    let mut paths = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_hidden = name.starts_with('.');
        if path.is_file() && !is_hidden {
            paths.insert(path);
        }
    }
    let is_json = |path: &Path| path.extension() == Some(OsStr::new("json"));
    let pages: BTreeSet<PathBuf> = paths
        .iter()
        .filter(|path| !is_json(path))
        .cloned()
        .collect();
    let stems: BTreeSet<Option<&OsStr>> = pages.iter().map(|page| page.file_stem()).collect();
    let is_page = |path: &&PathBuf| !is_json(path) || !stems.contains(&path.file_stem());
    let found = paths.iter().filter(is_page);
    let found = found.map(|path| Source::from_file(path, true));
    let found: Vec<Source> = found.collect();
    match found.is_empty() {
        true => Err(Fault::usage(format!("{}: no page in it", folder.display()))),
        false => Ok(found),
    }
}
