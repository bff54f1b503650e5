//! Keeps copies of pages that are about to be refreshed. If a refresh fails, the crawl drops the stored body, and the
//! copy is used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use webfill_service::Fault;
use webfill_urls::canonical_url;

use super::project::Project;
use super::stored_page::StoredPage;
use crate::mapping_command::learn::gathered::GatheredPage;
use crate::mapping_command::writing::write_atomically;

/// The zstd compression level.
const LEVEL: i32 = 3;

/// A page with its text, as stored in one file.
#[derive(Serialize, Deserialize)]
struct FormerPage {
    url: String,
    page: StoredPage,
    text: String,
}

/// Copies of pages from before their refresh.
pub struct FormerPages {
    folder: PathBuf,
    /// The copies without their texts, by URL.
    pages: BTreeMap<String, StoredPage>,
}

impl FormerPages {
    pub fn open(project: &Project) -> Result<FormerPages, Fault> {
        let folder = project.former_folder();
        let mut pages = BTreeMap::new();
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let file = entry.path();
            // Files with other endings are left from a process that was killed.
            if file.extension().is_some_and(|ending| ending == "zst") {
                let kept = read_page(&file)?;
                pages.insert(kept.url, kept.page);
            }
        }
        Ok(FormerPages { folder, pages })
    }

    pub fn pages(&self) -> &BTreeMap<String, StoredPage> {
        &self.pages
    }

    pub fn keep_page(&mut self, url: String, page: StoredPage, text: &str) -> Result<(), Fault> {
        let kept = FormerPage {
            url,
            page,
            text: text.to_owned(),
        };
        let json = serde_json::to_vec(&kept).map_err(Fault::error)?;
        let packed = zstd::encode_all(json.as_slice(), LEVEL).map_err(Fault::error)?;
        write_atomically(&self.page_file(&kept.url), &packed)?;
        self.pages.insert(kept.url, kept.page);
        Ok(())
    }

    /// Removes the copies of pages whose refresh has succeeded. Copies of pages in `failing` stay.
    pub fn forget_all_but(&mut self, failing: &BTreeSet<String>) {
        let back: Vec<String> = self
            .pages
            .keys()
            .filter(|url| !failing.contains(*url))
            .cloned()
            .collect();
        for url in back {
            // If the file cannot be removed, it is used only if a later refresh of the page fails.
            let _ = std::fs::remove_file(self.page_file(&url));
            self.pages.remove(&url);
        }
    }

    /// A page as it was before its refresh; `None` if it cannot be decoded.
    pub fn load_page(&self, url: &str) -> Result<Option<GatheredPage>, Fault> {
        let kept = read_page(&self.page_file(url))?;
        let Ok(parsed) = canonical_url(url, None) else {
            return Ok(None);
        };
        // The text was already decoded when the copy was made.
        let declared = kept.page.content_type.as_deref().unwrap_or("text/html");
        let media_type = declared.split(';').next().unwrap_or_default();
        let content_type = format!("{media_type}; charset=utf-8");
        Ok(GatheredPage::decode(
            parsed,
            Some(&content_type),
            kept.text.as_bytes(),
        ))
    }

    fn page_file(&self, url: &str) -> PathBuf {
        // The FNV-1a hash of the URL.
        let sum = url.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.folder.join(format!("{sum:016x}.zst"))
    }
}

fn read_page(file: &Path) -> Result<FormerPage, Fault> {
    let kept = std::fs::read(file)
        .and_then(|packed| zstd::decode_all(packed.as_slice()))
        .and_then(|json| Ok(serde_json::from_slice(&json)?));
    kept.map_err(|error| Fault::error(format!("cannot read {}: {error}", file.display())))
}
