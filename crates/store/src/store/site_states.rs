//! The states of sites in trouble.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::site_state::SiteState;

/// Stores the states of sites in trouble. A site without a state is open.
#[async_trait]
pub trait SiteStates: Send + Sync {
    /// Stores the states of sites in trouble. Each replaces the stored state of its site.
    async fn put_site_states(&self, states: Vec<SiteState>) -> Result<(), StoreError>;

    /// Removes the states of sites that are open again. Sites without a state are ignored.
    async fn remove_site_states(&self, sites: Vec<String>) -> Result<(), StoreError>;

    /// The stored state of a site, by its name.
    async fn site_state(&self, site: &str) -> Result<Option<SiteState>, StoreError>;
}
