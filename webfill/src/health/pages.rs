//! `webfill health --pages DIR`: writes pages from before and after a change as files.
//!
//! The files are `DIR/MAPPING/before-01.html` and so on. They have the decoded text in UTF-8. `pages.jsonl` beside them
//! has for each page its URL, the time of its fetch, and the fields that were found.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use serde_json::json;
use webfill_health::Alert;
use webfill_service::Fault;
use webfill_store::{Sample, Store, iso_time};

/// The largest size of a kept page, in bytes.
const MOST_BYTES: usize = 2 << 20;

/// Writes the pages that an alert has kept as files in a folder for the mapping.
pub(super) async fn write_pages(
    store: &dyn Store,
    alert: &Alert,
    folder: &Path,
) -> Result<(), Fault> {
    let samples = store.samples(&alert.mapping).await.map_err(Fault::error)?;
    let ids = samples.into_iter();
    let ids = ids.filter(|sample| sample.alert.as_deref() == Some(&*alert.raised_at));
    let ids = ids.map(|sample| sample.id).collect();
    let mut samples = store.samples_with_texts(ids).await.map_err(Fault::error)?;
    samples.sort_by(|one, other| one.id.cmp(&other.id));
    let folder = folder.join(folder_name(&alert.mapping));
    let failed = |error: &dyn Display| Fault::error(format!("{}: {error}", folder.display()));
    fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
    let mut listed = String::new();
    for sample in &samples {
        let Some(name) = page_file_name(sample) else {
            continue;
        };
        let text = zstd::bulk::decompress(&sample.text, MOST_BYTES).map_err(|e| failed(&e))?;
        fs::write(folder.join(&name), text).map_err(|error| failed(&error))?;
        let line = json!({
            "file": name,
            "url": sample.url,
            // The kept text is in UTF-8, whatever the original page declares.
            "content_type": "text/html; charset=utf-8",
            "page": sample.page,
            "at": iso_time(sample.at_ms),
            "fields": sample.fields,
        });
        listed += &format!("{line}\n");
    }
    fs::write(folder.join("pages.jsonl"), listed).map_err(|error| failed(&error))
}

/// The file name for a sample, made from its id such as `.../before/00`.
fn page_file_name(sample: &Sample) -> Option<String> {
    let mut parts = sample.id.rsplit('/');
    let number: u32 = parts.next()?.parse().ok()?;
    let when = parts.next()?;
    Some(format!("{when}-{:02}.html", number + 1))
}

/// Converts the name of a mapping to a folder name.
fn folder_name(mapping: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let name: String = mapping
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    match name.trim_matches('.') {
        "" => String::from("_"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mapping_writes_outside_of_its_folder() {
        assert_eq!(folder_name("shop"), "shop");
        assert_eq!(folder_name("../../etc"), "_.._etc");
        assert_eq!(folder_name(".."), "_");
    }
}
