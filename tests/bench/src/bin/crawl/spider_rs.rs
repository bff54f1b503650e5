//! The program that runs spider-rs.

use std::path::PathBuf;
use std::process::Command;

use crate::webfill::bench_file;

/// The command that runs spider-rs: the program that `tests/bench/run.sh` builds, or the one that SPIDER_RS names.
/// `None` if there is none.
pub fn command() -> Option<Command> {
    let path = match std::env::var_os("SPIDER_RS") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../.cache/spider-rs/release/spider-peer"),
    };
    path.exists().then(|| Command::new(path))
}

/// The version of spider-rs in the lock file of its program.
pub fn version() -> String {
    let lock = std::fs::read_to_string(bench_file("spider-rs/Cargo.lock")).unwrap_or_default();
    let mut lines = lock.lines().skip_while(|line| *line != "name = \"spider\"");
    let version = lines.find_map(|line| line.strip_prefix("version = "));
    version.unwrap_or("unknown").trim_matches('"').to_owned()
}
