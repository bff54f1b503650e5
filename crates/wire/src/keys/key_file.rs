//! Reads key files. A pipe or a huge file in place of a key file does not block the reader.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The largest key file in bytes that is read. A key and its mark have less than a hundred bytes, but there may be
/// blanks around them.
const MOST_BYTES: u64 = 4 << 10;

/// The text of a key file. Fails if it is not a plain file, or is too large for a key.
pub fn read_key_file(path: &Path) -> io::Result<String> {
    // Without `O_NONBLOCK`, opening a pipe would wait for its writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let mut text = String::new();
    file.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("it is larger than a key"));
    }
    Ok(text)
}
