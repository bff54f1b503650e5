//! Stored bodies that were read again with other mappings.

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::reread::{Reread, RereadAnswer};
use crate::sqlite::Trial;

/// Pages that were read again replace their fields, and fill records again.
#[async_trait]
pub trait Rereading: Send + Sync {
    /// Stores the results of reading pages again, and fills their records as a refresh would. Answers in the order
    /// given. Repeating it changes nothing. With a trial it only returns what it would change after all earlier calls
    /// with that trial.
    async fn put_reread(
        &self,
        rereads: Vec<Reread>,
        trial: Option<Arc<Trial>>,
    ) -> Vec<Result<RereadAnswer, StoreError>>;
}
