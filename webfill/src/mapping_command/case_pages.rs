//! Reads the pages of golden cases, for the warnings of `webfill mapping check`.

use std::path::Path;

use webfill_mapping::{MappingIndex, MappingSet};
use webfill_service::Fault;

use super::fetching::PageProvider;
use super::golden::{Case, cases_of};
use super::page::Page;
use super::save::golden_folder;
use crate::cli::PageFetchOptions;

/// The most golden cases that are read, so that a check takes little time.
const MOST_CASES: usize = 200;

/// The pages of golden cases that belong to a mapping file or folder, each with its mapping.
pub fn read_case_pages(path: &Path, set: &MappingSet) -> Result<Vec<(MappingIndex, Page)>, Fault> {
    let cases = cases_of(&golden_folder(path), set.names())?;
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let options = PageFetchOptions::default();
    let mut fetching = PageProvider::open(&options, path, &[])?;
    let mut pages = Vec::new();
    for case in cases.into_iter().take(MOST_CASES) {
        let case = Case::read(case)?;
        if let Some(index) = set.find(case.url.as_str()) {
            pages.push((index, Page::read(&case.page()?, &mut fetching)?));
        }
    }
    Ok(pages)
}
