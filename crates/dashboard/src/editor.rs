//! The mapping editor, which creates mappings from clicks on pages.
//!
//! A *draft* ([`drafts`]) is a mapping with up to twenty pages: golden cases, pages of the store, files, a URL that is
//! fetched once. The page of the mapping editor ([`view`]) shows a copy of one of them ([`copy`], in the frame of
//! [`frame`]) beside the mapping. Its script requests everything else ([`actions`]). A separate process reads the pages
//! ([`job`]). It makes copies, candidate chains for the elements that a user points at, trial results of a mapping
//! ([`trial`]), traces of its steps, and repairs.
//!
//! Only saving changes mapping files ([`mappings`]), all or nothing, and only for a mapping without faults. A draft
//! outlives the dashboard's process. A job ends with that process, and can be started again.

mod actions;
mod adding;
pub(crate) mod alert_copies;
mod by_fleet;
mod copies;
pub mod copy;
mod drafts;
mod frame;
mod golden;
pub mod host;
pub mod job;
mod known;
mod mappings;
mod stored;
mod trial;
pub(crate) mod view;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::drafts::{Draft, DraftError, Drafts};
use self::host::Host;
use self::job::{JobError, Jobs};
use self::mappings::{Folder, NotSaved};
use crate::answer::Problem;

/// The name of the drafts' folder within the dashboard's state folder.
const DRAFTS: &str = "editor-drafts";

/// The mapping editor of one dashboard: its folders and jobs.
pub(crate) struct Editor {
    folder: Folder,
    drafts: Arc<Drafts>,
    jobs: Jobs,
    host: Arc<dyn Host>,
}

impl Editor {
    /// Creates the editor. `state` is the dashboard's state folder. Without it, drafts are stored in a hidden folder
    /// next to the mappings.
    pub(crate) fn new(mappings: &Path, state: Option<&PathBuf>, host: Arc<dyn Host>) -> Editor {
        let beside = mappings.join(".editor");
        let state = state.unwrap_or(&beside);
        Editor {
            folder: Folder::new(mappings),
            drafts: Arc::new(Drafts::new(&state.join(DRAFTS))),
            jobs: Jobs::default(),
            host,
        }
    }

    /// Runs a function on the drafts in a thread that may block, because drafts are files.
    async fn with_drafts<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Drafts) -> Result<T, DraftError> + Send + 'static,
    ) -> Result<T, Problem> {
        let drafts = Arc::clone(&self.drafts);
        let done = tokio::task::spawn_blocking(move || work(&drafts)).await;
        Ok(done.map_err(Problem::internal_error)??)
    }

    async fn load_draft(&self, id: &str) -> Result<Draft, Problem> {
        let id = id.to_owned();
        self.with_drafts(move |drafts| drafts.get(&id)).await
    }

    /// Runs a function on the folder of mapping files in a thread that may block.
    async fn with_folder<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let folder = self.folder.clone();
        let done = tokio::task::spawn_blocking(move || work(&folder)).await;
        done.map_err(Problem::internal_error)
    }
}

impl From<DraftError> for Problem {
    fn from(error: DraftError) -> Problem {
        match error {
            DraftError::Missing => Problem::not_found(error),
            DraftError::TooMuch(_) => Problem::bad_request(error),
            DraftError::Io(_) => Problem::unavailable(error),
        }
    }
}

impl From<JobError> for Problem {
    fn from(trouble: JobError) -> Problem {
        match trouble {
            JobError::Refused(_) | JobError::TooMuch(_) => Problem::bad_request(trouble),
            JobError::Busy | JobError::Machine(_) => Problem::unavailable(trouble),
        }
    }
}

impl From<NotSaved> for Problem {
    fn from(refusal: NotSaved) -> Problem {
        match refusal {
            NotSaved::Io(..) => Problem::internal_error(refusal),
            NotSaved::Changed(_) => Problem::with_status(409, refusal),
            NotSaved::Faults(_) | NotSaved::Name(_) => Problem::bad_request(refusal),
        }
    }
}
