//! Where pages come from: the files and folders on the command line.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use webfill_startup::Fault;
use webfill_urls::Url;

use crate::cli::MappingTestOptions;

/// A page that is to be read.
pub struct Source {
    pub path: PathBuf,
    pub url: Option<Url>,
    pub content_type: Option<String>,
    /// It was found in a folder, where files may lie that are no pages.
    pub is_found: bool,
}

impl Source {
    pub fn named(path: &Path) -> Source {
        Source {
            path: path.to_owned(),
            url: None,
            content_type: None,
            is_found: false,
        }
    }
}

/// The pages on the command line, and whether they may be several.
pub fn of_command(options: &MappingTestOptions) -> Result<(Vec<Source>, bool), Fault> {
    let mut sources = Vec::new();
    let mut are_several = options.pages.len() > 1;
    for path in &options.pages {
        if path.is_dir() {
            are_several = true;
            sources.extend(of_folder(path)?);
        } else {
            sources.push(Source::named(path));
        }
    }
    let is_of_one = options.url.is_some() || options.content_type.is_some();
    if are_several && is_of_one {
        return Err(Fault::usage(
            "--url and --content-type are for one page, and here are several",
        ));
    }
    for source in &mut sources {
        source.url = options.url.as_deref().map(parse_url).transpose()?;
        source.content_type.clone_from(&options.content_type);
    }
    Ok((sources, are_several))
}

fn parse_url(text: &str) -> Result<Url, Fault> {
    webfill_urls::canonical(text, None).map_err(|refusal| Fault::usage(format!("--url: {refusal}")))
}

/// The pages of a folder, in order of name: its files, but not hidden ones, nor a `.json` beside a
/// page of the same name, which says what is expected of that one.
fn of_folder(folder: &Path) -> Result<Vec<Source>, Fault> {
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
    let found = paths.iter().filter(is_page).map(|path| Source {
        is_found: true,
        ..Source::named(path)
    });
    let found: Vec<Source> = found.collect();
    match found.is_empty() {
        true => Err(Fault::usage(format!("{}: no page in it", folder.display()))),
        false => Ok(found),
    }
}
