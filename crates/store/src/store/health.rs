//! The health of extractions.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::health::HealthState;

/// The state of each mapping's extractions.
#[async_trait]
pub trait Health: Send + Sync {
    /// The health of all mappings.
    async fn health(&self) -> Result<Vec<HealthState>, StoreError>;

    /// Stores states, each only if the stored one has the previous revision. Returns which of them were stored.
    async fn replace_health_if_current(
        &self,
        states: Vec<HealthState>,
    ) -> Result<Vec<bool>, StoreError>;
}
