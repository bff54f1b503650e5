//! Finds the program to measure.

use std::path::PathBuf;

/// `webfill` in the folder of this program, or the path in WEBFILL.
///
/// # Errors
///
/// It does not exist.
pub fn binary() -> Result<PathBuf, String> {
    let path = match std::env::var_os("WEBFILL") {
        Some(path) => PathBuf::from(path),
        None => std::env::current_exe()
            .map_err(|error| format!("this program has no path: {error}"))?
            .with_file_name("webfill"),
    };
    match path.exists() {
        true => Ok(path),
        false => Err(format!(
            "{} is missing: cargo build --release -p webfill",
            path.display()
        )),
    }
}
