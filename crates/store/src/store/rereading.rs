//! Stored pages that were read again with other mappings.

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::reread::{Reread, RereadAnswer};
use crate::sqlite::Trial;

/// Stores the results of reading pages again: the pages' fields are replaced, and their records filled again.
#[async_trait]
pub trait Rereading: Send + Sync {
    /// Stores the results of reading pages again, and fills their records as a refresh would. Answers in the given
    /// order. Repeating the call changes nothing. With a trial, the call only returns what it would change, after all
    /// earlier calls with the same trial.
    async fn put_reread(
        &self,
        rereads: Vec<Reread>,
        trial: Option<Arc<Trial>>,
    ) -> Vec<Result<RereadAnswer, StoreError>>;
}
