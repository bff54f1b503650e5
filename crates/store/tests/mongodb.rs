//! The MongoDB backend keeps every promise of a store and a cache.

use crate::conformance::Clients;
use webfill_store::{StoreUri, open};
use webfill_test_mongod::{Database, fresh_database};
use webfill_test_needs::needs;

async fn fresh_clients() -> (Clients, Database) {
    let database = fresh_database();
    let uri: StoreUri = database.uri().parse().expect("a URI of a test server");
    let clients = Clients {
        first: open(&uri, None).await.expect("a first client"),
        second: open(&uri, None).await.expect("a second client"),
    };
    (clients, database)
}

crate::conformance::conformance_tests!(
    #[needs(mongod)]
    fresh_clients
);
