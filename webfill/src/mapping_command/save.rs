//! `webfill mapping save`: keeps a page and the result of the mapping on it as a golden case.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use webfill_mapping::{Engine, Limits, RequestedParts};
use webfill_service::{ExitStatus, Fault};

use super::fetching::PageProvider;
use super::golden::{self, NewCase};
use super::kept::PageFolder;
use super::page::{PAGE_TIME, Page};
use super::row_table;
use super::sources::{Source, SourcePlace, from_url_text};
use crate::cli::MappingSaveOptions;
use crate::demand::table::without_control_characters;
use crate::mapping_files::load_files;
use crate::stdout::print;

pub fn run(options: &MappingSaveOptions) -> Result<ExitStatus, Fault> {
    let set = Arc::new(load_files(&options.file)?);
    let mut source = page_source(options)?;
    let mut fetching =
        PageProvider::open(&options.web, &options.file, std::slice::from_ref(&source))?;
    if let SourcePlace::Web(url) = &source.place {
        source = fetching.find_or_fetch(&url.clone())?;
    }
    let page = Page::read(&source, &mut fetching)?;
    let (Some(url), SourcePlace::File(file)) = (&page.url, &source.place) else {
        return Err(Fault::usage(format!(
            "{}: unknown URL: give it with --url",
            options.page
        )));
    };
    let Some(index) = set.find(url.as_str()) else {
        let mappings = options.file.display();
        return Err(Fault::usage(format!(
            "{mappings}: no url_pattern matches {url}: nothing to save"
        )));
    };
    let engine = Engine::new(Arc::clone(&set), Limits::default());
    let extraction = page
        .extract(&engine, index, compared_parts())
        .map_err(|error| Fault::error(format!("{}: {error}", page.name)))?;
    let body = std::fs::read(file)
        .map_err(|error| Fault::error(format!("cannot read {}: {error}", file.display())))?;
    let ending = file.extension().unwrap_or_default().to_string_lossy();
    let case = NewCase {
        folder: &golden_folder(&options.file),
        name: options.name.as_deref(),
        is_numbered: options.name.is_none(),
        url,
        content_type: source.content_type.as_deref(),
        body: &body,
        ending: &ending,
        extraction: &extraction,
    };
    let path = case.save_case()?;
    print(format_args!("{}", path.display()))?;
    for field in set.fields_of(index) {
        match extraction.fields.get(field) {
            Some(value) => print(format_args!(
                "  {field}  {}",
                without_control_characters(&value.to_string())
            ))?,
            None => print(format_args!("  {field}  has no value here"))?,
        }
    }
    for listing in &extraction.listings {
        print(row_table::format_rows(listing))?;
    }
    Ok(ExitStatus::Done)
}

/// The values that a golden case compares, including links.
pub fn compared_parts() -> RequestedParts {
    RequestedParts {
        mapped_links: true,
        row_links: true,
        all_links: false,
        feeds: false,
        shell: false,
        deadline: Some(Instant::now() + PAGE_TIME),
        ..RequestedParts::default()
    }
}

/// The folder of golden cases that belongs to a mapping file or a folder of mappings.
pub fn golden_folder(mappings: &Path) -> std::path::PathBuf {
    let folder = match mappings.is_dir() {
        true => Some(mappings),
        false => mappings.parent(),
    };
    folder.unwrap_or(Path::new("")).join(golden::FOLDER)
}

fn page_source(options: &MappingSaveOptions) -> Result<Source, Fault> {
    let page = &options.page;
    if page.starts_with("http://") || page.starts_with("https://") {
        if options.url.is_some() || options.content_type.is_some() {
            return Err(Fault::usage(
                "--url and --content-type are for a saved page",
            ));
        }
        return from_url_text(page);
    }
    let path = Path::new(page);
    if !path.is_file() {
        return Err(Fault::usage(format!(
            "{page}: no such file: name a saved page or a URL"
        )));
    }
    let mut source = find_kept_page(path)?.unwrap_or_else(|| Source::from_file(path, false));
    if let Some(url) = &options.url {
        let url = webfill_urls::canonical_url(url, None);
        source.url = Some(url.map_err(|refusal| Fault::usage(format!("--url: {refusal}")))?);
    }
    if options.content_type.is_some() {
        source.content_type.clone_from(&options.content_type);
    }
    Ok(source)
}

/// Finds the page in the index of its folder, which describes it; `None` without an index.
fn find_kept_page(path: &Path) -> Result<Option<Source>, Fault> {
    let folder = path.parent().unwrap_or(Path::new(""));
    if !PageFolder::has_pages(folder) {
        return Ok(None);
    }
    let is_it = |source: &Source| matches!(&source.place, SourcePlace::File(file) if file == path);
    Ok(PageFolder::open(folder)?
        .latest_pages()
        .into_iter()
        .find(is_it))
}
