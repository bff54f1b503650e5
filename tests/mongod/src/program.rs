//! The server program. The script `deploy/install-mongod.sh` finds it or downloads it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The exit status of `install-mongod.sh` if no server program exists for this machine.
const UNAVAILABLE: i32 = 3;

/// The path of a `mongod`. Panics if there is none for this machine.
pub(crate) fn path() -> &'static Path {
    match find() {
        Ok(path) => path,
        Err(reason) => panic!("no MongoDB server: {reason}"),
    }
}

/// The path of a `mongod`, or the reason why there is none for this machine.
pub(crate) fn find() -> &'static Result<PathBuf, String> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    FOUND.get_or_init(find_by_script)
}

fn find_by_script() -> Result<PathBuf, String> {
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
        Some(UNAVAILABLE) => Err(said),
        _ => panic!("{script} failed: {said}"),
    }
}
