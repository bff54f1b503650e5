//! A buffer with the bytes that were read from the input but not taken out yet.

use std::io::{self, Read};

const BLOCK_BYTES: usize = 256 << 10;

pub(crate) struct Buffer {
    input: Box<dyn Read + Send>,
    bytes: Vec<u8>,
    /// The bytes before this index were taken out.
    start: usize,
    is_at_end: bool,
}

impl Buffer {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Buffer {
        Buffer {
            input,
            bytes: Vec::new(),
            start: 0,
            is_at_end: false,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Whether the end of the input has been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Reads until the buffer has twice as many bytes. Doubling keeps repeated scans cheap: if a row does not end in
    /// the buffer, all its bytes are scanned again.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let before = self.bytes.len();
        let wanted = before.max(BLOCK_BYTES);
        self.bytes.reserve(wanted);
        let read = self
            .input
            .by_ref()
            .take(wanted as u64)
            .read_to_end(&mut self.bytes)?;
        self.is_at_end = read < wanted;
        Ok(())
    }

    /// Reads until the buffer has this many bytes, or the input ends.
    pub(crate) fn fill_to(&mut self, bytes: usize) -> io::Result<()> {
        while self.bytes().len() < bytes && !self.is_at_end {
            self.fill()?;
        }
        Ok(())
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let taken = self.bytes()[..bytes].to_vec();
        self.start += bytes;
        taken
    }
}
