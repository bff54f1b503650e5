//! Drafts: unfinished mappings, each with its pages, in a folder of its own. Drafts survive a restart. Their files
//! are written completely or not at all.
//!
//! A draft's folder has `draft.json`, the bodies of its pages as `page-N`, and their copies as `copy-N.json`. The
//! number of drafts is limited (the one unchanged for the longest time is removed), and so are the number and the
//! bytes of a draft's pages.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use webfill_service::whole_file::write_private;

use super::job::{MOST_BYTES, MOST_PAGES, PageHead, PointedField};
use super::mappings::Edited;

/// How many drafts are kept.
const MOST_DRAFTS: usize = 20;

/// The largest page of a draft, in bytes.
pub(crate) const MOST_PAGE_BYTES: usize = 16 << 20;

/// The largest `draft.json`, in bytes. It contains the draft without the bodies and copies of its pages.
const MOST_DRAFT_BYTES: usize = 8 << 20;

const DRAFT: &str = "draft.json";

/// A draft: an unfinished mapping with the pages it is tried on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Draft {
    pub(crate) id: String,
    pub(crate) edited: Edited,
    pub(crate) mapping: Value,
    pub(crate) pages: Vec<DraftPage>,
    /// For each field, the elements that the user has pointed at. Pages are given by their numbers.
    pub(crate) said: BTreeMap<String, Vec<PointedField>>,
    pub(crate) repairs: Option<Repairs>,
}

/// The alert that is to be resolved by repairing the mapping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repairs {
    pub(crate) mapping: String,
    /// When the change of the site was first seen, in ISO 8601. Values that were read later may be wrong.
    pub(crate) changed_at: String,
}

/// A page of a draft.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DraftPage {
    /// A number that no other page of the draft has.
    pub(crate) number: usize,
    /// Where the page comes from, in words for the user.
    pub(crate) from: String,
    pub(crate) url: String,
    pub(crate) content_type: Option<String>,
    pub(crate) ending: String,
    pub(crate) bytes: u64,
    /// Values of fields that the page is known to have: from its records, from golden cases, or as read before the site
    /// changed.
    pub(crate) known: BTreeMap<String, Vec<String>>,
    /// Whether the page is from before the change of the site that a repair is about. Such a page is shown but not used
    /// for learning.
    pub(crate) is_former: bool,
}

impl DraftPage {
    pub(crate) fn head(&self) -> PageHead {
        PageHead {
            url: self.url.clone(),
            content_type: self.content_type.clone(),
            ending: self.ending.clone(),
            bytes: self.bytes,
            known: self.known.clone(),
        }
    }
}

/// A page that is to be added to a draft.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewPage {
    pub(crate) from: String,
    pub(crate) url: String,
    pub(crate) content_type: Option<String>,
    pub(crate) ending: String,
    pub(crate) body: Vec<u8>,
    pub(crate) known: BTreeMap<String, Vec<String>>,
    pub(crate) is_former: bool,
}

/// Why a draft is not found or was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DraftError {
    #[error("draft not found: it was removed, or dropped for newer ones")]
    Missing,
    #[error("{0}")]
    TooMuch(String),
    #[error("cannot use the drafts: {0}")]
    Io(#[from] io::Error),
}

/// A draft in the list of drafts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DraftRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) pages: usize,
    pub(crate) changed_ms: u64,
}

/// All drafts of a dashboard.
#[derive(Debug)]
pub(crate) struct Drafts {
    folder: PathBuf,
    /// Locked while a thread changes drafts, so that only one does at a time.
    changing: Mutex<()>,
}

impl Drafts {
    pub(crate) fn new(folder: &Path) -> Drafts {
        Drafts {
            folder: folder.to_owned(),
            changing: Mutex::default(),
        }
    }

    /// Creates a draft under an unused id. If there are too many drafts, those that were changed longest ago are
    /// removed.
    pub(crate) fn create(
        &self,
        id: &str,
        edited: Edited,
        mapping: Value,
        repairs: Option<Repairs>,
    ) -> Result<Draft, DraftError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = self.read_rows()?;
        rows.sort_by_key(|row| row.changed_ms);
        for oldest in rows
            .iter()
            .take((rows.len() + 1).saturating_sub(MOST_DRAFTS))
        {
            fs::remove_dir_all(self.folder.join(&oldest.id))?;
        }
        let draft = Draft {
            id: id.to_owned(),
            edited,
            mapping,
            pages: Vec::new(),
            said: BTreeMap::new(),
            repairs,
        };
        fs::create_dir_all(self.folder_of(id)?)?;
        self.write_draft(&draft)?;
        Ok(draft)
    }

    pub(crate) fn get(&self, id: &str) -> Result<Draft, DraftError> {
        match fs::read(self.folder_of(id)?.join(DRAFT)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(DraftError::Missing),
            read => Ok(serde_json::from_slice(&read?).map_err(io::Error::from)?),
        }
    }

    /// Changes a draft. If `change` fails, nothing is stored.
    pub(crate) fn change<T>(
        &self,
        id: &str,
        change: impl FnOnce(&mut Draft) -> Result<T, DraftError>,
    ) -> Result<T, DraftError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut draft = self.get(id)?;
        let done = change(&mut draft)?;
        self.write_draft(&draft)?;
        Ok(done)
    }

    /// Adds a page to a draft, and returns its number. It replaces a page with the same URL, but a page from before a
    /// change of the site never replaces one from after it, or the other way round. If the content is the same, the
    /// number and the user's statements about the page are kept.
    pub(crate) fn add_page(&self, id: &str, page: NewPage) -> Result<usize, DraftError> {
        let bytes = page.body.len() as u64;
        if page.body.len() > MOST_PAGE_BYTES {
            let most = MOST_PAGE_BYTES >> 20;
            return Err(DraftError::TooMuch(format!(
                "page too large: at most {most} MiB"
            )));
        }
        let folder = self.folder_of(id)?;
        self.change(id, |draft| {
            let is_same = |one: &DraftPage| one.url == page.url && one.is_former == page.is_former;
            let former = draft.pages.iter().position(is_same);
            if let Some(same) = former.map(|place| &mut draft.pages[place])
                && same.content_type == page.content_type
                && same.bytes == bytes
                && fs::read(folder.join(format!("page-{}", same.number)))? == page.body
            {
                same.known.extend(page.known);
                return Ok(same.number);
            }
            let others = draft.pages.iter().filter(|one| !is_same(one));
            let (count, sum) =
                others.fold((0, 0), |(count, sum), one| (count + 1, sum + one.bytes));
            if count >= MOST_PAGES || sum + bytes > MOST_BYTES {
                let most = MOST_BYTES >> 20;
                return Err(DraftError::TooMuch(format!(
                    "draft full: at most {MOST_PAGES} pages and {most} MiB; remove a page first"
                )));
            }
            let number = draft.pages.iter().map(|one| one.number + 1).max();
            let number = number.unwrap_or_default();
            write_private(&folder.join(format!("page-{number}")), &page.body)?;
            let page = DraftPage {
                number,
                from: page.from,
                url: page.url,
                content_type: page.content_type,
                ending: page.ending,
                bytes,
                known: page.known,
                is_former: page.is_former,
            };
            match former {
                Some(place) => {
                    let former = std::mem::replace(&mut draft.pages[place], page);
                    remove_statements_and_files(draft, &folder, former.number);
                }
                None => draft.pages.push(page),
            }
            Ok(number)
        })
    }

    pub(crate) fn remove_page(&self, id: &str, number: usize) -> Result<(), DraftError> {
        let folder = self.folder_of(id)?;
        self.change(id, |draft| {
            draft.pages.retain(|page| page.number != number);
            remove_statements_and_files(draft, &folder, number);
            Ok(())
        })
    }

    pub(crate) fn remove(&self, id: &str) -> Result<(), DraftError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        match fs::remove_dir_all(self.folder_of(id)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// All drafts, the last changed first.
    pub(crate) fn list(&self) -> Result<Vec<DraftRow>, DraftError> {
        let mut rows = self.read_rows()?;
        rows.sort_by_key(|row| u64::MAX - row.changed_ms);
        Ok(rows)
    }

    /// The path of the file with a page's body.
    pub(crate) fn body_path(&self, id: &str, number: usize) -> Result<PathBuf, DraftError> {
        Ok(self.folder_of(id)?.join(format!("page-{number}")))
    }

    /// The path of the file with a page's copy. It exists once the copy is made.
    pub(crate) fn copy_path(&self, id: &str, number: usize) -> Result<PathBuf, DraftError> {
        Ok(self.folder_of(id)?.join(format!("copy-{number}.json")))
    }

    fn folder_of(&self, id: &str) -> Result<PathBuf, DraftError> {
        match is_id(id) {
            true => Ok(self.folder.join(id)),
            false => Err(DraftError::Missing),
        }
    }

    fn write_draft(&self, draft: &Draft) -> Result<(), DraftError> {
        let text = serde_json::to_vec(draft).map_err(io::Error::from)?;
        if text.len() > MOST_DRAFT_BYTES {
            let most = MOST_DRAFT_BYTES >> 20;
            return Err(DraftError::TooMuch(format!(
                "the draft exceeds {most} MiB, including the data about its pages"
            )));
        }
        write_private(&self.folder_of(&draft.id)?.join(DRAFT), &text)?;
        Ok(())
    }

    fn read_rows(&self) -> Result<Vec<DraftRow>, DraftError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read?,
        };
        let mut rows = Vec::new();
        for entry in entries {
            let id = entry?.file_name().to_string_lossy().into_owned();
            if !is_id(&id) {
                continue;
            }
            let changed =
                fs::metadata(self.folder.join(&id).join(DRAFT)).and_then(|it| it.modified());
            let changed = changed.unwrap_or(SystemTime::UNIX_EPOCH);
            let changed_ms = changed.duration_since(SystemTime::UNIX_EPOCH);
            let draft = self.get(&id);
            let name = draft
                .as_ref()
                .ok()
                .and_then(|draft| draft.mapping["name"].as_str());
            rows.push(DraftRow {
                name: name.unwrap_or("without a name").to_owned(),
                pages: draft.as_ref().map_or(0, |draft| draft.pages.len()),
                changed_ms: changed_ms.map_or(0, |time| time.as_millis() as u64),
                id,
            });
        }
        Ok(rows)
    }
}

/// Removes the user's statements about a page of a draft, and the page's files.
fn remove_statements_and_files(draft: &mut Draft, folder: &Path, number: usize) {
    for pointed in draft.said.values_mut() {
        pointed.retain(|one| one.page != number);
    }
    for name in [format!("page-{number}"), format!("copy-{number}.json")] {
        // If this fails, the file is removed together with the draft's folder.
        let _ = fs::remove_file(folder.join(name));
    }
}

/// Whether a text is the id of a draft. Ids are hexadecimal digits, so they cannot lead out of the folder.
fn is_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drafts() -> (tempfile::TempDir, Drafts) {
        let dir = tempfile::tempdir().unwrap();
        let drafts = Drafts::new(&dir.path().join("drafts"));
        (dir, drafts)
    }

    fn id(number: usize) -> String {
        format!("{number:032x}")
    }

    fn create_draft(drafts: &Drafts, number: usize) -> Draft {
        let edited = Edited {
            file: "people.json".into(),
            place: None,
            version: None,
        };
        drafts
            .create(&id(number), edited, json!({"name": "people"}), None)
            .unwrap()
    }

    fn page(url: &str, bytes: usize) -> NewPage {
        NewPage {
            url: url.into(),
            body: vec![b'x'; bytes],
            ..NewPage::default()
        }
    }

    #[test]
    fn a_draft_has_its_last_changes() {
        let (_dir, drafts) = drafts();
        let draft = create_draft(&drafts, 1);
        assert_eq!(drafts.get(&draft.id).unwrap(), draft);
        assert_eq!(drafts.add_page(&draft.id, page("a", 3)).unwrap(), 0);
        assert_eq!(drafts.add_page(&draft.id, page("b", 3)).unwrap(), 1);
        drafts
            .change(&draft.id, |draft| {
                let pointed = PointedField {
                    page: 0,
                    ..PointedField::default()
                };
                draft.said.insert("name".into(), vec![pointed]);
                Ok(())
            })
            .unwrap();
        assert_eq!(
            drafts.add_page(&draft.id, page("a", 3)).unwrap(),
            0,
            "it is the same"
        );
        assert_eq!(drafts.get(&draft.id).unwrap().said["name"].len(), 1);
        // The content of the page has changed. So it gets a new number, and statements about the old content no longer
        // apply.
        assert_eq!(drafts.add_page(&draft.id, page("a", 4)).unwrap(), 2);
        let now = drafts.get(&draft.id).unwrap();
        assert_eq!(
            now.pages.iter().map(|page| page.number).collect::<Vec<_>>(),
            [2, 1]
        );
        assert!(now.said["name"].is_empty());
        assert!(!drafts.body_path(&draft.id, 0).unwrap().exists());
        drafts.remove_page(&draft.id, 1).unwrap();
        assert_eq!(drafts.list().unwrap()[0].pages, 1);
        drafts.remove(&draft.id).unwrap();
        assert!(matches!(drafts.get(&draft.id), Err(DraftError::Missing)));
    }

    #[test]
    fn drafts_pages_and_bytes_are_bounded() {
        let (_dir, drafts) = drafts();
        for number in 0..MOST_DRAFTS + 3 {
            create_draft(&drafts, number);
        }
        assert_eq!(drafts.list().unwrap().len(), MOST_DRAFTS);
        let last = id(MOST_DRAFTS + 2);
        for number in 0..MOST_PAGES {
            drafts
                .add_page(&last, page(&number.to_string(), 1))
                .unwrap();
        }
        let refused = drafts.add_page(&last, page("more", 1));
        assert!(matches!(refused, Err(DraftError::TooMuch(_))));
        drafts.add_page(&last, page("0", 1)).unwrap();
        let large = create_draft(&drafts, 100).id;
        for number in 0..4 {
            drafts
                .add_page(&large, page(&number.to_string(), MOST_PAGE_BYTES))
                .unwrap();
        }
        assert!(drafts.add_page(&large, page("more", 1)).is_err());
        assert!(
            drafts
                .add_page(&large, page("0", MOST_PAGE_BYTES + 1))
                .is_err()
        );
    }

    #[test]
    fn the_name_of_a_draft_cannot_lead_out_of_the_folder() {
        let (_dir, drafts) = drafts();
        for id in [
            "..",
            "",
            "../../etc",
            &"g".repeat(32),
            &format!("{}/", "a".repeat(31)),
        ] {
            assert!(matches!(drafts.get(id), Err(DraftError::Missing)), "{id}");
            assert!(drafts.remove(id).is_err(), "{id}");
        }
    }
}
