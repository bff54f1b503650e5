//! An array of 64-byte cache lines, so that one look-up costs one cache miss. The operating system
//! provides memory pages only when they are first written.

const WORDS: usize = 8;

/// The size of one line in bytes.
pub(super) const LINE_BYTES: usize = WORDS * size_of::<u64>();

/// A fixed number of lines of eight words, initially zero.
#[derive(Debug)]
pub(super) struct CacheLines {
    words: Vec<u64>,
    first: usize,
    lines: usize,
}

impl CacheLines {
    pub(super) fn new(lines: usize) -> Self {
        // One spare line, so that the first line can be aligned to a cache line.
        let words = vec![0; (lines + 1) * WORDS];
        let first = words.as_ptr().align_offset(LINE_BYTES).min(WORDS);
        CacheLines {
            words,
            first,
            lines,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.lines
    }

    /// The line of a key. Keys in ascending order visit the lines in order.
    pub(super) fn line_of(&mut self, key: u64) -> &mut [u64; WORDS] {
        let start = self.start_of(key);
        let line = &mut self.words[start..start + WORDS];
        line.try_into().expect("a line has eight words")
    }

    /// Reads a word of a key's line, so that the processor loads the line.
    pub(super) fn prefetch(&self, key: u64) -> u64 {
        self.words[self.start_of(key)]
    }

    fn start_of(&self, key: u64) -> usize {
        let line = ((key as u128 * self.lines as u128) >> 64) as usize;
        self.first + line * WORDS
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words[self.first..self.first + self.lines * WORDS]
    }
}
