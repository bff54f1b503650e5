//! The SQLite backend keeps every promise of a store and a cache.

use crate::conformance::Clients;
use tempfile::TempDir;
use webfill_store::{StoreUri, open};

async fn fresh_database() -> (Clients, TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let uri = StoreUri::Sqlite(folder.path().join("webfill.db"));
    let clients = Clients {
        first: open(&uri, None).await.expect("a first client"),
        second: open(&uri, None).await.expect("a second client"),
    };
    (clients, folder)
}

crate::conformance::conformance_tests!(fresh_database);
