//! The store of a thread that follows it.

use std::sync::Arc;

use webfill_store::{Store, StoreError, StoreUri};

/// The store, opened when it is first needed. If that fails, the next use tries again.
pub(crate) struct FollowedStore {
    uri: StoreUri,
    store: Option<Arc<dyn Store>>,
    /// Whether the last attempt to read the store failed.
    is_away: bool,
}

impl FollowedStore {
    pub(crate) fn new(uri: StoreUri) -> FollowedStore {
        FollowedStore {
            uri,
            store: None,
            is_away: false,
        }
    }

    pub(crate) async fn open(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        if let Some(store) = &self.store {
            return Ok(Arc::clone(store));
        }
        let store = webfill_store::open_existing(&self.uri).await?;
        self.store = Some(Arc::clone(&store));
        Ok(store)
    }

    pub(crate) fn note_available(&mut self) {
        self.is_away = false;
    }

    /// Notes that the store could not be read. Returns whether this is the first failure in a row, so that it is logged
    /// once.
    pub(crate) fn note_unavailable(&mut self) -> bool {
        !std::mem::replace(&mut self.is_away, true)
    }
}
