//! The result of a reload: the mappings and some settings, read again while the dispatcher runs.

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_service::Fault;
use webfill_service::http::Protection;
use webfill_store::MappingRules;

use crate::backoff_table::BackoffTable;
use crate::client::Client;
use crate::excluded_sites::ExcludedSites;
use crate::mappings::Mappings;
use crate::requester::SenderInfo;
use crate::retry_table::RetryTable;

/// The files that were read again and checked.
#[derive(Debug, Clone)]
pub struct Reloaded {
    pub mappings: Mappings,
    /// The rules that these mappings follow to fill records.
    pub mapping_rules: Arc<dyn MappingRules>,
    pub retries: RetryTable,
    pub backoff: BackoffTable,
    pub excluded: ExcludedSites,
    /// The certificate and tokens of the HTTP server, read from the same files as at the start.
    pub protection: Protection,
    /// The names of changed settings: those with other values, and those whose files have other contents.
    pub changed: Vec<String>,
    /// The names of changed settings that need a restart.
    pub needs_restart: Vec<String>,
}

/// A request to reload, with the `uuid` that its answer repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReloadRequest {
    /// The client that waits for the answer; `None` for a signal.
    pub client: Option<Client>,
    pub who: SenderInfo,
    pub uuid: Option<String>,
}

/// The result of a reload: the new files, or the fault that was found in one of them.
pub struct ReloadResult {
    pub asked: ReloadRequest,
    pub found: Result<Box<Reloaded>, Fault>,
}

/// The answer to the sender of the request.
pub(crate) fn reload_answer(asked: &ReloadRequest, reloaded: &Reloaded, is_changed: bool) -> Value {
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
