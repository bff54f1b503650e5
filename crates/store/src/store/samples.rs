//! Samples of pages for alerts and the mapping editor.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::sample::Sample;

/// Stores samples of the pages that a mapping has read.
#[async_trait]
pub trait Samples: Send + Sync {
    /// The samples of a mapping, without their texts, in the order of their ids.
    async fn samples(&self, mapping: &str) -> Result<Vec<Sample>, StoreError>;

    /// The samples with these ids, with their texts, in any order.
    async fn samples_with_texts(&self, ids: Vec<String>) -> Result<Vec<Sample>, StoreError>;

    /// Stores samples. Each replaces the one with its id.
    async fn put_samples(&self, samples: Vec<Sample>) -> Result<(), StoreError>;
}
