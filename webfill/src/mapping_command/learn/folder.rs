//! Gathers pages from a folder: from its list `pages.jsonl`, or from golden cases.
//!
//! The lines of a list have two possible formats. `webfill health --pages` writes lines with `file` and `url` of a
//! page, and `content_type` and `final_url` (after redirects) if they are known. `webfill mapping test` writes lines
//! with `file`, `url` (after redirects) and `content_type` within `page`.

use std::path::{Path, PathBuf};

use serde_json::Value;
use webfill_service::Fault;
use webfill_urls::{Url, canonical_url};

use super::gathered::{GatheredPage, PageGatherer};
use crate::mapping_command::golden::{Case, cases_of};
use crate::mapping_command::kept;
use crate::mapping_command::listed_file::path_in_folder;
use crate::mapping_command::page::kind_and_text;
use crate::mapping_command::sources::SourcePlace;

/// A page of the folder.
struct FolderPage {
    file: PathBuf,
    /// The URL after redirects.
    url: Url,
    asked: Url,
    content_type: Option<String>,
}

pub struct Folder(Vec<FolderPage>);

impl Folder {
    pub fn open(folder: &Path) -> Result<Folder, Fault> {
        if !folder.is_dir() {
            let folder = folder.display();
            return Err(Fault::usage(format!("--pages {folder}: not a folder")));
        }
        let index = folder.join(kept::INDEX);
        let listed = match index.is_file() {
            true => read_list(&index, folder)?,
            false => read_cases(folder)?,
        };
        match listed.is_empty() {
            true => Err(Fault::usage(format!(
                "--pages {}: no page with a known URL: add a list {} with a line {{\"url\", \"file\"}} for each page, or use golden cases",
                folder.display(),
                kept::INDEX
            ))),
            false => Ok(Folder(listed)),
        }
    }

    /// All URLs of the folder's pages, before and after redirects.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        let pages = self.0.iter();
        pages.flat_map(|page| [page.url.as_str(), page.asked.as_str()])
    }

    pub fn gather(&self, gathering: &mut PageGatherer<'_>) -> Result<(), Fault> {
        for listed in &self.0 {
            let urls = [listed.asked.as_str(), listed.url.as_str()];
            if !gathering.has_room_or_count(urls.into_iter()) {
                continue;
            }
            let body = std::fs::read(&listed.file).map_err(|error| {
                Fault::error(format!("cannot read {}: {error}", listed.file.display()))
            })?;
            let content_type = listed.content_type.as_deref();
            let Some((kind, text)) = kind_and_text(&listed.file, content_type, &body) else {
                gathering.note_of_other_kind(&listed.url);
                continue;
            };
            let asked = Some(listed.asked.to_string()).filter(|_| listed.asked != listed.url);
            gathering.add(GatheredPage {
                url: listed.url.clone(),
                asked: asked.into_iter().collect(),
                kind,
                text,
            });
        }
        Ok(())
    }
}

fn read_list(index: &Path, folder: &Path) -> Result<Vec<FolderPage>, Fault> {
    let shown = index.display();
    let text = std::fs::read_to_string(index)
        .map_err(|error| Fault::usage(format!("cannot read {shown}: {error}")))?;
    let mut listed = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let broken = |reason: &dyn std::fmt::Display| {
            Fault::usage(format!("{shown}:{}: {reason}", number + 1))
        };
        let line: Value = serde_json::from_str(line).map_err(|error| broken(&error))?;
        let is_kept = line["page"].is_object();
        let page = if is_kept { &line["page"] } else { &line };
        let Some(file) = page["file"].as_str() else {
            // The line is about a request that returned no page.
            continue;
        };
        let parsed = |value: &Value| {
            value
                .as_str()
                .map(|url| canonical_url(url, None))
                .transpose()
        };
        let asked = parsed(&line["url"]).map_err(|refusal| broken(&refusal))?;
        let asked = asked.ok_or_else(|| broken(&"it has no `url`"))?;
        let url = if is_kept {
            &page["url"]
        } else {
            &page["final_url"]
        };
        let url = parsed(url).map_err(|refusal| broken(&refusal))?;
        listed.push(FolderPage {
            file: path_in_folder(folder, file).map_err(|reason| broken(&reason))?,
            url: url.unwrap_or_else(|| asked.clone()),
            asked,
            content_type: page["content_type"].as_str().map(str::to_owned),
        });
    }
    Ok(listed)
}

/// The golden cases in a folder. It contains the cases of one mapping, or one folder for each mapping.
fn read_cases(folder: &Path) -> Result<Vec<FolderPage>, Fault> {
    let unreadable =
        |error: std::io::Error| Fault::usage(format!("cannot read {}: {error}", folder.display()));
    let mut names = vec![String::from(".")];
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    let mut listed = Vec::new();
    for path in cases_of(folder, names.iter().map(String::as_str))? {
        // The folder may contain files that are not golden cases.
        let Ok(case) = Case::read(path) else {
            continue;
        };
        let source = case.page()?;
        if let SourcePlace::File(file) = source.place {
            listed.push(FolderPage {
                file,
                url: case.url.clone(),
                asked: case.url,
                content_type: source.content_type,
            });
        }
    }
    Ok(listed)
}
