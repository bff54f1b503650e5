//! The lines of an input. They are numbered, limited in length, and decompressed if necessary. UTF-16 is read as UTF-8.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use webfill_table::Utf16Reader;
use webfill_urls::chained_hash;

/// The longest line that is read, in bytes. A longer one counts as broken.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 20;

const BUFFER_BYTES: usize = 64 << 10;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A position in an input, with a hash of everything before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// The number of lines that were read, or of documents if the input is a dataset.
    pub line: u64,
    /// A hash of the lines or documents before this position.
    pub hash: u64,
}

impl Mark {
    /// The mark of the input after one more line or document, whose text is `content`.
    pub fn after_line(self, content: &[u8]) -> Mark {
        Mark {
            line: self.line + 1,
            hash: chained_hash(self.hash, content),
        }
    }
}

/// A line of the input, without its line break.
pub(crate) struct Line {
    /// The number of the line, counted from 1.
    pub(crate) number: u64,
    pub(crate) text: LineText,
    /// The mark (position and hash) of the input after the line.
    mark: Mark,
}

pub(crate) enum LineText {
    Whole(Vec<u8>),
    /// A line that is too long, or where the input failed. After a failure, no line follows.
    Broken {
        reason: String,
        beginning: Vec<u8>,
    },
}

/// The lines of an input.
pub(crate) struct Lines {
    input: Box<dyn BufRead + Send>,
    /// Lines that were put back, to be returned again.
    unread: VecDeque<Line>,
    /// The mark (position and hash) after the last line that was read from the input.
    read: Mark,
    /// The mark (position and hash) after the last line that was returned.
    taken: Mark,
    has_failed: bool,
}

impl Lines {
    /// Opens a file, or standard input for `-`, and reads its beginning, so that an unreadable input is reported
    /// immediately.
    pub(crate) fn open(path: &Path) -> Result<Lines, String> {
        if path.as_os_str() == "-" {
            return Lines::from_reader(Box::new(io::stdin()));
        }
        let file = File::open(path).map_err(|error| error.to_string())?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(String::from("is a folder"));
        }
        Lines::from_reader(Box::new(file))
    }

    /// Reads the lines of any input.
    pub(crate) fn from_reader(input: Box<dyn Read + Send>) -> Result<Lines, String> {
        let (beginning, input) = peek_beginning(input).map_err(|error| error.to_string())?;
        if !beginning.starts_with(&GZIP) {
            return Lines::from_text(&beginning, input);
        }
        let unpacked = MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, input));
        let (beginning, unpacked) =
            peek_beginning(Box::new(unpacked)).map_err(|error| format!("broken gzip: {error}"))?;
        Lines::from_text(&beginning, unpacked)
    }

    /// Reads the lines of an input whose first bytes are `beginning`. `input` still returns these bytes.
    fn from_text(beginning: &[u8], mut input: Box<dyn Read + Send>) -> Result<Lines, String> {
        // The length of the byte order mark, and whether the bytes of UTF-16 are in big-endian order. Without a mark, its
        // ASCII characters show by their zero bytes.
        let (mark, utf16) = match beginning {
            [0xff, 0xfe, 0, 0] | [0, 0, 0xfe, 0xff] => {
                return Err(String::from("UTF-32: save it as UTF-8"));
            }
            [0xff, 0xfe, ..] => (2, Some(false)),
            [0xfe, 0xff, ..] => (2, Some(true)),
            [0xef, 0xbb, 0xbf, ..] => (3, None),
            [1..=255, 0, 1..=255, 0] => (0, Some(false)),
            [0, 1..=255, 0, 1..=255] => (0, Some(true)),
            _ => (0, None),
        };
        let skipped = io::copy(&mut input.by_ref().take(mark), &mut io::sink());
        skipped.map_err(|error| error.to_string())?;
        let input: Box<dyn Read + Send> = match utf16 {
            Some(is_big_endian) => Box::new(Utf16Reader::new(input, is_big_endian)),
            None => input,
        };
        Ok(Lines {
            input: Box::new(BufReader::with_capacity(BUFFER_BYTES, input)),
            unread: VecDeque::new(),
            read: Mark::default(),
            taken: Mark::default(),
            has_failed: false,
        })
    }

    /// The mark (position and hash) after the last line that was returned.
    pub(crate) fn mark(&self) -> Mark {
        self.taken
    }

    /// The mark (position and hash) after this many lines; `None` if there are fewer.
    pub(crate) fn mark_at(mut self, line: u64) -> Option<Mark> {
        while self.read.line < line && self.next_line().is_some() {}
        (self.read.line == line).then_some(self.read)
    }

    /// Puts lines back. They are returned next, in the given order.
    pub(crate) fn put_back(&mut self, lines: Vec<Line>) {
        for line in lines.into_iter().rev() {
            self.unread.push_front(line);
        }
    }

    pub(crate) fn next(&mut self) -> Option<Line> {
        let line = self.unread.pop_front().or_else(|| self.next_line())?;
        self.taken = line.mark;
        Some(line)
    }

    fn next_line(&mut self) -> Option<Line> {
        if self.has_failed {
            return None;
        }
        let mut text = Vec::new();
        let read = self.read_line(&mut text);
        if let Ok(0) = read {
            return None;
        }
        if text.last() == Some(&b'\n') {
            text.pop();
        }
        if text.last() == Some(&b'\r') {
            text.pop();
        }
        self.read = self.read.after_line(&text);
        let text = match read {
            Err(error) => {
                self.has_failed = true;
                LineText::Broken {
                    reason: format!("reading failed, the rest was not read: {error}"),
                    beginning: text,
                }
            }
            Ok(bytes) if bytes > MAX_LINE_BYTES => LineText::Broken {
                reason: format!("the line has more than {MAX_LINE_BYTES} bytes"),
                beginning: text,
            },
            Ok(_) => LineText::Whole(text),
        };
        Some(Line {
            number: self.read.line,
            text,
            mark: self.read,
        })
    }

    /// Reads the rest of a line, and keeps at most [`MAX_LINE_BYTES`] of it. Returns the line's full length including
    /// its end, or 0 at the end of the input.
    fn read_line(&mut self, text: &mut Vec<u8>) -> io::Result<usize> {
        let mut bytes = 0;
        loop {
            let buffer = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(buffer.len(), |end| end + 1);
            let room = MAX_LINE_BYTES.saturating_sub(text.len());
            text.extend_from_slice(&buffer[..used.min(room)]);
            self.input.consume(used);
            bytes += used;
            if end.is_some() || used == 0 {
                return Ok(bytes);
            }
        }
    }
}

/// Reads the first four bytes of an input. Also returns the whole input, which still includes them.
fn peek_beginning(mut input: Box<dyn Read + Send>) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut beginning = Vec::with_capacity(4);
    input.by_ref().take(4).read_to_end(&mut beginning)?;
    let whole = io::Cursor::new(beginning.clone()).chain(input);
    Ok((beginning, Box::new(whole)))
}
