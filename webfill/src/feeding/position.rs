//! The position in an input, as one number that the dispatcher stores. 4 bits count how often the input was read from
//! its start, 23 bits are a hash of everything that was read, and 36 bits are the number of lines read.
//!
//! A resumed crawl skips fed lines only if the input still begins with the lines that were read. An edited input is
//! read from its start: no line may be lost, and the dispatcher recognises seeds that were fed before.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use webfill_urls::chained_hash;

use crate::seeds::Mark;

/// A position in the input of a crawl. Seeds were read up to this position.
#[derive(Debug, Clone, Copy)]
pub struct Position {
    /// How often the input was read from its start although a part of it had already been fed.
    reading: u64,
    /// A hash of the input's first bytes, or of a dataset's identity; 0 for a pipe, which cannot be read twice. It
    /// shows which lines in the store belong to this input.
    beginning: u64,
    mark: Mark,
    /// Whether the input consists of lines. Several lines may have the same record. In a dataset, each document is a
    /// separate record.
    has_lines: bool,
}

const READING_BITS: u32 = 4;
const HASH_BITS: u32 = 23;
const LINE_BITS: u32 = 36;
const BEGINNING_BYTES: usize = 4_096;

impl Position {
    /// The position of a crawl that has no input.
    pub const NOWHERE: Position = Position {
        reading: 0,
        beginning: 0,
        mark: Mark { line: 0, hash: 0 },
        has_lines: false,
    };

    /// The position before the first line of a pipe.
    pub fn start_of_pipe() -> Position {
        Position {
            has_lines: true,
            ..Position::NOWHERE
        }
    }

    /// The position before the first line of a regular file. It does not depend on the descriptor's current offset.
    pub fn start_of_file(seeds: &File) -> io::Result<Position> {
        let mut beginning = Vec::new();
        FileFromStart::new(seeds.try_clone()?)
            .take(BEGINNING_BYTES as u64)
            .read_to_end(&mut beginning)?;
        Ok(Position {
            beginning: truncate_hash(chained_hash(0, &beginning)),
            ..Position::start_of_pipe()
        })
    }

    /// The position before the first document of a dataset, which `identity` identifies.
    pub fn start_of_dataset(identity: &str) -> Position {
        let hash = chained_hash(0, identity.as_bytes());
        Position {
            beginning: truncate_hash(hash),
            mark: Mark { line: 0, hash },
            ..Position::NOWHERE
        }
    }

    /// How many lines or documents were read.
    pub fn line(&self) -> u64 {
        self.mark.line
    }

    pub fn mark(&self) -> Mark {
        self.mark
    }

    pub fn advance(&mut self, mark: Mark) {
        self.mark = mark;
    }

    /// Decides where to begin if an earlier run may have fed a part of the input. Returns the position, and the number
    /// of lines that count as fed. `mark_at` returns the mark of the input after that many lines.
    pub fn resume_position(
        mut self,
        fed_lines: u64,
        mark_at: impl FnOnce(u64) -> Option<Mark>,
    ) -> (Position, u64) {
        let (reading, hash, line) = decode_parts(fed_lines);
        self.reading = reading;
        if line == 0 {
            return (self, 0);
        }
        let is_same = |mark: Mark| mark.line == line && truncate_hash(mark.hash) == hash;
        if self.may_resume(fed_lines) && mark_at(line).is_some_and(is_same) {
            return (self, line);
        }
        self.reading = (reading + 1) % (1 << READING_BITS);
        (self, 0)
    }

    /// Whether an earlier run has fed a part of the input, and the input can be read again.
    pub fn may_resume(&self, fed_lines: u64) -> bool {
        self.beginning != 0 && decode_parts(fed_lines).2 > 0
    }

    /// The position as one number, which the dispatcher stores.
    pub fn fed_lines(&self) -> u64 {
        match self.beginning {
            0 => encode_parts(self.reading, 0, self.mark.line),
            _ => encode_parts(self.reading, truncate_hash(self.mark.hash), self.mark.line),
        }
    }

    /// The number that identifies a line of the input in the store; `None` if the input does not consist of lines.
    pub fn line_key(&self, line: u64) -> Option<u64> {
        self.has_lines
            .then(|| encode_parts(self.reading, self.beginning, line))
    }

    /// The line of this input that the store knows by this number; `None` if the number belongs to another input or an
    /// earlier reading.
    pub fn line_at(&self, kept: u64) -> Option<u64> {
        let (reading, beginning, line) = decode_parts(kept);
        let is_here = (reading, beginning) == (self.reading, self.beginning);
        (self.has_lines && is_here).then_some(line)
    }
}

fn encode_parts(reading: u64, hash: u64, line: u64) -> u64 {
    (reading << HASH_BITS | hash) << LINE_BITS | line & ((1 << LINE_BITS) - 1)
}

fn decode_parts(number: u64) -> (u64, u64, u64) {
    let part = |shift: u32, bits: u32| number >> shift & ((1 << bits) - 1);
    (
        part(LINE_BITS + HASH_BITS, READING_BITS),
        part(LINE_BITS, HASH_BITS),
        part(0, LINE_BITS),
    )
}

/// The part of a hash that is stored. It is never 0, because 0 stands for a missing hash.
fn truncate_hash(hash: u64) -> u64 {
    hash & ((1 << HASH_BITS) - 1) | 1
}

/// Reads a regular file from its beginning, even if other readers move the offset of the same descriptor.
pub struct FileFromStart {
    file: File,
    at: u64,
}

impl FileFromStart {
    pub fn new(file: File) -> FileFromStart {
        FileFromStart { file, at: 0 }
    }
}

impl Read for FileFromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(buffer, self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position_after(start: Position, lines: &[&str]) -> Position {
        let mut position = start;
        position.advance(mark_after_lines(start, lines, lines.len() as u64).unwrap());
        position
    }

    fn mark_after_lines(start: Position, lines: &[&str], line: u64) -> Option<Mark> {
        let lines = lines.get(..line as usize)?;
        let then = |mark: Mark, line: &&str| mark.after_line(line.as_bytes());
        Some(lines.iter().fold(start.mark(), then))
    }

    #[test]
    fn fed_lines_are_skipped_only_if_all_of_them_are_unchanged() {
        let start = Position::start_of_dataset("a file");
        let kept = position_after(start, &["a", "b", "c"]).fed_lines();
        for (lines, skipped) in [
            (&["a", "b", "c"][..], 3),
            (&["a", "b", "c", "d"], 3),
            (&["a", "x", "b", "c"], 0),
            (&["x", "b", "c"], 0),
            (&["a", "b", "cc"], 0),
            (&["b", "a", "c", "d"], 0),
            (&["a", "b"], 0),
            (&[], 0),
        ] {
            let (position, fed) =
                start.resume_position(kept, |line| mark_after_lines(start, lines, line));
            assert_eq!(fed, skipped, "{lines:?}");
            let again = position_after(position, lines).fed_lines();
            let (_, fed) =
                position.resume_position(again, |line| mark_after_lines(start, lines, line));
            assert_eq!(fed, lines.len() as u64, "{lines:?}");
        }
    }

    #[test]
    fn a_position_is_ignored_for_another_dataset_and_for_a_pipe() {
        let start = Position::start_of_dataset("one");
        let kept = position_after(start, &["a"]).fed_lines();
        for other in [
            Position::start_of_dataset("other"),
            Position::start_of_pipe(),
        ] {
            assert_eq!(
                other
                    .resume_position(kept, |line| mark_after_lines(other, &["a"], line))
                    .1,
                0
            );
        }
        let pipe = position_after(Position::start_of_pipe(), &["a"]);
        assert_eq!(
            pipe.resume_position(pipe.fed_lines(), |line| mark_after_lines(
                pipe,
                &["a"],
                line
            ))
            .1,
            0
        );
    }

    #[test]
    fn lines_of_another_reading_do_not_count() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"a\nb\n").unwrap();
        let start = Position::start_of_file(&file).unwrap();
        let first = start.line_key(7).unwrap();
        assert_eq!(start.line_at(first), Some(7));
        let kept = position_after(start, &["a"]).fed_lines();
        let (resumed, _) =
            start.resume_position(kept, |line| mark_after_lines(start, &["a", "b"], line));
        assert_eq!(resumed.line_at(first), Some(7));
        let (edited, _) =
            start.resume_position(kept, |line| mark_after_lines(start, &["x", "a"], line));
        assert_eq!(edited.line_at(first), None);
        assert_eq!(Position::start_of_dataset("a").line_key(7), None);
    }
}
