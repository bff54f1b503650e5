//! Real MongoDB servers for tests and benchmarks, on loopback, gone with the process that uses them.
//!
//! A test that needs a database asks for a [`fresh_database`]: of the server that `MONGODB_URI`
//! names, or else of a server that this process starts on first use. A test that does things to a
//! server starts one of its own ([`Mongod`]) or three ([`ReplicaSet`]). The program is the `mongod`
//! in the PATH, or else one that `deploy/install-mongod.sh` fetches into `.cache/mongod`.
//!
//! Where there can be no server, the answer is `None` and the test says that it is skipped; with
//! `CI` or `WEBFILL_REQUIRE_MONGOD` set in the environment, it fails.

mod database;
mod mongod;
mod program;
mod replica_set;
mod spawner;
mod sweeper;

pub use database::{Database, fresh_database};
pub use mongod::Mongod;
pub use replica_set::ReplicaSet;

use std::future::Future;

/// Runs `work` to its end on a thread of its own, so that it may be called from inside a runtime.
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
