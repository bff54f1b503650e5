//! The position in an input, as one number that the dispatcher keeps: 23 bits that identify the input,
//! and 40 bits of lines read. For another input the number is ignored.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

/// A position in an input.
#[derive(Clone, Copy)]
pub struct Position {
    /// A hash of the file's beginning; 0 for a pipe, which is always read from its beginning.
    fingerprint: u64,
    /// Lines read, or documents if the input is a dataset.
    pub line: u64,
    /// The input has lines, each of which may repeat the record of another. Of documents, each is a
    /// record of its own.
    has_lines: bool,
}

const LINE_BITS: u32 = 40;
const LINES: u64 = (1 << LINE_BITS) - 1;
const FINGERPRINT_BYTES: u64 = 4_096;

impl Position {
    /// For a crawl without an input.
    pub const NOWHERE: Position = Position {
        fingerprint: 0,
        line: 0,
        has_lines: false,
    };

    /// The beginning of a file.
    pub fn start_of(seeds: &Path) -> Position {
        Position {
            fingerprint: fingerprint(seeds).unwrap_or(0),
            line: 0,
            has_lines: true,
        }
    }

    /// The beginning of a regular file that is open already; what was read of it stays unread.
    pub fn start_of_file(seeds: &File) -> Position {
        Position {
            fingerprint: fingerprint_of(seeds).unwrap_or(0),
            line: 0,
            has_lines: true,
        }
    }

    /// The beginning of a dataset, which is identified by a text.
    pub fn start_of_input(identity: &str) -> Position {
        Position {
            fingerprint: bits_of(identity.as_bytes()).unwrap_or(0),
            line: 0,
            has_lines: false,
        }
    }

    /// The lines that an earlier run has fed, if it read the same input.
    pub fn lines_of(&self, fed_lines: u64) -> u64 {
        let same_file = self.fingerprint != 0 && fed_lines >> LINE_BITS == self.fingerprint;
        match same_file {
            true => fed_lines & LINES,
            false => 0,
        }
    }

    /// The number for the dispatcher.
    pub fn fed_lines(&self) -> u64 {
        self.fingerprint << LINE_BITS | self.line
    }

    /// The same number for another line of the input, if it has lines.
    pub fn of_line(&self, line: u64) -> Option<u64> {
        let number = self.fingerprint << LINE_BITS | line;
        self.has_lines.then_some(number)
    }

    /// The line with this number, if it is one of this input.
    pub fn line_at(&self, number: u64) -> Option<u64> {
        let is_here = self.has_lines && number >> LINE_BITS == self.fingerprint;
        is_here.then_some(number & LINES)
    }
}

/// 23 bits that identify a file by its beginning; none for a pipe, which cannot be read twice.
fn fingerprint(path: &Path) -> Option<u64> {
    // Checked before opening, because opening a pipe blocks until it has a writer.
    std::fs::metadata(path).ok().filter(|meta| meta.is_file())?;
    fingerprint_of(&File::open(path).ok()?)
}

fn fingerprint_of(mut file: &File) -> Option<u64> {
    let mut beginning = Vec::new();
    file.take(FINGERPRINT_BYTES)
        .read_to_end(&mut beginning)
        .ok()?;
    file.rewind().ok()?;
    bits_of(&beginning)
}

fn bits_of(content: &[u8]) -> Option<u64> {
    let hash = webfill_urls::content_hash(content);
    let bits = u64::from_str_radix(hash.get(..8)?, 16).ok()?;
    Some(bits & 0x7f_ffff | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_means_nothing_for_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (first, second) = (file("first", "a\nb\n"), file("second", "c\nd\n"));
        let mut position = Position::start_of(&first);
        position.line = 2;
        let kept = position.fed_lines();
        assert_eq!(Position::start_of(&first).lines_of(kept), 2);
        let opened = File::open(&first).unwrap();
        assert_eq!(Position::start_of_file(&opened).lines_of(kept), 2);
        assert_eq!(std::io::read_to_string(opened).unwrap(), "a\nb\n");
        assert_eq!(Position::start_of(&second).lines_of(kept), 0);
        assert_eq!(Position::start_of(Path::new("-")).lines_of(kept), 0);
        assert_eq!(Position::NOWHERE.lines_of(kept), 0);
    }
}
