//! The program that is measured.

use std::path::PathBuf;

/// `webfill` beside this program, or where WEBFILL says.
///
/// # Errors
///
/// It is not there.
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
