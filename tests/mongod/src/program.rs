//! Where the server program is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What the script ends with if this machine can have no server.
const NONE: i32 = 3;

/// The path of a `mongod`; `None`, with a word about it, if this machine can have none.
pub(crate) fn find() -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(ask_script) {
        Ok(path) => Some(path),
        Err(reason) => {
            let required = ["CI", "WEBFILL_REQUIRE_MONGOD"];
            let required = required.map(|name| std::env::var_os(name).is_some());
            assert!(!required.contains(&true), "no MongoDB server: {reason}");
            eprintln!("skipped: no MongoDB server: {reason}");
            None
        }
    }
}

fn ask_script() -> Result<PathBuf, String> {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../deploy/install-mongod.sh"
    );
    let asked = Command::new(script).output();
    let asked = asked.map_err(|error| format!("cannot run {script}: {error}"))?;
    let said = String::from_utf8_lossy(&asked.stderr).trim().to_owned();
    match asked.status.code() {
        Some(0) => Ok(PathBuf::from(
            String::from_utf8_lossy(&asked.stdout).trim_end(),
        )),
        Some(NONE) => Err(said),
        _ => panic!("{script} failed: {said}"),
    }
}
