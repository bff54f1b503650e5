//! The stores of tables that `webfill fill` completes. A store is opened when a cell is first shown, and kept open for
//! the next ones.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tokio::sync::Mutex;
use webfill_store::{BrowseHandles, StoreError, StoreUri, open_to_browse};

/// How many stores are open at a time. Each store has threads. Beyond this number, the least recently used one is
/// closed.
const MOST: usize = 8;

/// The open stores of tables.
#[derive(Default)]
pub(crate) struct ProjectStores(Mutex<Vec<Opened>>);

struct Opened {
    path: PathBuf,
    /// The device and the inode of the file: they show whether another file has replaced it.
    file: (u64, u64),
    browsing: BrowseHandles,
}

impl ProjectStores {
    /// The store in a file, opened if it is not open; `None` if the file does not exist.
    pub(crate) async fn get(&self, path: &Path) -> Result<Option<BrowseHandles>, StoreError> {
        let own = path.to_owned();
        let found = tokio::task::spawn_blocking(move || std::fs::metadata(own));
        let found = found.await.ok().and_then(Result::ok);
        let file = found.filter(Metadata::is_file);
        let file = file.map(|file| (file.dev(), file.ino()));
        let mut all = self.0.lock().await;
        let place = all.iter().position(|opened| opened.path == path);
        let known = place.map(|place| all.remove(place));
        let Some(file) = file else {
            return Ok(None);
        };
        let opened = match known.filter(|opened| opened.file == file) {
            Some(opened) => opened,
            None => Opened {
                path: path.to_owned(),
                file,
                browsing: open_to_browse(&StoreUri::Sqlite(path.to_owned())).await?,
            },
        };
        let browsing = opened.browsing.clone();
        all.push(opened);
        let surplus = all.len().saturating_sub(MOST);
        all.drain(..surplus);
        Ok(Some(browsing))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use webfill_store::open;

    use super::*;

    #[tokio::test]
    async fn a_store_is_opened_again_only_if_its_file_was_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let make = async |path: &Path| drop(open(&StoreUri::Sqlite(path.to_owned()), None).await);
        let (stores, path) = (ProjectStores::default(), folder.path().join("webfill.db"));
        assert!(stores.get(&path).await.unwrap().is_none());
        make(&path).await;
        let first = stores.get(&path).await.unwrap().unwrap();
        let again = stores.get(&path).await.unwrap().unwrap();
        assert!(Arc::ptr_eq(&first.browse, &again.browse));
        let other = folder.path().join("other.db");
        make(&other).await;
        std::fs::rename(&other, &path).unwrap();
        let new = stores.get(&path).await.unwrap().unwrap();
        assert!(!Arc::ptr_eq(&first.browse, &new.browse));
        for number in 0..2 * MOST {
            let path = folder.path().join(format!("{number}.db"));
            make(&path).await;
            stores.get(&path).await.unwrap().unwrap();
        }
        assert_eq!(stores.0.lock().await.len(), MOST);
        std::fs::remove_file(folder.path().join("15.db")).unwrap();
        let gone = stores.get(&folder.path().join("15.db")).await;
        assert!(gone.unwrap().is_none());
        assert_eq!(stores.0.lock().await.len(), MOST - 1);
    }
}
