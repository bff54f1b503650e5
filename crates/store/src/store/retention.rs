//! Drops old entries.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::retention::{Cutoff, DropResult};

/// Drops old pages, samples and entries of the log.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Drops old entries in one bounded step. The caller repeats the call as long as there [is
    /// more](DropResult::has_more), and leaves time for other calls in between. Several processes may call this at
    /// once. Everything filled from a dropped page stays: records with their sources.
    ///
    /// [Bodies](crate::Bodies) are dropped with their pages.
    async fn drop_old(&self, cutoff: Cutoff) -> Result<DropResult, StoreError>;
}
