//! Dropping what is old.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::retention::{Cutoff, Dropped};

/// Old pages, samples and entries of the log are dropped.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Drops old entries in one bounded step. The caller repeats it as long as there [is more](Dropped::has_more),
    /// and leaves others time in between. Several processes may do it at once. Everything filled from a dropped page
    /// stays: records with their sources.
    ///
    /// [Bodies](crate::Bodies) are dropped with their pages.
    async fn drop_old(&self, cutoff: Cutoff) -> Result<Dropped, StoreError>;
}
