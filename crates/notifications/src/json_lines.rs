//! Append-only files of JSON lines: records of runs, and notifications.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use serde_json::Value;

/// Appends a JSON value as a line, and waits until the line is on disk.
pub fn append_line(mut file: File, line: &Value) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    if !ends_a_line(&mut file)? {
        // After a line that a crash has truncated, a new line is started.
        bytes.push(b'\n');
    }
    serde_json::to_writer(&mut bytes, line)?;
    bytes.push(b'\n');
    file.write_all(&bytes)?;
    file.sync_data()
}

fn ends_a_line(file: &mut File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_notification_is_a_line_also_after_one_that_was_cut_off() {
        let work = tempfile::tempdir().unwrap();
        let path = work.path().join("notifications.jsonl");
        let open = || {
            let mut options = File::options();
            options
                .read(true)
                .append(true)
                .create(true)
                .open(&path)
                .unwrap()
        };
        append_line(open(), &json!({"a": 1})).unwrap();
        open().write_all(b"{\"a\":").unwrap();
        append_line(open(), &json!({"a": 2})).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"a\":1}\n{\"a\":\n{\"a\":2}\n");
    }
}
