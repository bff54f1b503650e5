//! Real MongoDB servers for tests and benchmarks. They listen on loopback and end with the process that started them.
//!
//! A test that needs a database takes a [`fresh_database`]. This database is on the server that `MONGODB_URI` names, if
//! there is one. Otherwise it is on the server that `with-mongod` has started for the whole run, or else on a server
//! that this process starts at first use. A test that stops or breaks a server starts its own server ([`Mongod`]), or
//! several that form a [`ReplicaSet`]. The program is the `mongod` in the PATH, or else one that
//! `deploy/install-mongod.sh` fetches into `.cache/mongod`.
//!
//! Without a server, all of these functions panic. Tests that use them have the attribute `#[needs(mongod)]`
//! (`webfill-test-needs`), so these tests are ignored on a machine without a server. If `CI` or `REQUIRE_MONGOD` is set
//! in the environment, they run nevertheless, and fail.

mod database;
mod mongod;
mod program;
mod replica_set;
mod spawner;
mod sweeper;

pub use database::{Database, SHARED_SERVER, fresh_database};
pub use mongod::Mongod;
pub use replica_set::ReplicaSet;

use std::future::Future;

/// Whether `MONGODB_URI` names a server, or this machine has the server program.
pub fn is_available() -> bool {
    std::env::var_os("MONGODB_URI").is_some() || program::find().is_ok()
}

/// Runs `work` to its end on a new thread, so that the caller may be inside an async runtime.
fn wait_for<R: Send>(work: impl Future<Output = R> + Send) -> R {
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(work)
        };
        scope.spawn(run).join().expect("what was waited for")
    })
}
