//! Whether a disk is full. SQLite reports that only of its main files: if there is no room for the memory that its
//! processes share, or for a new file, it reports a failure of the disk.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// The size of the file that is written as a test: twice as much as SQLite reserves at a time.
const PROBE_BYTES: usize = 64 << 10;

/// Whether a little more can be written to the disk of this file, which a test file shows. Returns true if the test
/// fails for another reason, such as a read-only disk.
pub fn has_room_beside(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let probe = file.with_file_name(format!(".{name}.room-{}", std::process::id()));
    let written = fs::File::create(&probe).and_then(|mut probe| probe.write_all(&[1; PROBE_BYTES]));
    // This fails if the test file was not created, which is harmless.
    let _ = fs::remove_file(&probe);
    !written.is_err_and(|error| {
        matches!(
            error.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded
        )
    })
}
