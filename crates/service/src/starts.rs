//! Counts how many times a role was started with its state folder. Metrics show the number, because it also reveals a
//! process that dies again and again right after its start.

use std::fs;
use std::path::Path;

use crate::whole_file::write_whole;

/// Counts this start of a role. Returns the number of starts, including this one. If the number cannot be written, this
/// start is not counted, because a full disk must not prevent the start.
pub fn count_start(state: &Path, role: &str) -> u64 {
    let file = state.join(format!("{role}.starts"));
    let before = fs::read_to_string(&file).ok();
    let before: u64 = before
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0);
    let starts = before.saturating_add(1);
    if let Err(error) = write_whole(&file, starts.to_string().as_bytes()) {
        tracing::warn!(event = "start_not_counted", file = %file.display(), %error, "this start is not counted");
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_counts_one_more_whatever_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let count = |role| count_start(folder.path(), role);
        assert_eq!((count("dispatcher"), count("dispatcher")), (1, 2));
        assert_eq!(count("supervisor"), 1, "each role counts for itself");
        fs::write(folder.path().join("dispatcher.starts"), "many").unwrap();
        assert_eq!(count("dispatcher"), 1);
        assert_eq!(count_start(&folder.path().join("none"), "dispatcher"), 1);
    }
}
