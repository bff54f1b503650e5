//! The store, opened at its first use. While it cannot be opened, visitors get the reason, and the next visit tries
//! again.

use std::sync::Arc;

use tokio::sync::Mutex;
use webfill_store::{Browse, BrowseHandles, StoreUri, open_to_browse};

use crate::answer::Problem;

pub(crate) struct StoreAccess {
    uri: Option<StoreUri>,
    /// The cache, if it is not in the store.
    cache: Option<StoreUri>,
    opened: Mutex<Option<BrowseHandles>>,
}

impl StoreAccess {
    pub(crate) fn new(uri: Option<StoreUri>, cache: Option<StoreUri>) -> StoreAccess {
        StoreAccess {
            cache: cache.filter(|cache| Some(cache) != uri.as_ref()),
            uri,
            opened: Mutex::default(),
        }
    }

    pub(crate) fn is_configured(&self) -> bool {
        self.uri.is_some()
    }

    /// The URI of the store without credentials, for users.
    pub(crate) fn name(&self) -> Option<String> {
        self.uri.as_ref().map(ToString::to_string)
    }

    pub(crate) async fn get(&self) -> Result<BrowseHandles, Problem> {
        let Some(uri) = &self.uri else {
            return Err(Problem::not_found("no store: name one with --store"));
        };
        let mut opened = self.opened.lock().await;
        if let Some(opened) = &*opened {
            return Ok(opened.clone());
        }
        let mut found = open_to_browse(uri).await.map_err(Problem::unavailable)?;
        if let Some(cache) = &self.cache {
            found.cache = open_to_browse(cache)
                .await
                .map_err(Problem::unavailable)?
                .cache;
        }
        *opened = Some(found.clone());
        tokio::spawn(create_indexes(Arc::clone(&found.browse)));
        Ok(found)
    }
}

/// Creates the indexes that make lists fast. Lists work without them, too, but read only a limited number of rows at a
/// time.
async fn create_indexes(browse: Arc<dyn Browse>) {
    if let Err(error) = browse.create_missing_indexes().await {
        tracing::warn!(event = "dashboard_indexes_not_made", %error, "lists of the store have no indexes and are slow");
    }
}
