//! Reading again what can change while the dispatcher runs: the mappings and some settings. It is read
//! and checked on a thread of its own, because that may take seconds; the loop goes on meanwhile. What
//! has a fault changes nothing.

use std::sync::{Arc, mpsc};

use serde_json::{Value, json};
use webfill_service::Fault;
use webfill_service::http::Protection;
use webfill_store::MappingRules;

use crate::backoff_table::BackoffTable;
use crate::excluded_sites::ExcludedSites;
use crate::mappings::Mappings;
use crate::outgoing::Client;
use crate::requester::Who;
use crate::retry_table::RetryTable;

/// What was read again, and checked.
#[derive(Debug, Clone)]
pub struct Reloaded {
    pub mappings: Mappings,
    /// What they say of records.
    pub mapping_rules: Arc<dyn MappingRules>,
    pub retries: RetryTable,
    pub backoff: BackoffTable,
    pub excluded: ExcludedSites,
    /// Certificate and tokens of HTTP, out of the same files as at the start.
    pub protection: Protection,
    /// The names of the settings that have other values than before, or name a file that holds something
    /// else.
    pub changed: Vec<String>,
    /// Those that have other values, too, but only after a restart.
    pub needs_restart: Vec<String>,
}

/// Reads everything again.
pub type ReadAgain = Box<dyn FnMut() -> Result<Reloaded, Fault> + Send>;

/// Who has asked for a reload, and what comes back with the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReloadAsked {
    /// Nobody waits for the answer if it was a signal.
    pub(crate) client: Option<Client>,
    pub(crate) who: Who,
    pub(crate) uuid: Option<String>,
}

/// What has become of one.
pub(crate) struct ReloadEnded {
    pub(crate) asked: ReloadAsked,
    pub(crate) found: Result<Box<Reloaded>, Fault>,
}

/// The thread's handle; it ends when this is dropped.
pub(crate) struct Reloader {
    asked: mpsc::Sender<ReloadAsked>,
}

impl Reloader {
    pub(crate) fn start(
        mut read: ReadAgain,
        on_read: impl Fn(ReloadEnded) + Send + 'static,
    ) -> Result<Reloader, Fault> {
        let (asked, questions) = mpsc::channel();
        std::thread::Builder::new()
            .name("reloader".into())
            .spawn(move || {
                for asked in questions {
                    let found = read().map(Box::new);
                    on_read(ReloadEnded { asked, found });
                }
            })
            .map_err(|error| Fault::error(format!("cannot start the reloader: {error}")))?;
        Ok(Reloader { asked })
    }

    pub(crate) fn read(&self, asked: ReloadAsked) {
        // The thread ends only with this handle.
        let _ = self.asked.send(asked);
    }
}

/// The answer to who has asked.
pub(crate) fn answer(asked: &ReloadAsked, reloaded: &Reloaded, is_changed: bool) -> Value {
    let mut answer = json!({
        "action": "reload",
        "mappings": {
            "version": reloaded.mappings.version,
            "files": reloaded.mappings.sources.len(),
            "changed": is_changed,
        },
        "changed": reloaded.changed,
        "needs_restart": reloaded.needs_restart,
    });
    if let Some(uuid) = &asked.uuid {
        answer["uuid"] = uuid.as_str().into();
    }
    answer
}
