//! Golden cases as pages of a draft. Their expected values become the known values of the page.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::drafts::{MOST_PAGE_BYTES, NewPage};
use super::known::known_values;

/// The largest file that is read as a golden case, in bytes.
const MOST_CASE_BYTES: u64 = 4 << 20;

/// Reads the golden cases of a mapping, in the order of their names, at most `most`. Other files are skipped.
pub(super) fn read_pages(mappings: &Path, mapping: &str, most: usize) -> Vec<NewPage> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if mapping.starts_with('.') || !mapping.chars().all(is_plain) {
        return Vec::new();
    }
    let folder = mappings.join("golden").join(mapping);
    let files = list_files(&folder);
    let is_case = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let cases = files.iter().filter(is_case);
    let pages = cases.filter_map(|case| read_page(case, &files));
    pages.take(most).collect()
}

fn list_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn read_page(case: &Path, files: &[PathBuf]) -> Option<NewPage> {
    if fs::metadata(case).ok()?.len() > MOST_CASE_BYTES {
        return None;
    }
    let expected: Value = serde_json::from_slice(&fs::read(case).ok()?).ok()?;
    let is_page = |file: &&PathBuf| *file != case && file.file_stem() == case.file_stem();
    let page = files.iter().find(is_page)?;
    if fs::metadata(page).ok()?.len() > MOST_PAGE_BYTES as u64 {
        return None;
    }
    let url = webfill_urls::canonical_url(expected["url"].as_str()?, None).ok()?;
    let known = expected["fields"].as_object().map(known_values);
    let ending = page.extension().unwrap_or_default().to_string_lossy();
    let name = case.file_stem().unwrap_or_default().to_string_lossy();
    Some(NewPage {
        from: format!("golden case {name}"),
        url: url.to_string(),
        content_type: expected["content_type"].as_str().map(str::to_owned),
        ending: ending.into_owned(),
        body: fs::read(page).ok()?,
        known: known.unwrap_or_default(),
        is_former: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_cases_are_pages_with_the_expected_values_as_known_ones() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("golden/people");
        fs::create_dir_all(&folder).unwrap();
        let case = r#"{"url": "https://people.example/ada", "fields": {"name": "Ada", "tags": ["a", "b"], "none": null}}"#;
        fs::write(folder.join("ada.json"), case).unwrap();
        fs::write(folder.join("ada.html"), "<h1>Ada</h1>").unwrap();
        fs::write(folder.join("alone.json"), case).unwrap();
        fs::write(folder.join("README.md"), "x").unwrap();
        let pages = read_pages(dir.path(), "people", 20);
        assert_eq!(pages.len(), 1);
        assert_eq!(pages[0].url, "https://people.example/ada");
        assert_eq!(pages[0].body, b"<h1>Ada</h1>");
        assert_eq!(pages[0].known["tags"], ["a", "b"]);
        assert_eq!(pages[0].known.len(), 2);
        for mapping in ["../golden/people", ".", "..", "nobody"] {
            assert!(read_pages(dir.path(), mapping, 20).is_empty(), "{mapping}");
        }
        assert!(read_pages(dir.path(), "people", 0).is_empty());
    }
}
