//! The mapping files of a folder, for views about mappings. They are read again when the last reading is too old,
//! because files change without the dashboard.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use webfill_mapping::MappingSet;

const FRESH_FOR: Duration = Duration::from_secs(5);

/// The mappings of a folder, or a text with one error per line.
pub(crate) type LoadResult = Arc<Result<MappingSet, String>>;

pub(crate) struct MappingFiles {
    folder: Option<PathBuf>,
    read: Mutex<Option<(Instant, LoadResult)>>,
}

impl MappingFiles {
    pub(crate) fn new(folder: Option<PathBuf>) -> MappingFiles {
        MappingFiles {
            folder,
            read: Mutex::default(),
        }
    }

    /// The mappings of the folder, read again if the last reading is too old. `None` if the dashboard has no folder of
    /// mappings.
    pub(crate) async fn get(&self) -> Option<LoadResult> {
        let folder = self.folder.clone()?;
        let mut read = self.read.lock().await;
        if let Some((at, found)) = &*read
            && at.elapsed() < FRESH_FOR
        {
            return Some(Arc::clone(found));
        }
        let load = move || MappingSet::load_dir(&folder).map_err(|errors| errors.to_string());
        let loaded = tokio::task::spawn_blocking(load).await;
        let loaded = loaded.unwrap_or_else(|_| Err(String::from("cannot read the mappings")));
        let found = Arc::new(loaded);
        *read = Some((Instant::now(), Arc::clone(&found)));
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dashboard_without_a_folder_knows_no_mappings() {
        assert!(MappingFiles::new(None).get().await.is_none());
    }

    #[tokio::test]
    async fn faults_of_a_folder_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.json"), "{").unwrap();
        let files = MappingFiles::new(Some(folder.path().to_owned()));
        let found = files.get().await.unwrap();
        let fault = found.as_ref().as_ref().err().unwrap();
        assert!(fault.contains("a.json"), "{fault}");
    }
}
